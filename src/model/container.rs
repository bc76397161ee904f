//! A container as the engine lists or inspects it, and as a snapshot keeps it.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{PublishedPort, compose_label, is_portainer_image};
use crate::text::printable;

/// Where the engine mounts its init program.
const INIT: &str = "/sbin/docker-init";

/// How long after a restart a container is still in its restart loop: engines restart one at once if it ran for 10 seconds,
/// otherwise after a pause of up to a minute.
const SETTLED: TimeDelta = TimeDelta::seconds(30);

/// The most that a container is waited for because of its health check.
const MOST_OF_HEALTH: Duration = Duration::from_hours(1);

/// What the engine assigns to the endpoint of a container, and what is read in a way of its own.
const ASSIGNED: [&str; 11] = [
    "Aliases",
    "DNSNames",
    "EndpointID",
    "Gateway",
    "GlobalIPv6Address",
    "GlobalIPv6PrefixLen",
    "IPAddress",
    "IPPrefixLen",
    "IPv6Gateway",
    "MacAddress",
    "NetworkID",
];

/// A container: its inspect object. Of one that was only listed, it has what a list shows: the ID, the name, the names of image
/// and labels, the state, the published ports, the mounts and the addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container(pub Value);

impl Container {
    /// The value at a JSON pointer; `null` counts as missing.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer).filter(|value| !value.is_null())
    }

    /// The value at a JSON pointer, if it is not empty: engines write `null`, `[]` or nothing for the same thing.
    pub fn present(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer).filter(|value| !is_empty(value))
    }

    /// The text at a JSON pointer, or an empty one.
    pub fn text(&self, pointer: &str) -> &str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The items of the list at a JSON pointer; none if it is missing.
    pub fn items(&self, pointer: &str) -> impl Iterator<Item = &Value> + use<'_> {
        let list = self.at(pointer).and_then(Value::as_array);
        list.into_iter().flatten()
    }

    /// The variables that have a value, of a container or an image.
    pub fn env(&self) -> impl Iterator<Item = (&str, &str)> {
        let items = self.items("/Config/Env");
        items.filter_map(|item| item.as_str()?.split_once('='))
    }

    /// The fields of the object at a JSON pointer; none if it is missing.
    pub fn fields(&self, pointer: &str) -> impl Iterator<Item = (&String, &Value)> + use<'_> {
        let object = self.at(pointer).and_then(Value::as_object);
        object.into_iter().flatten()
    }

    /// Whether the value at a JSON pointer is `true`.
    fn is_true(&self, pointer: &str) -> bool {
        self.at(pointer) == Some(&Value::Bool(true))
    }

    /// The full ID.
    pub fn id(&self) -> &str {
        self.text("/Id")
    }

    /// The name, without the leading slash; the ID if nothing else is known.
    pub fn name(&self) -> &str {
        match self.text("/Name").trim_start_matches('/') {
            "" => self.id(),
            name => name,
        }
    }

    /// The ID of the image: `sha256:…`.
    pub fn image_id(&self) -> &str {
        self.text("/Image")
    }

    /// The image as it was named when the container was created.
    pub fn image_name(&self) -> &str {
        self.text("/Config/Image")
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.at("/Config/Labels")?.get(name)?.as_str()
    }

    /// The value of a label of the tool's Compose.
    pub fn compose_label(&self, tool: &str, name: &str) -> Option<&str> {
        self.label(&compose_label(tool, name))
    }

    /// The Compose files from which it was started, as the label names them.
    pub fn config_files(&self, tool: &str) -> impl Iterator<Item = &str> {
        let files = self.compose_label(tool, "project.config_files");
        let files = files.unwrap_or_default().split(',');
        files.filter(|file| !file.is_empty())
    }

    /// Its number within its service.
    pub fn container_number(&self, tool: &str) -> Option<u64> {
        self.compose_label(tool, "container-number")?.parse().ok()
    }

    /// See [`given_labels`].
    pub fn labels(&self) -> BTreeMap<&str, &Value> {
        given_labels(self.at("/Config/Labels"))
    }

    /// Whether it was created by `docker compose run`.
    pub fn is_one_off(&self, tool: &str) -> bool {
        let label = self.compose_label(tool, "oneoff");
        label.is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// `created`, `running`, `paused`, `restarting`, `exited`, `removing` or `dead`.
    pub fn status(&self) -> &str {
        self.text("/State/Status")
    }

    /// The ID and the state. A container that restarts again and again counts as one that runs (B28).
    pub fn id_and_state(&self) -> (String, String) {
        let state = match self.status() {
            "restarting" => "running",
            state => state,
        };
        (self.id().to_owned(), state.to_owned())
    }

    /// The state as a list of the engine words it: `Up 2 hours`, `Exited (0) 3 days ago`. The state if it was not listed.
    pub fn told_status(&self) -> &str {
        match self.text("/Status") {
            "" => self.status(),
            told => told,
        }
    }

    /// Why it is Portainer's own container (B04): its image, or because it publishes Portainer's port. `port` is
    /// `None` if Portainer is not on this host.
    pub fn runs_portainer(&self, port: Option<u16>) -> Option<String> {
        if is_portainer_image(self.image_name()) {
            return Some(format!("runs {}", printable(self.image_name())));
        }
        let port = port.filter(|port| self.publishes(*port))?;
        Some(format!("publishes Portainer's port {port}"))
    }

    /// Whether it publishes a TCP port on this port of the host.
    pub fn publishes(&self, port: u16) -> bool {
        self.holds("", port, "tcp")
    }

    /// Whether nothing else can listen on this port of an address, because it publishes one.
    pub fn holds(&self, address: &str, port: u16, protocol: &str) -> bool {
        let published = self.published_ports();
        published
            .iter()
            .any(|one| one.holds(address, port, protocol))
    }

    /// The ports that it publishes on this host now, without those that are only exposed, in their order.
    pub fn published_ports(&self) -> Vec<PublishedPort<'_>> {
        let published = self.ports("/NetworkSettings/Ports");
        let published = published.filter(|port| port.host_port().is_some());
        let mut published: Vec<_> = published.map(PublishedPort::somewhere).collect();
        let number = |port: &PublishedPort| port.container_port.parse::<u16>().ok();
        published.sort_by_key(|one| (number(one), one.protocol, one.host_port(), one.address));
        published
    }

    /// Whether it is running or paused.
    pub fn is_running(&self) -> bool {
        self.is_true("/State/Running") || self.is_restarting()
    }

    /// Whether it has exited, and the engine will start it again after a pause.
    pub fn is_restarting(&self) -> bool {
        self.is_true("/State/Restarting")
    }

    /// How often the engine restarted it by its restart policy since it was started.
    pub fn restarts(&self) -> u64 {
        let count = self.at("/RestartCount").and_then(Value::as_u64);
        count.unwrap_or_default()
    }

    /// Whether it ran in a restart loop when it was inspected, at this time (B28).
    pub fn is_in_loop(&self, at: DateTime<Utc>) -> bool {
        self.restarted_within(SETTLED, at)
    }

    /// Whether it is in a restart loop `now`. For the engine, a loop ends when the container has run for ten seconds.
    pub fn loops(&self, now: DateTime<Utc>) -> bool {
        self.restarted_within(TimeDelta::seconds(10), now)
    }

    fn restarted_within(&self, time: TimeDelta, at: DateTime<Utc>) -> bool {
        let started = DateTime::parse_from_rfc3339(self.text("/State/StartedAt"));
        let has_settled = started.is_ok_and(|started| at.signed_duration_since(started) > time);
        self.is_restarting() || (self.is_running() && self.restarts() > 0 && !has_settled)
    }

    /// Whether a restart loop of it ended: the engine restarts it as often as its policy says.
    pub fn gave_up(&self) -> bool {
        self.exit_code().is_some() && self.text("/HostConfig/RestartPolicy/Name") == "on-failure"
    }

    pub fn is_paused(&self) -> bool {
        self.is_true("/State/Paused")
    }

    /// Whether it is being removed, or its removal failed.
    pub fn is_being_removed(&self) -> bool {
        matches!(self.status(), "removing" | "dead")
    }

    /// Whether the engine removes it with its anonymous volumes when it exits (`--rm`).
    pub fn removes_itself(&self) -> bool {
        self.is_true("/HostConfig/AutoRemove")
    }

    /// The stop timeout in seconds, if it has one.
    pub fn stop_grace(&self) -> Option<u32> {
        let grace = self.at("/Config/StopTimeout").and_then(Value::as_u64);
        grace.and_then(|grace| grace.try_into().ok())
    }

    /// Its fixed addresses, IPv4 and IPv6, with the name of the network of each.
    pub fn fixed_addresses(&self) -> impl Iterator<Item = (&str, &str)> {
        self.networks().flat_map(|(name, endpoint)| {
            let keys = ["IPv4Address", "IPv6Address"].into_iter();
            let given = keys.filter_map(|key| endpoint["IPAMConfig"][key].as_str());
            let fixed = given.filter(|address| !address.is_empty());
            fixed.map(|address| (name.as_str(), address))
        })
    }

    /// Its addresses in a network, with the length of the subnet: `172.18.0.2/16`. None if it does not run.
    pub fn subnets(&self, network: &str) -> Vec<String> {
        let endpoints = self.networks().filter(|(name, _)| *name == network);
        let keys = [
            ("IPAddress", "IPPrefixLen"),
            ("GlobalIPv6Address", "GlobalIPv6PrefixLen"),
        ];
        let all = endpoints.flat_map(|(_, endpoint)| {
            keys.map(|(address, length)| {
                let address = endpoint[address].as_str().filter(|one| !one.is_empty())?;
                Some(format!("{address}/{}", endpoint[length].as_u64()?))
            })
        });
        all.flatten().collect()
    }

    /// `running`, `paused` or `stopped`. A restore does not distinguish exited containers from those never started.
    pub fn state(&self) -> &'static str {
        match (self.is_running(), self.is_paused()) {
            (true, true) => "paused",
            (true, false) => "running",
            (false, _) => "stopped",
        }
    }

    /// The containers that it refers to, by ID or name, each with the field of `HostConfig`. Links in networks other than the
    /// default bridge are names, which the engine resolves again.
    pub fn refers_to(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let listed = ["Links", "VolumesFrom"].into_iter().flat_map(move |field| {
            let items = self.items(&format!("/HostConfig/{field}"));
            // `/other:/self/alias`, `other:ro`
            items.filter_map(move |item| {
                let other = item.as_str()?.split(':').next()?;
                Some((field, other.trim_start_matches('/')))
            })
        });
        self.shared_namespaces().chain(listed)
    }

    /// The containers whose network, PID or IPC namespace it shares, by ID, each with the field of `HostConfig`.
    pub fn shared_namespaces(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let modes = ["NetworkMode", "PidMode", "IpcMode"].into_iter();
        modes.filter_map(move |field| {
            let mode = self.text(&format!("/HostConfig/{field}"));
            Some((field, mode.strip_prefix("container:")?))
        })
    }

    /// The IDs of the containers whose network, PID or IPC namespace or volumes it shares.
    pub fn shares_with(&self) -> Vec<&str> {
        let shared = self.refers_to().filter(|(field, _)| *field != "Links");
        shared.map(|(_, other)| other).collect()
    }

    /// The services that it depends on, each with its condition (`service_healthy`, …), from the value of Compose's
    /// `depends_on` label.
    pub fn depends_on(&self, label: &str) -> Vec<(&str, &str)> {
        self.label(label)
            .unwrap_or_default()
            .split(',')
            .filter_map(|entry| {
                let mut parts = entry.split(':');
                Some((parts.next()?, parts.next().unwrap_or_default()))
            })
            .filter(|(service, _)| !service.is_empty())
            .collect()
    }

    /// `starting`, `healthy` or `unhealthy`; `None` without a health check.
    pub fn health(&self) -> Option<&str> {
        let status = self.text("/State/Health/Status");
        (!matches!(status, "" | "none")).then_some(status)
    }

    /// Whether it was running and healthy. A restore waits until it is again.
    pub fn is_healthy(&self) -> bool {
        self.is_running() && !self.is_paused() && self.health() == Some("healthy")
    }

    /// How long its health check may take from a start until the container is healthy or unhealthy, at most an hour. The engine
    /// uses its defaults for what is 0.
    pub fn health_time(&self) -> Duration {
        let number = |key: &str, default: u64| {
            let given = self.at(&format!("/Config/Healthcheck/{key}"));
            given
                .and_then(Value::as_u64)
                .filter(|&given| given > 0)
                .unwrap_or(default)
        };
        let [interval, timeout] = ["Interval", "Timeout"].map(|key| number(key, 30_000_000_000));
        let each = interval.saturating_add(timeout);
        let checks = number("Retries", 3).saturating_mul(each);
        let all = Duration::from_nanos(number("StartPeriod", 0).saturating_add(checks));
        all.min(MOST_OF_HEALTH)
    }

    /// Why the engine could not start it the last time.
    pub fn start_error(&self) -> Option<&str> {
        let error = self.text("/State/Error");
        (!self.is_running() && !error.is_empty()).then_some(error)
    }

    /// The exit code of the last run, if it has stopped.
    pub fn exit_code(&self) -> Option<i64> {
        let code = self.at("/State/ExitCode").and_then(Value::as_i64);
        code.filter(|_| self.status() == "exited")
    }

    /// Whether it runs, or is a job that has succeeded.
    pub fn runs_or_succeeded(&self) -> bool {
        self.is_running() || self.exit_code() == Some(0)
    }

    /// Whether it was created and not started yet.
    pub fn has_never_run(&self) -> bool {
        self.status() == "created"
    }

    /// Whether its restart policy starts it whenever it ends.
    pub fn is_kept_running(&self) -> bool {
        let policy = self.text("/HostConfig/RestartPolicy/Name");
        matches!(policy, "always" | "unless-stopped")
    }

    /// How long it ran before it ended.
    pub fn ran_for(&self) -> Option<Duration> {
        let at = |path| DateTime::parse_from_rfc3339(self.text(path)).ok();
        let (started, finished) = at("/State/StartedAt").zip(at("/State/FinishedAt"))?;
        finished.signed_duration_since(started).to_std().ok()
    }

    /// The ports that it was created to publish.
    pub fn port_bindings(&self) -> impl Iterator<Item = PublishedPort<'_>> {
        self.ports("/HostConfig/PortBindings")
    }

    fn ports(&self, pointer: &str) -> impl Iterator<Item = PublishedPort<'_>> + use<'_> {
        self.fields(pointer).flat_map(|(inside, hosts)| {
            let (container_port, protocol) = inside.split_once('/').unwrap_or((inside, "tcp"));
            hosts.as_array().into_iter().flatten().map(move |host| {
                let text = |key: &str| host[key].as_str().unwrap_or_default();
                PublishedPort {
                    container_port,
                    protocol,
                    address: text("HostIp"),
                    published: text("HostPort"),
                }
            })
        })
    }

    /// The volumes that it mounts, named and anonymous: name and target.
    pub fn volumes(&self) -> Vec<(&str, &str)> {
        self.mounts()
            .filter(|mount| mount["Type"] == "volume")
            .filter_map(|mount| Some((mount["Name"].as_str()?, mount["Destination"].as_str()?)))
            .collect()
    }

    /// Its anonymous volumes: name and target.
    pub fn anonymous_volumes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.volumes().into_iter().filter(|(name, _)| is_id(name))
    }

    /// The changed `paths` of its layer that hold data: without the directories of other changed paths, the mount points and
    /// what is below them, the working directory that the engine creates, and the `placed` files, which Compose puts into the self.
    pub fn own_files<'p>(&self, paths: &[&'p str], placed: &[String]) -> Vec<&'p str> {
        let own = self.own_targets(placed);
        let targets: Vec<&str> = own.iter().map(String::as_str).collect();
        let mut parents = BTreeSet::new();
        for path in paths.iter().chain(&targets) {
            let mut path = *path;
            while let Some((parent, _)) = path.rsplit_once('/') {
                if !parents.insert(parent) {
                    break;
                }
                path = parent;
            }
        }
        let mut files = paths.to_vec();
        let mounted = self.mount_points();
        files.retain(|path| {
            !parents.contains(path) && !targets.contains(path) && !is_below(path, &mounted)
        });
        files
    }

    pub fn has_read_only_root(&self) -> bool {
        self.is_true("/HostConfig/ReadonlyRootfs")
    }

    /// Whether a mount hides this path of its layer: the engine created it for another mount, such as `/sys/fs/cgroup` below
    /// a bind mount on `/sys`.
    pub fn hides(&self, path: &str) -> bool {
        is_below(path, &self.mount_points())
    }

    pub fn mount_points(&self) -> Vec<&str> {
        let tmpfs = self.fields("/HostConfig/Tmpfs");
        self.mounts()
            .filter_map(|mount| mount["Destination"].as_str())
            .chain(tmpfs.map(|(target, _)| &**target))
            .map(|target| target.trim_end_matches('/'))
            .filter(|target| !target.is_empty())
            .collect()
    }

    /// The paths of its layer that the engine or Compose creates.
    pub fn own_targets(&self, placed: &[String]) -> Vec<String> {
        self.mount_points()
            .into_iter()
            .chain([self.text("/Config/WorkingDir"), INIT])
            .chain(placed.iter().map(String::as_str))
            .map(|target| target.trim_end_matches('/').to_owned())
            .collect()
    }

    /// Its mounts, as inspect objects.
    pub fn mounts(&self) -> impl Iterator<Item = &Value> {
        self.items("/Mounts")
    }

    /// Its networks: name and endpoint settings.
    pub fn networks(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.fields("/NetworkSettings/Networks")
    }

    /// Whether it has an address in a network, IPv4 or IPv6.
    pub fn has_address(&self, network: &str, address: &str) -> bool {
        let mut endpoints = self.networks().filter(|(name, _)| *name == network);
        let keys = ["IPAddress", "GlobalIPv6Address"];
        endpoints.any(|(_, endpoint)| keys.iter().any(|key| endpoint[*key] == address))
    }

    /// The settings of an endpoint that a user can choose: all but what the engine assigns, the aliases and the MAC
    /// address. A key that a later engine adds is among them.
    pub fn endpoint_settings(endpoint: &Value) -> Map<String, Value> {
        let fields = endpoint.as_object().into_iter().flatten();
        let chosen =
            fields.filter(|(key, value)| !ASSIGNED.contains(&key.as_str()) && !is_unset(value));
        chosen
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// The network mode. A network is named: Compose 2 gives an external network by its ID. The engine does not show the IDs
    /// of the networks of a container that was never started.
    pub fn network_mode(&self) -> &str {
        let mode = self.text("/HostConfig/NetworkMode");
        let is_id = is_id(mode);
        let by_id = self
            .networks()
            .find(|(_, one)| one["NetworkID"] == mode)
            .or_else(|| self.networks().next());
        by_id.filter(|_| is_id).map_or(mode, |(name, _)| name)
    }

    /// The MAC addresses of its further networks that may be chosen ones. The engine shows that of the first network as
    /// `Config.MacAddress`. Up to 27, one that is generated follows from the IPv4 address; later ones are random and look
    /// like chosen ones. A container that has stopped shows none.
    pub fn further_mac_addresses(&self) -> BTreeMap<&str, &str> {
        let mode = self.network_mode();
        let first = if mode == "default" { "bridge" } else { mode };
        let further = self.networks().filter(|(name, _)| *name != first);
        let known = further.filter_map(|(name, endpoint)| {
            let mac = endpoint.get("MacAddress")?.as_str()?;
            let address = endpoint.get("IPAddress").and_then(Value::as_str);
            (!mac.is_empty() && !follows_from(mac, address)).then_some((name.as_str(), mac))
        });
        known.collect()
    }

    /// Whether it has this MAC address in a network.
    pub fn has_mac_address(&self, address: &str) -> bool {
        let endpoints = self.networks().map(|(_, endpoint)| &endpoint["MacAddress"]);
        let all = endpoints.filter_map(Value::as_str);
        let mut all = all.chain([self.text("/Config/MacAddress")]);
        all.any(|one| one.eq_ignore_ascii_case(address))
    }

    /// Its further networks in which the engine does not show whether it has a chosen MAC address, because it has stopped.
    pub fn hidden_mac_addresses(&self) -> Vec<&str> {
        let mode = self.network_mode();
        let is_shown = |endpoint: &Value, key: &str| {
            endpoint[key].as_str().is_some_and(|text| !text.is_empty())
        };
        let hidden = self.networks().filter(|(name, endpoint)| {
            *name != mode && is_shown(endpoint, "NetworkID") && !is_shown(endpoint, "MacAddress")
        });
        hidden.map(|(name, _)| name.as_str()).collect()
    }

    /// The aliases in one network, without short IDs: engines before 25 add that of the container, and *Recreate* in Portainer
    /// keeps that of the container before it.
    pub fn aliases<'a>(&'a self, endpoint: &'a Value) -> BTreeSet<&'a str> {
        let aliases = endpoint["Aliases"].as_array().into_iter().flatten();
        let names = aliases.filter_map(Value::as_str);
        names
            .filter(|alias| *alias != self.short_id() && !is_short_id(alias))
            .collect()
    }

    /// The hostname, if it was set. By default it is the short ID, or the hostname of the container whose network it
    /// shares.
    pub fn hostname(&self) -> Option<&str> {
        let name = self.text("/Config/Hostname");
        let shared = self
            .text("/HostConfig/NetworkMode")
            .starts_with("container:");
        (!shared && !name.is_empty() && name != self.short_id()).then_some(name)
    }

    /// The first 12 digits of the ID.
    pub fn short_id(&self) -> &str {
        let id = self.id();
        id.get(..12).unwrap_or(id)
    }
}

