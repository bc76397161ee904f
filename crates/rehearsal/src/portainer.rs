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
    world::{ADMIN, Era, Kind, Refused, Work, World},
};

/// Performs a change. The result is the ID of the stack.
pub type Perform<'p> = &'p dyn Fn(Work) -> Result<u64, Refused>;

/// Responds to a request. Git, other users, teams and their rights are not simulated.
pub(super) fn respond(apis: &Apis, request: &Request, perform: Perform) -> Response {
    let outcome = match request.call {
        Call::Status => Ok(status(&apis.world())),
        Call::Create | Call::Update | Call::Delete => {
            change(apis, request, |world| prepared(world, request), perform)
        }
        _ => read(&mut apis.world(), request),
    };
    answered(apis, outcome)
}

/// The response of Portainer with this outcome.
pub fn answered(apis: &Apis, outcome: Result<Response, Refused>) -> Response {
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
    check_key(world, request)?;
    let given = number(request, "endpointId")?;
    if request.call == Call::Delete {
        let id = world.record_of(id_of(request))?.id;
        // The default is 0, which no environment has (M03).
        return world.prepare(id, Some(given.unwrap_or(0)), Kind::Delete);
    }
    let id = if request.call == Call::Update {
        Some(world.record_of(id_of(request))?.id)
    } else {
        endpoint_of_create(world, request)?;
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
        None => world.prepare_create(given.unwrap_or_default(), name)?,
    };
    content.clone_into(&mut work.record.text);
    work.record.env = serde_json::from_value(sent["env"].clone()).unwrap_or_default();
    if id.is_some() {
        if world.era == Era::Async {
            work.record.prune = Some(sent["prune"] == true);
        }
        ADMIN.clone_into(&mut work.record.updated_by);
    }
    Ok(work)
}

/// The ID of the environment on which a request creates a stack.
///
/// # Errors
/// The error response.
pub fn endpoint_of_create(world: &World, request: &Request) -> Result<u64, Refused> {
    let endpoint = number(request, "endpointId")?.ok_or_else(missing_endpoint)?;
    world.endpoint(endpoint).map(|_| endpoint)
}

/// Responds to a request that creates, updates and deletes nothing.
fn read(world: &mut World, request: &Request) -> Result<Response, Refused> {
    check_key(world, request)?;
    let id = id_of(request);
    let number = id.parse().unwrap_or(0);
    let json = |value: &Value| Ok(Response::json(200, value));
    match request.call {
        Call::Endpoints if id.is_empty() => {
            let all = world.endpoints.iter();
            let shown = all.map(|(id, one)| shown::environment(*id, one));
            json(&shown.collect())
        }
        Call::Endpoints => json(&shown::environment(number, world.endpoint(number)?)),
        Call::Me => json(&json!({ "Id": 1, "Username": ADMIN, "Role": 1 })),
        Call::Containers => {
            world.endpoint(number)?;
            let is_here = world.is_here(number);
            json(&if is_here {
                engine::list(world, request)
            } else {
                json!([])
            })
        }
        // Passed on to the engine of the environment (M17).
        Call::Info => json(&engine::info(world, &world.endpoint(number)?.engine)),
        Call::List => {
            let all = world.records.values();
            let shown = all.map(|record| shown::record(record, world.era, true));
            json(&shown.collect())
        }
        Call::Get => {
            let id = world.record_of(id)?.id;
            world.poll(id);
            shown(world, id, true)
        }
        Call::File => json(&json!({ "StackFileContent": world.record_of(id)?.text })),
        _ => Ok(Response::new(404, TEXT, "404 page not found\n")),
    }
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

/// Fails unless a request has the API key of the administrator.
///
/// # Errors
/// The error response.
pub fn check_key(world: &World, request: &Request) -> Result<(), Refused> {
    let message = match request.header("x-api-key") {
        None | Some("") => "A valid authorization token is missing",
        Some(given) if given == world.secret => return Ok(()),
        Some(_) => "Invalid JWT token",
    };
    Err(Refused::with_details(401, message, "Unauthorized"))
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

/// A stack, with or without its access rights.
///
/// # Errors
/// If there is none with that ID.
pub fn shown(world: &World, id: u64, with_control: bool) -> Result<Response, Refused> {
    let shown = shown::record(world.record(id)?, world.era, with_control);
    Ok(Response::json(200, &shown))
}
