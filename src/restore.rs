//! Restores the containers that ran before, from a snapshot: as they ran, not as a Compose file describes them.
//!
//! Plans again at each step, so that the next run can finish what a killed run began. Volumes are never removed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::{
    after::Limits,
    finding::Finding,
    model::{Container, Deployment, Record, Rights, is_portainers},
    plan::Sent,
    portainer::{Contents, Repository},
    run::{self, Consent, Listener, Peers, Purpose, Run, Setup, State, Stopped, Witness},
    snapshot::{Saved, SavedRecord, Snapshot, Unanswered},
    stack::{Stack, StackName},
};
pub use check::{Needs, deleted_sources};
use containers::image_of;
use plan::{Plan, own};
use record::without_portainer;

mod asking;
mod check;
mod compare;
mod containers;
mod files;
mod memory;
mod named;
mod namespaces;
mod networks;
mod plan;
mod recipe;
mod record;
mod replaced;
mod steps;
#[cfg(test)]
mod tests;
mod verify;
mod volumes;
mod waves;

/// The input of a restore.
pub struct Restore<'a> {
    pub name: &'a StackName,
    /// The stack's directory. It need not exist.
    pub dir: &'a Path,
    /// The Compose file's name in the directory; `None` for the name in the snapshot.
    pub file: Option<&'a str>,
    /// The ID of the snapshot; `None` for the newest of a state that ran whole (B15).
    pub snapshot: Option<&'a str>,
    pub scope: Scope,
    /// Whether to restore what is possible if something that the restore needs is missing (B16).
    pub force: bool,
    /// How long a container that is unhealthy may take to become healthy again. It fails at once without.
    pub unhealthy: Duration,
    /// Whether to ask before something is interrupted or lost (B08).
    pub consent: Consent<'a>,
    pub cause: Cause,
    /// The password for the repository of a Git stack that is recreated: a snapshot does not contain it.
    pub git_password: Option<SecretString>,
    /// Whether to show what it would do, and to change nothing.
    pub dry_run: bool,
}

/// What is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The Portainer stack and the containers.
    Everything,
    /// The containers only: nothing is sent to Portainer (B19).
    EngineOnly,
    /// The containers only: the Portainer stack stays as it is. To delete it removes its containers (N07).
    Containers,
}

/// Why a stack is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The user asked for it.
    Wanted,
    /// An earlier run left the stack incomplete, and another procedure needs it whole: asks in any case.
    Unfinished,
    /// The run itself changed something and failed: does not ask. Its state stays until the first change of the restore.
    Failure,
}

/// The change to the Portainer stack.
#[derive(Clone)]
enum RecordStep {
    Nothing,
    /// None, because there is no record: an earlier run of the restore may have deleted it.
    Gone,
    /// None, because the snapshot contains no data about the record.
    Unknown,
    /// None, because Portainer must not be contacted.
    Skipped,
    /// None, because the API key may not see or change the Portainer stack (B24).
    OutOfReach(Rights),
    /// None, because only the containers are restored: the record that stays.
    Stays(Option<Record>),
    /// None, because the saved text could not be deployed (B40): Portainer would remove every container first (N07).
    Undeployable,
    /// Delete a record that was created since, with its containers (N07).
    Delete(Record),
    /// Update the text and variables (M16).
    Update(Record, Contents),
    /// Create a record with the old text and variables, or the variables and the repository that it came from.
    Create(Contents, Option<Repository>),
    /// Stop a record that was stopped. Portainer removes its containers.
    Stop(Record),
    /// Restore only the access rights.
    Access(Record),
}

/// What exists, and what the restore will do about it.
struct Planned {
    record: RecordStep,
    /// The inspect objects of the containers.
    existing: Vec<Container>,
    containers: Plan,
    /// The networks that are replaced, by name.
    networks: BTreeSet<String>,
    /// See [`Restoration::keeps_containers`].
    keeps: bool,
    /// What the restore needs and is missing (B16).
    problems: Vec<Finding>,
}

impl Planned {
    /// Whether the restore changes anything in Portainer or Docker.
    fn has_changes(&self) -> bool {
        self.record.sends()
            || !self.containers.is_empty()
            || !self.containers.changing.is_empty()
            || !self.problems.is_empty()
    }

    /// Whether a container is removed, or Portainer may remove it.
    fn touches(&self) -> bool {
        let Plan { keep, remove, .. } = &self.containers;
        !remove.is_empty() || (self.record.replaces_containers() && !keep.is_empty())
    }
}

