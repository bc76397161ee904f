//! The snapshots on disk: one directory per stack below the state directory, one file per snapshot.
//!
//! Files have mode 0600, directories 0700. A stack's directory belongs to a project on an engine (B14).

use std::{
    collections::BTreeSet,
    fs, io,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::{
    SavedRecord, Snapshot, VERSION,
    folder::{self, time_of},
    is_same_deployment, is_whole,
    requests::{REQUEST, unanswered},
};
use crate::{
    failure::Failure,
    model::portainer_name,
    text::{command, sha256},
};

/// The directory of the snapshots in the state directory.
const SNAPSHOTS: &str = "snapshots";
/// The end of the name of a snapshot's file.
const SNAPSHOT: &str = ".json";
/// How many of the newest snapshots are kept.
const NEWEST: usize = 9;
/// The file that exists while the last run that changed something has not ended as intended.
pub(super) const UNFINISHED: &str = "unfinished";
/// What is in it if that run ended with an error.
const FAILED: &str = "failed\n";
/// The mark of an adoption that failed, after which other containers run than Portainer has.
pub(super) const NOT_DEPLOYED: &str = "not-deployed";
/// The file that reserves disk space and an inode for a request: it is removed if a request does not fit.
const RESERVE: &str = "reserve";
/// More than a request needs.
const RESERVED: [u8; 16 * 1024] = [0; 16 * 1024];

/// What identifies a stack in the store, together with the engine.
#[derive(Debug, Clone)]
pub struct Place {
    /// The state directory.
    pub state: PathBuf,
    /// The stack's name. Portainer's form of it is the project's name.
    pub name: String,
}

/// The snapshots of one stack.
#[derive(Debug, Clone)]
pub struct Store {
    stack: String,
    /// The directories to read. The first is the one to write.
    dirs: Vec<PathBuf>,
}

/// A snapshot on disk.
#[derive(Clone)]
pub struct Saved {
    /// The time when it was taken, to the millisecond, UTC. Never before that of an older snapshot.
    pub id: String,
    pub path: PathBuf,
    pub snapshot: Snapshot,
}

impl Place {
    pub fn new(state: &Path, name: &str) -> Self {
        Self {
            state: state.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The snapshots of the stack on an engine; `None` if its ID cannot be read: those of all engines are then read.
    /// Creates nothing.
    pub fn open(&self, engine: Option<&str>) -> Store {
        let unknown = vec![self.dir_of("")];
        let mut dirs = match engine {
            Some(engine) => [vec![self.dir_of(engine)], unknown].concat(),
            None => [unknown, self.dirs_of_project()].concat(),
        };
        let mut seen = BTreeSet::new();
        dirs.retain(|dir| seen.insert(dir.clone()));
        Store {
            stack: self.name.clone(),
            dirs,
        }
    }

    /// Whether a request of a project with this name, on any engine, is not known to have finished. Needs no engine.
    pub fn has_unanswered(&self) -> bool {
        let dirs = self.dirs_of_project().into_iter();
        let mut names = dirs.flat_map(|dir| folder::names(&dir).unwrap_or_default());
        names.any(|name| name.ends_with(REQUEST))
    }

    /// The project's name.
    pub(super) fn project(&self) -> String {
        let project = portainer_name(&self.name);
        if project.is_empty() {
            self.name.clone()
        } else {
            project
        }
    }

    fn all(&self) -> PathBuf {
        self.state.join(SNAPSHOTS)
    }

    fn dir_of(&self, engine: &str) -> PathBuf {
        let hash = sha256(engine);
        self.all()
            .join(format!("{}-{}", self.project(), &hash[..16]))
    }

    /// The existing directories of the project, whatever the engine.
    fn dirs_of_project(&self) -> Vec<PathBuf> {
        let own = self.project();
        let all = self.all();
        let names = folder::names(&all).unwrap_or_default().into_iter();
        names
            .filter(|name| project_of(name) == Some(&own))
            .map(|name| all.join(name))
            .collect()
    }
}

/// The projects that have snapshots below a state directory, on any engine. Those that cannot be read are left out.
pub fn projects(state: &Path) -> BTreeSet<String> {
    projects_with(state, |file| file.ends_with(SNAPSHOT))
}

/// The projects of which a directory has such a file.
pub(super) fn projects_with(state: &Path, is_such: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let all = state.join(SNAPSHOTS);
    let names = folder::names(&all).unwrap_or_default().into_iter();
    let has_file = |name: &String| {
        let files = folder::names(&all.join(name)).unwrap_or_default();
        files.iter().any(|file| is_such(file))
    };
    names
        .filter(has_file)
        .filter_map(|name| project_of(&name).map(str::to_owned))
        .collect()
}

/// The project of a directory with this name.
fn project_of(name: &str) -> Option<&str> {
    let (project, hash) = name.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(project)
}

impl Store {
    /// Writes a snapshot atomically, synced with its directory, and returns its ID. Then removes old snapshots; a failure to
    /// remove one is not an error.
    ///
    /// The ID sorts after all others, even if the clock was ahead when they were taken.
    pub fn save(&self, snapshot: &Snapshot, now: DateTime<Utc>) -> Result<String> {
        let json =
            serde_json::to_vec_pretty(snapshot).context("failed to serialize the snapshot")?;
        let last = self.ids()?.iter().filter_map(|id| time_of(id)).max();
        let after_last = last.map(|last| last + TimeDelta::milliseconds(1));
        let from = after_last.map_or(now, |after| after.max(now));
        let id = folder::write_next(self.own(), from, SNAPSHOT, &json)
            .map_err(|error| self.failed_to_write("a snapshot", error))?;
        self.prune(&id);
        Ok(id)
    }

    /// The IDs of all snapshots, oldest first.
    pub fn ids(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for dir in &self.dirs {
            ids.extend(ids_in(dir)?);
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// The snapshot that `restore` uses by default: the newest of a state that ran whole (B15). Snapshots that a restore
    /// took do not count, or the next restore would undo it.
    ///
    /// Unreadable ones and those without the containers do not count.
    pub fn default_id(&self) -> Result<Option<String>> {
        Ok(self.default_of_restore()?.map(|saved| saved.id))
    }

    /// The newest whole snapshot in which a container ran, if possible one with the Portainer stack, otherwise the newest. An adoption or a migration that did not
    /// finish is undone, even if nothing ran before it.
    fn default_of_restore(&self) -> Result<Option<Saved>> {
        let newest = self.whole()?.next();
        let is_open = self.is_unfinished() || self.is_not_deployed();
        if is_open && !self.was_restored() {
            return Ok(newest);
        }
        let known = self.last_that_ran(|snapshot| snapshot.record.known().is_some())?;
        Ok(known.or(self.last_that_ran(|_| true)?).or(newest))
    }

    /// The newest whole snapshot that is such a one and in which a container ran.
    pub fn last_that_ran(&self, is: impl Fn(&Snapshot) -> bool) -> Result<Option<Saved>> {
        let is_it = |saved: &Saved| saved.snapshot.has_running() && is(&saved.snapshot);
        Ok(self.whole()?.find(is_it))
    }

    /// The snapshots that `restore` may choose, newest first.
    fn whole(&self) -> Result<impl Iterator<Item = Saved>> {
        let ids = self.ids()?.into_iter().rev();
        let loaded = ids.filter_map(|id| self.load(&id).ok());
        Ok(loaded.filter(|saved| saved.snapshot.is_default_of_restore()))
    }

    /// Whether a snapshot that is about to be saved shows the whole stack: always, unless the last run failed after it
    /// changed something and the stack is still not whole.
    pub fn is_whole(&self, snapshot: &Snapshot) -> Result<bool> {
        if !self.is_unfinished() {
            return Ok(snapshot.containers.known().is_some());
        }
        let before = self.whole()?.next();
        Ok(is_whole(
            snapshot,
            before.as_ref().map(|saved| &saved.snapshot),
        ))
    }

    /// Gives a snapshot that is about to be saved the Portainer stack that its containers were deployed from, if Portainer has
    /// what an update sent that failed.
    pub fn show_deployed(&self, snapshot: &mut Snapshot) -> Result<()> {
        if !self.is_not_deployed() {
            return Ok(());
        }
        let before = self.whole()?.next();
        let (Some(before), Some(containers), Some(record)) = (
            before.map(|saved| saved.snapshot),
            snapshot.containers.known(),
            snapshot.record.known(),
        ) else {
            return Ok(());
        };
        // Otherwise, it was edited there since. A Git stack only gets another text if its containers do.
        let is_sent =
            |one: &SavedRecord| one.git.is_some() || self.last_sent().has(&one.text, &one.env);
        if record.as_ref().is_some_and(is_sent) && is_same_deployment(containers, &before) {
            snapshot.record = before.record;
            snapshot.last_sent = before.last_sent;
        }
        Ok(())
    }

    /// Whether the last run that changed something has not ended as intended.
    pub fn is_unfinished(&self) -> bool {
        // One that cannot be looked at may exist.
        let exists = |mark: PathBuf| mark.try_exists().unwrap_or(true);
        self.dirs.iter().any(|dir| exists(dir.join(UNFINISHED)))
    }

    /// The snapshot of the last run that took one.
    pub(super) fn last(&self) -> Option<Snapshot> {
        let ids = self.ids().unwrap_or_default();
        let last = ids.last().and_then(|id| self.load(id).ok());
        last.map(|saved| saved.snapshot)
    }

    /// Whether that was a restore.
    pub(super) fn was_restored(&self) -> bool {
        self.last().is_some_and(|last| last.command == "restore")
    }

    /// Marks the stack: a run is about to change it. The mark stays if the run does not end as intended.
    ///
    /// Reserves space for a request (B11): a full disk must not stop the run between the removal and the create (B09).
    pub fn mark_unfinished(&self) -> Result<()> {
        for (name, contents) in [(RESERVE, RESERVED.as_slice()), (UNFINISHED, b"")] {
            self.mark(name, contents, "the mark of an unfinished run")?;
        }
        if self.has_failed() {
            self.mark_as("");
        }
        Ok(())
    }

    /// Notes in the mark that the run ended with an error.
    pub fn mark_failed(&self) {
        if self.own().join(UNFINISHED).exists() {
            self.mark_as(FAILED);
        }
    }

    /// What this says is only shown: a failure to write it is not an error.
    fn mark_as(&self, contents: &str) {
        let _ = folder::replace(self.own(), UNFINISHED, contents.as_bytes());
    }

    /// Whether the last run that changed something ended with an error.
    pub fn has_failed(&self) -> bool {
        let mut marks = self.dirs.iter().map(|dir| dir.join(UNFINISHED));
        let is_failed = |mark: PathBuf| folder::read(&mark).is_ok_and(|text| text == FAILED);
        self.is_not_deployed() || marks.any(is_failed)
    }

    /// Frees the space that [`Self::mark_unfinished`] reserved. Returns whether there was any.
    pub(super) fn use_reserve(&self) -> bool {
        let exists = self.own().join(RESERVE).exists();
        exists && folder::remove(self.own(), RESERVE).is_ok()
    }

    /// Removes the mark: the run ended as intended.
    pub fn mark_finished(&self) -> Result<()> {
        self.use_reserve();
        for dir in &self.dirs {
            for mark in [UNFINISHED, NOT_DEPLOYED] {
                folder::remove(dir, mark)
                    .with_context(|| format!("failed to remove {}", dir.join(mark).display()))?;
            }
        }
        Ok(())
    }

    /// Marks the stack: its containers were restored after an update that failed, and Portainer kept what was sent.
    pub fn mark_not_deployed(&self) -> Result<()> {
        self.mark(NOT_DEPLOYED, b"", "the mark of a failed update")
    }

    /// Writes a file, unless it exists.
    fn mark(&self, name: &str, contents: &[u8], what: &str) -> Result<()> {
        match folder::write_new(self.own(), name, contents) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(self.failed_to_write(what, error).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether `now` are still the containers of before an update that failed, and Portainer kept what it sent.
    pub fn runs_before_failure(&self, now: &[Value]) -> bool {
        let before = self.whole().ok().and_then(|mut whole| whole.next());
        let is_same = before.is_some_and(|saved| is_same_deployment(now, &saved.snapshot));
        self.is_not_deployed() && is_same
    }

    /// Whether Portainer kept what a failed update sent, and other containers run.
    pub fn is_not_deployed(&self) -> bool {
        let exists = |mark: PathBuf| mark.try_exists().unwrap_or(false);
        self.dirs.iter().any(|dir| exists(dir.join(NOT_DEPLOYED)))
    }

    /// The names of the volumes in the newest snapshot, if they are known.
    pub fn last_volumes(&self) -> Option<BTreeSet<String>> {
        let newest = self.load(self.ids().ok()?.last()?).ok()?;
        let volumes = newest.snapshot.volumes.known()?.iter();
        let names = volumes.filter_map(|one| one["Name"].as_str());
        Some(names.map(str::to_owned).collect())
    }

    /// Reads the snapshot with this ID, or the only one whose ID begins with it; `None` for [`Self::default_id`].
    pub fn choose(&self, id: Option<&str>) -> Result<Saved> {
        if let Some(id) = id {
            let mut ids = self.ids()?;
            ids.retain(|one| one.starts_with(id));
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
        // The error of an unreadable snapshot says more than that none is complete.
        if let Some(newest) = self.ids()?.last() {
            self.load(newest)?;
            let what = format!("no snapshot shows the complete stack {}", self.stack);
            let list = command(&["restore", &self.stack, "--list"]);
            let hint = format!("to list the snapshots, run: {list}; choose one with --to");
            return Err(Failure::new(what).hint(hint).into());
        }
        let state = self.own().ancestors().nth(2);
        let others = Vec::from_iter(state.map(projects).unwrap_or_default());
        let others = match others.as_slice() {
            [] => "no stack has a snapshot".to_owned(),
            others => format!("stacks with snapshots: {}", others.join(", ")),
        };
        let what = format!("{} has no snapshot: there is nothing to undo", self.stack);
        let hint = if self.last_sent().is_empty() {
            format!("{others}; if you expect one, check DOCKER_HOST and STACKLIFT_STATE_DIR")
        } else {
            "it had no containers before it was adopted: if Portainer has it, delete it there"
                .to_owned()
        };
        Err(Failure::new(what).hint(hint).into())
    }

    /// Reads the snapshot with this ID.
    pub fn load(&self, id: &str) -> Result<Saved> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let file = file_of(id);
        let mut paths = self.dirs.iter().map(|dir| dir.join(&file));
        let Some(path) = paths.find(|path| !id.contains('/') && path.is_file()) else {
            let what = format!("no snapshot {id} of the stack {}", self.stack);
            let list = command(&["restore", &self.stack, "--list"]);
            let hint = format!("to list the snapshots, run: {list}");
            return Err(Failure::new(what).hint(hint).into());
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

    /// The directory to write.
    pub(super) fn own(&self) -> &Path {
        &self.dirs[0]
    }

    /// The directories to read.
    pub(super) fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    pub(super) fn failed_to_write(&self, what: &str, error: io::Error) -> Failure {
        Failure::new(format!(
            "failed to write {what} to {}",
            self.own().display()
        ))
        .source(error)
        .hint("free some space or make the directory writable, or set STACKLIFT_STATE_DIR to another directory")
    }

    /// Keeps the newest snapshots, the first whole one, the one that was just taken, and those of unanswered requests.
    fn prune(&self, taken: &str) {
        let (Ok(ids), Ok(unanswered)) = (ids_in(self.own()), unanswered(&self.dirs)) else {
            return;
        };
        let old = &ids[..ids.len().saturating_sub(NEWEST)];
        if old.len() < 2 {
            return;
        }
        let is_whole = |id: &&String| {
            let saved = self.load(id);
            saved.is_ok_and(|saved| saved.snapshot.is_default_of_restore())
        };
        let first = ids.iter().find(is_whole).or(ids.first());
        for id in old {
            let is_in_use = unanswered
                .iter()
                .any(|one| one.request.snapshot.as_ref() == Some(id));
            if Some(id) != first && id != taken && !is_in_use {
                // The next run tries again.
                let _ = fs::remove_file(self.own().join(file_of(id)));
            }
        }
    }
}

fn file_of(id: &str) -> String {
    format!("{id}{SNAPSHOT}")
}

fn ids_in(dir: &Path) -> Result<Vec<String>> {
    let names = folder::names(dir)?;
    let found = names.iter().filter_map(|name| name.strip_suffix(SNAPSHOT));
    let mut ids: Vec<String> = found.map(str::to_owned).collect();
    ids.sort();
    Ok(ids)
}
