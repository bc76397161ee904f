//! The canonical form of a service: what may be written in short is written in long, and what is implied is there.

use composefile::{
    path::clean,
    services::{is_host_path, is_remote_context, split_at_colons},
};
use serde_json::{Map, Value, json};

use super::{
    compose_files::ComposeFiles,
    ports,
    typed::number,
    values::{entries, many, pairs, text, texts},
};

/// For whom a service is resolved. The versions differ in what they fill in (N36).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// What `config` prints: as Debian's build of the program.
    Printed,
    /// The same without interpolation.
    Model,
    /// What the program hashes: as 2.29.2, which is in the older Portainer.
    Program,
    /// What the library hashes.
    Library,
}

/// The lists that hold each name, target or pair once: a later item replaces an earlier one.
const UNIQUE: &str = "annotations cap_add cap_drop configs devices dns dns_opt dns_search env_file environment expose \
                      labels links ports profiles secrets sysctls tmpfs volumes args aliases";

/// Makes a service canonical.
pub(super) fn service(
    name: &str,
    service: &mut Map<String, Value>,
    files: &ComposeFiles<'_>,
    form: Form,
) -> Result<(), String> {
    long(name, service, files, form)?;
    unique(service);
    depend_on_implied(service);
    let is_on_none = |networks: &Value| networks.as_object().is_none_or(Map::is_empty);
    if !service.contains_key("network_mode") && service.get("networks").is_none_or(is_on_none) {
        service.insert("networks".to_owned(), json!({"default": null}));
    }
    Ok(())
}

/// Writes a service in long, and makes its paths absolute.
pub(super) fn long(
    name: &str,
    service: &mut Map<String, Value>,
    files: &ComposeFiles<'_>,
    form: Form,
) -> Result<(), String> {
    for (key, value) in service.iter_mut().filter(|(_, value)| !value.is_null()) {
        let items = many(value).iter();
        *value = match key.as_str() {
            "build" => build(value, files),
            "deploy" => {
                if let Some(devices) = value.pointer_mut("/resources/reservations/devices") {
                    *devices = requests(devices, form);
                }
                continue;
            }
            "develop" => {
                let rules = value.get_mut("watch").and_then(Value::as_array_mut);
                for rule in rules.into_iter().flatten() {
                    if let Some(path) = text(&rule["path"]) {
                        rule["path"] = json!(files.absolute(&path));
                    }
                    if !matches!(form, Form::Program | Form::Model) && rule["exec"].is_null() {
                        rule["exec"] = json!({});
                    }
                }
                continue;
            }
            "dns" => items.cloned().collect(),
            "env_file" => items
                .map(|item| {
                    let path = text(item.get("path").unwrap_or(item)).unwrap_or_default();
                    let file = json!({"path": files.absolute(&path), "required": true});
                    with(file, entries(item).filter(|(key, _)| *key != "path"))
                })
                .collect(),
            "depends_on" => dependencies(value),
            "networks" if value.is_array() => keys(value),
            "secrets" | "configs" => items.map(|item| file(key, item, form)).collect(),
            "devices" if form != Form::Program => items.map(device).collect(),
            "gpus" if value.is_string() => requests(&json!([{"count": value}]), form),
            "gpus" => requests(value, form),
            "ports" => {
                let ports = items.map(|item| ports::long(name, item));
                match ports.collect::<Result<Vec<_>, _>>() {
                    // A variable is no port.
                    Err(_) if form == Form::Model => continue,
                    ports => ports?.into_iter().flatten().collect(),
                }
            }
            "volumes" => items
                .map(|item| mount(item, files, form))
                .collect::<Result<_, _>>()?,
            "pull_policy" if *value == "if_not_present" => json!("missing"),
            "environment" => resolved(value, files, true),
            _ => continue,
        };
    }
    Ok(())
}

/// A mapping with further entries, which replace those of the same key.
fn with<'v>(mut map: Value, more: impl Iterator<Item = (&'v String, &'v Value)>) -> Value {
    for (key, value) in more {
        map[key] = value.clone();
    }
    map
}

/// The mapping of a list of keys.
pub(super) fn keys(list: &Value) -> Value {
    let keys = texts(list).into_iter();
    keys.map(|key| (key, Value::Null)).collect()
}

