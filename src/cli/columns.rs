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

/// The columns that a text takes, without the codes of colors.
pub(super) fn width(text: &str) -> usize {
    let plain = anstream::adapter::strip_str(text);
    plain.map(UnicodeWidthStr::width).sum()
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

/// The text, cut after its last word that fits with an ellipsis, unless that leaves no word.
pub(super) fn cut_words(text: String, most: usize) -> String {
    let mut lines = wrap(&text, most.saturating_sub(1), usize::MAX);
    if lines.len() == 1 || width(&text) <= most || width(&lines[0]) >= most {
        return cut(text, Some(most));
    }
    let words = lines.swap_remove(0);
    format!("{}…", words.trim_end_matches([':', ';', ',']))
}

/// Breaks a text between words, into lines of at most `most` columns; the first has `first`. Longer words stay whole.
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

/// The words of a text. A number and its unit are one, and so is what is in backticks: of a command that is pasted in two lines,
/// the shell runs the first.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_before_unit = move |gap: usize| {
        let word = text[gap + 1..].split(' ').next().unwrap_or_default();
        let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
        text[..gap].ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit)
    };
    let mut is_quoted = false;
    let gaps = text
        .match_indices([' ', '`'])
        .filter_map(move |(at, found)| {
            is_quoted ^= found == "`";
            (found == " " && !is_quoted).then_some(at)
        });
    let ends = gaps.filter(move |&gap| !is_before_unit(gap));
    let mut start = 0;
    ends.chain([text.len()]).map(move |end| {
        let word = &text[start..end];
        start = end + 1;
        word
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
        assert_eq!(wrap("a (`b c d`), e f", 5, 5), ["a", "(`b c d`),", "e f"]);
    }

    #[test]
    fn wide_characters_have_two_columns() {
        assert_eq!(wrap("日本 語 x", 4, 4), ["日本", "語 x"]);
        assert_eq!(pad("日本", 5), "日本 ");
        assert_eq!(cut("日本語".to_owned(), Some(4)), "日…");
        assert_eq!(cut("a👩\u{200d}🚀b".to_owned(), Some(4)), "a👩\u{200d}🚀b");
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
