//! What versions of Compose read in different ways.
//!
//! Compose as a library in Portainer rejects dates without quotes (N31). An older Compose than that of this host rejects newer syntax,
//! and reads `-0`, `<<`, modes in quotes and parts of commands as something else (N37). Where the Compose of this host prints what
//! all of them read the same, the text is left to it.

use composefile::{
    document::{Node, ScalarType, Style},
    reader::Reader,
};

use crate::rewrite::faithful::{Kind, findings::Findings, passes::values};

/// Finds such values.
pub(super) fn scalars<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    for node in values(reader.document) {
        match node.scalar() {
            Some((text @ ("-0" | "<<"), Style::Plain)) if node.tag().is_none() => {
                let message = format!("Compose in Portainer may read {text} as something else");
                found.block(node, Kind::VersionDependent, message, "write it in quotes");
            }
            _ if node.scalar_type() == Some(ScalarType::Timestamp) => found.not_simple(node),
            _ => {}
        }
    }
    let modes = reader.services.iter().flat_map(|service| {
        let lists = ["secrets", "configs"].into_iter();
        let files = lists
            .filter_map(|key| service.node.get(key))
            .flat_map(Node::items);
        files.filter_map(|file| file.get("mode"))
    });
    let in_quotes = modes.filter(|mode| !matches!(mode.scalar(), Some((_, Style::Plain)) | None));
    let entries = reader.document.nodes().flat_map(Node::own_entries);
    let commands = entries.filter(|entry| matches!(entry.name(), Some("command" | "entrypoint")));
    for command in commands.map(|entry| entry.value) {
        let text = command.as_str().unwrap_or_default();
        if splits_differently(text) {
            found.not_simple(command);
        } else if (reader.read(text)).is_ok_and(|read| splits_differently(&read)) {
            let message = "Compose in Portainer may split this command into other words";
            let hint = "write it as a list, with the values of its variables";
            found.block(command, Kind::VersionDependent, message, hint);
        }
    }
    let ports = reader
        .services
        .iter()
        .filter_map(|service| service.node.get("ports"));
    let ports = ports.flat_map(Node::items).filter(|port| {
        let port = port.as_str().unwrap_or_default();
        port.matches(':').count() > 2 && !port.contains(['[', '$'])
    });
    let newer = reader.document.newer_syntax();
    for node in newer.chain(in_quotes).chain(ports) {
        found.not_simple(node);
    }
}

/// Whether versions of Compose may split a command into different words: those with a backslash before `n` or `t`, or within `$(…)`,
/// and those with quotes between backticks.
fn splits_differently(command: &str) -> bool {
    [r"\n", r"\t", "`"]
        .iter()
        .any(|part| command.contains(part))
        || command.contains("$(") && command.contains('\\')
}
