//! Reads everything that the plan of a migration needs, before anything is written.
//!
//! Only Portainer's list of stacks must be readable. Everything else that cannot be read is unknown: a warning says why,
//! and the plan says what that means.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
};

use anyhow::Result;
use serde_json::Value;

use super::{Procedure, Rewrite};
use crate::{
    compose::{self, Checked, Rejection},
    engine::{Engine, in_parallel},
    failure::Failure,
    model::{Changes, Container, Record},
    plan::{self, Environment},
    portainer::{self, Contents, EngineOf, Standing},
    rewrite::env::stack_env,
    run::Seen,
    snapshot::Known,
    stack::Source,
    text::Mask,
};

/// What exists before the first destructive act.
pub(super) struct Before {
    /// The Portainer stack that will be deleted (C51).
    pub(super) record: Option<Record>,
    /// Its text and variables, and its standing, if they could be read.
    pub(super) contents: Option<(Contents, Standing)>,
    /// The containers that will be removed; `None` if they could not be listed, which is tolerated (C52).
    pub(super) containers: Option<Vec<Container>>,
    /// The same containers, and those of the project that Portainer will use if it renames the stack (B10).
    pub(super) all: Option<Vec<Container>>,
    /// All other containers of the engine.
    pub(super) others: Option<Vec<Container>>,
    /// The environment, if it was asked for.
    pub(super) environment: Environment,
    /// Read only if there is something to destroy.
    pub(super) details: Details,
}

/// What the engine knows of the containers and of everything around them.
#[derive(Default)]
pub(super) struct Details {
    /// The inspect objects of [`Before::all`].
    pub(super) containers: Option<Vec<Value>>,
    pub(super) changes: BTreeMap<String, Known<Changes>>,
    pub(super) images: BTreeMap<String, Option<Value>>,
    pub(super) networks: Option<BTreeSet<String>>,
    pub(super) volumes: Option<BTreeSet<String>>,
    /// Why the Compose program of this host rejects what will be sent.
    pub(super) rejection: Option<Rejection>,
}

impl Before {
    /// Whether something will be destroyed, as far as that is known.
    pub(super) fn destroys(&self) -> bool {
        self.record.is_some() || self.all.as_ref().is_none_or(|all| !all.is_empty())
    }

    /// Whether the containers are known with all they could lose.
    pub(super) fn is_known(&self) -> bool {
        self.all
            .as_ref()
            .is_some_and(|all| all.is_empty() || self.details.containers.is_some())
    }

    /// What a snapshot that follows at once need not read again.
    pub(super) fn take_seen(&mut self) -> Seen {
        Seen {
            record: self.contents.take(),
            containers: self.details.containers.take(),
            changes: std::mem::take(&mut self.details.changes),
        }
    }
}

impl Procedure<'_, '_> {
    /// The Portainer stack to delete (C50), the containers to remove (C52), and everything that the plan needs.
    pub(super) fn observe(
        &mut self,
        records: Vec<Record>,
        source: &Source,
        rewrite: &Rewrite,
    ) -> Before {
        let name = self.m.stack.name();
        let record = self.record_to_delete(records);
        let containers = self.list_before(name.as_str());
        let mut all = containers.clone();
        let project = name.portainer_name();
        if project != name.as_str()
            && let Some(own) = all
        {
            // They are not removed here, but the create may replace them, and a failed create removes them (M05, M06).
            all = self.list_before(&project).map(|more| [own, more].concat());
        }
        let others = match &all {
            Some(all) => self.known(others(self.run.engine, all)),
            None => None,
        };
        let mut before = Before {
            record,
            contents: None,
            containers,
            all,
            others,
            environment: Environment::SameEngine,
            details: Details::default(),
        };
        if before.destroys() {
            let images = plan::image_references(rewrite.sent(), &project);
            let env = stack_env(&rewrite.env.variables);
            let input = compose::Input::Sent {
                project: &project,
                text: &rewrite.text,
                env: &env,
            };
            let mask = rewrite.mask(source);
            self.read_details(&mut before, images.into_iter().collect(), (&input, &mask));
        }
        before
    }

    /// The first record of this name and environment. Warns of one on another environment.
    fn record_to_delete(&mut self, records: Vec<Record>) -> Option<Record> {
        let name = self.m.stack.name().as_str();
        let (here, elsewhere): (Vec<_>, Vec<_>) = records
            .into_iter()
            .filter(|record| record.name == name)
            .partition(|record| record.endpoint_id == self.m.endpoint);
        if let Some(other) = elsewhere.first() {
            self.run.warn(format!(
                "Portainer stack {} on environment {} has the same name and will not be changed; Portainer may refuse a second stack with that name",
                other.id, other.endpoint_id
            ));
        }
        here.into_iter().next()
    }

    /// Lists the containers before anything is touched. A failure is tolerated (C52), and said with what it means.
    fn list_before(&mut self, project: &str) -> Option<Vec<Container>> {
        match self.run.engine.list(project) {
            Ok(containers) => Some(containers),
            Err(error) => {
                self.run.warn(format!(
                    "{}; continuing, but the stack's containers are unknown: what they will lose cannot be listed, and they cannot be rolled back",
                    with_hint(&error)
                ));
                None
            }
        }
    }

    /// The project names that the containers may have: the stack's name, and the name that Portainer gives it (B10).
    pub(super) fn projects(&self) -> Vec<String> {
        let name = self.m.stack.name();
        let mut projects = vec![name.as_str().to_owned(), name.portainer_name()];
        projects.dedup();
        projects
    }