impl RecordStep {
    /// The record that the step changes.
    fn record(&self) -> Option<&Record> {
        match self {
            Self::Delete(record)
            | Self::Update(record, _)
            | Self::Stop(record)
            | Self::Access(record) => Some(record),
            _ => None,
        }
    }

    /// Whether the step sends something that changes Portainer.
    fn sends(&self) -> bool {
        self.record().is_some() || self.replaces_containers()
    }

    /// Whether Portainer removes all of the stack's containers. It does so with a record in error before it updates it
    /// (N07).
    fn removes_containers(&self, snapshot: &Snapshot) -> bool {
        let saved = snapshot.record.found();
        let stops = saved.is_some_and(|saved| saved.inactive == Some(true));
        match self {
            Self::Delete(_) | Self::Stop(_) => true,
            Self::Update(record, _) if matches!(record.deployment, Deployment::Failed(_)) => true,
            Self::Update(..) | Self::Create(..) => stops,
            _ => false,
        }
    }

    /// Whether Portainer deploys the stack, and does not remove its containers with it.
    fn deploys(&self, snapshot: &Snapshot) -> bool {
        matches!(self, Self::Update(..) | Self::Create(..)) && !self.removes_containers(snapshot)
    }

    /// Whether Portainer removes or recreates the stack's containers, or may do so.
    fn replaces_containers(&self) -> bool {
        matches!(
            self,
            Self::Delete(_) | Self::Stop(_) | Self::Update(..) | Self::Create(..)
        )
    }
}

/// Restores the stack. Returns whether there was anything to change.
pub fn run(
    restore: &Restore,
    peers: &Peers,
    setup: &Setup,
    listener: &mut Listener,
) -> Result<bool, Stopped> {
    let procedure = |run: &mut Run| within(restore, run);
    let purpose = if restore.dry_run {
        Purpose::Read
    } else {
        Purpose::Change
    };
    run::under_lock(restore.dir, purpose, peers, setup, listener, procedure)
}

/// Restores the stack as a part of a run that holds the locks. Returns whether there was anything to change.
pub fn within(restore: &Restore, run: &mut Run) -> Result<bool> {
    run.engine.refuse_podman()?;
    let saved = choose(restore, run)?;
    if run.store().is_elsewhere(&saved) {
        let id = &saved.id;
        run.warn(format!("snapshot {id} was taken on a Docker engine with another ID: check that this is the same host"));
    }
    run.restores(&saved);
    run.restoring = flags(restore, &saved);
    let mut procedure = Restoration {
        restore,
        saved: &saved,
        run,
        touched: false,
        engine_only: false,
        endpoint: saved.snapshot.endpoint,
        elsewhere: None,
        kept: BTreeMap::new(),
        filled: BTreeSet::new(),
        kept_edit: None,
        trouble: Vec::new(),
        refused: None,
        before: Vec::new(),
    };
    let ended = procedure.steps();
    procedure.run.restoring = None;
    // An error that ended it early does not contain them.
    for what in std::mem::take(&mut procedure.trouble) {
        procedure.run.warn(what);
    }
    // An adoption that restores names them itself.
    let is_run = !restore.dry_run && restore.cause != Cause::Failure;
    if is_run && (ended.is_ok() || procedure.touched) {
        procedure.name_foreign();
    }
    ended
}

/// The flags that choose what is restored, if the restore is not a part of a run that failed.
fn flags(restore: &Restore, saved: &Saved) -> Option<Vec<String>> {
    let is_chosen = restore.cause == Cause::Wanted && restore.snapshot.is_some();
    let to = is_chosen.then(|| ["--to".to_owned(), saved.id.clone()]);
    let only = (restore.scope == Scope::EngineOnly).then(|| "--engine-only".to_owned());
    let flags = to.into_iter().flatten().chain(only).collect();
    (restore.cause != Cause::Failure).then_some(flags)
}

/// What a restore could not bring back if every container was removed now (B16). `texts` are what Portainer has, and the Compose
/// file.
pub fn check_ahead(found: &Needs, texts: &[Sent]) -> Result<Vec<Finding>> {
    let containers = namespaces::repaired(found.engine, found.containers, found.tool, texts)?;
    let all: Vec<&Container> = containers.iter().collect();
    let needs = Needs {
        containers: &containers,
        ..*found
    };
    needs.missing(&all, (&all, &all, &BTreeSet::new()))
}

