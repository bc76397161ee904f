//! Escaping of text from outside, so that it cannot control the terminal.

use std::borrow::Cow;

/// Text from outside, safe for a terminal: what would steer it is shown escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if steers(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Control characters (C0, C1), and those that turn, break or hide what stands around them.
pub fn steers(c: char) -> bool {
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
    fn text_from_outside_cannot_steer_the_terminal() {
        assert_eq!(
            printable("a\u{1b}[2J\u{9b}\u{202e}\u{2066}\u{feff}\u{e0041}b\n"),
            r"a\u{1b}[2J\u{9b}\u{202e}\u{2066}\u{feff}\u{e0041}b\n"
        );
        assert!(matches!(printable("ä 日 👩\u{200d}🚀"), Cow::Borrowed(_)));
    }
}
