//! A container from what the engine said of it: how to make it again, and what differs.
//!
//! Invariant: pure; reads inspect JSON and writes JSON.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// A container as the engine's inspect tells it.
#[derive(Clone, Copy)]
pub struct Inspected<'a>(pub &'a Value);

/// Settings that a container made again says in another way, or that [`Inspected::differences`] tells more
/// of: its mounts, variables, labels and ports, its image, and what it shares with others.
const COMPARED_OTHERWISE: [&str; 8] = [
    "Binds",
    "ContainerIDFile",
    "Env",
    "Image",
    "Labels",
    "Mounts",
    "PortBindings",
    "VolumesFrom",
];

/// Where the engine mounts its init program.
const INIT: &str = "/sbin/docker-init";

/// What became of ids that stand in other containers' configuration: old id to new.
pub type NewIds = BTreeMap<String, String>;

/// How a container is made again.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The body of the create.
    pub body: Value,
    /// The networks to connect it to before it starts: name and endpoint.
    pub connect: Vec<(String, Value)>,
}

impl<'a> Inspected<'a> {
    fn at(self, pointer: &str) -> Option<&'a Value> {
        self.0.pointer(pointer).filter(|value| !value.is_null())
    }

    /// What is there and not empty: engines write `null`, `[]` and nothing for the same.
    fn present(self, pointer: &str) -> Option<&'a Value> {
        self.0.pointer(pointer).filter(|value| !is_empty(value))
    }

    fn text(self, pointer: &str) -> &'a str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its full id.
    pub fn id(self) -> &'a str {
        self.text("/Id")
    }

    /// Its name, without the slash.
    pub fn name(self) -> &'a str {
        self.text("/Name").trim_start_matches('/')
    }

    /// The id of its image: `sha256:…`.
    pub fn image_id(self) -> &'a str {
        self.text("/Image")
    }

    /// The name that its image was given by.
    pub fn image_name(self) -> &'a str {
        self.text("/Config/Image")
    }

    /// One of its labels.
    pub fn label(self, name: &str) -> Option<&'a str> {
        self.at("/Config/Labels")?.get(name)?.as_str()
    }

    /// Whether it runs, paused included.
    pub fn is_running(self) -> bool {
        let flag = |pointer| self.at(pointer).and_then(Value::as_bool).unwrap_or(false);
        flag("/State/Running") || flag("/State/Restarting")
    }

    /// Whether it is paused.
    pub fn is_paused(self) -> bool {
        self.at("/State/Paused") == Some(&Value::Bool(true))
    }

    /// Whether it is being removed, or its removal has failed.
    pub fn is_going(self) -> bool {
        matches!(self.text("/State/Status"), "removing" | "dead")
    }

    /// How long it may take to stop, in seconds, where it says so.
    pub fn stop_grace(self) -> Option<u32> {
        let grace = self.at("/Config/StopTimeout").and_then(Value::as_u64);
        grace.and_then(|grace| grace.try_into().ok())
    }

    /// Whether its address in that network is a fixed one.
    pub fn has_fixed_address(self, network: &str) -> bool {
        self.networks().any(|(name, endpoint)| {
            name == network && !endpoint.get("IPAMConfig").is_none_or(is_empty)
        })
    }

    /// `running`, `paused` or `stopped`: how it ended, or that it never began, does not come back.
    pub fn state(self) -> &'static str {
        match (self.is_running(), self.is_paused()) {
            (true, true) => "paused",
            (true, false) => "running",
            (false, _) => "stopped",
        }
    }

    /// The container whose network, process or IPC namespace or volumes it shares, by id.
    pub fn shares_with(self) -> Vec<&'a str> {
        let modes = ["NetworkMode", "PidMode", "IpcMode"];
        let modes = modes.iter().filter_map(|mode| {
            self.text(&format!("/HostConfig/{mode}"))
                .strip_prefix("container:")
        });
        let volumes = self.at("/HostConfig/VolumesFrom").and_then(Value::as_array);
        let volumes = volumes
            .into_iter()
            .flatten()
            .filter_map(|from| from.as_str()?.split(':').next());
        modes.chain(volumes).collect()
    }

    /// The services that compose started before it, by its `depends_on` label.
    pub fn depends_on(self, label: &str) -> Vec<&'a str> {
        self.label(label)
            .unwrap_or_default()
            .split(',')
            .filter_map(|entry| entry.split(':').next())
            .filter(|service| !service.is_empty())
            .collect()
    }

    /// The anonymous and named volumes it mounts: name and target.
    pub fn volumes(self) -> Vec<(&'a str, &'a str)> {
        self.mounts()
            .filter(|mount| mount["Type"] == "volume")
            .filter_map(|mount| Some((mount["Name"].as_str()?, mount["Destination"].as_str()?)))
            .collect()
    }

    fn mounts(self) -> impl Iterator<Item = &'a Value> {
        let mounts = self.at("/Mounts").and_then(Value::as_array);
        mounts.into_iter().flatten()
    }

    fn networks(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let networks = self
            .at("/NetworkSettings/Networks")
            .and_then(Value::as_object);
        networks.into_iter().flatten()
    }

    /// Of the changed `paths` of its own layer those that a person would miss: no folder that only holds
    /// other changed paths, and no place that the engine made to mount something at or to work in.
    pub fn own_files<'p>(self, paths: &[&'p str]) -> Vec<&'p str> {
        let mut parents = BTreeSet::new();
        let tmpfs = self.at("/HostConfig/Tmpfs").and_then(Value::as_object);
        let targets: Vec<&str> = self
            .mounts()
            .filter_map(|mount| mount["Destination"].as_str())
            .chain(
                tmpfs
                    .into_iter()
                    .flatten()
                    .map(|(target, _)| target.as_str()),
            )
            .chain([self.text("/Config/WorkingDir"), INIT])
            .map(|target| target.trim_end_matches('/'))
            .collect();
        for path in paths.iter().chain(&targets) {
            let mut path = *path;
            while let Some((parent, _)) = path.rsplit_once('/') {
                if !parents.insert(parent) {
                    break;
                }
                path = parent;
            }
        }
        let mut files: Vec<&str> = paths.to_vec();
        files.retain(|path| !parents.contains(path) && !targets.contains(path));
        files
    }

    /// How to make it again from `image` (its name, or its id where the name means another image by
    /// now), with ids of other containers replaced by their new ones.
    ///
    /// Volumes are mounted by name, anonymous ones too, so that their data comes back with them.
    pub fn recipe(self, image: &str, new_ids: &NewIds) -> Recipe {
        let mut config = self
            .at("/Config")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let mut host = self
            .at("/HostConfig")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        config.insert("Image".to_owned(), image.into());
        let mode = self.text("/HostConfig/NetworkMode");
        if self.hostname().is_none() || self.text("/HostConfig/UTSMode") == "host" {
            config.remove("Hostname");
            config.remove("Domainname");
        }
        if mode.starts_with("container:") {
            // The ports are the other container's: the engine refuses those that the image gave it.
            config.remove("ExposedPorts");
        }
        replace_ids(&mut host, new_ids);
        host.remove("ContainerIDFile");
        self.mount_by_name(&mut host);
        let (first, connect) = self.endpoints(mode);
        config.insert("HostConfig".to_owned(), Value::Object(host));
        config.insert(
            "NetworkingConfig".to_owned(),
            json!({ "EndpointsConfig": first }),
        );
        Recipe {
            body: Value::Object(config),
            connect,
        }
    }

    /// Names each volume that it mounts but whose name its configuration does not say.
    fn mount_by_name(self, host: &mut Map<String, Value>) {
        let mut named: BTreeSet<String> = host
            .get("Binds")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|bind| bind.as_str()?.split(':').nth(1))
            .map(str::to_owned)
            .collect();
        let mut mounts = match host.remove("Mounts") {
            Some(Value::Array(mounts)) => mounts,
            _ => Vec::new(),
        };
        let volumes: BTreeMap<&str, &str> = self
            .volumes()
            .into_iter()
            .map(|(name, target)| (target, name))
            .collect();
        for mount in &mut mounts {
            let target = mount["Target"].as_str().unwrap_or_default().to_owned();
            let nameless = mount["Source"].as_str().unwrap_or_default().is_empty();
            if mount["Type"] == "volume"
                && nameless
                && let Some(name) = volumes.get(target.as_str())
            {
                mount["Source"] = (*name).into();
            }
            named.insert(target);
        }
        // Those of `volumes_from`, too: among them are some of its own, and nothing tells them apart.
        for mount in self.mounts().filter(|mount| mount["Type"] == "volume") {
            let (Some(name), Some(target)) =
                (mount["Name"].as_str(), mount["Destination"].as_str())
            else {
                continue;
            };
            if named.insert(target.to_owned()) {
                mounts.push(json!({
                    "Type": "volume",
                    "Source": name,
                    "Target": target,
                    "ReadOnly": mount["RW"] == false,
                }));
            }
        }
        host.insert("Mounts".to_owned(), Value::Array(mounts));
    }

    /// The endpoint to create it with, and those to connect it to: an engine before API 1.44 takes one.
    fn endpoints(self, mode: &str) -> (Value, Vec<(String, Value)>) {
        let mut endpoints: Vec<(String, Value)> = self
            .networks()
            .map(|(name, endpoint)| (name.clone(), self.endpoint(endpoint)))
            .collect();
        if mode.starts_with("container:") || mode == "host" || mode == "none" {
            return (json!({}), Vec::new());
        }
        let own = endpoints.iter().position(|(name, _)| name == mode);
        let first = own.map(|own| endpoints.remove(own));
        let first = first.map_or_else(|| json!({}), |(name, endpoint)| json!({ name: endpoint }));
        // On the default bridge an endpoint takes neither aliases nor a fixed address.
        if mode == "default" || mode == "bridge" {
            endpoints.retain(|(name, _)| name != "bridge");
            return (json!({}), endpoints);
        }
        (first, endpoints)
    }

    fn endpoint(self, endpoint: &Value) -> Value {
        let mut made = json!({ "Aliases": self.aliases(endpoint) });
        for key in ["IPAMConfig", "Links", "DriverOpts"] {
            if let Some(value) = endpoint.get(key).filter(|value| !is_empty(value)) {
                made[key] = value.clone();
            }
        }
        made
    }

    /// The aliases on one network, without the one that old engines make of the id.
    fn aliases(self, endpoint: &Value) -> BTreeSet<&'a str>
    where
        Self: 'a,
    {
        let short = self.short_id();
        let name = endpoint_name(self, endpoint);
        self.at(&format!("/NetworkSettings/Networks/{name}/Aliases"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|alias| *alias != short)
            .collect()
    }

    /// What differs in `now`, in words and by name; never a value of a variable. Whether either runs is
    /// left out: [`Self::state`] says that.
    pub fn differences(self, now: Inspected<'a>) -> Vec<String> {
        let mut found = Vec::new();
        let mut differ = |what: &str, same: bool| {
            if !same {
                found.push(what.to_owned());
            }
        };
        differ("the image", self.image_id() == now.image_id());
        differ("the mounts", self.mount_set() == now.mount_set());
        differ("the networks", self.network_set() == now.network_set());
        differ("the ports", self.port_set() == now.port_set());
        differ(
            "the labels",
            self.present("/Config/Labels") == now.present("/Config/Labels"),
        );
        for section in ["Config", "HostConfig"] {
            found.extend(self.settings_that_differ(now, section));
        }
        found.extend(self.variables_that_differ(now));
        found
    }

    /// The other settings that differ, by name.
    fn settings_that_differ(self, now: Inspected<'a>, section: &str) -> Vec<String> {
        let settings = |container: Self| container.at(&format!("/{section}"))?.as_object();
        let (saved, there) = (settings(self), settings(now));
        let keys: BTreeSet<&String> = [saved, there]
            .into_iter()
            .flatten()
            .flat_map(Map::keys)
            .filter(|key| !COMPARED_OTHERWISE.contains(&key.as_str()))
            .collect();
        let setting = |settings: Option<&'a Map<String, Value>>, key: &str| {
            settings?.get(key).filter(|value| !is_unset(value))
        };
        keys.into_iter()
            .filter(|key| match key.as_str() {
                "Hostname" => self.hostname() != now.hostname(),
                "NetworkMode" | "PidMode" | "IpcMode" => self.mode(key) != now.mode(key),
                key => setting(saved, key) != setting(there, key),
            })
            .cloned()
            .collect()
    }

    /// A mode, without the container that it is shared with: [`Self::shares_with`] says that.
    fn mode(self, key: &str) -> &'a str {
        let mode = self.text(&format!("/HostConfig/{key}"));
        mode.split_once("container:").map_or(mode, |_| "container")
    }

    /// The host name that it was given; the engine gives others the short id, or that of the container
    /// whose network they share.
    fn hostname(self) -> Option<&'a str> {
        let name = self.text("/Config/Hostname");
        let shared = self
            .text("/HostConfig/NetworkMode")
            .starts_with("container:");
        (!shared && !name.is_empty() && name != self.short_id()).then_some(name)
    }

    fn short_id(self) -> &'a str {
        let id = self.id();
        id.get(..12).unwrap_or(id)
    }

    /// The variables that differ, by name.
    fn variables_that_differ(self, now: Inspected) -> Option<String> {
        let (saved, there) = (self.variables(), now.variables());
        let names: BTreeSet<&str> = saved
            .symmetric_difference(&there)
            .map(|variable| variable.split('=').next().unwrap_or_default())
            .collect();
        let names: Vec<&str> = names.into_iter().collect();
        (!names.is_empty()).then(|| format!("the variables {}", names.join(", ")))
    }

    fn variables(self) -> BTreeSet<&'a str> {
        let env = self.at("/Config/Env").and_then(Value::as_array);
        env.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    fn mount_set(self) -> BTreeSet<(&'a str, &'a str, &'a str, bool)> {
        let text = |mount: &'a Value, key: &str| mount[key].as_str().unwrap_or_default();
        self.mounts()
            .map(|mount| {
                let kind = text(mount, "Type");
                let source = if kind == "volume" { "Name" } else { "Source" };
                (
                    text(mount, "Destination"),
                    kind,
                    text(mount, source),
                    mount["RW"] != false,
                )
            })
            .collect()
    }

    fn network_set(self) -> BTreeMap<&'a str, (BTreeSet<&'a str>, String)> {
        self.networks()
            .map(|(name, endpoint)| {
                let address = endpoint
                    .get("IPAMConfig")
                    .filter(|config| !is_empty(config));
                let address = address.map_or_else(String::new, Value::to_string);
                (name.as_str(), (self.aliases(endpoint), address))
            })
            .collect()
    }

    fn port_set(self) -> BTreeMap<&'a str, String> {
        let bindings = self
            .at("/HostConfig/PortBindings")
            .and_then(Value::as_object);
        bindings
            .into_iter()
            .flatten()
            .map(|(port, bindings)| (port.as_str(), bindings.to_string()))
            .collect()
    }
}

