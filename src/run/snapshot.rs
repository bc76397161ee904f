//! The snapshot that a run takes before its first change.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};
use chrono::{SecondsFormat, Utc};
use serde_json::Value;

use super::Run;
use crate::{
    engine::in_parallel,
    model::{Changes, Container, Record},
    portainer::BaseUrl,
    snapshot::{Inspected, Known, SavedRecord, Snapshot, Store, TextFile, VERSION},
    stack::{Source, Stack},
};

/// What a snapshot is taken of.
pub struct Subject<'a> {
    /// The command that takes it.
    pub command: &'static str,
    pub stack: &'a Stack,
    pub source: &'a Source,
    pub base_url: &'a BaseUrl,
    /// Portainer's environment.
    pub endpoint: i64,
    /// The container tool: its name is part of the labels.
    pub tool: &'a str,
    /// The Portainer stack.
    pub record: Option<&'a Record>,
    /// The project's containers; `None` if they could not be listed.
    pub containers: Option<&'a [Container]>,
}

impl Run<'_> {
    /// Saves what exists, unless there is nothing to lose. Gives the snapshot's ID if a restore can use it: one
    /// without the containers cannot bring them back.
    ///
    /// What cannot be read is saved as unknown, with a warning. Only a failure to write the snapshot is an error.
    pub fn take_snapshot(&mut self, store: &Store, of: &Subject) -> Result<Option<String>> {
        if of.record.is_none() && of.containers.is_some_and(<[_]>::is_empty) {
            return Ok(None);
        }
        self.wait("taking a snapshot");
        let snapshot = self.read_snapshot(of);
        let id = self.save_snapshot(store, &snapshot)?;
        Ok(snapshot.containers.known().map(|_| id))
    }

    /// Writes a snapshot and gives its ID. Warns of its unknown parts.
    pub fn save_snapshot(&mut self, store: &Store, snapshot: &Snapshot) -> Result<String> {
        for (part, reason) in snapshot.unknowns() {
            self.warn(format!("the snapshot does not contain {part}: {reason}"));
        }
        let id = store.save(snapshot, Utc::now())?;
        self.step("snapshot", format!("{id} taken"));
        Ok(id)
    }

    /// Reads what exists. Writes nothing.
    pub fn read_snapshot(&self, of: &Subject) -> Snapshot {
        let (stack, engine) = (of.stack, self.engine);
        let project = stack.name().as_str();
        let containers = Known::from_result(match of.containers {
            Some(containers) => {
                let ids: Vec<String> = containers.iter().map(|c| c.id.clone()).collect();
                engine.inspect_containers(&ids)
            }
            None => Err(anyhow!("they could not be listed")),
        });
        let inspected = containers.known().map(Vec::as_slice).unwrap_or_default();
        let record = of.record.map(|record| {
            let (contents, standing) = self.portainer.read(&record.id)?;
            Ok(SavedRecord {
                id: record.id.clone(),
                name: record.name.clone(),
                endpoint: record.endpoint_id,
                text: contents.text,
                env: contents.env,
                inactive: Some(standing.inactive),
                access: Some(standing.access),
            })
        });
        let volumes = Known::from_result(self.volumes(project, inspected));
        Snapshot {
            version: VERSION,
            taken: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            command: of.command.to_owned(),
            stack: project.to_owned(),
            dir: stack.dir_text().to_owned(),
            tool: of.tool.to_owned(),
            base_url: of.base_url.to_string(),
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
            networks: Known::from_result(engine.networks(project)),
            births: volumes.known().map_or_else(BTreeMap::new, |volumes| {
                let births = volumes.iter().filter_map(|volume| {
                    let name = volume["Name"].as_str()?.to_owned();
                    Some((name, engine.volume_birth(volume)?))
                });
                births.collect()
            }),
            volumes,
            changes: self.changes(inspected),
            containers,
        }
    }

    /// The project's volumes, and those that its containers mount: anonymous ones have no label.
    fn volumes(&self, project: &str, containers: &[Value]) -> Result<Vec<Value>> {
        let mut volumes = self.engine.volumes(project)?;
        let known: BTreeSet<&str> = volumes.iter().filter_map(|v| v["Name"].as_str()).collect();
        let mounted: BTreeSet<String> = containers
            .iter()
            .flat_map(|container| Inspected(container).volumes())
            .filter(|(name, _)| !known.contains(name))
            .map(|(name, _)| name.to_owned())
            .collect();
        let mounted: Vec<String> = mounted.into_iter().collect();
        volumes.extend(self.engine.inspect_volumes(&mounted)?);
        Ok(volumes)
    }

    fn changes(&self, containers: &[Value]) -> BTreeMap<String, Known<Changes>> {
        let engine = self.engine;
        let changes = in_parallel(containers, |container| {
            let id = Inspected(container).id();
            (id.to_owned(), Known::from_result(engine.changes(id)))
        });
        changes.into_iter().collect()
    }
}
