//! The answer for Bash, which passes the line as it was typed, and inserts what it gets as it is.

use super::{answer::Answer, lines, values::Candidate};

/// The quote that the end of a line is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

/// The words of a line without their quotes.
struct Split {
    words: Vec<String>,
    /// Where the last word begins in the line, in bytes.
    start: usize,
    quote: Quote,
}

/// The answer for the line up to the cursor, and the end of it that Bash will replace: the last word without an opening
/// quote, or its part after a character such as `=`.
pub(super) fn answer(arguments: &[String]) -> Option<String> {
    let [line, replaced] = arguments else {
        return None;
    };
    let split = split(line);
    let mut answer = Answer::to(split.words.get(1..)?)?;
    let kept = line[split.start..].strip_suffix(replaced.as_str())?;
    let kept = self::split(kept).words.concat();
    let matching = answer.matching().into_iter();
    let candidates = matching.filter_map(|one| {
        let value = quoted(one.value.strip_prefix(&kept)?, split.quote);
        Some(Candidate::new(value, None))
    });
    answer.candidates = candidates.collect();
    Some(lines(&answer, |value, _| value.to_owned()))
}

/// Splits a line as Bash does, but for expansions. There is at least one word; the last may be empty.
fn split(line: &str) -> Split {
    let mut split = Split {
        words: vec![String::new()],
        start: 0,
        quote: Quote::None,
    };
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let Some(word) = split.words.last_mut() else {
            break;
        };
        match (split.quote, c) {
            (Quote::None, ' ' | '\t' | '\n') => {
                if at > split.start {
                    split.words.push(String::new());
                }
                split.start = at + 1;
            }
            (Quote::None, '\'') => split.quote = Quote::Single,
            (Quote::None, '"') => split.quote = Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => split.quote = Quote::None,
            (Quote::None, '\\') => word.extend(chars.next().map(|(_, c)| c)),
            (Quote::Double, '\\') => {
                let escaped = chars.next_if(|(_, c)| matches!(c, '$' | '`' | '"' | '\\'));
                word.push(escaped.map_or('\\', |(_, c)| c));
            }
            _ => word.push(c),
        }
    }
    split
}

/// `text` as it has to stand inside `quote`. Bash adds the closing quote.
fn quoted(text: &str, quote: Quote) -> String {
    let needs_backslash = |c: char| match quote {
        Quote::Single => false,
        Quote::Double => matches!(c, '$' | '`' | '"' | '\\'),
        Quote::None => c.is_ascii() && !c.is_ascii_alphanumeric() && !"_./@%+,:=-".contains(c),
    };
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        if quote == Quote::Single && c == '\'' {
            quoted.push_str(r"'\''");
            continue;
        }
        if needs_backslash(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_split_as_bash_does() {
        for (line, words, quote) in [
            ("stacklift ", &["stacklift", ""][..], Quote::None),
            ("a  b\\ c", &["a", "b c"], Quote::None),
            ("a 'b c", &["a", "b c"], Quote::Single),
            ("a \"b\\$'\\x", &["a", "b$'\\x"], Quote::Double),
            ("a 'b'\"c\"d", &["a", "bcd"], Quote::None),
            ("", &[""], Quote::None),
        ] {
            let split = split(line);
            assert_eq!(split.words, words, "{line}");
            assert_eq!(split.quote, quote, "{line}");
        }
    }

    proptest! {
        #[test]
        fn a_quoted_text_is_one_word_with_that_text(text in "[ -~äß]{1,12}") {
            for (open, quote, close) in [("", Quote::None, ""), ("'", Quote::Single, "'"), ("\"", Quote::Double, "\"")] {
                let line = format!("a {open}{}{close}", quoted(&text, quote));
                let split = split(&line);
                prop_assert_eq!(&split.words, &["a".to_owned(), text.clone()]);
                prop_assert_eq!(split.quote, Quote::None);
            }
        }
    }
}