fn choose(restore: &Restore, run: &Run) -> Result<Saved> {
    let mut saved = run.store().choose(restore.snapshot)?;
    let snapshot = &mut saved.snapshot;
    if let Some(containers) = snapshot.containers.known_mut() {
        let record = snapshot.record.found();
        let record = record.map(|record| Sent::new(&record.text, &record.env));
        let file = Sent::new(&snapshot.compose.text, &[]);
        let texts: Vec<Sent> = record.into_iter().chain([file]).collect();
        *containers = namespaces::repaired(run.engine, containers, &snapshot.tool, &texts)?;
    }
    Ok(saved)
}

struct Restoration<'s, 'a, 'r> {
    restore: &'s Restore<'s>,
    saved: &'s Saved,
    run: &'r mut Run<'a>,
    /// Whether anything was changed.
    touched: bool,
    /// Whether the Portainer stack is left out, because of `--engine-only` or because the key does not see it (B24).
    engine_only: bool,
    /// The environment whose stack is restored (B37).
    endpoint: i64,
    /// Why this environment may not be this host.
    elsewhere: Option<Finding>,
    /// The volumes that no restored container will use, and that were said to be kept: by name, how they were named.
    kept: BTreeMap<String, String>,
    /// The IDs of the containers into which this run copied the saved files.
    filled: BTreeSet<String>,
    /// The snapshot of what it replaces (B17), if that was edited in Portainer (B22).
    kept_edit: Option<String>,
    /// What failed without stopping the restore.
    trouble: Vec<String>,
    /// A container that the engine refused to create or to start.
    refused: Option<String>,
    /// The inspect objects of the stack's containers before the first change.
    before: Vec<Container>,
}

impl<'s> Restoration<'s, '_, '_> {
    /// The time limits of waits that begin now.
    fn limits(&self) -> Limits {
        let now = Instant::now();
        Limits {
            deadline: now + self.run.timeout(),
            unhealthy: now + self.restore.unhealthy,
            option: "--timeout",
        }
    }

    fn steps(&mut self) -> Result<bool> {
        self.hide_secrets();
        if self.restore.dry_run {
            for Unanswered { request, .. } in self.run.store().unanswered()? {
                let doing = request.doing();
                self.run.warn(format!(
                    "an interrupted run was {doing}: the restore first waits for Portainer to finish, and may then have more to do"
                ));
            }
        } else {
            self.settle()?;
        }
        self.require_containers()?;
        self.run.engine.require_api()?;
        let planned = self.plan()?;
        self.check(&planned)?;
        self.show_plan(&planned);
        let has_changes = planned.has_changes();
        let Some(planned) = self.save_what_is_replaced(planned)? else {
            return Ok(has_changes);
        };
        let own = own(self.snapshot(), &planned.existing).into_iter();
        self.before = own.cloned().collect();
        self.hold_volumes(&planned)?;
        let mut now = Vec::new();
        if planned.keeps {
            self.restore_containers()?;
            now = self.existing()?;
        }
        // A deployment that fails removes every container (M06).
        let why = self.prevents(&planned.record, now.iter());
        let refused = self.refused.as_ref();
        let refused = refused.map(|name| format!("Docker refused {name}"));
        if let Some(why) = why.or(refused) {
            self.trouble.push(format!(
                "the Portainer stack is not restored: its deployment would fail, because {why}"
            ));
        } else {
            self.restore_record(&planned.record)?;
            self.restore_containers()?;
        }
        if self.restore.scope != Scope::EngineOnly {
            self.settle()?;
        }
        self.verify(&planned.record)?;
        Ok(has_changes)
    }

    /// Reads what exists, and plans.
    fn plan(&mut self) -> Result<Planned> {
        let record = self.look_at_record()?;
        self.engine_only = match &record {
            RecordStep::Skipped | RecordStep::OutOfReach(_) => true,
            RecordStep::Stays(None) => !self.run.sees_every_stack,
            _ => false,
        };
        let existing = self.existing()?;
        let networks = self.networks_to_replace(&existing)?;
        let incomplete = self.incomplete(&existing);
        let mut planned = Planned {
            keeps: self.keeps_containers(&record),
            record,
            containers: Plan::new(self.snapshot(), &existing, (&networks, &incomplete)),
            existing,
            networks,
            problems: Vec::new(),
        };
        planned.problems = self.problems(&planned)?;
        Ok(planned)
    }

