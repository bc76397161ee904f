//! The adoption: moves a running stack into Portainer. Containers whose configuration is the same are not touched (M05).
//!
//! The request is sent once. Then every container is compared with its state before the run. If the deployment fails, or the
//! stack does not run as before, the containers that changed are restored from the snapshot.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use chrono::{DateTime, Utc};
use secrecy::ExposeSecret as _;
use serde_json::Value;

use crate::{
    failure::Failure,
    finding::Finding,
    observe::{Situation, foreign_since, warnings_of},
    plan::{AdoptFlags, InPortainer, Plan, Request},
    report::{AdoptReport, Outcome, VERSION},
    run::{self, Access, Consent, Listener, Peers, Run, Setup, Stopped, Witness},
    snapshot::{Inspected, Snapshot},
    stack::Stack,
    text::{bulleted, command},
};

mod asking;
mod compared;
mod dependencies;
mod git;
mod prepare;
mod progress;
mod pull;
mod recover;
mod sending;
mod texts;
mod verify;

pub use prepare::Prepared;

use progress::Progress;
use sending::Sent;
use verify::Verdict;

/// The input of an adoption.
pub struct Adopt<'a> {
    pub situation: Situation<'a>,
    pub peers: &'a Peers,
    pub setup: &'a Setup,
    pub flags: AdoptFlags,
    /// Whether to ask before a container is replaced or something is lost (B08).
    pub consent: Consent<'a>,
    /// The plan that the user has seen and confirmed. The run asks again only if the plan is worse now; if it cannot
    /// ask, it is refused.
    pub confirmed: Option<&'a Plan>,
    /// How long containers may take until they run, and are healthy if they were.
    pub wait: Duration,
    /// How long a restore waits for containers to become healthy.
    pub timeout: Duration,
    pub on_failure: OnFailure,
}

/// What to do about containers that a failed adoption changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnFailure {
    /// Restore them from the snapshot
    Restore,
    /// Leave them as they are, and print the command that restores them
    Leave,
}

/// Adopts the stack. Returns what it did, and how it stopped if it did not end as intended.
pub fn run(adopt: &Adopt, listener: &mut Listener) -> (AdoptReport, Result<(), Stopped>) {
    let at = adopt.situation;
    let name = at.stack.name();
    let mut report = AdoptReport {
        version: VERSION,
        stack: name.as_str().to_owned(),
        environment: at.endpoint,
        ..AdoptReport::default()
    };
    let (dir, peers, setup) = (at.stack.dir(), adopt.peers, adopt.setup);
    let ended = run::under_lock(dir, Access::Change, peers, setup, listener, |run| {
        let mut procedure = Procedure {
            a: adopt,
            at,
            run,
            report: &mut report,
            before: Vec::new(),
            looked: Utc::now(),
            snapshot: None,
            since: None,
            start: Progress::NotSent,
        };
        let ended = procedure.steps();
        let (run, before) = (procedure.run, procedure.before);
        let (harmed, warning) = foreign_since(run.engine, (&before, &[]), at.tool, name);
        procedure.report.other_containers = harmed;
        run.warn_all(warning);
        ended
    });
    if let Err(stopped) = &ended {
        report.error = Some(format!("{:#}", stopped.error));
        let details =
            Failure::details_of(&stopped.error).or_else(|| Failure::body_of(&stopped.error));
        report.details = details.map(str::to_owned);
        report.state = Some(stopped.state.to_string());
    }
    (report, ended)
}

struct Procedure<'a, 'r> {
    a: &'a Adopt<'a>,
    /// What the run reads.
    at: Situation<'a>,
    run: &'r mut Run<'a>,
    report: &'r mut AdoptReport,
    /// The inspect objects of the containers before the request.
    before: Vec<Value>,
    /// When they were read.
    looked: DateTime<Utc>,
    /// The ID of the snapshot.
    snapshot: Option<String>,
    /// The time just before the request.
    since: Option<SystemTime>,
    /// How far the run has come before it sends the request.
    start: Progress,
}

