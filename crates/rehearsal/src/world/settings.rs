//! `Config` and `HostConfig` of a container: the request, and the defaults of image and engine.

use serde_json::{Value, json};

use super::values::texts;

/// A string field; empty if it is missing.
pub(super) fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of[key].as_str().unwrap_or_default()
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Adds what is given to the defaults. An empty value replaces only a default.
fn filled_in(mut defaults: Value, given: &Value) -> Value {
    for (key, value) in given.as_object().into_iter().flatten() {
        if is_filled(value) || (!value.is_null() && defaults.get(key).is_some()) {
            defaults[key] = value.clone();
        }
    }
    defaults
}

/// `Config` of a create request as the engine stores it: all fields, with the defaults of the image. Includes `Env` and
/// `Labels`.
pub(super) fn config(body: &Value, image: &Value) -> Value {
    let defaults = json!({
        "Hostname": "", "Domainname": "", "User": "",
        "AttachStdin": false, "AttachStdout": false, "AttachStderr": false,
        "Tty": false, "OpenStdin": false, "StdinOnce": false,
        "Env": null, "Cmd": null, "Image": "", "Volumes": null,
        "WorkingDir": "", "Entrypoint": null, "OnBuild": null, "Labels": {},
    });
    let mut config = filled_in(defaults, body);
    if let Some(fields) = config.as_object_mut() {
        fields.retain(|key, _| !matches!(key.as_str(), "HostConfig" | "NetworkingConfig"));
    }
    let own = &image["Config"];
    for key in ["User", "WorkingDir", "StopSignal", "Healthcheck"] {
        if !config.get(key).is_some_and(is_filled) && own.get(key).is_some_and(is_filled) {
            config[key] = own[key].clone();
        }
    }
    for key in ["ExposedPorts", "Volumes", "Labels"] {
        let inherited = own.get(key).and_then(Value::as_object);
        for (name, value) in inherited.into_iter().flatten() {
            if config[key].get(name).is_none() {
                config[key][name] = value.clone();
            }
        }
    }
    let mut env = texts(&config["Env"]);
    for variable in texts(&own["Env"]) {
        let name = variable.split('=').next();
        if !env
            .iter()
            .any(|variable| variable.split('=').next() == name)
        {
            env.push(variable);
        }
    }
    config["Env"] = json!(env);
    if !is_filled(&config["Entrypoint"]) {
        if !is_filled(&config["Cmd"]) {
            config["Cmd"] = own["Cmd"].clone();
        }
        if config["Entrypoint"].is_null() {
            config["Entrypoint"] = own["Entrypoint"].clone();
        }
    }
    config
}

/// `HostConfig` as the engine stores it: all fields, with the defaults of the engine.
pub(super) fn host_config(given: &Value) -> Value {
    let defaults = serde_json::from_str(include_str!("host_config.json")).unwrap_or_default();
    let mut host = filled_in(defaults, given);
    let memory = host["Memory"].as_i64().unwrap_or(0);
    if memory > 0 && host["MemorySwap"] == 0 {
        host["MemorySwap"] = json!(2 * memory);
    }
    host
}
