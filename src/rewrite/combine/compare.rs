//! Compares two configurations that Compose printed: one for the stack's files, one for what Portainer gets.

use composefile::{path::clean, services::is_remote_context};
use serde_json::{Map, Value};

use crate::rewrite::faithful::Runs;

/// What the configuration of a stack must be in Portainer: without `build`, but with its image (M11), and without
/// `label_file`, whose labels Compose has added already. `env` is the text of `.env`.
pub fn expected(mut config: Value, project: &str, env: &str) -> Value {
    let compatible = env.contains("COMPOSE_COMPATIBILITY=true");
    let separator = if compatible { '_' } else { '-' };
    without_fragments(&mut config);
    let services = config["services"].as_object_mut().map(Map::iter_mut);
    for (name, service) in services.into_iter().flatten() {
        let Some(service) = service.as_object_mut() else {
            continue;
        };
        service.remove("label_file");
        if !service.get("build").is_some_and(is_local) {
            continue;
        }
        service.remove("build");
        let image = format!("{project}{separator}{name}");
        service.entry("image").or_insert_with(|| Value::from(image));
        let policy = service.get_mut("pull_policy");
        if let Some(policy) = policy.filter(|policy| *policy == "build") {
            *policy = "missing".into();
        }
    }
    without_unused_secrets(&mut config);
    config
}

/// Compose leaves out what no service uses, such as what only a build used.
fn without_unused_secrets(config: &mut Value) {
    let services = config["services"].as_object().into_iter().flatten();
    let used: Vec<Value> = services
        .flat_map(|(_, service)| [&service["secrets"], &service["build"]["secrets"]])
        .flat_map(|secrets| secrets.as_array().into_iter().flatten())
        .map(|secret| secret["source"].clone())
        .collect();
    let Some(secrets) = config.get_mut("secrets").and_then(Value::as_object_mut) else {
        return;
    };
    secrets.retain(|name, _| used.iter().any(|used| used == name));
    if secrets.is_empty()
        && let Some(config) = config.as_object_mut()
    {
        config.remove("secrets");
    }
}

/// Removes fragments below `x-` keys, which mean nothing by themselves.
pub fn without_fragments(config: &mut Value) {
    if let Some(root) = config.as_object_mut() {
        root.retain(|key, _| !key.starts_with("x-"));
    }
}

/// Whether a build reads a folder of the host.
pub fn is_local(build: &Value) -> bool {
    let context = build["context"].as_str().unwrap_or_default();
    let mut others = ["additional_contexts", "secrets", "ssh"].iter();
    others.any(|key| build.get(key).is_some()) || !is_remote_context(context)
}

/// The first key that Compose reads in another way in the text that is `sent` than in the files, apart from what was meant to
/// change: `services.web.ports`. `runs` is what was written into the text. `env` is the text of its variables.
pub fn unintended(
    files: &Value,
    sent: &Value,
    (project, env): (&str, &str),
    runs: &Runs,
) -> Option<String> {
    let mut expected = expected(files.clone(), project, env);
    let mut sent = sent.clone();
    without_fragments(&mut sent);
    for (name, own) in &runs.services {
        for (variable, value) in &own.variables {
            expected["services"][name]["environment"][variable] = value.replace('$', "$$").into();
        }
        for (target, volume) in &own.volumes {
            let is_at = |mount: &Value| {
                mount["target"]
                    .as_str()
                    .is_some_and(|at| clean(at) == *target)
            };
            let of = |config: &Value| mounts(config, name).find(|mount| is_at(mount)).cloned();
            let source = of(&sent).and_then(|mount| Some(mount["source"].as_str()?.to_owned()));
            let section = &sent["volumes"][source.unwrap_or_default()];
            if section["external"] == true && section["name"] == **volume {
                for config in [&mut expected, &mut sent] {
                    retain_mounts(config, name, |mount| !is_at(mount));
                }
            }
        }
    }
    let named: Vec<&String> = runs
        .services
        .values()
        .flat_map(|own| own.volumes.values())
        .collect();
    let is_new = |volume: &Value| named.iter().any(|name| volume["name"] == ***name);
    for config in [&mut expected, &mut sent] {
        if let Some(volumes) = config["volumes"].as_object_mut() {
            volumes.retain(|_, volume| !is_new(volume));
        }
        for name in &runs.long_binds {
            shorten_binds(config, name);
        }
        let empty = [Value::Null, Value::Object(Map::new())];
        config
            .as_object_mut()?
            .retain(|_, section| !empty.contains(section));
    }
    let difference = differences(&expected, &sent).into_iter().next();
    difference.map(|(path, ..)| path[..path.len().min(3)].join("."))
}

/// The mounts of a service.
fn mounts<'v>(config: &'v Value, service: &str) -> impl Iterator<Item = &'v Value> {
    let mounts = config["services"][service]["volumes"].as_array();
    mounts.into_iter().flatten()
}

fn retain_mounts(config: &mut Value, service: &str, is_kept: impl Fn(&Value) -> bool) {
    let service = config["services"][service].as_object_mut();
    let Some(service) = service else { return };
    if let Some(mounts) = service.get_mut("volumes").and_then(Value::as_array_mut) {
        mounts.retain(|mount| is_kept(mount));
        if mounts.is_empty() {
            service.remove("volumes");
        }
    }
}

/// Removes from the mounts of a service what the long syntax of bind mounts changes (B39).
fn shorten_binds(config: &mut Value, service: &str) {
    let mounts = config["services"][service]["volumes"].as_array_mut();
    for mount in mounts.into_iter().flatten() {
        if let Some(target) = mount["target"].as_str().map(clean) {
            mount["target"] = target.into();
        }
        if let Some(bind) = mount["bind"].as_object_mut() {
            bind.remove("create_host_path");
        }
        let empty = [Value::Null, Value::Object(Map::new())];
        if let Some(mount) = mount.as_object_mut() {
            mount.retain(|_, value| !empty.contains(value));
        }
    }
}

/// The keys that lead to a difference, and what either configuration has there.
pub type Difference<'v> = (Vec<String>, Option<&'v Value>, Option<&'v Value>);

/// Every difference.
pub fn differences<'v>(a: &'v Value, b: &'v Value) -> Vec<Difference<'v>> {
    let mut found = Vec::new();
    walk(Some(a), Some(b), &mut Vec::new(), &mut found);
    found
}

fn walk<'v>(
    a: Option<&'v Value>,
    b: Option<&'v Value>,
    path: &mut Vec<String>,
    found: &mut Vec<Difference<'v>>,
) {
    let mut below = |step: String, a, b| {
        path.push(step);
        walk(a, b, path, found);
        path.pop();
    };
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                below(key.clone(), a.get(key), b.get(key));
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                below(at.to_string(), Some(a), Some(b));
            }
        }
        _ if a == b => {}
        _ => found.push((path.clone(), a, b)),
    }
}
