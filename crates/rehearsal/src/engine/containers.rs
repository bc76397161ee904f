//! `/containers`

use serde_json::{Value, json};

use super::{
    archive,
    filters::Filters,
    input::{body, filters, flag},
    shapes::container as shapes,
};
use crate::{
    http::{Incoming, Response},
    world::{AnonymousVolumes, Effect, EngineError, World},
};

/// The exit code after SIGKILL.
const KILLED: i64 = 137;
/// The process ID on the host of a container's first process.
const FIRST_PID: u32 = 4100;
/// The exit code after SIGTERM.
const TERMINATED: i64 = 143;

pub(super) fn route(
    world: &mut World,
    engine: &str,
    parts: &[&str],
    incoming: &Incoming,
) -> Result<Response, EngineError> {
    let id = |world: &World, name: &str| world.find_on(engine, name).map(|one| one.id.clone());
    Ok(match (incoming.method.as_str(), parts) {
        ("GET", ["json"]) => Response::ok(&list(world, engine, incoming, &filters(incoming)?)),
        ("POST", ["create"]) => {
            let name = incoming.query("name");
            let id = world.create_container(engine, name.as_deref(), &body(incoming)?)?;
            Response::json(201, &json!({ "Id": id, "Warnings": [] }))
        }
        ("GET", [name, "json"]) => {
            Response::ok(&shapes::inspected(world, world.find_on(engine, name)?))
        }
        ("GET", [name, "top"]) => top(world, engine, name)?,
        ("GET", [name, "changes"]) => changes(world, engine, name)?,
        ("GET", [name, "archive"]) => {
            let path = incoming.query("path").unwrap_or_default();
            archive::read(world.find_on(engine, name)?, &path)?
        }
        ("PUT", [name, "archive"]) => {
            let id = id(world, name)?;
            archive::unpack(world, &id, &incoming.body)?
        }
        ("POST", [name, "start"]) => {
            let id = id(world, name)?;
            done(world.start_container(&id)?)
        }
        ("POST", [name, "stop"]) => {
            let id = id(world, name)?;
            done(world.stop_container(&id, TERMINATED)?)
        }
        ("POST", [name, "restart"]) => {
            let id = id(world, name)?;
            world.stop_container(&id, TERMINATED)?;
            world.start_container(&id).map_err(|error| {
                let text = format!("Cannot restart container {name}: {}", error.message);
                EngineError::new(500, text)
            })?;
            Response::no_content()
        }
        ("POST", [name, "kill"]) => kill(world, engine, name, incoming)?,
        ("POST", [name, way @ ("pause" | "unpause")]) => {
            let id = id(world, name)?;
            world.pause_container(&id, *way == "pause")?;
            Response::no_content()
        }
        ("POST", [name, "rename"]) => {
            let id = id(world, name)?;
            world.rename_container(&id, &incoming.query("name").unwrap_or_default())?;
            Response::no_content()
        }
        ("POST", [name, "wait"]) => {
            // Responds immediately: no container exits on its own.
            let container = world.find_on(engine, name)?;
            let mut end = json!({ "Error": null, "StatusCode": container.exit_code });
            if !container.error.is_empty() {
                end["Error"] = json!({ "Message": container.error });
            }
            Response::ok(&end)
        }
        ("DELETE", [name]) => remove(world, engine, name, incoming)?,
        _ => return Err(EngineError::no_page()),
    })
}

fn done(effect: Effect) -> Response {
    let mut response = Response::no_content();
    if effect == Effect::Unchanged {
        response.status = 304;
    }
    response
}

fn list(world: &World, engine: &str, incoming: &Incoming, filters: &Filters) -> Value {
    let all = flag(incoming, "all") || filters.names("status") || filters.names("exited");
    let mut found = world
        .containers
        .values()
        .filter(|container| container.engine == engine)
        .filter(|container| all || container.is_running())
        .filter(|container| filters.matches(container))
        .collect::<Vec<_>>();
    // The engine lists the newest first.
    found.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
    if let Some(limit) = incoming.query("limit").and_then(|limit| limit.parse().ok()) {
        found.truncate(limit);
    }
    found
        .into_iter()
        .map(|container| shapes::listed(world, container))
        .collect()
}

/// The changed paths; `null` if there are none.
fn changes(world: &World, engine: &str, name: &str) -> Result<Response, EngineError> {
    let container = world.find_on(engine, name)?;
    let shown = container.changes.iter();
    let shown = shown.map(|change| json!({ "Path": change.path, "Kind": change.kind }));
    let shown = shown.collect::<Vec<_>>();
    Ok(Response::ok(&if shown.is_empty() {
        Value::Null
    } else {
        Value::Array(shown)
    }))
}

/// The processes of a container. In Portainer's container these include its Compose processes (M21).
fn top(world: &World, engine: &str, name: &str) -> Result<Response, EngineError> {
    let container = world.find_on(engine, name)?;
    if !container.is_running() {
        let text = format!("Container {} is not running", container.id);
        return Err(EngineError::new(409, text));
    }
    let mut commands = vec![container.command.join(" ")];
    if container.runs_portainer() {
        commands.extend(world.compose_processes());
    }
    let numbered = (FIRST_PID..).zip(&commands);
    let processes = numbered.map(|(pid, command)| {
        let (pid, parent) = (pid.to_string(), FIRST_PID.to_string());
        json!(["root", pid, parent, "0", "12:00", "?", "00:00:00", command])
    });
    let titles = ["UID", "PID", "PPID", "C", "STIME", "TTY", "TIME", "CMD"];
    let processes = processes.collect::<Vec<_>>();
    Ok(Response::ok(
        &json!({ "Titles": titles, "Processes": processes }),
    ))
}

fn kill(
    world: &mut World,
    engine: &str,
    name: &str,
    incoming: &Incoming,
) -> Result<Response, EngineError> {
    let cannot = |status: u16, why: &str| {
        EngineError::new(status, format!("Cannot kill container: {name}: {why}"))
    };
    let found = world.find_on(engine, name);
    let container = found.map_err(|error| cannot(error.status, &error.message))?;
    let id = container.id.clone();
    if !container.is_running() {
        return Err(cannot(409, &format!("Container {id} is not running")));
    }
    let signal = incoming.query("signal").unwrap_or_default();
    let code = match signal.trim_start_matches("SIG") {
        "" | "KILL" | "9" => Some(KILLED),
        "TERM" | "INT" | "QUIT" | "15" | "2" | "3" => Some(TERMINATED),
        _ => None,
    };
    if let Some(code) = code {
        world.stop_container(&id, code)?;
    }
    Ok(Response::no_content())
}

fn remove(
    world: &mut World,
    engine: &str,
    name: &str,
    incoming: &Incoming,
) -> Result<Response, EngineError> {
    let container = world.find_on(engine, name)?;
    if container.is_running() && !flag(incoming, "force") {
        let first = if container.state == "paused" {
            "Unpause and then stop"
        } else {
            "Stop"
        };
        return Err(EngineError::new(
            409,
            format!(
                "You cannot remove a {} container {}. {first} the container before attempting removal or \
                 force remove",
                container.state, container.id
            ),
        ));
    }
    let id = container.id.clone();
    let volumes = if flag(incoming, "v") {
        AnonymousVolumes::Remove
    } else {
        AnonymousVolumes::Keep
    };
    world.remove_container(&id, volumes);
    Ok(Response::no_content())
}
