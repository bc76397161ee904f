//! What an adoption would do, as data.

mod comparison;
pub mod kept;
pub mod variables;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    compose::{ComposeVersion, Content, Project, Service, dialect::Fields},
    finding::{Finding, Kind},
    model::{Deployment, PORTAINER_FOLDERS, Record, values},
    plan::{
        Environment, Facts, Fate, InPortainer, NOT_PULLED, Plan, PortainerCompose, Touch,
        blockers::inline,
        blockers::missing,
        blockers::overridden,
        blockers::permissions,
        blockers::unsupported::unsupported,
        blockers::validation,
        edited, escape,
        fates::dependents,
        fates::redefined::Redefined,
        fates::steering::Steering,
        fates::versions::takes_name_of_other_host,
        fates::{self, Deciding},
        losses::{containers, memory, record},
    },
    rewrite::faithful,
    snapshot::Inspected,
    text::{listed, printable, shell_word},
};

/// What happens to a service without containers.
pub const NOT_STARTED: &str = "has no container yet and will be started";

/// What is known for an adoption besides the [`Facts`], whose `sent` is the faithful rewrite.
pub struct AdoptionFacts<'a> {
    pub facts: &'a Facts<'a>,
    /// The Compose file's name.
    pub file: &'a str,
    /// The Compose files that are adopted, absolute or relative to the directory.
    pub files: &'a [String],
    /// The problems of the rewrite. If there are any, nothing is sent.
    pub rewrite: &'a [Finding],
    /// What the rewrite writes into the text because it runs.
    pub runs: &'a faithful::Runs,
    /// Whether Portainer is to deploy its Git stack again.
    pub redeploys: bool,
}

impl<'a> AdoptionFacts<'a> {
    /// What Compose prints for a service, if a container certainly has that configuration: of the files on disk, or of what is
    /// sent.
    fn hashed(&self, container: Inspected, service: &str) -> Option<&'a Fields> {
        let hash = self.facts.label(container, "config-hash")?;
        let projects = self.facts.projects;
        let mut all = projects.on_disk.iter().chain(&projects.sent);
        let found = all.find(|project| project.is_of(service, hash))?;
        found.fields(service)
    }
}

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

/// What happens to a service.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServicePlan {
    pub service: String,
    /// The names of its containers.
    pub containers: Vec<String>,
    pub fate: Fate,
    /// If a running container is stopped: the longest time that the engine waits before it kills the container, in seconds.
    #[serde(rename = "stop_seconds")]
    pub stop_grace: Option<u32>,
    /// How many containers the text asks for, if that is known.
    #[serde(skip)]
    pub asked: Option<usize>,
    /// The services that it depends on.
    #[serde(skip)]
    pub needs: Vec<String>,
    /// Whether a container of it restarts again and again.
    #[serde(skip)]
    pub restarting: bool,
}

impl ServicePlan {
    /// Whether Portainer creates a container of it, or may do so.
    fn may_create(&self) -> bool {
        match self.fate {
            Fate::Recreated(_) | Fate::Unknown(_) => true,
            Fate::Started(_) => self.asked.is_none_or(|asked| asked > self.containers.len()),
            _ => false,
        }
    }

    /// Gives it a fate for which its containers may be stopped.
    pub fn may_stop(&mut self, facts: &Facts, fate: Fate) {
        self.fate = fate;
        self.stop_grace = stop_grace(&inspected(facts, &self.containers));
    }
}

/// What happens to the container with this name.
pub fn fate_of<'s>(services: &'s [ServicePlan], container: &str) -> Option<&'s Fate> {
    let has = |one: &&ServicePlan| one.containers.iter().any(|own| own == container);
    services.iter().find(has).map(|one| &one.fate)
}