    /// Reads from Portainer and from the engine, and asks Compose, side by side.
    fn read_details(
        &mut self,
        before: &mut Before,
        images: BTreeSet<String>,
        (input, mask): (&compose::Input, &Mask),
    ) {
        self.run.wait("inspecting what exists");
        let (portainer, engine) = (self.run.portainer, self.run.engine);
        let all = before.all.as_deref().unwrap_or_default();
        let asks_role = before.record.is_none() && !all.is_empty();
        let record = before.record.as_ref();
        let endpoint = self.m.endpoint;
        let host = self.m.compose;
        let (details, checked, (contents, environment, role)) = thread::scope(|scope| {
            let details = scope.spawn(move || Reader::new(engine).read(all, images));
            let checked = scope.spawn(move || Some(host.compose()?.check(input, mask)));
            let contents = record.map(|record| portainer.read(&record.id));
            let environment = environment(portainer, engine, endpoint);
            let role = asks_role.then(|| portainer.is_administrator());
            let (details, checked) = (details.join(), checked.join());
            (details, checked, (contents, environment, role))
        });
        // A panic in a thread is a bug: continue it here.
        let (details, failures) = details.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let checked = checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for failure in failures {
            self.run.warn(with_hint(&failure));
        }
        before.contents = contents.and_then(|contents| self.known(contents));
        if let Some((contents, _)) = &before.contents {
            self.run.hide(None, &contents.env);
        }
        before.environment = environment;
        before.details = details;
        if let Some(Checked::Rejected(rejection)) = checked.and_then(|checked| self.known(checked))
        {
            before.details.rejection = Some(rejection);
        }
        if let Some(Ok(Some(false))) = role {
            self.run.warn(format!(
                "the API key does not belong to an administrator, so Portainer may not list every stack; if Portainer already has a stack {}, the create will fail after the containers were removed (use an administrator's API key)",
                self.m.stack.name()
            ));
        }
    }

    /// The value, or `None` with a warning.
    fn known<T>(&mut self, read: Result<T>) -> Option<T> {
        read.map_err(|error| self.run.warn(with_hint(&error))).ok()
    }
}

/// The message of an error with its hint, as a warning.
pub(super) fn with_hint(error: &anyhow::Error) -> String {
    match Failure::hint_of(error) {
        Some(hint) => format!("{error:#} ({hint})"),
        None => format!("{error:#}"),
    }
}

/// The containers of the engine that are not among `own`.
fn others(engine: &Engine, own: &[Container]) -> Result<Vec<Container>> {
    let mut others = engine.list_all()?;
    let is_own = |other: &Container| own.iter().any(|own| other.id.starts_with(&own.id));
    others.retain(|other| !is_own(other));
    Ok(others)
}

/// Compares the engine of the environment with the engine of this host (B03, M17).
fn environment(portainer: &portainer::Reader, engine: &Engine, endpoint: i64) -> Environment {
    match portainer.engine_of(endpoint) {
        Ok(EngineOf::Engine(theirs)) => match engine.id() {
            Ok(ours) if ours == theirs => Environment::SameEngine,
            Ok(_) => Environment::OtherEngine,
            Err(error) => Environment::Unknown(format!("{error:#}")),
        },
        Ok(EngineOf::Unnamed) => {
            Environment::Unknown("Portainer's response contains no engine ID".to_owned())
        }
        Ok(EngineOf::NoEnvironment) => Environment::NotFound,
        Ok(EngineOf::Forbidden(status)) => Environment::Forbidden(status),
        Err(error) => Environment::Unknown(format!("{error:#}")),
    }
}

/// Reads the [`Details`] and keeps the reasons of the reads that failed.
struct Reader<'a> {
    engine: &'a Engine,
    failures: Vec<anyhow::Error>,
}

impl<'a> Reader<'a> {
    fn new(engine: &'a Engine) -> Self {
        Self {
            engine,
            failures: Vec::new(),
        }
    }

    fn read(
        mut self,
        all: &[Container],
        mut images: BTreeSet<String>,
    ) -> (Details, Vec<anyhow::Error>) {
        let ids: Vec<String> = all.iter().map(|container| container.id.clone()).collect();
        let containers = self.engine.inspect_containers(&ids);
        let containers = self.known(containers);
        let inspected = containers.as_deref().unwrap_or_default();
        images.extend(inspected.iter().filter_map(image_of));
        let engine = self.engine;
        let changes = in_parallel(inspected, |container| {
            let id = container["Id"].as_str()?;
            Some((id.to_owned(), Known::from_result(engine.changes(id))))
        });
        let details = Details {
            changes: changes.into_iter().flatten().collect(),
            images: self.images(images),
            networks: self.networks(),
            volumes: self.volumes(),
            containers,
            rejection: None,
        };
        (details, self.failures)
    }

    /// One request per image: the response does not say which reference it belongs to.
    fn images(&mut self, references: BTreeSet<String>) -> BTreeMap<String, Option<Value>> {
        let mut images = BTreeMap::new();
        for reference in references {
            let asked = [reference];
            match self.engine.inspect_images(&asked) {
                Ok(found) => {
                    let [reference] = asked;
                    images.insert(reference, found.into_iter().next());
                }
                Err(error) => {
                    self.failures.push(error);
                    break;
                }
            }
        }
        images
    }

    fn networks(&mut self) -> Option<BTreeSet<String>> {
        let names = self.engine.network_names();
        self.known(names)
    }

    fn volumes(&mut self) -> Option<BTreeSet<String>> {
        let names = self.engine.volume_names();
        self.known(names)
    }

    fn known<T>(&mut self, read: Result<T>) -> Option<T> {
        read.map_err(|error| self.failures.push(error)).ok()
    }
}

fn image_of(container: &Value) -> Option<String> {
    container["Image"].as_str().map(str::to_owned)
}
