//! Checks every container after the deployment.

use anyhow::Result;

use super::{Adoption, Prepared};
use crate::{
    after::{Compared, Difference, Ran, changes, end, told, wait_until_steady},
    engine::{ContainerEvent, EngineReader},
    failure::Failure,
    finding::{Finding, Kind},
    model::Container,
    observe::Situation,
    plan::{self, Fate, Plan},
    portainer::Payload,
    report::{AdoptedContainer, AdoptedService, Change, Outcome},
    run::State,
    snapshot::Known,
    text::bulleted,
};

/// What the verification found.
#[derive(Default)]
struct Findings<'a> {
    /// What does not run as before, except for the first container that does not run.
    wrong: Vec<String>,
    /// The first container that does not run, and how it ended.
    not_running: Option<(&'a Container, String)>,
    /// What is wrong, although nothing has to be restored because of it, and what to do.
    flaws: Vec<(String, String)>,
    /// What the plan said and is not so, although everything runs as before.
    not_as_planned: Vec<String>,
}

impl Adoption<'_, '_> {
    /// The containers of the stack, as the engine inspects them.
    pub(super) fn look(&self) -> Result<Vec<Container>> {
        self.run.inspect(self.at.stack.name().as_str())
    }

    /// Waits until the containers run as `before`, and returns them.
    pub(super) fn wait_until_steady(&mut self, before: Ran, plan: &Plan) -> Result<Vec<Container>> {
        let of = (self.at.stack.name().as_str(), self.at.tool);
        wait_until_steady(self.run, of, before, self.a.wait, plan.is_stopped)
    }

    /// Compares the containers with those before, and waits until they run and are healthy. Returns what does not run as
    /// before. An error means that something else is wrong, or that it could not be verified: nothing has to be restored.
    ///
    /// The Portainer stack is read back first: a success that Portainer reports does not prove that it has the stack.
    pub(super) fn verify(
        &mut self,
        prepared: &Prepared,
        payload: &Payload,
    ) -> Result<Option<Failure>> {
        let id = self.report.portainer_stack.clone().unwrap_or_default();
        let (stack, endpoint) = (self.at.stack.name(), self.at.endpoint);
        let record = self.run.check_record(&id, stack, endpoint, payload);
        if payload.git.is_some() {
            let read = self.run.portainer.read(&id).ok();
            self.report.git = read.and_then(|(_, standing)| standing.git);
        }
        let mut sent = prepared.last_sent(payload.text, payload.env);
        sent.id = Some(id.clone());
        sent.commit = self.report.git.as_ref().map(|git| git.commit.clone());
        if record.is_none() {
            self.run.set_last_sent(&sent);
        }
        // The engine remembers few events, and health checks are events too.
        let events = self.run.events(stack.as_str());
        let is_stopped = prepared.plan.is_stopped;
        let now = self.wait_until_steady(prepared.ran(), &prepared.plan);
        let now = now.map_err(|error| {
            self.report.outcome = Outcome::Unknown;
            error.context("failed to verify the containers, so nothing was restored")
        })?;
        if record.is_none() {
            let all = now.iter();
            let hashes =
                all.filter_map(|container| container.compose_label(self.at.tool, "config-hash"));
            let sent = sent.deployed_as(Some(hashes.map(str::to_owned).collect()));
            self.run.set_last_sent(&sent);
        }
        let compared = prepared.ran().compare(&now, self.at.tool);
        let mut findings = findings(prepared, &compared, &self.at);
        match not_copied(self.run.engine, &self.at, prepared, &compared) {
            Ok(missing) => findings.wrong.extend(missing),
            Err(error) => self.run.warn(format!("{error:#}")),
        }
        let hint = "look at the stack in Portainer, then run the command again".to_owned();
        let is_in_portainer = record.is_none();
        findings.flaws.extend(record.map(|record| (record, hint)));
        self.run.warn_all(warnings(&compared, &now, is_stopped));
        self.report.services = services(prepared, &compared, &events, self.at.tool);
        let (flaws, hints): (Vec<String>, Vec<String>) = findings.flaws.into_iter().unzip();
        let all = [&findings.wrong, &flaws, &findings.not_as_planned];
        self.report.problems = all.into_iter().flatten().cloned().collect();
        if let Some((container, end)) = findings.not_running {
            return Ok(Some(self.does_not_run(prepared, container, &end)));
        }
        if !findings.wrong.is_empty() {
            return Ok(Some(
                Failure::new(format!("{stack} does not run as before"))
                    .details(bulleted(&self.report.problems))
                    .hint("fix the problems above, then run the command again"),
            ));
        }
        if !flaws.is_empty() {
            let (outcome, state) = if is_in_portainer {
                self.run.is_whole()?;
                let state = format!(
                    "the stack exists as Portainer stack {id} and is deployed, but a job failed; the other containers run"
                );
                (Outcome::Changed, state)
            } else {
                let containers = match changes(&compared).as_slice() {
                    [] => "the containers run as before".to_owned(),
                    changes => changes.join(", "),
                };
                let state = format!(
                    "Portainer stack {id} may exist, and may not be what was sent; {containers}"
                );
                (Outcome::Unknown, state)
            };
            self.report.outcome = outcome;
            self.run.set_state(State::new(state).undoable(false));
            let what = format!(
                "Portainer reported that it deployed {stack}, but not everything is as it should be"
            );
            let failure = Failure::new(what).details(bulleted(&self.report.problems));
            return Err(failure.hint(hints.join("; ")).into());
        }
        self.report.url = Some(self.page(&id));
        self.set_deployed(&id, "run");
        if findings.not_as_planned.is_empty() {
            self.report.outcome = Outcome::Adopted;
            return Ok(None);
        }
        self.run.is_whole()?;
        self.report.outcome = Outcome::PlanWasWrong;
        Err(
            Failure::new("the stack is in Portainer and runs, but the plan was wrong")
                .details(bulleted(&self.report.problems))
                .hint("if you need a file named above, roll back; otherwise, there is nothing to do. If nothing else restarted or recreated a container meanwhile, please report this as a bug, with the versions of Portainer, Compose and Docker")
                .into(),
        )
    }

