//! Portainer's API, written from recorded exchanges with 2.23.0 (M01–M20) and from N01–N03.

mod git;
mod shown;

use std::{sync::Arc, thread};

use chrono::DateTime;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    engine,
    faults::{Call, Peer},
    http::{Incoming, Response, TEXT},
    shared::{Shared, TICK},
    world::{
        Accepted, ApiKey, Ending, Era, Kind, PortainerError, Record, Role, Variable, Work, World,
    },
};

/// Classifies a request.
pub(super) fn call(incoming: &Incoming) -> Call {
    Call::of(Peer::Portainer, &incoming.method, &incoming.segments())
}

/// Whether a request changes a stack. Portainer continues if its client disconnects (M21).
pub(super) fn is_change(call: Call) -> bool {
    matches!(
        call,
        Call::Create | Call::CreateGit | Call::Redeploy | Call::Update | Call::Delete
    )
}

/// Responds to a request; `None` if the rehearsal ended first.
pub(super) fn respond(
    shared: &Arc<Shared>,
    call: Call,
    incoming: &Incoming,
    ending: Ending,
) -> Option<Response> {
    let outcome = match call {
        // N21
        _ if ["x-api-key", "authorization"]
            .iter()
            .all(|name| incoming.header(name).is_some()) =>
        {
            let message = "api key and auth header are not allowed at the same time";
            let details = "Api key and auth header are not allowed at the same time";
            Err(PortainerError::new(403, message, details))
        }
        Call::Status => Ok(status(&shared.world())),
        Call::Other => Ok(Response::new(404, TEXT, "404 page not found\n")),
        _ if is_change(call) => change(shared, call, incoming, ending)?,
        _ => read(&mut shared.world(), call, incoming),
    };
    let mut response = outcome.unwrap_or_else(|error| {
        let body = json!({ "message": error.message, "details": error.details });
        Response::json(error.status, &body)
    });
    let now = DateTime::from_timestamp_millis(shared.world().now).unwrap_or_default();
    let date = now.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    response.headers.push(("Date", date));
    Some(response)
}

/// Changes a stack; `None` if the rehearsal ended first.
fn change(
    shared: &Arc<Shared>,
    call: Call,
    incoming: &Incoming,
    ending: Ending,
) -> Option<Result<Response, PortainerError>> {
    let mut world = shared.world();
    let work = match prepared(&mut world, call, incoming) {
        Ok(work) => work,
        Err(error) => return Some(Err(error)),
    };
    let outcome = match &shared.deployer {
        None => {
            let accepted = world.begin(work, ending);
            drop(world);
            if ending.is_unattended {
                return Some(Ok(Response::no_content()));
            }
            ended(shared, accepted)?
        }
        Some(deployer) if world.era == Era::Async && call != Call::Delete => {
            let (id, in_error) = (work.record.id, world.store_deploying(&work));
            drop(world);
            let (shared, deployer) = (Arc::clone(shared), Arc::clone(deployer));
            // In the background (N01).
            thread::spawn(move || {
                let outcome = deployer.deploy(&work, in_error);
                shared.world().end_deployment(id, outcome);
            });
            Ok(id)
        }
        Some(deployer) => {
            drop(world);
            let performed = deployer.perform(&work);
            performed.and_then(|()| shared.world().complete(&work))
        }
    };
    Some(outcome.and_then(|id| match call {
        Call::Delete => Ok(Response::no_content()),
        // The recorded response to a PUT has `null` for the resource control.
        _ => shown(
            &shared.world(),
            id,
            !matches!(call, Call::Update | Call::Redeploy),
        ),
    }))
}

/// Waits until a request has ended; `None` if the rehearsal ended first.
fn ended(shared: &Shared, accepted: Accepted) -> Option<Result<u64, PortainerError>> {
    loop {
        let outcome = shared.world().take_outcome(accepted);
        if outcome.is_some() {
            return outcome;
        }
        if shared.pause(TICK) {
            return None;
        }
    }
}

/// What a create, an update or a new deployment of a Git stack contains. Each has some of the fields.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Payload {
    name: String,
    stack_file_content: String,
    env: Option<Vec<Variable>>,
    prune: bool,
    #[serde(rename = "repositoryURL")]
    url: String,
    repository_reference_name: String,
    compose_file: String,
    additional_files: Option<Vec<String>>,
    auto_update: Option<Value>,
    repository_authentication: bool,
    repository_username: String,
    repository_password: String,
    #[serde(rename = "tlsskipVerify")]
    skips_tls: bool,
}