fn build(build: &Value, files: &ComposeFiles<'_>) -> Value {
    let mut build = match build {
        Value::Object(_) => build.clone(),
        path => json!({"context": path}),
    };
    let absolute = |path: &str| {
        if is_remote_context(path) || path.contains("://") {
            path.to_owned()
        } else {
            files.absolute(path)
        }
    };
    let folder = build.get("context").and_then(text);
    build["context"] = json!(absolute(folder.as_deref().unwrap_or(".")));
    let is_set = |key: &str| build.get(key).is_some_and(|value| !value.is_null());
    if !is_set("dockerfile") && !is_set("dockerfile_inline") {
        build["dockerfile"] = json!("Dockerfile");
    }
    for (key, value) in build.as_object_mut().into_iter().flatten() {
        *value = match key.as_str() {
            "args" => resolved(value, files, false),
            "additional_contexts" => pairs(value)
                .into_iter()
                .map(|(key, path)| (key, json!(path.map(|path| absolute(&path)))))
                .collect(),
            "secrets" => many(value)
                .iter()
                .map(|item| file("secrets", item, Form::Printed))
                .collect(),
            "ssh" if value.is_array() => json!(pairs(value)),
            _ => continue,
        };
    }
    build
}

/// Gives names without a value that of the shell. Others stay if they are kept.
fn resolved(written: &Value, files: &ComposeFiles<'_>, keeps: bool) -> Value {
    let known = |name: &str| files.shell.get(name);
    if written.is_object() {
        let all = entries(written).map(|(name, value)| match known(name) {
            Some(known) if value.is_null() => (name.clone(), json!(known)),
            _ => (name.clone(), value.clone()),
        });
        return all.filter(|(_, value)| keeps || !value.is_null()).collect();
    }
    let items = texts(written).into_iter();
    let items = items.filter_map(|item| match known(&item) {
        _ if item.contains('=') => Some(item),
        Some(value) => Some(format!("{item}={value}")),
        None => keeps.then_some(item),
    });
    items.collect()
}

/// The mapping of `depends_on`.
pub(super) fn dependencies(written: &Value) -> Value {
    let plain = json!({"condition": "service_started", "required": true});
    let named = keys(written);
    let all = entries(if written.is_object() { written } else { &named });
    all.map(|(name, how)| (name.clone(), with(plain.clone(), entries(how))))
        .collect()
}

/// Adds the services whose namespaces, volumes or links a service uses.
fn depend_on_implied(service: &mut Map<String, Value>) {
    let first = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let list = |key: &str| service.get(key).map(texts).unwrap_or_default().into_iter();
    let mut all: Vec<_> = list("links").map(|link| (first(&link), true)).collect();
    for mode in ["network_mode", "ipc", "pid", "uts", "cgroup"].map(list) {
        let of = mode.filter_map(|mode| mode.strip_prefix("service:").map(str::to_owned));
        all.extend(of.map(|of| (of, true)));
    }
    let volumes = list("volumes_from").filter(|from| !from.starts_with("container:"));
    all.extend(volumes.map(|from| (first(&from), false)));
    for (name, restart) in all {
        let found = service.entry("depends_on").or_insert_with(|| json!({}));
        if found.get(&name).is_none() {
            found[name] =
                json!({"condition": "service_started", "restart": restart, "required": true});
        }
    }
}

fn file(kind: &str, item: &Value, form: Form) -> Value {
    let mut file = match item {
        Value::Object(_) => item.clone(),
        source => json!({"source": source}),
    };
    if kind == "secrets" && file.get("target").is_none() {
        let source = text(&file["source"]).unwrap_or_default();
        file["target"] = json!(format!("/run/secrets/{source}"));
    }
    if let Some(mode) = file.get_mut("mode") {
        let octal = match &*mode {
            Value::String(digits) => u64::from_str_radix(digits, 8).ok(),
            number => number.as_u64(),
        };
        *mode = match octal {
            Some(octal) if form == Form::Library => json!(format!("0{octal:o}")),
            // A text is a decimal number to older versions.
            _ => number(mode),
        };
    }
    file
}