/// Plans an adoption.
pub fn adoption(input: &AdoptionFacts) -> Plan {
    let facts = input.facts;
    let (rewrite, uses) = (input.rewrite.iter(), &facts.before.uses);
    let mut plan = Plan {
        request: Some(request(facts, input.redeploys)),
        in_portainer: facts
            .record
            .map_or(InPortainer::Nothing, |record| record.in_portainer),
        blockers: rewrite
            .map(|blocker| blocker.clone().in_file(input.file))
            .collect(),
        is_stopped: is_stopped(facts),
        access: uses.wanted.clone().filter(|_| !uses.is_as_wanted),
        ..Plan::default()
    };
    plan.check_surroundings(input);
    plan.check_name(input);
    if input.rewrite.is_empty() {
        plan.block(validation::refusals(facts, false), input.file);
    }
    match &facts.projects.sent {
        Ok(project) => plan.compare(input, project),
        Err(unread) if plan.blockers.is_empty() => {
            let what =
                format!("it is unknown what Compose reads in the file that is sent: {unread}");
            let hint = "`docker compose config` must accept the file";
            plan.blockers.push(Finding::new(what, hint));
        }
        Err(_) => {}
    }
    let (failed, how) = &facts.before.failed;
    if failed.has(facts.sent.text, facts.sent.env) {
        plan.failed_before = Some(how.clone());
    }
    escape(&mut plan.warnings);
    plan
}

impl Plan {
    /// What sending the text does to what runs.
    fn compare(&mut self, input: &AdoptionFacts, project: &Project) {
        let facts = input.facts;
        let compose = portainer_compose(facts);
        let mut redefined = Redefined::new(input, compose);
        self.warnings.append(&mut redefined.ignored);
        let steering = Steering::new(facts, project, compose, facts.record.map(|one| one.record));
        self.services = services(input, project, compose, &redefined, &steering);
        if input.redeploys {
            self.replace_all_from_git(facts);
        } else if self.in_portainer != InPortainer::FromGit {
            self.replace_all_if_in_error(facts);
        }
        self.compare_with_last_adoption(facts);
        self.update_unless_all_run(facts);
        if !self.sends_nothing() {
            self.check_text(input, project, compose, &steering);
            self.blockers.extend(redefined.blockers());
        }
        self.lose_by_adoption(input, project, compose);
        let containers = facts.before.inspected();
        let mut lost = containers.filter(|one| self.keeps_of_lost_portainer(facts, *one));
        if let Some(one) = lost.next() {
            self.warnings.push(format!(
                "Portainer started {}, and has no stack for it: if another Portainer has one, do not adopt it here",
                one.name()
            ));
        }
    }

