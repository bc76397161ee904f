//! The Engine API: the part of it that `stacklift` and the `docker` command use.

mod archive;
mod containers;
mod events;
mod filters;
mod images;
mod input;
mod networks;
mod shapes;
mod volumes;

use serde_json::json;

use super::{
    faults::Call,
    http::{Incoming, Response, decode, segments},
    world::{EngineError, World},
};

/// Classifies a request.
pub(super) fn call(incoming: &Incoming) -> Call {
    let (_, path) = versioned(incoming.path());
    match (incoming.method.as_str(), segments(path).as_slice()) {
        (_, ["_ping"]) => Call::EnginePing,
        (_, ["version"]) => Call::EngineVersion,
        (_, ["info"]) => Call::EngineInfo,
        ("GET", ["events"]) => Call::EngineEvents,
        ("GET", ["containers", "json"]) => Call::EngineList,
        ("GET", ["containers", _, "json"]) => Call::EngineInspect,
        ("GET", ["containers", _, "changes"]) => Call::EngineChanges,
        ("GET", ["containers", _, "archive"]) => Call::EngineArchive,
        ("PUT", ["containers", _, "archive"]) => Call::EngineUnpack,
        ("GET", ["containers", _, "top"]) => Call::EngineTop,
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

/// Responds to a request to this host's engine.
pub(super) fn respond(world: &mut World, incoming: &Incoming) -> Response {
    let engine = world.engine.id.clone();
    let mut response = respond_on(world, &engine, incoming);
    response.headers.extend([
        ("Api-Version", world.engine.api.clone()),
        ("Docker-Experimental", "false".to_owned()),
        ("Ostype", "linux".to_owned()),
        ("Server", format!("Docker/{} (linux)", world.engine.version)),
    ]);
    let libpod = world.engine.libpod.clone();
    let libpod = libpod.map(|version| ("Libpod-Api-Version", version));
    response.headers.extend(libpod);
    response
}

/// Responds to a request to the engine with that ID.
pub(super) fn respond_on(world: &mut World, engine: &str, incoming: &Incoming) -> Response {
    let (version, path) = versioned(incoming.path());
    let outcome = check_version(world, version).and_then(|()| route(world, engine, path, incoming));
    outcome
        .unwrap_or_else(|error| Response::json(error.status, &json!({ "message": error.message })))
}

fn check_version(world: &World, version: Option<&str>) -> Result<(), EngineError> {
    let Some(version) = version else {
        return Ok(());
    };
    let number = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let (min, max) = (&world.engine.min_api, &world.engine.api);
    if number(version) < number(min) {
        return Err(EngineError::new(
            400,
            format!(
                "client version {version} is too old. Minimum supported API version is {min}, please \
                 upgrade your client to a newer version"
            ),
        ));
    }
    if number(version) > number(max) {
        return Err(EngineError::new(
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
) -> Result<Response, EngineError> {
    // `decode` turns `+` into a space, which is wrong in a path.
    let path = decode(&path.replace('+', "%2B"));
    match (incoming.method.as_str(), segments(&path).as_slice()) {
        ("GET" | "HEAD", ["_ping"]) => Ok(Response::new(200, "text/plain; charset=utf-8", "OK")),
        ("GET", ["version"]) => Ok(Response::ok(&shapes::version(world))),
        ("GET", ["info"]) => Ok(Response::ok(&shapes::info(world, engine))),
        ("GET", ["events"]) => events::list(world, engine, incoming),
        (_, ["containers", rest @ ..]) => containers::route(world, engine, rest, incoming),
        (_, ["networks", rest @ ..]) => networks::route(world, engine, rest, incoming),
        (_, ["volumes", rest @ ..]) => volumes::route(world, engine, rest, incoming),
        (_, ["images", rest @ ..]) => images::route(world, rest, incoming),
        _ => Err(EngineError::no_page()),
    }
}
