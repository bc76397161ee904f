//! What Portainer's Compose refuses although Compose programs of a host accept it (N31, N33).

use std::collections::{BTreeSet, HashSet};

use composefile::document::{Document, Node, NodeId, ScalarType};

use crate::{
    compose::{ComposeVersion, Project, Service},
    finding::Finding,
    plan::{Environment, Facts},
};

/// The first Compose that creates every container on an older engine: it leaves out what the engine does not support.
const FIRST_FOR_EVERY_ENGINE: ComposeVersion = ComposeVersion(5, 0, 0);
/// The first Compose whose YAML parser reads [`Document::newer_syntax`].
const FIRST_WITH_NEWER_YAML: ComposeVersion = ComposeVersion(5, 0, 0);
/// The first engine with API version 1.44.
const FIRST_ENGINE: u16 = 25;

/// Whether the text has a part that some version of Portainer refuses.
pub fn may_be(document: &Document, project: &Project) -> bool {
    let mut services = project.services.iter();
    !dates(document).is_empty()
        || document.newer_syntax().next().is_some()
        || services.any(|service| !settings(service).is_empty())
}

/// What Portainer's Compose refuses of the text, and of the containers of the services that `is_created` names.
pub fn unsupported(
    facts: &Facts,
    project: &Project,
    is_created: impl Fn(&Service) -> bool,
) -> Vec<Finding> {
    let Some(compose) = facts.portainer else {
        return Vec::new();
    };
    let document = facts.document.filter(|_| compose.is_library);
    let dates = document.map(dates).unwrap_or_default();
    let dates = dates.iter().map(|line| format!("line {line}"));
    let what = "Compose in Portainer rejects dates without quotes";
    let hint = "put each into quotes, as `docker compose config` prints it";
    let rejected = Finding::about(dates.collect(), what, hint);
    let has_older_yaml = compose.last < FIRST_WITH_NEWER_YAML;
    let document = facts.document.filter(|_| has_older_yaml);
    let newer = document.into_iter().flat_map(Document::newer_syntax);
    let lines: BTreeSet<usize> = newer.map(Node::line).collect();
    let lines = lines.iter().map(|line| format!("line {line}"));
    let what = format!(
        "Compose {} in Portainer cannot parse the file",
        compose.last
    );
    let hint = "put values that contain `?` or begin with `:` into quotes, and give anchors names of letters, digits, `-` and `_`";
    let unparsable = Finding::about(lines.collect(), what, hint);
    let engine = facts.host.engine_version.as_deref();
    let is_older = engine
        .and_then(ComposeVersion::parse)
        .is_some_and(|ComposeVersion(major, ..)| major < FIRST_ENGINE);
    let is_here = facts.remote.environment == Environment::SameEngine;
    let created = project.services.iter().filter(|service| {
        is_older && is_here && compose.last < FIRST_FOR_EVERY_ENGINE && is_created(service)
    });
    let of_engine = Finding::about(
        created.flat_map(settings).collect(),
        format!(
            "Compose in Portainer cannot create a container with these settings on Docker {}",
            engine.unwrap_or_default()
        ),
        format!(
            "upgrade Docker to {FIRST_ENGINE} or later, or remove these settings from the Compose file"
        ),
    );
    let of_engine = of_engine.map(|one| one.short("needs a newer Docker"));
    let all = [rejected, unparsable, of_engine];
    all.into_iter().flatten().collect()
}

/// The settings of a service that need API version 1.44 (N33).
fn settings(service: &Service) -> Vec<String> {
    let interval = ["healthcheck", "start_interval"];
    let interval = service.text(&interval).map(|_| interval.join("."));
    let addresses = service.networks.values().filter_map(|endpoint| {
        let key = &endpoint.network.as_ref()?.key;
        endpoint.options.get("mac_address")?.as_str()?;
        Some(format!("networks.{key}.mac_address"))
    });
    let all: BTreeSet<String> = addresses.chain(interval).collect();
    all.iter()
        .map(|one| format!("{}: {one}", service.name))
        .collect()
}

/// The lines of the dates without quotes, but for those of extensions, which Compose does not read.
fn dates(document: &Document) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut done: HashSet<NodeId> = HashSet::new();
    let mut ahead = Vec::from_iter(document.root());
    while let Some(node) = ahead.pop() {
        if !done.insert(node.resolved().id()) {
            continue;
        }
        let is_date = node.scalar_type() == Some(ScalarType::Timestamp);
        found.extend(is_date.then(|| node.resolved().line()));
        let read = node.entries().into_iter();
        let read = read.filter(|entry| entry.name().is_none_or(|name| !name.starts_with("x-")));
        ahead.extend(read.map(|entry| entry.value));
        ahead.extend(node.items());
    }
    found
}