    /// The containers that are replaced or restarted, or may be.
    pub fn touched<'a>(&self, containers: &'a [Value]) -> Vec<(Inspected<'a>, Touch)> {
        let touch = |container: Inspected| match fate_of(&self.services, container.name())? {
            Fate::Recreated(_) | Fate::Removed(_) => Some(Touch::Replaced),
            Fate::Restarted(_) => Some(Touch::Restarted),
            Fate::Unknown(_) => Some(Touch::MayBeReplaced),
            Fate::Unchanged | Fate::Started(_) | Fate::LeftBehind(_) => None,
        };
        let containers = containers.iter().map(Inspected);
        let touched = containers.filter_map(|one| Some((one, touch(one)?)));
        touched.collect()
    }

    /// Whether no service runs: the stack was stopped, or it has no containers.
    pub fn runs_nothing(&self) -> bool {
        self.is_stopped || self.services.iter().all(|one| one.containers.is_empty())
    }

    /// Whether the deployment keeps a container of a Portainer stack that Portainer no longer has: the files are those of that
    /// stack, whichever directory they are in.
    pub fn keeps_of_lost_portainer(&self, facts: &Facts, container: Inspected) -> bool {
        let dir = facts.label(container, "project.working_dir");
        let is_lost = dir.is_some_and(|dir| dir.starts_with(PORTAINER_FOLDERS))
            && facts.record.is_none()
            && facts.before.rights.see_every_stack();
        is_lost && fate_of(&self.services, container.name()).is_some_and(Fate::keeps_containers)
    }

    /// Whether it is a Git stack that this run does not deploy again.
    pub fn is_left_to_git(&self) -> bool {
        self.in_portainer == InPortainer::FromGit && self.sends_nothing()
    }

    /// Portainer recreates every container of a Git stack that it deploys again (M24).
    fn replace_all_from_git(&mut self, facts: &Facts) {
        let why = "Portainer recreates every container of a Git stack that it deploys again";
        for service in &mut self.services {
            let is_left = matches!(service.fate, Fate::LeftBehind(_) | Fate::Removed(_));
            if !is_left && !service.containers.is_empty() {
                service.may_stop(facts, Fate::Recreated(why.to_owned()));
            }
        }
    }

    /// The update of a Portainer stack in error removes every container of the project first (N07).
    fn replace_all_if_in_error(&mut self, facts: &Facts) {
        let record = facts.record.as_ref().map(|record| record.record);
        let Some(record) = record.filter(|one| matches!(one.deployment, Deployment::Failed(_)))
        else {
            return;
        };
        let (id, name) = (&record.id, shell_word(facts.name));
        for service in &mut self.services {
            if let Fate::LeftBehind(_) = &service.fate {
                let one = &service.service;
                let what = format!(
                    "Portainer stack {id} is in error: an update would remove the containers of {one} and not recreate them"
                );
                let hint = format!(
                    "remove those containers, or go back to a state without Portainer stack {id}: stacklift restore {name}"
                );
                let blocker = Finding::new(what, hint);
                self.blockers
                    .push(blocker.details(service.containers.clone()));
            } else if !matches!(service.fate, Fate::Removed(_)) && !service.containers.is_empty() {
                let why = format!(
                    "Portainer stack {id} is in error, and an update removes every container first"
                );
                service.may_stop(facts, Fate::Recreated(why));
            }
        }
    }

    fn compare_with_last_adoption(&mut self, facts: &Facts) {
        let is_sent = matches!(
            self.in_portainer,
            InPortainer::UpToDate | InPortainer::LastSent
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
                |one: &Inspected| edited::is_as_left(*one, &facts.before.last_sent, facts.tool);
            let restored = facts.before.inspected();
            let restored = restored.filter(|one| is_as_left(one) == Some(true));
            self.by_hand = restored.map(|one| one.name().to_owned()).collect();
        }
        let edited = facts.record.filter(|_| self.in_portainer.may_be_theirs());
        if let Some(record) = edited {
            let is_last = record.last_sent.has(facts.sent.text, facts.sent.env);
            self.files_differ = self.in_portainer == InPortainer::Edited && !is_last;
            let containers = facts.before.inspected();
            self.by_hand = containers
                .filter(|one| edited::is_by_hand_since(*one, record.record, facts.tool))
                .map(|one| one.name().to_owned())
                .collect();
        }
    }

    /// The same text and variables are sent again if a service does not run, or would be recreated. A job that has
    /// finished counts as running. If nothing is sent, no container is touched, whatever a deployment would do.
    fn update_unless_all_run(&mut self, facts: &Facts) {
        let Some(Request::Nothing(id)) = &self.request else {
            return;
        };
        let runs = |service: &ServicePlan| match service.fate {
            Fate::LeftBehind(_) | Fate::Removed(_) => true,
            Fate::Recreated(_) => false,
            Fate::Unchanged | Fate::Started(_) | Fate::Restarted(_) | Fate::Unknown(_) => {
                let own = inspected(facts, &service.containers);
                let lacks_one = service.asked.is_some_and(|asked| asked > own.len());
                let all_run = !own.is_empty() && own.iter().all(|one| one.runs_or_succeeded());
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
        self.warnings.extend(surplus.iter().map(|(why, names)| {
            let names = listed(names);
            format!("the next update in Portainer removes {names}: {why}")
        }));
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
            service.fate = if containers.all(|one| one.is_running() && !one.is_paused()) {
                Fate::Unchanged
            } else {
                Fate::LeftBehind("nothing changes in Portainer".to_owned())
            };
            service.stop_grace = None;
        }
        let paused = facts.before.inspected().filter(|one| one.is_paused());
        self.warnings.extend(paused.map(|one| {
            let (name, tool) = (one.name(), facts.tool);
            format!("{name} stays paused: to continue it, run: {tool} unpause {name}")
        }));
    }

    fn block(&mut self, refusals: impl IntoIterator<Item = Finding>, file: &str) {
        let refusals = refusals.into_iter();
        self.blockers
            .extend(refusals.flat_map(|one| one.split(file)));
    }

    fn check_surroundings(&mut self, input: &AdoptionFacts) {
        let facts = input.facts;
        let is_known = facts.before.listed.is_some() && facts.before.details.containers.is_some();
        if !is_known || facts.before.others.is_none() {
            let what = "cannot read the containers of this host";
            let otherwise = || Finding::new(what, "check that Docker is running");
            let blocker = facts.before.unread.clone();
            self.blockers.push(blocker.unwrap_or_else(otherwise));
        } else if let Environment::Unknown(reason) = &facts.before.environment {
            let endpoint = facts.endpoint;
            let what = format!("cannot verify that environment {endpoint} is this host: {reason}");
            let hint = "Portainer and Docker on this host must both be reachable";
            self.blockers.push(Finding::new(what, hint));
        }
        let listed = facts.before.listed();
        let refusals = [
            permissions::environment(&facts.before.environment, facts.endpoint),
            permissions::management(facts),
            permissions::registered(facts),
            permissions::runs_portainer(listed, facts.portainer_port),
        ];
        self.block(refusals.into_iter().flatten(), input.file);
    }

    /// Whether Portainer takes a name that a Portainer stack of another host has (M20).
    fn check_name(&mut self, input: &AdoptionFacts) {
        let facts = input.facts;
        if facts.record.is_some() || facts.before.environment.is_other_engine() {
            return;
        }
        let has_containers = facts.before.may_have_containers();
        for other in &facts.before.namesakes {
            let (id, theirs) = (&other.record.id, other.record.endpoint_id);
            let is_here = other.is_on_this_host;
            if theirs == facts.endpoint || is_here == Some(true) {
                continue;
            }
            if is_here.is_none() {
                self.warnings.push(format!(
                    "could not check that environment {theirs}, where Portainer stack {id} has the same name, is another host"
                ));
            }
            if !has_containers {
                continue;
            }
            let version = facts.before.portainer_version.as_deref();
            if version.and_then(takes_name_of_other_host).is_none() {
                self.warnings.push(format!(
                    "Portainer stack {id} on environment {theirs} has the same name: this version of Portainer may refuse a second one; nothing changes then"
                ));
            }
            let refused = version.and_then(|one| refused_name(&other.record, one, facts.endpoint));
            self.blockers.extend(refused);
        }
    }

    fn check_text(
        &mut self,
        input: &AdoptionFacts,
        project: &Project,
        compose: Option<PortainerCompose>,
        steering: &Steering,
    ) {
        let facts = input.facts;
        self.block(permissions::admin_only(facts, project), input.file);
        let missing = missing::missing(facts, Some(project), &input.runs.created);
        self.images = missing.pulls.into_iter().collect();
        self.block(missing.refusals, input.file);
        self.warnings.extend(missing.doubts);
        let last = compose.map(|compose| compose.last);
        let newer = last
            .zip(facts.document)
            .map_or(Vec::new(), |(last, document)| {
                validation::newer(facts, document, input.file, last)
            });
        // B20
        if let (Some(version), false) = (last, newer.is_empty()) {
            let what = format!("Compose {version} in Portainer rejects a part of the Compose file");
            let hint = "correct its spelling or remove it; a newer Portainer may accept it";
            self.blockers.push(Finding::new(what, hint).details(newer));
        } else if let Some(document) = facts.document {
            let first = compose.map(|compose| compose.first);
            self.warnings
                .extend(validation::doubts(facts, document, first));
        }
        let is_created = |service: &Service| {
            let mut planned = self.services.iter();
            planned.any(|one| one.service == service.name && one.may_create())
        };
        let refused = unsupported(facts, project, compose, is_created);
        self.blockers.extend(refused);
        self.check_dependencies(facts, project);
        self.check_copied(facts, project);
        self.blockers.extend(inline::lost_files(facts, project));
        let overridden = facts
            .document
            .and_then(|text| overridden::overridden(facts, text));
        self.blockers.extend(overridden);
        self.blockers.extend(steering.orphans(&self.services));
        self.blockers.extend(steering.rejected());
        self.blockers.extend(steering.not_started());
        self.warnings.extend(steering.doubt());
        for service in &project.services {
            for (_, volume) in service.volumes() {
                let (name, volume) = (&service.name, &volume.name);
                let exists = facts.before.details.volumes.is_none()
                    || facts.before.details.has_volume(volume);
                if !exists && facts.before.last_volumes.contains(volume) {
                    self.warnings.push(format!(
                        "volume {volume} no longer exists: {name} starts with a new one"
                    ));
                }
            }
        }
        // M06
        let pulled = project.services.iter().filter(|service| {
            let policy = service.text(&["pull_policy"]);
            policy.is_some_and(|policy| !NOT_PULLED.contains(&policy.as_str()))
        });
        self.warnings.extend(pulled.map(|service| {
            format!(
                "{}: Portainer pulls its image because of `pull_policy`; `adopt` pulls it first, and stops if that fails",
                service.name
            )
        }));
    }

    /// The secrets and configs of which a container that stays keeps the old content (N17).
    fn check_copied(&mut self, facts: &Facts, project: &Project) {
        let Some(deployed) = &facts.projects.deployed else {
            return;
        };
        let contents = facts.record.and_then(|record| record.contents);
        let [before, now] = [contents.map_or(&[][..], |sent| sent.env), facts.sent.env].map(values);
        let content = |content: &Content, variables: &BTreeMap<&str, &str>| match content {
            Content::Text(text) => Some(text.clone()),
            Content::Variable(name) => Some((*variables.get(name.as_str())?).to_owned()),
            Content::File(_) | Content::External => None,
        };
        for (service, file) in project.placed_files() {
            let mut all = deployed.placed_files();
            let old = all.find(|(of, old)| of.name == service.name && old.target == file.target);
            let has_other = old.is_some_and(|(_, old)| {
                let old = content(&old.content, &before);
                old.is_some() && old != content(&file.content, &now)
            });
            let is_it = |one: &ServicePlan| {
                one.service == service.name
                    && matches!(one.fate, Fate::Unchanged | Fate::Unknown(_))
            };
            if has_other && self.services.iter().any(is_it) {
                let (service, target) = (&service.name, &file.target);
                self.warnings.push(format!(
                    "{service} gets the new content of {target} only when it is recreated, for example because one of its labels changes"
                ));
            }
        }
    }

    /// The losses of containers that are replaced or may be. Others lose nothing.
    fn lose_by_adoption(
        &mut self,
        input: &AdoptionFacts,
        project: &Project,
        compose: Option<PortainerCompose>,
    ) {
        let facts = input.facts;
        // M05, N04
        let carries_volumes = compose.is_some_and(|compose| !compose.is_library);
        let planned = |loss: &Finding| fate_of(&self.services, loss.subject.as_deref()?);
        let stays = |loss: &Finding| planned(loss).is_some_and(Fate::keeps_containers);
        let is_removed = |loss: &Finding| matches!(planned(loss), Some(Fate::Removed(_)));
        let volumes = project.services.iter().flat_map(Service::volumes);
        let external = volumes.filter(|(_, volume)| volume.is_external);
        let external: BTreeSet<&str> = external.map(|(_, volume)| &*volume.name).collect();
        let (losses, unknown) = containers::losses(facts, Some(project), &[], &self.services);
        let is_lost = |loss: &Finding| match &loss.kind {
            Kind::Starts => true,
            // Its own rights are removed.
            Kind::Use(_) if facts.before.uses.wanted.is_some() => true,
            Kind::UseUntilRecreated => facts.record.is_none() || !stays(loss),
            _ if stays(loss) => false,
            Kind::Orphan => false,
            Kind::AnonymousVolume { volume, is_deleted } => {
                let is_left = *is_deleted || !carries_volumes || is_removed(loss);
                is_left && !external.contains(volume.as_str())
            }
            _ => true,
        };
        let losses = losses.into_iter().map(|mut loss| {
            if let Kind::AnonymousVolume { volume, .. } = &loss.kind
                && is_removed(&loss)
            {
                let what = format!("no container uses its anonymous volume any more: {volume}");
                loss.message = what;
                loss
            } else if facts.before.uses.wanted.is_some()
                || matches!(planned(&loss), Some(Fate::Recreated(_) | Fate::Removed(_)))
            {
                loss
            } else {
                containers::use_until_recreated(loss)
            }
        });
        let mut lost: Vec<Finding> = losses.filter(is_lost).collect();
        self.warnings.extend(unknown);
        let (in_memory, unseen) = memory::losses(facts, &self.services);
        lost.extend(in_memory);
        self.warnings.extend(memory::unseen_memory(&unseen));
        self.unseen_memory = unseen;
        if !self.sends_nothing() {
            let by_failure = memory::lost_by_failure(facts, &self.services);
            self.warnings.extend(by_failure);
        }
        lost.extend(facts.before.uses.lost().as_ref().and_then(record::use_lost));
        lost.extend(record::volumes_left(facts));
        if let (Some(record), Some(Request::Update(_))) = (&facts.record, &self.request) {
            let losses = record::standing(record.record).into_iter();
            lost.extend(losses.filter(|loss| loss.kind != Kind::Access));
            let parts = edited::parts(record, facts.sent);
            lost.extend(record::edit_lost(self.in_portainer, &parts));
            if self.in_portainer == InPortainer::Edited {
                self.edited = parts;
            }
        }
        (self.changes, self.losses) = lost.into_iter().partition(|loss| loss.is_change(true));
    }

    /// What changes, unless a row or the loss of an edit in Portainer says it.
    pub fn untold_changes(&self) -> Vec<Finding> {
        let is_edited = self.in_portainer == InPortainer::Edited;
        let changes = self.changes.iter().filter(|change| {
            let is_told_by_edit = is_edited && change.kind == Kind::Variables;
            !is_told_by_edit && !change.is_told(&self.services)
        });
        changes.cloned().collect()
    }
}