impl Procedure<'_, '_> {
    fn steps(&mut self) -> Result<()> {
        self.show_banner();
        self.run.settle(Witness::PortainerAndEngine)?;
        let prepared = self.prepare()?;
        let prepared = self.finish_earlier_run(prepared)?;
        let prepared = self.pull(prepared)?;
        let mut prepared = self.wait_for_dependencies(prepared)?;
        let store = self.run.store();
        let mut earlier = None;
        if store.is_unfinished() {
            let saved = store.default_of_restore()?.map(|saved| saved.snapshot);
            let containers = saved.as_ref().and_then(|one| one.containers.known());
            let taken = saved.as_ref().map(Snapshot::taken_at).unwrap_or_default();
            earlier = Some((containers.cloned().unwrap_or_default(), taken));
        }
        self.say(&prepared)?;
        if let Some(Request::Nothing(id)) = &prepared.plan.request {
            if let Some(sent) = prepared.sent(self.at.tool) {
                self.run.set_last_sent(&sent);
            }
            self.check_earlier_run(&prepared, earlier)?;
            if prepared.plan.access.is_some() {
                self.ask(&prepared.plan)?;
            }
            let contents = prepared.before.contents.as_ref();
            let link = contents.and_then(|(_, standing)| standing.git.clone());
            self.report.git = link.map(|link| link.typed(self.at.git));
            self.end_without_request(id);
            let now = prepared.before.details.containers.as_deref();
            let store = self.run.store();
            if prepared.plan.is_left_to_git() && store.runs_before_failure(now.unwrap_or_default())
            {
                self.run.warn("the last adoption failed: Portainer has its commit, and the containers run an earlier one".to_owned());
                self.run.leaves_mark();
            }
            self.finish()?;
            if self.report.access.is_some() {
                self.report.outcome = Outcome::Adopted;
            }
            return Ok(());
        }
        if self.ask(&prepared.plan)? {
            prepared = self.prepare_again(&prepared)?;
        }
        prepared = self.pull_first(prepared)?;
        let payload = prepared.payload(self.at.stack.name().as_str())?;
        let containers = prepared.before.details.containers.clone();
        self.before = containers.unwrap_or_default();
        self.take_snapshot(&prepared)?;
        self.check_dependencies(&prepared.plan)?;
        // A deployment that fails may stop every container (M06).
        let before: Vec<Inspected> = self.before.iter().map(Inspected).collect();
        self.run.hold_volumes(&before)?;
        match self.send(&prepared, &payload)? {
            Sent::Failed(cause) => Err(self.recover(prepared.sends(&payload), &cause)),
            // Only then, because a failure must not give anybody access.
            Sent::Deployed => match self.verify(&prepared, &payload)? {
                Verdict::AsPlanned => self
                    .check_earlier_run(&prepared, earlier)
                    .and_then(|()| self.finish())
                    .inspect_err(|_| self.report.outcome = Outcome::PlanWasWrong),
                Verdict::Flawed(flaw) => Err(flaw.into()),
                Verdict::NotAsBefore(wrong) => {
                    Err(self.recover(prepared.sends(&payload), &wrong.into()))
                }
            },
        }
    }

    /// Ends a run after which everything is as planned. The command that undoes it depends on the mark.
    fn finish(&mut self) -> Result<()> {
        self.run.is_whole()?;
        let store = self.run.store();
        if !store.is_not_deployed() {
            store.forget_failure();
        }
        let (name, id) = (self.at.stack.name().as_str(), self.snapshot.as_deref());
        self.report.undo = id.map(|id| self.run.undo_command(name, id));
        self.share()
    }

    /// Sets how far the run has come.
    fn mark(&mut self, progress: &Progress) {
        let name = self.at.stack.name().as_str();
        let state = progress.state(name, self.snapshot.as_deref());
        self.run.set_state(state);
    }

    fn show_banner(&mut self) {
        let (stack, endpoint) = (self.at.stack, self.at.endpoint);
        let (name, dir) = (stack.name(), stack.dir().display());
        self.run.detail(
            "adopt",
            format!("{name} from {dir} into environment {endpoint}"),
        );
    }

    /// Reads what exists and plans. Hides every value that Portainer may repeat.
    fn prepare(&mut self) -> Result<Prepared> {
        self.run.wait("inspecting what exists");
        let prepared = Prepared::new(&self.at, self.a.flags.keep)?;
        self.looked = Utc::now();
        let sent = prepare::sent(&prepared.rewrite);
        self.run.hide(prepared.source.env.as_deref(), sent.env);
        if let Some(password) = self.at.git.and_then(|git| git.password.as_ref()) {
            self.run.hide_secret(password.expose_secret());
        }
        if let Some((contents, _)) = &prepared.before.contents {
            self.run.hide(None, &contents.env);
        }
        Ok(prepared)
    }

    /// Reads everything again after a question. Stops if something changed before the answer.
    fn prepare_again(&mut self, shown: &Prepared) -> Result<Prepared> {
        let prepared = self.prepare()?;
        if prepared.is_same(shown) {
            return Ok(prepared);
        }
        let what =
            "the stack's files, its containers or its Portainer stack changed before you answered";
        let hint = "run the command again: it makes a new plan";
        Err(Failure::new(what).hint(hint).into())
    }

