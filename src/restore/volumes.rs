//! The volumes of a restore. None is ever removed, so the data of a missing one is gone.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Planned, Restoration, compare::volume_differences, plan::own, text};

/// The label of a volume that a restore with `--force` created empty. Every later restore names the volume because of it.
pub(super) const RECREATED: &str = "stacklift.recreated-empty";

/// How the volumes differ from the saved ones.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    /// The names of those that do not exist.
    pub missing: Vec<String>,
    /// Those that differ: name, and what differs.
    pub different: Vec<(String, String)>,
    /// The names of those that may have been deleted and recreated.
    pub unknown: Vec<String>,
    /// The names of those that a restore with `--force` created empty, which is no difference.
    pub created: Vec<String>,
}

impl Restoration<'_, '_, '_> {
    /// Compares the volumes with the saved ones, not by name alone (B18).
    pub(super) fn compare_volumes(&self) -> Result<Volumes> {
        let snapshot = self.snapshot();
        let saved = snapshot.volumes.items();
        let names: Vec<String> = saved.iter().map(|v| text(v, "Name").to_owned()).collect();
        let found = self.run.engine.inspect_volumes(&names)?;
        let now: BTreeMap<&str, &Value> = found.iter().map(|v| (text(v, "Name"), v)).collect();
        let mut volumes = Volumes::default();
        for (name, wanted) in names.into_iter().zip(saved) {
            let Some(now) = now.get(name.as_str()) else {
                volumes.missing.push(name);
                continue;
            };
            let mut wanted = wanted.clone();
            if is_recreated(now) && !is_recreated(&wanted) {
                wanted["Labels"][RECREATED] = now["Labels"][RECREATED].clone();
                if volume_differences(&wanted, now).is_empty() {
                    volumes.created.push(name);
                    continue;
                }
            }
            let born = self.run.engine.volume_birth(now);
            let births = snapshot.births.get(&name).zip(born.as_ref());
            if births.is_some_and(|(before, now)| before != now) {
                let what = "it was deleted and recreated, so its data may be gone";
                volumes.different.push((name, what.to_owned()));
                continue;
            }
            let differences = volume_differences(&wanted, now);
            if !differences.is_empty() {
                volumes.different.push((name, differences.join(", ")));
            } else if births.is_none() {
                volumes.unknown.push(name);
            }
        }
        Ok(volumes)
    }

    /// Keeps the volumes of containers with `--rm`, whatever stops these containers (B28): also of those that were started
    /// while the user was asked.
    pub(super) fn hold_volumes(&mut self, planned: &Planned) -> Result<()> {
        if !planned.has_changes() {
            return Ok(());
        }
        let existing = self.existing()?;
        self.run.hold_volumes(&own(self.snapshot(), &existing))
    }

    /// The volumes that were said to be kept and do not exist (B28).
    pub(super) fn lost_volumes(&self) -> Result<Vec<String>> {
        let now = self.run.engine.inspect_volumes(self.kept.keys())?;
        let exists = |name: &str| now.iter().any(|volume| text(volume, "Name") == name);
        let lost = self.kept.iter().filter(|(name, _)| !exists(name));
        Ok(lost
            .map(|(_, shown)| format!("volume {shown} was to be kept, but no longer exists"))
            .collect())
    }

    /// Creates the missing volumes, empty. The comparison names them, and those of earlier restores.
    pub(super) fn restore_volumes(&mut self) -> Result<()> {
        let missing = self.compare_volumes()?.missing;
        let snapshot = self.snapshot();
        let saved = snapshot.volumes.items().iter();
        for volume in saved.filter(|volume| missing.iter().any(|name| name == text(volume, "Name")))
        {
            self.touch();
            let mut labels = volume["Labels"].as_object().cloned().unwrap_or_default();
            labels.insert(RECREATED.to_owned(), "true".into());
            let created = self.run.engine.create_volume(&json!({
                "Name": volume["Name"],
                "Driver": volume["Driver"],
                "DriverOpts": volume["Options"],
                "Labels": labels,
            }));
            self.tolerate(created)?;
        }
        Ok(())
    }
}

fn is_recreated(volume: &Value) -> bool {
    !volume["Labels"][RECREATED].is_null()
}
