//! Portainer's API, written from recorded exchanges with 2.23.0 (M01–M20) and from N01–N03.

mod payload;
mod shapes;

use std::{sync::Arc, thread};

use chrono::DateTime;
use serde_json::{Value, json};

use self::{
    payload::{
        AccessPayload, CreatePayload, UpdatePayload, missing_endpoint, number, payload, variables,
    },
    shapes::{control_json, record_json},
};
use super::{
    engine,
    faults::Call,
    http::{Body, Incoming, Response, segments},
    shared::{Shared, TICK},
    world::{
        Accepted, ApiKey, Ending, Era, NamedVolumes, PortainerError, Record, Role, Update, Work,
        World,
    },
};

/// The number of stacks in one chunk of a list.
const PER_CHUNK: usize = 64;
/// Portainer sends longer lists in chunks. In bytes.
const LONGEST_WHOLE: usize = 2048;

/// Classifies a request.
pub(super) fn call(incoming: &Incoming) -> Call {
    match (
        incoming.method.as_str(),
        segments(incoming.path()).as_slice(),
    ) {
        ("GET", ["api", "system", "status"] | ["api", "status"]) => Call::Status,
        ("GET", ["api", "endpoints"] | ["api", "endpoints", _]) => Call::Endpoints,
        ("GET", ["api", "users", "me"]) => Call::Me,
        (_, ["api", "endpoints", _, "docker", ..]) => Call::Info,
        ("GET", ["api", "stacks"]) => Call::List,
        ("GET", ["api", "stacks", _]) => Call::Get,
        ("GET", ["api", "stacks", _, "file"]) => Call::File,
        ("POST", ["api", "stacks", "create", "standalone", "string"]) => Call::Create,
        ("PUT", ["api", "stacks", _]) => Call::Update,
        ("DELETE", ["api", "stacks", _]) => Call::Delete,
        ("POST", ["api", "stacks", _, "stop"]) => Call::Stop,
        ("POST", ["api", "stacks", _, "start"]) => Call::Start,
        ("PUT", ["api", "resource_controls", _]) => Call::Access,
        _ => Call::Other,
    }
}

/// Whether a request changes a stack. Portainer continues if its client disconnects (M21).
pub(super) fn is_change(call: Call) -> bool {
    matches!(call, Call::Create | Call::Update | Call::Delete)
}

