//! Leaves texts to Compose in which variables have other values in Portainer, and blocks on texts that cannot be interpolated.

use composefile::{
    document::Node,
    interpolate::{InterpolateError, interpolate},
    reader::Reader,
};

use crate::rewrite::faithful::{Finding, Kind, findings::Findings, passes::values, shell::there};

/// Compares the values of scalars.
pub(super) fn shell_variables<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    for node in values(reader.document) {
        let text = node.scalar().map(|(text, _)| text);
        let Some(text) = text.filter(|text| text.contains('$')) else {
            continue;
        };
        match reader.read(text) {
            Err(error) => found.blockers.push(invalid(node, &error)),
            Ok(here) => {
                let there = interpolate(text, &|name| there(reader, name));
                if there.is_ok_and(|there| there == here) {
                    continue;
                }
                found.not_simple(node);
            }
        }
    }
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