/// The checked change of a create, update or delete.
fn prepared(world: &mut World, call: Call, incoming: &Incoming) -> Result<Work, PortainerError> {
    let key = key(world, incoming)?.clone();
    let given = number(incoming, "endpointId")?;
    if call == Call::Delete {
        let id = managed(world, &key, id_of(incoming), "stack deletion")?.id;
        // The default is 0, which no environment has (M03).
        return world.prepare(id, Some(given.unwrap_or(0)), Kind::Delete);
    }
    let id = if matches!(call, Call::Update | Call::Redeploy) {
        Some(managed(world, &key, id_of(incoming), "Stack editing")?.id)
    } else {
        let endpoint = given.ok_or_else(missing_endpoint)?;
        world.check_access(endpoint, &key)?;
        world.check_stacks(endpoint, &key, "Stack creation")?;
        None
    };
    if let (Call::Redeploy, Some(id)) = (call, id) {
        return git::redeployed(world, (id, given), &key.user, incoming);
    }
    if call == Call::CreateGit {
        return git::prepared(world, given.unwrap_or_default(), &key.user, incoming);
    }
    let payload = payload::<Payload>(incoming)?;
    if id.is_none() && payload.name.is_empty() {
        return Err(git::invalid("Invalid stack name"));
    }
    if payload.stack_file_content.is_empty() {
        return Err(git::invalid("Invalid stack file content"));
    }
    let mut work = match id {
        Some(id) => world.prepare(id, given, Kind::Update)?,
        None => world.prepare_create(given.unwrap_or_default(), &payload.name, &key.user)?,
    };
    (work.record.text, work.record.env) = (payload.stack_file_content, payload.env);
    if id.is_some() {
        if world.era == Era::Async {
            work.record.prune = Some(payload.prune);
        }
        work.record.updated_by = key.user;
    }
    Ok(work)
}

/// Responds to a request that creates, updates and deletes nothing.
fn read(world: &mut World, call: Call, incoming: &Incoming) -> Result<Response, PortainerError> {
    let key = key(world, incoming)?.clone();
    let id = id_of(incoming);
    let number = id.parse().unwrap_or(0);
    let json = |value: &Value| Ok(Response::json(200, value));
    match call {
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
            let at = world.keys.iter().position(|one| *one == key);
            let id = at.map_or(0, |at| at + 1);
            json(&json!({ "Id": id, "Username": key.user, "Role": key.role as u8 }))
        }
        Call::Users | Call::Unshare if key.role == Role::Standard => Err(denied()),
        Call::Users => {
            let names = world.keys.iter().map(|key| key.user.as_str());
            Ok(numbered(names, "Username"))
        }
        Call::Teams => Ok(numbered(world.teams.iter().map(String::as_str), "Name")),
        Call::Containers => {
            world.check_access(number, &key)?;
            json(&containers(world, number, incoming))
        }
        // Passed on to the engine of the environment (M17).
        Call::Info => {
            world.check_access(number, &key)?;
            let engine = &world.endpoints[&number].engine;
            json(&engine::info(world, engine))
        }
        Call::List => {
            let wanted = filter(incoming)?;
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
        Call::Preview => git::preview(world, incoming),
        Call::Stop => {
            let id = managed(world, &key, id, "stack management")?.id;
            let endpoint = self::number(incoming, "endpointId")?;
            world.stop(id, endpoint.ok_or_else(missing_endpoint)?)?;
            shown(world, id, false)
        }
        Call::Unshare => {
            let count = world.controls.len();
            world.controls.retain(|_, one| one.id != number);
            if world.controls.len() == count {
                return Err(no_control());
            }
            Ok(Response::no_content())
        }
        // The access rights of a stack.
        _ => {
            let given = payload::<Access>(incoming)?;
            let mut all = world.records.values_mut();
            let found = all.find(|record| record.control.id.to_string() == id);
            let record = found.ok_or_else(no_control)?;
            if !may_see(&key, record) {
                return Err(denied());
            }
            let restricted = !given.public && !given.administrators_only;
            let ids = |ids: Vec<u64>| if restricted { ids } else { Vec::new() };
            record.control.public = given.public;
            record.control.users = ids(given.users);
            record.control.teams = ids(given.teams);
            json(&shown::control_of(record))
        }
    }
}

/// The environment in the filter of a list.
fn filter(incoming: &Incoming) -> Result<Option<u64>, PortainerError> {
    #[derive(Deserialize)]
    struct Filters {
        #[serde(rename = "EndpointID")]
        endpoint: u64,
    }
    let given = incoming.query("filters");
    let filters = given.map(|text| serde_json::from_str::<Filters>(&text));
    let wanted = filters.transpose().map_err(|error| {
        PortainerError::new(400, "Invalid query parameter: filters", &error.to_string())
    })?;
    Ok(wanted.map(|filters| filters.endpoint))
}