    /// Reports the plan. Stops with every blocker at once.
    fn say(&mut self, prepared: &Prepared) -> Result<()> {
        let plan = &prepared.plan;
        self.report.request.clone_from(&plan.request);
        self.report.blockers.clone_from(&plan.blockers);
        self.report.patch = prepared.patch();
        if let Some(record) = &prepared.before.record {
            self.report.portainer_stack = Some(record.id.clone());
        }
        let has_nothing_to_do = plan.sends_nothing() && plan.access.is_none();
        let ended = self.refuse(prepared);
        if ended.is_ok() && !has_nothing_to_do {
            self.say_changes(prepared);
        }
        for warning in prepared.warnings(self.a.flags) {
            // Whether it still runs is checked next.
            if !has_nothing_to_do || plan.failed_before.as_deref() != Some(warning) {
                self.run.warn(warning);
            }
        }
        ended
    }

    /// Fails if the plan has blockers, or if it would overwrite what was edited in Portainer (B22).
    fn refuse(&self, prepared: &Prepared) -> Result<()> {
        let (stack, in_portainer) = (self.at.stack, prepared.plan.in_portainer);
        if prepared.plan.is_left_to_git() && prepared.plan.blockers.is_empty() {
            return Ok(());
        }
        let is_theirs = in_portainer.may_be_theirs() && !self.a.flags.overwrite;
        // What blocks an update says nothing to somebody who edits the stack in Portainer.
        if !is_theirs || in_portainer != InPortainer::Edited {
            prepared.payload(stack.name().as_str())?;
        }
        if is_theirs {
            return Err(edited(stack, in_portainer, self.a.flags).into());
        }
        Ok(())
    }

    fn say_changes(&mut self, prepared: &Prepared) {
        let plan = &prepared.plan;
        self.report.losses.clone_from(&plan.losses);
        self.report.changes = plan.untold_changes();
        self.report.notices = prepared.notices(self.at.stack.file());
        self.run.services(&plan.services);
        // A list of several stacks has said it before the question.
        if self.a.confirmed.is_none() {
            let heading = "adopting it loses:";
            self.run.warn_all(warnings_of(&plan.losses, heading));
            self.run.note_all(&self.report.notices);
        }
        let changes = self.report.changes.iter();
        self.run.note_all(changes.map(Finding::to_string));
    }

    /// The Portainer stack has this text already, and the plan says that every service runs.
    fn end_without_request(&mut self, id: &str) {
        self.report.outcome = Outcome::NothingToDo;
        let why = match &self.report.git {
            Some(git) => format!("is deployed from {git}"),
            None => "has this Compose file and these variables, and its services run".to_owned(),
        };
        let what = format!("to do: Portainer stack {id} {why}");
        self.run.detail("nothing", what);
    }

    /// Asks if a container is replaced, or something is lost (B08). Returns whether it asked: what was read before may then
    /// be out of date.
    fn ask(&mut self, plan: &Plan) -> Result<bool> {
        if let Some(shown) = self.a.confirmed {
            return self.ask_if_worse(plan, shown);
        }
        let act = format!("adopt {}", self.at.stack.name());
        let effect = plan.interruption();
        effect.map_or(Ok(false), |effect| {
            self.a.consent.require(&act, Some(&effect))
        })
    }

    /// Asks if a plan is worse than the one that was shown. Returns whether it asked.
    fn ask_if_worse(&mut self, plan: &Plan, shown: &Plan) -> Result<bool> {
        let name = self.at.stack.name();
        let worse = plan.worse_than(shown);
        if worse.is_empty() {
            return Ok(false);
        }
        let worse = bulleted(worse);
        let became = format!("the plan for {name} became worse after it was shown");
        if !matches!(self.a.consent, Consent::Ask(_)) {
            return Err(Failure::new(format!("{became}, so it was not adopted"))
                .details(worse)
                .hint("run the command again to see the current plan")
                .into());
        }
        self.run.warn(format!("{became}:\n{worse}"));
        let effect = plan
            .interruption()
            .unwrap_or_else(|| format!("{name} keeps every container"));
        let act = format!("adopt {name}");
        self.a.consent.require(&act, Some(&effect))
    }
}

/// The refusal to overwrite what was edited in Portainer (B22).
fn edited(stack: &Stack, in_portainer: InPortainer, flags: AdoptFlags) -> Failure {
    let name = stack.name().as_str();
    let export = stack.export_command().map_or_else(String::new, |command| {
        format!("; to write that version over your files, run: {command}")
    });
    let what = if in_portainer == InPortainer::Edited {
        "was edited in Portainer since the last adoption"
    } else {
        "in Portainer differs from the files, and it is unknown which was changed"
    };
    let what = format!("{name} {what}: adopting it would overwrite what Portainer has");
    let details = format!("  if Portainer is right, keep editing it there{export}");
    let plan = command(&[&["plan", name][..], &flags.overwriting().words()].concat());
    let hint = format!("if your files are right, see what overwriting the edit would do: {plan}");
    Failure::new(what).details(details).hint(hint)
}