    /// The failure of a container that does not run.
    fn does_not_run(&mut self, prepared: &Prepared, container: &Container, end: &str) -> Failure {
        let stack = self.at.stack.name();
        let service = container.compose_label(self.at.tool, "service");
        let service = service.unwrap_or_default();
        let others = bulleted(&self.report.problems);
        let mut details = Vec::from_iter((!others.is_empty()).then_some(others));
        let log = self.run.log_tail(container.id());
        if !log.is_empty() {
            let log = log.join("\n    ");
            details.push(format!("  the log of {service} ends with:\n    {log}"));
        }
        // Nothing is restored: what has ended counts as a job.
        let then = match prepared.ran().containers.is_empty() {
            true if container.start_error().is_none() && !container.is_restarting() => {
                " with --rerun-jobs, or delete the stack in Portainer"
            }
            true => ", or delete the stack in Portainer",
            false => "",
        };
        let failure = Failure::new(format!("{service} of {stack} does not run: {end}"))
            .hint(format!("fix {service}, then run the command again{then}"));
        self.report
            .problems
            .insert(0, format!("{service} does not run: {end}"));
        failure.lines(&details)
    }

    /// The page of a Portainer stack.
    pub(super) fn page(&self, id: &str) -> String {
        let (url, endpoint) = (self.at.base_url, self.at.endpoint);
        let name = self.at.stack.name().portainer_name();
        format!("{url}/#!/{endpoint}/docker/stacks/{name}?id={id}&type=2&regular=true")
    }
}

