//! What colors mean, everywhere.
//!
//! The 16 colors of the terminal, without a background, so that each theme chooses shades that can be read on it. White,
//! black and blue are not among them: on some themes, they are the color of the background or close to it. A color is
//! never the only sign: a word or a symbol says the same.

use anstyle::{AnsiColor, Style};

/// What a text is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Plain,
    /// The name of what the lines below are about.
    Name,
    /// It stays as it is, or can be adopted without an interruption.
    Kept,
    Added,
    /// It is recreated, restarted or changed.
    Changed,
    Removed,
    /// It failed, or is refused.
    Failed,
    Unknown,
    /// The verb of a step.
    Done,
    /// A command to run.
    Command,
    /// A heading, a question, and what introduces a state or a hint.
    Label,
    Warning,
    Error,
    Remark,
}

impl Meaning {
    pub(super) fn style(self) -> Style {
        use AnsiColor::{Cyan, Green, Magenta, Red, Yellow};
        match self {
            Self::Plain => Style::new(),
            Self::Name => Style::new().bold(),
            Self::Kept | Self::Added => Green.on_default(),
            Self::Changed => Yellow.on_default(),
            Self::Removed | Self::Failed => Red.on_default(),
            Self::Unknown => Magenta.on_default(),
            Self::Done => Green.on_default().bold(),
            Self::Command => Cyan.on_default(),
            Self::Label => Cyan.on_default().bold(),
            Self::Warning => Yellow.on_default().bold(),
            Self::Error => Red.on_default().bold(),
            Self::Remark => Style::new().dimmed(),
        }
    }

    /// The text in its style.
    pub(super) fn paint(self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let style = self.style();
        format!("{style}{text}{style:#}")
    }

    /// What the verb of a step does to its object.
    pub(super) fn of_step(verb: &str) -> Self {
        match verb {
            "kept" | "verified" => Self::Kept,
            "create" | "created" | "started" => Self::Added,
            "recreated" | "restarted" | "stop" | "update" => Self::Changed,
            "remove" | "delete" | "ended" => Self::Removed,
            "missing" | "stray" => Self::Failed,
            _ => Self::Done,
        }
    }

    /// What a line in a hunk of a diff is.
    pub(super) fn of_diff(line: &str) -> Self {
        match line.as_bytes().first() {
            Some(b'@') => Self::Command,
            Some(b'-') => Self::Removed,
            Some(b'+') => Self::Added,
            _ => Self::Plain,
        }
    }
}
