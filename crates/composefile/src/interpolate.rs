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

/// Why a text cannot be interpolated. Never holds a variable's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterpolateError {
    /// A `${` that does not start one of the forms.
    #[error("invalid interpolation format at byte {offset}")]
    Invalid {
        /// The byte offset of the `$` in the text.
        offset: usize,
    },
    /// `${VAR?…}` of a variable that is not set, or `${VAR:?…}` of one that is not set or empty.
    #[error("required variable {name} is missing a value{}{reason}", if reason.is_empty() { "" } else { ": " })]
    Required {
        /// The name of the variable.
        name: String,
        /// The text after the `?`, as written.
        reason: String,
    },
}

/// Replaces every variable in `text` with its value from `lookup`.
///
/// # Errors
///
/// If a form is invalid, nested more than 64 levels deep, or requires a variable that has no value.
pub fn interpolate<'t>(
    text: &'t str,
    lookup: Lookup<'_>,
) -> Result<Cow<'t, str>, InterpolateError> {
    if !text.contains('$') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    substitute(text, 0, lookup, 0, &mut out)?;
    Ok(Cow::Owned(out))
}

fn substitute(
    text: &str,
    base: usize,
    lookup: Lookup<'_>,
    depth: usize,
    out: &mut String,
) -> Result<(), InterpolateError> {
    let mut at = 0;
    while let Some(found) = text[at..].find('$') {
        out.push_str(&text[at..at + found]);
        at += found;
        let rest = &text[at + 1..];
        if rest.starts_with('$') {
            out.push('$');
            at += 2;
        } else if let Some(inside) = rest.strip_prefix('{') {
            let invalid = InterpolateError::Invalid { offset: base + at };
            let form = Form::read(inside).ok_or(invalid.clone())?;
            if depth >= MAX_DEPTH {
                return Err(invalid);
            }
            form.replace(base + at + 2, lookup, depth, out)?;
            at += 2 + form.length;
        } else {
            let name = name_at(rest);
            if name.is_empty() {
                out.push('$');
            } else {
                out.push_str(&lookup(name).unwrap_or_default());
            }
            at += 1 + name.len();
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
    pub operator: &'t str,
    /// The bytes of the default, replacement or error message.
    pub word: Range<usize>,
}

/// The outermost variables of a text, in their order. Variables inside a default are part of its word. Stops at an
/// invalid form.
pub fn occurrences(text: &str) -> Vec<Occurrence<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = text[at..].find('$') {
        let start = at + offset;
        let rest = &text[start + 1..];
        if rest.starts_with('$') {
            at = start + 2;
        } else if let Some(inside) = rest.strip_prefix('{') {
            let Some(form) = Form::read(inside) else {
                break;
            };
            let end = start + 2 + form.length;
            let word = end - 1 - form.word.len()..end - 1;
            found.push(Occurrence {
                span: start..end,
                name: form.name,
                operator: &text[start + 2 + form.name.len()..word.start],
                word,
            });
            at = end;
        } else {
            let name = name_at(rest);
            let end = start + 1 + name.len();
            if !name.is_empty() {
                found.push(Occurrence {
                    span: start..end,
                    name,
                    operator: "",
                    word: end..end,
                });
            }
            at = end;
        }
    }
    found
}

/// Escapes a value, so that interpolation returns it unchanged.
pub fn escaped(value: &str) -> String {
    value.replace('$', "$$")
}

/// The text between `${` and `}`.
struct Form<'t> {
    name: &'t str,
    operator: Option<Operator>,
    /// Whether a `:` makes an empty value count as not set.
    empty_is_unset: bool,
    word: &'t str,
    /// The length up to and including the `}`.
    length: usize,
}

enum Operator {
    Default,
    Replacement,
    Required,
}

impl<'t> Form<'t> {
    /// Parses the text after `${`.
    fn read(text: &'t str) -> Option<Self> {
        let name = name_at(text);
        let after_name = &text[name.len()..];
        let (empty_is_unset, after_colon) = match after_name.strip_prefix(':') {
            Some(rest) => (true, rest),
            None => (false, after_name),
        };
        let operator = match after_colon.chars().next()? {
            _ if name.is_empty() => return None,
            '}' if !empty_is_unset => None,
            '-' => Some(Operator::Default),
            '+' => Some(Operator::Replacement),
            '?' => Some(Operator::Required),
            _ => return None,
        };
        let head = text.len() - after_colon.len();
        let word = match operator {
            None => "",
            Some(_) => word_at(&after_colon[1..])?,
        };
        let length = head + usize::from(operator.is_some()) + word.len() + 1;
        Some(Self {
            name,
            operator,
            empty_is_unset,
            word,
            length,
        })
    }

    /// `base` is the byte offset of the name in the outermost text.
    fn replace(
        &self,
        base: usize,
        lookup: Lookup<'_>,
        depth: usize,
        out: &mut String,
    ) -> Result<(), InterpolateError> {
        let value = lookup(self.name);
        let is_set = value
            .as_ref()
            .is_some_and(|value| !(self.empty_is_unset && value.is_empty()));
        let takes_word = match self.operator {
            None => false,
            Some(Operator::Default) => !is_set,
            Some(Operator::Replacement) => is_set,
            Some(Operator::Required) if is_set => false,
            Some(Operator::Required) => {
                return Err(InterpolateError::Required {
                    name: self.name.to_owned(),
                    reason: self.word.to_owned(),
                });
            }
        };
        if takes_word {
            let word_base = base + self.length - 1 - self.word.len();
            return substitute(self.word, word_base, lookup, depth + 1, out);
        }
        out.push_str(&value.unwrap_or_default());
        Ok(())
    }
}

/// The name of a variable at the start of `text`; may be empty.
fn name_at(text: &str) -> &str {
    let is_name = |(at, byte): (usize, u8)| {
        byte == b'_' || byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit())
    };
    let length = text
        .bytes()
        .enumerate()
        .take_while(|&(at, byte)| is_name((at, byte)))
        .count();
    &text[..length]
}

/// The text up to the closing brace of the form, on one line. Braces inside it are counted.
///
/// If the braces do not balance, the form ends at the last brace of the line, as in Compose.
fn word_at(text: &str) -> Option<&str> {
    let mut open = 1usize;
    let mut last = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\n' => break,
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

    use super::{InterpolateError, interpolate};

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
    fn errors_have_the_offset_of_the_form() {
        for (text, offset) in [
            ("x${", 1),
            ("${}", 0),
            ("${A", 0),
            ("${A:}", 0),
            ("${1}", 0),
            ("${A B}", 0),
            ("${A:-x\n}", 0),
            ("ab${NONE:-c${}}", 11),
            ("${A!x}", 0),
        ] {
            assert_eq!(
                read(text),
                Err(InterpolateError::Invalid { offset }),
                "{text}"
            );
        }
    }

    #[test]
    fn required_names_the_variable() {
        let error = read("${NONE?set it}").expect_err("not set");
        assert_eq!(
            error.to_string(),
            "required variable NONE is missing a value: set it"
        );
        let error = read("${EMPTY:?}").expect_err("empty");
        assert_eq!(
            error.to_string(),
            "required variable EMPTY is missing a value"
        );
    }

    #[test]
    fn nesting_is_limited() {
        let text = "${X:-".repeat(10_000) + &"}".repeat(10_000);
        assert!(matches!(read(&text), Err(InterpolateError::Invalid { .. })));
    }
}
