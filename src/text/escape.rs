//! Escaping of text from outside, so that it cannot control the terminal.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters to encode in a path or a query: all but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// `text` as a part of a path or a query.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// `text` with the characters that could control a terminal escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(needs_escaping) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if needs_escaping(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The start of `text` on one line, for an error message: trimmed, at most 500 characters, and [`printable`].
pub fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 500;
    let text = text.trim();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", printable(&text[..end])),
        None => printable(text).into_owned(),
    }
}

/// What the output of a failed deployment ends with, as an [`excerpt`]: its last three lines that do not report progress.
/// Compose begins a line of progress with a blank, like lines that continue one with a colon at its end. The first line may begin
/// with Portainer's own words.
pub fn last_words(text: &str) -> String {
    const MOST: usize = 3;
    let mut lines: Vec<&str> = text.trim().lines().collect();
    lines.retain(|line| !line.is_empty());
    let mut portainers = String::new();
    if let [first, _, ..] = lines[..]
        && let Some((words, _)) = first.split_once(":  ")
    {
        portainers = format!("{words}: ");
        lines.remove(0);
    }
    let mut continues = false;
    lines.retain(|line| {
        let is_indented = line.starts_with(' ');
        let is_kept = !is_indented || continues;
        continues = is_kept && (is_indented || line.ends_with(':'));
        is_kept
    });
    if lines.is_empty() {
        return excerpt(text);
    }
    let last: Vec<&str> = lines[lines.len().saturating_sub(MOST)..]
        .iter()
        .map(|line| line.trim_start())
        .collect();
    let last = last.join("; ").replace(":; ", ": ");
    excerpt(&(portainers + &last))
}

/// The text without the numbers that the standard library adds to errors of the operating system.
pub fn without_error_numbers(text: &str) -> Cow<'_, str> {
    const START: &str = " (os error ";
    let mut pieces = text.split(START);
    let mut whole = Cow::Borrowed(pieces.next().unwrap_or_default());
    for piece in pieces {
        let number = piece.find(|c: char| !c.is_ascii_digit());
        let is_error = number.is_some_and(|end| end > 0 && piece[end..].starts_with(')'));
        let rest = if let Some(end) = number.filter(|_| is_error) {
            &piece[end + 1..]
        } else {
            whole.to_mut().push_str(START);
            piece
        };
        whole.to_mut().push_str(rest);
    }
    whole
}

/// Whether `c` is a control character (C0, C1), or reorders, breaks or hides the text around it.
pub fn needs_escaping(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            printable("a\u{1b}[2J\u{9b}\u{202e}\u{2066}\u{feff}\u{e0041}b\n"),
            r"a\u{1b}[2J\u{9b}\u{202e}\u{2066}\u{feff}\u{e0041}b\n"
        );
        assert!(matches!(printable("ä 日 👩\u{200d}🚀"), Cow::Borrowed(_)));
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        let expected = "a\\u{1b}[2J\\r\\nb\\u{9b}c";
        assert_eq!(excerpt(" a\u{1b}[2J\r\nb\u{9b}c \n"), expected);
        assert_eq!(excerpt(&"x".repeat(501)), format!("{}…", "x".repeat(500)));
    }
}
