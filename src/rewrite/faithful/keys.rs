//! Notices about keys that no measured Compose version accepts. They do not block: a newer version may accept them.
#![deny(clippy::disallowed_methods)]

use composefile::{
    document::Node,
    reader::Reader,
    schema::{Place, ROOT, SERVICE},
};

use super::findings::Findings;

/// Reports each unknown key of the file and of its services.
pub(super) fn unknown_keys<'d>(reader: &Reader<'d, '_>) -> Findings<'d> {
    let mut found = Findings::default();
    if let Some(root) = reader.document.root() {
        report(root, &ROOT, &mut found);
        if let Some(jobs) = root.entry("jobs") {
            let message =
                "only the paths in `jobs` are rewritten; some Compose versions reject the key";
            found.notice(jobs.key.line(), message.to_owned());
        }
    }
    for service in &reader.services {
        report(service.node, &SERVICE, &mut found);
    }
    found
}

fn report(mapping: Node<'_>, place: &Place, found: &mut Findings<'_>) {
    for entry in mapping.entries() {
        let name = entry.name().unwrap_or_default();
        if place.key(name).is_none() {
            found.notice(
                entry.key.line(),
                format!("unknown key `{name}`: some Compose versions reject it"),
            );
        }
    }
}