/// Responds to a request; `None` if the rehearsal ended first.
pub(super) fn respond(
    shared: &Arc<Shared>,
    call: Call,
    incoming: &Incoming,
    ending: Ending,
) -> Option<Response> {
    let outcome = match call {
        Call::Status => Ok(status(&shared.world())),
        Call::Other => Ok(Response::new(
            404,
            "text/plain; charset=utf-8",
            "404 page not found\n",
        )),
        _ if is_change(call) => change(shared, call, incoming, ending)?,
        _ => authenticated(shared, call, incoming),
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
    let outcome = if shared.deployer.is_some() {
        if world.era == Era::Async && call != Call::Delete {
            let in_error = world.store_deploying(&work);
            let id = work.id();
            drop(world);
            let shared = Arc::clone(shared);
            thread::spawn(move || deploy(&shared, &work, in_error));
            Ok(id)
        } else {
            drop(world);
            perform(shared, &work)
        }
    } else {
        let accepted = world.begin(work, ending);
        drop(world);
        ended(shared, accepted)?
    };
    Some(outcome.and_then(|id| changed(shared, call, id)))
}

/// Changes a stack on the real engine.
fn perform(shared: &Shared, work: &Work) -> Result<u64, PortainerError> {
    if let Some(deployer) = &shared.deployer {
        deployer.perform(work)?;
    }
    shared.world().complete(work)
}

/// Deploys a stack on the real engine in the background (N01).
fn deploy(shared: &Shared, work: &Work, in_error: bool) {
    if let Some(deployer) = &shared.deployer {
        let outcome = deployer.deploy(work, in_error);
        shared.world().end_deployment(work.id(), outcome);
    }
}

/// The checked change of a create, update or delete.
fn prepared(world: &mut World, call: Call, incoming: &Incoming) -> Result<Work, PortainerError> {
    let key = key(world, incoming)?.clone();
    if call == Call::Create {
        return create(world, &key, incoming);
    }
    let action = if call == Call::Update {
        "Stack editing"
    } else {
        "stack deletion"
    };
    let id = managed(world, &key, stack_id(incoming), action)?.id;
    if call == Call::Update {
        return update(world, &key, id, incoming);
    }
    // The default is 0, which no environment has (M03).
    let endpoint = number(incoming, "endpointId")?.unwrap_or(0);
    let removes_volumes = incoming.query("removeVolumes").as_deref() == Some("true");
    let volumes = if world.era == Era::Async && removes_volumes {
        NamedVolumes::Remove
    } else {
        NamedVolumes::Keep
    };
    world.prepare_delete(id, endpoint, volumes)
}

/// Waits until a request has ended; `None` if the rehearsal ended first.
fn ended(shared: &Arc<Shared>, accepted: Accepted) -> Option<Result<u64, PortainerError>> {
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

/// The response to a create, update or delete that succeeded.
fn changed(shared: &Arc<Shared>, call: Call, id: u64) -> Result<Response, PortainerError> {
    let world = shared.world();
    match call {
        Call::Create => respond_with(&world, id, shapes::Control::Shown),
        // The recorded response to a PUT has `null` for the resource control.
        Call::Update => respond_with(&world, id, shapes::Control::Null),
        _ => Ok(Response::no_content()),
    }
}

/// The ID in the path `/api/stacks/<id>` or `/api/endpoints/<id>`.
fn stack_id(incoming: &Incoming) -> &str {
    segments(incoming.path())
        .get(2)
        .copied()
        .unwrap_or_default()
}

fn authenticated(
    shared: &Arc<Shared>,
    call: Call,
    incoming: &Incoming,
) -> Result<Response, PortainerError> {
    let mut world = shared.world();
    let key = key(&world, incoming)?.clone();
    let id = stack_id(incoming).to_owned();
    match call {
        Call::Endpoints => endpoints(&world, &key, &id),
        Call::Me => Ok(me(&world, &key)),
        Call::Info => proxied(&mut world, &key, &id, incoming),
        Call::List => {
            let endpoint = listed_endpoint(incoming);
            drop(world);
            Ok(list(shared, key, endpoint))
        }
        Call::Get => {
            let found = managed(&world, &key, &id, "Stack management")?.id;
            let era = world.era;
            let record = world
                .poll(found)
                .ok_or_else(|| PortainerError::no_record(&id))?;
            Ok(Response::json(
                200,
                &record_json(record, era, shapes::Control::Shown),
            ))
        }
        Call::File => {
            let text = &managed(&world, &key, &id, "Stack management")?.text;
            Ok(Response::json(200, &json!({ "StackFileContent": text })))
        }
        Call::Stop | Call::Start => {
            let id = managed(&world, &key, &id, "stack management")?.id;
            let endpoint = number(incoming, "endpointId")?.ok_or_else(missing_endpoint)?;
            if call == Call::Stop {
                world.stop(id, endpoint)?;
            } else {
                world.start_again(id, endpoint)?;
            }
            respond_with(&world, id, shapes::Control::Null)
        }
        Call::Access => access(&mut world, &key, &id, incoming),
        _ => Err(PortainerError::new(404, "Not found", "Not found")),
    }
}

/// Sets the access rights of a stack.
fn access(
    world: &mut World,
    key: &ApiKey,
    id: &str,
    incoming: &Incoming,
) -> Result<Response, PortainerError> {
    let given = payload::<AccessPayload>(&incoming.body)?;
    let (public, only_admins) = (given.public, given.administrators_only);
    let restricted = given.users.is_some() || given.teams.is_some();
    if !public && !only_admins && !restricted {
        let details = "Invalid payload: must specify Users, Teams, Public or AdministratorsOnly";
        return Err(PortainerError::new(400, "Invalid request payload", details));
    }
    let record = world.controlled(id)?;
    if !may_see(key, record) {
        let text = "Access denied to resource";
        return Err(PortainerError::new(403, text, text));
    }
    let restricted = !public && !only_admins;
    let ids = |ids: Option<Vec<u64>>| ids.filter(|_| restricted).unwrap_or_default();
    record.control.public = public;
    record.control.users = ids(given.users);
    record.control.teams = ids(given.teams);
    Ok(Response::json(200, &control_json(record)))
}

fn key<'w>(world: &'w World, incoming: &Incoming) -> Result<&'w ApiKey, PortainerError> {
    let Some(given) = incoming
        .header("x-api-key")
        .filter(|given| !given.is_empty())
    else {
        return Err(PortainerError::new(
            401,
            "A valid authorization token is missing",
            "Unauthorized",
        ));
    };
    let known = world.keys.iter().find(|key| key.secret() == given);
    known.ok_or_else(|| PortainerError::new(401, "Invalid JWT token", "Unauthorized"))
}

