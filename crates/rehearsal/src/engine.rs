//! The Engine API: the part of it that `stacklift` uses.

mod archive;
mod shown;

use serde_json::{Value, json};

pub(super) use self::shown::info;
use self::shown::{API, inspected, listed, network, version};
use super::{
    calls::Call,
    http::{JSON, Response, TEXT},
    request::{Request, decode},
    world::{Refused, World, tagged, texts},
};

/// The process ID on the host of a container's first process.
const FIRST_PID: u32 = 4100;
/// The exit code after SIGTERM.
const TERMINATED: i64 = 143;

/// Responds to a request.
pub(super) fn respond(world: &mut World, request: &Request) -> Response {
    let name = decode(request.segments().get(1).copied().unwrap_or_default());
    let outcome = perform(world, &name, request);
    let refused = |refused: Refused| Response::json(refused.status, &refused);
    let mut response = outcome.unwrap_or_else(refused);
    response.headers.extend([
        ("Api-Version", API.to_owned()),
        ("Ostype", "linux".to_owned()),
        ("Server", format!("Docker/{} (linux)", world.engine_version)),
    ]);
    response
}

/// Performs a call on the object `name`.
fn perform(world: &mut World, name: &str, request: &Request) -> Result<Response, Refused> {
    let query = |key: &str| request.query(key).unwrap_or_default();
    let done = || Ok(Response::no_content());
    let json = |value: &Value| Ok(Response::json(200, value));
    match request.call {
        Call::EnginePing => Ok(Response::new(200, TEXT, "OK")),
        Call::EngineVersion => json(&version(world)),
        Call::EngineInfo => json(&info(world, &world.engine)),
        Call::EngineEvents => Ok(Response::new(200, JSON, events(world, request))),
        Call::EngineList => json(&list(world, request)),
        Call::EngineInspect => {
            let container = world.find(name)?;
            let mut shown = inspected(world, container);
            if query("size") == "1" {
                let sizes = container.files.values().map(Vec::len);
                shown["SizeRw"] = json!(sizes.sum::<usize>());
            }
            json(&shown)
        }
        Call::EngineRemove => remove(world, name, request),
        Call::EngineChanges => {
            let files = world.find(name)?.files.keys();
            let added: Vec<_> = files
                .map(|path| json!({ "Path": path, "Kind": 1 }))
                .collect();
            // No changes are `null`.
            json(&json!((!added.is_empty()).then_some(added)))
        }
        Call::EngineArchive => archive::read(world.find(name)?, &query("path")),
        Call::EngineUnpack => archive::unpack(world.find_mut(name)?, &request.body),
        Call::EngineTop => top(world, name),
        Call::EngineCreate => {
            let id = world.create_container(&query("name"), &body(request)?)?;
            Ok(Response::json(201, &json!({ "Id": id, "Warnings": [] })))
        }
        Call::EngineStart => world.start_container(name).and_then(|()| done()),
        Call::EngineStop => world.stop_container(name, TERMINATED).and_then(|()| done()),
        Call::EngineNetworks if name.is_empty() => {
            let wanted = labels(request);
            let found = world
                .networks
                .iter()
                .filter(|network| wanted(&network["Labels"]));
            json(&found.map(|found| network(world, found)).collect())
        }
        Call::EngineNetworks => json(&network(world, world.network(name)?)),
        Call::EngineNetworkCreate => {
            let id = world.create_network(&body(request)?)?;
            Ok(Response::json(201, &json!({ "Id": id, "Warning": "" })))
        }
        Call::EngineNetworkRemove => world.remove_network(name).and_then(|()| done()),
        Call::EngineConnect => {
            let body = body(request)?;
            let container = body["Container"].as_str().unwrap_or_default();
            world.connect(name, container, &body["EndpointConfig"])?;
            Ok(Response::new(200, TEXT, ""))
        }
        Call::EngineVolumes if name.is_empty() => {
            let wanted = labels(request);
            let all = world.volumes.iter();
            let found = all
                .filter(|volume| wanted(&volume["Labels"]))
                .collect::<Vec<_>>();
            json(&json!({ "Volumes": found, "Warnings": null }))
        }
        Call::EngineVolumes => {
            let missing = || Refused::new(404, format!("get {name}: no such volume"));
            json(&json!(world.volume(name).ok_or_else(missing)?))
        }
        Call::EngineVolumeCreate => {
            let volume = world.create_volume(&body(request)?);
            Ok(Response::json(201, volume))
        }
        Call::EngineImages => {
            let missing = || Refused::new(404, format!("No such image: {}", tagged(name)));
            json(&json!(world.image(name).ok_or_else(missing)?))
        }
        _ => Err(Refused::new(404, "page not found".to_owned())),
    }
}

