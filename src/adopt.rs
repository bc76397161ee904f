//! The adoption: moves a running stack into Portainer. Containers whose configuration is the same are not touched (M05).
//!
//! The request is sent once. Then every container is compared with its state before the run. If the deployment fails, or the
//! stack does not run as before, the containers that changed are restored from the snapshot.

use std::time::Duration;

use anyhow::{Error, Result};
use secrecy::ExposeSecret as _;

use crate::{
    after::Ran,
    failure::Failure,
    finding::{Finding, Kind},
    observe::{Situation, foreign_since, warnings_of},
    plan::{AdoptFlags, InPortainer, Plan, Readiness, Request},
    portainer::Payload,
    report::{AdoptReport, Outcome},
    run::{
        self, Consent, Event, Listener, Peers, Purpose, RecordSeen, Run, Setup, State, Stopped,
        changed_before_answer,
    },
    stack::Stack,
    text::{bulleted, command},
};

mod asking;
mod dependencies;
mod finished;
mod git;
mod prepare;
mod pull;
mod recover;
mod sending;
mod texts;
mod verify;

pub use prepare::Prepared;

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
    let mut report = AdoptReport::new(name.as_str(), at.endpoint);
    let (dir, peers, setup) = (at.stack.dir(), adopt.peers, adopt.setup);
    let ended = run::under_lock(dir, Purpose::Change, peers, setup, listener, |run| {
        let mut procedure = Adoption {
            a: adopt,
            at,
            run,
            report: &mut report,
            flags: adopt.flags,
        };
        procedure.steps()
    });
    if let Err(stopped) = &ended {
        tell(&mut report, stopped);
    }
    (report, ended)
}

/// Adds to a report how the run stopped.
pub fn tell(report: &mut AdoptReport, stopped: &Stopped) {
    report.error = Some(format!("{:#}", stopped.error));
    let details = Failure::details_of(&stopped.error).or_else(|| Failure::body_of(&stopped.error));
    report.details = details.map(str::to_owned);
    report.state = Some(stopped.state.to_string());
}

struct Adoption<'a, 'r> {
    a: &'a Adopt<'a>,
    /// What the run reads.
    at: Situation<'a>,
    run: &'r mut Run<'a>,
    report: &'r mut AdoptReport,
    /// Those of the plans from now on.
    flags: AdoptFlags,
}

impl Adoption<'_, '_> {
    fn steps(&mut self) -> Result<()> {
        self.show_banner();
        self.run.settle_earlier()?;
        let prepared = self.prepare()?;
        let prepared = self.finish_earlier_run(prepared)?;
        let prepared = self.pull(prepared)?;
        let mut prepared = self.wait_for_dependencies(prepared)?;
        let store = self.run.store();
        let saved = store.is_unfinished().then(|| store.default_of_restore());
        let saved = saved.transpose()?;
        // What ran before a run that did not finish; nothing if it saved no snapshot.
        let earlier = saved.as_ref().map(|saved| {
            let saved = saved.as_ref();
            saved.map_or_else(Ran::default, |saved| Ran::of(&saved.snapshot))
        });
        self.say(&prepared)?;
        if let Some(Request::Nothing(id)) = &prepared.plan.request {
            let ended = self.end_without_request(&prepared, id, earlier);
            self.name_foreign(earlier.unwrap_or_default());
            return ended;
        }
        if self.ask(&prepared.plan)? {
            prepared = self.prepare_again(&prepared)?;
        }
        prepared = self.pull_first(prepared)?;
        let payload = prepared.payload(self.at.stack.name().as_str())?;
        let ended = self.deploy(&prepared, &payload, earlier);
        let before = earlier.filter(|_| ended.is_ok());
        self.name_foreign(before.unwrap_or_else(|| prepared.ran()));
        ended
    }

    /// Takes the snapshot, sends the request and looks at what became of it.
    fn deploy(
        &mut self,
        prepared: &Prepared,
        payload: &Payload,
        earlier: Option<Ran>,
    ) -> Result<()> {
        self.take_snapshot(prepared)?;
        self.check_dependencies(&prepared.plan)?;
        // A deployment that fails may stop every container (M06).
        let before = prepared.ran().containers.iter();
        self.run.hold_volumes(&before.collect::<Vec<_>>())?;
        let failed = match self.send(prepared, payload)? {
            None => self.verify(prepared, payload)?.map(Error::from),
            failed => failed,
        };
        if let Some(cause) = failed {
            return Err(self.recover(prepared, payload, &cause));
        }
        // Only now, because a failure must not give anybody access.
        earlier
            .map_or(Ok(()), |earlier| self.check_earlier_run(prepared, earlier))
            .and_then(|()| self.finish(self.report.snapshot.clone()))
            .inspect_err(|_| self.report.outcome = Outcome::PlanWasWrong)
    }

    /// The Portainer stack has this text already, and the plan says that every service runs.
    fn end_without_request(
        &mut self,
        prepared: &Prepared,
        id: &str,
        earlier: Option<Ran>,
    ) -> Result<()> {
        if let Some(sent) = prepared.sent(self.at.tool) {
            self.run.set_last_sent(&sent);
        }
        let mut snapshot = None;
        if let Some(earlier) = earlier {
            self.check_earlier_run(prepared, earlier)?;
            snapshot = self.run.store().default_id()?;
        }
        if prepared.plan.access.is_some() {
            self.ask(&prepared.plan)?;
        }
        self.report.git.clone_from(&prepared.plan.git);
        self.report.outcome = Outcome::NothingToDo;
        let why = match &self.report.git {
            Some(git) => format!("is deployed from {git}"),
            None => "has this Compose file and these variables, and its services run".to_owned(),
        };
        let what = format!("to do: Portainer stack {id} {why}");
        self.run.detail("nothing", what);
        let runs_earlier = || {
            self.run
                .store()
                .runs_before_failure(prepared.ran().containers)
        };
        if prepared.plan.is_left_to_git() && runs_earlier() {
            self.run.warn("the last adoption failed: Portainer has its commit, and the containers run an earlier one".to_owned());
            self.run.leaves_mark();
        }
        self.finish(snapshot)?;
        if self.report.access.is_some() {
            self.report.outcome = Outcome::Adopted;
        }
        Ok(())
    }

