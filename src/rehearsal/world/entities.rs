//! The things in a world.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

/// An environment of the manager: the engine that it reaches there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// Its name.
    pub name: String,
    /// The id of its engine.
    pub engine: String,
}

/// An engine, as it speaks of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// `ID` of `/info`.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The newest version of its API.
    pub api: String,
    /// The oldest version of its API that it still speaks.
    pub min_api: String,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            id: "RHRS:4L2K:7QYV:ZJ5D:WXNA:3BTC:EMUF:6HGO:PI2S:LOCA:LENG:INE1".to_owned(),
            version: "20.10.24".to_owned(),
            api: "1.41".to_owned(),
            min_api: "1.12".to_owned(),
        }
    }
}

/// A key of the manager and whose it is. The secret shows in no output.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    secret: String,
    /// Whose it is.
    pub user: String,
    /// What the user may do.
    pub role: Role,
}

/// What a user of the manager may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Administrator,
    /// What was granted: sees a filtered list of records.
    Standard,
}

impl ApiKey {
    pub(super) fn new(secret: &str, user: &str, role: Role) -> Self {
        Self {
            secret: secret.to_owned(),
            user: user.to_owned(),
            role,
        }
    }

    pub(in crate::rehearsal) fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}, {:?})", self.user, self.role)
    }
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Container {
    /// 64 hexadecimal digits.
    pub id: String,
    /// The id of the engine it is on.
    pub engine: String,
    /// Without the leading slash.
    pub name: String,
    /// The image as it was named.
    pub image: String,
    /// `created`, `running` or `exited`.
    pub state: String,
    /// Of the last run.
    pub exit_code: i64,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970; 0 is never.
    pub started: i64,
    /// Seconds since 1970; 0 is never.
    pub finished: i64,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// `NAME=VALUE`, in the order of the names.
    pub env: Vec<String>,
    /// The command, word by word.
    pub command: Vec<String>,
    /// Everything mounted into it.
    pub mounts: Vec<Mount>,
    /// Its ports, published or only exposed.
    pub ports: Vec<Port>,
    /// `default`, `host`, `none`, `container:<id>` or a network's name.
    pub network_mode: String,
    /// The networks it is on, by name.
    pub networks: BTreeMap<String, Attachment>,
    /// `no`, `always`, `unless-stopped`, `on-failure`.
    pub restart: String,
}

impl Container {
    pub(super) fn new(id: &str, name: &str, image: &str) -> Self {
        Self {
            id: id.to_owned(),
            engine: String::new(),
            name: name.to_owned(),
            image: image.to_owned(),
            state: "created".to_owned(),
            exit_code: 0,
            created: 0,
            started: 0,
            finished: 0,
            labels: BTreeMap::new(),
            env: Vec::new(),
            command: Vec::new(),
            mounts: Vec::new(),
            ports: Vec::new(),
            network_mode: "default".to_owned(),
            networks: BTreeMap::new(),
            restart: "no".to_owned(),
        }
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.state == "running"
    }

    pub(super) fn start(&mut self, now: i64) {
        "running".clone_into(&mut self.state);
        self.started = now;
    }

    /// Ends the run, as a container that stops by itself.
    pub fn exit(&mut self, code: i64, now: i64) {
        "exited".clone_into(&mut self.state);
        self.exit_code = code;
        self.finished = now;
    }

    /// The state in the engine's words: `Up 2 hours`, `Exited (0) 3 days ago`.
    pub fn status(&self, now: i64) -> String {
        match self.state.as_str() {
            "running" => format!("Up {}", duration(now - self.started)),
            "exited" => format!(
                "Exited ({}) {} ago",
                self.exit_code,
                duration(now - self.finished)
            ),
            "created" => "Created".to_owned(),
            other => other.to_owned(),
        }
    }
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
    pub kind: MountKind,
    /// The volume's name; `None` for other kinds.
    pub name: Option<String>,
    /// Whether the volume was made for this mount and has no name of its own.
    pub anonymous: bool,
    /// Where it lies on the host; empty for tmpfs.
    pub source: String,
    /// Where it appears in the container.
    pub target: String,
    /// Whether the container cannot write to it.
    pub read_only: bool,
}

impl Mount {
    pub(super) fn is_volume(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}

/// The kinds of mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MountKind {
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
    /// The address of the host it is published on; empty where it is not.
    pub address: String,
    /// The port of the host; `None` where it is only exposed.
    pub published: Option<u16>,
    /// The port inside.
    pub target: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
}

/// How a container is on a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Attachment {
    /// Its names there.
    pub aliases: Vec<String>,
    /// A fixed address; empty where the engine chooses.
    pub address: String,
}

/// A volume of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Its name; 64 hexadecimal digits where it is anonymous.
    pub name: String,
    /// The id of the engine it is on.
    pub engine: String,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// Stands for the data in it: who wrote first, so that a test sees whether data survived.
    pub content: String,
    /// Seconds since 1970.
    pub created: i64,
}

/// A network of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    /// 64 hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The id of the engine it is on.
    pub engine: String,
    /// `bridge`, …
    pub driver: String,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// Seconds since 1970.
    pub created: i64,
}

/// A path of the host.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub enum HostPath {
    /// A directory.
    Directory,
    /// A file and the text in it.
    File(String),
}

impl fmt::Debug for HostPath {
    // Without the text: it can be an `.env`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => f.write_str("Directory"),
            Self::File(text) => write!(f, "File({} bytes)", text.len()),
        }
    }
}

/// 64 hexadecimal digits that depend on every byte of the text. Not a cryptographic hash.
pub(in crate::rehearsal) fn fingerprint(text: &str) -> String {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let lane = |lane: u64| {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ lane.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
        // Spreads the last bytes over the whole word.
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    };
    format!(
        "{:016x}{:016x}{:016x}{:016x}",
        lane(0),
        lane(1),
        lane(2),
        lane(3)
    )
}
