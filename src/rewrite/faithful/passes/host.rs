//! Blocks on what Compose reads or runs on this host when it creates a container, and no text can carry.
//!
//! `docker compose config` shows none of this.

use composefile::{document::Node, reader::Reader, services::Service};

use crate::rewrite::faithful::{Finding, Kind, findings::Findings};

/// Finds seccomp profiles, providers, models and registry logins.
pub(super) fn files_of_this_host<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    for &service in &reader.services {
        seccomp_profiles(reader, service, &mut found.blockers);
        programs(service, &mut found.blockers);
        logins(reader, service, &mut found.blockers);
    }
}

fn seccomp_profiles(reader: &Reader<'_, '_>, service: Service<'_>, blockers: &mut Vec<Finding>) {
    let options = service.node.get("security_opt").into_iter();
    for option in options.flat_map(Node::items) {
        let text = option.as_str().and_then(|text| reader.read(text).ok());
        if text.is_some_and(|text| names_seccomp_profile(&text)) {
            let name = service.name;
            let message = format!("Portainer cannot read the seccomp profile of service {name}");
            let hint = "set the profile for all containers (`seccomp-profile` in daemon.json) and remove it here";
            blockers.push(Finding::at(option, Kind::UnreadableFiles, message, hint));
        }
    }
}

fn programs(service: Service<'_>, blockers: &mut Vec<Finding>) {
    for (key, needs) in [
        ("provider", "runs a program of this host"),
        ("models", "needs a plugin of this host"),
    ] {
        if let Some(node) = service.node.get(key).filter(|node| !node.is_null()) {
            let name = service.name;
            let message =
                format!("`{key}` of service {name} {needs}, which Portainer does not have");
            let hint = "run this service separately, outside the stack";
            blockers.push(Finding::at(node, Kind::UnreadableFiles, message, hint));
        }
    }
}

fn logins(reader: &Reader<'_, '_>, service: Service<'_>, blockers: &mut Vec<Finding>) {
    let Some(node) = service.node.get("use_api_socket") else {
        return;
    };
    let text = node.as_str().and_then(|text| reader.read(text).ok());
    if text.as_deref() == Some("true") {
        let message = format!(
            "`use_api_socket` gives service {} the registry logins of the user who starts the stack; Portainer has different logins",
            service.name
        );
        let hint =
            "mount /var/run/docker.sock, and a config.json with the logins that the service needs";
        blockers.push(Finding::at(node, Kind::UnreadableFiles, message, hint));
    }
}

/// Whether Compose reads a file for an item of `security_opt`.
fn names_seccomp_profile(option: &str) -> bool {
    let parts = option.split_once('=').or_else(|| option.split_once(':'));
    parts.is_some_and(|(key, value)| key == "seccomp" && !matches!(value, "unconfined" | "builtin"))
}
