//! Which services need their bind mounts in the long syntax, so that Portainer keeps their containers (B39).
//!
//! Compose 5 hashes a bind mount that may create its source in another way than every earlier version (N28). In the long syntax
//! without `create_host_path`, the earlier ones hash it in that way, too. They do not create the source then.

use std::collections::BTreeSet;

use crate::{
    compose::{ComposeVersion, Dialect, Mount, Place, Project},
    model::Container,
    plan::{Facts, PortainerCompose},
    rewrite::faithful::written_services,
};

/// The first version that hashes such a bind mount in its way (N28).
const FIRST: ComposeVersion = ComposeVersion(5, 0, 0);

/// The services whose bind mounts are sent in the long syntax.
///
/// What Portainer has stays: a service with the long syntax there keeps it, unless only the text as it is written keeps its
/// containers.
pub fn long_binds(facts: &Facts) -> BTreeSet<String> {
    let written = written_services(facts.sent.text, facts.sent.env);
    let deployed = facts.record.and_then(|record| record.contents);
    let deployed = deployed.map(|deployed| written_services(deployed.text, deployed.env));
    let portainer = facts.portainer.filter(|portainer| portainer.first < FIRST);
    let is_wanted = |service: &&String| {
        let is_deployed = deployed.as_ref().is_some_and(|deployed| {
            let mounts = deployed
                .get(*service)
                .into_iter()
                .flat_map(|service| &service.mounts);
            let mut mounts = mounts.filter_map(|(path, mount)| {
                Some((path, mount, written[*service].mounts.get(path)?))
            });
            mounts.any(|(path, mount, now)| {
                (mount.creates.is_none() && now.creates == Some(true))
                    || (mount.target == *path && now.target != *path)
            })
        });
        let Ok(sent) = &facts.projects.sent else {
            return is_deployed;
        };
        let Some(long) = sent.with_long_binds(service) else {
            return false;
        };
        // In the long syntax, the deployment would fail (M13).
        let mounts = sent
            .service(service)
            .into_iter()
            .flat_map(|service| &service.mounts);
        let is_lacking = |mount: &Mount| {
            mount.creates
                && matches!(&mount.place, Some(Place::Absolute(source)) if facts.lacks(source))
        };
        if mounts.into_iter().any(is_lacking) {
            return false;
        }
        let keeps = |project: &Project| {
            portainer.is_some_and(|portainer| keeps_all(facts, project, service, portainer))
        };
        match (keeps(sent), keeps(&long)) {
            (true, false) => false,
            (false, true) => {
                is_deployed
                    || facts
                        .of_service(service)
                        .any(|container| is_newer(facts, container))
            }
            _ => is_deployed,
        }
    };
    written.keys().filter(is_wanted).cloned().collect()
}

/// Whether Portainer's Compose keeps every container of a service that has some.
fn keeps_all(facts: &Facts, project: &Project, service: &str, portainer: PortainerCompose) -> bool {
    let dialects = portainer.dialects();
    let is_kept = |container: &Container| {
        let hash = facts.label(container, "config-hash");
        let version = facts.label(container, "version");
        let created_by = version.and_then(ComposeVersion::parse).map(Dialect::of);
        let keeps = |hash, dialect| project.keeps(service, hash, dialect, created_by);
        hash.is_some_and(|hash| dialects.iter().all(|&dialect| keeps(hash, dialect)))
    };
    let mut containers = facts.of_service(service).peekable();
    containers.peek().is_some() && containers.all(is_kept)
}

/// Whether a version with the new hash created a container.
fn is_newer(facts: &Facts, container: &Container) -> bool {
    facts
        .label(container, "version")
        .and_then(ComposeVersion::parse)
        >= Some(FIRST)
}