fn status(world: &World) -> Response {
    let body =
        json!({ "Version": version(world), "InstanceID": "5a1f7c0e-6f2b-4d0e-9a53-2f6f0c1d7b11" });
    Response::json(200, &body)
}

fn version(world: &World) -> &'static str {
    match world.era {
        Era::Sync => "2.23.0",
        Era::Async => "2.45.0",
    }
}

/// All environments that the user may use, or the one with that ID.
fn endpoints(world: &World, key: &ApiKey, id: &str) -> Result<Response, PortainerError> {
    let mut all = world
        .endpoints
        .iter()
        .filter(|(one, _)| !id.is_empty() || world.check_access(**one, key).is_ok())
        .map(|(id, one)| shapes::endpoint_json(*id, &one.name, !one.forbids_stacks));
    let body = if id.is_empty() {
        format!("[{}]\n", all.collect::<Vec<_>>().join(","))
    } else {
        let number = id.parse().unwrap_or(0);
        world.check_access(number, key)?;
        let before = world.endpoints.range(..number).count();
        all.nth(before).unwrap_or_default()
    };
    Ok(Response::new(200, "application/json", body))
}

fn me(world: &World, key: &ApiKey) -> Response {
    let id = world
        .keys
        .iter()
        .position(|one| one == key)
        .map_or(0, |at| at + 1);
    let role = if key.role == Role::Administrator {
        1
    } else {
        2
    };
    Response::json(200, &shapes::user_json(id, &key.user, role))
}

/// Passes a request on to the engine of an environment (M17).
fn proxied(
    world: &mut World,
    key: &ApiKey,
    id: &str,
    incoming: &Incoming,
) -> Result<Response, PortainerError> {
    let number = id.parse::<u64>().unwrap_or(0);
    world.check_access(number, key)?;
    let there = world
        .endpoints
        .get(&number)
        .map(|one| one.engine.clone())
        .unwrap_or_default();
    let prefix = format!("/api/endpoints/{id}/docker");
    let target = incoming
        .target
        .strip_prefix(&prefix)
        .unwrap_or("/")
        .to_owned();
    let inner = Incoming {
        target,
        ..incoming.clone()
    };
    Ok(engine::respond_on(world, &there, &inner))
}

/// The stack with that ID, if the API key may see it.
fn seen<'w>(world: &'w World, key: &ApiKey, id: &str) -> Result<&'w Record, PortainerError> {
    let number = id.parse::<u64>().map_err(|_| {
        let details = "Invalid route variable";
        PortainerError::new(400, "Invalid stack identifier route variable", details)
    })?;
    let record = world
        .records
        .get(&number)
        .ok_or_else(|| PortainerError::no_record(id))?;
    if may_see(key, record) {
        Ok(record)
    } else {
        let text = "Access denied to resource";
        Err(PortainerError::new(403, text, text))
    }
}

/// The same, if the API key may also manage stacks on its environment (M22).
fn managed<'w>(
    world: &'w World,
    key: &ApiKey,
    id: &str,
    action: &str,
) -> Result<&'w Record, PortainerError> {
    let record = seen(world, key, id)?;
    world.check_stacks(record.endpoint, key, action)?;
    Ok(record)
}

fn may_see(key: &ApiKey, record: &Record) -> bool {
    key.role == Role::Administrator || record.control.public || record.created_by == key.user
}

