//! What users may do who are not administrators (M22), and stacks that nobody can read (N16).

use std::sync::Mutex;

use rehearsal::{
    ADMIN, Apis, Call, Record, Refused, Request, Response, World,
    portainer::{answered, id_of, number},
};
use serde_json::{Value, json};

use crate::{Access, lock};

/// Responds to a request as to its user. `respond` gets it as a request of the administrator.
pub(crate) fn respond(
    access: &Mutex<Access>,
    apis: &Apis,
    request: &Request,
    respond: impl FnOnce(&Request) -> Response,
) -> Response {
    let refused = {
        let world = apis.world();
        let is_known = request.header(KEY) == Some(world.secret.as_str());
        lock(access).refused(&world, request, is_known)
    };
    if let Some(refused) = refused {
        return answered(apis, Err(refused));
    }
    let response = respond(&as_administrator(access, apis, request));
    if response.status != 200 {
        return response;
    }
    // The world is always locked first.
    let world = apis.world();
    lock(access).seen(&world, request, response)
}

const KEY: &str = "x-api-key";

/// A request with the key of the administrator, if it has that of another user.
fn as_administrator(access: &Mutex<Access>, apis: &Apis, request: &Request) -> Request {
    let mut request = request.clone();
    if lock(access).user(&request).is_some() {
        let keys = request.headers.iter_mut();
        for (_, key) in keys.filter(|(name, _)| name.eq_ignore_ascii_case(KEY)) {
            key.clone_from(&apis.world().secret);
        }
    }
    request
}

impl Access {
    /// The name of the user of a request, unless that is the administrator.
    pub(crate) fn user(&self, request: &Request) -> Option<&str> {
        let given = request.header(KEY)?;
        let found = self.users.iter().find(|(key, _)| key == given);
        found.map(|(_, name)| name.as_str())
    }

    /// Why a request is refused.
    fn refused(&self, world: &World, request: &Request, is_known: bool) -> Option<Refused> {
        if request.header(KEY).is_some() && request.header("authorization").is_some() {
            // N21
            let message = "api key and auth header are not allowed at the same time";
            let details = "Api key and auth header are not allowed at the same time";
            return Some(Refused::with_details(403, message, details));
        }
        let user = self.user(request);
        if user.is_none() && !is_known {
            return None;
        }
        let (id, call) = (id_of(request), request.call);
        let action = action(call);
        let record = action.and_then(|_| world.record_of(id).ok());
        let is_lost = |record: &Record| self.lost_workflows.contains(&record.id);
        let mut listed = world.records.values();
        if record.is_some_and(is_lost)
            || call == Call::List && listed.any(|one| is_lost(one) && self.lists(request, one))
        {
            let details = "object not found inside the database";
            let message = "Unable to load git config for stack";
            return Some(Refused::with_details(500, message, details));
        }
        let user = user?;
        let mut records = world.records.values();
        let denied = match call {
            Call::Users | Call::Unshare => true,
            Call::Access => records
                .find(|record| record.control.id.to_string() == id)
                .is_some_and(|record| !may_see(user, record)),
            _ => record.is_some_and(|record| !may_see(user, record)),
        };
        let endpoint = match call {
            Call::Create | Call::CreateGit => number(request, "endpointId").ok().flatten(),
            Call::Endpoints | Call::Info | Call::Containers => id.parse().ok(),
            _ => None,
        };
        if endpoint.is_some_and(|id| self.restricted.contains(&id)) {
            let message = "Permission denied to access environment";
            let details = "Access denied to environment";
            return Some(Refused::with_details(403, message, details));
        }
        if denied {
            return Some(Refused::same(403, "Access denied to resource"));
        }
        let endpoint = record.map(|record| record.endpoint).or(endpoint)?;
        let settings = self.admin_only.get(&endpoint)?;
        let action = settings.contains(&STACKS).then_some(action?)?;
        let message = format!("{action} is disabled for non-admin users");
        Some(Refused::same(403, &message))
    }

    /// Whether a list that is asked for has a stack.
    fn lists(&self, request: &Request, record: &Record) -> bool {
        let filters = request.query("filters").unwrap_or_default();
        let filters = serde_json::from_str::<Value>(&filters).unwrap_or_default();
        let wanted = filters["EndpointID"].as_u64();
        let user = self.user(request);
        wanted.is_none_or(|id| record.endpoint == id)
            && user.is_none_or(|user| may_see(user, record))
    }

    /// What the user sees of the response to a request.
    fn seen(&self, world: &World, request: &Request, mut response: Response) -> Response {
        let user = self.user(request);
        let mut shown = serde_json::from_slice::<Value>(&response.body).unwrap_or_default();
        let id = |one: &Value| one["Id"].as_u64().unwrap_or_default();
        match (request.call, &mut shown) {
            (Call::List, Value::Array(all)) => all.retain(|one| {
                let record = world.records.get(&id(one));
                record.is_some_and(|record| self.lists(request, record))
            }),
            (Call::Endpoints, Value::Array(all)) => {
                all.retain(|one| user.is_none() || !self.restricted.contains(&id(one)));
                for one in all {
                    self.restrict(one);
                }
            }
            (Call::Endpoints, one) => self.restrict(one),
            (Call::Me, _) => {
                let at = self
                    .users
                    .iter()
                    .position(|(_, name)| Some(&**name) == user);
                let Some(at) = at else { return response };
                shown = json!({ "Id": at + 2, "Username": user, "Role": 2 });
            }
            _ => return response,
        }
        response.body = shown.to_string().into_bytes();
        response
    }

    /// Shows what an environment lets only administrators do.
    fn restrict(&self, environment: &mut Value) {
        let id = environment["Id"].as_u64().unwrap_or_default();
        for what in self.admin_only.get(&id).into_iter().flatten() {
            environment["SecuritySettings"][format!("allow{what}ForRegularUsers")] = json!(false);
        }
    }

    /// The users by name, the administrator first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.users.iter().map(|(_, name)| name.as_str());
        [ADMIN].into_iter().chain(others)
    }
}

/// The setting without which other users may not manage stacks.
pub const STACKS: &str = "StackManagement";

/// What a request about a stack does, as Portainer names it to a user who may not manage stacks.
fn action(call: Call) -> Option<&'static str> {
    match call {
        Call::Create | Call::CreateGit => Some("Stack creation"),
        Call::Update | Call::Redeploy => Some("Stack editing"),
        Call::Delete => Some("stack deletion"),
        Call::Get | Call::File => Some("Stack management"),
        Call::Stop => Some("stack management"),
        _ => None,
    }
}

/// Whether a user may see a stack.
fn may_see(user: &str, record: &Record) -> bool {
    record.control.public || record.created_by == user
}
