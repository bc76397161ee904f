//! A container and what belongs to it.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;
use serde_json::Value;

/// A container.
#[derive(Clone, PartialEq, Serialize)]
pub struct Container {
    /// 64 hexadecimal digits.
    pub id: String,
    /// The id of the engine it is on.
    pub engine: String,
    /// Without the leading slash.
    pub name: String,
    /// The image as it was named.
    pub image: String,
    /// The image's id; the name can mean another by now.
    pub image_id: String,
    /// `created`, `running`, `paused` or `exited`.
    pub state: String,
    /// Of the last run.
    pub exit_code: i64,
    /// Why the last start failed; empty where it did not.
    pub error: String,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970; 0 is never.
    pub started: i64,
    /// Seconds since 1970; 0 is never.
    pub finished: i64,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// `NAME=VALUE`, in the order they were given.
    pub env: Vec<String>,
    /// What runs, word by word: entrypoint and command.
    pub command: Vec<String>,
    /// `Config` as it was given, with what the image adds; but for labels and variables.
    pub config: Value,
    /// `HostConfig` as it was given, with what the engine adds.
    pub host_config: Value,
    /// Everything mounted into it.
    pub mounts: Vec<Mount>,
    /// Its ports, published or only exposed.
    pub ports: Vec<Port>,
    /// `default`, `host`, `none`, `container:<id>` or a network's name.
    pub network_mode: String,
    /// The networks it is on, by name.
    pub networks: BTreeMap<String, Attachment>,
    /// What its own layer has that the image has not, as the engine's diff says it.
    pub changes: Vec<Change>,
}

impl fmt::Debug for Container {
    // Without variables and configuration: they hold values of `.env`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("image", &self.image)
            .field("state", &self.state)
            .field("mounts", &self.mounts)
            .field("ports", &self.ports)
            .field("networks", &self.networks)
            .finish_non_exhaustive()
    }
}

impl Container {
    /// Whether it runs; one that is paused does.
    pub fn is_running(&self) -> bool {
        matches!(self.state.as_str(), "running" | "paused")
    }

    pub(super) fn start(&mut self, now: i64) {
        "running".clone_into(&mut self.state);
        self.error.clear();
        self.exit_code = 0;
        self.started = now;
    }

    /// Ends the run, as a container that stops by itself.
    pub fn exit(&mut self, code: i64, now: i64) {
        "exited".clone_into(&mut self.state);
        self.exit_code = code;
        self.finished = now;
        for attachment in self.networks.values_mut() {
            attachment.live = None;
        }
        for port in &mut self.ports {
            port.bound = None;
        }
    }

    /// Whether it says of itself that it is well; `None` without a check.
    pub(crate) fn health(&self) -> Option<&'static str> {
        let test = self.config.get("Healthcheck")?.get("Test")?.get(0)?;
        (test != "NONE").then_some(if self.is_running() {
            "healthy"
        } else {
            "unhealthy"
        })
    }

    /// The state in the engine's words: `Up 2 hours`, `Exited (0) 3 days ago`.
    pub(crate) fn status(&self, now: i64) -> String {
        let up = duration(now - self.started);
        match self.state.as_str() {
            "running" => match self.health() {
                Some(health) => format!("Up {up} ({health})"),
                None => format!("Up {up}"),
            },
            "paused" => format!("Up {up} (Paused)"),
            "exited" => format!(
                "Exited ({}) {} ago",
                self.exit_code,
                duration(now - self.finished)
            ),
            "created" => "Created".to_owned(),
            other => other.to_owned(),
        }
    }

    /// The first 12 digits of its id.
    pub(crate) fn short_id(&self) -> &str {
        &self.id[..12.min(self.id.len())]
    }
}

/// One path that differs between a container's layer and its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The path inside.
    pub path: String,
    /// 0 modified, 1 added, 2 deleted.
    pub kind: u8,
}

/// A time span as the engine rounds it.
fn duration(seconds: i64) -> String {
    match seconds {
        ..1 => "Less than a second".to_owned(),
        1 => "1 second".to_owned(),
        2..60 => format!("{seconds} seconds"),
        60..120 => "About a minute".to_owned(),
        120..3600 => format!("{} minutes", seconds / 60),
        3600..7200 => "About an hour".to_owned(),
        7200..172_800 => format!("{} hours", seconds / 3600),
        172_800..1_209_600 => format!("{} days", seconds / 86_400),
        1_209_600..5_184_000 => format!("{} weeks", seconds / 604_800),
        _ => format!("{} months", seconds / 2_592_000),
    }
}

/// One mount of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// What kind of mount it is.
    pub kind: MountType,
    /// The volume's name; `None` for other kinds.
    pub name: Option<String>,
    /// Whether the volume has no name of its own, but 64 hexadecimal digits.
    pub anonymous: bool,
    /// Whether the volume was made for this mount, unnamed: then it can go with the container.
    pub own: bool,
    /// Where it lies on the host; empty for tmpfs.
    pub source: String,
    /// Where it appears in the container.
    pub target: String,
    /// Whether the container cannot write to it.
    pub read_only: bool,
    /// `Mode` as the engine shows it.
    pub mode: String,
}

impl Mount {
    pub(super) fn is_volume(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}

/// The kinds of mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MountType {
    /// A path of the host.
    Bind,
    /// A volume of the engine.
    Volume,
    /// Memory.
    Tmpfs,
}

/// A port of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// The address of the host it is published on; empty is every one.
    pub address: String,
    /// The port of the host; `None` where it is only exposed, 0 where the engine chooses.
    pub published: Option<u16>,
    /// The port of the host while the container runs.
    pub bound: Option<u16>,
    /// The port inside.
    pub target: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
}

/// How a container is on a network.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Attachment {
    /// Its names there: those that were given, then what the engine adds.
    pub aliases: Vec<String>,
    /// `IPAMConfig` as it was given.
    pub ipam: Value,
    /// `Links` as they were given.
    pub links: Value,
    /// `DriverOpts` as they were given.
    pub driver_opts: Value,
    /// The network it was on last; empty before the first start.
    pub network_id: String,
    /// Its end while the container runs.
    pub live: Option<Live>,
}

impl Attachment {
    /// The fixed address; empty where the engine chooses.
    pub fn address(&self) -> &str {
        self.ipam
            .get("IPv4Address")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// The end of a network in a running container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Live {
    /// 64 hexadecimal digits.
    pub endpoint: String,
    /// The address; empty on a network without any.
    pub address: String,
    /// The MAC address; empty on a network without any.
    pub mac: String,
}
