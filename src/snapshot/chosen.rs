//! Which snapshot a restore uses, and what to say if there is none.
//!
//! **Architecture Invariant:** a snapshot that cannot be read is never passed over for an older one (B40).

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{
    Saved, Snapshot, Store, VERSION, folder, projects,
    store::{file_of, ids_of},
};
use crate::{
    disk,
    failure::Failure,
    text::{command, first_of},
};

impl Store {
    /// The snapshot that `restore` uses by default: the newest of a state that ran whole (B15). Snapshots that a restore
    /// took do not count, or the next restore would undo it.
    ///
    /// Those without the containers do not count. Fails if one that may be it cannot be read: nothing older is taken unasked (B40).
    pub fn default_id(&self) -> Result<Option<String>> {
        Ok(self.default_of_restore()?.map(|saved| saved.id))
    }

    /// The newest whole snapshot in which a container ran, if possible one with the Portainer stack, otherwise the newest. An adoption or a migration that did not
    /// finish is undone, even if nothing ran before it.
    pub fn default_of_restore(&self) -> Result<Option<Saved>> {
        let newest = self.newest_whole()?;
        let is_open = self.is_unfinished() || self.is_not_deployed();
        if is_open && !self.was_restored() {
            return Ok(newest);
        }
        let known = self.last_that_ran(|snapshot| snapshot.record.known().is_some())?;
        Ok(known.or(self.last_that_ran(|_| true)?).or(newest))
    }

    /// The newest whole snapshot that is such a one and in which a container ran.
    pub fn last_that_ran(&self, is: impl Fn(&Snapshot) -> bool) -> Result<Option<Saved>> {
        self.newest(|snapshot| {
            snapshot.is_default_of_restore() && snapshot.has_running() && is(snapshot)
        })
    }

    /// The newest snapshot that `restore` may choose.
    pub(super) fn newest_whole(&self) -> Result<Option<Saved>> {
        self.newest(Snapshot::is_default_of_restore)
    }

    /// The newest snapshot that is such a one. Fails if one before it cannot be read, because that may be the newest.
    pub(super) fn newest(&self, is: impl Fn(&Snapshot) -> bool) -> Result<Option<Saved>> {
        for id in self.ids()?.iter().rev() {
            let saved = self.load(id).map_err(|error| {
                let way = format!(
                    "to restore another one, choose it with --to; {}",
                    self.way_to_list()
                );
                let what = "a snapshot cannot be read, and none that is older is chosen by default";
                Failure::with_way(what, error, &way)
            })?;
            if is(&saved.snapshot) {
                return Ok(Some(saved));
            }
        }
        Ok(None)
    }

    /// Reads the snapshot with this ID, or the only one whose ID begins with it; `None` for [`Self::default_id`]. With an ID, also
    /// one of an engine with another ID.
    pub fn choose(&self, id: Option<&str>) -> Result<Saved> {
        if let Some(id) = id {
            let mut ids = self.ids()?;
            ids.retain(|one| one.starts_with(id));
            if ids.is_empty() {
                ids = ids_of(&self.others)?;
                ids.retain(|one| one.starts_with(id));
            }
            return match ids.as_slice() {
                [] => self.load(id),
                [only] => self.load(only),
                several if several.iter().any(|one| one == id) => self.load(id),
                several => Err(Failure::new(format!(
                    "{} snapshots begin with {id}: {}",
                    several.len(),
                    several.join(", ")
                ))
                .hint("pass more of the ID")
                .into()),
            };
        }
        if let Some(saved) = self.default_of_restore()? {
            return Ok(saved);
        }
        if !self.ids()?.is_empty() {
            let what = format!("no snapshot shows the complete stack {}", self.stack);
            let hint = format!("{}; choose one with --to", self.way_to_list());
            return Err(Failure::new(what).hint(hint).into());
        }
        Err(self.none().into())
    }

    fn way_to_list(&self) -> String {
        let list = command(&["restore", &self.stack, "--list"]);
        format!("to list the snapshots, run `{list}`")
    }

    /// The error that there is no snapshot. It names those of the same project that were taken on an engine with another ID.
    fn none(&self) -> Failure {
        let state = self.own().ancestors().nth(2).unwrap_or(self.own());
        let what = format!("no snapshot of {} in {}", self.stack, state.display());
        let elsewhere = ids_of(&self.others).unwrap_or_default();
        if let Some(newest) = elsewhere.last() {
            let what = format!("{what} was taken on this Docker engine");
            let details = format!(
                "  taken on an engine with another ID: {}",
                elsewhere.join(", ")
            );
            let to = command(&["restore", &self.stack, "--to", newest]);
            let hint = format!(
                "check DOCKER_HOST; if it is the same host, and only the ID of its engine changed, choose one of them, for example: {to}"
            );
            return Failure::new(what).details(details).hint(hint);
        }
        if !self.last_sent().is_empty() {
            return Failure::new(what).hint(
                "if nothing of it ran before the adoption, none was taken: to undo that, delete the stack in Portainer; otherwise, check DOCKER_HOST and STACKLIFT_STATE_DIR",
            );
        }
        let others = Vec::from_iter(projects(state));
        let others = first_of(&others, 0).map_or_else(
            || "no stack has a snapshot".to_owned(),
            |others| format!("stacks with snapshots: {others}"),
        );
        let hint =
            format!("{others}; if you expect one, check DOCKER_HOST and STACKLIFT_STATE_DIR");
        Failure::new(what).hint(hint)
    }

    /// Whether a snapshot was taken on an engine with another ID.
    pub fn is_elsewhere(&self, saved: &Saved) -> bool {
        self.others.iter().any(|dir| saved.path.starts_with(dir))
    }

    /// The file of the snapshot with this ID.
    pub fn path(&self, id: &str) -> Option<PathBuf> {
        let dirs = self.dirs.iter().chain(&self.others);
        let mut paths = dirs.map(|dir| dir.join(file_of(id)));
        paths.find(|path| !id.contains('/') && disk::exists(path))
    }

    /// Reads the snapshot with this ID.
    pub fn load(&self, id: &str) -> Result<Saved> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let Some(path) = self.path(id) else {
            let what = format!("no snapshot {id} of the stack {}", self.stack);
            return Err(Failure::new(what).hint(self.way_to_list()).into());
        };
        let failed = || format!("failed to read snapshot {}", path.display());
        let json = folder::read(&path).with_context(failed)?;
        let head: Head = serde_json::from_str(&json).with_context(failed)?;
        if head.version > VERSION {
            return Err(Failure::new(format!(
                "snapshot {id} has version {}: this version of stacklift reads versions up to {VERSION}",
                head.version
            ))
            .hint("use the version of stacklift that wrote it, or a later one")
            .into());
        }
        Ok(Saved {
            id: id.to_owned(),
            snapshot: serde_json::from_str(&json).with_context(failed)?,
            path,
        })
    }
}
