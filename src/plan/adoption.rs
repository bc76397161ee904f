//! What an adoption would do, as data.

mod comparison;
pub mod kept;
pub mod variables;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    compose::Project,
    finding::{Finding, Kind},
    model::{Container, Deployment, PORTAINER_FOLDERS},
    plan::{
        Facts, Fate, InPortainer, Plan, ServicePlan, Touch,
        checks::{
            adoption::blocking,
            missing::{Missing, missing},
            validation,
        },
        edited, fate_of,
        fates::{redefined::Redefined, services::services},
        service::inspected,
    },
    text::{listed, said},
};

/// What Portainer is asked to do.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "portainer_stack", rename_all = "kebab-case")]
pub enum Request {
    /// A create.
    #[default]
    Create,
    /// A create from a Git repository (M24).
    CreateGit,
    /// An update of this Portainer stack (M16).
    Update(String),
    /// This Git stack takes its files from the repository again, and is deployed (M24).
    Redeploy(String),
    /// A delete of this Portainer stack, then a create: a migration.
    Replace(String),
    /// Nothing: this Portainer stack has the same text and variables.
    Nothing(String),
}

impl Request {
    /// Whether Portainer has no stack yet.
    pub fn creates(&self) -> bool {
        matches!(self, Self::Create | Self::CreateGit)
    }
}

/// The request, and the fate of every service: a plan without its checks and losses.
pub fn fates(facts: &Facts) -> Plan {
    let uses = &facts.remote.uses;
    let mut plan = Plan {
        request: Some(request(facts, facts.redeploys)),
        in_portainer: facts
            .record
            .map_or(InPortainer::Nothing, |record| record.in_portainer),
        is_stopped: is_stopped(facts),
        access: uses.wanted.clone().filter(|_| !uses.is_as_wanted),
        ..Plan::default()
    };
    if let Ok(project) = &facts.projects.sent {
        plan.decide(facts, project);
    }
    plan
}

/// Plans an adoption.
pub fn adoption(facts: &Facts) -> Plan {
    let mut plan = fates(facts);
    let problems = facts.problems.iter();
    let problems = problems.map(|blocker| blocker.clone().in_file(facts.file));
    plan.blockers.extend(problems);
    plan.check_surroundings(facts);
    plan.check_name(facts);
    if facts.problems.is_empty() {
        plan.block(validation::refusals(facts, false), facts.file);
    }
    match &facts.projects.sent {
        Ok(project) => plan.check_and_lose(facts, project),
        Err(unread) if plan.blockers.is_empty() => {
            let what = format!("Compose cannot read the file that is sent: {unread}");
            let hint = "run `docker compose config` in the stack's directory as its owner: it must succeed";
            plan.blockers.push(Finding::new(what, hint));
        }
        Err(_) => {}
    }
    let (failed, how) = &facts.before.failed;
    if failed.has(facts.sent.text, facts.sent.env) {
        let failed = Finding::of_stack(how).of_kind(Kind::FailedBefore);
        plan.warnings.push(failed);
    }
    plan.blockers.extend(blocking(facts, &plan));
    plan
}

impl Plan {
    /// What sending the text does to what runs.
    fn decide(&mut self, facts: &Facts, project: &Project) {
        self.services = services(facts, project);
        if facts.redeploys {
            self.replace_all_from_git(facts);
        } else if self.in_portainer != InPortainer::FromGit {
            self.replace_all_if_in_error(facts);
        }
        self.compare_with_last_adoption(facts);
        self.update_unless_all_run(facts, project);
    }

    /// What would make the deployment fail, and what it would lose.
    fn check_and_lose(&mut self, facts: &Facts, project: &Project) {
        let mut redefined = Redefined::new(facts);
        self.warn_all(std::mem::take(&mut redefined.ignored));
        if self.sends_nothing() {
            self.warn_of_next_update(facts);
        } else {
            self.check_text(facts, project);
            self.blockers.extend(redefined.blockers());
        }
        self.lose_by_adoption(facts, project);
        let containers = facts.host.inspected();
        let mut lost =
            containers.filter(|container| self.keeps_of_lost_portainer(facts, container));
        if let Some(one) = lost.next() {
            self.warn(format!(
                "Portainer started {}, and has no stack for it: if another Portainer has one, do not adopt it here",
                one.name()
            ));
        }
    }

    /// Warns of what a later update needs and does not exist.
    fn warn_of_next_update(&mut self, facts: &Facts) {
        let Missing {
            refusals, pulls, ..
        } = missing(facts);
        let missing = refusals.into_iter().flat_map(|refusal| refusal.details);
        self.warn_all(missing.map(|what| format!("the next update in Portainer fails: {what}")));
        let absent = pulls
            .iter()
            .filter(|pull| facts.host.lacks_image(&pull.image));
        self.warn_all(absent.map(|pull| {
            format!(
                "image {} is no longer on this host: the next update in Portainer fails if it cannot be pulled",
                pull.image
            )
        }));
    }

