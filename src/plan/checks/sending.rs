//! What is checked before an adoption sends a text: where it runs, its name, and what the text needs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    compose::{Content, Place, Project, Service},
    finding::{Finding, Kind},
    model::{Container, Record, is_portainers, values},
    plan::{
        Environment, Facts, Fate, NOT_PULLED, PathKind, Plan, ServicePlan,
        checks::{inline, missing, overridden, permissions, unsupported::unsupported, validation},
        fates::{steering::Steering, versions::takes_name_of_other_host},
        service::inspected,
    },
    text::{command, listed},
};

impl Plan {
    pub(in crate::plan) fn block(
        &mut self,
        refusals: impl IntoIterator<Item = Finding>,
        file: &str,
    ) {
        let refusals = refusals.into_iter();
        self.blockers
            .extend(refusals.flat_map(|refusal| refusal.split(file)));
    }

    pub(in crate::plan) fn check_surroundings(&mut self, facts: &Facts) {
        let is_known = facts.host.listed.is_some() && facts.host.containers.is_some();
        if !is_known || facts.host.others.is_none() {
            let what = "cannot read the containers of this host";
            let otherwise = || Finding::new(what, "check that Docker is running");
            let blocker = facts.host.unread.clone();
            self.blockers.push(blocker.unwrap_or_else(otherwise));
        } else if let Environment::Unknown(reason) = &facts.remote.environment {
            let endpoint = facts.endpoint;
            let what = format!("cannot verify that environment {endpoint} is this host: {reason}");
            let hint = "Portainer and Docker on this host must both be reachable";
            self.blockers.push(Finding::new(what, hint));
        }
        let listed = facts.host.listed();
        let refusals = [
            permissions::environment(&facts.remote.environment, facts.endpoint),
            permissions::management(facts),
            permissions::registered(facts),
            permissions::runs_portainer(listed, facts.portainer_port),
        ];
        self.block(refusals.into_iter().flatten(), facts.file);
    }

    /// Whether Portainer takes a name that a Portainer stack of another host has (M20).
    pub(in crate::plan) fn check_name(&mut self, facts: &Facts) {
        if facts.record.is_some() || facts.remote.environment.is_other_engine() {
            return;
        }
        let has_containers = facts.host.may_have_containers();
        for other in &facts.remote.namesakes {
            let (id, theirs) = (&other.record.id, other.record.endpoint_id);
            let is_here = other.is_on_this_host;
            if theirs == facts.endpoint || is_here == Some(true) {
                continue;
            }
            if is_here.is_none() {
                self.warn(format!(
                    "could not check that environment {theirs}, where Portainer stack {id} has the same name, is another host"
                ));
            }
            if !has_containers {
                continue;
            }
            let version = facts.remote.version.as_deref();
            if version.and_then(takes_name_of_other_host).is_none() {
                self.warn(format!(
                    "Portainer stack {id} on environment {theirs} has the same name: this version of Portainer may refuse a second one; nothing changes then"
                ));
            }
            let refused = version.and_then(|one| refused_name(&other.record, one, facts.endpoint));
            self.blockers.extend(refused);
        }
    }

