//! Portainer's API, written from recorded exchanges with 2.23.0 (M01–M20) and from N01–N03.

mod shown;

use chrono::DateTime;
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::shown::{control, control_of};
use super::{
    apis::Apis,
    calls::Call,
    engine,
    http::{Response, TEXT},
    request::Request,
    world::{ApiKey, Era, Kind, Record, Refused, Work, World},
};

/// Performs a change. The result is the ID of the stack.
pub type Perform<'p> = &'p dyn Fn(Work) -> Result<u64, Refused>;

/// Responds to a request. Git, other users, teams and their rights are not simulated.
pub(super) fn respond(apis: &Apis, request: &Request, perform: Perform) -> Response {
    answered(apis, request, || match request.call {
        Call::Status => Ok(status(&apis.world())),
        Call::Create | Call::Update | Call::Delete => {
            change(apis, request, |world| prepared(world, request), perform)
        }
        _ => read(&mut apis.world(), request),
    })
}

/// The response of Portainer with this outcome.
pub fn answered(
    apis: &Apis,
    request: &Request,
    outcome: impl FnOnce() -> Result<Response, Refused>,
) -> Response {
    let has_both = ["x-api-key", "authorization"]
        .iter()
        .all(|name| request.header(name).is_some());
    let outcome = if has_both {
        // N21
        let message = "api key and auth header are not allowed at the same time";
        let details = "Api key and auth header are not allowed at the same time";
        Err(Refused::with_details(403, message, details))
    } else {
        outcome()
    };
    let refused = |refused: Refused| Response::json(refused.status, &refused);
    let mut response = outcome.unwrap_or_else(refused);
    let now = DateTime::from_timestamp_millis(apis.world().now).unwrap_or_default();
    let date = now.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    response.headers.push(("Date", date));
    response
}

/// Changes a stack.
///
/// # Errors
/// The error response.
pub fn change(
    apis: &Apis,
    request: &Request,
    prepare: impl FnOnce(&mut World) -> Result<Work, Refused>,
    perform: Perform,
) -> Result<Response, Refused> {
    let work = prepare(&mut apis.world())?;
    let kind = work.kind;
    let id = perform(work)?;
    if kind == Kind::Delete {
        return Ok(Response::no_content());
    }
    // The recorded response to a PUT has `null` for the resource control.
    shown(&apis.world(), id, request.method == "POST")
}

/// The checked change of a create, update or delete.
fn prepared(world: &mut World, request: &Request) -> Result<Work, Refused> {
    let (call, key) = (request.call, key(world, request)?.clone());
    let given = number(request, "endpointId")?;
    if call == Call::Delete {
        let id = managed(world, &key, id_of(request), "stack deletion")?.id;
        // The default is 0, which no environment has (M03).
        return world.prepare(id, Some(given.unwrap_or(0)), Kind::Delete);
    }
    let id = if call == Call::Update {
        Some(managed(world, &key, id_of(request), "Stack editing")?.id)
    } else {
        check_create(world, &key, given)?;
        None
    };
    let sent = payload::<Value>(request)?;
    let [name, content] = ["name", "stackFileContent"].map(|key| sent[key].as_str());
    let [name, content] = [name, content].map(Option::unwrap_or_default);
    if id.is_none() && name.is_empty() {
        return Err(Refused::invalid("Invalid stack name"));
    }
    if content.is_empty() {
        return Err(Refused::invalid("Invalid stack file content"));
    }
    let mut work = match id {
        Some(id) => world.prepare(id, given, Kind::Update)?,
        None => world.prepare_create(given.unwrap_or_default(), name, &key.user)?,
    };
    content.clone_into(&mut work.record.text);
    work.record.env = serde_json::from_value(sent["env"].clone()).unwrap_or_default();
    if id.is_some() {
        if world.era == Era::Async {
            work.record.prune = Some(sent["prune"] == true);
        }
        work.record.updated_by = key.user;
    }
    Ok(work)
}

/// Fails if the user may not create a stack on the environment. Returns its ID.
///
/// # Errors
/// The error response.
pub fn check_create(world: &World, key: &ApiKey, endpoint: Option<u64>) -> Result<u64, Refused> {
    let endpoint = endpoint.ok_or_else(missing_endpoint)?;
    world.check_access(endpoint, key)?;
    world.check_stacks(endpoint, key, "Stack creation")?;
    Ok(endpoint)
}

/// Responds to a request that creates, updates and deletes nothing.
fn read(world: &mut World, request: &Request) -> Result<Response, Refused> {
    let key = key(world, request)?.clone();
    let id = id_of(request);
    let number = id.parse().unwrap_or(0);
    let json = |value: &Value| Ok(Response::json(200, value));
    match request.call {
        Call::Endpoints if id.is_empty() => {
            let all = world.endpoints.iter();
            let seen = all.filter(|(id, _)| world.check_access(**id, &key).is_ok());
            let shown = seen.map(|(id, one)| shown::environment(*id, one));
            json(&shown.collect())
        }
        Call::Endpoints => {
            world.check_access(number, &key)?;
            json(&shown::environment(number, &world.endpoints[&number]))
        }
        Call::Me => {
            let at = world.keys.iter().position(|other| *other == key);
            let id = at.map_or(0, |at| at + 1);
            json(
                &json!({ "Id": id, "Username": key.user, "Role": if key.is_admin { 1 } else { 2 } }),
            )
        }
        Call::Containers => {
            world.check_access(number, &key)?;
            json(&containers(world, number, request))
        }
        // Passed on to the engine of the environment (M17).
        Call::Info => {
            world.check_access(number, &key)?;
            let engine = &world.endpoints[&number].engine;
            json(&engine::info(world, engine))
        }
        Call::List => {
            let wanted = filter(request)?;
            let all = world.records.values();
            let all = all.filter(|record| wanted.is_none_or(|id| record.endpoint == id));
            let seen = all.filter(|record| may_see(&key, record));
            if seen.clone().any(|record| record.lost_workflow) {
                return Err(lost_workflow());
            }
            let shown = seen.map(|record| shown::record(record, world.era, true));
            json(&shown.collect())
        }
        Call::Get => {
            let id = managed(world, &key, id, "Stack management")?.id;
            world.poll(id);
            shown(world, id, true)
        }
        Call::File => {
            let text = &managed(world, &key, id, "Stack management")?.text;
            json(&json!({ "StackFileContent": text }))
        }
        _ => Ok(Response::new(404, TEXT, "404 page not found\n")),
    }
}

