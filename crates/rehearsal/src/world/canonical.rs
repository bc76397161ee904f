//! The canonical form of a service: what may be written in short is written in long, and what is implied is there.

use std::collections::BTreeMap;

use composefile::{
    path::clean,
    services::{is_host_path, is_remote_context},
};
use serde_json::{Map, Value, json};

use super::{
    context::Context,
    deployment::Deployment,
    ports,
    typed::number,
    values::{many, pairs, text, texts},
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
const UNIQUE: [&str; 21] = [
    "annotations",
    "cap_add",
    "cap_drop",
    "configs",
    "devices",
    "dns",
    "dns_opt",
    "dns_search",
    "env_file",
    "environment",
    "expose",
    "labels",
    "links",
    "ports",
    "profiles",
    "secrets",
    "sysctls",
    "tmpfs",
    "volumes",
    "args",
    "aliases",
];

/// The variables of the shell and of `.env`.
type Variables = BTreeMap<String, String>;

/// Makes a service canonical.
pub(super) fn service(
    name: &str,
    service: &mut Map<String, Value>,
    context: &Context<'_>,
    form: Form,
) -> Result<(), String> {
    long(name, service, context.deployment, context.variables, form)?;
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
    deployment: &Deployment,
    variables: &Variables,
    form: Form,
) -> Result<(), String> {
    let host = |path: &str| deployment.absolute(path);
    if let Some(build) = service.get_mut("build").filter(|build| !build.is_null()) {
        *build = of_build(build, deployment, variables);
    }
    for (key, value) in service.iter_mut() {
        let written = value.clone();
        let items = many(Some(&written)).into_iter();
        *value = match key.as_str() {
            _ if written.is_null() => continue,
            "dns" => items.cloned().collect(),
            "env_file" => items
                .map(|item| {
                    let path = text(item.get("path").unwrap_or(item)).unwrap_or_default();
                    let mut file = Map::from_iter([
                        ("path".to_owned(), json!(host(&path))),
                        ("required".to_owned(), json!(true)),
                    ]);
                    file.extend(
                        item.as_object()
                            .cloned()
                            .into_iter()
                            .flatten()
                            .filter(|(key, _)| key != "path"),
                    );
                    Value::from(file)
                })
                .collect(),
            "depends_on" => dependencies(&written),
            "networks" => match &written {
                Value::Array(_) => items
                    .filter_map(text)
                    .map(|key| (key, Value::Null))
                    .collect(),
                map => map.clone(),
            },
            "secrets" | "configs" => items.map(|item| file(key, item, form)).collect(),
            "devices" if form != Form::Program => items.map(device).collect(),
            "gpus" => requests(
                &match &written {
                    Value::String(count) => json!([{"count": count}]),
                    list => list.clone(),
                },
                form,
            ),
            "ports" => {
                let ports = items.map(|item| ports::long(name, item));
                match ports.collect::<Result<Vec<_>, _>>() {
                    // A variable is no port.
                    Err(_) if form == Form::Model => continue,
                    ports => ports?.into_iter().flatten().collect(),
                }
            }
            "volumes" => items
                .map(|item| mount(item, deployment, form))
                .collect::<Result<_, _>>()?,
            "pull_policy" if written == "if_not_present" => json!("missing"),
            "environment" => resolved(&written, variables, true),
            _ => continue,
        };
    }
    if let Some(devices) = service
        .get_mut("deploy")
        .and_then(|deploy| deploy.pointer_mut("/resources/reservations/devices"))
    {
        *devices = requests(devices, form);
    }
    let watch = service
        .get_mut("develop")
        .and_then(|develop| develop.get_mut("watch"));
    for rule in watch.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(path) = text(&rule["path"]) {
            rule["path"] = json!(host(&path));
        }
        if !matches!(form, Form::Program | Form::Model) && rule.get("exec").is_none() {
            rule["exec"] = json!({});
        }
    }
    Ok(())
}

fn of_build(build: &Value, deployment: &Deployment, variables: &Variables) -> Value {
    let mut build = match build {
        Value::Object(build) => build.clone(),
        path => Map::from_iter([("context".to_owned(), path.clone())]),
    };
    let folder = build
        .get("context")
        .and_then(text)
        .unwrap_or_else(|| ".".to_owned());
    let absolute = |path: &str| {
        if is_remote_context(path) || path.contains("://") {
            path.to_owned()
        } else {
            deployment.absolute(path)
        }
    };
    build.insert("context".to_owned(), json!(absolute(&folder)));
    let is_set = |key: &str| build.get(key).is_some_and(|value| !value.is_null());
    if !is_set("dockerfile") && !is_set("dockerfile_inline") {
        build.insert("dockerfile".to_owned(), json!("Dockerfile"));
    }
    if let Some(args) = build.get_mut("args") {
        *args = resolved(args, variables, false);
    }
    if let Some(more) = build.get_mut("additional_contexts") {
        let all = pairs(Some(more)).into_iter();
        *more = all
            .map(|(key, path)| (key, json!(path.map(|path| absolute(&path)))))
            .collect();
    }
    if let Some(secrets) = build.get_mut("secrets") {
        *secrets = many(Some(secrets))
            .into_iter()
            .map(|item| file("secrets", item, Form::Printed))
            .collect();
    }
    if let Some(Value::Array(keys)) = build.get("ssh") {
        let keys = keys.iter().filter_map(text);
        let keys = keys.map(|key| match key.split_once('=') {
            Some((id, path)) => (id.to_owned(), json!(path)),
            None => (key, Value::Null),
        });
        let keys = keys.collect();
        build.insert("ssh".to_owned(), keys);
    }
    build.into()
}

