//! What follows from the environment, and from an API key that may not see or manage every Portainer stack (B03, B06, B24).

use composefile::services::MountType;

use crate::{
    compose::{Project, Service},
    finding::Finding,
    model::{Container, Rights, may_be_portainers},
    plan::{Environment, Facts},
    text::listed,
};

/// The refusal if the environment is known not to be usable for this host.
pub fn environment(environment: &Environment, endpoint: i64) -> Option<Finding> {
    let right_one = |here: Option<i64>| match here {
        Some(id) => {
            format!("environment {id} is this host: pass --endpoint {id}, or --endpoint auto")
        }
        None => "add this host to Portainer as an environment, or pass its ID with --endpoint"
            .to_owned(),
    };
    Some(match environment {
        Environment::SameEngine | Environment::Unknown(_) => return None,
        &Environment::OtherEngine { here } => Finding::new(
            format!(
                "environment {endpoint} is another host: Portainer would create the containers there"
            ),
            right_one(here),
        ),
        Environment::Clone { container, here } => Finding::new(
            format!(
                "environment {endpoint} is another host, whose Docker has the same ID: container {container} runs on this host, and Portainer does not list it there"
            ),
            right_one(*here),
        ),
        Environment::Hidden(container) => Finding::new(
            format!(
                "cannot verify that environment {endpoint} is this host: the API key does not see container {container} there"
            ),
            "use an administrator's API key, or one whose user has access to the stack's containers in Portainer",
        ),
        // M17
        Environment::OtherSocket(socket) => Finding::new(
            format!(
                "the environment is the socket {socket}, but Compose in Portainer uses /var/run/docker.sock"
            ),
            "mount the socket of this host at /var/run/docker.sock in Portainer's container, or connect the environment with an agent",
        ),
        &Environment::NotFound { here } => Finding::new(
            format!("Portainer has no environment {endpoint}"),
            right_one(here),
        ),
        Environment::Forbidden(status) => Finding::new(
            format!("the API key is not allowed to use environment {endpoint} ({status})"),
            "use an administrator's API key, or give the user of this key access to the environment in Portainer",
        ),
    })
}

/// The refusal if the API key may not manage stacks (M22).
pub fn management(facts: &Facts) -> Option<Finding> {
    (facts.remote.rights == Rights::NoStacks).then(|| management_of(facts.endpoint))
}

/// The refusal of an environment whose stacks the API key may not manage (M22).
pub fn management_of(endpoint: i64) -> Finding {
    Finding::new(
        format!(
            "the API key is not allowed to create, update or delete stacks on environment {endpoint}"
        ),
        "use an administrator's API key, or turn off \"Disable the use of Stacks for non-administrators\" in the environment's Docker settings in Portainer",
    )
    .short("API key may not manage stacks")
}

/// The refusal if the text has what the API key may not deploy (M22).
pub fn admin_only(facts: &Facts, project: &Project) -> Option<Finding> {
    let Rights::OwnStacks(forbidden) = &facts.remote.rights else {
        return None;
    };
    let all = project.services.iter().flat_map(|service| {
        let restricted = ADMIN_ONLY.iter();
        let restricted = restricted.filter(|(setting, ..)| forbidden.contains(*setting));
        let used = restricted.filter(|(.., uses)| uses(service));
        used.map(|(_, part, _)| format!("{}: {part}", service.name))
    });
    let what = "only an administrator's API key may deploy parts of the Compose file";
    let hint = "use an administrator's API key, or allow this in the environment's Docker settings in Portainer";
    Finding::about(all.collect(), what, hint)
}

/// Whether a service has a part.
type Uses = fn(&Service) -> bool;

/// What an environment may let only administrators deploy (M22): the setting of Portainer, the part of a service, and whether a
/// service has it. Older versions have no `SecurityOpt`.
const ADMIN_ONLY: [(&str, &str, Uses); 7] = [
    ("BindMounts", "bind mounts", |service| {
        let mut mounts = service.mounts.iter();
        mounts.any(|mount| mount.kind == MountType::Bind)
    }),
    ("PrivilegedMode", "`privileged`", |service| {
        service.text(&["privileged"]).as_deref() == Some("true")
    }),
    ("HostNamespace", "`pid: host`", |service| {
        service.text(&["pid"]).as_deref() == Some("host")
    }),
    ("DeviceMapping", "`devices`", |service| {
        service.get("devices").is_some()
    }),
    ("SysctlSetting", "`sysctls`", |service| {
        service.get("sysctls").is_some()
    }),
    ("SecurityOpt", "`security_opt`", |service| {
        service.get("security_opt").is_some()
    }),
    ("ContainerCapabilities", "capabilities", |service| {
        service.get("cap_add").or(service.get("cap_drop")).is_some()
    }),
];

