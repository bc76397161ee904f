//! The engine's HTTP front: the part of the Engine API that the program and the `docker` command use.

mod filters;
mod shapes;

use serde_json::{Value, json};

use self::filters::Filters;
use super::{
    faults::Call,
    http::{Answer, Incoming},
    world::{Container, Volumes, World},
};

/// Which call a request is.
pub(super) fn call(incoming: &Incoming) -> Call {
    let (_, path) = versioned(incoming.path());
    match (incoming.method.as_str(), parts(path).as_slice()) {
        (_, ["_ping"]) => Call::EnginePing,
        (_, ["version"]) => Call::EngineVersion,
        (_, ["info"]) => Call::EngineInfo,
        ("GET", ["containers", "json"]) => Call::EngineList,
        ("GET", ["containers", _, "json"]) => Call::EngineInspect,
        ("DELETE", ["containers", _]) => Call::EngineRemove,
        ("POST" | "PUT" | "DELETE", _) => Call::EngineWrite,
        _ => Call::Other,
    }
}

fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// `/v1.41/info` → `1.41`, `/info`
fn versioned(path: &str) -> (Option<&str>, &str) {
    let split = path
        .strip_prefix("/v")
        .and_then(|rest| rest.split_once('/'));
    match split {
        Some((version, rest)) if version.starts_with(|c: char| c.is_ascii_digit()) => {
            (Some(version), &path[path.len() - rest.len() - 1..])
        }
        _ => (None, path),
    }
}

/// Does what a request asks this host's engine for.
pub(super) fn answer(world: &mut World, incoming: &Incoming) -> Answer {
    let engine = world.engine.id.clone();
    let mut answer = answer_on(world, &engine, incoming);
    let os = "linux".to_owned();
    answer.headers.extend([
        ("Api-Version", world.engine.api.clone()),
        ("Docker-Experimental", "false".to_owned()),
        ("Ostype", os),
        ("Server", format!("Docker/{} (linux)", world.engine.version)),
    ]);
    answer
}

/// Why the engine does not do a call.
struct Problem(u16, String);

impl Problem {
    fn missing(what: &str, name: &str) -> Self {
        Self(404, format!("No such {what}: {name}"))
    }
}

/// Does what a request asks the engine of that id for.
pub(super) fn answer_on(world: &mut World, engine: &str, incoming: &Incoming) -> Answer {
    let (version, path) = versioned(incoming.path());
    let outcome = check_version(world, version).and_then(|()| route(world, engine, path, incoming));
    outcome.unwrap_or_else(|Problem(status, message)| {
        Answer::json(status, &json!({ "message": message }))
    })
}

fn check_version(world: &World, version: Option<&str>) -> Result<(), Problem> {
    let Some(version) = version else {
        return Ok(());
    };
    let number = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let (min, max) = (&world.engine.min_api, &world.engine.api);
    if number(version) < number(min) {
        return Err(Problem(
            400,
            format!(
                "client version {version} is too old. Minimum supported API version is {min}, please \
                 upgrade your client to a newer version"
            ),
        ));
    }
    if number(version) > number(max) {
        return Err(Problem(
            400,
            format!("client version {version} is too new. Maximum supported API version is {max}"),
        ));
    }
    Ok(())
}

fn route(
    world: &mut World,
    engine: &str,
    path: &str,
    incoming: &Incoming,
) -> Result<Answer, Problem> {
    let filters =
        || Filters::read(incoming.query("filters").as_deref()).map_err(|what| Problem(400, what));
    Ok(match (incoming.method.as_str(), parts(path).as_slice()) {
        ("GET" | "HEAD", ["_ping"]) => Answer::new(200, "text/plain; charset=utf-8", "OK"),
        ("GET", ["version"]) => ok(&shapes::version(world)),
        ("GET", ["info"]) => ok(&shapes::info(world, engine)),
        ("GET", ["containers", "json"]) => ok(&list(world, engine, incoming, &filters()?)),
        ("GET", ["containers", id, "json"]) => {
            ok(&shapes::inspected(world, find(world, engine, id)?))
        }
        ("DELETE", ["containers", id]) => remove(world, engine, id, incoming)?,
        ("GET", ["volumes"]) => ok(&shapes::volumes(world, engine, &filters()?)),
        ("GET", ["volumes", name]) => {
            let mut there = world
                .volumes
                .iter()
                .filter(|volume| volume.engine == engine);
            let volume = there.find(|volume| volume.name == *name);
            ok(&shapes::volume(
                volume.ok_or_else(|| Problem::missing("volume", name))?,
            ))
        }
        ("GET", ["networks"]) => ok(&shapes::networks(world, engine, &filters()?)),
        ("GET", ["networks", id]) => {
            let mut there = world
                .networks
                .iter()
                .filter(|network| network.engine == engine);
            let network = there.find(|network| network.id.starts_with(id) || network.name == *id);
            ok(&shapes::network(
                world,
                network.ok_or_else(|| Problem::missing("network", id))?,
            ))
        }
        ("GET", ["images", "json"]) => ok(&shapes::images(world)),
        _ => return Err(Problem(404, "page not found".to_owned())),
    })
}

fn ok(value: &Value) -> Answer {
    Answer::json(200, value)
}

/// A query flag as the engine reads it.
fn flag(incoming: &Incoming, name: &str) -> bool {
    let value = incoming
        .query(name)
        .unwrap_or_default()
        .to_ascii_lowercase();
    !matches!(value.as_str(), "" | "0" | "no" | "false" | "none")
}

fn list(world: &World, engine: &str, incoming: &Incoming, filters: &Filters) -> Value {
    let all = flag(incoming, "all") || filters.names("status") || filters.names("exited");
    let mut found = world
        .containers
        .values()
        .filter(|container| container.engine == engine)
        .filter(|container| all || container.is_running())
        .filter(|container| filters.take(container))
        .collect::<Vec<_>>();
    // Newest first, as the engine lists them.
    found.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
    if let Some(limit) = incoming.query("limit").and_then(|limit| limit.parse().ok()) {
        found.truncate(limit);
    }
    found
        .into_iter()
        .map(|container| shapes::listed(world, container))
        .collect()
}

/// A container by id, the start of an id that is the only one, or name.
fn find<'w>(world: &'w World, engine: &str, name: &str) -> Result<&'w Container, Problem> {
    let here = || {
        world
            .containers
            .values()
            .filter(|container| container.engine == engine)
    };
    let plain = name.trim_start_matches('/');
    let exact = here().find(|container| container.id == plain || container.name == plain);
    if let Some(container) = exact {
        return Ok(container);
    }
    let mut starting = here().filter(|container| container.id.starts_with(plain));
    match (starting.next(), starting.next()) {
        (Some(container), None) => Ok(container),
        (Some(_), Some(_)) => Err(Problem(
            400,
            format!("Multiple IDs found with provided prefix: {name}"),
        )),
        (None, _) => Err(Problem::missing("container", name)),
    }
}

fn remove(
    world: &mut World,
    engine: &str,
    id: &str,
    incoming: &Incoming,
) -> Result<Answer, Problem> {
    let container = find(world, engine, id)?;
    if container.is_running() && !flag(incoming, "force") {
        return Err(Problem(
            409,
            format!(
                "You cannot remove a running container {}. Stop the container before attempting removal \
                 or force remove",
                container.id
            ),
        ));
    }
    let id = container.id.clone();
    let volumes = if flag(incoming, "v") {
        Volumes::Removed
    } else {
        Volumes::Kept
    };
    world.remove_container(&id, volumes);
    Ok(Answer::no_content())
}