    /// Names the containers outside the stack that must be restarted or recreated because of what happened to those `before`.
    fn name_foreign(&mut self, before: Ran) {
        let (engine, name) = (self.run.engine, self.at.stack.name());
        let (harmed, warning) = foreign_since(engine, (before.containers, &[]), self.at.tool, name);
        self.report.other_containers = harmed;
        self.run.warn_all(warning);
    }

    /// Ends a run after which everything is as planned: restoring `snapshot` undoes it. The command for that depends on the mark.
    fn finish(&mut self, snapshot: Option<String>) -> Result<()> {
        self.run.is_whole()?;
        let store = self.run.store();
        if !store.is_not_deployed() {
            store.forget_failure();
        }
        let name = self.at.stack.name().as_str();
        self.report.undo = snapshot.map(|id| self.run.undo_command(name, &id));
        self.share()
    }

    /// The state after this happened to containers, which are not restored.
    fn set_changed(&mut self, seen: &RecordSeen, what: &str) {
        let state = State::told(format!("{what}; {seen}"));
        self.run
            .set_state(state.undoable(*seen == RecordSeen::Absent));
    }

    /// The state after Portainer said that the Portainer stack with this ID is deployed.
    fn set_deployed(&mut self, id: &str, containers: &str) {
        let what = format!(
            "the stack exists as Portainer stack {id} and is deployed; its containers {containers}"
        );
        self.run.set_state(State::new(what).undoable(false));
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
        let prepared = Prepared::new(&self.at, self.flags)?;
        let sent = prepare::sent(&prepared.rewrite);
        self.run.hide(prepared.source.env.as_deref(), sent.env);
        if let Some(password) = self.at.git.and_then(|git| git.password.as_ref()) {
            self.run.hide_secret(password.expose_secret());
        }
        if let Some((contents, _)) = &prepared.before.remote.contents {
            self.run.hide(None, &contents.env);
        }
        Ok(prepared)
    }

    /// Reads everything again after a question. Stops if something changed before the answer.
    fn prepare_again(&mut self, shown: &Prepared) -> Result<Prepared> {
        let prepared = self.prepare()?;
        let Some(changed) = prepared.changed_since(shown) else {
            return Ok(prepared);
        };
        let new = prepared.plan.worse_than(&shown.plan);
        let gone = shown.plan.worse_than(&prepared.plan);
        Err(changed_before_answer(&changed, new, gone).into())
    }

    /// Reports the plan. Stops with every blocker at once.
    fn say(&mut self, prepared: &Prepared) -> Result<()> {
        let plan = &prepared.plan;
        self.report.plan = Some(plan.clone());
        if let Some(record) = &prepared.before.remote.record {
            self.report.portainer_stack = Some(record.id.clone());
        }
        let has_nothing_to_do = plan.sends_nothing() && plan.access.is_none();
        let ended = self.refuse(prepared);
        if ended.is_ok() && !has_nothing_to_do {
            self.say_changes(prepared);
        }
        for warning in &plan.warnings {
            // Whether it still runs is checked next.
            if !has_nothing_to_do || warning.kind != Kind::FailedBefore {
                self.run.warn(warning.to_string());
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
        let is_theirs = prepared.plan.readiness == Readiness::Edited;
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
        self.run.report(Event::Services(&plan.services));
        // Of several stacks, losses are said before the question, and notices once at the end.
        if self.a.confirmed.is_none() {
            let heading = "adopting it loses:";
            self.run.warn_all(warnings_of(plan, heading));
            self.run
                .note_all(plan.notices.iter().map(Finding::to_string));
        }
        let changes = plan.untold_changes();
        let told = changes.iter().map(|change| change.told(&plan.services));
        self.run.note_all(told);
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

impl Prepared {
    /// What ran when it was prepared.
    fn ran(&self) -> Ran<'_> {
        let host = &self.before.host;
        Ran {
            containers: host.containers.as_deref().unwrap_or_default(),
            at: host.at,
        }
    }
}

/// The refusal to overwrite what was edited in Portainer (B22).
fn edited(stack: &Stack, in_portainer: InPortainer, flags: AdoptFlags) -> Failure {
    let name = stack.name().as_str();
    let export = stack.export_command().map_or_else(String::new, |command| {
        format!("; to write that version over your files, run `{command}`")
    });
    let what = if in_portainer == InPortainer::Edited {
        "was edited in Portainer since the last adoption"
    } else {
        "in Portainer differs from the files, and it is unknown which was changed"
    };
    let what = format!("{name} {what}: adopting it would overwrite what Portainer has");
    let details = format!("  if Portainer is right, keep editing it there{export}");
    let plan = command(&[&["plan", name][..], &flags.overwriting().words()].concat());
    let hint = format!("if your files are right, see what overwriting the edit would do: `{plan}`");
    Failure::new(what).details(details).hint(hint)
}
