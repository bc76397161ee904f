//! What prevents an adoption, besides the text: names, directories, files, the Portainer stack, and what runs.

use std::collections::{BTreeMap, BTreeSet};

mod needs;
mod record;

pub use needs::images_to_pull;

use crate::{
    compose::Project,
    finding::{Finding, Kind},
    model::{Container, PORTAINER_FOLDERS, is_portainers, may_be_portainers},
    plan::{
        Facts, Fate, InPortainer, PathKind, Plan, ServicePlan, edited::differs_from_adoption,
        facts::absolute, fate_of,
    },
    text::{operands, printable, shell_word},
};

/// Everything that prevents the adoption of `plan` besides the text.
pub fn blocking(facts: &Facts, plan: &Plan) -> Vec<Finding> {
    let mut found = Blocking {
        facts,
        plan,
        only_in_portainer: Vec::new(),
        blockers: Vec::new(),
    };
    let blockers = found.of_another();
    if !blockers.is_empty() {
        return blockers;
    }
    found.name(facts.named);
    found.directories();
    // The rewrite has named the files then.
    let is_said = |problem: &Finding| problem.kind == Kind::SeveralFiles;
    if !facts.problems.iter().any(is_said) {
        found.files(facts.files);
    }
    found.records();
    if let Ok(project) = &facts.projects.sent
        && !plan.sends_nothing()
    {
        found.text(project);
    }
    found.blockers
}

struct Blocking<'a, 'f> {
    facts: &'a Facts<'f>,
    plan: &'a Plan,
    /// The services that only the Portainer stack has, and that a blocker names.
    only_in_portainer: Vec<String>,
    blockers: Vec<Finding>,
}

