//! The steps of a restore at the engine: networks, volumes, containers, and whether all is as it was.

use std::{collections::BTreeSet, thread, time::Duration};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::{
    Event, Run,
    container::{Inspected, NewIds},
    plan::{Plan, saved},
};
use crate::{engine::Restoring, failure::Failure};

/// How often the containers are gone through at most.
const ROUNDS: usize = 3;

/// How long a removal takes until the container no longer runs. Until then the engine tells of it
/// nowhere, so that one which a killed run left at work would go unseen.
const REMOVAL: Duration = Duration::from_millis(500);

/// How often, and how long apart, it is looked whether what an earlier run asked for comes to light.
const IN_A_WHILE: usize = 15;
const A_MOMENT: Duration = Duration::from_millis(200);

impl Run<'_, '_> {
    pub(super) fn restore_networks(&mut self, engine: &Restoring) -> Result<()> {
        let Some(networks) = self.snapshot().networks.known().cloned() else {
            return Ok(());
        };
        for network in networks {
            let name = text(&network, "Name").to_owned();
            if !self
                .r
                .engine
                .inspect_networks(std::slice::from_ref(&name))?
                .is_empty()
            {
                continue;
            }
            self.touch();
            self.say(Event::Step("network", name.clone()));
            let mut body = json!({ "CheckDuplicate": true });
            for key in [
                "Name",
                "Driver",
                "IPAM",
                "Internal",
                "Attachable",
                "EnableIPv6",
                "Options",
                "Labels",
            ] {
                body[key] = network[key].clone();
            }
            let made = self.make_network(engine, &name, body);
            self.go_on(made)?;
        }
        Ok(())
    }

    /// Makes a network. Where its addresses were taken by another one meanwhile it gets others, unless a
    /// container has a fixed one in it.
    fn make_network(&mut self, engine: &Restoring, name: &str, mut body: Value) -> Result<()> {
        let Err(refused) = engine.create_network(&body) else {
            return Ok(());
        };
        if self.network_appears(name) {
            return Ok(());
        }
        let is_fixed = saved(self.snapshot())
            .iter()
            .any(|container| container.has_fixed_address(name));
        if is_fixed || !format!("{refused:#}").contains("overlaps") {
            return Err(refused);
        }
        body["IPAM"]["Config"] = json!([]);
        engine.create_network(&body)?;
        self.trouble(format!(
            "the network {name} gets other addresses: {refused:#}"
        ));
        Ok(())
    }

    /// Whether a network of that name comes to light in a while: a run that was killed may have asked for it,
    /// and the engine be at it still.
    fn network_appears(&self, name: &str) -> bool {
        let name = [name.to_owned()];
        (0..IN_A_WHILE).any(|round| {
            if round > 0 {
                thread::sleep(A_MOMENT);
            }
            let found = self.r.engine.inspect_networks(&name);
            found.is_ok_and(|found| !found.is_empty())
        })
    }