    pub(in crate::plan) fn check_text(&mut self, facts: &Facts, project: &Project) {
        let compose = facts.portainer;
        let steering = Steering::new(facts, project);
        self.block(permissions::admin_only(facts, project), facts.file);
        let missing = missing::missing(facts);
        self.images = missing.pulls.into_iter().collect();
        self.block(missing.refusals, facts.file);
        self.warn_all(missing.doubts);
        let last = compose.map(|compose| compose.last);
        let newer = last
            .zip(facts.document)
            .map_or(Vec::new(), |(last, document)| {
                validation::newer(facts, document, facts.file, last)
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
            planned.any(|other| other.service == service.name && other.may_create())
        };
        let refused = unsupported(facts, project, is_created);
        self.blockers.extend(refused);
        self.check_dependencies(facts, project);
        self.check_left(facts, project);
        self.check_renamed(facts, project);
        self.check_copied(facts, project);
        self.blockers.extend(inline::lost_files(facts, project));
        if let Some(text) = facts.document {
            self.blockers.extend(overridden::overridden(facts, text));
            let unknown = overridden::may_be_overridden(facts, text);
            // Only the first adoption says it.
            self.notices.extend(unknown.filter(|_| self.creates()));
        }
        self.blockers.extend(steering.orphans(&self.services));
        self.blockers.extend(steering.rejected());
        self.blockers.extend(steering.not_started());
        self.warn_all(steering.doubt());
        for service in &project.services {
            for (_, volume) in service.volumes() {
                let (name, volume) = (&service.name, &volume.name);
                let exists = facts.host.volumes.is_none() || facts.host.has_volume(volume);
                if !exists && facts.before.last_volumes.contains(volume) {
                    self.warn(format!(
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
        self.warn_all(pulled.map(|service| {
            format!(
                "{}: Portainer pulls its image because of `pull_policy`; `adopt` pulls it first, and stops if that fails",
                service.name
            )
        }));
    }

    /// Warns of containers that are left running, and that write to what a service that is started mounts, too.
    fn check_left(&mut self, facts: &Facts, project: &Project) {
        let is_started = |service: &&Service| {
            let mut rows = self.services.iter();
            rows.any(|row| row.service == service.name && matches!(row.fate, Fate::Started(_)))
        };
        let started: Vec<&Service> = project.services.iter().filter(is_started).collect();
        let is_dir = |path: &str| (facts.lookup)(path) == PathKind::Directory;
        let mut told = Vec::new();
        for left in &self.services {
            if !matches!(left.fate, Fate::LeftBehind(_)) {
                continue;
            }
            let containers = inspected(facts, &left.containers).into_iter();
            let mounts = containers
                .filter(|one| one.is_running())
                .flat_map(Container::mounts);
            let mounts = mounts.filter(|mount| mount["RW"] != false);
            let written =
                mounts.filter_map(|mount| mount["Name"].as_str().or(mount["Source"].as_str()));
            let written: BTreeSet<&str> = written.collect();
            for service in &started {
                let mounts = service.mounts.iter().filter(|mount| !mount.is_read_only);
                let sources = mounts.filter_map(|mount| match (&mount.volume, &mount.place) {
                    (Some(volume), _) => Some(volume.name.as_str()),
                    (None, Some(Place::Absolute(path))) => {
                        Some(path.as_str()).filter(|path| is_dir(path))
                    }
                    _ => None,
                });
                let both: Vec<&str> = sources.filter(|source| written.contains(source)).collect();
                if !both.is_empty() {
                    let (left, service, both) = (&left.service, &service.name, listed(&both));
                    told.push(format!(
                        "{left} is left running, and {service} is started with the same {both}: two programs that write the same files can damage them"
                    ));
                }
            }
        }
        self.warn_all(told);
    }

    /// Warns if a stack without containers may be another project whose directory was renamed: that one is gone, and has the same
    /// services.
    fn check_renamed(&mut self, facts: &Facts, project: &Project) {
        if facts.host.may_have_containers() {
            return;
        }
        let mut services: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for container in facts.host.others() {
            let label = |name| facts.label(container, name);
            let place = label("project").zip(label("project.working_dir"));
            let is_gone =
                |dir: &str| (facts.lookup)(dir) == PathKind::Missing && !is_portainers(dir);
            if let Some(place) = place.filter(|(_, dir)| is_gone(dir)) {
                let all = services.entry(place).or_default();
                all.extend(label("service"));
            }
        }
        let own: BTreeSet<&str> = project.services.iter().map(|one| &*one.name).collect();
        services.retain(|_, services| *services == own);
        self.warn_all(services.into_keys().map(|(other, dir)| {
            let plan = command(&["plan", other, "--dir", facts.dir]);
            format!(
                "{other} has the same services and was started in {dir}, which no longer exists: if that directory was renamed, run `{plan}` instead of starting a second set of containers"
            )
        }));
    }

    /// The secrets and configs with another content: a container that stays keeps the old one (N17).
    pub(in crate::plan) fn check_copied(&mut self, facts: &Facts, project: &Project) {
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
            let (service, target) = (&service.name, &file.target);
            let mut rows = self.services.iter();
            let is_it = |one: &&ServicePlan| {
                one.service == *service && !matches!(one.fate, Fate::Removed(_))
            };
            match rows.find(is_it).filter(|_| has_other).map(|one| &one.fate) {
                Some(Fate::Recreated(_)) => {
                    let what = format!("new content of {target}");
                    let change = Finding::of_service(service, Kind::Edited, &what);
                    self.changes.push(change);
                }
                Some(Fate::Unchanged | Fate::Unknown(_)) => self.warn(format!(
                    "{service} gets the new content of {target} only when it is recreated, for example because one of its labels changes"
                )),
                _ => {}
            }
        }
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
