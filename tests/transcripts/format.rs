//! The format of a transcript: lines at the margin, each with the lines that belong to it.

/// What a line at the margin begins with.
const COMMAND: &str = "$ ";

/// What a line that belongs to it begins with, before a space: output, errors, the exit code, requests, containers and files.
const SIGNS: [char; 6] = [' ', '!', '?', '>', '*', '+'];

/// A part of a transcript.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'t> {
    /// A comment or an empty line.
    Text(&'t str),
    /// A command of the shell, whose output follows.
    Command(&'t str),
    /// What is arranged or shown, with the text that belongs to it.
    Step(&'t str, String),
}

/// Splits a transcript into its parts. The output of commands is left out.
pub fn parts(transcript: &str) -> Vec<Part<'_>> {
    let lines: Vec<&str> = transcript.lines().collect();
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(&line) = lines.get(at) {
        at += 1;
        if line.is_empty() || line.starts_with('#') {
            parts.push(Part::Text(line));
            continue;
        }
        // Empty lines at the end separate parts.
        let rest = &lines[at..];
        let belongs = |line: &&&str| line.is_empty() || is_indented(line);
        let block = &rest[..rest.iter().take_while(belongs).count()];
        let filled = block.iter().rposition(|line| !line.is_empty());
        let block = &block[..filled.map_or(0, |last| last + 1)];
        at += block.len();
        parts.push(match line.strip_prefix(COMMAND) {
            Some(command) => Part::Command(command),
            None => Part::Step(line, unindented(block)),
        });
    }
    parts
}

/// Whether a line belongs to the one at the margin before it.
fn is_indented(line: &str) -> bool {
    line.starts_with(SIGNS) && line.get(1..2) == Some(" ")
}

fn unindented(block: &[&str]) -> String {
    let lines = block.iter().map(|line| line.get(2..).unwrap_or_default());
    self::lines(lines)
}

/// A text of these lines.
pub fn lines<T: ToString>(lines: impl Iterator<Item = T>) -> String {
    lines.map(|line| line.to_string() + "\n").collect()
}

/// The lines of a text, each after a sign. Empty lines stay empty if the sign is a space.
pub fn indented(sign: char, text: &str) -> String {
    let line = |line: &str| match line {
        "" if sign == ' ' => "\n".to_owned(),
        line => format!("{sign} {line}\n"),
    };
    text.lines().map(line).collect()
}
