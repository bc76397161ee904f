//! What follows a failure: looks at every container, and restores those that changed.

use std::collections::BTreeSet;

use anyhow::{Error, Result, anyhow};

use super::{
    Adoption, OnFailure, Prepared,
    verify::{not_running, services},
};
use crate::{
    after::{Compared, Ran, changes, is_temporary, told_down},
    failure::Failure,
    model::Deployment,
    plan::{self, Plan, Readiness, ServicePlan, up},
    portainer::Payload,
    report::{Change, Outcome},
    restore::{self, Cause, Restore, Scope},
    run::{RecordSeen, Seen, State},
    text::{bulleted, listed, shell_word},
};

/// What happened to containers that the engine does not list.
const UNLISTED: &str = "the containers could not be listed, so nothing was restored";

impl Adoption<'_, '_> {
    /// The error of a request whose outcome is unknown. Nothing is restored: Portainer may still be working.
    pub(super) fn unknown(&mut self, error: &Error) -> Error {
        self.report.outcome = Outcome::Unknown;
        let name = self.at.stack.name();
        let own = "check the stack in Portainer, then run the command again or roll back: both first wait for Portainer to finish";
        let hint = Failure::hint_of(error).unwrap_or(own);
        let what = format!(
            "the outcome of adopting {name} is unknown, so nothing was restored: {error:#}"
        );
        Failure::new(what).details_from(error).hint(hint).into()
    }

    /// Checks what a failed deployment left, and restores the original containers if any changed. Notes the failure for the next
    /// plan (B40). Returns the error of the run.
    pub(super) fn recover(
        &mut self,
        prepared: &Prepared,
        payload: &Payload,
        cause: &Error,
    ) -> Error {
        self.run.note_failure(prepared.sends(payload), cause);
        let seen = self.run.seen(self.at.stack.name(), self.at.endpoint);
        let now = match self.look() {
            Ok(now) => now,
            Err(error) => {
                self.report.outcome = Outcome::Unknown;
                self.set_changed(&seen, UNLISTED);
                let listed = format!("{cause:#}; afterwards: {error:#}");
                return because(listed, cause, None);
            }
        };
        let (before, tool) = (prepared.ran(), self.at.tool);
        let compared = before.compare(&now, tool);
        let name = self.at.stack.name().as_str();
        let said = || format!("{cause:#}");
        let changed = changes(&compared);
        if changed.is_empty() {
            self.report.outcome = Outcome::Unchanged;
            let (_, hint) = self.end_whole(&seen, cause);
            self.run
                .set_state(State::told(format!("no container was changed; {seen}")));
            return because(said(), cause, hint.as_deref());
        }
        self.report.outcome = Outcome::Changed;
        let summary = changed.join(", ");
        let engine_only = seen == RecordSeen::Absent && !self.run.sees_every_stack;
        let ran = compared.iter().any(|pair| pair.before.is_some());
        let snapshot = self.report.snapshot.clone().filter(|_| ran);
        let is_replaced = compared.iter().any(|pair| pair.change != Change::Kept);
        let why = self.why_left(snapshot.is_some(), is_replaced);
        let (Some(snapshot), None) = (&snapshot, why) else {
            let why = why.unwrap_or_default();
            let what = format!("nothing was restored, because {why}: {summary}");
            self.set_changed(&seen, &what);
            let hint = snapshot.filter(|_| !is_replaced).map(|snapshot| {
                let command = self.run.restore_command(name, &snapshot, engine_only);
                format!(
                    "something other than the adoption changed the containers named above: undo that change, for example with `{tool} network connect` or `{tool} network disconnect`, or recreate the containers with: `{command}`",
                    tool = self.at.tool
                )
            });
            return because(said(), cause, hint.as_deref());
        };
        self.run.detail("failed", format!("{cause:#}"));
        self.run.detail("restore", summary);
        let restoring = "the containers are being restored; the stack may be partly restored";
        self.run.set_state(State::new(restoring).undoable(false));
        let replaced = compared.iter().filter(|pair| pair.change != Change::Kept);
        let replaced = replaced.filter_map(|pair| pair.before);
        let deleted: BTreeSet<&str> = replaced.flat_map(restore::deleted_sources).collect();
        let restored = self.restore_all(snapshot, &compared);
        let seen = self.run.seen(self.at.stack.name(), self.at.endpoint);
        let now = self.look();
        match restored.err() {
            Some(second) if !Failure::is_final(&second) => {
                let left = now.map(|now| changes(&before.compare(&now, tool)));
                self.not_restored(left.ok(), cause, &second, &seen)
            }
            // All that can be restored is. Files that only the removed containers had are lost.
            lost => {
                self.report.outcome = Outcome::Restored;
                let now = now.unwrap_or_default();
                let restored = before.compare(&now, tool);
                self.warn_of_jobs(&restored);
                let (differs, hint) = self.end_whole(&seen, cause);
                let services = &prepared.plan.services;
                let mut what = self.told_restored(&compared, &restored, services);
                if !deleted.is_empty() {
                    let all = listed(&Vec::from_iter(deleted));
                    let lost = format!(
                        "the restored containers have an empty directory in place of {all}, which did not exist"
                    );
                    self.run
                        .note_failure(prepared.sends(payload), &anyhow!("{lost}; {cause:#}"));
                    what = format!("{what}; {lost}");
                }
                let has = match (&seen, &prepared.before.remote.record) {
                    (RecordSeen::Exists(id, Deployment::Active), _)
                        if differs == Some((false, false)) =>
                    {
                        format!("Portainer stack {id} has its previous Compose file and variables")
                    }
                    (RecordSeen::Absent, Some(record)) => {
                        format!("Portainer stack {} was deleted", record.id)
                    }
                    (seen, _) => seen.to_string(),
                };
                self.run.set_state(State::told(format!("{what}; {has}")));
                let details = [Some(cause), lost.as_ref()].into_iter().flatten();
                let details = details.filter_map(Failure::details_of);
                let details: Vec<String> = details.map(str::to_owned).collect();
                let hint = hint.as_deref().or(Failure::hint_of(cause));
                let failure = Failure::new(said()).details_from(cause).lines(&details);
                failure.hint_if_any(hint).into()
            }
        }
    }

