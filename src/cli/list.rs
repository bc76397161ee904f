//! `stacklift list`: every stack of the host, its state, and whether it can be adopted. Reads only.
//!
//! Invariant: the code that plans an adoption decides whether a stack can be adopted. The Compose program only combines
//! the files of stacks with several files. To compare the configurations, it would run several times for each stack.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context as _, Result};

use super::{
    Common, Console, Ended,
    arguments::{ListArguments, Output},
    interrupt::watch_reading,
    opened::Surroundings,
    report::{
        BlockerReport, ContainersReport, PortainerReport, PortainerStack, RequestReport,
        ServiceReport,
    },
    settings::Settings,
};
use crate::{
    adopt::Prepared,
    compose, engine,
    observe::{Host, Situation, with_hint},
    parallel::in_parallel,
    plan::{Adoption, Keep, Request},
    portainer,
    stack::Stack,
    text::counted,
};

mod format;
pub(super) mod found;
mod state;
pub(super) mod text;

pub(super) use format::{Adoptable, List, Readiness};

use format::StackEntry;
use found::{Files, Found};
use state::{Listed, StateFacts, state};

/// The version of the format.
const VERSION: u32 = 1;

pub(super) fn run(
    arguments: &ListArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    watch_reading(console);
    let surroundings = Surroundings::new(common, console)?;
    let listing = Listing {
        settings: &surroundings.settings,
        portainer: surroundings.portainer(),
        engine: surroundings.engine(),
        compose: compose::Host::new(&surroundings.settings.location.tool, console.trace()),
    };
    console.waiting("reading Portainer and the engine");
    let list = listing.list(surroundings.no_portainer.as_ref(), console);
    console.done();
    let list = list?;
    match arguments.output {
        Output::Text => text::show(&list, console),
        Output::Json => console.json(&list)?,
    }
    for warning in &list.warnings {
        console.warning(warning);
    }
    Ok(())
}

/// What is the same for every stack. Nothing here can write.
struct Listing<'a> {
    settings: &'a Settings,
    /// Portainer and the ID of the environment; `None` if Portainer is not used.
    portainer: Option<(&'a portainer::Reader, i64)>,
    engine: &'a engine::Reader,
    compose: compose::Host,
}

