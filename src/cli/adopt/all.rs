//! `stacklift adopt --all`: plans every stack of this host, asks once, then adopts one after the other.
//!
//! Each adoption is that of `adopt <STACK>`: it reads everything again, and takes its own locks and its own snapshot.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use secrecy::SecretString;

use super::adopt;
use crate::{
    adopt::{Outcome, Prepared},
    cli::{
        Common, Console, Ended,
        arguments::{AdoptArguments, Output},
        confirm::consent,
        events::{show_roll_back, show_stopped},
        interrupt::Interrupt,
        list::{
            Adoptable, Readiness,
            found::{self, Files, Found},
            unknown,
        },
        opened::Opened,
        options::Endpoint,
        peers,
        report::BlockerReport,
        settings::{KeySource, Settings, state_folder},
    },
    failure::Failure,
    model::Pull,
    observe::Host,
    parallel::in_parallel,
    plan::{Adoption, runs_portainer},
    run::{Peers, State, Stopped},
    stack::Stack,
    text::counted,
};

mod format;
mod text;

pub(in crate::cli) use format::AllReport;

use format::{StackReport, StackResult};

/// The version of the format.
const VERSION: u32 = 1;

/// How many stacks are planned at the same time. Each plan runs the Compose program several times.
const AT_ONCE: usize = 4;

pub(super) fn run(
    arguments: &AdoptArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    if common.dir.is_some() || common.file.is_some() {
        return Err(Ended::Usage("--all cannot be used with --dir or --file"));
    }
    if arguments.output == Output::Json && !arguments.dry_run {
        console.steps_to_stderr();
    }
    let report = Arc::new(Mutex::new(AllReport {
        version: VERSION,
        dry_run: arguments.dry_run,
        ..AllReport::default()
    }));
    let interrupt = watch(&report, arguments.output, console);
    let key = KeySource::find(common)?;
    let mut settings = Settings::load(common).map_err(Stopped::untouched)?;
    let key = key.read().map_err(Stopped::untouched)?;
    console.hide(&key);
    peers::warn_about_tls(&settings, console);
    let peers = peers::open(&settings, key.clone(), console).map_err(Stopped::untouched)?;
    let (portainer, engine) = peers.readers();
    let endpoint =
        peers::environment(&settings, portainer, engine, console).map_err(Stopped::untouched)?;
    settings.endpoint = Endpoint::Id(endpoint);
    let all = All {
        arguments,
        peers: &peers,
        endpoint,
        settings,
        key,
        console,
    };
    console.waiting("reading Portainer and the engine");
    let planned = all.plan(&report);
    console.done();
    let planned = planned.map_err(Stopped::untouched)?;
    if arguments.output == Output::Text || !arguments.dry_run {
        text::show_plan(&lock(&report), console);
    }
    for warning in &lock(&report).warnings {
        console.warning(warning);
    }
    if arguments.dry_run {
        return end_of_dry_run(&lock(&report), arguments, console);
    }
    // An interrupt shows the report: it is not held while the user thinks.
    if let Err(error) = all.ask(&planned) {
        let mut report = lock(&report);
        report.error = Some(format!("{error:#}"));
        if arguments.output == Output::Json {
            console.json(&*report)?;
        }
        return Err(Stopped::untouched(error).into());
    }
    all.adopt(&planned, &report, &interrupt);
    let report = lock(&report);
    show(&report, arguments.output, console)?;
    if report.stacks.iter().any(|one| one.result.is_missing()) {
        return Err(Ended::Verdict(1));
    }
    Ok(())
}

/// Prints the plan as JSON if that is wanted. The exit code is that of `adopt --dry-run` for all stacks together.
fn end_of_dry_run(
    report: &AllReport,
    arguments: &AdoptArguments,
    console: &Console,
) -> Result<(), Ended> {
    if arguments.output == Output::Json {
        console.json(report)?;
    }
    let mut stacks = report.stacks.iter();
    let is_blocked = |one: &StackReport| one.result == StackResult::Blocked;
    let loses = |one: &StackReport| {
        one.result == StackResult::Planned && !(one.losses.is_empty() && one.losses_known)
    };
    match arguments.exit_code {
        true if stacks.clone().any(is_blocked) => Err(Ended::Verdict(1)),
        true if stacks.any(loses) => Err(Ended::Verdict(3)),
        _ => Ok(()),
    }
}

/// Shows what became of each stack.
fn show(report: &AllReport, output: Output, console: &Console) -> Result<()> {
    match output {
        Output::Text => text::show_end(report, console),
        Output::Json => console.json(report)?,
    }
    Ok(())
}

