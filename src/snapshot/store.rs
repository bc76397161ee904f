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

use super::{
    SavedRecord, Snapshot,
    folder::{self, time_of},
    is_same_deployment, is_whole,
    requests::{REQUEST, unanswered},
};
use crate::{
    disk,
    failure::Failure,
    model::{Container, portainer_name},
    text::sha256,
};

/// The directory of the snapshots in the state directory.
const SNAPSHOTS: &str = "snapshots";
/// The end of the name of a snapshot's file.
const SNAPSHOT: &str = ".json";
/// How many of the newest snapshots are kept.
const NEWEST: usize = 9;
/// The file that exists while the last run that changed something has not ended as intended.
pub(super) const UNFINISHED: &str = "unfinished";
/// Its first line if that run ended with an error.
const FAILED: &str = "failed";
/// A line of it if that run was a restore. The flags that chose what it restores follow, one a line.
const RESTORE: &str = "restore";
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
    /// The stack's name.
    pub(super) stack: String,
    /// The directories to read. The first is the one to write.
    pub(super) dirs: Vec<PathBuf>,
    /// The directories of the same project on engines with other IDs. Their snapshots are only used by their IDs (B40).
    pub(super) others: Vec<PathBuf>,
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
        let mut others = self.dirs_of_project();
        others.retain(|dir| !seen.contains(dir));
        Store {
            stack: self.name.clone(),
            dirs,
            others,
        }
    }

    /// Whether a request of a project with this name, on any engine, is not known to have finished. Needs no engine.
    pub fn has_unanswered(&self) -> bool {
        let dirs = self.dirs_of_project().into_iter();
        let mut names = dirs.flat_map(|dir| folder::names(&dir).unwrap_or_default());
        names.any(|name| name.ends_with(REQUEST))
    }

    /// Whether the project has snapshots, on any engine. The directory may be that of another user.
    pub fn has_snapshots(&self) -> io::Result<bool> {
        let own = self.project();
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let is_own = |dir: &PathBuf| name(dir).is_some_and(|name| project_of(&name) == Some(&own));
        let is_one = |file: &PathBuf| name(file).is_some_and(|name| name.ends_with(SNAPSHOT));
        let mut dirs = disk::entries(&self.all())?.into_iter().filter(is_own);
        Ok(dirs.any(|dir| disk::entries(&dir).is_ok_and(|all| all.iter().any(is_one))))
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
        for old in self.old(NEWEST, &[&id]).unwrap_or_default() {
            // The next run tries again.
            let _ = self.remove(&old);
        }
        Ok(id)
    }

    /// The IDs of all snapshots, oldest first.
    pub fn ids(&self) -> Result<Vec<String>> {
        ids_of(&self.dirs)
    }

    /// Whether a snapshot that is about to be saved shows the whole stack: always, unless the last run failed after it
    /// changed something and the stack is still not whole, or that is unknown.
    pub fn is_whole(&self, snapshot: &Snapshot) -> bool {
        if !self.is_unfinished() {
            return snapshot.containers.known().is_some();
        }
        let before = self.newest_whole();
        before.is_ok_and(|before| {
            let before = before.as_ref().map(|saved| &saved.snapshot);
            is_whole(snapshot, before)
        })
    }

    /// Gives a snapshot that is about to be saved the Portainer stack that its containers were deployed from, if Portainer has
    /// what an update sent that failed.
    pub fn show_deployed(&self, snapshot: &mut Snapshot) {
        if !self.is_not_deployed() {
            return;
        }
        let before = self.newest_whole().ok().flatten();
        let (Some(before), Some(containers), Some(record)) = (
            before.map(|saved| saved.snapshot),
            snapshot.containers.known(),
            snapshot.record.known(),
        ) else {
            return;
        };
        // Otherwise, it was edited there since. A Git stack only gets another text if its containers do.
        let is_sent =
            |one: &SavedRecord| one.git.is_some() || self.last_sent().has(&one.text, &one.env);
        if record.as_ref().is_some_and(is_sent) && is_same_deployment(containers, &before) {
            snapshot.record = before.record;
            snapshot.last_sent = before.last_sent;
        }
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

    /// Whether the last run was a restore.
    pub fn was_restored(&self) -> bool {
        let has_saved = || self.last().is_some_and(|last| last.command == "restore");
        self.restore_flags().is_some() || has_saved()
    }

    /// The flags that chose what the last run restored, if it was a restore and has not ended as intended.
    pub(super) fn restore_flags(&self) -> Option<Vec<String>> {
        let marks = self.marks();
        let mut lines = marks
            .iter()
            .map(|mark| mark.lines().skip_while(|line| *line != RESTORE));
        let flags = lines.find_map(|mut lines| lines.next().map(|_| lines))?;
        Some(flags.map(str::to_owned).collect())
    }

    /// The texts of the marks of unfinished runs.
    fn marks(&self) -> Vec<String> {
        let marks = self.dirs.iter().map(|dir| dir.join(UNFINISHED));
        marks.filter_map(|mark| folder::read(&mark).ok()).collect()
    }

    /// Marks the stack: a run is about to change it. The mark stays if the run does not end as intended.
    ///
    /// Reserves space for a request (B11): a full disk must not stop the run between the removal and the create (B09).
    ///
    /// `restore` are the flags of a restore, which takes no snapshot where there is nothing to save.
    pub fn mark_unfinished(&self, restore: Option<&[String]>) -> Result<()> {
        let flags = restore.map(|flags| format!("\n{RESTORE}\n{}", flags.join("\n")));
        let contents = flags.unwrap_or_default();
        for (name, contents) in [
            (RESERVE, RESERVED.as_slice()),
            (UNFINISHED, contents.as_bytes()),
        ] {
            self.mark(name, contents, "the mark of an unfinished run")?;
        }
        if self.marks().iter().any(|mark| *mark != contents) {
            self.mark_as(&contents);
        }
        Ok(())
    }

    /// Notes in the mark that the run ended with an error.
    pub fn mark_failed(&self) {
        if let Ok(mark) = folder::read(&self.own().join(UNFINISHED)) {
            self.mark_as(&format!("{FAILED}{mark}"));
        }
    }

    /// What this says is only shown: a failure to write it is not an error.
    fn mark_as(&self, contents: &str) {
        let _ = folder::replace(self.own(), UNFINISHED, contents.as_bytes());
    }

    /// Whether the last run that changed something ended with an error.
    pub fn has_failed(&self) -> bool {
        self.is_not_deployed() || self.marks().iter().any(|mark| mark.starts_with(FAILED))
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
    pub fn runs_before_failure(&self, now: &[Container]) -> bool {
        let before = self.newest_whole().ok().flatten();
        let is_same = before.is_some_and(|saved| is_same_deployment(now, &saved.snapshot));
        self.is_not_deployed() && is_same
    }

    /// Whether Portainer kept what a failed update sent, and other containers run.
    pub fn is_not_deployed(&self) -> bool {
        let exists = |mark: PathBuf| mark.try_exists().unwrap_or(false);
        self.dirs.iter().any(|dir| exists(dir.join(NOT_DEPLOYED)))
    }

    /// The names of the volumes in the newest snapshot; none if they are unknown.
    pub fn last_volumes(&self) -> Result<BTreeSet<String>> {
        let newest = self.newest(|_| true)?;
        let volumes = newest
            .iter()
            .flat_map(|saved| saved.snapshot.volumes.items());
        let names = volumes.filter_map(|volume| volume["Name"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// The directory to write.
    pub(super) fn own(&self) -> &Path {
        &self.dirs[0]
    }

    pub(super) fn failed_to_write(&self, what: &str, error: io::Error) -> Failure {
        Failure::new(format!(
            "failed to write {what} to {}",
            self.own().display()
        ))
        .source(error)
        .hint("free some space or make the directory writable, or set STACKLIFT_STATE_DIR to another directory")
    }

    /// The IDs of the snapshots that nobody needs: all but the newest, the first and the last whole one, those of unanswered
    /// requests, and those in which a restore kept what it replaced.
    pub fn unneeded(&self) -> Result<Vec<String>> {
        let last = self.newest_whole()?.map(|saved| saved.id);
        let default = self.default_id()?;
        let kept: Vec<&str> = last.iter().chain(&default).map(String::as_str).collect();
        let mut old = self.old(1, &kept)?;
        old.retain(|id| {
            self.load(id)
                .is_ok_and(|saved| !saved.snapshot.is_of_restore())
        });
        Ok(old)
    }

    /// Removes a snapshot.
    pub fn remove(&self, id: &str) -> Result<()> {
        let path = self.own().join(file_of(id));
        fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))
    }

    /// The IDs of the snapshots besides this many of the newest, the first whole one, those of unanswered requests, and these.
    fn old(&self, newest: usize, kept: &[&str]) -> Result<Vec<String>> {
        let (ids, unanswered) = (ids_in(self.own())?, unanswered(&self.dirs)?);
        let old = &ids[..ids.len().saturating_sub(newest)];
        if old.is_empty() {
            return Ok(Vec::new());
        }
        let is_whole = |id: &&String| {
            let saved = self.load(id);
            saved.is_ok_and(|saved| saved.snapshot.is_default_of_restore())
        };
        let first = ids.iter().find(is_whole).or(ids.first());
        let is_in_use = |id: &String| {
            let mut requests = unanswered.iter();
            requests.any(|request| request.request.snapshot.as_ref() == Some(id))
        };
        let is_kept = |id: &String| Some(id) == first || kept.contains(&id.as_str());
        let old = old.iter().filter(|id| !is_kept(id) && !is_in_use(id));
        Ok(old.cloned().collect())
    }
}

pub(super) fn file_of(id: &str) -> String {
    format!("{id}{SNAPSHOT}")
}

/// The IDs of the snapshots in these directories, oldest first.
pub(super) fn ids_of(dirs: &[PathBuf]) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for dir in dirs {
        ids.extend(ids_in(dir)?);
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

fn ids_in(dir: &Path) -> Result<Vec<String>> {
    let names = folder::names(dir)?;
    let found = names.iter().filter_map(|name| name.strip_suffix(SNAPSHOT));
    let mut ids: Vec<String> = found.map(str::to_owned).collect();
    ids.sort();
    Ok(ids)
}
