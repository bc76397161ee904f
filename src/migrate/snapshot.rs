//! The snapshot before the first destructive act.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};
use chrono::{SecondsFormat, Utc};
use serde_json::Value;

use super::{Before, Event, Run};
use crate::{
    model::Changes,
    restore::container::Inspected,
    snapshot::{Known, SavedRecord, Snapshot, TextFile, VERSION},
    stack::Source,
};

impl Run<'_, '_> {
    /// Saves what is there, unless there is nothing to destroy. What cannot be read is kept as unknown,
    /// with a warning; only a disk that does not take it stops the run, before anything is touched.
    pub(super) fn take_snapshot(&mut self, source: &Source, before: &Before) -> Result<()> {
        if before.record.is_none() && before.containers.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        self.say(Event::Waiting("taking a snapshot".to_owned()));
        let snapshot = self.snapshot_of(source, before);
        for (part, reason) in snapshot.unknowns() {
            self.warn(format!("the snapshot does not hold {part}: {reason}"));
        }
        let id = self.m.store.save(&snapshot, Utc::now())?;
        self.say(Event::Snapshot(&id));
        // A snapshot without the containers is no way back to them.
        if snapshot.containers.known().is_some() {
            self.mark(|progress| progress.snapshot = Some(id));
        }
        Ok(())
    }

    fn snapshot_of(&self, source: &Source, before: &Before) -> Snapshot {
        let (stack, engine) = (self.m.stack, self.m.engine);
        let project = stack.name().as_str();
        let containers = Known::from_result(match &before.containers {
            Some(containers) => {
                let ids: Vec<String> = containers.iter().map(|c| c.id.clone()).collect();
                engine.inspect_containers(&ids)
            }
            None => Err(anyhow!("they could not be listed")),
        });
        let inspected = containers.known().map(Vec::as_slice).unwrap_or_default();
        let record = before.record.as_ref().map(|record| {
            let contents = self.m.manager.contents(&record.id)?;
            Ok(SavedRecord {
                id: record.id.clone(),
                name: record.name.clone(),
                endpoint: record.endpoint_id,
                text: contents.text,
                env: contents.env,
            })
        });
        Snapshot {
            version: VERSION,
            taken: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            command: "migrate".to_owned(),
            stack: project.to_owned(),
            dir: stack.dir_text().to_owned(),
            tool: self.m.tool.to_owned(),
            base_url: self.m.base_url.to_string(),
            endpoint: self.m.endpoint,
            compose: TextFile {
                name: stack.file().to_owned(),
                text: source.compose.clone(),
            },
            env: source.env.as_ref().map(|text| TextFile {
                name: ".env".to_owned(),
                text: text.clone(),
            }),
            record: Known::from_result(record.transpose()),
            networks: Known::from_result(engine.networks(project)),
            volumes: Known::from_result(self.volumes(project, inspected)),
            changes: self.changes(inspected),
            containers,
        }
    }

    /// The project's volumes, and those that its containers mount: anonymous ones have no label.
    fn volumes(&self, project: &str, containers: &[Value]) -> Result<Vec<Value>> {
        let mut volumes = self.m.engine.volumes(project)?;
        let known: BTreeSet<&str> = volumes.iter().filter_map(|v| v["Name"].as_str()).collect();
        let mounted: BTreeSet<String> = containers
            .iter()
            .flat_map(|container| Inspected(container).volumes())
            .filter(|(name, _)| !known.contains(name))
            .map(|(name, _)| name.to_owned())
            .collect();
        let mounted: Vec<String> = mounted.into_iter().collect();
        volumes.extend(self.m.engine.inspect_volumes(&mounted)?);
        Ok(volumes)
    }

    fn changes(&self, containers: &[Value]) -> BTreeMap<String, Known<Changes>> {
        containers
            .iter()
            .map(|container| {
                let id = Inspected(container).id();
                (id.to_owned(), Known::from_result(self.m.engine.changes(id)))
            })
            .collect()
    }
}
