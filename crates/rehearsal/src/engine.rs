//! The Engine API: the part of it that `stacklift` uses, and the reads and removals of the `docker` command.

mod archive;
mod shown;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(super) use self::shown::info;
use self::shown::{inspected, listed, network, version};
use super::{
    faults::{Call, Peer},
    http::{Incoming, JSON, Response, TEXT, decode},
    world::{AnonymousVolumes, EngineError, Event, World, tagged, texts},
};

/// The process ID on the host of a container's first process.
const FIRST_PID: u32 = 4100;
/// The exit code after SIGTERM.
const TERMINATED: i64 = 143;

/// Classifies a request.
pub(super) fn call(incoming: &Incoming) -> Call {
    let (_, path) = versioned(incoming);
    Call::of(Peer::Engine, &incoming.method, &path)
}

/// `/v1.41/info` → `1.41` and `info`
fn versioned(incoming: &Incoming) -> (Option<&str>, Vec<&str>) {
    let mut path = incoming.segments();
    let first = path.first().and_then(|first| first.strip_prefix('v'));
    let version = first.filter(|version| version.contains('.'));
    if version.is_some() {
        path.remove(0);
    }
    (version, path)
}

/// Responds to a request.
pub(super) fn respond(world: &mut World, call: Call, incoming: &Incoming) -> Response {
    let (version, path) = versioned(incoming);
    let name = decode(path.get(1).copied().unwrap_or_default());
    let outcome =
        check_version(world, version).and_then(|()| perform(world, call, &name, incoming));
    let mut response = outcome
        .unwrap_or_else(|error| Response::json(error.status, &json!({ "message": error.message })));
    let engine = &world.engine;
    response.headers.extend([
        ("Api-Version", engine.api.clone()),
        ("Ostype", "linux".to_owned()),
        ("Server", format!("Docker/{} (linux)", engine.version)),
    ]);
    let libpod = engine.libpod.clone();
    response
        .headers
        .extend(libpod.map(|version| ("Libpod-Api-Version", version)));
    response
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
    let problem = if number(version) < number(min) {
        format!(
            "client version {version} is too old. Minimum supported API version is {min}, please upgrade your \
             client to a newer version"
        )
    } else if number(version) > number(max) {
        format!("client version {version} is too new. Maximum supported API version is {max}")
    } else {
        return Ok(());
    };
    Err(EngineError::new(400, problem))
}

/// Performs a call on the object `name`.
fn perform(
    world: &mut World,
    call: Call,
    name: &str,
    incoming: &Incoming,
) -> Result<Response, EngineError> {
    let query = |key: &str| incoming.query(key).unwrap_or_default();
    let done = || Ok(Response::no_content());
    let json = |value: &Value| Ok(Response::json(200, value));
    match call {
        Call::EnginePing => Ok(Response::new(200, TEXT, "OK")),
        Call::EngineVersion => json(&version(world)),
        Call::EngineInfo => json(&info(world, &world.engine.id)),
        Call::EngineEvents => Ok(Response::new(200, JSON, events(world, incoming))),
        Call::EngineList => json(&list(world, incoming)),
        Call::EngineInspect => json(&inspected(world, world.find(name)?)),
        Call::EngineRemove => remove(world, name, incoming),
        Call::EngineChanges => {
            let files = world.find(name)?.files.keys();
            let added: Vec<_> = files
                .map(|path| json!({ "Path": path, "Kind": 1 }))
                .collect();
            // No changes are `null`.
            json(&json!((!added.is_empty()).then_some(added)))
        }
        Call::EngineArchive => archive::read(world.find(name)?, &query("path")),
        Call::EngineUnpack => archive::unpack(world.find_mut(name)?, &incoming.body),
        Call::EngineTop => top(world, name),
        Call::EngineCreate => {
            let id = world.create_container(&query("name"), &body(incoming)?)?;
            Ok(Response::json(201, &json!({ "Id": id, "Warnings": [] })))
        }
        Call::EngineStart => world.start_container(name).and_then(|()| done()),
        Call::EngineStop => world.stop_container(name, TERMINATED).and_then(|()| done()),
        Call::EngineNetworks if name.is_empty() => {
            let wanted = labels(incoming);
            let found = world.networks.iter().filter(|one| wanted(&one.labels));
            json(&found.map(|one| network(world, one)).collect())
        }
        Call::EngineNetworks => json(&network(world, world.network(name)?)),
        Call::EngineNetworkCreate => {
            let id = world.create_network(&body(incoming)?)?;
            Ok(Response::json(201, &json!({ "Id": id, "Warning": "" })))
        }
        Call::EngineNetworkRemove => world.remove_network(name).and_then(|()| done()),
        Call::EngineConnect => {
            let body = body(incoming)?;
            let container = body["Container"].as_str().unwrap_or_default();
            world.connect(name, container, &body["EndpointConfig"])?;
            Ok(Response::new(200, TEXT, ""))
        }
        Call::EngineVolumes if name.is_empty() => {
            let wanted = labels(incoming);
            let all = world.volumes.iter();
            let found = all.filter(|one| wanted(&one.labels)).collect::<Vec<_>>();
            json(&json!({ "Volumes": found, "Warnings": null }))
        }
        Call::EngineVolumes => {
            let missing = || EngineError::new(404, format!("get {name}: no such volume"));
            json(&json!(world.volume(name).ok_or_else(missing)?))
        }
        Call::EngineVolumeCreate => {
            let volume = world.create_volume(&body(incoming)?);
            Ok(Response::json(201, volume))
        }
        Call::EngineImages => {
            let missing = || EngineError::new(404, format!("No such image: {}", tagged(name)));
            json(&json!(world.image(name).ok_or_else(missing)?))
        }
        _ => Err(EngineError::new(404, "page not found".to_owned())),
    }
}