/// Gives names without a value that of the shell. Others stay if they are kept.
fn resolved(written: &Value, variables: &Variables, keeps: bool) -> Value {
    let known = |name: &str| variables.get(name);
    match written {
        Value::Object(map) => {
            let all =
                map.iter().map(
                    |(name, value)| match known(name).filter(|_| value.is_null()) {
                        Some(value) => (name.clone(), json!(value)),
                        None => (name.clone(), value.clone()),
                    },
                );
            all.filter(|(_, value)| keeps || !value.is_null()).collect()
        }
        list => {
            let items = texts(Some(list)).into_iter();
            items
                .filter_map(|item| match known(&item).filter(|_| !item.contains('=')) {
                    Some(value) => Some(format!("{item}={value}")),
                    None => (keeps || item.contains('=')).then_some(item),
                })
                .collect()
        }
    }
}

/// The mapping of `depends_on`.
pub(super) fn dependencies(written: &Value) -> Value {
    let plain = json!({"condition": "service_started", "required": true});
    match written {
        Value::Object(map) => map
            .iter()
            .map(|(name, how)| {
                let mut whole = plain.clone();
                for (key, value) in how.as_object().into_iter().flatten() {
                    whole[key] = value.clone();
                }
                (name.clone(), whole)
            })
            .collect(),
        list => texts(Some(list))
            .into_iter()
            .map(|name| (name, plain.clone()))
            .collect(),
    }
}

/// Adds the services whose namespaces, volumes or links a service uses.
fn depend_on_implied(service: &mut Map<String, Value>) {
    let mut all = Vec::new();
    for link in texts(service.get("links")) {
        all.push((link.split(':').next().unwrap_or_default().to_owned(), true));
    }
    for key in ["network_mode", "ipc", "pid", "uts", "cgroup"] {
        let mode = service.get(key).and_then(text).unwrap_or_default();
        all.extend(
            mode.strip_prefix("service:")
                .map(|of| (of.to_owned(), true)),
        );
    }
    for from in texts(service.get("volumes_from")) {
        if !from.starts_with("container:") {
            all.push((from.split(':').next().unwrap_or_default().to_owned(), false));
        }
    }
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
    let target = parts
        .next()
        .filter(|target| !target.is_empty())
        .unwrap_or(source);
    let permissions = parts.next().unwrap_or("rwm");
    json!({"source": source, "target": target, "permissions": permissions})
}

/// Requests for devices: without a count, for all.
fn requests(list: &Value, form: Form) -> Value {
    let mut list = list.clone();
    for request in list.as_array_mut().into_iter().flatten() {
        if form != Form::Program
            && request.get("count").is_none()
            && request.get("device_ids").is_none()
        {
            request["count"] = json!("all");
        }
    }
    list
}

/// A mount in the long syntax.
fn mount(item: &Value, deployment: &Deployment, form: Form) -> Result<Value, String> {
    let mut mount = match item.as_str() {
        None => item.clone(),
        Some(short) => short_mount(short)?,
    };
    if mount["type"] == "bind" {
        let source = text(&mount["source"]).unwrap_or_default();
        mount["source"] = json!(deployment.absolute(&source));
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
    let mut parts: Vec<String> = Vec::new();
    for part in short.split(':') {
        match parts.last_mut() {
            // The letter of a drive.
            Some(drive) if drive.len() == 1 && drive.chars().all(char::is_alphabetic) => {
                *drive = format!("{drive}:{part}");
            }
            _ => parts.push(part.to_owned()),
        }
    }
    if parts.len() > 3 {
        return Err(format!("invalid spec: {short}: too many colons"));
    }
    if parts.iter().any(String::is_empty) {
        return Err(format!(
            "invalid spec: {short}: empty section between colons"
        ));
    }
    let options = parts.get(2).map_or("", String::as_str);
    let options: Vec<&str> = options.split(',').collect();
    let source = parts.first().filter(|_| parts.len() > 1);
    let target = parts.get(1).or(parts.first()).map_or("", String::as_str);
    let is_drive = |source: &str| source.get(1..2) == Some(":");
    let is_bind = source.is_some_and(|source| is_host_path(source) || is_drive(source));
    let target = if target.starts_with('/') {
        clean(target)
    } else {
        target.to_owned()
    };
    let mut mount = json!({"type": if is_bind { "bind" } else { "volume" }, "target": target});
    if let Some(source) = source {
        mount["source"] = json!(source);
    }
    if options.contains(&"ro") {
        mount["read_only"] = json!(true);
    }
    let mut bind = Map::new();
    for (key, values) in [("selinux", &["z", "Z"][..]), ("propagation", &PROPAGATIONS)] {
        let given = options.iter().rfind(|option| values.contains(option));
        bind.extend(given.map(|option| (key.to_owned(), json!(option))));
    }
    if is_bind {
        bind.insert("create_host_path".to_owned(), json!(true));
    }
    if !bind.is_empty() {
        mount["bind"] = bind.into();
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
            Value::Array(items) if UNIQUE.contains(&key.as_str()) => {
                let mut kept: Vec<(String, Value)> = Vec::new();
                for item in std::mem::take(items) {
                    let identity = identity(key, &item);
                    match kept.iter_mut().find(|(other, _)| *other == identity) {
                        Some((_, other)) => *other = item,
                        None => kept.push((identity, item)),
                    }
                }
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
            format!(
                "{address} {:?} {:?} {:?}",
                of("published"),
                of("target"),
                of("protocol")
            )
        }
        _ => of("target")
            .or_else(|| of("path"))
            .or_else(|| of("source"))
            .unwrap_or_default(),
    }
}
