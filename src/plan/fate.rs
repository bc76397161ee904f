//! What an adoption does to the containers of each service.
//!
//! Compose compares the hash of a service's resolved configuration with the label `config-hash` of its containers, and
//! recreates those that differ (M05, N05). Portainer runs its own Compose, so the hashes of the Compose program of this
//! host decide only where both compute the same hash.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use crate::{snapshot::Inspected, text::printable};

/// What happens to a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "reason", rename_all = "kebab-case")]
pub enum Fate {
    /// Its containers are not touched.
    Unchanged,
    /// Its containers are replaced once.
    Recreated(String),
    /// It does not run now, and will.
    Started(String),
    /// The text does not start it, and its containers stay as they are (N09).
    LeftBehind(String),
    /// It cannot be known.
    Unknown(String),
}

impl Fate {
    /// Whether its containers certainly stay.
    pub fn is_unchanged(&self) -> bool {
        matches!(self, Self::Unchanged | Self::LeftBehind(_))
    }

    /// Why, for all but [`Fate::Unchanged`].
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unchanged => None,
            Self::Recreated(reason)
            | Self::Started(reason)
            | Self::LeftBehind(reason)
            | Self::Unknown(reason) => Some(reason),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Unchanged => "unchanged",
            Self::Recreated(_) => "recreated",
            Self::Started(_) => "started",
            Self::LeftBehind(_) => "left as it is",
            Self::Unknown(_) => "unknown",
        };
        f.write_str(what)?;
        match self.reason() {
            Some(reason) => write!(f, ": {}", printable(reason)),
            None => Ok(()),
        }
    }
}

/// The configuration hashes that the Compose program of this host computes, by service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hashes {
    /// The version of the program.
    pub version: String,
    /// Of the files on disk.
    pub on_disk: BTreeMap<String, String>,
    /// Of what will be sent.
    pub sent: BTreeMap<String, String>,
}

/// The fate of one container that its service keeps. `hashes` is the reason if there are none.
pub(super) fn of_container(
    container: Inspected,
    service: &str,
    label: impl Fn(&str) -> String,
    hashes: Result<&Hashes, &str>,
) -> Fate {
    let Some(labeled) = container.label(&label("config-hash")) else {
        return Fate::Unknown("the container has no config-hash label".to_owned());
    };
    let hashes = match hashes {
        Ok(hashes) => hashes,
        Err(reason) => return Fate::Unknown(reason.to_owned()),
    };
    let started_by = container.label(&label("version")).unwrap_or_default();
    let (on_disk, sent) = (hashes.on_disk.get(service), hashes.sent.get(service));
    if sent.is_some_and(|sent| sent == labeled) {
        return Fate::Unchanged;
    }
    if on_disk.is_some_and(|on_disk| on_disk == labeled) {
        return Fate::Recreated("the rewrite changes its configuration".to_owned());
    }
    if started_by == hashes.version {
        return Fate::Recreated(
            "its configuration was changed after it was started, or its variables were set elsewhere"
                .to_owned(),
        );
    }
    Fate::Unknown(format!(
        "Compose {started_by} started it, and this host has Compose {}",
        hashes.version
    ))
}