/// The body as JSON. Like the engine, reports invalid JSON as 500.
fn body(incoming: &Incoming) -> Result<Value, EngineError> {
    serde_json::from_slice(&incoming.body).map_err(|error| EngineError::new(500, error.to_string()))
}

/// The query parameter `filters`: `{"label":{"a=b":true}}`, or the older `{"label":["a=b"]}`. A list also has a filter for IDs.
/// There are no other filters.
fn filters(incoming: &Incoming) -> Value {
    let given = incoming.query("filters").unwrap_or_default();
    serde_json::from_str(&given).unwrap_or_default()
}

/// The filter for labels.
fn labels(incoming: &Incoming) -> impl Fn(&BTreeMap<String, String>) -> bool {
    let filters = filters(incoming);
    let wanted = match &filters["label"] {
        Value::Array(_) => texts(&filters["label"]),
        Value::Object(flags) => flags.keys().cloned().collect(),
        _ => Vec::new(),
    };
    move |labels| {
        wanted.iter().all(|label| {
            let (name, value) = label.split_once('=').unwrap_or((label, ""));
            let found = labels.get(name);
            found.is_some_and(|found| value.is_empty() || found == value)
        })
    }
}

fn flag(incoming: &Incoming, name: &str) -> bool {
    matches!(incoming.query(name).as_deref(), Some("1" | "true"))
}

pub(super) fn list(world: &World, incoming: &Incoming) -> Value {
    let (all, wanted) = (flag(incoming, "all"), labels(incoming));
    let ids = texts(&filters(incoming)["id"]);
    let mut found = world.containers.values().collect::<Vec<_>>();
    found.retain(|one| (all || one.is_running()) && wanted(&one.labels));
    found.retain(|one| ids.is_empty() || ids.contains(&one.id));
    // The engine lists the newest first.
    found.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
    found.into_iter().map(|one| listed(world, one)).collect()
}

/// The events of containers so far, between `since` and `until`. A real engine also sends those until `until` as they
/// happen.
fn events(world: &World, incoming: &Incoming) -> String {
    // A time in seconds with a fraction.
    let time = |name: &str| {
        let text = incoming.query(name)?;
        let (seconds, fraction) = text.split_once('.')?;
        let millis = format!("{seconds}{}", fraction.get(..3)?);
        millis.parse::<i64>().ok()
    };
    let (since, until) = (
        time("since").unwrap_or(0),
        time("until").unwrap_or(i64::MAX),
    );
    let wanted = labels(incoming);
    let is_wanted = |one: &&Event| (since..=until).contains(&one.at) && wanted(&one.labels);
    let found = world.events.iter().filter(is_wanted);
    let lines = found.map(|event| {
        let mut attributes = event.labels.clone();
        attributes.insert("name".to_owned(), event.name.clone());
        let shown = json!({
            "Type": "container",
            "Action": event.action,
            "Actor": { "ID": event.id, "Attributes": attributes },
            "time": event.at / 1000,
            "timeNano": event.at * 1_000_000,
        });
        format!("{shown}\n")
    });
    lines.collect()
}

/// The processes of a container. In Portainer's container these include its Compose processes (M21).
fn top(world: &World, name: &str) -> Result<Response, EngineError> {
    let container = world.find(name)?;
    if !container.is_running() {
        let text = format!("Container {} is not running", container.id);
        return Err(EngineError::new(409, text));
    }
    let mut commands = vec![container.command.join(" ")];
    if container.runs_portainer() {
        commands.extend(world.compose_processes());
    }
    let lines = (FIRST_PID..)
        .zip(&commands)
        .map(|(pid, command)| json!(["root", pid.to_string(), FIRST_PID.to_string(), command]));
    let shown =
        json!({ "Titles": ["UID", "PID", "PPID", "CMD"], "Processes": lines.collect::<Vec<_>>() });
    Ok(Response::json(200, &shown))
}

fn remove(world: &mut World, name: &str, incoming: &Incoming) -> Result<Response, EngineError> {
    let container = world.find(name)?;
    let id = container.id.clone();
    if container.is_running() && !flag(incoming, "force") {
        let state = &container.state;
        return Err(EngineError::new(
            409,
            format!(
                "You cannot remove a {state} container {id}. Stop the container before attempting removal or \
                 force remove"
            ),
        ));
    }
    let volumes = if flag(incoming, "v") {
        AnonymousVolumes::Remove
    } else {
        AnonymousVolumes::Keep
    };
    world.remove_container(&id, volumes);
    Ok(Response::no_content())
}
