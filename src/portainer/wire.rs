//! Portainer's JSON, as this client reads and writes it.
//!
//! Invariant: a list that cannot be parsed is an error, never an empty list. So is an entry that may be the stack
//! but cannot be parsed (B07).

use std::{collections::BTreeSet, io::Read};

use anyhow::Result;
use serde::de::DeserializeOwned;
use serde_json::{Value, error::Category, json};

use super::{
    Repository, Response,
    connection::truncated,
    entries,
    http::{LARGEST_BODY, Unread},
};
use crate::{
    failure::Failure,
    model::{Carried, Deployment, Record, StackKind, Variable},
    text::{excerpt, printable, without_credentials},
};

/// How much of a list is kept for the message if it is none, in bytes.
const BEGINNING: u64 = 4096;

/// The body of call C (C53).
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    /// The stack's name, as the user gave it.
    pub name: &'a str,
    /// The rewritten Compose text.
    pub text: &'a str,
    /// Names and values, in order.
    pub env: &'a [Variable],
    /// Where Portainer takes the text from, instead of the request (M24).
    pub git: Option<&'a Repository>,
}

impl<'a> Payload<'a> {
    /// A text that the request contains.
    pub fn new(name: &'a str, text: &'a str, env: &'a [Variable]) -> Self {
        Self {
            name,
            text,
            env,
            git: None,
        }
    }

    /// The body as it is sent, without the password of a repository.
    pub fn body(&self) -> Value {
        if let Some(git) = self.git {
            return git.create_body(self.name, self.env);
        }
        json!({
            "name": self.name,
            "stackFileContent": self.text,
            "env": self.env,
            "fromAppTemplate": false,
        })
    }

    /// The body of the update that sets them in a record (M16), without the password of a repository.
    pub fn update_body(&self, prune: bool) -> Value {
        if let Some(git) = self.git {
            return git.redeploy_body(self.env, prune);
        }
        json!({
            "stackFileContent": self.text,
            "env": self.env,
            "prune": prune,
            "pullImage": false,
        })
    }
}

/// The parts of a record that an update sets (M16, M17).
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    /// The Compose text.
    pub text: String,
    /// The variables, in order.
    pub env: Vec<Variable>,
}

/// The response to a create that succeeded (C54).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The non-empty `Id`, as text.
    pub id: String,
    /// The state of the deployment (N01).
    pub deployment: Deployment,
}

/// What to do about an entry of the list that cannot be parsed (B07).
pub const HINT_FOR_UNCLEAR: &str =
    "check the stack in Portainer and any proxy in front of Portainer";

/// An entry of the list of records.
#[derive(Debug)]
pub struct ListedRecord {
    pub name: String,
    /// The record, or why it is unclear whether the entry is one of the environment (B07).
    pub record: Result<Record, String>,
}

/// The records of a list whose name is one of `names`, or all (C50), and the entries that may be a record of the environment
/// `endpoint`, but cannot be parsed (B07). 204 and `null` are empty lists (N03).
pub(super) fn records(
    response: Unread,
    endpoint: i64,
    names: Option<&[&str]>,
) -> Result<Vec<ListedRecord>> {
    let entries = entries(response, names)?;
    let listed = entries.iter().filter_map(|entry| {
        Some(ListedRecord {
            name: name(entry).to_owned(),
            record: record(entry, endpoint).transpose()?,
        })
    });
    Ok(listed.collect())
}

fn entries(response: Unread, names: Option<&[&str]>) -> Result<Vec<Value>> {
    if response.status() == 204 {
        return Ok(Vec::new());
    }
    let mut begun = Response::without_body(&response);
    let body = response.into_body().into_with_config().limit(u64::MAX);
    let mut rest = body.reader();
    let read = rest.by_ref().take(BEGINNING).read_to_end(&mut begun.body);
    read.map_err(truncated)?;
    let entries = entries::entries(begun.body.as_slice().chain(rest), names);
    Ok(entries.map_err(|error| {
        let reason = match error.classify() {
            Category::Io => return truncated(error.into()),
            _ if begun.body.is_empty() => "",
            // An entry and its fields may be any JSON.
            Category::Data => "expected a list of stacks",
            _ => not_json(&error),
        };
        if begun.body.trim_ascii_start().starts_with(b"[") {
            unexpected(reason)
        } else {
            begun.in_another_form(reason)
        }
    })?)
}

/// Why a text is not JSON, without a part of it.
fn not_json(error: &serde_json::Error) -> &'static str {
    if error.is_eof() {
        return "it is incomplete";
    }
    "it is not JSON"
}

fn name(entry: &Value) -> &str {
    entry["Name"].as_str().unwrap_or_default()
}