fn lost_workflow() -> PortainerError {
    let details = "object not found inside the database";
    PortainerError::new(500, "Unable to load git config for stack", details)
}

/// The access rights that a request sets.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Access {
    public: bool,
    administrators_only: bool,
    users: Vec<u64>,
    teams: Vec<u64>,
}

fn no_control() -> PortainerError {
    let message =
        "Unable to find a resource control with the specified identifier inside the database";
    PortainerError::same(404, message)
}

/// The containers of an environment, as its engine lists them, each with its access rights: its own, else those of its
/// stack. Otherwise, the labels become its own (M23).
fn containers(world: &mut World, endpoint: u64, incoming: &Incoming) -> Value {
    if world.has_real_engines {
        let filters = incoming.query("filters").unwrap_or_default();
        let filters = serde_json::from_str::<Value>(&filters).unwrap_or_default();
        let ids = filters["id"].as_array().into_iter().flatten();
        return ids.map(|id| json!({ "Id": id })).collect();
    }
    if !world.is_here(endpoint) {
        return json!([]);
    }
    let mut list = engine::list(world, incoming);
    for one in list.as_array_mut().into_iter().flatten() {
        let id = one["Id"].as_str().unwrap_or_default().to_owned();
        let project = format!("com.{}.compose.project", world.tool);
        let mut records = world.records.values();
        let record =
            records.find(|of| of.endpoint == endpoint && one["Labels"][&project] == of.name);
        let control = match (world.controls.get(&id), record) {
            (Some(control), _) => shown::control(control, &id, 1),
            (None, Some(record)) => shown::control_of(record),
            (None, None) => match world.control_of_labels(&one["Labels"]) {
                Some(control) => {
                    let shown = shown::control(&control, &id, 1);
                    world.controls.insert(id, control);
                    shown
                }
                None => continue,
            },
        };
        one["Portainer"] = json!({ "ResourceControl": control });
    }
    list
}

/// Users or teams, whose ID is their place.
fn numbered<'n>(names: impl Iterator<Item = &'n str>, field: &str) -> Response {
    let all = (1..).zip(names);
    let shown = all.map(|(id, name): (u64, _)| json!({ "Id": id, field: name }));
    Response::json(200, &shown.collect::<Value>())
}

fn payload<'b, T: Deserialize<'b>>(incoming: &'b Incoming) -> Result<T, PortainerError> {
    serde_json::from_slice(&incoming.body).map_err(|error| {
        let details = if error.is_eof() {
            "Unexpected EOF".to_owned()
        } else {
            error.to_string()
        };
        PortainerError::new(400, "Invalid request payload", &details)
    })
}

fn number(incoming: &Incoming, name: &str) -> Result<Option<u64>, PortainerError> {
    let number = incoming.query(name).map(|text| text.parse());
    number.transpose().map_err(|_| {
        let message = format!("Invalid query parameter: {name}");
        PortainerError::new(400, &message, "Invalid query parameter")
    })
}

fn missing_endpoint() -> PortainerError {
    let message = "Invalid query parameter: endpointId";
    PortainerError::new(400, message, "Missing query parameter")
}

fn denied() -> PortainerError {
    PortainerError::same(403, "Access denied to resource")
}

/// The ID in the path `/api/stacks/<id>` or `/api/endpoints/<id>`.
fn id_of(incoming: &Incoming) -> &str {
    incoming.segments().get(2).copied().unwrap_or_default()
}

fn key<'w>(world: &'w World, incoming: &Incoming) -> Result<&'w ApiKey, PortainerError> {
    let refused = |message: &str| PortainerError::new(401, message, "Unauthorized");
    let given = incoming.header("x-api-key").unwrap_or_default();
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
fn managed<'w>(
    world: &'w World,
    key: &ApiKey,
    id: &str,
    action: &str,
) -> Result<&'w Record, PortainerError> {
    let found = id.parse().ok().and_then(|id: u64| world.records.get(&id));
    let record = found.ok_or_else(|| PortainerError::no_record(id))?;
    if record.lost_workflow {
        return Err(lost_workflow());
    }
    if !may_see(key, record) {
        return Err(denied());
    }
    world.check_stacks(record.endpoint, key, action)?;
    Ok(record)
}

fn may_see(key: &ApiKey, record: &Record) -> bool {
    key.role == Role::Administrator || record.control.public || record.created_by == key.user
}

fn shown(world: &World, id: u64, with_control: bool) -> Result<Response, PortainerError> {
    let missing = || PortainerError::no_record(&id.to_string());
    let record = world.records.get(&id).ok_or_else(missing)?;
    let shown = shown::record(record, world.era, with_control);
    Ok(Response::json(200, &shown))
}