    /// Why the containers are not restored, if they are not.
    fn why_left(&self, ran: bool, is_replaced: bool) -> Option<&'static str> {
        if !ran {
            Some("there were no containers before")
        } else if !is_replaced {
            // A restore would recreate them, which interrupts more than what changed.
            Some("no container was recreated, restarted or removed")
        } else if self.a.on_failure == OnFailure::Leave {
            Some("of --on-failure leave")
        } else {
            None
        }
    }

    /// Restores the containers, and the Portainer stack if none of them is left.
    fn restore_all(&mut self, snapshot: &str, compared: &[Compared]) -> Result<()> {
        // To delete the Portainer stack, or to update it in error, removes every container (N07). Where one of before is
        // still there, the Portainer stack stays.
        let keeps = |one: &Compared| matches!((one.before, one.now), (Some(old), Some(now)) if old.id() == now.id());
        let scope = if compared.iter().any(keeps) {
            Scope::Containers
        } else {
            Scope::Everything
        };
        let mut restored = self.restore(snapshot, scope, Cause::Failure);
        let is_down = || self.look().is_ok_and(|now| now.is_empty());
        if let Err(error) = &restored
            && scope == Scope::Everything
            && is_down()
        {
            // The containers need neither Portainer nor space for another snapshot.
            let details = Failure::details_of(error);
            let details = details.map_or_else(String::new, |details| format!("\n{details}"));
            self.run.warn(format!(
                "the Portainer stack could not be restored: {error:#}; restoring the containers alone{details}"
            ));
            restored = self.restore(snapshot, Scope::Containers, Cause::Failure);
        }
        restored
    }

    /// Marks the stack after a failure: the containers are those of before, and Portainer may have what was sent. Returns how
    /// that [differs](Self::differs), and what to do about it.
    fn end_whole(
        &mut self,
        seen: &RecordSeen,
        cause: &Error,
    ) -> (Option<(bool, bool)>, Option<String>) {
        // A mark that stays only makes the next run look closer.
        let _ = self.run.is_whole();
        let differs = self.differs(seen, self.report.snapshot.as_deref());
        self.mark_not_deployed(seen, differs);
        (differs, self.hint_for_record(seen, differs, cause))
    }

    /// What had happened to the containers that failed and are `restored`, and how long each was down.
    fn told_restored(
        &self,
        failed: &[Compared],
        restored: &[Compared],
        services: &[ServicePlan],
    ) -> String {
        let of_before = || failed.iter().filter(|pair| pair.before.is_some());
        let changed: Vec<&Compared> = of_before().filter(|pair| !pair.is_as_before()).collect();
        let was = if changed.iter().all(|pair| pair.change == Change::Missing) {
            "removed"
        } else {
            "changed"
        };
        let (count, all) = (changed.len(), of_before().count());
        if count == 0 {
            return "what the deployment had added was removed, and the containers run as before"
                .to_owned();
        }
        let subject = match (changed.as_slice(), all) {
            ([one], _) => format!("container {}", one.name()),
            ([_, _], 2) => "both containers".to_owned(),
            _ if count == all => format!("all {count} containers"),
            _ => format!("{count} of {all} containers"),
        };
        let were = if count == 1 { "was" } else { "were" };
        let events = self.run.events(self.at.stack.name().as_str());
        let called = |pair: &Compared| match changed[..] {
            [one] if one.name() == pair.name() => "it".to_owned(),
            _ => {
                let name = pair.name();
                plan::called(services, name).unwrap_or(name).to_owned()
            }
        };
        let downs = told_down(restored, &events, called, Vec::new())
            .map_or_else(String::new, |downs| format!(": {downs}"));
        format!("{subject} had been {was} and {were} restored{downs}")
    }

    /// A restore runs no job.
    fn warn_of_jobs(&mut self, restored: &[Compared]) {
        for pair in restored {
            if let Some(failed) = pair.failed_again() {
                let (job, name) = (pair.service(self.at.tool), pair.name());
                self.run.warn(format!(
                    "the job {job} ({name}) {failed}: the restore does not run it"
                ));
            }
        }
    }

    /// Restores the containers of a snapshot under the locks of this run.
    fn restore(&mut self, snapshot: &str, scope: Scope, cause: Cause) -> Result<()> {
        let (adopt, at) = (self.a, self.at);
        let restore = Restore {
            name: at.stack.name(),
            dir: at.stack.dir(),
            file: Some(at.stack.file()),
            snapshot: Some(snapshot),
            scope,
            force: false,
            unhealthy: adopt.wait,
            consent: adopt.consent,
            cause,
            git_password: at.git.and_then(|git| git.password.clone()),
            dry_run: false,
        };
        restore::within(&restore, self.run)?;
        Ok(())
    }

    /// Restores what a killed or failed run left incomplete, so that the adoption begins with a whole stack. What such a
    /// run leaves has containers that Compose cannot adopt, or lacks some whose anonymous volumes only the snapshot knows.
    pub(super) fn finish_earlier_run(&mut self, prepared: Prepared) -> Result<Prepared> {
        let store = self.run.store();
        let Some(now) = &prepared.before.host.containers else {
            return Ok(prepared);
        };
        if !store.is_unfinished() {
            return Ok(prepared);
        }
        let Some(chosen) = store.default_of_restore()? else {
            return Ok(prepared);
        };
        let snapshot = &chosen.id;
        let strays = now.iter().any(|now| is_temporary(now.name()));
        let subject = prepared.before.subject("adopt", &prepared.source, &self.at);
        let is_whole = store.is_whole(&self.run.read_snapshot(&subject, Seen::default()));
        // What was deployed by an edit in Portainer stays: the adoption is refused.
        let is_theirs = prepared.plan.readiness == Readiness::Edited;
        if is_whole && !strays || is_theirs {
            return Ok(prepared);
        }
        let name = self.at.stack.name();
        let earlier = if store.has_failed() {
            "a failed"
        } else {
            "an interrupted"
        };
        self.run.warn(format!(
            "{earlier} run left {name} incomplete: it is restored first"
        ));
        if !is_whole && !store.has_failed() {
            let told = "an earlier run that sent this version did not finish, and left the stack incomplete";
            let sent = store.last_sent();
            let before = chosen.snapshot.record.found();
            let sent = match before {
                Some(record) => sent.but_for(&record.text, &record.env),
                None => sent,
            };
            store.set_failure(&sent, told);
        }
        let saved = chosen.snapshot.containers.known();
        let still_there = saved.into_iter().flatten().any(|old| {
            let id = old.id();
            now.iter().any(|now| now.id() == id)
        });
        let scope = if still_there || prepared.before.remote.may_be_unseen() {
            Scope::Containers
        } else {
            Scope::Everything
        };
        self.restore(snapshot, scope, Cause::Unfinished)
            .inspect_err(|_| {
                let stack = self.at.stack;
                let (dir, file) = (shell_word(stack.dir_text()), stack.file().to_owned());
                let up = match prepared.combined.as_slice() {
                    [] => up(&[file]),
                    files => up(files),
                };
                self.run.warn(format!(
                    "if it cannot be restored, start the stack from its files: cd {dir} && {up}"
                ));
            })?;
        self.run.is_whole()?;
        let seen = self.run.seen(name, self.at.endpoint);
        let differs = self.differs(&seen, Some(snapshot));
        let is_kept = self.mark_not_deployed(&seen, differs);
        let but = is_kept.then_some(", but the Portainer stack does not");
        let but = but.unwrap_or_default();
        self.run.set_state(State::new(format!(
            "this run restored what an earlier run had left: the containers match snapshot {snapshot}{but}"
        )));
        self.prepare()
    }

    /// Checks that what ran before a run that did not finish runs now, or what that run created if it saved no snapshot, and
    /// reports what became of it: that run may have ended before it looked, or because a container was not healthy.
    pub(super) fn check_earlier_run(&mut self, prepared: &Prepared, before: Ran) -> Result<()> {
        let now = self.wait_until_steady(before, &prepared.plan)?;
        let compared = before.compare(&now, self.at.tool);
        let is_update = !prepared.plan.sends_nothing();
        let mut wrong = Vec::new();
        for pair in &compared {
            // What an update removed is no longer in the Compose file.
            let is_removed = is_update && pair.change == Change::Missing;
            if !is_removed && pair.has_to_run() && !pair.runs() {
                let told = pair.now.and_then(not_running);
                wrong.push(told.unwrap_or_else(|| pair.to_string()));
            } else if !is_removed && pair.lacks_health() {
                wrong.push(pair.told_health());
            }
        }
        if wrong.is_empty() {
            // An update has reported what it did.
            if !is_update {
                self.report.services = services(prepared, &compared, &[], self.at.tool);
                let record = self.report.portainer_stack.as_deref();
                self.report.url = record.map(|record| self.page(record));
            }
            return Ok(());
        }
        let name = self.at.stack.name().as_str();
        let (as_before, undo) = if before.containers.is_empty() {
            ("", String::new())
        } else {
            let undo = self.run.command(&["restore", name]);
            let undo = format!("; to undo the adoption, run `{undo}`");
            (" as before the last adoption", undo)
        };
        let what = format!("{name} is up to date in Portainer, but does not run{as_before}");
        let hint = format!("fix that, then run the command again{undo}");
        let error = Failure::new(what).details(bulleted(&wrong)).hint(hint);
        self.report.problems = wrong;
        self.run.store().mark_failed();
        Err(error.into())
    }

    /// Both causes: of the failed adoption, and of the failed restore.
    fn not_restored(
        &mut self,
        changes: Option<Vec<String>>,
        cause: &Error,
        second: &Error,
        seen: &RecordSeen,
    ) -> Error {
        let told = changes.map(|changes| match changes.as_slice() {
            [] => "the original containers exist and run".to_owned(),
            changes => changes.join(", "),
        });
        let what = told.map_or_else(
            || UNLISTED.to_owned(),
            |told| format!("the containers could not be restored completely: {told}"),
        );
        self.set_changed(seen, &what);
        let failed = format!("the restore failed: {second:#}");
        let causes = [second, cause].into_iter();
        let mut details = vec![failed.as_str()];
        details.extend(causes.filter_map(Failure::details_of));
        Failure::new(format!("{cause:#}"))
            .details_from(cause)
            .details(details.join("\n"))
            .hint_if_any(Failure::hint_of(second))
            .into()
    }

    /// What to do about a Portainer stack that a failed deployment left (N07).
    fn hint_for_record(
        &self,
        seen: &RecordSeen,
        differs: Option<(bool, bool)>,
        cause: &Error,
    ) -> Option<String> {
        let (RecordSeen::Exists(id, deployment), Some(snapshot)) = (seen, &self.report.snapshot)
        else {
            return None;
        };
        let in_error = matches!(deployment, Deployment::Failed(_));
        let plan = self.report.plan.as_ref();
        let is_create = plan.is_some_and(Plan::creates);
        let differs = differs.unwrap_or_default();
        if !in_error && !is_create && differs == (false, false) {
            return None;
        }
        let first = Failure::hint_of(cause).unwrap_or("fix that, then run the command again");
        let name = self.at.stack.name().as_str();
        let command = self.run.restore_command(name, snapshot, false);
        if plan.is_some_and(Plan::redeploys) && !in_error {
            let read = self.run.portainer.read(id).ok();
            let interval = read.and_then(|(_, standing)| standing.git?.auto_update);
            let again = interval.map_or_else(String::new, |interval| {
                format!(". Its automatic update deploys the repository again within {interval}, which may remove every container: revert the commit now")
            });
            return Some(format!(
                "Portainer stack {id} has the new commit, which does not run: fix it in the repository, then run the command again{again}"
            ));
        }
        if !in_error && !is_create {
            return Some(format!(
                "{first}. Portainer stack {id} has the new Compose file and variables, which do not run: to put the old ones back, run `{command}`"
            ));
        }
        let why = if in_error && !is_create && differs == (false, true) {
            // N15
            "stays in error, with its old Compose file and the new variables, and its next update recreates every container"
        } else if in_error {
            "stays in error, and its next update recreates every container"
        } else {
            "stays"
        };
        Some(format!(
            "{first}. Portainer stack {id} {why}; to undo it, with an interruption of every container, run `{command}`"
        ))
    }

    /// Returns whether Portainer kept what was sent. A mark that is missing only makes the list less exact.
    fn mark_not_deployed(&self, seen: &RecordSeen, differs: Option<(bool, bool)>) -> bool {
        let in_error = matches!(seen, RecordSeen::Exists(_, Deployment::Failed(_)));
        let is_kept = in_error || differs.is_some_and(|differs| differs != (false, false));
        if is_kept {
            let _ = self.run.store().mark_not_deployed();
        }
        is_kept
    }

    /// Whether Portainer has another text, and whether it has other variables, than in a snapshot; `None` if it does not
    /// answer. Where it had none, both are new.
    fn differs(&self, seen: &RecordSeen, before: Option<&str>) -> Option<(bool, bool)> {
        let RecordSeen::Exists(id, _) = seen else {
            return None;
        };
        let saved = self.run.store().choose(Some(before?)).ok()?;
        let (now, _) = self.run.portainer.read(id).ok()?;
        let before = saved.snapshot.record.found();
        Some(before.map_or((true, true), |before| {
            (before.text != now.text, before.env != now.env)
        }))
    }
}

/// The error of the run: what failed, with the details of its cause, and a hint: the given one or that of the cause.
fn because(message: String, cause: &Error, hint: Option<&str>) -> Error {
    let failure = Failure::new(message).details_from(cause);
    let hint = hint.or(Failure::hint_of(cause));
    failure.hint_if_any(hint).into()
}