/// Why a Portainer of this version does not create a stack over its containers on `endpoint`, if `other`, on another environment,
/// has the same name (M20).
pub fn refused_name(other: &Record, version: &str, endpoint: i64) -> Option<Finding> {
    let (id, theirs) = (&other.id, other.endpoint_id);
    (takes_name_of_other_host(version) == Some(false)).then(|| Finding::new(
        format!("Portainer stack {id} on environment {theirs} has the same name, and Portainer {version} does not take a second one while its containers exist"),
        format!("upgrade Portainer to 2.43 or later; then this stack keeps its name. If environment {theirs} no longer exists, associate that stack with environment {endpoint} in Portainer"),
    ))
}

/// Whether none of the containers of services runs. One that a restore created may never have run. A stack without
/// containers is stopped if Portainer has deployed it. It may have been deleted there since.
fn is_stopped(facts: &Facts) -> bool {
    let all = facts.before.inspected();
    let mut own = all.filter(|one| !one.is_one_off(facts.tool)).peekable();
    let is_deployed = facts.record.is_some_and(|facts| {
        let deployment = &facts.record.deployment;
        matches!(deployment, Deployment::Active | Deployment::Inactive)
    });
    (is_deployed || !facts.before.last_sent.is_empty() || own.peek().is_some())
        && own.all(|one| !one.is_running())
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

/// A service, or a container with a row of its own; its containers; and their fate.
type Planning<'a> = (String, Vec<Inspected<'a>>, Fate);