/// An interrupt shows the state of the stack that is being adopted, and what became of the others.
fn watch(report: &Arc<Mutex<AllReport>>, output: Output, console: &Arc<Console>) -> Interrupt {
    let report = Arc::clone(report);
    Interrupt::watch_with(console, move |console, state| {
        let mut report = lock(&report);
        let began = report.stacks.iter().any(|one| one.report.is_some());
        let mut stacks = report.stacks.iter_mut();
        match stacks.find(|one| one.result == StackResult::Interrupted) {
            Some(one) => {
                console.state(&format!("{}: {state}", one.stack));
                show_roll_back(console, state);
                one.state = Some(state.to_string());
            }
            None if began => console.state("no stack was being adopted"),
            None => console.state(&State::untouched().to_string()),
        }
        if !report.stacks.is_empty() && !report.dry_run {
            // The program ends with the code of an interrupt in any case.
            show(&report, output, console).ok();
        }
    })
}

fn lock(report: &Mutex<AllReport>) -> MutexGuard<'_, AllReport> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

struct All<'a> {
    arguments: &'a AdoptArguments,
    peers: &'a Peers,
    /// The ID of the environment.
    endpoint: i64,
    settings: Settings,
    key: SecretString,
    console: &'a Arc<Console>,
}

/// A stack, and its plan if it is to be adopted.
struct Planned {
    stack: Stack,
    settings: Settings,
    plan: Adoption,
    losses_known: bool,
    /// Whether an earlier request has no known outcome: the adoption waits for it (B11), also if nothing else is to do.
    waits: bool,
}

