//! The manager's JSON, as this client reads and writes it.
//!
//! Invariant: the list is never held whole; an entry that is not understood is not a match, and a list
//! that is not understood is an error, never an empty list.

use std::{
    collections::BTreeSet,
    io::{self, Read},
};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;
use ureq::{Body, http::Response};

use super::{hints, http, list};
use crate::{
    failure::Failure,
    model::{Carried, Deployment, Record, Variable},
};

/// How much of a body that is one record, or one answer, is read.
const ONE_ANSWER: u64 = 64 * 1024 * 1024;

/// What call C sends (C53).
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    /// The stack's name, as it was given.
    pub name: &'a str,
    /// The rewritten compose text.
    pub text: &'a str,
    /// Names and values, in order.
    pub env: &'a [Variable],
}

/// What a record holds and a PUT brings back (M16, M17).
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    /// The compose text.
    pub text: String,
    /// The variables, in order.
    pub env: Vec<Variable>,
}

impl std::fmt::Debug for Contents {
    // Without the text and the values: they hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Contents({} bytes, {:?})", self.text.len(), self.env)
    }
}

/// The body of a PUT (M16).
pub(super) struct Update<'a>(pub(super) &'a Contents);

impl Serialize for Update<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut update = serializer.serialize_struct("Update", 4)?;
        update.serialize_field("stackFileContent", &self.0.text)?;
        update.serialize_field("env", &self.0.env)?;
        update.serialize_field("prune", &false)?;
        update.serialize_field("pullImage", &false)?;
        update.end()
    }
}

/// What a create answered when it made a record (C54).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The non-empty `Id`, as text.
    pub id: String,
    /// What it says of the deployment (N01).
    pub deployment: Deployment,
}

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut payload = serializer.serialize_struct("Payload", 4)?;
        payload.serialize_field("name", self.name)?;
        payload.serialize_field("stackFileContent", self.text)?;
        payload.serialize_field("env", self.env)?;
        payload.serialize_field("fromAppTemplate", &false)?;
        payload.end()
    }
}

/// The records of a list whose name is one of `names` (C50). 204 and `null` are empty lists (N03).
pub(super) fn records(reply: Response<Body>, names: &[&str]) -> Result<Vec<Record>> {
    if reply.status() == 204 {
        return Ok(Vec::new());
    }
    let is_page = hints::is_page(&reply);
    let reader = reply
        .into_body()
        .into_with_config()
        .limit(u64::MAX)
        .reader();
    let mut found = Vec::new();
    let take = |json: &[u8]| {
        // An entry that lacks what a record has is no match.
        if let Ok(record) = serde_json::from_slice::<RecordWire>(json) {
            found.push(record.into());
        }
    };
    list::entries(reader, names, take).map_err(|error| {
        let what = "the manager's list of stacks cannot be understood";
        if is_page {
            return Failure::new(format!("{what}: it is an HTML page"))
                .hint(hints::OF_PAGE)
                .into();
        }
        if error.kind() != io::ErrorKind::InvalidData {
            return http::cut_off(error).context("failed to list the manager's stacks");
        }
        Failure::new(what)
            .source(error)
            .hint("check that --base-url is the manager's address, without /api")
            .into()
    })?;
    Ok(found)
}

/// One record (M17).
pub(super) fn record(reply: Response<Body>) -> Result<Record> {
    let body = read(reply).context("failed to read a record")?;
    serde_json::from_slice::<RecordWire>(&body)
        .map(Record::from)
        .map_err(|error| anyhow!(error).context("the manager's record cannot be understood"))
}

/// The variables of one record; `null` is none (M17).
pub(super) fn env(reply: Response<Body>) -> Result<Vec<Variable>> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "Env", default)]
        env: Option<Vec<Variable>>,
    }
    let body = read(reply).context("failed to read a record")?;
    let wire: Wire = serde_json::from_slice(&body)
        .map_err(|_| anyhow!("the record's variables cannot be understood"))?;
    Ok(wire.env.unwrap_or_default())
}

/// The compose text of one record (M17).
pub(super) fn text(reply: Response<Body>) -> Result<String> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "StackFileContent")]
        text: String,
    }
    let body = read(reply).context("failed to read a record's text")?;
    let wire: Wire = serde_json::from_slice(&body)
        .map_err(|_| anyhow!("the record's text cannot be understood"))?;
    Ok(wire.text)
}

