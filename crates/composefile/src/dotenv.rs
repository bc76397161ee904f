//! Parses `.env` files as Compose does: quotes, escapes, `export`, inline comments, multi-line values, `KEY: value`.
//!
//! ```
//! use composefile::dotenv;
//!
//! let text = "HOST=db # the database\nURL=\"http://${HOST}:${PORT:-5432}\"\nHOME\n";
//! let shell = |name: &str| (name == "HOME").then(|| "/root".to_owned());
//! let variables = dotenv::parse(text, &shell)?;
//! let url = variables.iter().find(|(name, _)| name == "URL");
//! assert_eq!(url.map(|(_, value)| value.as_str()), Some("http://db:5432"));
//! assert_eq!(variables[2], ("HOME".to_owned(), "/root".to_owned()));
//! # Ok::<(), dotenv::DotenvError>(())
//! ```
//!
//! The parser follows compose-go 2, including its quirks:
//! - A last line `KEY` without a line end sets a variable with an empty name.
//! - Text after a closing quote on the same line is the next statement.
//! - `#` starts a comment in an unquoted value only after a space, and not at the start of the value.

use std::{borrow::Cow, cell::Cell, collections::HashMap};

use crate::interpolate::{InterpolateError, Lookup, interpolate};

/// The most bytes that variables may add to the values of one file. Each line can double a value, so that forty lines
/// fill any memory. Compose itself has no limit.
const MAX_EXPANDED: usize = 8 << 20;

/// Why Compose rejects an env file. Never holds text of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct DotenvError {
    /// The line on which the statement starts, counted from 1.
    pub line: usize,
    /// The problem, in the words of Compose where it has some.
    pub problem: &'static str,
}

/// Parses an env file. Returns each variable once, in the order of their first lines, with its last value.
///
/// `lookup` gives the variables of the shell. They take precedence over the file in `${…}`, and a bare `KEY` takes its
/// value from them.
///
/// # Errors
///
/// If Compose rejects the file, or if variables expand to more than 8 MiB.
pub fn parse(text: &str, lookup: Lookup<'_>) -> Result<Vec<(String, String)>, DotenvError> {
    parse_over(text, lookup, &|_| None)
}

/// Parses an env file like [`parse`]. `${…}` takes a variable that is set neither in `lookup` nor in the file from
/// `fallback`.
pub fn parse_over(
    text: &str,
    lookup: Lookup<'_>,
    fallback: Lookup<'_>,
) -> Result<Vec<(String, String)>, DotenvError> {
    let mut parser = EnvParser {
        rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        line: 1,
        places: HashMap::new(),
        found: Vec::new(),
        lookup,
        fallback,
        left: Cell::new(MAX_EXPANDED),
    };
    while parser.skip_to_statement() {
        parser.statement()?;
    }
    Ok(parser.found)
}

struct EnvParser<'t, 'l> {
    rest: &'t str,
    /// The line that `rest` starts on.
    line: usize,
    found: Vec<(String, String)>,
    /// The index of each name in `found`.
    places: HashMap<String, usize>,
    lookup: Lookup<'l>,
    fallback: Lookup<'l>,
    /// The bytes that variables may still add.
    left: Cell<usize>,
}

