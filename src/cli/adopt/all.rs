//! `stacklift adopt` of several stacks: plans them, asks once, then adopts one after the other.
//!
//! Each adoption is that of `adopt <STACK>`: it reads everything again, and takes its own locks and its own snapshot.

use std::{
    ffi::{OsStr, OsString},
    panic,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        mpsc::{self, Sender},
    },
    thread,
};

use anyhow::{Result, anyhow};

use super::adopt;
use crate::{
    adopt::tell,
    cli::{
        Cli, Console, Ended,
        arguments::{AdoptArguments, Output},
        confirm::consent,
        events::{show_interrupted, show_stopped},
        interrupt::Interrupt,
        opened::{Opened, Surroundings},
    },
    failure::Failure,
    finding::Kind,
    inventory::{Files, Found, Inventory},
    model::WantedAccess,
    parallel::lock,
    plan::{InPortainer, Readiness},
    report::{AdoptReport, AllEntry, AllReport, ListEntry, Outcome, StackResult, VERSION},
    run::{Event, State, Stopped},
    snapshot::{Interrupted, Unfinished},
    stack::{Stack, StackName, is_same},
};

mod text;

pub(super) fn run(arguments: &AdoptArguments, cli: Cli) -> Result<(), Ended> {
    let Cli { common, console } = cli;
    if common.dir.is_some() || common.file.is_some() {
        return Err(Ended::Usage(
            "--all and several stacks cannot be used with --dir or --file",
        ));
    }
    let names = arguments.stacks.iter().map(|name| StackName::new(name));
    let names = names.collect::<Result<Vec<_>>>()?;
    let is_json = arguments.output == Output::Json;
    if is_json && !arguments.dry_run {
        console.steps_to_stderr();
    }
    let report = Arc::new(Mutex::new(AllReport::default()));
    let interrupt = watch(&report, arguments.output, cli);
    let mut at = Surroundings::new(common, &names, console)?;
    let endpoint = at.environment(console).map_err(Stopped::untouched)?;
    let all = All {
        access: at.wanted(&arguments.adoption.access)?,
        arguments,
        names,
        at,
        endpoint,
        console,
    };
    // Each adoption reads everything again.
    let planned = all.at.peers.remembering(|| all.plan());
    let planned = planned.map_err(Stopped::untouched)?;
    *lock(&report) = planned;
    {
        let report = lock(&report);
        if !is_json || !arguments.dry_run {
            text::show_plan(&report, arguments, console);
        }
        for warning in &report.warnings {
            console.warning(warning);
        }
        if arguments.dry_run {
            if is_json {
                console.json(&*report)?;
            }
            let code = arguments.exit_code.then(|| report.exit_code());
            return Ended::verdict(code.unwrap_or_default());
        }
    }
    // An interrupt shows the report: it is not held while the user thinks.
    let question = All::question(&lock(&report));
    if let Err(error) = all.ask(question) {
        let mut report = lock(&report);
        report.error = Some(format!("{error:#}"));
        if is_json {
            console.json(&*report)?;
        }
        return Err(Stopped::untouched(error).into());
    }
    all.adopt(&report, &interrupt);
    let report = lock(&report);
    console.result(arguments.output, &*report, text::show_end)?;
    text::show_rest(&report, arguments.all, &all.at.settings.typed, console);
    Ended::verdict(report.has_failed(arguments.all).into())
}

