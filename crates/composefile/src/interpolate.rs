//! Replaces variables as Compose does.
//!
//! ```
//! use composefile::interpolate::interpolate;
//!
//! let lookup = |name: &str| (name == "TAG").then(|| "1.27".to_owned());
//! assert_eq!(interpolate("nginx:${TAG}", &lookup)?, "nginx:1.27");
//! assert_eq!(interpolate("${DATA:-./data}:/data", &lookup)?, "./data:/data");
//! assert_eq!(interpolate("$$TAG", &lookup)?, "$TAG");
//! assert!(interpolate("${KEY:?set it}", &lookup).is_err());
//! # Ok::<(), composefile::interpolate::InterpolateError>(())
//! ```
//!
//! The forms are `$VAR`, `${VAR}`, `${VAR-default}`, `${VAR:-default}`, `${VAR+replacement}`, `${VAR:+replacement}`,
//! `${VAR?error}` and `${VAR:?error}`. Defaults and replacements can hold variables. `$$` is a literal `$`, and so is a
//! `$` before any other character. A variable that is not set is empty.

use std::{borrow::Cow, ops::Range};

/// Returns the value of a variable; `None` if it is not set.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The deepest nesting that is accepted, so that no text can exhaust the stack.
const MAX_DEPTH: usize = 64;

/// The most bytes that a text may have. One short text can name a long value many times.
const MAX_EXPANDED: usize = 16 << 20;

/// Why a text cannot be interpolated. Never holds a variable's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterpolateError {
    /// A `${` that does not start one of the forms.
    #[error("invalid interpolation format")]
    Invalid,
    /// `${VAR?…}` of a variable that is not set, or `${VAR:?…}` of one that is not set or empty. Holds its name.
    #[error("required variable {0} is missing a value")]
    Required(String),
    /// The values are too long.
    #[error("the variables expand to more than {} MiB", MAX_EXPANDED >> 20)]
    TooLong,
}

/// Replaces every variable in `text` with its value from `lookup`.
///
/// # Errors
///
/// If a form is invalid, nested more than 64 levels deep, or requires a variable that has no value, or if the values are longer
/// than 16 MiB.
pub fn interpolate<'t>(
    text: &'t str,
    lookup: Lookup<'_>,
) -> Result<Cow<'t, str>, InterpolateError> {
    if !text.contains('$') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    substitute(text, lookup, &mut out)?;
    Ok(Cow::Owned(out))
}

fn substitute(text: &str, lookup: Lookup<'_>, out: &mut String) -> Result<(), InterpolateError> {
    let mut at = 0;
    while let Some(found) = text[at..].find('$') {
        let start = at + found;
        out.push_str(&text[at..start]);
        let (end, occurrence) = read_at(text, start).ok_or(InterpolateError::Invalid)?;
        at = end;
        let Some(variable) = occurrence else {
            out.push('$');
            continue;
        };
        let value = lookup(variable.name);
        let word = &text[variable.word.clone()];
        match variable.takes_word(value.as_deref()) {
            Some(true) => substitute(word, lookup, out)?,
            Some(false) => {
                let value = value.unwrap_or_default();
                if out.len() + value.len() > MAX_EXPANDED {
                    return Err(InterpolateError::TooLong);
                }
                out.push_str(&value);
            }
            None => return Err(InterpolateError::Required(variable.name.to_owned())),
        }
    }
    out.push_str(&text[at..]);
    Ok(())
}

/// A variable in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence<'t> {
    /// The bytes from the `$` to the end of the name or to the `}`.
    pub span: Range<usize>,
    /// The name of the variable.
    pub name: &'t str,
    /// `:-`, `-`, `:+`, `+`, `:?`, `?`, or empty.
    pub operator: &'static str,
    /// The bytes of the default, replacement or error message.
    pub word: Range<usize>,
}

impl Occurrence<'_> {
    /// Whether the word takes the place of this value of the variable. `None` if the variable must have a value, and has
    /// none.
    pub fn takes_word(&self, value: Option<&str>) -> Option<bool> {
        let empty_is_unset = self.operator.starts_with(':');
        let is_set = value.is_some_and(|value| !(empty_is_unset && value.is_empty()));
        match self.operator.trim_start_matches(':') {
            "-" => Some(!is_set),
            "+" => Some(is_set),
            "?" if !is_set => None,
            _ => Some(false),
        }
    }
}

/// The outermost variables of a text, in their order. Variables inside a default are part of its word. Stops at an
/// invalid form.
pub fn occurrences(text: &str) -> Vec<Occurrence<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = text[at..].find('$') {
        let Some((end, occurrence)) = read_at(text, at + offset) else {
            break;
        };
        found.extend(occurrence);
        at = end;
    }
    found
}

