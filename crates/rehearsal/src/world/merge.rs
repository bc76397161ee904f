//! Merges a Compose file over another, and a service over one that it extends.

use serde_json::{Map, Value};

use super::{
    canonical::dependencies,
    values::{text, texts},
};

/// The keys whose mappings and lists are merged as lists.
const LISTS: [&str; 16] = [
    "networks.*.labels",
    "volumes.*.labels",
    "services.*.annotations",
    "services.*.build.args",
    "services.*.build.additional_contexts",
    "services.*.build.labels",
    "services.*.deploy.labels",
    "services.*.dns",
    "services.*.dns_opt",
    "services.*.dns_search",
    "services.*.env_file",
    "services.*.environment",
    "services.*.labels",
    "services.*.sysctls",
    "services.*.tmpfs",
    "services.*.extra_hosts",
];

/// The keys whose values replace each other.
const REPLACED: [&str; 3] = [
    "services.*.command",
    "services.*.entrypoint",
    "services.*.healthcheck.test",
];

/// Merges `over` over the value at `path`, in which `*` stands for the name of a service or of another resource.
pub(super) fn merge(base: &mut Value, over: Value, path: &str) {
    if REPLACED.contains(&path) {
        *base = over;
        return;
    }
    match path {
        _ if over.is_null() || base.is_null() => {}
        "services.*.build" => {
            as_mapping(base, |build| {
                Map::from_iter([("context".to_owned(), build.clone())])
            });
            let mut over = over;
            as_mapping(&mut over, |build| {
                Map::from_iter([("context".to_owned(), build.clone())])
            });
            return merge_mappings(base, over, path);
        }
        "services.*.depends_on" => {
            *base = dependencies(base);
            return merge_mappings(base, dependencies(&over), path);
        }
        "services.*.networks" => {
            let keys = |list: &Value| {
                texts(Some(list))
                    .into_iter()
                    .map(|key| (key, Value::Null))
                    .collect()
            };
            as_mapping(base, keys);
            let mut over = over;
            as_mapping(&mut over, keys);
            return merge_mappings(base, over, path);
        }
        "services.*.logging"
            if base
                .get("driver")
                .zip(over.get("driver"))
                .is_some_and(|(one, other)| one != other) =>
        {
            *base = over;
            return;
        }
        list if LISTS.contains(&list) => {
            let mut items = as_list(base);
            items.extend(as_list(&over));
            *base = items.into();
            return;
        }
        _ => {}
    }
    match (base, over) {
        (base @ Value::Object(_), over @ Value::Object(_)) => merge_mappings(base, over, path),
        (Value::Array(base), Value::Array(over)) => base.extend(over),
        (base, Value::Null) if !base.is_null() => {}
        (base, over) => *base = over,
    }
}

fn merge_mappings(base: &mut Value, over: Value, path: &str) {
    let (Value::Object(base), Value::Object(over)) = (base, over) else {
        return;
    };
    let is_section = ["services", "networks", "volumes", "secrets", "configs"].contains(&path);
    for (key, value) in over {
        let step = if is_section { "*" } else { &key };
        let below = format!("{path}.{step}");
        let below = below.trim_start_matches('.');
        match base.get_mut(&key) {
            Some(found) if !key.starts_with("x-") => merge(found, value, below),
            _ => {
                base.insert(key, value);
            }
        }
    }
}

fn as_mapping(value: &mut Value, of: impl Fn(&Value) -> Map<String, Value>) {
    if !value.is_object() {
        *value = of(value).into();
    }
}

/// The items of a list; of a mapping, `NAME=value`, sorted.
fn as_list(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(map) => {
            let items = map.iter().map(|(name, value)| match text(value) {
                Some(value) => format!("{name}={value}"),
                None => name.clone(),
            });
            let mut items: Vec<String> = items.collect();
            items.sort();
            items.into_iter().map(Value::from).collect()
        }
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    }
}