/// Everything that is not as it was, or not as the plan said.
fn findings<'a>(prepared: &Prepared, compared: &[Compared<'a>], at: &Situation) -> Findings<'a> {
    let (plan, tool) = (&prepared.plan, at.tool);
    let mut found = Findings::default();
    for pair in compared {
        let service = pair.service(tool);
        let mut all = plan.services.iter();
        let planned = all.find(|planned| planned.service == service);
        let fate = planned.map(|planned| &planned.fate);
        let name = pair.name();
        match pair.change {
            Change::Missing
                if is_replica(&plan.changes, service)
                    && !plan::fate_of(&plan.services, name).is_some_and(Fate::keeps_containers) => {
            }
            Change::Stray | Change::Missing => found.wrong.push(pair.to_string()),
            _ if pair.has_to_run() && !pair.runs() => match pair.now.zip(pair.now.and_then(end)) {
                Some((now, end)) if found.not_running.is_none() => {
                    found.not_running = Some((now, end));
                }
                Some((_, end)) => found.wrong.push(format!("{name} does not run: {end}")),
                None => found.wrong.push(pair.to_string()),
            },
            _ if pair.lacks_health() => found.wrong.push(pair.told_health()),
            _ => {}
        }
        if let Some(failed) = pair.failed_again() {
            found.flaws.push((
                format!("the job {service} ({name}) {failed}"),
                format!(
                    "see `{tool} logs {name}`, fix the job, then run it with `{tool} start {name}`"
                ),
            ));
        }
        let unexpected = unexpected(prepared, pair, at);
        if !unexpected.is_empty() {
            let what = told(&unexpected);
            found
                .wrong
                .push(format!("{name} differs from before: {what}"));
        }
        let moved = matches!(pair.change, Change::Recreated | Change::Restarted);
        if moved && fate.is_some_and(Fate::is_unchanged) {
            let lost = lost_files(prepared, pair);
            let lost = lost.map_or_else(String::new, |files| format!(", and lost {files}"));
            found.not_as_planned.push(format!(
                "the plan said that {service} would not be touched, but {pair}{lost}"
            ));
        }
    }
    for planned in &plan.services {
        let service = planned.service.as_str();
        let is_known = compared.iter().any(|pair| pair.service(tool) == service);
        if !is_known && !matches!(planned.fate, Fate::LeftBehind(_) | Fate::Removed(_)) {
            found.wrong.push(format!("{service} has no container"));
        }
    }
    found
}

/// The configs and secrets whose content Compose copied into a container before, and not into its successor (N17). The engine
/// of a rehearsal copies nothing.
fn not_copied(
    engine: &EngineReader,
    at: &Situation,
    prepared: &Prepared,
    compared: &[Compared],
) -> Result<Vec<String>> {
    if at.compose.is_rehearsed {
        return Ok(Vec::new());
    }
    let Ok(project) = &prepared.projects.sent else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for pair in compared {
        let (Change::Recreated, Some(before), Some(now)) = (pair.change, pair.before, pair.now)
        else {
            continue;
        };
        let known = prepared.before.host.changes.get(before.id());
        let Some(had) = known.and_then(Known::known) else {
            continue;
        };
        let service = pair.service(at.tool);
        let files = project
            .service(service)
            .into_iter()
            .flat_map(|found| &found.files);
        let copied = files.filter(|file| file.content.is_copied());
        let targets = copied.map(|file| file.target.as_str());
        let targets: Vec<&str> = targets.filter(|target| had.has(target)).collect();
        if targets.is_empty() {
            continue;
        }
        let has = engine.changes(now.id())?;
        let is_complete = has.total == has.listed.len();
        let name = pair.name();
        let missing = targets
            .iter()
            .filter(|target| is_complete && !has.has(target));
        found.extend(
            missing.map(|target| format!("{name}: Portainer did not copy {target} into it")),
        );
    }
    Ok(found)
}

/// The jobs that have not ended and what is not healthy, or what does not run of a stack that was stopped as a whole: it did not run before either, so
/// nothing is restored.
fn warnings(compared: &[Compared], now: &[Container], is_stopped: bool) -> Vec<String> {
    if is_stopped {
        return now.iter().filter_map(not_running).collect();
    }
    let told = compared.iter().filter(|pair| pair.runs_again()).map(|job| {
        let name = job.name();
        format!("{name} runs again, and has not ended: whether it succeeds is unknown")
    });
    let ill = compared.iter().filter(|pair| pair.change != Change::Kept);
    let ill = ill.filter(|pair| pair.now.and_then(Container::health) == Some("unhealthy"));
    told.chain(ill.map(|pair| format!("{} is not healthy", pair.name())))
        .collect()
}

