//! The snapshot that a run takes before its first change.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};
use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};

use super::{Mark, Run, of_projects};
use crate::{
    disk::{self, Refused},
    engine::EngineReader,
    model::{Changes, Container, Deployment, Record},
    parallel::in_parallel,
    portainer::{Contents, Standing},
    snapshot::{Known, Layer, Saved, SavedRecord, Snapshot, TextFile, VERSION},
    stack::{Stack, StackText},
};

/// What a snapshot is taken of.
pub struct Subject<'a> {
    /// The command that takes it.
    pub command: &'static str,
    /// The flags that name the repository of a Git stack.
    pub flags: &'a [String],
    pub stack: &'a Stack,
    pub source: &'a StackText,
    /// Portainer's environment.
    pub endpoint: i64,
    /// The container tool: its name is part of the labels.
    pub tool: &'a str,
    /// The Portainer stack.
    pub record: Option<&'a Record>,
    /// Whether one may exist that the API key does not see (B24).
    pub may_be_unseen: bool,
    /// The project's containers; `None` if they could not be listed.
    pub containers: Option<&'a [Container]>,
}

/// What was read just before a snapshot, to be saved without reading it again.
#[derive(Default)]
pub struct Seen {
    /// The text and the variables of the Portainer stack, and its standing.
    pub record: Option<(Contents, Standing)>,
    /// The inspect objects of the containers.
    pub containers: Option<Vec<Container>>,
    /// The changes of each of these containers, by its ID.
    pub changes: BTreeMap<String, Known<Changes>>,
}

impl Run<'_> {
    /// Saves what exists, unless there is nothing to lose, and marks the stack: changes follow. Returns the ID of the
    /// snapshot to roll back to: this one, or the last that shows the whole stack if this one shows what a failed run
    /// left (B15). A snapshot without the containers cannot restore them.
    ///
    /// What cannot be read is saved as unknown, with a warning, unless `check` refuses that: nothing is written then.
    pub fn take_snapshot(
        &mut self,
        of: &Subject,
        seen: Seen,
        check: impl FnOnce(&Snapshot) -> Result<()>,
    ) -> Result<Option<String>> {
        let store = self.store();
        let nothing = of.record.is_none() && of.containers.is_none_or(<[_]>::is_empty);
        if !nothing {
            self.wait("taking a snapshot");
            let snapshot = self.read_snapshot(of, seen);
            check(&snapshot)?;
            let (id, is_whole) = self.save_snapshot(snapshot)?;
            // The run may stop before its procedure sets another state: a full disk cannot take the mark.
            self.wrote(format!("the snapshot {id}"));
            if is_whole {
                self.snapshot = Some(id);
            }
        }
        if self.snapshot.is_none() && (store.is_unfinished() || store.is_not_deployed()) {
            self.snapshot = store.default_id()?;
        }
        // A restore may have come before.
        self.since = None;
        self.mark_unfinished()?;
        Ok(self.snapshot.clone())
    }

    /// Records the snapshot that the run restores.
    pub fn restores(&mut self, saved: &Saved) {
        self.snapshot = Some(saved.id.clone());
        if saved.snapshot.ran_whole == Some(false) {
            self.mark = Mark::Stays;
        }
    }

    /// Writes a snapshot. Returns its ID, and whether it shows a stack that ran whole (B15). Warns of its unknown parts.
    pub fn save_snapshot(&mut self, mut snapshot: Snapshot) -> Result<(String, bool)> {
        for (part, reason) in snapshot.unknowns() {
            self.warn(format!(
                "the snapshot is incomplete: {part} could not be saved ({reason})"
            ));
        }
        let store = self.store();
        let is_whole = store.is_whole(&snapshot);
        store.show_deployed(&mut snapshot);
        snapshot.ran_whole = Some(is_whole);
        let id = store.save(&snapshot, Utc::now())?;
        let note = match (is_whole, snapshot.containers.known()) {
            (false, Some(_)) => " taken; it shows what a failed run left behind",
            _ => " taken",
        };
        self.detail("snapshot", format!("{id}{note}"));
        Ok((id, is_whole))
    }

    /// Reads what exists, except what was `seen`. Writes nothing.
    pub fn read_snapshot(&self, of: &Subject, seen: Seen) -> Snapshot {
        let (stack, engine) = (of.stack, self.engine);
        let project = stack.name().as_str();
        let is_seen = seen.containers.is_some();
        let containers = Known::from_result(match (seen.containers, of.containers) {
            (Some(seen), _) => Ok(seen),
            (None, Some(containers)) => {
                engine.inspect_containers(containers.iter().map(Container::id))
            }
            (None, None) => Err(anyhow!("failed to list the containers")),
        });
        let inspected = containers.items();
        let record = of.record.map(|record| {
            let (contents, standing) = match seen.record {
                Some(seen) => seen,
                None => self.portainer.read(&record.id)?,
            };
            Ok(SavedRecord {
                id: record.id.clone(),
                name: record.name.clone(),
                endpoint: record.endpoint_id,
                text: contents.text,
                env: contents.env,
                inactive: Some(standing.inactive),
                failed: matches!(record.deployment, Deployment::Failed(_)),
                access: Some(standing.access),
                git: standing.git.map(|repository| json!(repository)),
            })
        });
        let volumes = Known::from_result(self.volumes(project, inspected));
        let births = volumes.items().iter().filter_map(|volume| {
            let name = volume["Name"].as_str()?.to_owned();
            Some((name, engine.volume_birth(volume)?))
        });
        let changes = if is_seen {
            seen.changes
        } else {
            read_changes(self.engine, inspected, volumes.items())
        };
        let layers = in_parallel(inspected, |container| {
            let changes = changes.get(container.id())?.known()?;
            let layer = || read_layer(engine, container, changes, true);
            (!changes.listed.is_empty()).then(|| (container.id().to_owned(), layer()))
        });
        Snapshot {
            version: VERSION,
            taken: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            command: of.command.to_owned(),
            flags: of.flags.to_vec(),
            stack: project.to_owned(),
            ran_whole: None,
            dir: stack.dir_text().to_owned(),
            tool: of.tool.to_owned(),
            base_url: self.setup.base_url.to_string(),
            endpoint: of.endpoint,
            compose: TextFile {
                name: stack.file().to_owned(),
                text: of.source.compose.clone(),
            },
            env: of.source.env.as_ref().map(|text| TextFile {
                name: ".env".to_owned(),
                text: text.clone(),
            }),
            record: Known::from_result(record.transpose()),
            may_be_unseen: of.may_be_unseen,
            last_sent: self.store().last_sent(),
            networks: Known::from_result(of_projects(project, |project| engine.networks(project))),
            births: births.collect(),
            layers: layers.into_iter().flatten().collect(),
            volumes,
            changes,
            containers,
        }
    }

    /// The project's volumes, and those that its containers mount: anonymous ones have no label.
    fn volumes(&self, stack: &str, containers: &[Container]) -> Result<Vec<Value>> {
        let mut volumes = of_projects(stack, |project| self.engine.volumes(project))?;
        let known: BTreeSet<&str> = volumes.iter().filter_map(|v| v["Name"].as_str()).collect();
        let mounted = containers.iter().flat_map(|container| container.volumes());
        let mounted: BTreeSet<&str> = mounted.map(|(name, _)| name).collect();
        let others = mounted.difference(&known).copied();
        let others = self.engine.inspect_volumes(others)?;
        volumes.extend(others);
        Ok(volumes)
    }
}