/// The fate of every service.
fn services(
    input: &AdoptionFacts,
    project: &Project,
    compose: Option<PortainerCompose>,
    redefined: &Redefined,
    steering: &Steering,
) -> Vec<ServicePlan> {
    let facts = input.facts;
    let mut containers: BTreeMap<&str, Vec<Inspected>> = BTreeMap::new();
    let all = facts.before.inspected();
    let (one_off, own): (Vec<_>, Vec<_>) = all.partition(|one| one.is_one_off(facts.tool));
    for container in own {
        let service = container.compose_label(facts.tool, "service");
        let of_service = containers.entry(service.unwrap_or_default());
        of_service.or_default().push(container);
    }
    let deciding = Deciding {
        facts,
        sent: project,
        portainer: compose,
    };
    let mut found: Vec<Planning> = Vec::new();
    for service in &project.services {
        let name = service.name.as_str();
        let own = containers.remove(name).unwrap_or_default();
        let fate = if !own.is_empty() {
            let fates = own.iter().map(|&one| deciding.fate(one, service));
            let fate = worst(fates.chain(missing_replicas(service, own.len())));
            let is_as_on_disk = |one: &Inspected| deciding.is_as_on_disk(*one, service);
            match (named(input, name), fate) {
                (Some(named), Fate::Recreated(why)) if !own.iter().all(is_as_on_disk) => {
                    Fate::Recreated(format!("{why}, and {named}"))
                }
                (Some(named), _) => Fate::Recreated(named),
                (None, fate) => fate,
            }
        } else if facts.before.listed.is_none() || facts.before.details.containers.is_none() {
            Fate::unknown("its containers could not be read")
        } else if service.replicas() == 0 {
            continue;
        } else {
            Fate::Started(starts(input, name))
        };
        let fate = redefined.fate(&own, fate);
        found.push((name.to_owned(), own, fate));
    }
    dependents::follow(&mut found, project, compose);
    let mut found = scale_down(found, &deciding);
    let orphan = steering.orphan();
    for (service, own) in containers {
        let fate = if facts.defines(service) {
            Fate::LeftBehind("its profile is not active in Portainer".to_owned())
        } else {
            orphan.clone()
        };
        found.push((printable(service).into_owned(), own, fate));
    }
    for container in one_off {
        let fate = Fate::LeftBehind("started by `compose run`".to_owned());
        let name = printable(container.name()).into_owned();
        found.push((name, vec![container], fate));
    }
    let plans = found.into_iter().map(|(service, own, fate)| {
        let sent = project.service(&service);
        let needs = sent.into_iter().flat_map(|sent| sent.depends_on.keys());
        ServicePlan {
            asked: sent.map(Service::replicas),
            needs: needs.cloned().collect(),
            service,
            containers: own.iter().map(|one| one.name().to_owned()).collect(),
            restarting: own
                .iter()
                .any(|one| one.is_in_loop(facts.before.details.at)),
            stop_grace: match fate {
                Fate::Recreated(_) | Fate::Restarted(_) | Fate::Unknown(_) => stop_grace(&own),
                _ => None,
            },
            fate,
        }
    });
    plans.collect()
}