    /// What one thing comes to keeps no other from being brought back, as long as the engine answers.
    fn go_on<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(error) => {
                if self.r.engine.list(&self.snapshot().stack).is_err() {
                    return Err(error);
                }
                self.trouble(format!("{error:#}"));
                Ok(None)
            }
        }
    }

    /// A volume is never removed, so one that is missing was removed by somebody: its data is gone.
    pub(super) fn restore_volumes(&mut self, engine: &Restoring) -> Result<()> {
        let Some(volumes) = self.snapshot().volumes.known().cloned() else {
            return Ok(());
        };
        for volume in volumes {
            let name = text(&volume, "Name").to_owned();
            if !self
                .r
                .engine
                .inspect_volumes(std::slice::from_ref(&name))?
                .is_empty()
            {
                continue;
            }
            self.touch();
            self.trouble(format!(
                "the volume {name} is gone with its data; an empty one takes its place"
            ));
            let made = engine.create_volume(&json!({
                "Name": name,
                "Driver": volume["Driver"],
                "DriverOpts": volume["Options"],
                "Labels": volume["Labels"],
            }));
            self.go_on(made)?;
        }
        Ok(())
    }

    /// Again where something came or went meanwhile: what a run that was killed had asked for is done by
    /// the engine all the same.
    pub(super) fn restore_containers(&mut self, engine: &Restoring) -> Result<()> {
        let known = self.trouble.len();
        for _ in 0..ROUNDS {
            self.trouble.truncate(known);
            let stand = self.restore_once(engine)?;
            let there = self.there()?;
            let there = there.iter().map(Inspected).filter(|one| !one.is_going());
            if stand == there.map(|one| one.id().to_owned()).collect() {
                break;
            }
        }
        Ok(())
    }

    /// Gives the ids of all that stand for saved ones, whatever state they are in.
    fn restore_once(&mut self, engine: &Restoring) -> Result<BTreeSet<String>> {
        let there = self.there()?;
        let snapshot = self.snapshot().clone();
        let plan = Plan::new(&snapshot, &there);
        let containers = saved(&snapshot);
        for (id, name) in &plan.remove {
            self.refuse_strangers(&there, id, name)?;
            self.touch();
            self.say(Event::Step("remove", name.clone()));
            let removed = engine.remove_container(id);
            self.go_on(removed)?;
        }
        let mut ids = NewIds::new();
        let mut stand = BTreeSet::new();
        for &index in &plan.order {
            let container = containers[index];
            let id = if let Some(id) = plan.keep.get(&index) {
                Some(id.clone())
            } else {
                let made = self.create_container(engine, container, &ids, &mut stand);
                self.go_on(made)?.flatten()
            };
            if let Some(id) = id {
                stand.insert(id.clone());
                ids.insert(container.id().to_owned(), id);
            }
        }
        for &index in &plan.order {
            let container = containers[index];
            if let Some(id) = ids.get(container.id()) {
                let done = self.restore_state(engine, container, id);
                self.go_on(done)?;
            }
        }
        if plan.keep.keys().any(|&kept| containers[kept].is_running()) {
            thread::sleep(REMOVAL);
        }
        Ok(stand)
    }

    /// Makes a container again and connects it to its networks. `None` where its image is gone, or the
    /// container that it shares with.
    fn create_container(
        &mut self,
        engine: &Restoring,
        container: Inspected,
        ids: &NewIds,
        stand: &mut BTreeSet<String>,
    ) -> Result<Option<String>> {
        let Some(image) = self.image_of(container)? else {
            self.trouble(format!(
                "the container {} cannot be brought back: its image {} ({}) is gone",
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
                "the container {} cannot be brought back without {other}, with which it shares",
                container.name()
            ));
            return Ok(None);
        }
        self.touch();
        self.say(Event::Step("create", container.name().to_owned()));
        let recipe = container.recipe(&image, ids);
        let id = engine.create_container(container.name(), None, &recipe.body)?;
        stand.insert(id.clone());
        for (network, endpoint) in &recipe.connect {
            engine.connect(network, &id, endpoint)?;
        }
        Ok(Some(id))
    }

    /// The image's name where it still means the same image, else its id; `None` where it is gone.
    fn image_of(&self, container: Inspected) -> Result<Option<String>> {
        let (id, name) = (container.image_id(), container.image_name());
        for asked in [name, id] {
            let found = if asked.is_empty() {
                Vec::new()
            } else {
                self.r.engine.inspect_images(&[asked.to_owned()])?
            };
            if found.first().is_some_and(|image| text(image, "Id") == id) {
                return Ok(Some(asked.to_owned()));
            }
        }
        Ok(None)
    }

    /// Running, paused or stopped, as it was.
    fn restore_state(&mut self, engine: &Restoring, wanted: Inspected, id: &str) -> Result<()> {
        let inspected = self.r.engine.inspect_containers(&[id.to_owned()])?;
        let now = inspected
            .first()
            .map(Inspected)
            .ok_or_else(|| anyhow!("the container {} went away", wanted.name()))?;
        if now.is_paused() && !wanted.is_paused() {
            self.touch();
            self.say(Event::Step("unpause", wanted.name().to_owned()));
            engine.unpause(id)?;
        }
        match (wanted.is_running(), now.is_running()) {
            (true, false) => {
                self.touch();
                self.say(Event::Step("start", wanted.name().to_owned()));
                engine.start(id)?;
            }
            (false, true) => {
                self.touch();
                self.say(Event::Step("stop", wanted.name().to_owned()));
                engine.stop(id, now.stop_grace())?;
            }
            _ => {}
        }
        if wanted.is_paused() && !now.is_paused() {
            self.touch();
            self.say(Event::Step("pause", wanted.name().to_owned()));
            engine.pause(id)?;
        }
        Ok(())
    }

    /// Every container against the snapshot.
    pub(super) fn verify(&mut self) -> Result<()> {
        let there = self
            .there()
            .context("failed to look at what was brought back")?;
        let snapshot = self.snapshot().clone();
        let mut running = 0;
        let mut wrong = std::mem::take(&mut self.trouble);
        let containers = saved(&snapshot);
        for wanted in &containers {
            let now = there
                .iter()
                .map(Inspected)
                .find(|now| now.name() == wanted.name());
            let Some(now) = now else {
                wrong.push(format!("{} is not there", wanted.name()));
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
            self.say(Event::Verified {
                containers: containers.len(),
                running,
            });
            return Ok(());
        }
        Err(Failure::new("not everything is as it was")
            .details(wrong.join("\n"))
            .hint("mend what is named, then run again: it goes on from here")
            .into())
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
