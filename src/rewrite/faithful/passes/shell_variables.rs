//! Writes the values of shell variables into every text that Compose interpolates, and blocks on texts that it cannot
//! interpolate.
#![deny(clippy::disallowed_methods)]

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use composefile::{
    document::{Document, Node, NodeKind},
    interpolate::{InterpolateError, interpolate},
    reader::Reader,
};

use crate::rewrite::faithful::{
    Blocker, Reason,
    findings::{Findings, Note, Scalar, Secrecy},
    shell,
};

/// Inlines shell variables in scalars. Reports variables that are set nowhere.
pub(super) fn shell_variables<'d>(reader: &Reader<'d, '_>) -> Findings<'d> {
    let mut found = Findings::default();
    let document = reader.document;
    if !document.text().contains('$') {
        return found;
    }
    let is_key = keys(document);
    let mut unset: BTreeMap<&str, usize> = BTreeMap::new();
    for node in document.nodes() {
        if !matches!(node.kind(), NodeKind::Scalar(_)) || is_key[node.id().index()] {
            continue;
        }
        let Some((text, _)) = node
            .scalar()
            .filter(|(text, _)| text.as_bytes().contains(&b'$'))
        else {
            continue;
        };
        if let Err(error) = interpolate(text, &|name| reader.here(name)) {
            found.blockers.push(invalid(node, &error));
            continue;
        }
        shell::names(text, &mut |name, is_bare| {
            if is_bare && reader.here(name).is_none() {
                unset.entry(name).or_insert_with(|| node.line());
            }
        });
        found.edits.inlined.extend(inline(reader, node, text));
    }
    for (name, line) in unset {
        found.detail(
            line,
            format!("{name} is not set: it is empty, here and in Portainer"),
        );
    }
    found
}

/// Whether each node of a document is a key, which Compose does not interpolate.
fn keys(document: &Document<'_>) -> Vec<bool> {
    let mut is_key = vec![false; document.nodes().len()];
    for entry in document.nodes().flat_map(Node::own_entries) {
        is_key[entry.key.id().index()] = true;
    }
    is_key
}

fn inline<'d>(reader: &Reader<'d, '_>, node: Node<'d>, text: &str) -> Option<Scalar<'d>> {
    let mut names = Vec::new();
    let substitution = |name: &str| shell::substitution(reader, name);
    let Cow::Owned(new) = shell::inlined(text, &substitution, &mut names) else {
        return None;
    };
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let what = match &names[..] {
        [name] => format!("{name} is replaced by its value"),
        names => format!("{} are replaced by their values", names.join(", ")),
    };
    let secrecy = names.iter().map(|name| shell::secrecy(reader, name)).max();
    let about = Note::new(what);
    Some(Scalar {
        node,
        text: new,
        note: about.with(secrecy.unwrap_or(Secrecy::Public)),
    })
}

fn invalid(node: Node<'_>, error: &InterpolateError) -> Blocker {
    let (message, hint) = match error {
        InterpolateError::Required(name) => (
            format!("required variable {name} is not set"),
            format!("set {name} in .env: Compose rejects the stack without it"),
        ),
        InterpolateError::Invalid => (
            "invalid interpolation".to_owned(),
            "write `$$` for a literal dollar sign: Compose rejects the stack as it is".to_owned(),
        ),
    };
    Blocker::at(node, Reason::BadVariable, message, hint)
}
