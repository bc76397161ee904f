//! The things in a world.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;
use serde_json::{Value, json};

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

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}, {:?})", self.user, self.role)
    }
}

/// An image that lies on the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Image {
    /// `sha256:` and 64 hexadecimal digits.
    pub id: String,
    /// Its names with their tags.
    pub tags: BTreeSet<String>,
    /// `Config`: what a container gets that says nothing else.
    pub config: Value,
    /// Seconds since 1970.
    pub created: i64,
}

/// A volume of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Its name; 64 hexadecimal digits where it is anonymous.
    pub name: String,
    /// The id of the engine it is on.
    pub engine: String,
    /// `local`, …
    pub driver: String,
    /// The driver's options.
    pub options: BTreeMap<String, String>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// Stands for the data in it: who wrote first, so that a test sees whether data survived.
    pub content: String,
    /// Seconds since 1970.
    pub created: i64,
}

/// A network of an engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Network {
    /// 64 hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The id of the engine it is on.
    pub engine: String,
    /// `bridge`, …
    pub driver: String,
    /// The driver's options.
    pub options: BTreeMap<String, String>,
    /// `IPAM`, as it is shown.
    pub ipam: Value,
    /// Who chose the subnet.
    pub subnet_by: SubnetBy,
    /// Whether nothing outside is reached.
    pub internal: bool,
    /// Whether containers of no service can join.
    pub attachable: bool,
    /// `EnableIPv6`
    pub ipv6: bool,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// Seconds since 1970.
    pub created: i64,
}

/// Who chose the subnet of a network; only where a person did can addresses be fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SubnetBy {
    /// The engine.
    Engine,
    /// Whoever made the network.
    Person,
}

impl Network {
    /// `bridge`, `host` or `none`, which every engine has.
    pub(crate) fn is_predefined(&self) -> bool {
        PREDEFINED.contains(&self.name.as_str())
    }

    /// A field of the first `IPAM.Config`.
    pub(crate) fn pool(&self, field: &str) -> &str {
        let pool = self.ipam["Config"].get(0).and_then(|pool| pool.get(field));
        pool.and_then(Value::as_str).unwrap_or_default()
    }
}

/// The networks that every engine has.
pub(super) const PREDEFINED: [&str; 3] = ["bridge", "host", "none"];

/// `IPAM` with one pool.
pub(super) fn one_pool(subnet: &str, gateway: &str) -> Value {
    json!({
        "Driver": "default",
        "Options": null,
        "Config": [{ "Subnet": subnet, "Gateway": gateway }],
    })
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
pub(crate) fn fingerprint(text: &str) -> String {
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