    /// The containers that are replaced or restarted, or may be.
    pub fn touched<'a>(&self, containers: &'a [Container]) -> Vec<(&'a Container, Touch)> {
        let touch = |container: &Container| match fate_of(&self.services, container.name())? {
            Fate::Recreated(_) | Fate::Removed(_) => Some(Touch::Replaced),
            Fate::Restarted(_) => Some(Touch::Restarted),
            Fate::Unknown(_) => Some(Touch::MayBeReplaced),
            Fate::Unchanged | Fate::Started(_) | Fate::LeftBehind(_) => None,
        };
        let containers = containers.iter();
        let touched = containers.filter_map(|container| Some((container, touch(container)?)));
        touched.collect()
    }

    /// Whether no service runs: the stack was stopped, or it has no containers.
    pub fn runs_nothing(&self) -> bool {
        self.is_stopped
            || self
                .services
                .iter()
                .all(|service| service.containers.is_empty())
    }

    /// Whether the deployment keeps a container of a Portainer stack that Portainer no longer has: the files are those of that
    /// stack, whichever directory they are in.
    pub fn keeps_of_lost_portainer(&self, facts: &Facts, container: &Container) -> bool {
        let dir = facts.label(container, "project.working_dir");
        let is_lost = dir.is_some_and(|dir| dir.starts_with(PORTAINER_FOLDERS))
            && facts.record.is_none()
            && facts.remote.rights.see_every_stack();
        is_lost && fate_of(&self.services, container.name()).is_some_and(Fate::keeps_containers)
    }

    /// Whether it is a Git stack that this run does not deploy again.
    pub fn is_left_to_git(&self) -> bool {
        self.in_portainer == InPortainer::FromGit && self.sends_nothing()
    }

    fn compare_with_last_adoption(&mut self, facts: &Facts) {
        let is_sent = matches!(
            self.in_portainer,
            InPortainer::UpToDate | InPortainer::LastSent | InPortainer::OtherForm
        );
        let mut services = self.services.iter();
        let is_by_hand = !facts.before.has_failed();
        if is_sent
            && is_by_hand
            && services.any(|service| differs_from_adoption(facts, service) == Some(true))
        {
            self.in_portainer = InPortainer::Redeployed;
        }
        if self.in_portainer == InPortainer::FromGit && facts.before.last_sent.is_behind {
            let is_as_left =
                |one: &&Container| edited::is_as_left(one, &facts.before.last_sent, facts.tool);
            let restored = facts.host.inspected();
            let restored = restored.filter(|container| is_as_left(container) == Some(true));
            self.by_hand = restored
                .map(|container| container.name().to_owned())
                .collect();
        }
        let edited = facts.record.filter(|_| self.in_portainer.may_be_theirs());
        if let Some(record) = edited {
            let is_last = record.last_sent.has(facts.sent.text, facts.sent.env);
            self.files_differ = self.in_portainer == InPortainer::Edited && !is_last;
            let containers = facts.host.inspected();
            self.by_hand = containers
                .filter(|container| edited::is_by_hand_since(container, record.record, facts.tool))
                .map(|container| container.name().to_owned())
                .collect();
        }
    }

    /// The same text and variables are sent again if a service does not run, or has another image or configuration. A job that
    /// has finished counts as running, and so does one that a restore created again, which does not start it. If nothing is
    /// sent, no container is touched, whatever a deployment would do: another version of Compose may record the same
    /// configuration in another form.
    fn update_unless_all_run(&mut self, facts: &Facts, project: &Project) {
        let Some(Request::Nothing(id)) = &self.request else {
            return;
        };
        let jobs = project.jobs();
        let last = &facts.before.last_sent;
        let runs = |service: &ServicePlan| match service.fate {
            Fate::LeftBehind(_) | Fate::Removed(_) => true,
            // After a failed adoption, the earlier containers run.
            Fate::Recreated(_) if !service.is_as_sent || facts.before.has_failed() => false,
            Fate::Recreated(_)
            | Fate::Unchanged
            | Fate::Started(_)
            | Fate::Restarted(_)
            | Fate::Unknown(_) => {
                let own = inspected(facts, &service.containers);
                let lacks_one = service.asked.is_some_and(|asked| asked > own.len());
                let is_restored_job = |one: &Container| {
                    one.has_never_run()
                        && jobs.contains(&*service.service)
                        && edited::is_as_left(one, last, facts.tool) == Some(true)
                };
                let mut all = own.iter();
                let all_run = !own.is_empty()
                    && all.all(|one| one.runs_or_succeeded() || is_restored_job(one));
                all_run && !lacks_one && differs_from_adoption(facts, service) != Some(true)
            }
        };
        let is_from_git = self.in_portainer == InPortainer::FromGit;
        if !is_from_git && !self.services.iter().all(runs) {
            self.request = Some(Request::Update(id.clone()));
            return;
        }
        let mut surplus: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for service in self.services.iter().filter(|_| !is_from_git) {
            if let Fate::Removed(why) = &service.fate {
                surplus.entry(why).or_default().push(&service.service);
            }
        }
        let removed = surplus.iter().map(|(why, names)| {
            let names = listed(names);
            format!("the next update in Portainer removes {names}: {why}")
        });
        let removed: Vec<String> = removed.collect();
        self.warn_all(removed);
        for service in &mut self.services {
            let is_unknown = matches!(service.fate, Fate::Unknown(_)) && !is_from_git;
            let has_more = service
                .asked
                .is_some_and(|asked| asked < service.containers.len());
            if service.fate.is_unchanged()
                || is_unknown && has_more
                || is_unknown && differs_from_adoption(facts, service).is_none()
            {
                continue;
            }
            let mut containers = inspected(facts, &service.containers).into_iter();
            service.fate =
                if containers.all(|container| container.is_running() && !container.is_paused()) {
                    Fate::Unchanged
                } else {
                    Fate::LeftBehind("nothing changes in Portainer".to_owned())
                };
            service.stop_grace = None;
        }
        let paused = facts
            .host
            .inspected()
            .filter(|container| container.is_paused());
        self.warn_all(paused.map(|container| {
            let (name, tool) = (container.name(), facts.tool);
            format!("{name} stays paused: to continue it, run `{tool} unpause {name}`")
        }));
        self.warn_all(self.stopped(facts));
    }

    /// Says which containers somebody stopped: Docker would have started them again, or none of the stack runs.
    fn stopped(&self, facts: &Facts) -> Option<String> {
        let stopped = facts.host.inspected().filter(|one| {
            let was_stopped = self.is_stopped || one.is_kept_running();
            was_stopped && !one.is_running() && !one.is_one_off(facts.tool)
        });
        let names: Vec<&str> = stopped.map(Container::name).collect();
        let (are_stopped, tool) = (said(&names, "is stopped")?, facts.tool);
        let them = if names.len() == 1 { "it" } else { "them" };
        Some(format!(
            "{are_stopped}: to start {them}, run `{tool} start {}`",
            names.join(" ")
        ))
    }
}

