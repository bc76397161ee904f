//! The last step of a restore: compares everything with the snapshot (B18).

use anyhow::{Context, Result};
use chrono::Utc;

use super::{
    Cause, RecordStep, Restoration, Scope,
    check::owner,
    compare::network_differences,
    plan::{is_stranger, named},
    steps::matching,
    text,
};
use crate::{
    after::{Compared, Creator, Ran, told_down, wait_for},
    failure::Failure,
    model::{Condition, Container, Deployment, Record, Rights},
    observe::list,
    parallel::in_parallel,
    run::{Event, State},
    snapshot::Known,
    stack::{export_words, started_files},
    text::{listed, plural, said, shell_word},
};

impl Restoration<'_, '_, '_> {
    pub(super) fn verify(&mut self, record: &RecordStep) -> Result<()> {
        let failed = "failed to check the restored stack";
        let existing = self.wait_for_health().context(failed)?;
        let mut wrong = self.trouble.clone();
        let (troubles, mut unchecked) = (wrong.len(), Vec::new());
        wrong.extend(self.wrong_containers(&existing));
        wrong.extend(self.wrong_networks().context(failed)?);
        let mut emptied = self.emptied(&existing).context(failed)?;
        emptied.extend(self.undeleted(&existing));
        let files = self.wrong_files(&existing, &mut unchecked);
        let (files, lost_files) = files.context(failed)?;
        wrong.extend(files);
        wrong.extend(self.lost_volumes().context(failed)?);
        let volumes = self.compare_volumes().context(failed)?;
        let missing = volumes.missing.into_iter();
        wrong.extend(missing.map(|name| format!("volume {name} does not exist")));
        let different = volumes.different.into_iter();
        wrong.extend(different.map(|(name, what)| format!("volume {name} differs: {what}")));
        if !volumes.unknown.is_empty() {
            let names = volumes.unknown.join(", ");
            unchecked.push(format!(
                "whether these volumes were deleted and recreated: {names}"
            ));
        }
        if self.snapshot().networks.unknown().is_some() {
            unchecked.push("the networks".to_owned());
        }
        if self.snapshot().volumes.unknown().is_some() {
            unchecked.push("the volumes".to_owned());
        }
        unchecked.extend(self.hidden_mac_addresses());
        let is_restored = wrong.len() == troubles && lost_files.is_empty();
        let (wrong_record, unchecked_record) = self.check_record(record).context(failed)?;
        wrong.extend(wrong_record);
        let unanswered = self.run.unanswered();
        let is_rest_restored =
            wrong.is_empty() && unchecked_record.is_empty() && unanswered.is_empty();
        let only_lost = is_rest_restored && !lost_files.is_empty();
        unchecked.extend(unchecked_record);
        wrong.extend(lost_files);
        if !unchecked.is_empty() {
            self.run.warn(list("not checked:", &unchecked));
        }
        let count = matching(self.snapshot().containers.items().len());
        let mut lost = String::new();
        if !emptied.is_empty() {
            let what = listed(&emptied);
            lost = format!(", but {what}");
            if self.restore.cause == Cause::Failure || !is_restored {
                self.run.warn(what);
            }
        }
        if let (true, RecordStep::OutOfReach(rights)) = (wrong.is_empty(), record) {
            return self.end_without_record(count + &lost, rights);
        }
        let again = self
            .run
            .undo_command(&self.snapshot().stack, &self.saved.id);
        if is_restored && (!wrong.is_empty() || !unanswered.is_empty()) {
            self.run.set_state(State::new(format!(
                "the containers match the snapshot{lost}"
            )));
        }
        if only_lost && self.restore.cause == Cause::Wanted {
            if let Some(downs) = self.told_downs(&existing) {
                self.run.line(format!("  {downs}"));
            }
            self.say_where_it_is(record, &existing);
        }
        if !wrong.is_empty() {
            return self.end_with(&wrong, (only_lost, record), &again);
        }
        if !unanswered.is_empty() {
            let requests = unanswered.join(" and ");
            let what = format!(
                "{count}{lost}, but the outcome of {requests} is unknown: Portainer may still change the stack"
            );
            let hint = format!("when Portainer responds again, run `{again}`");
            return Err(Failure::new(what).hint(hint).into());
        }
        let all = existing.iter();
        let running = all.filter(|now| now.is_running()).count();
        let mut matching = match (running, self.snapshot().containers.items().len()) {
            (0, _) => format!("{count}; nothing runs"),
            (_, all) if all == running => count,
            _ => match said(&self.not_run_again(&existing), "was not run again") {
                Some(jobs) => format!("{count} ({running} running; {jobs})"),
                None => format!("{count} ({running} running)"),
            },
        };
        if !volumes.created.is_empty() {
            let these = plural(volumes.created.len(), "volume");
            let names = volumes.created.join(", ");
            matching = format!("{matching}, but a restore created the {these} {names} empty");
        }
        self.say_what_was_done(record, &existing, (&matching, &lost));
        self.say_what_is_left();
        Ok(())
    }

    /// The result, how long each container was down, and where the stack is now.
    fn say_what_was_done(
        &mut self,
        record: &RecordStep,
        existing: &[Container],
        (matching, but): (&str, &str),
    ) {
        let name = self.restore.name;
        let told = if but.is_empty() { " is as it was" } else { "" };
        let matching = format!("{matching}{but}");
        if self.restore.cause == Cause::Failure {
            return self.run.detail("restored", matching);
        }
        if !self.touched {
            let ids = self.run.store().ids().unwrap_or_default();
            let mut earlier = String::new();
            if ids.first().is_some_and(|first| *first < self.saved.id) {
                let list = self.run.command(&["restore", name.as_str(), "--list"]);
                earlier = format!("; for an earlier state, run `{list}`");
            }
            self.run.line(format!("{name}{told}: {matching}{earlier}"));
            return self.say_where_it_is(record, existing);
        }
        let downs = self.told_downs(existing);
        let downs = downs.map_or_else(String::new, |downs| format!("; {downs}"));
        let what = format!("{name}: {matching}{downs}");
        self.run.report(Event::Done("restored", what));
        if let Some(kept) = &self.kept_edit {
            let words = ["restore", name.as_str(), "--to", kept];
            let command = self.run.command(&words);
            self.run.line(format!(
                "  to get back what was edited in Portainer, run `{command}`"
            ));
        }
        self.say_where_it_is(record, existing);
    }

    /// How long each container was down, in a sentence.
    fn told_downs(&self, existing: &[Container]) -> Option<String> {
        let events = self.run.events(&self.snapshot().stack);
        let before = Ran {
            containers: &self.before,
            ..Ran::default()
        };
        let compared = before.compare(existing, &self.snapshot().tool);
        let called = |pair: &Compared| pair.before.map_or_else(String::new, |old| self.called(old));
        let runs = |all: &[Container], one: &Container| {
            named(all, one.name()).is_some_and(Container::is_running)
        };
        // Those were down before this run, such as after an interrupted one.
        let ran = self.snapshot().containers.items().iter();
        let back =
            ran.filter(|old| old.is_running() && runs(existing, old) && !runs(&self.before, old));
        let unknown = back.map(|old| self.called(old)).collect();
        told_down(&compared, &events, called, unknown)
    }

    /// Where to edit the stack from now on, if that has changed.
    fn say_where_it_is(&mut self, record: &RecordStep, existing: &[Container]) {
        if self.restore.cause != Cause::Wanted {
            return;
        }
        let name = self.restore.name;
        let stack = self.stack();
        let started = started_files(existing, &self.snapshot().tool, stack.dir());
        let started = started.filter(|_| self.restore.file.is_none());
        let names = started.map_or_else(|| vec![stack.file().to_owned()], |files| files.compose);
        let paths = names.iter().map(|name| stack.dir().join(name));
        let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        let files = listed(&paths);
        let is_one = paths.len() == 1;
        // An earlier run may have deleted the Portainer stack, or there was none.
        let is = match record {
            RecordStep::Gone => "is not",
            _ => "is no longer",
        };
        match record {
            RecordStep::Delete(_) | RecordStep::Gone
                if is_one && !stack.compose_path().exists() =>
            {
                let to = stack.dir().to_str();
                let words = export_words(name.as_str(), to);
                let command = self
                    .run
                    .command(&[&words[..], &["--from", "containers"]].concat());
                self.run.line(format!(
                    "  it {is} in Portainer, and {files} does not exist; to write one from the containers, run `{command}`"
                ));
            }
            RecordStep::Delete(_) | RecordStep::Gone => {
                self.run
                    .line(format!("  it {is} in Portainer: edit {files} from now on"));
                if self.files_are_newer() {
                    let of = &self.snapshot().compose.name;
                    let what = if is_one { "that file" } else { of };
                    self.run.line(format!(
                        "  {what} or .env has changed since the snapshot, and stays as it is: what runs is older"
                    ));
                    let saved = shell_word(&self.saved.path.to_string_lossy()).into_owned();
                    self.run.line(format!(
                        "  to print {of} as it was then, run `jq -j .compose.text {saved}`"
                    ));
                }
            }
            RecordStep::Update(..) => {
                let (stay, them) = if is_one {
                    ("stays as it is", "it")
                } else {
                    ("stay as they are", "them")
                };
                self.run.line(format!(
                    "  {files} {stay}: `stacklift plan {name}` compares {them} with Portainer's copy"
                ));
            }
            _ => {}
        }
    }

    /// Whether the Compose file or `.env` has another text than in the snapshot.
    fn files_are_newer(&self) -> bool {
        let saved = self.snapshot();
        let env = saved.env.as_ref().map(|file| &file.text);
        let Ok(now) = self.stack().read_own() else {
            return false;
        };
        now.compose != saved.compose.text || now.env.as_ref() != env
    }

    /// The jobs that had ended, and that were recreated and not started.
    fn not_run_again(&self, existing: &[Container]) -> Vec<String> {
        let ended = self.snapshot().containers.items().iter();
        ended
            .filter(|wanted| wanted.exit_code().is_some() && !wanted.is_kept_running())
            .filter(|wanted| named(existing, wanted.name()).is_some_and(Container::has_never_run))
            .map(|wanted| self.called(wanted))
            .collect()
    }

    /// Ends with what differs. If only files are lost, a restore can do nothing more.
    fn end_with(
        &mut self,
        wrong: &[String],
        (only_lost, record): (bool, &RecordStep),
        again: &str,
    ) -> Result<()> {
        self.say_what_is_left();
        let failed = !std::mem::take(&mut self.trouble).is_empty();
        let hint = if only_lost {
            self.run.is_whole()?;
            let state = "nothing else that was compared differs from the snapshot".to_owned();
            self.run.set_state(State::new(state));
            "the snapshot does not contain these files: nothing more can be restored".to_owned()
        } else if failed && record.deploys(self.snapshot()) {
            format!(
                "fix the problem above and run the command again; if Portainer's deployment fails, it removes every container. To restore only the containers, run `{again} --engine-only`"
            )
        } else {
            "fix the problem above and run the command again: it continues from here".to_owned()
        };
        Err(Failure::new("the stack differs from the snapshot")
            .details(wrong.join("\n"))
            .hint(hint)
            .final_if(only_lost)
            .into())
    }

    /// The containers match the snapshot, and the Portainer stack is unknown (B24): that is not *verified*. Inside a run
    /// that failed, the restore of its containers has succeeded.
    fn end_without_record(&mut self, matching: String, rights: &Rights) -> Result<()> {
        if self.restore.cause == Cause::Failure {
            self.run.detail("restored", matching);
            return Ok(());
        }
        let what = format!("{matching}, but the Portainer stack is unknown: {rights}");
        let hint = format!("{}, then run the command again", rights.remedy());
        Err(Failure::new(what).hint(hint).into())
    }

    /// Waits until the containers that were healthy are healthy again, and no container is in a restart loop that was not
    /// before (B28), as long as that is possible. Returns the existing containers.
    fn wait_for_health(&mut self) -> Result<Vec<Container>> {
        let existing = self.existing()?;
        let (snapshot, taken) = (self.snapshot(), self.snapshot().taken_at());
        let starting: Vec<(String, String, Condition)> = snapshot
            .containers
            .items()
            .iter()
            .filter_map(|wanted| {
                let now = named(&existing, wanted.name())?;
                let pair = Compared::new(wanted, Some(now), taken);
                if pair.looped || !pair.has_to_run() {
                    return None;
                }
                let condition = match now.health().filter(|_| wanted.is_healthy()) {
                    Some("starting") => Condition::Healthy,
                    Some("unhealthy") if !self.restore.unhealthy.is_zero() => Condition::Healthy,
                    _ if now.loops(Utc::now()) => Condition::Started,
                    _ => return None,
                };
                Some((now.id().to_owned(), now.name().to_owned(), condition))
            })
            .collect();
        if starting.is_empty() {
            return Ok(existing);
        }
        let names: Vec<&str> = starting.iter().map(|(_, name, _)| name.as_str()).collect();
        let names = names.join(", ");
        self.run.wait(format!("waiting until healthy: {names}"));
        let (engine, limits) = (self.run.engine, self.limits());
        let mut of_loops = limits;
        // One may never end.
        if !self.restore.unhealthy.is_zero() {
            of_loops.deadline = limits.deadline.min(limits.unhealthy);
        }
        // The comparison names those that do not.
        in_parallel(&starting, |(id, name, condition)| {
            let is_loop = *condition == Condition::Started;
            let limits = if is_loop { of_loops } else { limits };
            wait_for(engine, (id, name), *condition, limits).is_ok()
        });
        self.existing()
    }

    fn wrong_containers(&self, existing: &[Container]) -> Vec<String> {
        let snapshot = self.snapshot();
        let containers = snapshot.containers.items();
        let mut wrong = Vec::new();
        for wanted in containers {
            let name = wanted.name();
            let Some(now) = named(existing, name) else {
                wrong.push(format!("{name} does not exist"));
                continue;
            };
            if is_stranger(snapshot, now) {
                let owner = owner(now.label(&snapshot.label("project")));
                wrong.push(format!("{name} is a container {owner}"));
                continue;
            }
            let found = wanted.differences(now, Creator::Restore).into_iter();
            let mut differences: Vec<String> = found.map(|what| what.to_string()).collect();
            let pair = Compared::new(wanted, Some(now), snapshot.taken_at());
            let looped = pair.looped;
            if wanted.state() != now.state() && !(looped && now.gave_up()) {
                differences.push(format!("expected {}, got {}", wanted.state(), now.state()));
            } else if now.loops(Utc::now()) && !looped {
                differences.push("it restarts again and again, and did not before".to_owned());
            } else if pair.lacks_health() {
                let health = now.health().unwrap_or("without a health check");
                differences.push(format!("expected healthy, got {health}"));
            }
            if !differences.is_empty() {
                wrong.push(format!("{name} differs: {}", differences.join("; ")));
            }
        }
        for now in existing {
            if !containers.iter().any(|wanted| wanted.name() == now.name()) {
                wrong.push(format!("{} is not in the snapshot", now.name()));
            }
        }
        wrong
    }

    /// The MAC addresses that the engine did not show, if the Compose file chooses any.
    fn hidden_mac_addresses(&self) -> Vec<String> {
        let snapshot = self.snapshot();
        if !snapshot.compose.text.contains("mac_address") {
            return Vec::new();
        }
        let hidden = snapshot.containers.items().iter().filter_map(|container| {
            let networks = container.hidden_mac_addresses();
            (!networks.is_empty()).then(|| {
                format!(
                    "the MAC address of {} on {}: the container had stopped, so an address that was set may be lost",
                    container.name(),
                    networks.join(", ")
                )
            })
        });
        hidden.collect()
    }

    fn wrong_networks(&self) -> Result<Vec<String>> {
        let now = self.existing_networks()?;
        let wrong = self
            .snapshot()
            .networks
            .items()
            .iter()
            .filter_map(|wanted| {
                let name = text(wanted, "Name");
                let Some(now) = now.get(name) else {
                    return Some(format!("network {name} does not exist"));
                };
                let differences = network_differences(wanted, now);
                (!differences.is_empty())
                    .then(|| format!("network {name} differs: {}", differences.join(", ")))
            });
        Ok(wrong.collect())
    }

    /// Compares the text, the variables, the status and the access rights of the Portainer stack. Returns what is wrong, and what
    /// is not checked.
    fn check_record(&self, step: &RecordStep) -> Result<(Vec<String>, Vec<String>)> {
        let (mut wrong, mut unchecked) = (Vec::new(), Vec::new());
        let saved = match step {
            RecordStep::Stays(_) | RecordStep::Undeployable => return Ok((wrong, unchecked)),
            RecordStep::Skipped => Err("the Portainer stack, because of --engine-only"),
            RecordStep::OutOfReach(_) | RecordStep::Unknown => Err("the Portainer stack"),
            _ => self.snapshot().record.known().ok_or("the Portainer stack"),
        };
        let saved = match saved {
            Ok(saved) => saved,
            Err(what) => return Ok((wrong, vec![what.to_owned()])),
        };
        let (saved, record) = match (saved, self.find_record()?) {
            (Some(saved), Some(record)) => (saved, record),
            (None, Some(Record { id, .. })) => {
                wrong.push(format!("Portainer stack {id} still exists"));
                return Ok((wrong, unchecked));
            }
            (Some(_), None) => {
                let endpoint = self.endpoint;
                wrong.push(format!(
                    "environment {endpoint} has no Portainer stack of this name"
                ));
                return Ok((wrong, unchecked));
            }
            (None, None) => return Ok((wrong, unchecked)),
        };
        let id = &record.id;
        let (contents, standing) = self.run.portainer.read(id)?;
        let is_moved = saved.text != contents.text && record.is_from_git();
        if is_moved {
            unchecked.push(format!(
                "whether the containers match Portainer stack {id}: its repository has another Compose file than the snapshot"
            ));
        }
        let failed = matches!(record.deployment, Deployment::Failed(_));
        let is_env = saved.env == contents.env;
        let compose_file = if failed && is_env {
            // A failed update puts the old text back, and keeps the new variables (N15).
            "the Compose file, which the failed update put back; its variables are those of the snapshot"
        } else {
            "the Compose file"
        };
        let status = saved.inactive.map(|saved| saved == standing.inactive);
        let access = saved.access.as_ref().map(|saved| *saved == standing.access);
        for (what, is_same) in [
            (compose_file, Some(saved.text == contents.text || is_moved)),
            ("the variables", Some(is_env)),
            ("the status", status),
            ("its deployment failed", Some(!failed)),
            ("the access rights", access),
        ] {
            match is_same {
                Some(true) => {}
                Some(false) => wrong.push(format!("Portainer stack {id} differs: {what}")),
                None => unchecked.push(format!("{what} of Portainer stack {id}")),
            }
        }
        Ok((wrong, unchecked))
    }

    /// B19.
    fn say_what_is_left(&mut self) {
        if self.restore.scope != Scope::EngineOnly {
            return;
        }
        let snapshot = self.snapshot();
        let left = match &snapshot.record {
            Known::Known(None) => {
                "a stack that was created there since the snapshot is not deleted yet"
            }
            Known::Known(Some(_)) => {
                "the Compose file, variables, status and access rights of the Portainer stack are not restored yet"
            }
            Known::Unknown(_) => {
                "check the Portainer stack: the snapshot contains no data about it, so a restore does not change it"
            }
        };
        let command = self.run.undo_command(&snapshot.stack, &self.saved.id);
        self.run.warn(format!(
            "Portainer was not contacted: {left}. When Portainer responds again, run `{command}`"
        ));
    }
}