impl All<'_> {
    /// Plans every stack. Returns the plans of those that are to be adopted, at their places in the report.
    fn plan(&self, report: &Mutex<AllReport>) -> Result<Vec<Option<Planned>>> {
        let (portainer, engine) = self.peers.readers();
        engine.refuse_podman()?;
        let host = Host::read(Some((portainer, self.endpoint)), engine);
        if host.records.is_none() || host.containers.is_none() {
            return Err(Failure::new("cannot list every stack of this host")
                .details(host.warnings.join("\n"))
                .hint("fix the errors above, then run the command again")
                .into());
        }
        let found = found::find(&self.settings, &host)?;
        let (mut stacks, mut plans) = (Vec::new(), Vec::new());
        for some in found.chunks(AT_ONCE) {
            let done = stacks.len();
            let all = counted(found.len(), "stack");
            self.console
                .still_waiting(&format!("planned {done} of {all}"));
            for (stack, plan) in in_parallel(some, |one| self.plan_one(one)) {
                stacks.push(stack);
                plans.push(plan);
            }
        }
        let mut report = lock(report);
        report.endpoint = self.endpoint;
        report.stacks = stacks;
        report.warnings.clone_from(&host.warnings);
        report.warnings.extend(unknown(&host));
        Ok(plans)
    }

    fn plan_one(&self, found: &Found) -> (StackReport, Option<Planned>) {
        let mut report = StackReport {
            stack: found.name.clone(),
            dir: found.dir().map(str::to_owned),
            result: StackResult::NoFile,
            plan: Adoptable::none(Readiness::NoFile),
            losses: Vec::new(),
            losses_known: true,
            pulls: Vec::new(),
            report: None,
            error: None,
            state: None,
        };
        if let Some(why) = self.refusal(found) {
            report.result = StackResult::Refused;
            report.plan = Adoptable {
                blockers: vec![why],
                ..Adoptable::none(Readiness::Blocked)
            };
            return (report, None);
        }
        let planned = match &found.files {
            Files::Stack(stack) => self.prepare(found, stack),
            Files::Unusable(_, error) => {
                report.result = StackResult::Blocked;
                report.plan = Adoptable::blocked(error);
                return (report, None);
            }
            Files::None => return (report, None),
        };
        match planned {
            Ok((planned, pulls)) => {
                report.losses_known = planned.losses_known;
                report.plan = Adoptable::planned(planned.plan.clone());
                report.losses = planned
                    .plan
                    .losses
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                report.result = match report.plan.readiness {
                    Readiness::NothingToDo if !planned.waits => StackResult::NothingToDo,
                    Readiness::Blocked if pulls.is_empty() => StackResult::Blocked,
                    _ => StackResult::Planned,
                };
                report.pulls = pulls;
                let planned = (report.result == StackResult::Planned).then_some(planned);
                (report, planned)
            }
            Err(error) => {
                report.result = StackResult::Blocked;
                report.plan = Adoptable::blocked(&error);
                (report, None)
            }
        }
    }

    /// Why a stack is never adopted (C05, B04).
    fn refusal(&self, found: &Found) -> Option<BlockerReport> {
        if let Files::Stack(stack) = &found.files
            && let Err(error) = stack.name().refuse_management_plane()
        {
            return Some(BlockerReport::of_error(&error));
        }
        let base_url = &self.settings.base_url;
        let port = base_url.is_this_host().then(|| base_url.port());
        let containers: Vec<_> = found
            .containers
            .iter()
            .flatten()
            .copied()
            .cloned()
            .collect();
        Some(BlockerReport {
            message: runs_portainer(&containers, port)?.to_string(),
            details: Vec::new(),
            hint: "manage this stack by hand".to_owned(),
        })
    }

    /// The plan of `adopt <STACK>`, and the images that it would pull.
    fn prepare(&self, found: &Found, stack: &Stack) -> Result<(Planned, Vec<String>)> {
        let mut settings = self.settings.clone();
        if found.needs_dir(&settings.location) {
            settings.location.dir = Some(stack.dir().to_owned());
        }
        let opened = self
            .open(stack, &settings)
            .map_err(|stopped| stopped.error)?;
        let keep = (&self.arguments.keep).into();
        let prepared = Prepared::new(&opened.situation(), keep)?;
        let pulls = if self.arguments.pull {
            prepared.images_to_pull(&found.name)
        } else {
            Vec::new()
        };
        let pulls = pulls.iter().map(Pull::to_string).collect();
        let place = peers::place(state_folder()?, opened.stack.name());
        let planned = Planned {
            waits: place.has_unanswered(),
            stack: opened.stack,
            settings,
            losses_known: prepared.before.is_known(),
            plan: prepared.plan,
        };
        Ok((planned, pulls))
    }

    fn open(&self, stack: &Stack, settings: &Settings) -> Result<Opened, Stopped> {
        let (settings, key) = (settings.clone(), self.key.clone());
        Opened::open(stack.name().clone(), settings, key, self.console)
    }

    /// Asks once about all stacks, if a container of one is replaced or something is lost (B08).
    fn ask(&self, planned: &[Option<Planned>]) -> Result<()> {
        let planned: Vec<&Planned> = planned.iter().flatten().collect();
        let names: Vec<&str> = planned
            .iter()
            .map(|one| one.stack.name().as_str())
            .collect();
        let effects = planned.iter().zip(&names).filter_map(|(one, name)| {
            let effect = one.plan.interruption()?;
            Some(format!("{name}: {effect}"))
        });
        let effects: Vec<String> = effects.collect();
        if effects.is_empty() {
            return Ok(());
        }
        let question = |question: &str| self.console.ask(question);
        let act = format!("adopt {}", names.join(", "));
        consent(self.arguments.yes, &question).require(&act, &effects.join(". "))?;
        Ok(())
    }

    /// Adopts one stack after the other, in the order of the report.
    fn adopt(&self, planned: &[Option<Planned>], report: &Mutex<AllReport>, interrupt: &Interrupt) {
        let all = planned.iter().flatten().count();
        let planned = planned.iter().enumerate();
        let planned = planned.filter_map(|(at, one)| Some((at, one.as_ref()?)));
        for (number, (at, one)) in planned.enumerate() {
            let set = |result| lock(report).stacks[at].result = result;
            // Until it ends, only an interrupt shows the report.
            interrupt.begin(|| set(StackResult::Interrupted));
            let name = one.stack.name();
            self.console
                .heading(&format!("{name} ({} of {all})", number + 1));
            let ended = self.open(&one.stack, &one.settings).and_then(|opened| {
                adopt(
                    self.arguments,
                    &opened,
                    Some(&one.plan),
                    interrupt,
                    self.console,
                )
            });
            let (single, ended) = match ended {
                Ok((single, ended)) => (Some(single), ended),
                Err(stopped) => (None, Err(stopped)),
            };
            let failed = ended.is_err();
            interrupt.begin(|| {
                let mut report = lock(report);
                let stack = &mut report.stacks[at];
                stack.result = match &single {
                    Some(single) if single.outcome == Outcome::NothingToDo => {
                        StackResult::NothingToDo
                    }
                    _ => StackResult::Adopted,
                };
                stack.report = single;
                if let Err(stopped) = &ended {
                    stack.result = StackResult::Failed;
                    stack.error = Some(format!("{:#}", stopped.error));
                    stack.state = Some(stopped.state.to_string());
                }
            });
            if let Err(stopped) = ended {
                show_stopped(self.console, &stopped);
            }
            if failed && !self.arguments.keep_going {
                return;
            }
        }
    }
}
