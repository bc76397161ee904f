//! The steps of a restore that remove, create and start containers. Those that are independent of each other are
//! handled at the same time.

use std::{collections::BTreeSet, thread, time::Duration};

use anyhow::{Result, bail};

use super::{
    Restoration,
    files::{LayerFiles, fill},
    plan::{Plan, StateChange, changes, own},
    recipe::NewIds,
    text,
};
use crate::{
    after::{Limits, wait_for},
    backoff::Backoff,
    engine::{Engine, EngineReader, Rejected},
    model::{Condition, Container},
    parallel::in_parallel,
    snapshot::Layer,
    text::counted,
};

/// How many times the containers are restored at most.
const ROUNDS: usize = 3;

/// The changes to one container, and what it waits for before them.
struct Task<'s> {
    container: &'s Container,
    id: String,
    /// The files to copy into it first.
    layer: Option<&'s Layer>,
    changes: Vec<StateChange>,
    waits: Vec<(&'s str, Option<String>, Condition)>,
}

/// The containers after those that were missing have been created.
struct AllCreated {
    /// The new IDs by the saved ones.
    ids: NewIds,
    /// The IDs of all containers that replace saved ones, in any state.
    restored: BTreeSet<String>,
    /// Whether a name was in use: a create reserves it at its beginning, and the engine lists the container at its end.
    meets_reserved_name: bool,
}

