//! Portainer's JSON, as this client reads and writes it.
//!
//! Invariant: a list that cannot be parsed is an error, never an empty list. An entry that cannot be parsed
//! does not match.

use std::{
    collections::BTreeSet,
    io::{self, Read},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned, ser::SerializeStruct};
use serde_json::Value;
use ureq::http::header::CONTENT_TYPE;

use super::{
    access::Standing,
    connection::truncated,
    error::HINT_FOR_HTML,
    http::{LARGEST_BODY, Unread},
    list,
};
use crate::{
    failure::Failure,
    model::{Carried, Deployment, Record, Variable},
};

/// The body of call C (C53).
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    /// The stack's name, as the user gave it.
    pub name: &'a str,
    /// The rewritten compose text.
    pub text: &'a str,
    /// Names and values, in order.
    pub env: &'a [Variable],
}

/// The parts of a record that an update sets (M16, M17).
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    /// The compose text.
    pub text: String,
    /// The variables, in order.
    pub env: Vec<Variable>,
}

impl std::fmt::Debug for Contents {
    // The text and the values may hold secrets.
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

/// The response to a create that succeeded (C54).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The non-empty `Id`, as text.
    pub id: String,
    /// The state of the deployment (N01).
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
pub(super) fn records(response: Unread, names: &[&str]) -> Result<Vec<Record>> {
    if response.status() == 204 {
        return Ok(Vec::new());
    }
    let kind = response.headers().get(CONTENT_TYPE);
    let is_html = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let body = response.into_body().into_with_config().limit(u64::MAX);
    let entries = list::entries(body.reader(), names).map_err(|error| {
        let what = "cannot parse the response";
        if is_html {
            return Failure::new(format!("{what}: it is an HTML page")).hint(HINT_FOR_HTML);
        }
        match error.io_error_kind() {
            None | Some(io::ErrorKind::InvalidData) => Failure::new(what)
                .source(error)
                .hint("check that --base-url is Portainer's address, without /api"),
            Some(_) => truncated(error.into()),
        }
    })?;
    let records = entries
        .into_iter()
        .filter_map(|entry| serde_json::from_value::<RecordWire>(entry).ok());
    Ok(records.map(Record::from).collect())
}

/// One record (M17).
pub(super) fn record(response: Unread) -> Result<Record> {
    read::<RecordWire>(response).map(Record::from)
}

/// The variables of one record, where `null` is none (M17), and its standing.
pub(super) fn env_and_standing(response: Unread) -> Result<(Vec<Variable>, Standing)> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "Env", default)]
        env: Option<Vec<Variable>>,
        #[serde(flatten)]
        rest: Value,
    }
    let wire: Wire = read_secret(response)?;
    Ok((wire.env.unwrap_or_default(), Standing::of(&wire.rest)))
}

/// The compose text of one record (M17).
pub(super) fn text(response: Unread) -> Result<String> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "StackFileContent")]
        text: String,
    }
    Ok(read_secret::<Wire>(response)?.text)
}

/// The `ID` of an engine (M17); `None` where it is missing or empty.
pub(super) fn engine_id(response: Unread) -> Result<Option<String>> {
    let json: Value = read(response)?;
    let id = json.get("ID").and_then(Value::as_str).unwrap_or_default();
    Ok((!id.is_empty()).then(|| id.to_owned()))
}

/// Whether the `Role` of a user is 1, an administrator; `None` where there is no role.
pub(super) fn is_administrator(response: Unread) -> Result<Option<bool>> {
    let json: Value = read(response)?;
    let role = json.get("Role").and_then(Value::as_i64);
    Ok(role.map(|role| role == 1))
}

/// The response to a create, if it is JSON with a non-empty `Id` (C54).
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

fn read<T: DeserializeOwned>(response: Unread) -> Result<T> {
    serde_json::from_slice(&body(response)?).context("cannot parse the response")
}

/// Like [`read`], but without the parser's message, which can quote a value.
fn read_secret<T: DeserializeOwned>(response: Unread) -> Result<T> {
    let parsed = serde_json::from_slice(&body(response)?);
    parsed.map_err(|_| Failure::new("cannot parse the response").into())
}

fn body(response: Unread) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let config = response.into_body().into_with_config().limit(LARGEST_BODY);
    let read = config.reader().read_to_end(&mut body);
    read.map(|_| body).map_err(truncated)
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

/// The parts of a record that a new record of the same name does not get (B01).
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ureq::{Body, http};

    use super::*;

    fn response(body: &[u8]) -> Unread {
        http::Response::new(Body::builder().data(body.to_vec()))
    }

    #[test]
    fn records_of_the_list() {
        let list = br#"[{"Id":1,"Name":"web","EndpointId":2,"Status":3,"Env":[{"name":"A","value":"b"}]},
            {"Id":"2","Name":"web","EndpointId":1},{"Name":"web"},{"Id":3,"Name":"web","EndpointId":1e30}]"#;
        let records = records(response(list), &["web"]).expect("a list");
        assert_eq!(
            records,
            [Record {
                id: "1".to_owned(),
                name: "web".to_owned(),
                endpoint_id: 2,
                deployment: Deployment::Deploying,
                carries: Vec::new(),
                variables: BTreeSet::from(["A".to_owned()]),
            }]
        );
    }

    #[test]
    fn a_secret_is_not_quoted() {
        for body in [
            &br#"{"Env":"hunter2","StackFileContent":7}"#[..],
            b"hunter2",
        ] {
            for error in [
                env_and_standing(response(body)).err(),
                text(response(body)).err(),
            ] {
                let error = format!("{:#}", error.expect("an error"));
                assert_eq!(error, "cannot parse the response");
            }
        }
    }

    proptest! {
        // Only that they return matters.
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let _ = records(response(&bytes), &["web"]);
            let _ = record(response(&bytes));
            let _ = env_and_standing(response(&bytes));
            let _ = text(response(&bytes));
            let _ = engine_id(response(&bytes));
            let _ = is_administrator(response(&bytes));
            let _ = created(&bytes);
        }

        #[test]
        fn any_value_of_a_record_can_be_read(
            key in prop::sample::select(vec![
                "Id", "Name", "EndpointId", "Status", "DeploymentStatus", "Env", "AutoUpdate", "GitConfig",
                "ResourceControl", "Webhook", "Role", "ID",
            ]),
            value in prop::sample::select(vec![
                "null", "7", "-1.5", "\"x\"", "[]", "[null]", "{}", "[{\"Message\":\"no\"}]",
                "{\"URL\":1,\"Webhook\":\"x\",\"Public\":true}",
            ]),
        ) {
            let body = format!("{{\"Id\":1,\"Name\":\"web\",\"EndpointId\":1,\"{key}\":{value}}}");
            let list = format!("[{body}]");
            let _ = records(response(list.as_bytes()), &["web"]);
            let _ = record(response(body.as_bytes()));
            let _ = created(body.as_bytes());
        }
    }
}
