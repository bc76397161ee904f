//! Generated output of an engine, for the property tests of both adapters.

use anyhow::Result;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value};

use crate::{engine::normalize, model::Container};

const KEYS: &[&str] = &[
    "Changes",
    "Config",
    "Destination",
    "HostIp",
    "HostPort",
    "ID",
    "IP",
    "Id",
    "Image",
    "Kind",
    "Labels",
    "Mounts",
    "Name",
    "Names",
    "NetworkSettings",
    "Path",
    "Ports",
    "PrivatePort",
    "PublicPort",
    "Source",
    "State",
    "Status",
    "Type",
    "Volumes",
    "Warnings",
    "message",
];

/// Text that may control a terminal.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9/]{0,12}",
        "\\PC{0,8}",
        Just("\u{1b}[2J\r\u{9b}".to_owned()),
        Just("<html>\u{1b}".to_owned()),
    ]
}

/// Any JSON, with the keys that the adapters read.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..70_000_u32).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            object(inner).prop_map(Value::from),
        ]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![9 => select(KEYS).prop_map(str::to_owned), 1 => text()];
    vec((key, value), 0..6).prop_map(|fields| fields.into_iter().collect())
}

/// A list of containers with IDs and anything else.
fn containers() -> impl Strategy<Value = Value> {
    let container = (text(), object(json())).prop_map(|(id, mut fields)| {
        fields.insert("Id".to_owned(), id.into());
        fields
    });
    vec(container, 0..6).prop_map(Value::from)
}

/// A list of changes, some of them with a wrong shape.
fn changes() -> impl Strategy<Value = Value> {
    let change = prop_oneof![
        9 => (text(), 0..4_u8).prop_map(|(path, kind)| serde_json::json!({ "Path": path, "Kind": kind })),
        1 => json(),
    ];
    vec(change, 0..6).prop_map(Value::from)
}

/// A response body, or the output of the command.
pub fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => containers().prop_map(|json| json.to_string().into_bytes()),
        2 => changes().prop_map(|json| json.to_string().into_bytes()),
        4 => json().prop_map(|json| json.to_string().into_bytes()),
        2 => text().prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..64),
    ]
}

/// Checks that a body was read as its containers, in the same order, or was rejected for a reason.
pub fn check_containers(body: &[u8], read: Result<Vec<Container>>) {
    let json = serde_json::from_slice(body).unwrap_or_default();
    match (read, json) {
        (Ok(mut containers), Value::Array(entries)) => {
            assert_eq!(containers.len(), entries.len());
            for (container, entry) in containers.iter_mut().zip(&entries) {
                // serde reads a struct from an array, too.
                let id = entry.get("Id").or_else(|| entry.get(0));
                assert_eq!(id.and_then(Value::as_str), Some(container.id.as_str()));
                normalize(container);
                assert!(container.names.iter().all(|name| !name.contains('/')));
            }
        }
        (Ok(containers), json) => assert!(containers.is_empty(), "from {json}"),
        (Err(error), json) => {
            check_error(&error);
            assert!(!is_list_of_ids(&json), "{error:#}");
        }
    }
}

/// Checks that an error cannot control the terminal.
pub fn check_error(error: &anyhow::Error) {
    let message = format!("{error:#}");
    assert!(!message.contains(char::is_control), "{message:?}");
}

/// Containers with nothing but an ID must be accepted.
fn is_list_of_ids(json: &Value) -> bool {
    let has_only_an_id = |entry: &Value| {
        let fields = entry.as_object();
        fields.is_some_and(|fields| {
            fields.len() == 1 && fields.get("Id").is_some_and(Value::is_string)
        })
    };
    json.as_array()
        .is_some_and(|entries| entries.iter().all(has_only_an_id))
}