impl Restoration<'_, '_, '_> {
    /// Starts over if containers were created or removed in the meantime: the engine finishes the requests of a killed
    /// run.
    pub(super) fn restore_containers(&mut self) -> Result<()> {
        let known = self.trouble.len();
        for _ in 0..ROUNDS {
            self.trouble.truncate(known);
            self.refused = None;
            let (created, keeps_running) = self.restore_once()?;
            let looks = match (created.meets_reserved_name, keeps_running) {
                (true, _) => 50,
                (false, true) => 3,
                (false, false) => 0,
            };
            if !self.containers_change(&created.restored, looks)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there are other containers than `restored`. Looks for half a second (3) if one was kept while it ran: the
    /// engine does not show that a container is being removed until it has stopped. Looks for 10 seconds (50) if a name is
    /// in use.
    fn containers_change(&self, restored: &BTreeSet<String>, looks: usize) -> Result<bool> {
        let restored: BTreeSet<&str> = restored.iter().map(String::as_str).collect();
        let mut pauses =
            Backoff::new(Duration::from_millis(100), Duration::from_millis(200)).take(looks);
        loop {
            let existing = self.existing()?;
            let now = own(self.snapshot(), &existing)
                .into_iter()
                .filter(|container| !container.is_being_removed());
            if now.map(Container::id).collect::<BTreeSet<_>>() != restored {
                return Ok(true);
            }
            let Some(pause) = pauses.next() else {
                return Ok(false);
            };
            thread::sleep(pause);
        }
    }

    /// Returns also whether a running container was kept.
    fn restore_once(&mut self) -> Result<(AllCreated, bool)> {
        let existing = self.existing()?;
        let replaced = self.networks_to_replace(&existing)?;
        let snapshot = self.snapshot();
        let incomplete = self.incomplete(&existing);
        let plan = Plan::new(snapshot, &existing, (&replaced, &incomplete));
        self.stop(&plan, &existing);
        self.remove(&plan)?;
        self.remove_networks(&replaced)?;
        self.restore_networks()?;
        self.restore_volumes()?;
        let created = self.create(&plan)?;
        self.restore_states(&plan, &created.ids)?;
        let containers = snapshot.containers.items();
        let keeps_running = plan.keep.keys().any(|&kept| containers[kept].is_running());
        Ok((created, keeps_running))
    }

    /// Gives the running containers that are removed next the time to shut down. One that fails to stop is removed
    /// all the same. With `--rm`, a stop makes the engine delete the anonymous volumes: such a container is only removed.
    fn stop(&mut self, plan: &Plan, existing: &[Container]) {
        let mut stopped: Vec<&Container> = existing.iter().collect();
        stopped
            .retain(|now| plan.removes(now) && now.state() == "running" && !now.removes_itself());
        if stopped.is_empty() {
            return;
        }
        self.touch();
        let names: Vec<&str> = stopped.iter().map(|now| now.name()).collect();
        for name in &names {
            self.run.detail("stop", *name);
        }
        self.run.wait(format!("stopping {}", names.join(", ")));
        let (engine, note_stop) = (self.run.engine, self.run.note_stops());
        let stop = |now: &&Container| {
            note_stop(now);
            engine.stop_container(now.id(), now.stop_grace())
        };
        let all_stopped = in_parallel(&stopped, stop);
        drop(note_stop);
        for stopped in all_stopped {
            if let Err(error) = stopped {
                self.run
                    .warn(format!("{error:#}; it is removed with SIGKILL"));
            }
        }
    }

    fn remove(&mut self, plan: &Plan) -> Result<()> {
        if plan.remove.is_empty() {
            return Ok(());
        }
        self.touch();
        for (_, name) in &plan.remove {
            self.run.detail("remove", name.clone());
        }
        let engine = self.run.engine;
        for removed in in_parallel(&plan.remove, |(id, _)| engine.remove_container(id)) {
            self.tolerate(removed)?;
        }
        Ok(())
    }

    /// Creates the missing containers.
    fn create(&mut self, plan: &Plan) -> Result<AllCreated> {
        let containers = self.snapshot().containers.items();
        let engine = self.run.engine;
        let kept = plan.keep.iter();
        let mut ids: NewIds = kept
            .map(|(&index, id)| (containers[index].id().to_owned(), id.clone()))
            .collect();
        let mut restored: BTreeSet<String> = plan.keep.values().cloned().collect();
        let mut meets_reserved_name = false;
        for mut wave in plan.dependencies.to_create() {
            wave.retain(|index| plan.create.contains(index));
            let missing = |index: usize| {
                let mut shared = containers[index].shares_with().into_iter();
                let is_it = |other: &&Container, id| other.id() == id && !ids.contains_key(id);
                shared.find_map(|id| containers.iter().find(|other| is_it(other, id)))
            };
            let (ready, waiting): (Vec<_>, Vec<_>) = wave
                .into_iter()
                .partition(|&index| missing(index).is_none());
            for index in waiting {
                let other = missing(index).map_or("", |other| other.name());
                let name = containers[index].name();
                self.trouble.push(format!(
                    "cannot recreate container {name}: it shares a namespace or volumes with {other}, which does not exist"
                ));
            }
            if ready.is_empty() {
                continue;
            }
            self.touch();
            for &index in &ready {
                self.run.detail("create", containers[index].name());
            }
            let created = in_parallel(&ready, |&index| create(engine, &containers[index], &ids));
            for (index, (new, outcome)) in ready.into_iter().zip(created) {
                restored.extend(new.clone());
                let failure = outcome.as_ref().err();
                meets_reserved_name |= failure.is_some_and(Rejected::is_conflict);
                if failure.is_some_and(Rejected::caused) {
                    self.refused = Some(containers[index].name().to_owned());
                }
                if self.tolerate(outcome)?.is_some() {
                    ids.insert(containers[index].id().to_owned(), new.unwrap_or_default());
                }
            }
        }
        Ok(AllCreated {
            ids,
            restored,
            meets_reserved_name,
        })
    }

    /// Starts, pauses or stops the containers, as they were, in the order of their dependencies.
    fn restore_states(&mut self, plan: &Plan, ids: &NewIds) -> Result<()> {
        let snapshot = self.snapshot();
        let containers = snapshot.containers.items();
        let limits = self.limits();
        let inspected = self.run.engine.inspect_containers(ids.values())?;
        let current: Vec<&Container> = inspected.iter().collect();
        for wave in plan.dependencies.to_start() {
            let mut tasks = Vec::new();
            for index in wave {
                let Some(id) = ids.get(containers[index].id()) else {
                    continue;
                };
                let container = &containers[index];
                let Some(now) = current.iter().find(|now| now.id() == id) else {
                    let name = container.name();
                    self.trouble
                        .push(format!("container {name} was removed during the restore"));
                    continue;
                };
                let changes = changes(container, now);
                let is_new = now.text("/State/Status") == "created" && now.id() != container.id();
                let saved_files = snapshot.layers.get(container.id());
                let starts = changes.contains(&StateChange::Start);
                let needs = plan.dependencies.needs(index).iter().filter(|_| starts);
                let waits = needs.filter_map(|&(need, condition)| {
                    let other = &containers[need];
                    // A job that had ended does not run again, one in a restart loop does not end, and nothing waited for an
                    // unhealthy container.
                    let is_met_again = match condition {
                        Condition::Started => false,
                        Condition::Healthy => other.is_healthy(),
                        Condition::Completed => {
                            other.is_running() && !other.is_in_loop(snapshot.taken_at())
                        }
                    };
                    let id = ids.get(other.id()).cloned();
                    is_met_again.then_some((other.name(), id, condition))
                });
                tasks.push(Task {
                    container,
                    id: id.clone(),
                    layer: saved_files.filter(|layer| is_new && !layer.archive.is_empty()),
                    waits: waits.collect(),
                    changes,
                });
            }
            self.perform(tasks, limits)?;
        }
        Ok(())
    }

    /// Performs the changes of one wave.
    fn perform(&mut self, mut tasks: Vec<Task>, limits: Limits) -> Result<()> {
        tasks.retain(|task| !task.changes.is_empty() || task.layer.is_some());
        if tasks.is_empty() {
            return Ok(());
        }
        self.touch();
        for task in &tasks {
            if let Some(layer) = task.layer {
                let files = counted(layer.files().len(), "file");
                let name = task.container.name();
                self.run.detail("copy", format!("{files} into {name}"));
            }
            for change in &task.changes {
                self.run.detail(change.verb(), task.container.name());
            }
        }
        let awaited = tasks.iter().flat_map(|task| &task.waits);
        let waits: BTreeSet<&str> = awaited.map(|(name, ..)| *name).collect();
        if !waits.is_empty() {
            let names = Vec::from_iter(waits).join(", ");
            self.run.wait(format!("waiting for {names}"));
        }
        let engine = self.run.engine;
        let done = in_parallel(&tasks, |task| perform(engine, task, limits));
        for (task, done) in tasks.into_iter().zip(done) {
            if done.as_ref().err().is_some_and(Rejected::caused) {
                self.refused = Some(task.container.name().to_owned());
            }
            let Some(differ) = self.tolerate(done)? else {
                continue;
            };
            if !differ.is_empty() {
                let (name, files) = (task.container.name(), differ.shown());
                self.trouble.push(format!(
                    "{name} differs: these files inside the container are not as they were: {files}"
                ));
            }
            self.filled.extend(task.layer.map(|_| task.id));
        }
        Ok(())
    }

    /// Keeps an error for the end, as long as the engine responds: one failure does not stop the rest. It names containers
    /// instead of their IDs.
    pub(super) fn tolerate<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        let error = match outcome {
            Ok(done) => return Ok(Some(done)),
            Err(error) => error,
        };
        let Ok(listed) = self.run.engine.list(&self.snapshot().stack) else {
            return Err(error);
        };
        let mut what = format!("{error:#}");
        for container in &listed {
            what = what.replace(container.id(), container.name());
        }
        self.trouble.push(what);
        Ok(None)
    }
}

