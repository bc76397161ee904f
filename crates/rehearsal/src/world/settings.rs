//! `Config` and `HostConfig` of a container: the request, and the defaults of image and engine.

use serde_json::{Map, Value, json};

use super::{entities::Image, errors::EngineError};

/// The parts of a create request.
pub(super) struct Given {
    pub config: Value,
    pub host_config: Value,
    /// `EndpointsConfig`, by the network's name.
    pub endpoints: Map<String, Value>,
}

impl Given {
    /// Splits and validates the body.
    pub fn read(body: &Value) -> Result<Self, EngineError> {
        let kind = match body {
            Value::Object(_) | Value::Null => None,
            Value::Array(_) => Some("array"),
            Value::String(_) => Some("string"),
            Value::Number(_) => Some("number"),
            Value::Bool(_) => Some("bool"),
        };
        if let Some(kind) = kind {
            let into = "runconfig.ContainerConfigWrapper";
            return Err(EngineError::new(
                500,
                format!("json: cannot unmarshal {kind} into Go value of type {into}"),
            ));
        }
        let mut config = body.as_object().cloned().unwrap_or_default();
        let host_config = config.remove("HostConfig").unwrap_or_default();
        let networking = config.remove("NetworkingConfig").unwrap_or_default();
        if config.is_empty() {
            let text = "Config cannot be empty in order to create a container";
            return Err(EngineError::new(400, text));
        }
        check_types(&config, &host_config)?;
        let endpoints = networking.get("EndpointsConfig").and_then(Value::as_object);
        let endpoints = endpoints.cloned().unwrap_or_default();
        if endpoints.len() > 1 {
            let mut names = endpoints.keys().cloned().collect::<Vec<_>>();
            names.sort();
            let text = "Container cannot be connected to network endpoints:";
            return Err(EngineError::new(
                400,
                format!("{text} {}", names.join(", ")),
            ));
        }
        let given = Self {
            config: Value::Object(config),
            host_config,
            endpoints,
        };
        given.check_conflicts()?;
        Ok(given)
    }

    /// Rejects options that conflict with the network or UTS mode.
    fn check_conflicts(&self) -> Result<(), EngineError> {
        let (config, host) = (&self.config, &self.host_config);
        let mode = text(host, "NetworkMode");
        let is_container = mode.starts_with("container:");
        if is_container && mode == "container:" {
            let text = "Invalid network mode: invalid container format container:<name|id>";
            return Err(EngineError::new(400, text));
        }
        let host_name = !text(config, "Hostname").is_empty();
        let filled = |of: &Value, key: &str| of.get(key).is_some_and(is_filled);
        let publishes = filled(host, "PortBindings") || host["PublishAllPorts"] == true;
        let found = [
            (is_container && host_name, "hostname and the network mode"),
            (
                is_container && filled(host, "Links"),
                "container type network can't be used with links. This would result in undefined behavior",
            ),
            (
                is_container && filled(host, "Dns"),
                "dns and the network mode",
            ),
            (
                is_container && filled(host, "ExtraHosts"),
                "custom host-to-IP mapping and the network mode",
            ),
            (
                (is_container || mode == "host") && !text(config, "MacAddress").is_empty(),
                "mac-address and the network mode",
            ),
            (
                is_container && publishes,
                "port publishing and the container type network mode",
            ),
            (
                is_container && filled(config, "ExposedPorts"),
                "port exposing and the container type network mode",
            ),
            (
                text(host, "UTSMode") == "host" && host_name,
                "hostname and the UTS mode",
            ),
        ];
        match found.into_iter().find(|(found, _)| *found) {
            Some((_, what)) => Err(EngineError::new(
                400,
                format!("conflicting options: {what}"),
            )),
            None => Ok(()),
        }
    }
}

/// A string field; empty if it is missing.
pub(super) fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The strings of a list.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The strings of a mapping.
pub(super) fn pairs(value: Option<&Value>) -> impl Iterator<Item = (String, String)> + '_ {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
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

fn check_types(config: &Map<String, Value>, host: &Value) -> Result<(), EngineError> {
    let lists = ["Env"].map(|key| (key, config.get(key), "[]string"));
    let maps = [
        ("Labels", config.get("Labels"), "map[string]string"),
        ("Volumes", config.get("Volumes"), "map[string]struct {}"),
    ];
    let hosts = ["Binds", "CapAdd", "CapDrop"].map(|key| (key, host.get(key), "[]string"));
    for (key, value, wanted) in lists.into_iter().chain(maps).chain(hosts) {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            continue;
        };
        let fits = if wanted.starts_with("map") {
            value.is_object()
        } else {
            value.is_array()
        };
        if !fits {
            let kind = match value {
                Value::Array(_) => "array",
                Value::Object(_) => "object",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            return Err(EngineError::new(
                500,
                format!(
                    "json: cannot unmarshal {kind} into Go struct field ContainerConfigWrapper.{key} of \
                     type {wanted}"
                ),
            ));
        }
    }
    Ok(())
}

