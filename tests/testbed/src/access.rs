//! What the rehearsal itself does not need of Portainer: other users, teams, access rights of containers, and a stop.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use rehearsal::{
    Apis, Call, Record, Refused, Request, ResourceControl, Response, Status, World,
    portainer::{self, Perform, answered, payload},
};
use serde_json::{Value, json};

use crate::lock;

/// The first ID of the access rights that labels give.
const FIRST: u64 = 1000;

/// Who may use what.
#[derive(Default)]
pub struct Access {
    /// The API keys and the names of users who are not administrators. They see only public stacks and their own.
    pub users: Vec<(String, String)>,
    /// The environments that only administrators may see and use.
    pub restricted: BTreeSet<u64>,
    /// What only administrators may do on an environment, such as `BindMounts` in `allowBindMountsForRegularUsers` (M22). No text
    /// is rejected for it.
    pub admin_only: BTreeMap<u64, Vec<&'static str>>,
    /// The stacks that refer to a workflow that no longer exists: they cannot be read (N16).
    pub lost_workflows: BTreeSet<u64>,
    /// The teams. The ID of the first one is 1.
    pub teams: Vec<String>,
    /// The access rights that Portainer has for containers, by their ID.
    pub controls: BTreeMap<String, ResourceControl>,
}

/// Responds to a request about access rights, and to a stop.
pub(crate) fn respond(
    access: &Mutex<Access>,
    apis: &Apis,
    request: &Request,
    perform: Perform,
) -> Response {
    if request.call == Call::Containers {
        let response = rehearsal::respond(apis, request, perform);
        return with_controls(&apis.world(), &mut lock(access), request, response);
    }
    let outcome = || {
        let world = &mut apis.world();
        portainer::check_key(world, request)?;
        let access = &mut lock(access);
        let id = portainer::id_of(request);
        match request.call {
            Call::Users => Ok(numbered(access.names(), "Username")),
            Call::Teams => Ok(numbered(access.teams.iter().map(String::as_str), "Name")),
            Call::Unshare => {
                let count = access.controls.len();
                let number = id.parse().unwrap_or(0);
                access.controls.retain(|_, control| control.id != number);
                if access.controls.len() == count {
                    return Err(no_control());
                }
                Ok(Response::no_content())
            }
            Call::Stop => {
                let id = world.record_of(id)?.id;
                let endpoint = portainer::number(request, "endpointId")?;
                let endpoint = endpoint.ok_or_else(portainer::missing_endpoint)?;
                stop(world, id, endpoint)?;
                portainer::shown(world, id, false)
            }
            // The access rights of a stack.
            _ => {
                let given = payload::<Value>(request)?;
                let mut all = world.records.values_mut();
                let found = all.find(|record| record.control.id.to_string() == id);
                let record = found.ok_or_else(no_control)?;
                let is_public = given["Public"] == true;
                let ids = |key: &str| {
                    let all = given[key].as_array().into_iter().flatten();
                    let given = all.filter(|_| !is_public && given["AdministratorsOnly"] != true);
                    given.filter_map(Value::as_u64).collect()
                };
                record.control.public = is_public;
                record.control.users = ids("Users");
                record.control.teams = ids("Teams");
                Ok(Response::json(200, &portainer::control_of(record)))
            }
        }
    };
    answered(apis, outcome())
}

/// Stops a stack: runs `compose down` and keeps the stack as inactive.
///
/// # Errors
/// The error response of Portainer.
pub fn stop(world: &mut World, id: u64, endpoint: u64) -> Result<(), Refused> {
    let record = world.record(id)?.clone();
    if record.status == Status::Inactive {
        return Err(Refused::same(400, "Stack is already inactive"));
    }
    if let Some(record) = world.records.get_mut(&id) {
        record.status = Status::Inactive;
    }
    world.down_in(endpoint, &record.name);
    Ok(())
}

/// Adds the own access rights of each container, which come before those of its stack. Without either, the labels become its
/// own (M23).
fn with_controls(
    world: &World,
    access: &mut Access,
    request: &Request,
    mut response: Response,
) -> Response {
    let mut list = serde_json::from_slice::<Value>(&response.body).unwrap_or_default();
    let project = format!("com.{}.compose.project", world.tool);
    for container in list.as_array_mut().into_iter().flatten() {
        let is_of = |record: &&Record| {
            record.endpoint.to_string() == portainer::id_of(request)
                && container["Labels"][&project] == record.name
        };
        if let Some(record) = world.records.values().find(is_of) {
            container["Portainer"] = json!({ "ResourceControl": portainer::control_of(record) });
        }
        let id = container["Id"].as_str().unwrap_or_default().to_owned();
        let number = FIRST + access.controls.len() as u64;
        let of_labels = access.of_labels(&container["Labels"], number);
        if let Some(control) = of_labels.filter(|_| container.get("Portainer").is_none()) {
            access.controls.entry(id.clone()).or_insert(control);
        }
        if let Some(control) = access.controls.get(&id) {
            let shown = portainer::control(control, &id, 1);
            container["Portainer"] = json!({ "ResourceControl": shown });
        }
    }
    if list.is_array() {
        response.body = list.to_string().into_bytes();
    }
    response
}

impl Access {
    /// The access rights that the labels of a container give to teams.
    fn of_labels(&self, labels: &Value, id: u64) -> Option<ResourceControl> {
        let names = labels["io.portainer.accesscontrol.teams"].as_str()?;
        let known = |name: &str| self.teams.iter().position(|team| team == name.trim());
        let teams = names.split(',').filter_map(known);
        Some(ResourceControl {
            id,
            teams: teams.map(|at| at as u64 + 1).collect(),
            ..ResourceControl::default()
        })
    }
}

/// Users or teams, whose ID is their place.
fn numbered<'n>(names: impl Iterator<Item = &'n str>, field: &str) -> Response {
    let all = (1..).zip(names);
    let shown = all.map(|(id, name): (u64, _)| json!({ "Id": id, field: name }));
    Response::json(200, &shown.collect::<Value>())
}

fn no_control() -> Refused {
    let message =
        "Unable to find a resource control with the specified identifier inside the database";
    Refused::same(404, message)
}