    /// Whether Portainer deploys a text, and keeps the containers that run as the text says (M05). Restored before that, they
    /// stop only once. What could make the deployment fail, or recreate one, comes first: then they are restored after it.
    fn keeps_containers(&self, record: &RecordStep) -> bool {
        let engine = self.run.engine;
        let has_its_image = |one: &Container| {
            image_of(engine, one).is_ok_and(|image| image.as_deref() == Some(one.image_name()))
        };
        let is_safe = |one: &Container| {
            one.is_running()
                && !one.is_paused()
                && one.health() != Some("unhealthy")
                && one.shares_with().is_empty()
                && self.is_deployed(one)
                && has_its_image(one)
        };
        record.deploys(self.snapshot())
            && !matches!(record, RecordStep::Create(_, Some(_)))
            && self.snapshot().containers.items().iter().all(is_safe)
    }

    /// Whether Portainer deployed a saved container, and nobody by hand since. One that an adoption kept is of the text that was
    /// last sent, and not of one that was edited in Portainer since.
    fn is_deployed(&self, saved: &Container) -> bool {
        let snapshot = self.snapshot();
        let label = |name| saved.label(&snapshot.label(name));
        let last = &snapshot.last_sent;
        let is_last_sent = |record: &SavedRecord| last.has(&record.text, &record.env);
        let is_kept = label("config-hash")
            .zip(last.hashes.as_ref())
            .is_some_and(|(hash, all)| all.contains(hash))
            && snapshot.record.found().is_some_and(is_last_sent);
        is_kept || label("project.working_dir").is_some_and(is_portainers)
    }

    /// Hides the values of the `.env` and of the Portainer stack in the snapshot, and of the `.env` that exists now (B13).
    fn hide_secrets(&mut self) {
        let snapshot = self.snapshot();
        let env = snapshot.env.as_ref().map(|file| file.text.as_str());
        let record = snapshot.record.found();
        self.run
            .hide(env, record.map_or(&[][..], |record| &record.env));
        if let Some(password) = &self.restore.git_password {
            self.run.hide_secret(password.expose_secret());
        }
        // If it cannot be read, its values are unknown here, and the snapshot that the restore takes says so.
        if let Ok(env) = self.stack().read_env(".env") {
            self.run.hide(env.as_deref(), &[]);
        }
    }

    /// The stack on disk, whose files may be gone.
    fn stack(&self) -> Stack {
        let restore = self.restore;
        let file = restore.file.unwrap_or(&self.snapshot().compose.name);
        Stack::at(restore.name.clone(), restore.dir, file)
    }

    /// Waits for the requests whose end is unknown (B11).
    fn settle(&mut self) -> Result<()> {
        if self.restore.scope == Scope::EngineOnly {
            return self.run.settle(Witness::EngineAlone);
        }
        let settled = self.run.settle(Witness::PortainerAndEngine);
        settled.map_err(|error| match self.find_record() {
            Ok(_) => error,
            Err(_) => without_portainer(error),
        })
    }

    fn snapshot(&self) -> &'s Snapshot {
        &self.saved.snapshot
    }

    /// Sets the state before the first change.
    fn touch(&mut self) {
        if !self.touched {
            self.touched = true;
            // A mark that is missing only makes the list less exact.
            let _ = self.run.mark_unfinished();
            let id = &self.saved.id;
            let mut command = self.run.undo_command(&self.snapshot().stack, id);
            if self.engine_only {
                command += " --engine-only";
            }
            self.run.set_state(State::new(format!(
                "the stack may be partly restored from snapshot {id}; to continue, run `{command}`"
            )));
        }
    }
}

/// What happens in Portainer. Empty if nothing does.
impl fmt::Display for RecordStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stays(Some(record)) if record.is_from_git() => {
                "the Portainer stack stays as it is, because it is deployed from Git"
            }
            Self::Nothing | Self::Gone | Self::Stays(_) => "",
            Self::OutOfReach(rights) => {
                return write!(f, "the Portainer stack is not restored: {rights}");
            }
            Self::Unknown => {
                "Portainer is left as it is: the snapshot contains no data about the Portainer stack"
            }
            Self::Skipped => "Portainer is left as it is, because of --engine-only",
            Self::Undeployable => {
                "Portainer is left as it is: it could not deploy the Compose file that it had then"
            }
            Self::Delete(_) => "the Portainer stack is deleted",
            Self::Update(..) => "the Portainer stack gets its Compose file and variables back",
            Self::Create(_, Some(git)) => {
                let webhook = if git.has_webhook { " and without its webhook" } else { "" };
                return write!(f, "the Portainer stack is recreated from {git} as it is now, with a new ID{webhook}");
            }
            Self::Create(_, None) => "the Portainer stack is recreated, with a new ID",
            Self::Stop(_) => "the Portainer stack is stopped",
            Self::Access(_) => "the Portainer stack gets its access rights back",
        })
    }
}

/// The text of a field, or an empty one.
fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
