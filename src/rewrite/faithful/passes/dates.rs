//! Writes dates without quotes as text: Compose as a library in Portainer rejects them (N31).
//!
//! Invariant: each value is the text that Compose makes of the date, so that no configuration hash changes.

use composefile::{document::Printed, reader::Reader};

use crate::rewrite::faithful::{
    Kind,
    findings::{Findings, Secrecy},
    passes::values,
};

/// Writes the text of each date in its place.
pub(super) fn dates<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    for node in values(reader.document) {
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
}