/// The record of an entry of the list; `None` if it is certainly not in the environment `endpoint` (B07).
fn record(entry: &Value, endpoint: i64) -> Result<Option<Record>, String> {
    let name = name(entry);
    let unclear = |key: &str, value: &str| {
        format!(
            "Portainer's list has an entry named {}, but its {key} is {value}: it may be this stack",
            printable(name)
        )
    };
    let endpoint_id = match entry.get("EndpointId") {
        None => return Ok(None),
        Some(id) if id.is_u64() && !id.is_i64() => return Ok(None),
        Some(id) => {
            let number = id.as_i64();
            number.ok_or_else(|| unclear("EndpointId", &excerpt(&id.to_string())))?
        }
    };
    let Some(id) = entry.get("Id").and_then(record_id) else {
        if endpoint_id != endpoint {
            return Ok(None);
        }
        let shown = entry.get("Id").map(|id| excerpt(&id.to_string()));
        return Err(unclear("Id", shown.as_deref().unwrap_or("missing")));
    };
    Ok(Some(Record {
        id,
        name: name.to_owned(),
        endpoint_id,
        kind: kind(entry),
        deployment: deployment(entry),
        carries: carries(entry),
        deployed_at: ["CreationDate", "UpdateDate"]
            .into_iter()
            .filter_map(|key| entry.get(key)?.as_i64())
            .max()
            .unwrap_or_default(),
        variables: variables(entry),
        prune: entry.pointer("/Option/Prune") == Some(&Value::Bool(true)),
    }))
}

/// An integer, or text of digits, as text.
fn record_id(id: &Value) -> Option<String> {
    match id {
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        Value::String(digits)
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            Some(digits.clone())
        }
        _ => None,
    }
}

/// The state of one record (M17, N01).
pub(super) fn status(response: Unread) -> Result<Deployment> {
    let json = read(response)?;
    if json.get("Id").and_then(record_id).is_none() {
        return Err(Failure::new("cannot parse the response: it has no Id").into());
    }
    Ok(deployment(&json))
}

/// The variables of one record, where `null` is none (M17).
pub(super) fn env(record: &Value) -> Result<Vec<Variable>> {
    let env: Option<_> = field(record, "Env", "a list of variables")?;
    Ok(env.unwrap_or_default())
}

/// How many Compose files a record has besides the first (M07).
pub(super) fn further_files(record: &Value) -> Result<usize> {
    let files: Option<Vec<Value>> = field(record, "AdditionalFiles", "a list of files")?;
    Ok(files.map_or(0, |files| files.len()))
}

/// The Compose text of one record (M17).
pub(super) fn text(response: Unread) -> Result<String> {
    field(&read(response)?, "StackFileContent", "text")
}

