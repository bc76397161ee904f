//! `/containers`

use serde_json::{Value, json};

use super::{body, filters, filters::Filters, flag, no_page, ok, shapes::container as shapes};
use crate::{
    http::{Answer, Incoming},
    world::{Effect, Problem, Volumes, World},
};

/// What a container ends with that is killed, and one that is asked to stop.
const KILLED: i64 = 137;
const TERMINATED: i64 = 143;

pub(super) fn route(
    world: &mut World,
    engine: &str,
    parts: &[&str],
    incoming: &Incoming,
) -> Result<Answer, Problem> {
    let id = |world: &World, name: &str| world.find_on(engine, name).map(|one| one.id.clone());
    Ok(match (incoming.method.as_str(), parts) {
        ("GET", ["json"]) => ok(&list(world, engine, incoming, &filters(incoming)?)),
        ("POST", ["create"]) => {
            let name = incoming.query("name");
            let id = world.create_container(engine, name.as_deref(), &body(incoming)?)?;
            Answer::json(201, &json!({ "Id": id, "Warnings": [] }))
        }
        ("GET", [name, "json"]) => ok(&shapes::inspected(world, world.find_on(engine, name)?)),
        ("GET", [name, "changes"]) => changes(world, engine, name)?,
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
            world.start_container(&id).map_err(|problem| {
                let text = format!("Cannot restart container {name}: {}", problem.message);
                Problem::new(500, text)
            })?;
            Answer::no_content()
        }
        ("POST", [name, "kill"]) => kill(world, engine, name, incoming)?,
        ("POST", [name, way @ ("pause" | "unpause")]) => {
            let id = id(world, name)?;
            world.pause_container(&id, *way == "pause")?;
            Answer::no_content()
        }
        ("POST", [name, "rename"]) => {
            let id = id(world, name)?;
            world.rename_container(&id, &incoming.query("name").unwrap_or_default())?;
            Answer::no_content()
        }
        ("POST", [name, "wait"]) => {
            // At once: nothing here ends by itself.
            let container = world.find_on(engine, name)?;
            let mut end = json!({ "Error": null, "StatusCode": container.exit_code });
            if !container.error.is_empty() {
                end["Error"] = json!({ "Message": container.error });
            }
            ok(&end)
        }
        ("DELETE", [name]) => remove(world, engine, name, incoming)?,
        _ => return Err(no_page()),
    })
}

fn done(effect: Effect) -> Answer {
    let mut answer = Answer::no_content();
    if effect == Effect::Already {
        answer.status = 304;
    }
    answer
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

/// What the engine's diff says; nothing is `null`.
fn changes(world: &World, engine: &str, name: &str) -> Result<Answer, Problem> {
    let container = world.find_on(engine, name)?;
    let shown = container.changes.iter();
    let shown = shown.map(|change| json!({ "Path": change.path, "Kind": change.kind }));
    let shown = shown.collect::<Vec<_>>();
    Ok(ok(&if shown.is_empty() {
        Value::Null
    } else {
        Value::Array(shown)
    }))
}

fn kill(
    world: &mut World,
    engine: &str,
    name: &str,
    incoming: &Incoming,
) -> Result<Answer, Problem> {
    let cannot = |status: u16, why: &str| {
        Problem::new(status, format!("Cannot kill container: {name}: {why}"))
    };
    let found = world.find_on(engine, name);
    let container = found.map_err(|problem| cannot(problem.status, &problem.message))?;
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
    Ok(Answer::no_content())
}

fn remove(
    world: &mut World,
    engine: &str,
    name: &str,
    incoming: &Incoming,
) -> Result<Answer, Problem> {
    let container = world.find_on(engine, name)?;
    if container.is_running() && !flag(incoming, "force") {
        let first = if container.state == "paused" {
            "Unpause and then stop"
        } else {
            "Stop"
        };
        return Err(Problem::new(
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
        Volumes::Removed
    } else {
        Volumes::Kept
    };
    world.remove_container(&id, volumes);
    Ok(Answer::no_content())
}