/// Escapes a value, so that interpolation returns it unchanged.
pub fn escaped(value: &str) -> String {
    value.replace('$', "$$")
}

/// Reads what the `$` at `start` begins: where it ends, and the variable, unless it is a literal `$`. `None` for an invalid
/// form.
fn read_at(text: &str, start: usize) -> Option<(usize, Option<Occurrence<'_>>)> {
    let rest = &text[start + 1..];
    let Some(inside) = rest.strip_prefix('{') else {
        let name = name_at(rest);
        let end = start + 1 + name.len() + usize::from(rest.starts_with('$'));
        let bare = Occurrence {
            span: start..end,
            name,
            operator: "",
            word: end..end,
        };
        return Some((end, (!name.is_empty()).then_some(bare)));
    };
    let name = name_at(inside);
    let after = Some(&inside[name.len()..]).filter(|_| !name.is_empty())?;
    let operators = [":-", "-", ":+", "+", ":?", "?"];
    let found = operators.into_iter().find(|one| after.starts_with(one));
    let operator = found.unwrap_or_default();
    let length = match found {
        Some(_) => word_at(&after[operator.len()..])?.len(),
        None => after.starts_with('}').then_some(0)?,
    };
    let word = start + 2 + name.len() + operator.len();
    let end = word + length + 1;
    let occurrence = Occurrence {
        span: start..end,
        name,
        operator,
        word: word..end - 1,
    };
    Some((end, Some(occurrence)))
}

/// The name of a variable at the start of `text`; may be empty.
fn name_at(text: &str) -> &str {
    let is_name = |&(at, byte): &(usize, u8)| {
        byte == b'_' || byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit())
    };
    let length = text.bytes().enumerate().take_while(is_name).count();
    &text[..length]
}

/// The text up to the closing brace of the form, on one line. Braces inside it are counted. `None` if they are nested too deep.
///
/// If the braces do not balance, the form ends at the last brace of the line, as in Compose.
fn word_at(text: &str) -> Option<&str> {
    let mut open = 1usize;
    let mut last = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\n' => break,
            b'{' if open == MAX_DEPTH => return None,
            b'{' => open += 1,
            b'}' => {
                open -= 1;
                last = Some(at);
                if open == 0 {
                    break;
                }
            }
            _ => {}
        }
    }
    last.map(|end| &text[..end])
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{InterpolateError, interpolate, occurrences};

    fn read(text: &str) -> Result<String, InterpolateError> {
        interpolate(text, &|name| match name {
            "A" => Some("a".into()),
            "EMPTY" => Some(String::new()),
            "DOLLAR" => Some("$A".into()),
            _ => None,
        })
        .map(Cow::into_owned)
    }

    #[test]
    fn forms() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$A-${A}", "a-a"),
            ("$NONE|${NONE}|", "||"),
            ("$$A $${A}", "$A ${A}"),
            ("$ $1 $. a$", "$ $1 $. a$"),
            ("${NONE-d}${EMPTY-d}", "d"),
            ("${NONE:-d}${EMPTY:-d}${A:-d}", "dda"),
            ("${NONE+x}${EMPTY+x}${A+x}", "xx"),
            ("${NONE:+x}${EMPTY:+x}${A:+x}", "x"),
            ("${A?e}${A:?e}${EMPTY?e}", "aa"),
            ("${NONE:-${A}}/${NONE:-${NONE:-$A$$}}", "a/a$"),
            ("${NONE:-a}b ${NONE:-c}d", "ab cd"),
            ("${NONE:-{\"k\": 1}}", "{\"k\": 1}"),
            ("${NONE:--}", "-"),
            ("${NONE:-a:-b}", "a:-b"),
            ("${NONE:-{} x", "{ x"),
            ("$DOLLAR ${NONE:-$DOLLAR}", "$A $A"),
            ("ü${A}ü", "üaü"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_forms() {
        for text in "x${|${}|${A|${A:}|${1}|${A B}|${A:-x\n}|ab${NONE:-c${}}|${A!x}".split('|') {
            assert_eq!(read(text), Err(InterpolateError::Invalid), "{text}");
        }
    }

    #[test]
    fn required_names_the_variable() {
        for (text, name) in [("${NONE?set it}", "NONE"), ("${EMPTY:?}", "EMPTY")] {
            assert_eq!(read(text), Err(InterpolateError::Required(name.to_owned())));
        }
    }

    #[test]
    fn nesting_is_limited() {
        let text = "${X:-".repeat(10_000) + &"}".repeat(10_000);
        assert!(matches!(read(&text), Err(InterpolateError::Invalid)));
        assert_eq!(occurrences(&text), []);
    }
}
