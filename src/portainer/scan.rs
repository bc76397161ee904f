//! Finds the end of a JSON value that comes in pieces, and checks on the way that it is one.
//!
//! Nothing is read twice, however it is cut, and nothing is kept but what is open. What `serde_json` takes for
//! a value that nobody looks at is one here, and nothing else: bytes that are not UTF-8 may stand in
//! strings, halves of surrogate pairs may be escaped, numbers may be of any size and nesting of any depth.

/// How far a value has been read.
#[derive(Debug)]
pub(super) struct Scan {
    next: Next,
    /// `[` or `{` for each that is open.
    open: Vec<u8>,
    /// What is read up to now, from the start of the value.
    at: usize,
    /// Where the number or word starts that is being read.
    bare: usize,
    escapes: bool,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value or the end of a list.
    Item,
    /// A key or the end of an object.
    FirstKey,
    Key,
    /// The rest of a key.
    InKey,
    Colon,
    /// The rest of a string.
    InString,
    /// The rest of a number or word.
    InBare,
    /// What may follow a value.
    After,
}

/// What came of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The value ends before this byte.
    End(usize),
    /// It goes on.
    More,
    /// It is no JSON.
    Fault,
}

impl Scan {
    pub(super) fn new() -> Self {
        Self {
            next: Next::Value,
            open: Vec::new(),
            at: 0,
            bare: 0,
            escapes: false,
        }
    }

    /// Begins another value.
    pub(super) fn restart(&mut self) {
        self.open.clear();
        (self.next, self.at, self.escapes) = (Next::Value, 0, false);
    }

    /// Whether a string of what is read holds a backslash.
    pub(super) fn has_escapes(&self) -> bool {
        self.escapes
    }

    /// Goes on with `bytes`, which start where the value starts and hold more than the last time. A number
    /// or word that is the whole value ends only where something follows it.
    pub(super) fn go_on(&mut self, bytes: &[u8]) -> Found {
        let (mut at, mut next) = (self.at, self.next);
        let found = loop {
            if matches!(next, Next::Key | Next::FirstKey) {
                let passed = pass_members(bytes, at);
                if passed != at {
                    // A comma has been passed, behind which another key must come.
                    (at, next) = (passed, Next::Key);
                }
            }
            if matches!(next, Next::InKey | Next::InString) {
                at = plain_end(bytes, at);
                next = match bytes.get(at) {
                    Some(b'"') if next == Next::InKey => Next::Colon,
                    Some(b'"') => Next::After,
                    Some(b'\\') => {
                        self.escapes = true;
                        match escape(&bytes[at + 1..]) {
                            Ok(Some(length)) => at += 1 + length,
                            Ok(None) => break Found::More,
                            Err(NoJson) => break Found::Fault,
                        }
                        continue;
                    }
                    Some(_) => break Found::Fault,
                    None => break Found::More,
                };
                at += 1;
            } else if next == Next::InBare {
                at += bytes[at..]
                    .iter()
                    .take_while(|&&byte| is_bare(byte))
                    .count();
                if at == bytes.len() {
                    break Found::More;
                }
                if !is_value(&bytes[self.bare..at]) {
                    break Found::Fault;
                }
                next = Next::After;
            }
            if next == Next::After && self.open.is_empty() {
                break Found::End(at);
            }
            let Some(&byte) = bytes.get(at) else {
                break Found::More;
            };
            next = match (next, byte) {
                (_, b' ' | b'\t' | b'\n' | b'\r') => next,
                (Next::After, b',') if self.is_in(b'{') => Next::Key,
                (Next::After, b',') | (Next::Colon, b':') => Next::Value,
                (Next::Value | Next::Item, b'"') => Next::InString,
                (Next::FirstKey | Next::Key, b'"') => Next::InKey,
                (Next::Value | Next::Item, b'{') => {
                    self.open.push(byte);
                    Next::FirstKey
                }
                (Next::Value | Next::Item, b'[') => {
                    self.open.push(byte);
                    Next::Item
                }
                (Next::After | Next::FirstKey, b'}') if self.is_in(b'{') => self.close(),
                (Next::After | Next::Item, b']') if self.is_in(b'[') => self.close(),
                (Next::Value | Next::Item, byte) if is_bare(byte) => {
                    self.bare = at;
                    Next::InBare
                }
                _ => break Found::Fault,
            };
            at += 1;
        };
        (self.at, self.next) = (at, next);
        found
    }

    fn is_in(&self, bracket: u8) -> bool {
        self.open.last() == Some(&bracket)
    }

    fn close(&mut self) -> Next {
        self.open.pop();
        Next::After
    }
}

/// Passes members of an object that are written as most are: `"key":value,` with a plain value and no blanks,
/// whole in `bytes`. Gives where the first other one starts.
fn pass_members(bytes: &[u8], mut at: usize) -> usize {
    while let Some(next) = member_end(bytes, at) {
        at = next;
    }
    at
}

