//! Every stack of this host: found, planned and reported. Reads only.
//!
//! Invariant: the code that plans an adoption decides whether a stack can be adopted.

use std::{
    ffi::OsStr,
    iter,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::{
    adopt, compose,
    engine::EngineReader,
    finding::{Finding, Kind},
    model::{Container, Record, StackKind, WantedAccess, compose_label},
    observe::{Overview, Situation, interrupted, with_hint},
    parallel::{caught, in_parallel_of},
    plan::{AdoptFlags, Plan, Readiness, runs_portainer, unusable},
    portainer::{BaseUrl, PortainerReader, is_rejected_key, other_key},
    report::{
        Containers, InterruptedRun, ListEntry, ListReport, PortainerReport, PortainerStack,
        StackReport, StackState, VERSION,
    },
    run::RestoreCommand,
    snapshot::{Interrupted, Place, Unfinished},
    stack::{Location, Stack, StackName, deeper_dirs, export_words, is_same, started_by_hand},
};

mod found;
mod planned;
mod state;

pub use found::{Files, Found};
pub use planned::{Ways, plan};

use state::{Listed, state};

/// How many stacks are planned at the same time. Each plan runs the Compose program several times.
const PLANNED_AT_ONCE: usize = 4;

/// What is read for all stacks. Nothing here can write.
#[derive(Clone, Copy)]
pub struct Inventory<'a> {
    /// Portainer and the ID of the environment; `None` if Portainer is not asked.
    pub portainer: Option<(&'a PortainerReader, i64)>,
    pub engine: &'a EngineReader,
    pub base_url: &'a BaseUrl,
    pub location: &'a Location,
    pub compose: &'a compose::Installation,
    /// The state directory: snapshots tell where a stack was started.
    pub state: Option<&'a Path>,
    /// The flags of the adoptions that are planned.
    pub flags: AdoptFlags,
    /// The access rights that these adoptions set.
    pub access: Option<&'a WantedAccess>,
    /// The flags of the commands that are printed.
    pub typed: &'a RestoreCommand,
}

impl<'a> Inventory<'a> {
    /// Reads what is the same for every stack.
    pub fn host(&self) -> Overview {
        Overview::read(self.portainer, self.engine)
    }

    /// Every stack of the host, sorted by name. Fails if the stacks root cannot be read.
    pub fn find<'h>(&self, host: &'h Overview) -> Result<Vec<Found<'h>>> {
        found::find(self, host)
    }

    /// The stack in the directory that these containers were started in, or those of an earlier run.
    pub fn stack(&self, name: &StackName, containers: &[Container]) -> Result<Stack> {
        let earlier = || earlier(self.state, name, &self.location.tool);
        Stack::find_started(name, self.location, containers, earlier)
    }

    /// What a plan of one stack reads.
    pub fn situation(&self, stack: &'a Stack) -> Situation<'a> {
        let (portainer, environment) = self.portainer.unzip();
        Situation {
            portainer,
            engine: self.engine,
            stack,
            base_url: self.base_url,
            // Only used with Portainer. It has no environment 0.
            endpoint: environment.unwrap_or_default(),
            tool: &self.location.tool,
            compose: self.compose,
            state: self.state,
            access: self.access,
            git: None,
            typed: self.typed,
        }
    }

    /// Lists every stack. `unasked` is why Portainer is not asked.
    pub fn list(
        &self,
        unasked: Option<&anyhow::Error>,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<ListReport> {
        let root =
            std::path::absolute(&self.location.root).context("failed to resolve --stacks-root")?;
        let host = self.host();
        let rows = self.rows(&host, &self.find(&host)?, |_, _| None::<()>, progress);
        let asked = self.portainer.filter(|_| host.records.is_some());
        Ok(ListReport {
            version: VERSION,
            stacks_root: root.display().to_string(),
            portainer: asked.map(|(_, environment)| PortainerReport {
                url: self.base_url.to_string(),
                version: host.portainer_version.clone(),
                environment,
            }),
            containers_known: host.containers.is_some(),
            stacks: rows.into_iter().map(|(_, entry)| entry).collect(),
            warnings: self.missing(&host, unasked),
        })
    }

    /// What is known of each of these stacks. One for which `leaves` gives a reason is not planned. `progress` is told how many
    /// stacks of all are done.
    pub fn rows<L: Send>(
        &self,
        host: &Overview,
        found: &[Found],
        leaves: impl Fn(&Found, Option<&Unfinished>) -> Option<L> + Sync,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Vec<(Option<L>, ListEntry)> {
        let done = AtomicUsize::new(0);
        in_parallel_of(PLANNED_AT_ONCE, found, |stack| {
            let planned = caught(|| {
                let interrupted = self.interrupted(stack);
                let left = leaves(stack, interrupted.as_ref());
                let adopt = match left {
                    Some(_) => Plan::default(),
                    None => self.plan(stack, host),
                };
                (left, interrupted, adopt)
            });
            let (left, interrupted, adopt) =
                planned.unwrap_or_else(|panic| (None, None, Plan::failed(&panic.into())));
            let entry = self.entry(stack, host, interrupted.as_ref(), adopt);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, found.len());
            (left, entry)
        })
    }

    /// What is known of a stack with this unfinished run. `adopt` is what an adoption would do.
    fn entry(
        &self,
        found: &Found,
        host: &Overview,
        interrupted: Option<&Unfinished>,
        adopt: Plan,
    ) -> ListEntry {
        let mut entry = ListEntry {
            stack: stack_report(found, interrupted, &self.location.tool, self.typed),
            outside_stacks_root: found.is_outside(&self.location.root),
            adopt,
            ..ListEntry::default()
        };
        entry.state = self.state(found, host, &entry, interrupted);
        entry.next_command = self.next(found, &entry);
        entry
    }

    /// The command to run next for a stack.
    fn next(&self, found: &Found, entry: &ListEntry) -> Option<String> {
        let (name, command) = (entry.stack.name.as_str(), self.typed);
        // No command takes another name, which could be an option of one (B45).
        StackName::new(OsStr::new(name)).ok()?;
        let way = &entry.adopt;
        match &entry.stack.interrupted_run {
            Some(InterruptedRun::InProgress) => return None,
            // Its flags are not known.
            Some(InterruptedRun::RunAgain) if found.record.is_some_and(Record::is_from_git) => {
                return None;
            }
            Some(run) if let Some(heals) = run.heals(Some(way)) => {
                return Some(heals.to_owned());
            }
            Some(_) if [Readiness::Ready, Readiness::NothingToDo].contains(&way.readiness) => {
                return Some(command.with(&["adopt", name]));
            }
            _ => {}
        }
        let dir = found.dir().filter(|_| found.needs_dir(self.location));
        let own = || self.location.root.join(name).display().to_string();
        let is_gone = entry.state == StackState::PortainerGone;
        let lost = self.lost_dir(found).or_else(|| is_gone.then(own));
        let export = || export_words(name, lost.as_deref());
        let deeper = self.deeper_dir(found);
        let words = match entry.adopt.readiness {
            _ if self.refusal(found).is_some() => return None,
            Readiness::NothingToDo => return None,
            Readiness::NoFile => match entry.state {
                StackState::Kubernetes => return None,
                StackState::Unknown => vec!["doctor"],
                StackState::PortainerGone => [export(), vec!["--from", "portainer-data"]].concat(),
                _ if let Some(dir) = &deeper => vec!["plan", name, "--dir", dir],
                _ if found.record.is_some() => export(),
                _ => [export(), vec!["--from", "containers"]].concat(),
            },
            Readiness::Unknown => vec!["doctor"],
            _ => match dir {
                Some(dir) => vec!["plan", name, "--dir", dir],
                None => vec!["plan", name],
            },
        };
        Some(command.with(&words))
    }

    /// See [`lost_dir`]. `None` if the stack has files.
    fn lost_dir(&self, found: &Found) -> Option<String> {
        if !matches!(found.files, Files::None) {
            return None;
        }
        let name = StackName::new(OsStr::new(&found.name)).ok()?;
        let earlier = earlier(self.state, &name, &self.location.tool);
        lost_dir((&found.name, self.location), &found.listed(), earlier)
    }

    /// The only directory one level deeper in the stacks root that may have the files of a Portainer stack without files.
    fn deeper_dir(&self, found: &Found) -> Option<String> {
        let record = found
            .record
            .filter(|_| matches!(found.files, Files::None))?;
        let mut dirs = match record.kind {
            StackKind::Compose => deeper_dirs(&record.name, self.location),
            StackKind::Swarm | StackKind::Kubernetes => Vec::new(),
        };
        let dir = dirs.pop().filter(|_| dirs.is_empty())?;
        dir.to_str().map(str::to_owned)
    }

    /// The state of a stack with this unfinished run.
    fn state(
        &self,
        found: &Found,
        host: &Overview,
        entry: &ListEntry,
        interrupted: Option<&Unfinished>,
    ) -> StackState {
        // The snapshots tell, and are read only where it decides.
        let sees_all = host.rights.see_every_stack();
        let containers = entry.stack.containers.as_ref();
        let is_empty = containers.is_some_and(|all| all.all == 0);
        let was_adopted =
            found.record.is_none() && (is_empty || !sees_all) && self.was_adopted(&found.name);
        let listed = match &host.records {
            _ if host.environment.is_unusable() => Listed::Nothing,
            None => Listed::Nothing,
            Some(_) if sees_all => Listed::All,
            // Portainer may have what an adoption sent.
            Some(_) if was_adopted => Listed::Nothing,
            Some(_) => Listed::Visible,
        };
        state(entry, found.record, listed, was_adopted, interrupted)
    }

    fn was_adopted(&self, name: &str) -> bool {
        let engine = self.engine.id().ok();
        let place = self.state.map(|state| Place::new(state, name));
        place.is_some_and(|place| !place.open(engine.as_deref()).last_sent().is_empty())
    }

    /// The run on a stack that was interrupted or is in progress, if its containers are known.
    fn interrupted(&self, found: &Found) -> Option<Unfinished> {
        let containers = found.containers.as_ref()?.iter().copied();
        let place = Place::new(self.state?, &found.name);
        interrupted(&place, self.engine, containers, &self.location.tool)
    }

    /// What `adopt` would do.
    fn plan(&self, found: &Found, host: &Overview) -> Plan {
        let stack = match &found.files {
            Files::Stack(stack) => stack,
            Files::Unusable(_, error) => return Plan::failed(error),
            // A stack without files is not offered. Portainer itself is named as such (B04).
            Files::None => {
                return Plan {
                    blockers: self.refusal(found).into_iter().collect(),
                    ..Plan::unplanned(Readiness::NoFile)
                };
            }
        };
        if let Some(refusal) = self.refusal(found) {
            return Plan::blocked(refusal);
        }
        if let Some(unread) = self.unread(host) {
            let mut plan = Plan::unplanned(Readiness::Unknown);
            plan.warn(unread);
            return plan;
        }
        let situation = self.situation(stack);
        let prepared = adopt::Prepared::new(&situation, self.flags);
        prepared.map_or_else(|error| Plan::failed(&error), |prepared| prepared.plan)
    }

    /// What could not be read, in a few words. The warnings of a list say why.
    pub fn unread(&self, host: &Overview) -> Option<String> {
        match self.portainer {
            _ if host.containers.is_none() => Some("Docker was not read".to_owned()),
            _ if host.records.is_none() => Some("Portainer was not read".to_owned()),
            Some((_, id)) if host.environment.is_unusable() => {
                Some(format!("environment {id} cannot be used"))
            }
            _ => None,
        }
    }

    /// What could not be read of a host, and what a list lacks because of that. `unasked` is why Portainer was not asked.
    pub fn missing(&self, host: &Overview, unasked: Option<&anyhow::Error>) -> Vec<String> {
        let mut missing: Vec<String> = host.warnings.iter().map(Finding::to_string).collect();
        match &host.records {
            None => {
                let only = "the list shows only this host";
                missing.extend(host.unlisted.as_ref().or(unasked).map(|error| {
                    if is_rejected_key(error) {
                        let then = other_key();
                        format!("Portainer rejected the API key (401): {only}; {then}")
                    } else {
                        format!("{}; {only}", with_hint(error))
                    }
                }));
            }
            Some(records) => {
                let unclear = records
                    .iter()
                    .filter_map(|record| record.record.as_ref().err());
                missing.extend(unclear.cloned());
                if !host.rights.see_every_stack() {
                    missing.push(host.rights.to_string());
                }
            }
        }
        if host.containers.is_none() {
            missing.push(
                "the containers are unknown: projects without a directory in the stacks root are missing"
                    .to_owned(),
            );
        }
        if let Some((_, id)) = self.portainer
            && host.records.is_some()
            && host.environment.is_unusable()
            && let Some(why) = unusable(&host.environment, id)
        {
            missing.push(format!("{}: {}", why.message, why.advice()));
        }
        missing
    }

    /// Why a stack is never adopted (C05, B04).
    pub fn refusal(&self, found: &Found) -> Option<Finding> {
        if let Files::Stack(stack) = &found.files
            && let Err(error) = stack.name().refuse_management_plane()
        {
            let refusal = Finding::of_error(&error).short("manage it by hand");
            return Some(refusal.of_kind(Kind::Management));
        }
        let port = self.base_url.is_this_host().then(|| self.base_url.port());
        let found = runs_portainer(&found.listed(), port)?;
        let refusal = Finding::new(found.message, "manage this stack by hand");
        Some(refusal.short("runs Portainer").of_kind(Kind::Management))
    }
}

/// What is known of a stack with this unfinished run.
fn stack_report(
    found: &Found,
    interrupted: Option<&Unfinished>,
    tool: &str,
    typed: &RestoreCommand,
) -> StackReport {
    let containers = found.containers.as_ref();
    StackReport {
        name: found.name.clone(),
        dir: found.dir().map(str::to_owned),
        file: match &found.files {
            Files::Stack(stack) => Some(stack.file().to_owned()),
            _ => None,
        },
        containers: containers.map(|all| Containers::of(all.iter().copied(), tool)),
        portainer_stack: found.record.map(PortainerStack::of),
        interrupted_run: interrupted.map(|run| interrupted_run(run, found, typed)),
    }
}

/// The run, with the command that heals the stack.
fn interrupted_run(run: &Unfinished, found: &Found, command: &RestoreCommand) -> InterruptedRun {
    let with = |verb, flags: &[String]| {
        let flags = flags.iter().map(String::as_str);
        let words: Vec<&str> = [verb, found.name.as_str()]
            .into_iter()
            .chain(flags)
            .collect();
        command.with(&words)
    };
    let restore = || with("restore", &run.restore_flags);
    let again = |verb| InterruptedRun::Continue(with(verb, &run.flags));
    match run.left {
        Interrupted::RunAgain if !run.flags.is_empty() => again("adopt"),
        // Nothing puts an earlier commit back, or Portainer no longer has the stack.
        Interrupted::NotDeployed if found.record.is_none_or(Record::is_from_git) => {
            InterruptedRun::RunAgain
        }
        Interrupted::InProgress => InterruptedRun::InProgress,
        Interrupted::Restore | Interrupted::RestoreAgain => InterruptedRun::Restore(restore()),
        Interrupted::Continue(verb) => again(verb),
        Interrupted::NotDeployed => InterruptedRun::NotDeployed(restore()),
        Interrupted::RunAgain => InterruptedRun::RunAgain,
    }
}

/// The directory of a stack whose files are lost: in which its containers were started by hand, or those of an earlier time. For
/// the stacks root, it is one with the stack's name in it.
pub fn lost_dir(
    (name, location): (&str, &Location),
    containers: &[Container],
    mut earlier: impl Iterator<Item = Vec<Container>>,
) -> Option<String> {
    let root = &location.root;
    let dir_of = |all: &[Container]| match started_by_hand(all, &location.tool)? {
        dir if is_same(Path::new(dir), root) => Some(root.join(name).display().to_string()),
        dir => Some(dir.to_owned()),
    };
    dir_of(containers).or_else(|| earlier.find_map(|all| dir_of(&all)))
}

/// The containers that a stack had before earlier runs, newest first, with their labels only. Snapshots are read one by
/// one. The last one stands for the directory of what was last sent: without containers, there was no snapshot.
pub fn earlier(
    state: Option<&Path>,
    name: &StackName,
    tool: &str,
) -> impl Iterator<Item = Vec<Container>> + use<> {
    let place = state.map(|state| Place::new(state, name.as_str()));
    let store = place.as_ref().map(|place| place.open(None));
    let label = compose_label(tool, "project.working_dir");
    let sent = iter::once_with(move || {
        let dir = place?.open(None).last_sent().dir?;
        let labels = json!({ (label): dir });
        Some(vec![Container(json!({ "Config": { "Labels": labels } }))])
    });
    let ids = store.as_ref().and_then(|store| store.ids().ok());
    let newest_first = ids.unwrap_or_default().into_iter().rev();
    let saved = newest_first.filter_map(move |id| store.as_ref()?.load(&id).ok());
    let saved = saved.map(|saved| {
        saved
            .snapshot
            .containers
            .known()
            .cloned()
            .unwrap_or_default()
    });
    saved.chain(sent.flatten())
}