/// The environment in the filter of a list.
fn filter(request: &Request) -> Result<Option<u64>, Refused> {
    let given = request.query("filters");
    let filters = given.map(|text| serde_json::from_str::<Value>(&text));
    let filters = filters.transpose();
    let filters = filters.map_err(|error| invalid_query("filters", &error.to_string()))?;
    Ok(filters.and_then(|filters| filters["EndpointID"].as_u64()))
}

fn lost_workflow() -> Refused {
    let details = "object not found inside the database";
    Refused::with_details(500, "Unable to load git config for stack", details)
}

/// The containers of an environment, as its engine lists them, each with the access rights of its stack (M23).
fn containers(world: &World, endpoint: u64, request: &Request) -> Value {
    if !world.is_here(endpoint) {
        return json!([]);
    }
    let mut list = engine::list(world, request);
    let project = format!("com.{}.compose.project", world.tool);
    for container in list.as_array_mut().into_iter().flatten() {
        let is_of = |record: &&Record| {
            record.endpoint == endpoint && container["Labels"][&project] == record.name
        };
        if let Some(record) = world.records.values().find(is_of) {
            container["Portainer"] = json!({ "ResourceControl": shown::control_of(record) });
        }
    }
    list
}

/// The body of a request.
///
/// # Errors
/// The error response.
pub fn payload<'b, T: Deserialize<'b>>(request: &'b Request) -> Result<T, Refused> {
    serde_json::from_slice(&request.body).map_err(|error| {
        let details = if error.is_eof() {
            "Unexpected EOF".to_owned()
        } else {
            error.to_string()
        };
        Refused::with_details(400, "Invalid request payload", &details)
    })
}

/// A number in the query.
///
/// # Errors
/// The error response.
pub fn number(request: &Request, name: &str) -> Result<Option<u64>, Refused> {
    let number = request.query(name).map(|text| text.parse()).transpose();
    number.map_err(|_| invalid_query(name, "Invalid query parameter"))
}

/// The error response to a request without an environment.
pub fn missing_endpoint() -> Refused {
    invalid_query("endpointId", "Missing query parameter")
}

fn invalid_query(name: &str, details: &str) -> Refused {
    let message = format!("Invalid query parameter: {name}");
    Refused::with_details(400, &message, details)
}

/// The ID in the path `/api/stacks/<id>` or `/api/endpoints/<id>`.
pub fn id_of(request: &Request) -> &str {
    request.segments().get(2).copied().unwrap_or_default()
}

/// The API key of a request.
///
/// # Errors
/// The error response.
pub fn key<'w>(world: &'w World, request: &Request) -> Result<&'w ApiKey, Refused> {
    let refused = |message: &str| Refused::with_details(401, message, "Unauthorized");
    let given = request.header("x-api-key").unwrap_or_default();
    if given.is_empty() {
        return Err(refused("A valid authorization token is missing"));
    }
    let known = world.keys.iter().find(|key| key.secret == given);
    known.ok_or_else(|| refused("Invalid JWT token"))
}

fn status(world: &World) -> Response {
    let version = match world.era {
        Era::Sync => "2.23.0",
        Era::Library => "2.39.1",
        Era::Async => "2.45.0",
    };
    let instance = "5a1f7c0e-6f2b-4d0e-9a53-2f6f0c1d7b11";
    Response::json(200, &json!({ "Version": version, "InstanceID": instance }))
}

/// The stack with that ID, if the user may see it and may manage stacks on its environment (M22).
pub fn managed<'w>(
    world: &'w World,
    key: &ApiKey,
    id: &str,
    action: &str,
) -> Result<&'w Record, Refused> {
    let found = id.parse().ok().and_then(|id: u64| world.records.get(&id));
    let record = found.ok_or_else(|| Refused::no_record(id))?;
    if record.lost_workflow {
        return Err(lost_workflow());
    }
    if !may_see(key, record) {
        return Err(Refused::same(403, "Access denied to resource"));
    }
    world.check_stacks(record.endpoint, key, action)?;
    Ok(record)
}

/// Whether a user may see a stack.
pub fn may_see(key: &ApiKey, record: &Record) -> bool {
    key.is_admin || record.control.public || record.created_by == key.user
}

/// A stack, with or without its access rights.
///
/// # Errors
/// If there is none with that ID.
pub fn shown(world: &World, id: u64, with_control: bool) -> Result<Response, Refused> {
    let shown = shown::record(world.record(id)?, world.era, with_control);
    Ok(Response::json(200, &shown))
}
