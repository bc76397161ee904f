//! Writes the values of shell variables into every text that Compose interpolates, and blocks on texts that it cannot
//! interpolate.

use std::borrow::Cow;

use composefile::{
    document::Node,
    interpolate::{InterpolateError, interpolate},
    reader::Reader,
};

use crate::rewrite::faithful::{
    Finding, Kind,
    findings::Findings,
    passes::values,
    shell::{self, Substitution},
};

/// Inlines shell variables in scalars.
pub(super) fn shell_variables<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    let document = reader.document;
    if !document.text().contains('$') {
        return;
    }
    for node in values(document) {
        let text = node.scalar().map(|(text, _)| text);
        let Some(text) = text.filter(|text| text.contains('$')) else {
            continue;
        };
        if let Err(error) = interpolate(text, &|name| reader.here(name)) {
            found.blockers.push(invalid(node, &error));
            continue;
        }
        inline(reader, node, text, found);
    }
}

fn inline<'d>(reader: &Reader<'d, '_>, node: Node<'d>, text: &str, found: &mut Findings<'d>) {
    let substitution = |name: &str| shell::substitution(reader, name);
    let Cow::Owned(new) = shell::inlined(text, &substitution) else {
        return;
    };
    let secrecies = shell::names(text)
        .into_iter()
        .filter(|name| matches!(substitution(name), Substitution::Inline(_)))
        .map(|name| shell::secrecy(reader, name));
    found.inline(node, &new, secrecies.max().unwrap_or_default());
}

fn invalid(node: Node<'_>, error: &InterpolateError) -> Finding {
    let (message, hint) = match error {
        InterpolateError::Required(name) => (
            format!("required variable {name} is not set"),
            format!("set {name} in .env: Compose rejects the stack without it"),
        ),
        InterpolateError::TooLong => (
            error.to_string(),
            "shorten the values of the variables".to_owned(),
        ),
        InterpolateError::Invalid => (
            "invalid interpolation".to_owned(),
            "write `$$` for a literal dollar sign: Compose rejects the stack as it is".to_owned(),
        ),
    };
    Finding::at(node, Kind::BadVariable, message, hint)
}