#[inline]
fn member_end(bytes: &[u8], at: usize) -> Option<usize> {
    let colon = string_end(bytes, at)?;
    let value = colon + 1;
    if bytes.get(colon) != Some(&b':') {
        return None;
    }
    let comma = match bytes.get(value)? {
        b'"' => string_end(bytes, value)?,
        b'n' => value + bytes[value..].starts_with(b"null").then_some(4)?,
        b't' => value + bytes[value..].starts_with(b"true").then_some(4)?,
        b'f' => value + bytes[value..].starts_with(b"false").then_some(5)?,
        b'[' => value + bytes[value..].starts_with(b"[]").then_some(2)?,
        b'1'..=b'9' => {
            let digits = bytes[value..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit());
            value + digits.count()
        }
        b'0' => value + 1,
        _ => return None,
    };
    (bytes.get(comma) == Some(&b',')).then_some(comma + 1)
}

/// Behind the string without escapes that starts at `at`.
#[inline]
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let quote = plain_end(bytes, at + 1);
    (bytes.get(quote) == Some(&b'"')).then_some(quote + 1)
}

/// What no JSON text holds.
struct NoJson;

/// How long the escape is whose rest, behind the backslash, this is; `None` where it is cut.
#[cold]
fn escape(rest: &[u8]) -> Result<Option<usize>, NoJson> {
    let digits = match rest.first() {
        None => return Ok(None),
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 0,
        Some(b'u') => 4,
        Some(_) => return Err(NoJson),
    };
    let written = &rest[1..rest.len().min(1 + digits)];
    if !written.iter().all(u8::is_ascii_hexdigit) {
        return Err(NoJson);
    }
    Ok((written.len() == digits).then_some(1 + digits))
}

/// What numbers and words are made of.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

fn is_value(bare: &[u8]) -> bool {
    matches!(bare, b"null" | b"true" | b"false") || is_number(bare)
}

/// JSON's blanks.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The first byte from `at` on that is a quote, a backslash or a control character.
///
/// Sixteen bytes at a time, without a branch that depends on where in them it is: most strings are short,
/// and a wrong guess costs more than looking at the rest.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some((sixteen, _)) = bytes[at..].split_first_chunk::<16>() {
        let [low, high] = [0, 8].map(|half| {
            let eight = sixteen[half..].first_chunk().copied();
            marked(u64::from_le_bytes(eight.unwrap_or_default()))
        });
        if low | high != 0 {
            let place = if low == 0 {
                64 + high.trailing_zeros()
            } else {
                low.trailing_zeros()
            };
            return at + place as usize / 8;
        }
        at += 16;
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let rest = bytes[at..].iter().position(ends);
    rest.map_or(bytes.len(), |found| at + found)
}

/// Marks the highest bit of each of eight bytes that ends a plain run. The lowest mark is right; those above
/// may be there for the borrow.
fn marked(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let zero = |eight: u64| eight.wrapping_sub(ONES) & !eight;
    let quote = zero(eight ^ (ONES * 0x22));
    let backslash = zero(eight ^ (ONES * 0x5c));
    let control = eight.wrapping_sub(ONES * 0x20) & !eight;
    (quote | backslash | control) & (ONES * 0x80)
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', exponent @ ..] => exponent,
            _ => exponent,
        };
        let count = digits(exponent);
        if count == 0 {
            return false;
        }
        rest = &exponent[count..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::{Found, Scan};

    /// Where the value ends that `text` starts with, given in pieces of `step` bytes.
    fn scanned(text: &[u8], step: usize) -> Option<usize> {
        let mut scan = Scan::new();
        let mut given = 0;
        while given < text.len() {
            given = (given + step).min(text.len());
            match scan.go_on(&text[..given]) {
                Found::More => {}
                Found::End(end) => return Some(end),
                Found::Fault => return None,
            }
        }
        None
    }

    /// In a list, where every value has an end.
    fn check(text: &str) {
        let text = format!("[{text}]").into_bytes();
        let is_json = serde_json::from_slice::<IgnoredAny>(&text).is_ok();
        for step in [1, 3, 16, 1000] {
            let whole = scanned(&text, step) == Some(text.len());
            let shown = String::from_utf8_lossy(&text);
            assert_eq!(whole, is_json, "{shown:?} by {step}");
        }
    }

    #[test]
    fn values_and_what_is_none() {
        for text in [
            "null",
            "true",
            "false",
            "nul",
            "nulll",
            "\"\"",
            "\"a\\\"b\"",
            "\"\\u00e9\\ud800\"",
            "\"\\u00g0\"",
            "\"\\x\"",
            "\"\n\"",
            "\"\u{7f}é\"",
            "0",
            "-0",
            "01",
            "-",
            "1.",
            "1.5e+3",
            "1e",
            ".5",
            "+1",
            "1e999",
            "1-2",
            "{}",
            "{ }",
            "[]",
            "[ ]",
            "[,]",
            "[1,]",
            "[1 2]",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":1}",
            "{1:2}",
            "[}",
            "{]",
            "[[]",
            "[[]]",
            " \t\r\n[ 1 , {\"a\" : [ ] } ] ",
            "",
            " ",
            "'a'",
            "]",
            "\u{b}1",
            "{\"a\":{\"b\":[{\"c\":null}]},\"d\":\"e\"}",
        ] {
            check(text);
        }
        check(&("[".repeat(10_000) + &"]".repeat(10_000)));
    }

    proptest! {
        #[test]
        fn agrees_with_serde(
            tokens in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "\\", "\\u", "00e9", "1", "0",
                    "-", ".", "e", "null", "true", " ", "\n", "abcdefgh", "é",
                ]),
                0..12,
            ),
        ) {
            check(&tokens.concat());
        }
    }
}