/// Performs the changes of one container. Returns the copied files that differ from the saved ones.
fn perform(engine: &Engine, task: &Task, limits: Limits) -> Result<LayerFiles> {
    let (name, id) = (task.container.name(), task.id.as_str());
    let copy = |layer| fill(engine, (task.container, id), layer);
    let differ = task.layer.map(copy).transpose()?.unwrap_or_default();
    for (other, other_id, condition) in &task.waits {
        let Some(other_id) = other_id else {
            bail!("{name} was not started: it depends on {other}, which does not exist");
        };
        if let Err(error) = wait_for(engine, (other_id, other), *condition, limits) {
            bail!("{name} was not started: it depends on {other}: {error:#}");
        }
    }
    for change in &task.changes {
        match change {
            StateChange::Unpause => engine.unpause(id)?,
            StateChange::Start => engine.start(id)?,
            StateChange::Stop => engine.stop_container(id, task.container.stop_grace())?,
            StateChange::Pause => engine.pause(id)?,
        }
    }
    Ok(differ)
}

/// Recreates a container and connects it to its networks. Returns the new ID if the container exists, even if the rest
/// failed.
fn create(engine: &Engine, container: &Container, ids: &NewIds) -> (Option<String>, Result<()>) {
    let mut id = None;
    let outcome = (|| {
        let Some(image) = image_of(engine, container)? else {
            bail!(
                "cannot recreate container {}: its image {} ({}) no longer exists",
                container.name(),
                container.image_name(),
                container.image_id()
            );
        };
        let mut recipe = container.recipe(&image, ids);
        if engine.creates_with_networks()? {
            recipe = recipe.at_once();
        }
        let new = engine.create_container(container.name(), &recipe.body)?;
        id = Some(new.clone());
        for (network, endpoint) in &recipe.connect {
            engine.connect(network, &new, endpoint)?;
        }
        if let Some(network) = &recipe.disconnect {
            engine.disconnect(network, &new)?;
        }
        Ok(())
    })();
    (id, outcome)
}

/// The image's name if it still names the same image, otherwise the image's ID. `None` if the image no longer exists.
pub(super) fn image_of(engine: &EngineReader, container: &Container) -> Result<Option<String>> {
    let (id, name) = (container.image_id(), container.image_name());
    for asked in [name, id].into_iter().filter(|asked| !asked.is_empty()) {
        let found = engine.inspect_images([asked])?;
        if found.first().is_some_and(|image| text(image, "Id") == id) {
            return Ok(Some(asked.to_owned()));
        }
    }
    Ok(None)
}