fn endpoint_name<'a>(container: Inspected<'a>, endpoint: &Value) -> &'a str {
    container
        .networks()
        .find(|(_, other)| std::ptr::eq(*other, endpoint))
        .map_or("", |(name, _)| name.as_str())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a setting says no more than that it is not given: engines differ in how they write that.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => is_empty(value),
    }
}

/// Puts new ids where a configuration names another container by its old one.
fn replace_ids(host: &mut Map<String, Value>, new_ids: &NewIds) {
    for mode in ["NetworkMode", "PidMode", "IpcMode"] {
        let new = host
            .get(mode)
            .and_then(Value::as_str)
            .and_then(|mode| mode.strip_prefix("container:"))
            .and_then(|id| new_ids.get(id));
        if let Some(new) = new {
            host.insert(mode.to_owned(), format!("container:{new}").into());
        }
    }
    let from = host.get_mut("VolumesFrom").and_then(Value::as_array_mut);
    for from in from.into_iter().flatten() {
        let Some(text) = from.as_str() else { continue };
        let (id, rest) = text
            .split_once(':')
            .map_or((text, String::new()), |(id, rest)| (id, format!(":{rest}")));
        if let Some(new) = new_ids.get(id) {
            *from = format!("{new}{rest}").into();
        }
    }
}
