//! Writes what versions of Compose read in different ways so that all of them read the same.
//!
//! Compose as a library in Portainer rejects dates without quotes (N31). An older Compose than that of this host rejects newer syntax,
//! and reads `-0`, `<<` and modes in quotes as something else (N37).
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
    let not_simple = in_quotes.map(|mode| Finding::not_simple(Some(mode)));
    found.blockers.extend(not_simple);
}