impl Response {
    /// The object that was created or changed, if this is a 2xx that is JSON with a non-empty `Id` (C54).
    pub(super) fn object(&self) -> Option<Created> {
        if !self.is_success() {
            return None;
        }
        let json: Value = serde_json::from_slice(&self.body).ok()?;
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
}

/// A response as JSON. The error does not quote JSON, which can contain a secret.
pub(super) fn read(response: Unread) -> Result<Value> {
    let mut whole = Response::without_body(&response);
    let config = response.into_body().into_with_config().limit(LARGEST_BODY);
    let read = config.reader().read_to_end(&mut whole.body);
    read.map_err(truncated)?;
    let json = serde_json::from_slice(&whole.body);
    Ok(json.map_err(|error: serde_json::Error| {
        let reason = not_json(&error);
        if error.is_eof() && !whole.body.is_empty() {
            return unexpected(reason);
        }
        whole.in_another_form(reason)
    })?)
}

/// A field of an object, where a missing one is `null`. The error says that it is not `expected`, and does not quote it.
pub(super) fn field<T: DeserializeOwned>(json: &Value, name: &str, expected: &str) -> Result<T> {
    let fields = json
        .as_object()
        .ok_or_else(|| unexpected("expected an object"))?;
    let value = fields.get(name).unwrap_or(&Value::Null);
    let parsed = T::deserialize(value);
    Ok(parsed.map_err(|_| unexpected(&format!("its {name} is not {expected}")))?)
}

pub(super) fn unexpected(reason: &str) -> Failure {
    Failure::new(format!("cannot parse the response: {reason}"))
        .hint("check Portainer and any proxy in front of it")
}

/// `Type`: 1 swarm, 2 Compose, 3 Kubernetes.
fn kind(json: &Value) -> StackKind {
    match json["Type"].as_i64() {
        Some(1) => StackKind::Swarm,
        Some(3) => StackKind::Kubernetes,
        _ => StackKind::Compose,
    }
}

/// `Status`: 1 active, 2 inactive, 3 deploying, 4 error with its reason (N01).
fn deployment(json: &Value) -> Deployment {
    match json["Status"].as_i64() {
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
    let set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let (git, update) = (&json["GitConfig"], &json["AutoUpdate"]);
    let url = without_credentials(git["URL"].as_str().unwrap_or_default());
    let has_webhook = set(&update["Webhook"]) || set(&json["Webhook"]);
    let mut accesses = ["UserAccesses", "TeamAccesses", "Public"].into_iter();
    let is_shared = accesses.any(|key| set(&json["ResourceControl"][key]));
    let all = [
        (Carried::Git(url), set(git)),
        (Carried::AutoUpdate, set(&update["Interval"])),
        (Carried::Webhook, has_webhook),
        (Carried::Access, is_shared),
    ];
    let carried = all.into_iter().filter(|(_, is_carried)| *is_carried);
    carried.map(|(one, _)| one).collect()
}

/// The names of the record's variables.
fn variables(json: &Value) -> BTreeSet<String> {
    let env = json["Env"].as_array().into_iter().flatten();
    let names = env.filter_map(|variable| variable["name"].as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ureq::{Body, http};

    use super::*;

    fn response(body: &[u8]) -> Unread {
        http::Response::new(Body::builder().data(body.to_vec()))
    }

    fn variables(record: &[u8]) -> Result<Vec<Variable>> {
        env(&read(response(record))?)
    }

    fn listed(list: &str) -> Result<Vec<(String, i64)>, String> {
        let listed = records(response(list.as_bytes()), 1, Some(&["web"]))
            .map_err(|error| format!("{error:#}"))?;
        let key = |record: Record| (record.id, record.endpoint_id);
        let keys = listed.into_iter().map(|listed| listed.record.map(key));
        keys.collect()
    }

    #[test]
    fn records_of_the_list() {
        let list = br#"[{"Id":1,"Name":"web","EndpointId":2,"Type":1,"Status":3,"Env":[{"name":"A","value":"b"}],"Option":{"Prune":true}}]"#;
        let mut listed = records(response(list), 1, Some(&["web"])).expect("a list");
        assert_eq!(
            listed.pop().expect("an entry").record,
            Ok(Record {
                endpoint_id: 2,
                kind: StackKind::Swarm,
                deployment: Deployment::Deploying,
                variables: BTreeSet::from(["A".to_owned()]),
                prune: true,
                ..Record::with_id("1")
            })
        );
        assert!(listed.is_empty());
    }

    #[test]
    fn b07_one_unclear_entry_does_not_hide_the_others() {
        let list =
            br#"[{"Id":1,"Name":"a","EndpointId":2},{"Name":"b","EndpointId":1},{"Name":"c"}]"#;
        let listed = records(response(list), 1, None).expect("a list");
        let shown = listed
            .iter()
            .map(|container| (container.name.as_str(), container.record.is_ok()));
        assert_eq!(shown.collect::<Vec<_>>(), [("a", true), ("b", false)]);
        assert!(records(response(b"{}"), 1, None).is_err());
    }

    #[test]
    fn the_field_of_an_unexpected_type_is_named() {
        let cannot = |reason: &str| format!("cannot parse the response: {reason}");
        assert_eq!(listed("[{"), Err(cannot("it is incomplete")));
        assert_eq!(listed("[secret]"), Err(cannot("it is not JSON")));
        let no_list = "its Env is not a list of variables";
        for (body, reason) in [
            (r#"{"Env":3}"#, no_list),
            (r#"{"Env":["secret"]}"#, no_list),
            ("\"secret\"", "expected an object"),
            ("{", "it is incomplete"),
        ] {
            let error = variables(body.as_bytes()).expect_err(body);
            assert_eq!(format!("{error:#}"), cannot(reason));
        }
        let error = text(response(br#"{"StackFileContent":7}"#)).unwrap_err();
        let expected = cannot("its StackFileContent is not text");
        assert_eq!(format!("{error:#}"), expected);
    }

    #[test]
    fn b35_a_read_in_another_form_names_another_program() {
        let other =
            |what: &str| format!("something other than Portainer responded with status 200{what}");
        for (body, what) in [
            ("", ", without a body"),
            ("<html>\n", ": <html>"),
            ("Log in\n", ": Log in"),
            ("{}", ": expected a list of stacks"),
            ("{\"Id\":\"hunter2\"}", ": expected a list of stacks"),
            ("{\"message\":\"Log in\"}", ": Log in"),
        ] {
            assert_eq!(listed(body), Err(other(what)), "{body}");
            if !body.starts_with('{') {
                let error = variables(body.as_bytes()).expect_err(body);
                assert_eq!(format!("{error:#}"), other(what), "{body}");
            }
        }
    }

    #[test]
    fn a_secret_is_not_quoted() {
        let body = &br#"{"Env":"hunter2","StackFileContent":7}"#[..];
        for error in [variables(body).err(), text(response(body)).err()] {
            let error = format!("{:#}", error.expect("an error"));
            let start = "cannot parse the response: it";
            assert!(error.starts_with(start), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    proptest! {
        // Only that they return matters.
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let _ = records(response(&bytes), 1, Some(&["web"]));
            let _ = status(response(&bytes));
            let _ = variables(&bytes);
            let _ = text(response(&bytes));
            let created = Response { status: 200, body: bytes, ..Response::default() };
            let _ = created.object();
        }
    }
}
