//! Variables that only the caller's shell defines: the manager does not have them, so what they are
//! is written into the text.
#![deny(clippy::disallowed_methods)]

use std::borrow::Cow;

use composefile::interpolate::{Occurrence, escaped, occurrences};

/// What a variable of the shell is at the manager.
pub(super) enum Fate {
    /// The manager reads it from `stack.env`, or finds it as unset as it is here.
    Stays,
    /// To be written into the text; `None` is unset.
    Written(Option<String>),
}

/// `text` with the variables that do not stay replaced by what they are here. Names what was replaced.
pub(super) fn written<'t>(
    text: &'t str,
    fate: &dyn Fn(&str) -> Fate,
    replaced: &mut Vec<String>,
) -> Cow<'t, str> {
    let mut out = String::new();
    let mut done = 0;
    for occurrence in occurrences(text) {
        let Some(new) = one(text, &occurrence, fate, replaced) else {
            continue;
        };
        out.push_str(&text[done..occurrence.span.start]);
        out.push_str(&new);
        done = occurrence.span.end;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

fn one(
    text: &str,
    occurrence: &Occurrence<'_>,
    fate: &dyn Fn(&str) -> Fate,
    replaced: &mut Vec<String>,
) -> Option<String> {
    let word = &text[occurrence.word.clone()];
    let new_word = written(word, fate, replaced);
    match fate(occurrence.name) {
        Fate::Stays => match new_word {
            Cow::Borrowed(_) => None,
            Cow::Owned(new) => Some(format!(
                "{}{new}{}",
                &text[occurrence.span.start..occurrence.word.start],
                &text[occurrence.word.end..occurrence.span.end]
            )),
        },
        Fate::Written(value) => {
            let counts = match occurrence.operator {
                ":-" | ":+" | ":?" => value.as_deref().is_some_and(|value| !value.is_empty()),
                _ => value.is_some(),
            };
            // A required variable without a value is refused where the text is read.
            if !counts && occurrence.operator.ends_with('?') {
                return None;
            }
            replaced.push(occurrence.name.to_owned());
            let takes_word = match occurrence.operator {
                ":-" | "-" => !counts,
                ":+" | "+" => counts,
                _ => false,
            };
            Some(if takes_word {
                new_word.into_owned()
            } else {
                escaped(&value.unwrap_or_default())
            })
        }
    }
}

/// Every variable that a text asks for, inside defaults too.
pub(in crate::rewrite) fn names<'t>(text: &'t str, found: &mut dyn FnMut(&'t str, bool)) {
    for occurrence in occurrences(text) {
        found(occurrence.name, occurrence.operator.is_empty());
        names(&text[occurrence.word.clone()], found);
    }
}

/// Variables that the manager's own container has whatever the stack says: they win over `stack.env`.
pub(in crate::rewrite) const OF_THE_MANAGER: [&str; 3] = ["HOME", "HOSTNAME", "PATH"];

#[cfg(test)]
mod tests {
    use super::{Fate, written};

    #[test]
    fn replaced() {
        let fate = |name: &str| match name {
            "HOME" => Fate::Written(Some("/h$".into())),
            "E" => Fate::Written(Some(String::new())),
            "U" => Fate::Written(None),
            _ => Fate::Stays,
        };
        for (text, expected) in [
            ("$HOME/x ${HOME}", "/h$$/x /h$$"),
            ("${A:-$HOME}", "${A:-/h$$}"),
            ("$$HOME $A", "$$HOME $A"),
            ("${HOME:-d}${E:-d}${E-d}${U-${A}}", "/h$$d${A}"),
            ("${HOME:+$A}${E:+x}${U+x}", "$A"),
            ("${HOME:?e}${U:?e}", "/h$$${U:?e}"),
        ] {
            assert_eq!(written(text, &fate, &mut Vec::new()), expected, "{text}");
        }
    }
}