/// An interrupt shows the state of the stack that is being adopted, and what became of the others.
fn watch(
    report: &Arc<Mutex<AllReport>>,
    output: Output,
    Cli { common, console }: Cli,
) -> Interrupt {
    let report = Arc::clone(report);
    let typed = common.repeatable();
    Interrupt::watch_with(console, move |console, states| {
        let mut report = lock(&report);
        let began = report.stacks.iter().any(|stack| stack.report.is_some());
        let environment = report.environment;
        if states.is_empty() {
            let none = State::new("no stack was being adopted");
            console.state(&if began { none } else { State::untouched() });
        }
        for one in &mut report.stacks {
            let name = &one.before.stack.name;
            let Some(state) = states.get(name) else {
                continue;
            };
            let again = format!("`{}`", typed.with(&["adopt", name]));
            show_interrupted(console, &state.of(name), &again);
            one.report = Some(AdoptReport {
                outcome: Outcome::Unknown,
                state: Some(state.to_string()),
                ..AdoptReport::new(name, environment)
            });
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
    names: Vec<StackName>,
    at: Surroundings,
    /// The ID of the environment.
    endpoint: i64,
    /// See [`Opened::access`].
    access: Option<WantedAccess>,
    console: &'a Arc<Console>,
}

impl All<'_> {
    /// Plans the stacks as `list` does, with the flags of this run.
    fn plan(&self) -> Result<AllReport> {
        let (arguments, console) = (self.arguments, self.console);
        let inventory = Inventory {
            flags: arguments.adoption.flags,
            access: self.access.as_ref(),
            ..self.at.inventory()
        };
        inventory.engine.refuse_podman()?;
        inventory.compose.compose()?;
        console.waiting("reading Portainer and Docker");
        let host = inventory.host();
        let warnings = inventory.missing(&host, None);
        if inventory.unread(&host).is_some() {
            return Err(Failure::new("cannot list every stack of this host")
                .lines(&warnings)
                .hint("fix the errors above, then run the command again")
                .into());
        }
        let mut found = inventory.find(&host)?;
        self.require(&found)?;
        if !arguments.all {
            let names = self.names.iter().map(StackName::as_str);
            let place = |stack: &Found| names.clone().position(|name| name == stack.name);
            found.retain(|stack| place(stack).is_some());
            found.sort_by_key(place);
        }
        let leaves = |stack: &Found, interrupted: Option<&Unfinished>| {
            self.unplanned(stack, interrupted, &inventory)
        };
        let rows = inventory.rows(&host, &found, leaves, console.planning());
        console.done();
        let entry = |(left, before): (Option<StackResult>, ListEntry)| AllEntry {
            result: left.unwrap_or_else(|| self.result(&before)),
            restored_first: left == Some(StackResult::Planned),
            before,
            report: None,
        };
        Ok(AllReport {
            version: VERSION,
            dry_run: arguments.dry_run,
            environment: self.endpoint,
            undo: Some(self.at.settings.typed.with(&["restore", "STACK"])),
            stacks: rows.into_iter().map(entry).collect(),
            warnings,
            error: None,
        })
    }

    /// Fails if a name is that of no stack.
    fn require(&self, found: &[Found]) -> Result<()> {
        let excluded = self.arguments.exclude.iter().map(OsString::as_os_str);
        let names = self.names.iter().map(|name| OsStr::new(name.as_str()));
        let mut unknown = excluded
            .chain(names)
            .filter(|name| !found.iter().any(|stack| OsStr::new(&stack.name) == *name));
        let Some(name) = unknown.next() else {
            return Ok(());
        };
        let name = StackName::new(name)?;
        let what = format!("there is no stack named {name} in `stacklift list`");
        if self.arguments.all {
            let hint = "correct its name in --exclude";
            return Err(Failure::new(what).hint(hint).into());
        }
        // The error of `adopt <STACK>`.
        Stack::find_like_compose(name, &self.at.settings.location)?;
        Err(anyhow!(what))
    }

    /// What becomes of a stack that is not planned now.
    fn unplanned(
        &self,
        found: &Found,
        interrupted: Option<&Unfinished>,
        inventory: &Inventory,
    ) -> Option<StackResult> {
        use Interrupted::{InProgress, RestoreAgain};
        let arguments = self.arguments;
        if arguments.all {
            let mut excluded = arguments.exclude.iter();
            if excluded.any(|name| name == OsStr::new(&found.name))
                || (!arguments.everywhere && found.is_outside(&self.at.settings.location.root))
            {
                return Some(StackResult::LeftOut);
            }
        }
        let interrupted = interrupted?;
        if !matches!(found.files, Files::Stack(_)) || inventory.refusal(found).is_some() {
            return None;
        }
        let is_incomplete = interrupted.is_incomplete();
        if !arguments.all {
            return is_incomplete.then_some(StackResult::Planned);
        }
        let is_broken = is_incomplete || [InProgress, RestoreAgain].contains(&interrupted.left);
        is_broken.then_some(StackResult::Unfinished)
    }

    /// What becomes of a stack that is planned.
    fn result(&self, stack: &ListEntry) -> StackResult {
        let (arguments, plan) = (self.arguments, &stack.adopt);
        let mut blockers = plan.blockers.iter();
        match plan.readiness {
            _ if blockers.any(|blocker| blocker.kind == Kind::Management) => StackResult::Refused,
            Readiness::NoFile => StackResult::NoFile,
            Readiness::Edited => StackResult::Edited,
            Readiness::Blocked | Readiness::Unknown => StackResult::Blocked,
            // An adoption finishes what an earlier run left, also if nothing else is to do (B11).
            Readiness::NothingToDo if stack.stack.interrupted_run.is_none() => {
                StackResult::NothingToDo
            }
            // Named, it is tried again.
            Readiness::Ready if arguments.all && plan.failed_before() => StackResult::Blocked,
            Readiness::Ready if arguments.all && plan.runs_nothing() => StackResult::LeftOut,
            // What Portainer has already is not interrupted for another form of it.
            Readiness::Ready
                if (arguments.uninterrupted
                    || arguments.all && plan.in_portainer == InPortainer::OtherForm)
                    && plan.interruption().is_some() =>
            {
                StackResult::LeftOut
            }
            Readiness::NothingToDo | Readiness::Ready => StackResult::Planned,
        }
    }

    fn open(&self, stack: &AllEntry, console: &Arc<Console>) -> Result<Opened> {
        let stack = &stack.before.stack;
        // The clients and the program remember answers, and anything may have changed since the plan.
        let mut at = self.at.again(console)?;
        let dir = stack.dir.as_ref().map(PathBuf::from);
        let own = at.settings.location.root.join(&stack.name);
        at.settings.location.dir = dir.filter(|dir| !is_same(dir, &own));
        let name = StackName::new(OsStr::new(&stack.name))?;
        let opened = Opened::open(&name, at, console)?;
        Ok(Opened {
            access: self.access.clone(),
            ..opened
        })
    }

    /// What is asked about all stacks, if a container of one is replaced or something is lost (B08): what would be done, and what
    /// that does.
    fn question(report: &AllReport) -> Option<(String, Vec<String>)> {
        let names: Vec<&str> = report.to_adopt().map(AllEntry::name).collect();
        let effects = report.to_adopt().filter_map(|stack| {
            let effect = if stack.restored_first {
                "what an interrupted run left is restored first".to_owned()
            } else {
                stack.before.adopt.interruption()?
            };
            Some(match names.len() {
                1 => effect,
                _ => format!("{}: {effect}", stack.name()),
            })
        });
        let effects: Vec<String> = effects.collect();
        (!effects.is_empty()).then(|| (format!("adopt {}", names.join(", ")), effects))
    }

    /// With many effects, the question follows them.
    fn ask(&self, question: Option<(String, Vec<String>)>) -> Result<()> {
        let Some((act, effects)) = question.filter(|_| !self.arguments.yes) else {
            return Ok(());
        };
        let effects = if effects.len() < 4 || self.console.quiet {
            effects.join("; ")
        } else {
            let lines = effects.iter().map(|effect| format!("\n  {effect}"));
            self.console.told(&lines.collect::<String>());
            let count = effects.len();
            format!("{count} of them are interrupted, start or lose something")
        };
        let ask = |question: &str| self.console.ask(question);
        consent(false, &ask).require(&act, Some(&effects))?;
        Ok(())
    }

    /// Adopts one stack after the other, in the order of the report. While containers that were recreated are watched, the next
    /// stack is adopted: what it prints comes later.
    fn adopt(&self, report: &Mutex<AllReport>, interrupt: &Interrupt) {
        let stacks = lock(report).stacks.clone().into_iter().enumerate();
        let planned = stacks.filter(|(_, stack)| stack.result == StackResult::Planned);
        let planned: Vec<(usize, AllEntry)> = planned.collect();
        let (planned, all) = (&planned, planned.len());
        let has_failed = || {
            let stacks = &lock(report).stacks;
            stacks.iter().any(|one| one.result == StackResult::Failed)
        };
        thread::scope(|scope| {
            let (begun, in_turn) = mpsc::channel();
            scope.spawn(move || {
                for (number, (at, stack)) in (1..).zip(planned) {
                    if has_failed() && !self.arguments.keep_going {
                        break;
                    }
                    let console = Arc::new(self.console.held());
                    console.heading(&format!("{} ({number} of {all})", stack.name()));
                    let (watches, may_begin_next) = mpsc::channel();
                    let shown = Arc::clone(&console);
                    let run = scope.spawn(move || {
                        self.adopt_one(stack, (report, *at), interrupt, &console, &watches);
                    });
                    begun.send((shown, run)).ok();
                    // An error means that the run has ended, in a panic if it did not say how.
                    let has_ended = may_begin_next.recv().is_err();
                    if has_ended && lock(report).stacks[*at].result == StackResult::Interrupted {
                        break;
                    }
                }
            });
            for (console, run) in in_turn {
                console.release();
                // A panic in the thread is a bug: pass it on.
                run.join()
                    .unwrap_or_else(|cause| panic::resume_unwind(cause));
            }
        });
    }

    /// Adopts the stack at this place of the report. `watches` is told when everything runs.
    fn adopt_one(
        &self,
        stack: &AllEntry,
        (report, at): (&Mutex<AllReport>, usize),
        interrupt: &Interrupt,
        console: &Arc<Console>,
        watches: &Sender<()>,
    ) {
        let name = stack.name();
        // Until it ends, only an interrupt shows the report.
        let interrupt = interrupt.begin(name, console, || {
            lock(report).stacks[at].result = StackResult::Interrupted;
        });
        let confirmed = (!stack.restored_first).then_some(&stack.before.adopt);
        let ended = self.open(stack, console).map_err(Stopped::untouched);
        let listener = &mut |event: Event| {
            if matches!(event, Event::Watching) {
                watches.send(()).ok();
            }
            interrupt.show(&event);
        };
        let ended =
            ended.and_then(|opened| adopt(self.arguments, &opened, confirmed, listener, console));
        let (single, stopped) = match ended {
            Ok((single, ended)) => (single, ended.err()),
            Err(stopped) => {
                let mut single = AdoptReport::new(name, self.endpoint);
                tell(&mut single, &stopped);
                (single, Some(stopped))
            }
        };
        interrupt.end(|| {
            let stack = &mut lock(report).stacks[at];
            stack.result = match (&stopped, single.outcome) {
                (Some(_), _) => StackResult::Failed,
                (None, Outcome::NothingToDo) => StackResult::NothingToDo,
                (None, _) => StackResult::Adopted,
            };
            stack.report = Some(single);
        });
        if let Some(stopped) = stopped {
            show_stopped(console, &stopped);
        }
    }
}