/// The files that each container has changed or holds in memory, by its ID. `volumes` are those that they mount.
pub fn read_changes(
    engine: &EngineReader,
    containers: &[Container],
    volumes: &[Value],
) -> BTreeMap<String, Known<Changes>> {
    let changes = in_parallel(containers, |container| {
        let id = container.id();
        let read = engine.changes(id).map(|changes| Changes {
            listed: changes.listed,
            total: changes.total,
            ..look_into(container, volumes)
        });
        (id.to_owned(), Known::from_result(read))
    });
    changes.into_iter().collect()
}

/// Looks for files in the mounts in memory of a container (B36), and for mounts that were replaced on its host, and for nothing else.
/// Without a process, it has none.
pub fn look_into(container: &Container, volumes: &[Value]) -> Changes {
    let mut found = Changes::default();
    if container.loops(Utc::now()) {
        // Each restart empties them.
        return found;
    }
    let process = container.at("/State/Pid").and_then(Value::as_u64);
    let Some(process) = process.filter(|process| *process > 0) else {
        return found;
    };
    for path in container.in_memory(volumes) {
        let error = match disk::holds_files(process, container.id(), path) {
            Ok(true) => {
                found.in_memory.push(path.to_owned());
                continue;
            }
            Ok(false) => continue,
            Err(error) => error,
        };
        let refused = Refused::of(&error);
        found.unseen_memory.insert(match refused {
            Some(Refused::Hidden) => error.to_string(),
            _ => format!("cannot look into {path} of {}: {error}", container.name()),
        });
        if refused == Some(Refused::TimedOut) {
            return found;
        }
    }
    let binds = container.mounts().filter(|mount| mount["Type"] == "bind");
    let writable = binds.filter(|mount| mount["RW"] != false);
    let paths =
        writable.filter_map(|mount| mount["Source"].as_str().zip(mount["Destination"].as_str()));
    let replaced = paths.filter(|(source, target)| {
        // A source that does not exist is named as such.
        disk::is_replaced(process, container.id(), target, source).unwrap_or(false)
    });
    found.replaced = replaced.map(|(source, _)| source.to_owned()).collect();
    found
}

/// The files of a container's own layer that are small enough to be saved. See [`Layer::read`].
pub fn read_layer(
    engine: &EngineReader,
    container: &Container,
    changes: &Changes,
    keeps_directories: bool,
) -> Layer {
    Layer::read(container, changes, keeps_directories, |path, most| {
        let archive = engine.archive(container.id(), path, most)?;
        Ok((archive.bytes, archive.is_whole))
    })
}