/// The `ID` of an engine (M17).
pub(super) fn engine_id(reply: Response<Body>) -> Result<Option<String>> {
    let body = read(reply).context("failed to read the engine's id")?;
    let json: Value = serde_json::from_slice(&body).context("the endpoint's answer is not JSON")?;
    let id = json.get("ID").and_then(Value::as_str).unwrap_or_default();
    Ok((!id.is_empty()).then(|| id.to_owned()))
}

/// `Role` of a user: 1 is an administrator.
pub(super) fn is_administrator(reply: Response<Body>) -> Result<Option<bool>> {
    let body = read(reply).context("failed to read the key's user")?;
    let json: Value = serde_json::from_slice(&body).context("the manager's answer is not JSON")?;
    let role = json.get("Role").and_then(Value::as_i64);
    Ok(role.map(|role| role == 1))
}

/// What a create made, if its answer is JSON with a non-empty `Id` (C54).
pub(super) fn created(body: &[u8]) -> Option<Created> {
    let json: Value = serde_json::from_slice(body).ok()?;
    let id = match json.get("Id")? {
        Value::Null => return None,
        Value::String(id) if id.is_empty() => return None,
        Value::String(id) => id.clone(),
        id => id.to_string(),
    };
    Some(Created {
        id,
        deployment: deployment(&json),
    })
}

fn read(reply: Response<Body>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    reply
        .into_body()
        .into_with_config()
        .limit(ONE_ANSWER)
        .reader()
        .read_to_end(&mut body)
        .map_err(http::cut_off)?;
    Ok(body)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RecordWire {
    id: serde_json::Number,
    name: String,
    endpoint_id: i64,
    #[serde(flatten)]
    rest: Value,
}

impl From<RecordWire> for Record {
    fn from(wire: RecordWire) -> Self {
        Self {
            id: wire.id.to_string(),
            name: wire.name,
            endpoint_id: wire.endpoint_id,
            deployment: deployment(&wire.rest),
            carries: carries(&wire.rest),
            variables: variables(&wire.rest),
        }
    }
}

/// `Status`: 1 active, 2 inactive, 3 deploying, 4 error with its reason (N01).
fn deployment(json: &Value) -> Deployment {
    match json.get("Status").and_then(Value::as_i64) {
        Some(2) => Deployment::Inactive,
        Some(3) => Deployment::Deploying,
        Some(4) => Deployment::Failed(reason(json)),
        _ => Deployment::Active,
    }
}

fn reason(json: &Value) -> Option<String> {
    let last = json.get("DeploymentStatus")?.as_array()?.last()?;
    let message = last.get("Message")?.as_str()?;
    (!message.is_empty()).then(|| message.to_owned())
}

/// What a record carries that a new one of the same name will not (B01).
fn carries(json: &Value) -> Vec<Carried> {
    let set = |value: Option<&Value>| match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    };
    let update = json.get("AutoUpdate");
    let control = json.get("ResourceControl");
    let in_update = |key| update.and_then(|update| update.get(key));
    let in_control = |key| control.and_then(|control| control.get(key));
    let mut carried = Vec::new();
    if set(json.get("GitConfig")) {
        let url = json.pointer("/GitConfig/URL").and_then(Value::as_str);
        carried.push(Carried::Git(url.unwrap_or_default().to_owned()));
    }
    if set(in_update("Interval")) {
        carried.push(Carried::AutoUpdate);
    }
    if set(in_update("Webhook")) || set(json.get("Webhook")) {
        carried.push(Carried::Webhook);
    }
    if ["UserAccesses", "TeamAccesses", "Public"]
        .into_iter()
        .any(|key| set(in_control(key)))
    {
        carried.push(Carried::Access);
    }
    carried
}

/// The names of the record's variables.
fn variables(json: &Value) -> BTreeSet<String> {
    let env = json.get("Env").and_then(Value::as_array);
    env.into_iter()
        .flatten()
        .filter_map(|variable| variable.get("name")?.as_str())
        .map(str::to_owned)
        .collect()
}