/// The refusal if a create may fail for what the API key does not see or may not deploy, after a migration removed the
/// containers. Portainer also rejects other parts of the text if a setting restricts the user (M22).
pub fn limited(facts: &Facts) -> Option<Finding> {
    let Rights::OwnStacks(forbidden) = &facts.remote.rights else {
        return None;
    };
    let mut reasons = Vec::new();
    if facts.record.is_none() && facts.host.may_have_containers() {
        reasons.push(format!(
            "Portainer may have a stack {} that the API key does not see",
            facts.project
        ));
    }
    let restricted = ADMIN_ONLY.iter();
    let restricted = restricted.filter(|(setting, ..)| forbidden.contains(*setting));
    let restricted: Vec<&str> = restricted.map(|(_, part, _)| *part).collect();
    if !restricted.is_empty() {
        reasons.push(format!(
            "Portainer checks the Compose file, because only administrators may use {}",
            listed(&restricted)
        ));
    }
    let what = "the API key does not belong to an administrator: Portainer may refuse the stack after its containers were removed";
    let hint = "use an administrator's API key, or adopt the stack, which removes nothing first";
    Finding::about(reasons, what, hint)
}

/// The refusal if the project of this engine has a Portainer stack on another environment with this engine (M20).
pub fn registered(facts: &Facts) -> Option<Finding> {
    let mut others = facts
        .remote
        .namesakes
        .iter()
        .filter(|_| facts.record.is_none());
    let found = others.find(|other| {
        other.record.endpoint_id != facts.endpoint && other.is_on_this_host == Some(true)
    })?;
    let (id, endpoint) = (&found.record.id, found.record.endpoint_id);
    let what = format!(
        "environment {endpoint} is this host, too, and Portainer stack {id} there has this name"
    );
    let hint = format!("to update that one, pass --endpoint {endpoint}");
    Some(Finding::new(what, hint))
}

/// The refusal if containers were started in a folder like those of Portainer, and it lists no Portainer stack: the create
/// would fail on its name.
pub fn hidden(facts: &Facts) -> Option<Finding> {
    if facts.record.is_some() || facts.remote.rights.see_every_stack() {
        return None;
    }
    let started = facts.host.listed().iter().filter_map(|container| {
        let dir = container.compose_label(facts.tool, "project.working_dir")?;
        let line = || format!("{} was started in {dir}", container.name());
        (may_be_portainers(dir) && !facts.is_same(dir, facts.dir)).then(line)
    });
    let what = "Portainer may have started these containers, and the API key may not see their Portainer stack";
    Finding::about(started.collect(), what, facts.remote.rights.remedy())
}

/// The first container that runs Portainer (B04). `port` is `None` if Portainer is not on this host.
pub fn runs_portainer(containers: &[Container], port: Option<u16>) -> Option<Finding> {
    let mut hint =
        "manage this stack by hand: recreating it would cut you off from Portainer".to_owned();
    if containers.len() > 1 {
        hint += "; to adopt the other services, move Portainer to a Compose file in another directory, with its volumes as `external: true` by their present names";
    }
    containers.iter().find_map(|container| {
        let (name, because) = (container.name(), container.runs_portainer(port)?);
        let what = format!("the stack runs Portainer itself: container {name} {because}");
        Some(Finding::new(what, &hint))
    })
}

/// The container of the Portainer at `port` of this host, if it is among `containers`.
pub fn portainer(containers: &[Container], port: u16) -> Option<&Container> {
    let is_portainer =
        |one: &&Container| one.runs_portainer(None).is_some() && one.status() == "running";
    let mut by_image = containers.iter().filter(is_portainer);
    let only = by_image.next().filter(|_| by_image.next().is_none());
    // A proxy in front of it may publish the port.
    only.or_else(|| {
        containers
            .iter()
            .find(|container| container.publishes(port))
    })
}
