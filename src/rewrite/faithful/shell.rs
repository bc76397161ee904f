//! Variables of the caller's shell, and those of Portainer's container, which has others.

use std::collections::BTreeSet;

use composefile::{interpolate::occurrences, reader::Reader};

use crate::rewrite::portainer::{SET_BY_PORTAINER, UNKNOWN};

/// The value of a variable in Portainer. What its own container sets, this program does not know.
pub(super) fn there(reader: &Reader<'_, '_>, name: &str) -> Option<String> {
    if SET_BY_PORTAINER.contains(&name) {
        return Some(UNKNOWN.to_owned());
    }
    if name == "COMPOSE_PROJECT_NAME" {
        return reader.here(name);
    }
    reader.variables.get(name).map(|&value| value.to_owned())
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
