//! The engine's HTTP front: the part of the Engine API that the program and the `docker` command use.

mod containers;
mod filters;
mod images;
mod networks;
mod shapes;
mod volumes;

use serde_json::{Value, json};

use self::filters::Filters;
use super::{
    faults::Call,
    http::{Answer, Incoming, decode},
    world::{Problem, World},
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
        ("GET", ["containers", _, "changes"]) => Call::EngineChanges,
        ("POST", ["containers", "create"]) => Call::EngineCreate,
        ("POST", ["containers", _, "start"]) => Call::EngineStart,
        ("POST", ["containers", _, "stop"]) => Call::EngineStop,
        ("POST", ["containers", _, "kill"]) => Call::EngineKill,
        ("POST", ["containers", _, "restart"]) => Call::EngineRestart,
        ("POST", ["containers", _, "pause" | "unpause"]) => Call::EnginePause,
        ("POST", ["containers", _, "rename"]) => Call::EngineRename,
        ("POST", ["containers", _, "wait"]) => Call::EngineWait,
        ("DELETE", ["containers", _]) => Call::EngineRemove,
        ("GET", ["networks"] | ["networks", _]) => Call::EngineNetworks,
        ("POST", ["networks", "create"]) => Call::EngineNetworkCreate,
        ("POST", ["networks", _, "connect"]) => Call::EngineConnect,
        ("POST", ["networks", _, "disconnect"]) => Call::EngineDisconnect,
        ("DELETE", ["networks", _]) => Call::EngineNetworkRemove,
        ("GET", ["volumes"] | ["volumes", _]) => Call::EngineVolumes,
        ("POST", ["volumes", "create"]) => Call::EngineVolumeCreate,
        ("DELETE", ["volumes", _]) => Call::EngineVolumeRemove,
        ("POST", ["images", "create"]) => Call::EnginePull,
        ("GET", ["images", ..]) => Call::EngineImages,
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

/// Does what a request asks the engine of that id for.
pub(super) fn answer_on(world: &mut World, engine: &str, incoming: &Incoming) -> Answer {
    let (version, path) = versioned(incoming.path());
    let outcome = check_version(world, version).and_then(|()| route(world, engine, path, incoming));
    outcome.unwrap_or_else(|problem| {
        Answer::json(problem.status, &json!({ "message": problem.message }))
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
        return Err(Problem::new(
            400,
            format!(
                "client version {version} is too old. Minimum supported API version is {min}, please \
                 upgrade your client to a newer version"
            ),
        ));
    }
    if number(version) > number(max) {
        return Err(Problem::new(
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
    // In a path a plus is itself.
    let path = decode(&path.replace('+', "%2B"));
    let parts = parts(&path);
    match (incoming.method.as_str(), parts.as_slice()) {
        ("GET" | "HEAD", ["_ping"]) => Ok(Answer::new(200, "text/plain; charset=utf-8", "OK")),
        ("GET", ["version"]) => Ok(ok(&shapes::version(world))),
        ("GET", ["info"]) => Ok(ok(&shapes::info(world, engine))),
        (_, ["containers", rest @ ..]) => containers::route(world, engine, rest, incoming),
        (_, ["networks", rest @ ..]) => networks::route(world, engine, rest, incoming),
        (_, ["volumes", rest @ ..]) => volumes::route(world, engine, rest, incoming),
        (_, ["images", rest @ ..]) => images::route(world, rest, incoming),
        _ => Err(no_page()),
    }
}

fn no_page() -> Problem {
    Problem::new(404, "page not found")
}

fn filters(incoming: &Incoming) -> Result<Filters, Problem> {
    Filters::read(incoming.query("filters").as_deref()).map_err(|what| Problem::new(400, what))
}

/// The body as JSON; one that is none is the engine's own fault, it says.
fn body(incoming: &Incoming) -> Result<Value, Problem> {
    serde_json::from_slice(&incoming.body).map_err(|error| {
        let text = match error.is_eof() {
            true if incoming.body.is_empty() => "EOF".to_owned(),
            true => "unexpected EOF".to_owned(),
            false => error.to_string(),
        };
        Problem::new(500, text)
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
