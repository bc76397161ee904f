//! Variables of the caller's shell. Portainer does not have them, so the rewrite writes their values into the text.

use std::{borrow::Cow, collections::BTreeSet};

use composefile::{
    document::Node,
    interpolate::{Occurrence, escaped, occurrences},
    reader::Reader,
};

use super::findings::Secrecy;
use crate::rewrite::{portainer::SET_BY_PORTAINER, replaced};

/// Who replaces a variable by its value.
pub(super) enum Substitution {
    /// Portainer, from `stack.env`; or the variable is unset there as it is here.
    Portainer,
    /// The rewrite writes this value into the text; `None` is unset.
    Inline(Option<String>),
}

/// Who replaces the variable `name`.
pub(super) fn substitution(reader: &Reader<'_, '_>, name: &str) -> Substitution {
    let shell = (reader.context.shell)(name);
    let env = reader.variables.get(name).copied();
    let differs = shell.is_some() && shell.as_deref() != env;
    if name == "COMPOSE_PROJECT_NAME" || !(differs || SET_BY_PORTAINER.contains(&name)) {
        return Substitution::Portainer;
    }
    Substitution::Inline(reader.here(name))
}

/// Whether the value of a variable comes from `.env`.
pub(super) fn secrecy(reader: &Reader<'_, '_>, name: &str) -> Secrecy {
    if (reader.context.shell)(name).is_none() && reader.variables.contains_key(name) {
        Secrecy::Secret
    } else {
        Secrecy::Public
    }
}

/// A scalar's text after [`super::findings::Findings::inline`]: what every other pass starts from.
pub(super) fn effective_text<'d>(reader: &Reader<'d, '_>, node: Node<'d>) -> Option<Cow<'d, str>> {
    let text = node.as_str()?;
    Some(inlined(text, &|name| substitution(reader, name)))
}

/// `text` with the values of the variables that Portainer does not replace.
pub(super) fn inlined<'t>(
    text: &'t str,
    substitution: &dyn Fn(&str) -> Substitution,
) -> Cow<'t, str> {
    let change = |one: Occurrence<'_>| {
        let new = replacement(text, &one, substitution)?;
        Some((one.span, new))
    };
    let changes: Vec<_> = occurrences(text).into_iter().filter_map(change).collect();
    if changes.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(replaced(text, changes))
}

fn replacement(
    text: &str,
    occurrence: &Occurrence<'_>,
    substitution: &dyn Fn(&str) -> Substitution,
) -> Option<String> {
    let word = &text[occurrence.word.clone()];
    let new_word = inlined(word, substitution);
    match substitution(occurrence.name) {
        Substitution::Portainer => match new_word {
            Cow::Borrowed(_) => None,
            Cow::Owned(new) => Some(format!(
                "{}{new}{}",
                &text[occurrence.span.start..occurrence.word.start],
                &text[occurrence.word.end..occurrence.span.end]
            )),
        },
        Substitution::Inline(value) => {
            // The pass over all variables blocks on a required variable without a value.
            let takes_word = occurrence.takes_word(value.as_deref())?;
            Some(if takes_word {
                new_word.into_owned()
            } else {
                escaped(&value.unwrap_or_default())
            })
        }
    }
}

/// The variables in a text, also those inside defaults.
pub(in crate::rewrite) fn names(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for occurrence in occurrences(text) {
        found.insert(occurrence.name);
        found.append(&mut names(&text[occurrence.word]));
    }
    found
}

/// Whether Compose treats the value of one of its own variables as true.
pub(super) fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

#[cfg(test)]
mod tests {
    use super::{Substitution, inlined};

    #[test]
    fn shell_variables_are_replaced() {
        let substitution = |name: &str| match name {
            "HOME" => Substitution::Inline(Some("/h$".into())),
            "E" => Substitution::Inline(Some(String::new())),
            "U" => Substitution::Inline(None),
            _ => Substitution::Portainer,
        };
        for (text, expected) in [
            ("$HOME/x ${HOME}", "/h$$/x /h$$"),
            ("${A:-$HOME}", "${A:-/h$$}"),
            ("$$HOME $A", "$$HOME $A"),
            ("${HOME:-d}${E:-d}${E-d}${U-${A}}", "/h$$d${A}"),
            ("${HOME:+$A}${E:+x}${U+x}", "$A"),
            ("${HOME:?e}${U:?e}", "/h$$${U:?e}"),
        ] {
            assert_eq!(inlined(text, &substitution), expected, "{text}");
        }
    }
}