/// `filters={"EndpointID":1}`
fn listed_endpoint(incoming: &Incoming) -> Option<u64> {
    let filters = incoming.query("filters")?;
    let filters = serde_json::from_str::<Value>(&filters).ok()?;
    filters.get("EndpointID")?.as_u64().filter(|id| *id != 0)
}

/// The list, serialized in chunks: no more than [`PER_CHUNK`] stacks are in memory as JSON at a time.
fn list(shared: &Arc<Shared>, key: ApiKey, endpoint: Option<u64>) -> Response {
    let mut chunks = Listing {
        shared: Arc::clone(shared),
        key,
        endpoint,
        after: None,
        progress: Progress::NotStarted,
    };
    let mut first = Vec::new();
    while first.len() <= LONGEST_WHOLE {
        let Some(chunk) = chunks.next() else {
            return Response::new(200, "application/json", first);
        };
        first.extend(chunk);
    }
    let headers = vec![("Content-Type", "application/json".to_owned())];
    let chunks = std::iter::once(first).chain(chunks);
    Response {
        status: 200,
        headers,
        body: Body::Chunks(Box::new(chunks)),
    }
}

struct Listing {
    shared: Arc<Shared>,
    key: ApiKey,
    endpoint: Option<u64>,
    /// The last ID that was serialized.
    after: Option<u64>,
    progress: Progress,
}

#[derive(PartialEq, Eq)]
enum Progress {
    NotStarted,
    Started,
    Finished,
}

impl Iterator for Listing {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.progress == Progress::Finished {
            return None;
        }
        let mut out = if self.progress == Progress::NotStarted {
            b"[".to_vec()
        } else {
            Vec::new()
        };
        let world = self.shared.world();
        let from = self.after.map_or(0, |id| id + 1);
        let mut first = self.after.is_none();
        for (count, (id, record)) in world.records.range(from..).enumerate() {
            if count == PER_CHUNK {
                self.progress = Progress::Started;
                return Some(out);
            }
            self.after = Some(*id);
            let elsewhere = self
                .endpoint
                .is_some_and(|endpoint| endpoint != record.endpoint);
            if elsewhere || !may_see(&self.key, record) {
                continue;
            }
            if !first {
                out.push(b',');
            }
            first = false;
            let shown = record_json(record, world.era, shapes::Control::Shown);
            out.extend(serde_json::to_vec(&shown).unwrap_or_default());
        }
        self.progress = Progress::Finished;
        out.extend_from_slice(b"]\n");
        Some(out)
    }
}

fn create(world: &mut World, key: &ApiKey, incoming: &Incoming) -> Result<Work, PortainerError> {
    let endpoint = number(incoming, "endpointId")?.ok_or_else(missing_endpoint)?;
    world.check_access(endpoint, key)?;
    world.check_stacks(endpoint, key, "Stack creation")?;
    let payload = payload::<CreatePayload>(&incoming.body)?;
    let invalid = |what: &str| PortainerError::new(400, "Invalid request payload", what);
    if payload.name.is_empty() {
        return Err(invalid("Invalid stack name"));
    }
    if payload.stack_file_content.is_empty() {
        return Err(invalid("Invalid stack file content"));
    }
    let (name, text) = (payload.name, payload.stack_file_content);
    let env = variables(payload.env);
    world.prepare_create(endpoint, &name, text, env, &key.user)
}

fn update(
    world: &mut World,
    key: &ApiKey,
    id: u64,
    incoming: &Incoming,
) -> Result<Work, PortainerError> {
    let endpoint = number(incoming, "endpointId")?;
    let payload = payload::<UpdatePayload>(&incoming.body)?;
    if payload.stack_file_content.is_empty() {
        return Err(PortainerError::new(
            400,
            "Invalid request payload",
            "Invalid stack file content",
        ));
    }
    let update = Update {
        text: payload.stack_file_content,
        env: variables(payload.env),
    };
    world.prepare_update(id, endpoint, update, &key.user)
}

fn respond_with(
    world: &World,
    id: u64,
    control: shapes::Control,
) -> Result<Response, PortainerError> {
    let record = world
        .records
        .get(&id)
        .ok_or_else(|| PortainerError::no_record(&id.to_string()))?;
    Ok(Response::json(
        200,
        &record_json(record, world.era, control),
    ))
}