/// `Config` as the engine stores it: all fields, with the defaults of the image. Includes `Env` and `Labels`.
pub(super) fn config(given: &Value, image: &Image) -> Result<Value, EngineError> {
    let mut config = json!({
        "Hostname": "", "Domainname": "", "User": "",
        "AttachStdin": false, "AttachStdout": false, "AttachStderr": false,
        "Tty": false, "OpenStdin": false, "StdinOnce": false,
        "Env": null, "Cmd": null, "Image": "", "Volumes": null,
        "WorkingDir": "", "Entrypoint": null, "OnBuild": null, "Labels": {},
    });
    // The engine leaves these out if they are empty.
    let optional = [
        "ExposedPorts",
        "Healthcheck",
        "ArgsEscaped",
        "NetworkDisabled",
        "MacAddress",
        "StopSignal",
        "StopTimeout",
        "Shell",
    ];
    for (key, value) in given.as_object().into_iter().flatten() {
        let known = config.get(key).is_some();
        if !value.is_null() && (known || (optional.contains(&key.as_str()) && is_filled(value))) {
            config[key] = value.clone();
        }
    }
    let own = &image.config;
    for key in ["User", "WorkingDir", "StopSignal"] {
        if text(&config, key).is_empty() && !text(own, key).is_empty() {
            config[key] = own[key].clone();
        }
    }
    for key in ["ExposedPorts", "Volumes", "Labels"] {
        for (name, value) in own
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if config[key].get(name).is_none() {
                config[key][name] = value.clone();
            }
        }
    }
    if config.get("Healthcheck").is_none() && own.get("Healthcheck").is_some_and(is_filled) {
        config["Healthcheck"] = own["Healthcheck"].clone();
    }
    let mut env = texts(config.get("Env"));
    for variable in texts(own.get("Env")) {
        let name = variable.split('=').next().unwrap_or_default();
        let is_it = |one: &String| one.split('=').next() == Some(name);
        if !env.iter().any(is_it) {
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
    if is_filled(&config["Cmd"]) || is_filled(&config["Entrypoint"]) {
        Ok(config)
    } else {
        Err(EngineError::new(400, "No command specified"))
    }
}

/// `HostConfig` as the engine stores it: all fields, with the defaults of the engine.
pub(super) fn host_config(given: &Value) -> Value {
    let mut host: Value =
        serde_json::from_str(include_str!("host_config.json")).unwrap_or_default();
    let optional = [
        "Tmpfs",
        "Sysctls",
        "Runtime",
        "Mounts",
        "StorageOpt",
        "Init",
    ];
    let computed = [
        "LogConfig",
        "CgroupnsMode",
        "IpcMode",
        "NetworkMode",
        "ShmSize",
    ];
    let own = ["MaskedPaths", "ReadonlyPaths", "OomKillDisable"];
    for (key, value) in given.as_object().into_iter().flatten() {
        let is = |keys: &[&str]| keys.contains(&key.as_str());
        let takes = if is(&optional) || is(&computed) {
            is_filled(value) && *value != 0
        } else if is(&own) {
            !value.is_null()
        } else {
            host.get(key).is_some()
        };
        if takes {
            host[key] = value.clone();
        }
    }
    if text(&host["LogConfig"], "Type").is_empty() {
        host["LogConfig"]["Type"] = json!("json-file");
    }
    if host["LogConfig"].get("Config").is_none_or(Value::is_null) {
        host["LogConfig"]["Config"] = json!({});
    }
    if host["Privileged"] == true {
        for key in ["MaskedPaths", "ReadonlyPaths"] {
            host[key] = given.get(key).cloned().unwrap_or_default();
        }
    }
    let memory = host["Memory"].as_i64().unwrap_or(0);
    if memory > 0 && host["MemorySwap"] == 0 {
        host["MemorySwap"] = json!(2 * memory);
    }
    let unlabeled = host["Privileged"] == true
        || text(&host, "IpcMode") == "host"
        || text(&host, "PidMode") == "host";
    let mut security = texts(host.get("SecurityOpt"));
    if unlabeled && !security.iter().any(|option| option.starts_with("label")) {
        security.push("label=disable".to_owned());
        host["SecurityOpt"] = json!(security);
    }
    host
}
