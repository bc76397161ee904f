//! `stacklift adopt` of several stacks: plans them, asks once, then adopts one after the other.
//!
//! Each adoption is that of `adopt <STACK>`: it reads everything again, and takes its own locks and its own snapshot.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Result, anyhow};

use super::adopt;
use crate::{
    adopt::{Prepared, tell},
    cli::{
        Cli, Console, Ended,
        arguments::{AdoptArguments, Output},
        confirm::consent,
        events::{show_roll_back, show_stopped},
        interrupt::Interrupt,
        opened::{Opened, inventory, settings_and_peers},
        peers,
        settings::{Settings, state_folder},
    },
    compose,
    failure::Failure,
    finding::Finding,
    inventory::{Files, Found, Inventory, PLANNED_AT_ONCE, missing},
    model::WantedAccess,
    observe::{Overview, Situation, with_hint},
    parallel::{caught, in_parallel_of, lock},
    plan::{Plan, Readiness},
    report::{AdoptReport, AllEntry, AllReport, Outcome, StackResult, VERSION},
    run::{Peers, State, Stopped},
    snapshot::{Interrupted, Place, Unfinished},
    stack::{Stack, StackName},
    text::counted,
};

mod text;

pub(super) fn run(arguments: &AdoptArguments, cli: Cli) -> Result<(), Ended> {
    let Cli { common, console } = cli;
    if common.dir.is_some() || common.file.is_some() {
        return Err(Ended::Usage(
            "--all and several stacks cannot be used with --dir or --file",
        ));
    }
    let name = |name: &OsString| StackName::new(name);
    let names: Vec<StackName> = arguments.stacks.iter().map(name).collect::<Result<_>>()?;
    if arguments.output == Output::Json && !arguments.dry_run {
        console.steps_to_stderr();
    }
    let report = Arc::new(Mutex::new(AllReport {
        version: VERSION,
        dry_run: arguments.dry_run,
        ..AllReport::default()
    }));
    let interrupt = watch(&report, arguments.output, cli);
    let (mut settings, peers) = settings_and_peers(common, &names, console)?;
    let endpoint =
        peers::environment(&mut settings, peers.readers(), console).map_err(Stopped::untouched)?;
    let access = peers
        .readers()
        .0
        .wanted_access(&arguments.adoption.access.grants);
    let access = access.map_err(Stopped::untouched)?;
    let all = All {
        access,
        arguments,
        names: names.iter().map(StackName::as_str).collect(),
        peers,
        endpoint,
        settings,
        console,
    };
    console.waiting("reading Portainer and Docker");
    let planned = all.plan(&report);
    console.done();
    let planned = planned.map_err(Stopped::untouched)?;
    if arguments.output == Output::Text || !arguments.dry_run {
        text::show_plan(&lock(&report), arguments, console);
    }
    for warning in &lock(&report).warnings {
        console.warning(warning);
    }
    if arguments.dry_run {
        let report = lock(&report);
        if arguments.output == Output::Json {
            console.json(&*report)?;
        }
        let code = arguments.exit_code.then(|| report.exit_code());
        return Ended::verdict(code.unwrap_or_default());
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
    console.result(arguments.output, &*report, text::show_end)?;
    let mut is_missing = report.stacks.iter().any(|stack| stack.result.is_missing());
    if arguments.all {
        text::show_left_out(&report, &all.settings.typed, console);
    }
    text::show_untried(&report, console);
    let left = report.stacks.iter().filter(|stack| stack.is_left());
    for one in left.filter(|_| !arguments.all) {
        let words = ["plan", one.before.stack.name.as_str()];
        text::show_left(one, all.settings.typed.with(&words), console);
        is_missing = true;
    }
    Ended::verdict(is_missing.into())
}

/// An interrupt shows the state of the stack that is being adopted, and what became of the others.
fn watch(
    report: &Arc<Mutex<AllReport>>,
    output: Output,
    Cli { common, console }: Cli,
) -> Interrupt {
    let report = Arc::clone(report);
    let typed = common.repeatable();
    Interrupt::watch_with(console, move |console, state| {
        let mut report = lock(&report);
        let began = report.stacks.iter().any(|stack| stack.report.is_some());
        let environment = report.environment;
        let mut stacks = report.stacks.iter_mut();
        match stacks.find(|stack| stack.result == StackResult::Interrupted) {
            Some(one) => {
                let name = &one.before.stack.name;
                console.state(&state.of(name));
                if state.roll_back_here().is_some() {
                    let again = typed.with(&["adopt", name]);
                    console.hint(&format!("to continue, run: {again}"));
                }
                show_roll_back(console, state.roll_back_here());
                one.report = Some(AdoptReport {
                    outcome: Outcome::Unknown,
                    state: Some(state.to_string()),
                    ..AdoptReport::new(name, environment)
                });
            }
            None if began => console.state(&State::new("no stack was being adopted")),
            None => console.state(&State::untouched()),
        }
        if !report.stacks.is_empty() && !report.dry_run {
            // The program ends with the code of an interrupt in any case.
            console.result(output, &*report, text::show_end).ok();
        }
    })
}

struct All<'a> {
    arguments: &'a AdoptArguments,
    /// The stacks that were named; empty with `--all`.
    names: Vec<&'a str>,
    peers: Arc<Peers>,
    /// See [`Opened::access`].
    access: Option<WantedAccess>,
    /// The ID of the environment.
    endpoint: i64,
    settings: Settings,
    console: &'a Arc<Console>,
}