/// Whether a name looks like a short ID.
pub fn is_short_id(name: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.len() == 12 && name.bytes().all(is_hex)
}

/// Whether a generated MAC address of this IPv4 address is `mac`.
fn follows_from(mac: &str, address: Option<&str>) -> bool {
    let address = address.and_then(|address| address.parse::<Ipv4Addr>().ok());
    address.is_some_and(|address| {
        let [a, b, c, d] = address.octets();
        mac.eq_ignore_ascii_case(&format!("02:42:{a:02x}:{b:02x}:{c:02x}:{d:02x}"))
    })
}

/// The labels of a container, an image or a service, without those of Compose and of Docker Desktop.
pub fn given_labels(labels: Option<&Value>) -> BTreeMap<&str, &Value> {
    let is_given = |name: &str| {
        let mut parts = name.split('.');
        let is_compose = parts.next() == Some("com") && parts.nth(1) == Some("compose");
        !is_compose && !name.starts_with("desktop.docker.io/")
    };
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    labels
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| is_given(name))
        .collect()
}

/// Whether a setting has its default: engines differ in how they write one that is not set.
pub fn is_unset(value: &Value) -> bool {
    match value {
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => is_empty(value),
    }
}

/// Whether a value is `null` or has nothing in it.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
/// Whether `path` is inside one of `directories`.
fn is_below(path: &str, directories: &[&str]) -> bool {
    directories.iter().any(|directory| {
        let rest = path.strip_prefix(directory);
        rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

/// Whether a name is one that the engine gives: of an anonymous volume, or of an object by its ID.
pub fn is_id(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::ops::{Index, IndexMut};

    use super::*;

    impl Index<&str> for Container {
        type Output = Value;

        fn index(&self, key: &str) -> &Value {
            &self.0[key]
        }
    }

    impl IndexMut<&str> for Container {
        fn index_mut(&mut self, key: &str) -> &mut Value {
            &mut self.0[key]
        }
    }
}
