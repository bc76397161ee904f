//! `${VAR}` and its forms, as compose replaces them.
//!
//! `$VAR`, `${VAR}`, `${VAR-d}`, `${VAR:-d}`, `${VAR+x}`, `${VAR:+x}`, `${VAR?e}`, `${VAR:?e}`, nested in
//! `d` and `x`; `$$` is one `$`. A `$` before anything else stays. A variable that nobody sets is empty.

use std::{borrow::Cow, ops::Range};

/// What a variable is set to; `None` where it is not set.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Deeper nesting than this is refused, so that no text can exhaust the stack.
const DEEPEST: usize = 64;

/// Why a text cannot be interpolated. Never holds a variable's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterpolateError {
    /// A `${` that is none of the forms.
    #[error("invalid interpolation format at byte {offset}")]
    Invalid {
        /// The byte of the outermost text where the form starts.
        offset: usize,
    },
    /// `${VAR?…}` where the variable is not set, or `${VAR:?…}` where it is empty.
    #[error("required variable {name} is missing a value{}{reason}", if reason.is_empty() { "" } else { ": " })]
    Required {
        /// The variable.
        name: String,
        /// What the text says about it, as written.
        reason: String,
    },
}

/// Replaces every variable in `text` by what `lookup` gives; borrowed where nothing is to be replaced.
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
            if depth >= DEEPEST {
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

/// A variable in a text, where it stands. `$$` is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence<'t> {
    /// From the `$` to the end of the name or the `}`.
    pub span: Range<usize>,
    /// The variable.
    pub name: &'t str,
    /// What follows the name: `:-`, `-`, `:+`, `+`, `:?`, `?`, or nothing.
    pub operator: &'t str,
    /// The bytes of what follows the operator.
    pub word: Range<usize>,
}

/// The outermost variables of a text, in its order; those inside a default are in its word. Ends at a
/// form that is none.
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

/// A text that interpolation turns into `value`.
pub fn escaped(value: &str) -> String {
    value.replace('$', "$$")
}

/// What stands between `${` and its `}`.
struct Form<'t> {
    name: &'t str,
    operator: Option<Operator>,
    /// `:`, which counts an empty value as not set.
    empty_is_unset: bool,
    word: &'t str,
    /// Up to and with the `}`.
    length: usize,
}

enum Operator {
    Default,
    Replacement,
    Required,
}

impl<'t> Form<'t> {
    /// Reads from behind `${`.
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

    /// `base` is the byte of the outermost text where the name starts.
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

/// The variable name that `text` starts with.
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

/// The text up to the brace that closes the form; braces inside count, and all is on one line.
///
/// Where the braces do not balance, the form ends at the last one of the line, as compose's does.
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
    fn invalid_forms_say_where() {
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
