//! Writes what versions of Compose read in different ways so that all of them read the same.
//!
//! Compose as a library in Portainer rejects dates without quotes (N31). An older Compose than that of this host rejects newer syntax,
//! and reads `-0`, `<<`, modes in quotes and parts of commands as something else (N37).
//!
//! Invariant: each value is the text that Compose on this host makes of it, so that no configuration hash changes.

use composefile::{
    document::{Node, Printed, Style},
    reader::Reader,
};

use crate::rewrite::faithful::{
    Finding, Kind,
    findings::{Findings, Secrecy},
    passes::values,
};

/// Writes such values in quotes. Compose resolves the file where that is not enough.
pub(super) fn scalars<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    for node in values(reader.document) {
        if let Some((text @ ("-0" | "<<"), Style::Plain)) = node.scalar()
            && node.tag().is_none()
        {
            let message = format!("Compose in Portainer may read {text} as something else");
            found.block(node, Kind::VersionDependent, message, "write it in quotes");
        }
        match node.printed_date() {
            None => {}
            Some(Printed::Text(text)) if node.tag().is_none() => {
                found.inline(node, &text, Secrecy::Public);
            }
            Some(_) => {
                let message = "Compose in Portainer may reject a date that is not in quotes";
                let hint = "write in quotes, without a tag, what the service gets from it: `docker compose config` prints that";
                found.block(node, Kind::VersionDependent, message, hint);
            }
        }
    }
    for node in reader.document.newer_syntax() {
        match node.scalar() {
            Some((text, Style::Plain)) if node.anchor().is_none() => {
                found.inline(node, text, Secrecy::Public);
            }
            _ => found.blockers.push(Finding::not_simple(Some(node))),
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
    let commands = commands.map(|entry| entry.value).filter(|command| {
        let text = command.as_str().and_then(|text| reader.read(text).ok());
        text.is_some_and(|text| splits_differently(&text))
    });
    let ports = reader
        .services
        .iter()
        .filter_map(|service| service.node.get("ports"));
    let ports = ports.flat_map(Node::items).filter(|port| {
        let port = port.as_str().unwrap_or_default();
        port.matches(':').count() > 2 && !port.contains(['[', '$'])
    });
    let not_simple = in_quotes.chain(commands).chain(ports);
    found
        .blockers
        .extend(not_simple.map(|node| Finding::not_simple(Some(node))));
}

/// Whether versions of Compose may split a command into different words: those with a backslash before `n` or `t`, or within `$(…)`,
/// and those with quotes between backticks.
fn splits_differently(command: &str) -> bool {
    [r"\n", r"\t", "`"]
        .iter()
        .any(|part| command.contains(part))
        || command.contains("$(") && command.contains('\\')
}
