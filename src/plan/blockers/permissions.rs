//! What follows from the environment, and from an API key that may not see or manage every Portainer stack (B03, B06, B24).

use crate::{
    model::{AdminOnly, Container, Rights, may_be_portainers},
    plan::{
        Environment, Facts, Refusal,
        facts::services::{Given, SentService, SentStack},
    },
    text::{listed, printable},
};

/// The refusal if the environment is known not to be usable for this host.
pub fn environment(facts: &Facts) -> Option<Refusal> {
    let endpoint = facts.endpoint;
    match &facts.environment {
        &Environment::OtherEngine { here } => Some(Refusal::OtherEngine { endpoint, here }),
        Environment::OtherSocket(socket) => Some(Refusal::OtherSocket(socket.clone())),
        &Environment::NotFound { here } => Some(Refusal::NoEnvironment { endpoint, here }),
        &Environment::Forbidden(status) => Some(Refusal::ForbiddenEnvironment { endpoint, status }),
        Environment::SameEngine | Environment::Unknown(_) => None,
    }
}

/// The refusal if the API key may not manage stacks (M22).
pub fn management(facts: &Facts) -> Option<Refusal> {
    let endpoint = facts.endpoint;
    (facts.rights == Rights::NoStacks).then_some(Refusal::ForbiddenStacks { endpoint })
}

/// The refusal if the text has what the API key may not deploy (M22).
pub fn admin_only(facts: &Facts, stack: &SentStack) -> Option<Refusal> {
    let Rights::OwnStacks(restricted) = &facts.rights else {
        return None;
    };
    let services = stack.active();
    let all = services.iter().flat_map(|service| {
        let used = restricted.iter().filter(|one| uses(service, **one));
        used.map(|one| format!("{}: {one}", printable(service.name)))
    });
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then_some(Refusal::AdminOnly(all))
}

fn uses(service: &SentService, what: AdminOnly) -> bool {
    let has = |key: &str| {
        let mut nodes = service.nodes(key);
        nodes.any(|node| node.items().next().is_some() || !node.entries().is_empty())
    };
    let is = |key: &str, value: &str| service.given(&[key]) == Given::Is(value.to_owned());
    match what {
        AdminOnly::BindMounts => service.has_bind_mounts(),
        AdminOnly::Privileged => is("privileged", "true"),
        AdminOnly::HostPid => is("pid", "host"),
        AdminOnly::Devices => has("devices"),
        AdminOnly::Sysctls => has("sysctls"),
        AdminOnly::SecurityOpt => has("security_opt"),
        AdminOnly::Capabilities => has("cap_add") || has("cap_drop"),
    }
}

/// The refusal if a create may fail for what the API key does not see or may not deploy, after a migration removed the
/// containers. Portainer also rejects other parts of the text if a setting restricts the user (M22).
pub fn limited(facts: &Facts) -> Option<Refusal> {
    let Rights::OwnStacks(restricted) = &facts.rights else {
        return None;
    };
    let has_containers = facts.listed.is_none_or(|all| !all.is_empty());
    let mut reasons = Vec::new();
    if facts.record.is_none() && has_containers {
        reasons.push(format!(
            "Portainer may have a stack {} that the API key does not see",
            facts.project
        ));
    }
    if !restricted.is_empty() {
        let restricted: Vec<String> = restricted.iter().map(ToString::to_string).collect();
        reasons.push(format!(
            "Portainer checks the Compose file, because only administrators may use {}",
            listed(&restricted)
        ));
    }
    (!reasons.is_empty()).then_some(Refusal::LimitedKey(reasons))
}

/// The refusal if the project of this engine has a Portainer stack on another environment with this engine (M20).
pub fn registered(facts: &Facts) -> Option<Refusal> {
    let mut others = facts.namesakes.iter().filter(|_| facts.record.is_none());
    let found = others.find(|other| {
        other.record.endpoint_id != facts.endpoint && other.is_on_this_host == Some(true)
    })?;
    Some(Refusal::InPortainerAlready {
        id: found.record.id.clone(),
        endpoint: found.record.endpoint_id,
    })
}

/// The refusal if containers were started in a folder like those of Portainer, and it lists no Portainer stack: the create
/// would fail on its name.
pub fn hidden(facts: &Facts) -> Option<Refusal> {
    if facts.record.is_some() || facts.rights.see_every_stack() {
        return None;
    }
    let listed = facts.listed.unwrap_or_default().iter();
    let started = listed.filter_map(|container| {
        let dir = container.compose_label(facts.tool, "project.working_dir")?;
        let line = || format!("{} was started in {dir}", container.name());
        (may_be_portainers(dir) && !facts.is_same(dir, facts.dir)).then(line)
    });
    let started: Vec<String> = started.collect();
    (!started.is_empty()).then_some(Refusal::HiddenStack(started))
}

/// The first container that runs Portainer (B04). `port` is `None` if Portainer is not on this host.
pub fn runs_portainer(containers: &[Container], port: Option<u16>) -> Option<Refusal> {
    containers.iter().find_map(|container| {
        Some(Refusal::RunsPortainer {
            container: container.name().to_owned(),
            because: container.runs_portainer(port)?,
        })
    })
}

/// The container of the Portainer at `port` of this host, if it is among `containers`.
pub fn portainer(containers: &[Container], port: u16) -> Option<&Container> {
    let mut by_port = containers.iter().filter(|one| one.publishes(port));
    by_port.next().or_else(|| {
        let is_portainer =
            |one: &&Container| one.runs_portainer(None).is_some() && one.state == "running";
        let mut by_image = containers.iter().filter(is_portainer);
        by_image.next().filter(|_| by_image.next().is_none())
    })
}