/// How a service without containers is started: perhaps with volumes that an earlier adoption named.
fn starts(input: &AdoptionFacts, service: &str) -> String {
    let own = input.runs.services.get(service).into_iter();
    let named = own.flat_map(|own| &own.volumes);
    let existing = named.filter(|(_, name)| input.facts.before.details.has_volume(name));
    let told = existing.map(|(path, name)| format!("the existing volume {name:.12} at {path}"));
    match told.collect::<Vec<_>>().as_slice() {
        [] => NOT_STARTED.to_owned(),
        some => format!("{NOT_STARTED}, with {}", listed(some)),
    }
}

/// The fate of a service that has `now` containers, if the text asks for more.
fn missing_replicas(service: &Service, now: usize) -> Option<Fate> {
    let after = service.replicas();
    (after > now).then(|| {
        let what = format!("has {now} of {after} containers; the others will be started");
        Fate::Started(what)
    })
}

/// Gives rows of their own to the containers that a service no longer has, if Compose would recreate none of the service:
/// then it removes those with the highest numbers.
fn scale_down<'a>(found: Vec<Planning<'a>>, deciding: &Deciding) -> Vec<Planning<'a>> {
    let mut scaled = Vec::new();
    for (name, mut own, mut fate) in found {
        let service = deciding.sent.service(&name);
        let asked = service.map(|service| (service, service.replicas()));
        let Some((service, after)) = asked.filter(|(_, after)| *after < own.len()) else {
            scaled.push((name, own, fate));
            continue;
        };
        let (count, tool) = (own.len(), deciding.facts.tool);
        let are_numbered = own.iter().all(|one| one.container_number(tool).is_some());
        let compose = deciding.portainer;
        let by_number = compose.is_some_and(PortainerCompose::removes_by_number);
        let removed = match fate {
            Fate::Unchanged | Fate::Started(_) if by_number && are_numbered => {
                fates::split_surplus(&mut own, after, tool)
            }
            _ if after == 0 => own.split_off(0),
            _ => Vec::new(),
        };
        if !removed.is_empty() {
            fate = worst(own.iter().map(|&one| deciding.fate(one, service)));
        } else if !matches!(fate, Fate::Recreated(_)) {
            fate = fates::fewer(count, after);
        }
        let surplus = fates::surplus(&name, after);
        if after > 0 {
            scaled.push((name, own, fate));
        }
        scaled.extend(removed.into_iter().map(|one| {
            let container = printable(one.name()).into_owned();
            (container, vec![one], surplus.clone())
        }));
    }
    scaled
}

