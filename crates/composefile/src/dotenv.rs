//! `.env` as compose reads it: quotes, escapes, `export`, inline comments, several lines, `KEY: value`.
//!
//! After compose-go 2.x, whose oddities are kept because containers were started with them:
//! - `KEY` at the end of the file, without a line end, sets the variable with the empty name.
//! - What follows a closing quote on the same line is the next statement.
//! - `#` ends an unquoted value only behind a blank, and not at the value's very start.

use std::{borrow::Cow, cell::Cell, collections::HashMap};

use crate::interpolate::{InterpolateError, Lookup, interpolate};

/// How much text variables may bring into the values of one file. Each line can double what it names, so that
/// forty lines would fill any memory; compose itself has no such bound.
const MOST_EXPANDED: usize = 8 << 20;

/// Why compose refuses an env file. Never holds any of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct DotenvError {
    /// Where the statement starts, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: DotenvProblem,
}

/// What compose can find wrong with an env file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DotenvProblem {
    /// `A B=1`
    #[error("key cannot contain a space")]
    KeyWithSpace,
    /// Something that is neither letter, digit nor one of `_.-[]` before the `=`.
    #[error("unexpected character in variable name")]
    UnexpectedCharacter,
    /// `export` with nothing behind it.
    #[error("zero length string")]
    NoKey,
    /// A quote that never closes.
    #[error("unterminated quoted value")]
    Unterminated,
    /// A `${` that is no variable.
    #[error("invalid interpolation format")]
    InvalidInterpolation,
    /// `${VAR:?…}` without a value.
    #[error("required variable is missing a value")]
    MissingVariable,
    /// More than [`MOST_EXPANDED`] bytes come from variables.
    #[error("variables make the values longer than 8 MiB")]
    TooLong,
}

/// Reads an env file as compose does; each name once, at the place of its first mention, with its last
/// value. `lookup` is where compose runs: it goes before the file in `${…}`, and gives a bare `KEY` its
/// value.
pub fn parse(text: &str, lookup: Lookup<'_>) -> Result<Vec<(String, String)>, DotenvError> {
    parse_over(text, lookup, &|_| None)
}

/// The same over variables that are there already: `${…}` sees them where neither `lookup` nor the file
/// gives anything.
pub fn parse_over(
    text: &str,
    lookup: Lookup<'_>,
    there: Lookup<'_>,
) -> Result<Vec<(String, String)>, DotenvError> {
    let mut reader = Reader {
        rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        line: 1,
        places: HashMap::new(),
        found: Vec::new(),
        lookup,
        there,
        left: Cell::new(MOST_EXPANDED),
    };
    while reader.skip_to_statement() {
        reader.statement()?;
    }
    Ok(reader.found)
}

struct Reader<'t, 'l> {
    rest: &'t str,
    /// The line that `rest` starts on.
    line: usize,
    found: Vec<(String, String)>,
    /// Where each name is in `found`.
    places: HashMap<String, usize>,
    lookup: Lookup<'l>,
    there: Lookup<'l>,
    /// How much variables may still bring in.
    left: Cell<usize>,
}

/// How a statement goes on behind its key.
enum Key<'t> {
    /// `KEY=` or `KEY:`
    WithValue(&'t str),
    /// A bare `KEY`
    Bare(&'t str),
}

impl<'t> Reader<'t, '_> {
    /// Passes blanks and comments; `false` at the end.
    fn skip_to_statement(&mut self) -> bool {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.advance(blanks);
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
        match self.key().map_err(fail)? {
            Key::Bare(key) => {
                if let Some(value) = (self.lookup)(key) {
                    self.set(key, value);
                }
            }
            Key::WithValue(key) => {
                let value = self.value().map_err(fail)?;
                self.set(key, value);
            }
        }
        Ok(())
    }

    fn key(&mut self) -> Result<Key<'t>, DotenvProblem> {
        self.skip_export();
        if self.rest.is_empty() {
            return Err(DotenvProblem::NoKey);
        }
        let source = self.rest;
        let Some(end) = source.find(|c| !may_be_in_key(c)) else {
            return Ok(Key::WithValue(""));
        };
        let key = source[..end].trim_end();
        let ending = source.as_bytes()[end];
        if !matches!(ending, b'=' | b':' | b'\n') {
            return Err(DotenvProblem::UnexpectedCharacter);
        }
        if key.contains(' ') {
            return Err(DotenvProblem::KeyWithSpace);
        }
        self.advance(end + 1);
        self.skip_blanks();
        Ok(if ending == b'\n' {
            Key::Bare(key)
        } else {
            Key::WithValue(key)
        })
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

    fn value(&mut self) -> Result<String, DotenvProblem> {
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

    /// What stands between quotes, of whose kind `\'` or `\"` is one; other escapes stay.
    fn quoted(&mut self, quote: char) -> Result<String, DotenvProblem> {
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
        Err(DotenvProblem::Unterminated)
    }

    fn expand(&self, value: &str) -> Result<String, DotenvProblem> {
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
            InterpolateError::Invalid { .. } => DotenvProblem::InvalidInterpolation,
            InterpolateError::Required { .. } => DotenvProblem::MissingVariable,
        });
        if too_long.get() {
            return Err(DotenvProblem::TooLong);
        }
        expanded.map(Cow::into_owned)
    }

    fn known(&self, name: &str) -> Option<String> {
        match self.places.get(name) {
            Some(&place) => Some(self.found[place].1.clone()),
            None => (self.there)(name),
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

fn may_be_in_key(c: char) -> bool {
    is_blank(c) || c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '[' | ']')
}

/// A blank that ends no line.
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\t' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{85}' | '\u{a0}'
    )
}

/// The escapes of double quotes; `\$` becomes `$$`, which interpolation then makes a `$`.
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
                let digits = rest[1..]
                    .bytes()
                    .take(3)
                    .take_while(u8::is_ascii_digit)
                    .count();
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

/// `\0123` is the character of the octal number 123; fewer digits stay, without the 0.
fn push_octal(digits: &str, out: &mut String) {
    let code = if digits.len() == 3 {
        u8::from_str_radix(digits, 8).ok()
    } else {
        None
    };
    if let Some(code) = code {
        out.push(char::from(code));
    } else {
        out.push('\\');
        out.push_str(digits);
    }
}

#[cfg(test)]
mod tests;