fn device(item: &Value) -> Value {
    let Some(short) = item.as_str() else {
        return item.clone();
    };
    let mut parts = short.split(':');
    let source = parts.next().unwrap_or_default();
    let target = parts.next().filter(|target| !target.is_empty());
    let permissions = parts.next().unwrap_or("rwm");
    json!({"source": source, "target": target.unwrap_or(source), "permissions": permissions})
}

/// Requests for devices: without a count, for all.
fn requests(list: &Value, form: Form) -> Value {
    let mut list = list.clone();
    for request in list.as_array_mut().into_iter().flatten() {
        let is_set = |key: &str| request.get(key).is_some();
        if form != Form::Program && !is_set("count") && !is_set("device_ids") {
            request["count"] = json!("all");
        }
    }
    list
}

/// A mount in the long syntax.
fn mount(item: &Value, files: &ComposeFiles<'_>, form: Form) -> Result<Value, String> {
    let mut mount = match item.as_str() {
        None => item.clone(),
        Some(short) => short_mount(short)?,
    };
    if mount["type"] == "bind" {
        let source = text(&mount["source"]).unwrap_or_default();
        mount["source"] = json!(files.absolute(&source));
    }
    if form != Form::Program
        && let Some(target) = text(&mount["target"]).filter(|target| target.starts_with('/'))
    {
        mount["target"] = json!(clean(&target));
    }
    Ok(mount)
}

/// `[source:]target[:options]`
fn short_mount(short: &str) -> Result<Value, String> {
    const PROPAGATIONS: [&str; 6] = [
        "rprivate", "private", "rshared", "shared", "rslave", "slave",
    ];
    let (source, target, options) = match split_at_colons(short)[..] {
        ref parts if parts.iter().any(|part| part.is_empty()) && parts.len() < 4 => {
            let why = "empty section between colons";
            return Err(format!("invalid spec: {short}: {why}"));
        }
        [target] => (None, target, ""),
        [source, target] => (Some(source), target, ""),
        [source, target, options] => (Some(source), target, options),
        _ => return Err(format!("invalid spec: {short}: too many colons")),
    };
    let options: Vec<&str> = options.split(',').collect();
    let is_bind = source.is_some_and(is_host_path);
    let kind = if is_bind { "bind" } else { "volume" };
    let mut mount = if target.starts_with('/') {
        json!({"type": kind, "target": clean(target)})
    } else {
        json!({"type": kind, "target": target})
    };
    if let Some(source) = source {
        mount["source"] = json!(source);
    }
    if options.contains(&"ro") {
        mount["read_only"] = json!(true);
    }
    for (key, values) in [("selinux", &["z", "Z"][..]), ("propagation", &PROPAGATIONS)] {
        if let Some(given) = options.iter().rfind(|option| values.contains(option)) {
            mount["bind"][key] = json!(given);
        }
    }
    if is_bind {
        mount["bind"]["create_host_path"] = json!(true);
    }
    if options.contains(&"nocopy") {
        mount["volume"] = json!({"nocopy": true});
    } else if !is_bind && short.len() > 2 {
        mount["volume"] = json!({});
    }
    Ok(mount)
}

/// Keeps the last of several items for the same name, target or pair, in the place of the first.
fn unique(map: &mut Map<String, Value>) {
    for (key, value) in map.iter_mut() {
        match value {
            Value::Object(below) if !key.starts_with("x-") => unique(below),
            Value::Array(items) if UNIQUE.split(' ').any(|list| list == key) => {
                let all = std::mem::take(items).into_iter();
                // A map keeps the place of a key that is there.
                let kept: Map<_, _> = all.map(|item| (identity(key, &item), item)).collect();
                *items = kept.into_iter().map(|(_, item)| item).collect();
            }
            _ => {}
        }
    }
}

fn identity(list: &str, item: &Value) -> String {
    let of = |key: &str| item.get(key).and_then(text);
    match (list, text(item)) {
        ("expose", Some(port)) => port,
        (_, Some(pair)) => pair.split('=').next().unwrap_or_default().to_owned(),
        ("ports", None) => {
            let address = of("host_ip").unwrap_or_else(|| "0.0.0.0".to_owned());
            let rest = ["published", "target", "protocol"].map(of);
            format!("{address} {rest:?}")
        }
        _ => ["target", "path", "source"]
            .into_iter()
            .find_map(of)
            .unwrap_or_default(),
    }
}