/// Portainer's Compose: as Portainer's version tells, or an older one that a container says it started it.
pub fn portainer_compose(facts: &Facts) -> Option<PortainerCompose> {
    let version = facts.before.portainer_version.as_deref();
    let known = version.and_then(PortainerCompose::of);
    if known.is_some_and(|known| known.is_library) {
        return known;
    }
    // Several versions: Portainer was upgraded, and the label does not say when.
    let others = facts.before.others.iter().flatten();
    let versions: BTreeSet<ComposeVersion> = others
        .filter_map(|other| {
            let label = |name: &str| other.compose_label(facts.tool, name);
            let is_portainers = label("project.working_dir")?.starts_with(PORTAINER_FOLDERS);
            ComposeVersion::parse(label("version")?).filter(|_| is_portainers)
        })
        .collect();
    match versions.iter().max() {
        // Portainer may have been upgraded since it started that container.
        Some(&version) if versions.len() == 1 => Some(match known {
            Some(known) => known.or(version),
            None => PortainerCompose::exactly(version),
        }),
        _ => known,
    }
}

/// A service whose anonymous volumes get names has another configuration, unless the text of its Portainer stack has the
/// names already.
fn named(input: &AdoptionFacts, service: &str) -> Option<String> {
    let (facts, runs) = (input.facts, input.runs);
    let volumes = &runs.services.get(service)?.volumes;
    let record = facts.record.and_then(|record| record.contents);
    let is_new = |volume: &String| {
        let exists = facts.before.details.has_volume(volume) || !runs.created.contains(volume);
        exists && record.is_none_or(|deployed| !deployed.text.contains(volume))
    };
    let new = volumes.iter().filter(|(_, volume)| is_new(volume));
    let targets: Vec<_> = new.map(|(target, _)| target.as_str()).collect();
    let all = targets.join(", ");
    match targets.len() {
        0 => None,
        1 => Some(format!(
            "the anonymous volume at {all} gets a name; its data stays"
        )),
        _ => Some(format!(
            "the anonymous volumes at {all} get names; their data stays"
        )),
    }
}