/// The body as JSON. Like the engine, reports invalid JSON as 500.
fn body(request: &Request) -> Result<Value, Refused> {
    serde_json::from_slice(&request.body).map_err(|error| Refused::new(500, error.to_string()))
}

/// The query parameter `filters`: `{"label":["a=b"]}`. A list also has a filter for IDs. There are no other filters.
fn filters(request: &Request) -> Value {
    let given = request.query("filters").unwrap_or_default();
    serde_json::from_str(&given).unwrap_or_default()
}

/// The filter for labels.
fn labels(request: &Request) -> impl Fn(&Value) -> bool {
    let wanted = texts(&filters(request)["label"]);
    move |labels| {
        wanted.iter().all(|label| {
            let (name, value) = label.split_once('=').unwrap_or((label, ""));
            let found = labels.get(name);
            found.is_some_and(|found| value.is_empty() || *found == value)
        })
    }
}

fn flag(request: &Request, name: &str) -> bool {
    matches!(request.query(name).as_deref(), Some("1" | "true"))
}

pub(super) fn list(world: &World, request: &Request) -> Value {
    let (all, wanted) = (flag(request, "all"), labels(request));
    let ids = texts(&filters(request)["id"]);
    let mut found = world.containers.values().collect::<Vec<_>>();
    found.retain(|container| (all || container.is_running()) && wanted(&json!(container.labels)));
    found.retain(|container| ids.is_empty() || ids.contains(&container.id));
    // The engine lists the newest first.
    found.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
    found
        .into_iter()
        .map(|container| listed(world, container))
        .collect()
}

/// The events of containers so far, between `since` and `until`. A real engine also sends those until `until` as they
/// happen.
fn events(world: &World, request: &Request) -> String {
    // A time in seconds with a fraction.
    let time = |name: &str| {
        let text = request.query(name)?;
        let (seconds, fraction) = text.split_once('.')?;
        let millis = format!("{seconds}{}", fraction.get(..3)?);
        millis.parse::<i64>().ok()
    };
    let (since, until) = (
        time("since").unwrap_or(0),
        time("until").unwrap_or(i64::MAX),
    );
    let wanted = labels(request);
    let found = world.events.iter().filter(|event| {
        let at = event["timeNano"].as_i64().unwrap_or_default() / 1_000_000;
        let is_between = world.stands_still || (since..=until).contains(&at);
        is_between && wanted(&event["Actor"]["Attributes"])
    });
    let lines = found.map(|event| format!("{event}\n"));
    lines.collect()
}

/// The processes of a container. In Portainer's container these include its Compose processes (M21).
fn top(world: &World, name: &str) -> Result<Response, Refused> {
    let container = world.find(name)?;
    if !container.is_running() {
        let text = format!("Container {} is not running", container.id);
        return Err(Refused::new(409, text));
    }
    let mut commands = vec![container.command.join(" ")];
    if container.runs_portainer() {
        commands.extend(world.processes.iter().cloned());
    }
    let lines = (FIRST_PID..)
        .zip(&commands)
        .map(|(pid, command)| json!(["root", pid.to_string(), FIRST_PID.to_string(), command]));
    let shown =
        json!({ "Titles": ["UID", "PID", "PPID", "CMD"], "Processes": lines.collect::<Vec<_>>() });
    Ok(Response::json(200, &shown))
}

fn remove(world: &mut World, name: &str, request: &Request) -> Result<Response, Refused> {
    let container = world.find(name)?;
    let id = container.id.clone();
    if container.is_running() && !flag(request, "force") {
        let state = &container.state;
        return Err(Refused::new(
            409,
            format!(
                "You cannot remove a {state} container {id}. Stop the container before attempting removal or \
                 force remove"
            ),
        ));
    }
    world.remove_container(&id, flag(request, "v"));
    Ok(Response::no_content())
}
