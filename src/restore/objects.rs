//! The steps of a restore at the engine: networks, volumes, containers, and the final check.

use std::{collections::BTreeSet, thread, time::Duration};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::{
    Procedure,
    plan::{Plan, saved},
    recipe::NewIds,
    steps::matching,
};
use crate::{backoff::Backoff, engine::Restoring, failure::Failure, snapshot::Inspected};

/// How many times the containers are restored at most.
const ROUNDS: usize = 3;

/// The fields of an inspected network that creating it takes.
const NETWORK_FIELDS: [&str; 8] = [
    "Name",
    "Driver",
    "IPAM",
    "Internal",
    "Attachable",
    "EnableIPv6",
    "Options",
    "Labels",
];

impl Procedure<'_, '_, '_> {
    pub(super) fn restore_networks(&mut self, engine: &Restoring) -> Result<()> {
        for network in self.snapshot().networks.known().into_iter().flatten() {
            let name = text(network, "Name").to_owned();
            if !self
                .run
                .engine
                .inspect_networks(std::slice::from_ref(&name))?
                .is_empty()
            {
                continue;
            }
            self.touch();
            self.run.step("network", name.clone());
            let mut body = json!({ "CheckDuplicate": true });
            for key in NETWORK_FIELDS {
                body[key] = network[key].clone();
            }
            let created = self.create_network(engine, &name, body);
            self.tolerate(created)?;
        }
        Ok(())
    }

    /// Creates a network. If the engine refuses its addresses, since another network took them, it gets other ones,
    /// unless a container has a fixed address in it.
    fn create_network(&mut self, engine: &Restoring, name: &str, mut body: Value) -> Result<()> {
        let Err(refused) = engine.create_network(&body) else {
            return Ok(());
        };
        if self.network_appears(name) {
            return Ok(());
        }
        let is_fixed = saved(self.snapshot())
            .iter()
            .any(|container| container.fixed_networks().any(|network| network == name));
        let has_addresses = body["IPAM"]["Config"].as_array();
        if is_fixed || has_addresses.is_none_or(Vec::is_empty) {
            return Err(refused);
        }
        body["IPAM"]["Config"] = json!([]);
        if engine.create_network(&body).is_err() {
            return Err(refused);
        }
        self.trouble(format!(
            "the network {name} has other addresses than before: {refused:#}"
        ));
        Ok(())
    }

    /// Whether the network exists, or appears within three seconds: the engine may still work for a run that was
    /// killed.
    fn network_appears(&self, name: &str) -> bool {
        let name = [name.to_owned()];
        let exists = || {
            let found = self.run.engine.inspect_networks(&name);
            found.is_ok_and(|found| !found.is_empty())
        };
        let mut pauses =
            Backoff::new(Duration::from_millis(50), Duration::from_millis(400)).take(9);
        exists()
            || pauses.any(|pause| {
                thread::sleep(pause);
                exists()
            })
    }

    /// Turns an error into a warning, as long as the engine responds: one failure does not stop the rest.
    fn tolerate<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(error) => {
                if self.run.engine.list(&self.snapshot().stack).is_err() {
                    return Err(error);
                }
                self.trouble(format!("{error:#}"));
                Ok(None)
            }
        }
    }

    /// A run never removes a volume. So the data of a missing one is gone.
    pub(super) fn restore_volumes(&mut self, engine: &Restoring) -> Result<()> {
        for volume in self.snapshot().volumes.known().into_iter().flatten() {
            let name = text(volume, "Name").to_owned();
            if !self
                .run
                .engine
                .inspect_volumes(std::slice::from_ref(&name))?
                .is_empty()
            {
                continue;
            }
            self.touch();
            self.trouble(format!(
                "the volume {name} was removed with its data; an empty one replaces it"
            ));
            let created = engine.create_volume(&json!({
                "Name": name,
                "Driver": volume["Driver"],
                "DriverOpts": volume["Options"],
                "Labels": volume["Labels"],
            }));
            self.tolerate(created)?;
        }
        Ok(())
    }

    /// Starts again if containers came or went meanwhile: the engine finishes the requests of a run that was killed.
    pub(super) fn restore_containers(&mut self, engine: &Restoring) -> Result<()> {
        let known = self.trouble.len();
        for _ in 0..ROUNDS {
            self.trouble.truncate(known);
            let (restored, keeps_running) = self.restore_once(engine)?;
            if !self.containers_change(&restored, keeps_running)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there are other containers than `restored`. If one was kept while it ran, looks for half a second: the
    /// engine does not show that a container is being removed until it has stopped.
    fn containers_change(&self, restored: &BTreeSet<String>, keeps_running: bool) -> Result<bool> {
        let looks = if keeps_running { 3 } else { 0 };
        let mut pauses =
            Backoff::new(Duration::from_millis(100), Duration::from_millis(200)).take(looks);
        loop {
            let existing = self.existing()?;
            let existing = existing.iter().map(Inspected);
            let existing: BTreeSet<String> = existing
                .filter(|container| !container.is_being_removed())
                .map(|container| container.id().to_owned())
                .collect();
            if existing != *restored {
                return Ok(true);
            }
            let Some(pause) = pauses.next() else {
                return Ok(false);
            };
            thread::sleep(pause);
        }
    }

    /// Gives the IDs of all containers that replace saved ones, in whatever state, and whether a running one was kept.
    fn restore_once(&mut self, engine: &Restoring) -> Result<(BTreeSet<String>, bool)> {
        let existing = self.existing()?;
        let snapshot = self.snapshot();
        let plan = Plan::new(snapshot, &existing);
        let containers = saved(snapshot);
        for (id, name) in &plan.remove {
            self.refuse_strangers(&existing, id, name)?;
            self.touch();
            self.run.step("remove", name.clone());
            let removed = engine.remove_container(id);
            self.tolerate(removed)?;
        }
        let mut ids = NewIds::new();
        let mut restored = BTreeSet::new();
        for &index in &plan.order {
            let container = containers[index];
            let id = if let Some(id) = plan.keep.get(&index) {
                Some(id.clone())
            } else {
                let created = self.create_container(engine, container, &ids, &mut restored);
                self.tolerate(created)?.flatten()
            };
            if let Some(id) = id {
                restored.insert(id.clone());
                ids.insert(container.id().to_owned(), id);
            }
        }
        for &index in &plan.order {
            let container = containers[index];
            if let Some(id) = ids.get(container.id()) {
                let done = self.restore_state(engine, container, id);
                self.tolerate(done)?;
            }
        }
        let keeps_running = plan.keep.keys().any(|&kept| containers[kept].is_running());
        Ok((restored, keeps_running))
    }

    /// Recreates a container and connects it to its networks. `None` if its image is gone, or a container that it
    /// shares a namespace or volumes with.
    fn create_container(
        &mut self,
        engine: &Restoring,
        container: Inspected,
        ids: &NewIds,
        restored: &mut BTreeSet<String>,
    ) -> Result<Option<String>> {
        let Some(image) = self.image_of(container)? else {
            self.trouble(format!(
                "cannot recreate the container {}: its image {} ({}) is gone",
                container.name(),
                container.image_name(),
                container.image_id()
            ));
            return Ok(None);
        };
        let snapshot = self.snapshot();
        let missing = container.shares_with().into_iter().find_map(|id| {
            let other = saved(snapshot).into_iter().find(|other| other.id() == id)?;
            (!ids.contains_key(id)).then(|| other.name().to_owned())
        });
        if let Some(other) = missing {
            self.trouble(format!(
                "cannot recreate the container {}: it shares a namespace or volumes with {other}, which is missing",
                container.name()
            ));
            return Ok(None);
        }
        self.touch();
        self.run.step("create", container.name());
        let recipe = container.recipe(&image, ids);
        let id = engine.create_container(container.name(), None, &recipe.body)?;
        restored.insert(id.clone());
        for (network, endpoint) in &recipe.connect {
            engine.connect(network, &id, endpoint)?;
        }
        Ok(Some(id))
    }

    /// The image's name if it still names the same image, else the image's ID. `None` if the image is gone.
    fn image_of(&self, container: Inspected) -> Result<Option<String>> {
        let (id, name) = (container.image_id(), container.image_name());
        for asked in [name, id] {
            let found = if asked.is_empty() {
                Vec::new()
            } else {
                self.run.engine.inspect_images(&[asked.to_owned()])?
            };
            if found.first().is_some_and(|image| text(image, "Id") == id) {
                return Ok(Some(asked.to_owned()));
            }
        }
        Ok(None)
    }

    /// Starts, pauses or stops a container, as it was.
    fn restore_state(&mut self, engine: &Restoring, wanted: Inspected, id: &str) -> Result<()> {
        let inspected = self.run.engine.inspect_containers(&[id.to_owned()])?;
        let now = inspected
            .first()
            .map(Inspected)
            .ok_or_else(|| anyhow!("the container {} was removed meanwhile", wanted.name()))?;
        if now.is_paused() && !wanted.is_paused() {
            self.touch();
            self.run.step("unpause", wanted.name());
            engine.unpause(id)?;
        }
        match (wanted.is_running(), now.is_running()) {
            (true, false) => {
                self.touch();
                self.run.step("start", wanted.name());
                engine.start(id)?;
            }
            (false, true) => {
                self.touch();
                self.run.step("stop", wanted.name());
                engine.stop(id, now.stop_grace())?;
            }
            _ => {}
        }
        if wanted.is_paused() && !now.is_paused() {
            self.touch();
            self.run.step("pause", wanted.name());
            engine.pause(id)?;
        }
        Ok(())
    }

    /// Compares every container with the snapshot.
    pub(super) fn verify(&mut self) -> Result<()> {
        let existing = self
            .existing()
            .context("failed to check the restored containers")?;
        let mut running = 0;
        let mut wrong = std::mem::take(&mut self.trouble);
        let containers = saved(self.snapshot());
        for wanted in &containers {
            let now = existing
                .iter()
                .map(Inspected)
                .find(|now| now.name() == wanted.name());
            let Some(now) = now else {
                wrong.push(format!("{} does not exist", wanted.name()));
                continue;
            };
            let mut differences = wanted.differences(now);
            if wanted.state() != now.state() {
                differences.push(format!("it is {}, not {}", now.state(), wanted.state()));
            }
            if !differences.is_empty() {
                wrong.push(format!(
                    "{} differs: {}",
                    wanted.name(),
                    differences.join("; ")
                ));
            }
            running += usize::from(now.is_running());
        }
        if wrong.is_empty() {
            self.run.step(
                "verified",
                format!("{}, {running} running", matching(containers.len())),
            );
            return Ok(());
        }
        Err(Failure::new("the stack differs from the snapshot")
            .details(wrong.join("\n"))
            .hint("fix the problem above and run the command again: it continues from here")
            .into())
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