/// Whether none of the containers of services runs. One that a restore created may never have run. A stack without
/// containers is stopped if Portainer has deployed it. It may have been deleted there since.
fn is_stopped(facts: &Facts) -> bool {
    let all = facts.host.inspected();
    let mut own = all
        .filter(|container| !container.is_one_off(facts.tool))
        .peekable();
    let is_deployed = facts.record.is_some_and(|facts| {
        let deployment = &facts.record.deployment;
        matches!(deployment, Deployment::Active | Deployment::Inactive)
    });
    (is_deployed || !facts.before.last_sent.is_empty() || own.peek().is_some())
        && own.all(|container| !container.is_running())
}

/// What has to be sent. A Portainer stack with the same text and variables needs nothing. A text is never sent to a Git stack:
/// that would end its link (M24).
fn request(facts: &Facts, redeploys: bool) -> Request {
    let Some(record) = &facts.record else {
        return Request::Create;
    };
    let id = record.record.id.clone();
    if record.in_portainer == InPortainer::FromGit {
        return if redeploys {
            Request::Redeploy(id)
        } else {
            Request::Nothing(id)
        };
    }
    let is_same = record.in_portainer == InPortainer::UpToDate;
    if is_same && record.record.deployment == Deployment::Active {
        Request::Nothing(id)
    } else {
        Request::Update(id)
    }
}

/// Whether a container of a service has another configuration than the last adoption left, as
/// [`edited::differs_from_adoption`] tells. `None` if it is unknown.
fn differs_from_adoption(facts: &Facts, service: &ServicePlan) -> Option<bool> {
    if service.fate.is_unchanged() {
        return Some(false);
    }
    let containers = inspected(facts, &service.containers);
    let record = facts.record.as_ref()?;
    let differs = |container| edited::differs_from_adoption(container, record, facts.tool);
    let all: Vec<Option<bool>> = containers.into_iter().map(differs).collect();
    match all.contains(&Some(true)) {
        false if all.contains(&None) => None,
        differs => Some(differs),
    }
}