/// Why a container that was started does not run, unless it succeeded.
pub(super) fn not_running(container: &Container) -> Option<String> {
    let end = end(container).filter(|_| container.exit_code() != Some(0))?;
    Some(format!("{} does not run: {end}", container.name()))
}

/// The files that were lost with a container that was recreated or restarted.
fn lost_files(prepared: &Prepared, one: &Compared) -> Option<String> {
    let changes = &prepared.before.host.changes;
    let changes = changes.get(one.before?.id()).and_then(Known::known)?;
    let before = one.before.filter(|_| one.change == Change::Recreated);
    let written = before.and_then(|before| plan::files(before, changes, &[]));
    let in_memory = changes.in_memory.join(", ");
    let in_memory = (!in_memory.is_empty()).then(|| format!("the files in memory at {in_memory}"));
    let written = written.map(|files| format!("the {files}"));
    let lost = [in_memory, written].into_iter().flatten();
    let lost = lost.collect::<Vec<_>>().join(" and ");
    (!lost.is_empty()).then_some(lost)
}

/// Whether the plan says that a service gets fewer containers.
fn is_replica(changes: &[Finding], of: &str) -> bool {
    let is_of = |loss: &&Finding| loss.service.as_deref() == Some(of);
    let mut changes = changes.iter().filter(is_of);
    changes.any(|loss| matches!(loss.kind, Kind::Replicas { .. }))
}

/// What differs in a container and was not to be expected. In a recreated one, the networks have to be those that were sent
/// (B38). Other differences are expected where the plan lists a loss of that container, and where its configuration was not that
/// of the files before.
fn unexpected<'a>(prepared: &Prepared, one: &Compared<'a>, at: &Situation) -> Vec<Difference<'a>> {
    let (Change::Recreated, Some(before), Some(now)) = (one.change, one.before, one.now) else {
        return one.differences();
    };
    let name = before.name();
    let loses = |loss: &Finding| loss.subject.as_deref() == Some(name) && loss.kind != Kind::Memory;
    let mut lost = prepared.plan.losses.iter().chain(&prepared.plan.changes);
    let is_told = lost.any(loses) || !prepared.is_up_to_date(before, one.service(at.tool), at.tool);
    let project = prepared.projects.sent.as_ref().ok();
    let is_as_sent = project.and_then(|project| plan::is_connected_as_sent(project, now, at.tool));
    // The same name may refer to another image by now, or the image was built. *Recreate* in Portainer copies what the container
    // had of an earlier image (N05).
    let created_with = before.compose_label(at.tool, "image");
    let is_new_image = before.image_name() == now.image_name()
        && (before.image_id() != now.image_id()
            || created_with.is_some_and(|id| id != before.image_id()));
    let mut differences = one.differences();
    differences.retain(|what| match what {
        Difference::Networks => !is_as_sent.unwrap_or(is_told),
        _ => !(is_told || is_new_image && what.may_come_with_image()),
    });
    differences
}

/// The services in the order of the plan, then those that are not in it.
pub(super) fn services(
    prepared: &Prepared,
    compared: &[Compared],
    events: &[ContainerEvent],
    tool: &str,
) -> Vec<AdoptedService> {
    let planned = prepared.plan.services.iter().map(|planned| AdoptedService {
        service: planned.service.clone(),
        containers: Vec::new(),
    });
    let mut services: Vec<AdoptedService> = planned.collect();
    for pair in compared {
        let service = pair.service(tool);
        let container = AdoptedContainer {
            name: pair.name().to_owned(),
            change: pair.told_change(),
            id: pair.now.map(|now| now.id().to_owned()),
            running: pair.now.is_some_and(Container::is_running),
            restarting: pair.looped && pair.now.is_some_and(Container::is_running),
            differences: pair.differences().iter().map(ToString::to_string).collect(),
            away: pair.away(events).map(|away| away.as_secs_f64()),
        };
        match services.iter_mut().find(|known| known.service == service) {
            Some(known) => known.containers.push(container),
            None => services.push(AdoptedService {
                service: service.to_owned(),
                containers: vec![container],
            }),
        }
    }
    services
}
