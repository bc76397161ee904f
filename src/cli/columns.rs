//! The width of texts and terminals, in columns: a wide character, such as 日, has two.

use std::{io::IsTerminal, os::fd::AsFd};

use unicode_width::UnicodeWidthStr;

use crate::text::without_error_numbers;

/// The width of a terminal that does not report its own.
const USUAL: usize = 80;
/// Text for reading is not wider than this.
const READABLE: usize = 120;

/// The width of a stream; `None` if it is not a terminal. What is not read on a terminal is not wrapped, so that each
/// line is complete.
pub(super) fn of_terminal(stream: impl IsTerminal + AsFd) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col.into());
    Some(if columns == 0 { USUAL } else { columns })
}

/// The width for text that is read, on a stream of this width.
pub(super) fn readable(width: Option<usize>) -> usize {
    width.map_or(usize::MAX, |width| width.min(READABLE))
}

/// The columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The text with spaces up to a width.
pub(super) fn pad(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}

/// The text, cut to at most this many columns.
pub(super) fn cut(text: String, most: Option<usize>) -> String {
    match most {
        Some(most) if width(&text) > most => {
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let fitting = ends.partition_point(|&end| width(&text[..end]) < most);
            let end = ends[..fitting].last().copied().unwrap_or_default();
            format!("{}…", text[..end].trim_end())
        }
        _ => text,
    }
}

/// Breaks a text between words, into lines of at most `most` columns; the first has `first`. Longer words stay whole, and
/// so do commands, so that they can be copied: the terminal breaks them, and does not add a line feed.
pub(super) fn wrap(text: &str, first: usize, most: usize) -> Vec<String> {
    // Before it is broken: a line feed could be inside such a number.
    let text = &without_error_numbers(text);
    let mut lines = vec![String::new()];
    for word in words(text) {
        let most = if lines.len() == 1 { first } else { most };
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line).saturating_add(1 + width(word)) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks each line of a text. The rest of a line is indented by two columns, or to the text of an item, after `-`, `+`
/// or a number. The first line has `taken` columns before it. Without a width, nothing is broken.
pub(super) fn wrap_lines(text: &str, taken: usize, width: Option<usize>) -> String {
    let most = readable(width);
    let mut wrapped = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let taken = if index == 0 { taken } else { 0 };
        let (start, words, hanging) = indented(line);
        let room = |indent: usize| most.saturating_sub(indent);
        let parts = wrap(words, room(start.len() + taken), room(hanging));
        wrapped.push(start.to_owned() + &parts.join(&format!("\n{:hanging$}", "")));
    }
    wrapped.join("\n")
}

/// The spaces and the sign of an item that a line starts with, the rest, and the indentation of what does not fit.
fn indented(line: &str) -> (&str, &str, usize) {
    let words = line.trim_start_matches(' ');
    let number = words.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = match words.strip_prefix(['-', '+']) {
        None if number.len() < words.len() => number.strip_prefix('.').unwrap_or_default(),
        item => item.unwrap_or_default(),
    };
    let item_words = item.trim_start_matches(' ');
    let is_item = item.len() > item_words.len();
    let words = if is_item { item_words } else { words };
    let start = line.len() - words.len();
    let hanging = if is_item { start } else { start + 2 };
    (&line[..start], words, hanging)
}

/// Units that stay on the line of their number.
const UNITS: [&str; 6] = ["s", "ms", "min", "h", "MB", "GB"];

/// Whether a gap is between a number and its unit.
fn is_before_unit(before: &str, after: &str) -> bool {
    let word = after.split(' ').next().unwrap_or_default();
    let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
    before.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit)
}

/// The parts of a text that are not broken: words, what is between backticks, and commands.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    let mut in_command = false;
    std::iter::from_fn(move || {
        let text = rest?;
        let mut quoted = false;
        let end = text.char_indices().find(|&(at, c)| {
            quoted ^= c == '`';
            let ends_command = text[..at].ends_with(';');
            let is_gap = c == ' ' && !quoted && (!in_command || ends_command);
            is_gap && !is_before_unit(&text[..at], &text[at + 1..])
        });
        // A backtick without its end quotes nothing.
        let end = end.map(|(at, _)| at).or_else(|| {
            let is_open = quoted && !in_command;
            text.find(' ').filter(|_| is_open)
        });
        let (word, left) = end.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
        rest = left;
        // A command ends with its clause.
        let is_own = left.is_some_and(|left| left.starts_with("stacklift "));
        in_command = word == "run:" || word.ends_with(':') && is_own;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(wrap("ab cd ef", 2, 5), ["ab", "cd ef"]);
        assert_eq!(wrap("abcdefgh ij", 5, 5), ["abcdefgh", "ij"]);
        assert_eq!(wrap("", 5, 5), [""]);
        assert_eq!(wrap("ab cd", usize::MAX, usize::MAX), ["ab cd"]);
    }

    #[test]
    fn wide_characters_have_two_columns() {
        assert_eq!(wrap("日本 語 x", 4, 4), ["日本", "語 x"]);
        assert_eq!(pad("日本", 5), "日本 ");
        assert_eq!(cut("日本語".to_owned(), Some(4)), "日…");
        assert_eq!(cut("a👩\u{200d}🚀b".to_owned(), Some(4)), "a👩\u{200d}🚀b");
    }

    #[test]
    fn a_command_is_not_broken() {
        let expected = ["to roll", "back, run:", "a b c"];
        assert_eq!(wrap("to roll back, run: a b c", 12, 12), expected);
        assert_eq!(
            wrap("use `a b c d` now or run: e f; then g", 6, 6),
            ["use", "`a b c d`", "now or", "run:", "e f;", "then g"]
        );
        let expected = ["to undo:", "stacklift restore a;", "b: c"];
        assert_eq!(wrap("to undo: stacklift restore a; b: c", 8, 8), expected);
        assert_eq!(wrap("a ` b c", 1, 1), ["a", "`", "b", "c"]);
    }

    #[test]
    fn the_lines_of_a_list_keep_their_indentation() {
        assert_eq!(
            wrap_lines("it lost:\n  - one two\n  - x", 9, Some(10)),
            "it\n  lost:\n  - one\n    two\n  - x"
        );
        let expected = "+   a\n    b\n-c d";
        assert_eq!(wrap_lines("+   a b\n-c d", 0, Some(5)), expected);
        let long = "word ".repeat(100);
        assert_eq!(wrap_lines(&long, 9, None), long);
        let lines = wrap_lines(&long, 0, Some(500));
        assert!(lines.lines().all(|line| width(line) <= READABLE), "{lines}");
    }

    #[test]
    fn a_text_is_cut_at_the_width() {
        assert_eq!(cut("ready; x".to_owned(), None), "ready; x");
        assert_eq!(cut("ready; x".to_owned(), Some(8)), "ready; x");
        assert_eq!(cut("ready; x".to_owned(), Some(7)), "ready;…");
        assert_eq!(cut("ready; x".to_owned(), Some(0)), "…");
        // Portainer may send a long name, whose characters have no width.
        let long = format!("a{}", "\u{301}".repeat(100_000));
        assert_eq!(cut(format!("{long}bc"), Some(2)), format!("{long}…"));
    }
}