impl<'f> Blocking<'_, 'f> {
    fn add(&mut self, message: impl AsRef<str>, hint: impl AsRef<str>) {
        self.blockers.push(Finding::new(message, hint));
    }

    /// Adds a blocker about these, if there are any.
    fn list(
        &mut self,
        details: impl IntoIterator<Item = String>,
        message: impl AsRef<str>,
        hint: impl AsRef<str>,
        short: &str,
    ) {
        let blocker = Finding::about(details.into_iter().collect(), message, hint);
        self.blockers
            .extend(blocker.map(|blocker| blocker.short(short)));
    }

    fn containers(&self) -> impl Iterator<Item = &'f Container> + use<'f> {
        self.facts.host.inspected()
    }

    /// The directories in which containers were started.
    fn dirs(&self) -> impl Iterator<Item = &'f str> {
        self.containers()
            .filter_map(|container| self.facts.label(container, "project.working_dir"))
    }

    fn is_here(&self, dir: &str) -> bool {
        self.facts.is_same(dir, self.facts.dir)
    }

    /// Whether a container of the project was started from this directory, or by Portainer.
    fn is_started_here(&self) -> bool {
        let mut dirs = self.dirs();
        dirs.any(|dir| self.is_here(dir) || self.facts.is_portainers(dir))
    }

    /// The stack is adopted under the name of its project.
    fn name(&mut self, project: Option<&str>) {
        let Facts { name, dir, .. } = *self.facts;
        let own = self.facts.project;
        if name != own {
            let hint = match own {
                "" => "give the project a name of the characters a-z, 0-9, - and _".to_owned(),
                own => format!(
                    "adopt it under the name of its project: `{}`",
                    command(own, dir)
                ),
            };
            let what = format!(
                "the stack cannot have the name {name} in Portainer: the name of its project would be {own:?}"
            );
            let blocker = Finding::new(what, hint);
            self.blockers.push(blocker.short("name not allowed"));
        } else if let Some(project) = project
            && project != name
            && self.containers().next().is_none()
            && !self.facts.others_from_here().contains_key(project)
        {
            // The containers show under which name the stack was started.
            let what = format!(
                "the project of {dir} is {project}, not {name}: its volumes and networks have that name"
            );
            let hint = format!("adopt it under that name: `{}`", command(project, dir));
            self.add(what, hint);
        }
    }

    /// This directory or its files are of another stack: what else they say does not matter.
    fn of_another(&self) -> Vec<Finding> {
        match self.elsewhere() {
            Some(blocker) => vec![blocker],
            None => self.projects(),
        }
    }

    /// Containers of this directory that belong to another project. If this project has containers of this directory too,
    /// the others are a loss that the user confirms.
    fn projects(&self) -> Vec<Finding> {
        if self.is_started_here() {
            return Vec::new();
        }
        let Facts { name, dir, .. } = *self.facts;
        let others = self.facts.others_from_here().into_iter();
        let others = others.map(|(project, containers)| {
            let names = containers
                .iter()
                .map(|container| container.name().to_owned());
            let what = format!("containers of {dir} belong to project {project}, not to {name}");
            let adopt = format!("stacklift adopt {}", operands(&[project]));
            let hint = format!("adopt them under that name: `{adopt}`");
            Finding::new(what, hint).details(names)
        });
        others.collect()
    }

    /// The stack was adopted from another directory, which still exists, and these files say something else.
    fn elsewhere(&self) -> Option<Finding> {
        use InPortainer::{FromGit, UpToDate};
        let record = self.facts.record?;
        let from = record.last_sent.dir.as_deref()?;
        let is_there = (self.facts.lookup)(from) == PathKind::Directory && !self.is_here(from);
        let is_other = is_there && !matches!(record.in_portainer, UpToDate | FromGit);
        let Facts { name, dir, .. } = *self.facts;
        let hint = format!(
            "adopt it from there: `{}`; if it has moved here, rename that directory",
            command(name, from)
        );
        let what = format!("{name} was adopted from {from}, not from {dir}");
        is_other.then(|| Finding::new(what, hint).short("adopted from another directory"))
    }

    /// Containers of the project that were started in another directory. A Git stack is deployed from Portainer's clone.
    fn directories(&mut self) {
        if self.plan.in_portainer == InPortainer::FromGit {
            return;
        }
        let mut dirs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for container in self.containers() {
            if let Some(dir) = self.facts.label(container, "project.working_dir")
                && !self.is_here(dir)
                && !self.facts.is_portainers(dir)
                // A restore keeps the labels of a Portainer stack that was deleted, and creates another one.
                && !(self.facts.record.is_some()
                    && is_portainers(dir)
                    && (self.facts.lookup)(dir) == PathKind::Missing)
                && !self.facts.replaces_lost_files(container)
                && !self.has_moved(container, dir)
                && !self.plan.keeps_of_lost_portainer(self.facts, container)
            {
                let names = dirs.entry(dir).or_default();
                names.push(container.name().to_owned());
            }
        }
        let Facts { name, dir: own, .. } = *self.facts;
        let sees_every_stack = self.facts.remote.rights.see_every_stack();
        let is_shared = self.dirs().any(|dir| self.is_here(dir));
        for (dir, containers) in dirs {
            let is_missing = (self.facts.lookup)(dir) == PathKind::Missing;
            let may_be_portainers = may_be_portainers(dir);
            let recreate = format!(
                "recreate the containers from this directory with `{} compose -p {name} up -d --force-recreate`: each is interrupted and loses the files written inside it; its volumes stay",
                self.facts.tool
            );
            let is_portainers = dir.starts_with(PORTAINER_FOLDERS);
            let successor = self.facts.remote.successor.as_deref();
            let hint = if let Some(other) = successor.filter(|_| is_portainers) {
                format!(
                    "that directory is now the one of the Portainer stack {}: {recreate}",
                    printable(other)
                )
            } else if sees_every_stack && is_portainers {
                format!(
                    "Portainer has no stack for them: if they are of another Portainer that is gone, run `stacklift export {} --to {} --force --from portainer-data`; otherwise, {recreate}",
                    shell_word(name),
                    shell_word(own)
                )
            } else if is_portainers {
                "Portainer started them: use the API key of an administrator, who sees every Portainer stack".to_owned()
            } else if !sees_every_stack && may_be_portainers && is_missing {
                "Portainer may have started them in a directory of its own: use the API key of an administrator, who sees every Portainer stack".to_owned()
            } else if !sees_every_stack && may_be_portainers {
                format!(
                    "if Portainer started them, use the API key of an administrator, who sees every Portainer stack; otherwise, adopt them from there: `{}`",
                    command(name, dir)
                )
            } else if is_missing {
                format!("that directory is gone: {recreate}")
            } else if is_shared {
                format!(
                    "both directories use the project name {name}: set another `name:` in one of the Compose files and recreate its containers; to keep the data of its volumes, give them their present names explicitly"
                )
            } else {
                format!("adopt them from there: `{}`", command(name, dir))
            };
            let what = format!("containers of project {name} were started in {dir}, not in {own}");
            self.list(containers, what, hint, "started in another directory");
        }
    }

    /// Whether this directory replaced the one in which a container was started: that one is gone, and the container is as the files
    /// here say. Or it is as the last adoption left it, and Portainer has what this directory says, or got it from here.
    fn has_moved(&self, container: &Container, dir: &str) -> bool {
        let Facts { projects, tool, .. } = *self.facts;
        let service = self.facts.label(container, "service").unwrap_or_default();
        let is_gone = (self.facts.lookup)(dir) == PathKind::Missing && !is_portainers(dir);
        let is_as_here = is_gone && projects.is_as_on_disk(container, service, tool);
        is_as_here
            || self.facts.record.is_some_and(|record| {
                let sent_from = record.last_sent.dir.as_deref();
                let is_from_here = record.in_portainer == InPortainer::UpToDate
                    || sent_from.is_some_and(|dir| self.is_here(dir));
                is_from_here
                    && differs_from_adoption(container, &record, self.facts.tool) == Some(false)
            })
    }

    /// Containers that were started from different Compose files than those that were found. A single file that no longer
    /// exists does not count: it may have been renamed. Nor does a container that is kept: it is as these files say, and Compose
    /// does not write the labels of such a container anew.
    fn files(&mut self, files: &[String]) {
        let Facts { dir: own, .. } = *self.facts;
        let expected: Vec<String> = files.iter().map(|file| absolute(own, file)).collect();
        let is_expected =
            |file: &String| expected.iter().any(|path| self.facts.is_same(path, file));
        let mut wrong: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        let mut incomplete: BTreeMap<(Vec<String>, Vec<String>), Vec<String>> = BTreeMap::new();
        for container in self.containers() {
            let Some(dir) = self.facts.label(container, "project.working_dir") else {
                continue;
            };
            let fate = fate_of(&self.plan.services, container.name());
            if !self.is_here(dir) || fate.is_some_and(|fate| matches!(fate, Fate::Unchanged)) {
                continue;
            }
            let files = container.config_files(self.facts.tool);
            let files: Vec<String> = files.map(|file| absolute(dir, file)).collect();
            let name = container.name().to_owned();
            let is_missing = |file: &String| (self.facts.lookup)(file) == PathKind::Missing;
            let (missing, present): (Vec<_>, Vec<_>) = files.iter().cloned().partition(is_missing);
            let is_used = |one: &String| present.iter().any(|file| self.facts.is_same(one, file));
            let has_all = self.facts.has_all_files() && present.iter().all(is_expected);
            if files.len() > 1 && !missing.is_empty() && !has_all {
                incomplete.entry((files, missing)).or_default().push(name);
                continue;
            }
            let is_right = present.iter().all(is_expected) && expected.iter().all(is_used);
            if !present.is_empty() && !is_right {
                wrong.entry(present).or_default().push(name);
            }
        }
        for ((files, missing), containers) in incomplete {
            let (files, missing) = (files.join(" and "), missing.join(" and "));
            let what = format!(
                "containers were started from {files}, but these files were not found: {missing}"
            );
            let hint = "put each missing file back; if the stack no longer uses it, run `docker compose up -d` without it first";
            self.list(containers, what, hint, "Compose file missing");
        }
        for (files, containers) in wrong {
            let hint = match files.as_slice() {
                files if files.iter().all(is_expected) => format!(
                    "start them from all of these files first: run `docker compose up -d` in {own}"
                ),
                [one] if parent(one).is_some_and(|dir| self.is_here(dir)) => {
                    let name = one.rsplit('/').next().unwrap_or_default();
                    format!(
                        "to adopt the stack from that file, pass --file {}; if it uses several, start it from all of them with `docker compose up -d` first; if it no longer uses that one, move it away",
                        shell_word(name)
                    )
                }
                [_] => format!("put the file into {own} and start the stack from there first"),
                _ => "combine them into one Compose file and start the stack from it first"
                    .to_owned(),
            };
            let (expected, files) = (expected.join(" and "), files.join(" and "));
            let what = format!(
                "containers were started from other Compose files than {expected}: {files}"
            );
            self.list(containers, what, hint, "started from other files");
        }
    }

    /// What the text needs, and what runs besides it.
    fn text(&mut self, project: &Project) {
        self.orphans(project);
        self.not_running(project);
        if project.services.is_empty() {
            let hint = "add a service, or set COMPOSE_PROFILES in .env if each has a profile";
            self.add(format!("{} starts no service", self.facts.file), hint);
        }
        if !self.facts.remote.environment.is_other_engine() {
            self.images(project);
            self.sources(project);
            self.addresses(project);
            self.held(project);
        }
    }

    /// Containers of the project that run, and that the text does not start (N09).
    fn orphans(&mut self, project: &Project) {
        if self.facts.keep.orphans {
            return;
        }
        let (mut undefined, mut is_inactive) = (Vec::new(), false);
        let orphans: Vec<String> = self
            .containers()
            .filter(|container| container.is_running())
            .filter_map(|container| {
                let name = container.name();
                let Some(service) = self.facts.label(container, "service") else {
                    return Some(format!("{name} has no label with the name of its service"));
                };
                if container.is_one_off(self.facts.tool) {
                    let tool = self.facts.tool;
                    return Some(format!("{name} was started by `{tool} compose run`"));
                }
                let is_active = project.service(service).is_some();
                match (is_active, self.facts.defines(service)) {
                    (true, _) => None,
                    (false, true) => {
                        is_inactive = true;
                        Some(format!(
                            "{name}: no profile of service {service} is active in Portainer"
                        ))
                    }
                    // The plan says of what is removed that it is.
                    (false, false)
                        if matches!(fate_of(&self.plan.services, name), Some(Fate::Removed(_))) =>
                    {
                        None
                    }
                    (false, false)
                        if self.only_in_portainer.iter().any(|other| other == service) =>
                    {
                        None
                    }
                    (false, false) => {
                        undefined.push(name);
                        Some(format!(
                            "{name}: the Compose file does not define service {service}"
                        ))
                    }
                }
            })
            .collect();
        let keep = "pass --leave-orphans to leave them as they are";
        let add = (!undefined.is_empty()).then_some("add them to the Compose file, ");
        let activate = is_inactive.then_some("set COMPOSE_PROFILES in .env, ");
        let ways: String = add.into_iter().chain(activate).collect();
        let or = if ways.is_empty() { "" } else { "or " };
        let end = if undefined.len() == orphans.len() {
            let undefined = undefined.join(" ");
            &*format!("remove them: `{} rm --force {undefined}`", self.facts.tool)
        } else {
            "stop them"
        };
        let what =
            "Portainer would not start these containers, but would remove them with the stack";
        let hint = format!("{ways}{or}{end}; {keep}");
        self.list(orphans, what, hint, "containers not in the stack");
    }

    /// Whether the files certainly have another configuration of a service than its container.
    fn is_edited(&self, container: &Container, service: &str) -> bool {
        let Facts { projects, tool, .. } = *self.facts;
        projects.on_disk.is_ok() && !projects.is_as_on_disk(container, service, tool)
    }

    /// Whether an update of a container stopped halfway: it does not run, and another one has its place.
    fn is_left_over(&self, container: &Container, service: &str) -> bool {
        let number = container.container_number(self.facts.tool);
        let mut others = self.facts.of_service(service);
        !container.is_running()
            && number.is_some()
            && others.any(|other| {
                other.is_running() && other.container_number(self.facts.tool) == number
            })
    }

    /// Containers that Compose cannot start, and those that it would start although they have ended or somebody stopped them
    /// (M05, N08, B42). Of a stack that is stopped as a whole, only a service that another one waits for until it has succeeded is certainly a job.
    fn not_running(&mut self, project: &Project) {
        let awaited = project.jobs();
        let (mut paused, mut removed, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        let (mut failed, mut of_failed) = (Vec::new(), Vec::new());
        let mut left_over = Vec::new();
        let (mut unconnected, mut of_unconnected) = (Vec::new(), BTreeSet::new());
        let (mut jobs, mut has_failed) = (BTreeSet::new(), false);
        for container in self.containers() {
            let service = self.facts.label(container, "service").unwrap_or_default();
            if project.service(service).is_none() || container.is_one_off(self.facts.tool) {
                continue;
            }
            let name = container.name();
            if container.is_paused() {
                paused.push(name.to_owned());
            } else if container.is_being_removed() {
                removed.push(name.to_owned());
            } else if self.is_left_over(container, service) {
                left_over.push(name);
            } else if let Some(why) = container.start_error()
                && !self.is_edited(container, service)
            {
                failed.push(format!("{name}: {why}"));
                of_failed.push(name.to_owned());
            } else if let Some(network) = self.removed_network(container) {
                unconnected.push(format!("{name}: {network}"));
                of_unconnected.insert(service);
            } else if let Some(code) = container.exit_code()
                && !self.facts.keep.jobs
                && (!self.plan.is_stopped || awaited.contains(service))
            {
                ended.push(format!("{name} exited with code {code}"));
                jobs.insert(service);
                // Only somebody who stops it ends one that is restarted whenever it ends.
                has_failed |= code != 0 || container.is_kept_running();
            } else if container.has_never_run() && !self.facts.keep.jobs && !self.plan.is_stopped {
                ended.push(format!("{name} has not run since it was created"));
                jobs.insert(service);
                has_failed = true;
            }
        }
        let tool = self.facts.tool;
        let what = "paused containers cannot be adopted: Compose cannot start them";
        let hint = format!("unpause them first: `{tool} unpause {}`", paused.join(" "));
        self.list(paused, what, hint, "paused containers");
        let all = removed.join(" ");
        let hint = format!("remove them first: `{tool} rm --force {all}`");
        let what = "containers are being removed";
        self.blockers.extend(Finding::about(removed, what, hint));
        let all = operands(&left_over);
        let hint = format!("if nothing in them is needed, remove them: `{tool} rm {all}`");
        let what = "containers are left over: another one of the same service and number runs";
        let left_over = left_over.into_iter().map(str::to_owned);
        self.list(left_over, what, hint, "left-over containers");
        let what = "Docker could not start these containers the last time, and the deployment would fail in the same way";
        let start = of_failed.join(" ");
        let hint = format!("fix the reason, then start them: `{tool} start {start}`");
        self.list(failed, what, hint, "last start failed");
        let what =
            "Docker cannot start these containers: their networks were removed, or created again";
        let services = operands(&Vec::from_iter(of_unconnected));
        let hint = format!(
            "recreate them with `{tool} compose create --force-recreate {services}`, which starts nothing: files written inside them are lost, and their volumes stay"
        );
        self.list(unconnected, what, hint, "network was removed");
        let what = if has_failed {
            "stopped services would be started"
        } else {
            "finished jobs would run again"
        };
        let is_needed =
            |one: &ServicePlan| one.needs.iter().any(|need| jobs.contains(need.as_str()));
        let hint = if self.plan.services.iter().any(is_needed) {
            "pass --rerun-jobs to start them"
        } else {
            "pass --rerun-jobs to start them, or give them a profile that is not active"
        };
        let told = format!("{what}: Portainer starts every service");
        self.list(ended, told, hint, what);
    }
}

fn parent(file: &str) -> Option<&str> {
    file.rsplit_once('/').map(|(dir, _)| dir)
}

/// The command that adopts the stack `name` from `dir`.
fn command(name: &str, dir: &str) -> String {
    let dir = shell_word(dir);
    if name.starts_with('-') {
        return format!("stacklift adopt --dir {dir} {}", operands(&[name]));
    }
    format!("stacklift adopt {} --dir {dir}", shell_word(name))
}