impl<'t> EnvParser<'t, '_> {
    /// Skips whitespace and comments. Returns `false` at the end of the text.
    fn skip_to_statement(&mut self) -> bool {
        loop {
            let skipped = self.rest.len() - self.rest.trim_start().len();
            self.advance(skipped);
            if !self.rest.starts_with('#') {
                return !self.rest.is_empty();
            }
            let comment = self.rest.find('\n').unwrap_or(self.rest.len());
            self.advance(comment);
        }
    }

    fn statement(&mut self) -> Result<(), DotenvError> {
        let line = self.line;
        let fail = |problem| DotenvError { line, problem };
        let (key, has_value) = self.key().map_err(fail)?;
        let value = if has_value {
            Some(self.value().map_err(fail)?)
        } else {
            (self.lookup)(key)
        };
        if let Some(value) = value {
            self.set(key, value);
        }
        Ok(())
    }

    /// A key, and whether it has a value: `KEY=` or `KEY:`, and no bare `KEY`.
    fn key(&mut self) -> Result<(&'t str, bool), &'static str> {
        self.skip_export();
        if self.rest.is_empty() {
            return Err("zero length string");
        }
        let source = self.rest;
        let Some(end) = source.find(|c| !is_key_character(c)) else {
            return Ok(("", true));
        };
        let key = source[..end].trim_end();
        let ending = source.as_bytes()[end];
        if !matches!(ending, b'=' | b':' | b'\n') {
            return Err("unexpected character in variable name");
        }
        if key.contains(' ') {
            return Err("key cannot contain a space");
        }
        self.advance(end + 1);
        self.skip_blanks();
        Ok((key, ending != b'\n'))
    }

    fn skip_export(&mut self) {
        let Some(rest) = self.rest.strip_prefix("export") else {
            return;
        };
        if rest.starts_with([' ', '\t', '\n', '\u{c}', '\r']) {
            self.advance("export".len());
            self.skip_blanks();
        }
    }

    fn value(&mut self) -> Result<String, &'static str> {
        match self.rest.as_bytes().first() {
            Some(b'\'') => self.quoted('\''),
            Some(b'"') => {
                let value = self.quoted('"')?;
                self.expand(&unescape(&value))
            }
            _ => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                let line = &self.rest[..end];
                self.advance((end + 1).min(self.rest.len()));
                let value = line.find(" #").map_or(line, |comment| &line[..comment]);
                self.expand(value.trim_end())
            }
        }
    }

    /// The text between quotes. An escaped quote of the same kind is a quote; other escapes stay.
    fn quoted(&mut self, quote: char) -> Result<String, &'static str> {
        let mut value = String::new();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            if c == quote && !escaped {
                self.advance(at + 1);
                return Ok(value);
            }
            if c == '\\' && !escaped {
                escaped = true;
                continue;
            }
            if escaped && c != quote {
                value.push('\\');
            }
            escaped = false;
            value.push(c);
        }
        Err("unterminated quoted value")
    }

    fn expand(&self, value: &str) -> Result<String, &'static str> {
        let too_long = Cell::new(false);
        let lookup = |name: &str| {
            if too_long.get() {
                return Some(String::new());
            }
            let value = (self.lookup)(name).or_else(|| self.known(name))?;
            if let Some(left) = self.left.get().checked_sub(value.len()) {
                self.left.set(left);
                return Some(value);
            }
            too_long.set(true);
            Some(String::new())
        };
        let expanded = interpolate(value, &lookup).map_err(|error| match error {
            InterpolateError::Invalid => "invalid interpolation format",
            InterpolateError::TooLong => "variables make the values longer than 16 MiB",
            InterpolateError::Required(_) => "required variable is missing a value",
        });
        if too_long.get() {
            return Err("variables make the values longer than 8 MiB");
        }
        expanded.map(Cow::into_owned)
    }

    fn known(&self, name: &str) -> Option<String> {
        match self.places.get(name) {
            Some(&place) => Some(self.found[place].1.clone()),
            None => (self.fallback)(name),
        }
    }

    fn set(&mut self, name: &str, value: String) {
        if let Some(&place) = self.places.get(name) {
            self.found[place].1 = value;
        } else {
            self.places.insert(name.to_owned(), self.found.len());
            self.found.push((name.to_owned(), value));
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(is_blank);
    }

    fn advance(&mut self, length: usize) {
        let (passed, rest) = self.rest.split_at(length);
        self.line += passed.bytes().filter(|&byte| byte == b'\n').count();
        self.rest = rest;
    }
}

fn is_key_character(c: char) -> bool {
    is_blank(c) || c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '[' | ']')
}

/// Whether a character is whitespace other than a line feed.
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\t' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{85}' | '\u{a0}'
    )
}

/// Resolves the escapes of double quotes. `\$` becomes `$$`, which interpolation turns into `$`.
fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        let plain = match c {
            '0' => {
                let ahead = rest[1..].bytes().take(3);
                let digits = ahead.take_while(u8::is_ascii_digit).count();
                push_octal(&rest[1..=digits], &mut out);
                rest = &rest[1 + digits..];
                continue;
            }
            'a' => "\u{7}",
            'b' => "\u{8}",
            'f' => "\u{c}",
            'n' => "\n",
            'r' => "\r",
            't' => "\t",
            'v' => "\u{b}",
            '$' => "$$",
            '"' => "\"",
            '\\' => "\\",
            _ => {
                out.push('\\');
                continue;
            }
        };
        out.push_str(plain);
        rest = &rest[1..];
    }
    out.push_str(rest);
    out
}

/// Resolves `\0123`, the character with the octal number 123. Fewer than three digits stay, without the 0.
fn push_octal(digits: &str, out: &mut String) {
    match u8::from_str_radix(digits, 8) {
        Ok(code) if digits.len() == 3 => out.push(char::from(code)),
        _ => {
            out.push('\\');
            out.push_str(digits);
        }
    }
}

#[cfg(test)]
mod tests;