/// A stack that is to be adopted, and its plan. `None` if it is restored first: it is planned again then.
struct Planned {
    name: StackName,
    /// Its directory, if `--dir` has to name it.
    dir: Option<PathBuf>,
    plan: Option<Plan>,
}

impl All<'_> {
    /// Plans the stacks. Returns the plans of those that are to be adopted, at their places in the report.
    fn plan(&self, report: &Mutex<AllReport>) -> Result<Vec<Option<Planned>>> {
        let (portainer, engine) = self.peers.readers();
        engine.refuse_podman()?;
        let compose =
            compose::Installation::new(&self.settings.location.tool, self.console.trace());
        compose.compose()?;
        let portainer = Some((portainer, self.endpoint));
        let inventory = inventory(&self.settings, portainer, engine, &compose);
        let host = inventory.host();
        if host.records.is_none() || host.containers.is_none() {
            let unlisted = host.unlisted.as_ref().map(with_hint);
            let unread: Vec<String> = host
                .warnings
                .iter()
                .map(Finding::to_string)
                .chain(unlisted)
                .collect();
            return Err(Failure::new("cannot list every stack of this host")
                .details(unread.join("\n"))
                .hint("fix the errors above, then run the command again")
                .into());
        }
        let mut found = inventory.find(&host)?;
        self.require(&found)?;
        if !self.arguments.all {
            found.retain(|stack| self.is_wanted(stack));
            found.sort_by_key(|stack| self.names.iter().position(|name| *name == stack.name));
        }
        let done = AtomicUsize::new(0);
        let all = counted(found.len(), "stack");
        let stacks = in_parallel_of(PLANNED_AT_ONCE, &found, |stack| {
            let planned = self.plan_one(stack, &host, &inventory);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            self.console
                .still_waiting(&format!("planned {done} of {all}"));
            planned
        });
        let (stacks, plans) = stacks.into_iter().unzip();
        let mut report = lock(report);
        report.environment = self.endpoint;
        report.undo = Some(self.settings.typed.with(&["restore", "STACK"]));
        report.stacks = stacks;
        report.warnings = missing(&host, None);
        Ok(plans)
    }

    /// Fails if a name is that of no stack.
    fn require(&self, found: &[Found]) -> Result<()> {
        let excluded = self.arguments.exclude.iter();
        let names = self.names.iter().copied().map(OsStr::new);
        for name in excluded.map(OsString::as_os_str).chain(names) {
            if !found.iter().any(|stack| OsStr::new(&stack.name) == name) {
                let name = StackName::new(name)?;
                let what = format!("there is no stack named {name} in `stacklift list`");
                return Err(if self.arguments.all {
                    let hint = "correct its name in --exclude";
                    Failure::new(what).hint(hint).into()
                } else {
                    // The error of `adopt <STACK>`.
                    Stack::find_like_compose(name, &self.settings.location)?;
                    anyhow!(what)
                });
            }
        }
        Ok(())
    }

    /// Whether a stack is named, or is one that `--all` takes.
    fn is_wanted(&self, found: &Found) -> bool {
        let arguments = self.arguments;
        if !arguments.all {
            return self.names.contains(&found.name.as_str());
        }
        let mut excluded = arguments.exclude.iter();
        !excluded.any(|name| name == OsStr::new(&found.name))
            && (arguments.everywhere || !found.is_outside(&self.settings.location.root))
    }

    fn plan_one(
        &self,
        found: &Found,
        host: &Overview,
        inventory: &Inventory,
    ) -> (AllEntry, Option<Planned>) {
        let failed = |error: &anyhow::Error| (StackResult::Blocked, Plan::failed(error), None);
        let unplanned = |result, readiness| (result, Plan::unplanned(readiness), None);
        let interrupted = inventory.interrupted(found);
        let is_broken = interrupted.as_ref().is_some_and(|run| {
            use Interrupted::{InProgress, RestoreAgain};
            run.is_incomplete() || [InProgress, RestoreAgain].contains(&run.left)
        });
        let (result, adopt, planned) = match (inventory.refusal(found), &found.files) {
            _ if !self.is_wanted(found) => unplanned(StackResult::LeftOut, Readiness::Unknown),
            (Some(blocker), _) => (StackResult::Refused, Plan::blocked(blocker), None),
            (None, Files::Stack(_)) if is_broken && self.arguments.all => {
                unplanned(StackResult::Unfinished, Readiness::Unknown)
            }
            (None, Files::Stack(stack)) => {
                let situation = Situation {
                    access: self.access.as_ref(),
                    ..inventory.situation(stack)
                };
                let prepared = caught(|| self.prepare(found, &situation, interrupted.as_ref()));
                let prepared = prepared.unwrap_or_else(|panic| Err(panic.into()));
                prepared.unwrap_or_else(|error| failed(&error))
            }
            (None, Files::Unusable(_, error)) => failed(error),
            (None, Files::None) => unplanned(StackResult::NoFile, Readiness::NoFile),
        };
        let (interrupted, typed) = (interrupted.as_ref(), &self.settings.typed);
        let entry = AllEntry {
            before: inventory.entry(found, host, interrupted, adopt, typed),
            result,
            restored_first: planned.as_ref().is_some_and(|one| one.plan.is_none()),
            report: None,
        };
        (entry, planned)
    }

    /// The plan of `adopt <STACK>`.
    fn prepare(
        &self,
        found: &Found,
        situation: &Situation,
        interrupted: Option<&Unfinished>,
    ) -> Result<(StackResult, Plan, Option<Planned>)> {
        let (name, at) = (situation.stack.name().clone(), &self.settings.location);
        let dir = found.needs_dir(at).then(|| situation.stack.dir());
        let dir = dir.map(Path::to_owned).or_else(|| at.dir.clone());
        if interrupted.is_some_and(Unfinished::is_incomplete) {
            let plan = None;
            let planned = Planned { name, dir, plan };
            return Ok((StackResult::Planned, Plan::default(), Some(planned)));
        }
        let plan = Prepared::new(situation, self.arguments.adoption.flags)?.plan;
        // An adoption waits for an earlier request without a known end (B11), and checks what an earlier run left, also if
        // nothing else is to do.
        let waits =
            interrupted.is_some() || Place::new(&state_folder()?, name.as_str()).has_unanswered();
        let result = match plan.readiness {
            Readiness::NothingToDo if !waits => StackResult::NothingToDo,
            Readiness::Edited => StackResult::Edited,
            Readiness::Blocked => StackResult::Blocked,
            // Named, it is tried again.
            Readiness::Ready if self.arguments.all && plan.failed_before() => StackResult::Blocked,
            Readiness::Ready if self.arguments.all && plan.runs_nothing() => StackResult::LeftOut,
            Readiness::Ready if self.arguments.uninterrupted && plan.interruption().is_some() => {
                StackResult::LeftOut
            }
            _ => StackResult::Planned,
        };
        let planned = (result == StackResult::Planned).then(|| Planned {
            name,
            dir,
            plan: Some(plan.clone()),
        });
        Ok((result, plan, planned))
    }

    fn open(&self, planned: &Planned) -> Result<Opened> {
        let mut settings = self.settings.clone();
        settings.location.dir.clone_from(&planned.dir);
        let peers = Arc::clone(&self.peers);
        let opened = Opened::open(&planned.name, settings, peers, self.console)?;
        Ok(Opened {
            access: self.access.clone(),
            ..opened
        })
    }

    /// Asks once about all stacks, if a container of one is replaced or something is lost (B08).
    fn ask(&self, planned: &[Option<Planned>]) -> Result<()> {
        let planned = planned.iter().flatten();
        let names: Vec<&str> = planned
            .clone()
            .map(|planned| planned.name.as_str())
            .collect();
        let effects = planned.filter_map(|planned| {
            let effect = match &planned.plan {
                Some(plan) => plan.interruption()?,
                None => "what an interrupted run left is restored first".to_owned(),
            };
            Some(match names.len() {
                1 => effect,
                _ => format!("{}: {effect}", planned.name),
            })
        });
        let effects: Vec<String> = effects.collect();
        let told = match effects.len() {
            0 => return Ok(()),
            all if all < 4 || self.console.quiet => effects.join("; "),
            _ => "what is interrupted, started or lost is shown above".to_owned(),
        };
        let question = |question: &str| self.console.ask(question);
        let act = format!("adopt {}", names.join(", "));
        consent(self.arguments.yes, &question).require(&act, Some(&told))?;
        Ok(())
    }

    /// Adopts one stack after the other, in the order of the report.
    fn adopt(&self, planned: &[Option<Planned>], report: &Mutex<AllReport>, interrupt: &Interrupt) {
        let all = planned.iter().flatten().count();
        let places = planned.iter().enumerate();
        let wanted = places.filter_map(|(at, one)| Some((at, one.as_ref()?)));
        for (number, (at, one)) in (1..).zip(wanted) {
            // Until it ends, only an interrupt shows the report.
            interrupt.begin(|| lock(report).stacks[at].result = StackResult::Interrupted);
            let name = &one.name;
            self.console.heading(&format!("{name} ({number} of {all})"));
            let opened = self.open(one);
            let (arguments, plan) = (self.arguments, one.plan.as_ref());
            let ended = opened
                .map_err(Stopped::untouched)
                .and_then(|opened| adopt(arguments, &opened, plan, interrupt, self.console));
            let (single, stopped) = match ended {
                Ok((single, ended)) => (single, ended.err()),
                Err(stopped) => {
                    let mut single = AdoptReport::new(name.as_str(), self.endpoint);
                    tell(&mut single, &stopped);
                    (single, Some(stopped))
                }
            };
            interrupt.begin(|| {
                let mut report = lock(report);
                let stack = &mut report.stacks[at];
                stack.result = match (&stopped, single.outcome) {
                    (Some(_), _) => StackResult::Failed,
                    (None, Outcome::NothingToDo) => StackResult::NothingToDo,
                    (None, _) => StackResult::Adopted,
                };
                stack.report = Some(single);
            });
            if let Some(stopped) = stopped {
                show_stopped(self.console, &stopped);
                if !self.arguments.keep_going {
                    return;
                }
            }
        }
    }
}