/// The fate of a service is that of the container with the most to lose.
fn worst(fates: impl Iterator<Item = Fate>) -> Fate {
    fates.max_by_key(Fate::rank).unwrap_or(Fate::Unchanged)
}

/// The longest time that one of the running containers has to stop, in seconds.
pub fn stop_grace(containers: &[Inspected]) -> Option<u32> {
    let running = containers.iter().filter(|one| one.is_running());
    running.map(|one| one.stop_grace().unwrap_or(10)).max()
}

/// Whether a container of a service has another configuration than the last adoption left, as
/// [`edited::differs_from_adoption`] tells. `None` if it is unknown.
fn differs_from_adoption(facts: &Facts, service: &ServicePlan) -> Option<bool> {
    if service.fate.is_unchanged() {
        return Some(false);
    }
    let containers = inspected(facts, &service.containers);
    let record = facts.record.as_ref()?;
    let differs = |one| edited::differs_from_adoption(one, record, facts.tool);
    let all: Vec<Option<bool>> = containers.into_iter().map(differs).collect();
    match all.contains(&Some(true)) {
        false if all.contains(&None) => None,
        differs => Some(differs),
    }
}

/// The inspect objects of the containers with these names.
pub fn inspected<'a>(facts: &Facts<'a>, names: &[String]) -> Vec<Inspected<'a>> {
    let all = facts.before.inspected();
    all.filter(|one| names.iter().any(|name| name == one.name()))
        .collect()
}