impl Listing<'_> {
    fn list(&self, no_portainer: Option<&anyhow::Error>, console: &Console) -> Result<List> {
        let Settings { location, .. } = self.settings;
        let root =
            std::path::absolute(&location.root).context("failed to resolve --stacks-root")?;
        let mut host = Host::read(self.portainer, self.engine);
        let mut warnings: Vec<String> = no_portainer.iter().map(|error| with_hint(error)).collect();
        warnings.append(&mut host.warnings);
        warnings.extend(unknown(&host));
        let found = found::find(self.settings, &host)?;
        let all = counted(found.len(), "stack");
        let done = AtomicUsize::new(0);
        let stacks = in_parallel(&found, |found| {
            let entry = self.entry(found, &host);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            console.still_waiting(&format!("planned {done} of {all}"));
            entry
        });
        Ok(List {
            version: VERSION,
            stacks_root: root.display().to_string(),
            portainer: self
                .portainer
                .filter(|_| host.records.is_some())
                .map(|(_, environment)| {
                    PortainerReport::new(
                        &self.settings.base_url,
                        environment,
                        host.portainer_version.clone(),
                        &host.environment,
                    )
                }),
            containers_known: host.containers.is_some(),
            stacks,
            warnings,
        })
    }

    fn entry(&self, found: &Found, host: &Host) -> StackEntry {
        let Settings { location, .. } = self.settings;
        let containers = found.containers.as_ref();
        let containers =
            containers.map(|all| ContainersReport::of(all.iter().copied(), &location.tool));
        let adopt = self.adopt(found, host);
        let needs_dir = found.needs_dir(location);
        let command = &self.settings.typed;
        let plan_command = match (&found.files, found.dir()) {
            (Files::Stack(_), Some(dir)) if needs_dir => {
                Some(command.with(&["plan", &found.name, "--dir", dir]))
            }
            (Files::Stack(_), _) => Some(command.with(&["plan", &found.name])),
            _ => None,
        };
        StackEntry {
            state: state(&StateFacts {
                record: found.record,
                listed: match &host.records {
                    None => Listed::Nothing,
                    Some(_) if host.rights.see_every_stack() => Listed::All,
                    Some(_) => Listed::Visible,
                },
                containers: containers.as_ref(),
                has_files: !matches!(found.files, Files::None),
                is_adopted: adopt.readiness == Readiness::NothingToDo,
            }),
            name: found.name.clone(),
            dir: found.dir().map(str::to_owned),
            needs_dir,
            file: match &found.files {
                Files::Stack(stack) => Some(stack.file().to_owned()),
                _ => None,
            },
            containers,
            portainer_stack: found.record.map(PortainerStack::of),
            adopt,
            plan_command,
        }
    }

    /// Whether the stack can be adopted.
    fn adopt(&self, found: &Found, host: &Host) -> Adoptable {
        match &found.files {
            Files::Stack(stack) => self.plan(stack, host),
            Files::Unusable(_, error) => Adoptable::blocked(error),
            Files::None => self.without_files(found),
        }
    }

    /// What `adopt` would do, as `plan` finds out.
    fn plan(&self, stack: &Stack, host: &Host) -> Adoptable {
        let Settings { location, .. } = self.settings;
        if let Err(error) = stack.name().refuse_management_plane() {
            return Adoptable::blocked(&error);
        }
        let Some((portainer, endpoint)) = self.portainer.filter(|_| host.records.is_some()) else {
            return Adoptable::none(Readiness::Unknown);
        };
        let situation = Situation {
            portainer: Some(portainer),
            engine: self.engine,
            stack,
            base_url: &self.settings.base_url,
            endpoint,
            tool: &location.tool,
            compose: &self.compose,
            host: Some(host),
        };
        match Prepared::new(&situation, Keep::default()) {
            Ok(prepared) => Adoptable::planned(prepared.plan),
            Err(error) => Adoptable::blocked(&error),
        }
    }

    /// A stack without files is not offered. Portainer itself is named as such (B04).
    fn without_files(&self, found: &Found) -> Adoptable {
        let base_url = &self.settings.base_url;
        let port = base_url.is_this_host().then(|| base_url.port());
        let mut containers = found.containers.iter().flatten();
        let portainer = containers.find_map(|one| Some((one.name(), one.runs_portainer(port)?)));
        Adoptable {
            blockers: portainer
                .map(|(container, because)| BlockerReport {
                    message: format!("the stack runs Portainer: container {container} {because}"),
                    details: Vec::new(),
                    hint: "manage this stack by hand".to_owned(),
                })
                .into_iter()
                .collect(),
            ..Adoptable::none(Readiness::NoFile)
        }
    }
}

/// What the list lacks, as warnings.
pub(super) fn unknown(host: &Host) -> Vec<String> {
    let mut unknown = Vec::new();
    match &host.records {
        None => unknown.push(
            "Portainer's stacks are unknown: stacks in Portainer may be missing, and whether a stack is in Portainer or can be adopted is unknown"
                .to_owned(),
        ),
        Some(records) => {
            unknown.extend(records.iter().filter_map(|one| one.record.as_ref().err().cloned()));
            if !host.rights.see_every_stack() {
                unknown.push(host.rights.to_string());
            }
        }
    }
    if host.containers.is_none() {
        unknown.push(
            "the containers are unknown: projects without a directory in the stacks root are missing"
                .to_owned(),
        );
    }
    unknown
}

impl Adoptable {
    /// A stack that is not planned.
    pub(super) fn none(readiness: Readiness) -> Self {
        Self {
            readiness,
            request: None,
            services: Vec::new(),
            blockers: Vec::new(),
        }
    }

    pub(super) fn blocked(error: &anyhow::Error) -> Self {
        Self {
            blockers: vec![BlockerReport::of_error(error)],
            ..Self::none(Readiness::Blocked)
        }
    }

    pub(super) fn planned(plan: Adoption) -> Self {
        Self {
            readiness: match &plan.request {
                _ if !plan.blockers.is_empty() => Readiness::Blocked,
                Request::Nothing(_) => Readiness::NothingToDo,
                Request::Create | Request::Update(_) => Readiness::Ready,
            },
            request: Some(RequestReport::of(plan.request)),
            services: plan.services.into_iter().map(ServiceReport::of).collect(),
            blockers: plan.blockers.into_iter().map(BlockerReport::of).collect(),
        }
    }
}
