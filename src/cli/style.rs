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

const TABLE: [(Meaning, Style); 14] = {
    use AnsiColor::{Cyan, Green, Magenta, Red, Yellow};
    use Meaning as M;
    [
        (M::Plain, Style::new()),
        (M::Name, Style::new().bold()),
        (M::Kept, Green.on_default()),
        (M::Added, Green.on_default()),
        (M::Changed, Yellow.on_default()),
        (M::Removed, Red.on_default()),
        (M::Failed, Red.on_default()),
        (M::Unknown, Magenta.on_default()),
        (M::Done, Green.on_default().bold()),
        (M::Command, Cyan.on_default()),
        (M::Label, Cyan.on_default().bold()),
        (M::Warning, Yellow.on_default().bold()),
        (M::Error, Red.on_default().bold()),
        (M::Remark, Style::new().dimmed()),
    ]
};

impl Meaning {
    pub(super) fn style(self) -> Style {
        let found = TABLE.iter().find(|(meaning, _)| *meaning == self);
        found.map_or_else(Style::new, |(_, style)| *style)
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

#[cfg(test)]
mod tests {
    use anstyle::Color;

    use super::*;

    #[test]
    fn every_color_can_be_read_on_a_dark_and_on_a_light_terminal() {
        for (meaning, style) in TABLE {
            assert_eq!(meaning.style(), style, "{meaning:?} is in the table once");
            assert_eq!(style.get_bg_color(), None, "{meaning:?}");
            let readable = match style.get_fg_color() {
                None => true,
                Some(Color::Ansi(color)) => {
                    use AnsiColor::{Cyan, Green, Magenta, Red, Yellow};
                    [Cyan, Green, Magenta, Red, Yellow].contains(&color)
                }
                Some(_) => false,
            };
            assert!(readable, "{meaning:?}");
        }
    }

    #[test]
    fn what_changes_has_another_color_than_what_stays() {
        let of = |meaning: Meaning| meaning.style().get_fg_color();
        let different = [
            Meaning::Kept,
            Meaning::Changed,
            Meaning::Removed,
            Meaning::Unknown,
        ];
        for (at, one) in different.iter().enumerate() {
            for other in &different[at + 1..] {
                assert_ne!(of(*one), of(*other), "{one:?} {other:?}");
            }
        }
        assert_eq!(of(Meaning::Removed), of(Meaning::Failed));
    }

    #[test]
    fn the_lines_of_a_diff() {
        for (line, meaning) in [
            ("@@ -1,2 +1,2 @@", Meaning::Command),
            ("-  a", Meaning::Removed),
            ("+  a", Meaning::Added),
            ("---", Meaning::Removed),
            ("   a", Meaning::Plain),
            ("", Meaning::Plain),
        ] {
            assert_eq!(Meaning::of_diff(line), meaning, "{line}");
        }
    }
}
