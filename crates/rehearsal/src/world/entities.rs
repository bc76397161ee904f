//! Environments, engines, API keys, images, volumes, networks and host paths.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

/// A Portainer environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// The name.
    pub name: String,
    /// The ID of its engine.
    pub engine: String,
    /// Whether it is another machine, whatever the ID of its engine: a clone of this host.
    pub is_clone: bool,
    /// Whether only administrators may see and use it.
    pub restricted: bool,
    /// Whether only administrators may manage stacks: `allowStackManagementForRegularUsers` is false (M22).
    pub forbids_stacks: bool,
    /// What only administrators may deploy, such as `BindMounts` in `allowBindMountsForRegularUsers` (M22). It is shown, and
    /// no text is rejected for it.
    pub admin_only: Vec<&'static str>,
}

impl Endpoint {
    pub(super) fn new(name: &str, engine: &str) -> Self {
        Self {
            name: name.to_owned(),
            engine: engine.to_owned(),
            ..Self::default()
        }
    }
}

/// A container engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Engine {
    /// `ID` in `/info`.
    pub id: String,
    /// The version.
    pub version: String,
    /// The newest API version.
    pub api: String,
    /// The oldest supported API version.
    pub min_api: String,
    /// The version of Podman, if it is Podman's Docker-compatible API.
    pub libpod: Option<String>,
}

/// A Portainer API key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub(crate) secret: String,
    /// The name of its user.
    pub user: String,
    /// The role of its user.
    pub role: Role,
}

/// The role of a Portainer user, with its number in Portainer's JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May do everything.
    Administrator = 1,
    /// Sees a filtered list of stacks.
    Standard = 2,
}

impl ApiKey {
    pub(super) fn new(secret: &str, user: &str, role: Role) -> Self {
        Self {
            secret: secret.to_owned(),
            user: user.to_owned(),
            role,
        }
    }
}

/// An image on the host, as the engine inspects it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Image {
    /// `sha256:` and 64 hexadecimal digits.
    pub id: String,
    /// The names with their tags.
    #[serde(rename = "RepoTags")]
    pub tags: BTreeSet<String>,
    /// The defaults for containers.
    pub config: Value,
}

/// A volume, as the engine inspects it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Volume {
    /// The name; 64 hexadecimal digits if the volume is anonymous.
    pub name: String,
    /// The path of its data on the host.
    pub mountpoint: String,
    /// `local`, …
    pub driver: String,
    /// The driver's options.
    pub options: BTreeMap<String, String>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// Represents the data: the container that wrote first, so that a test sees whether data survived.
    pub content: String,
}

/// A network, as the engine inspects it, without its containers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Network {
    /// 64 hexadecimal digits.
    pub id: String,
    /// The name.
    pub name: String,
    /// `bridge`, …
    pub driver: String,
    /// The driver's options.
    pub options: BTreeMap<String, String>,
    /// The address pools.
    #[serde(rename = "IPAM")]
    pub ipam: Value,
    /// Whether the network has no external access.
    pub internal: bool,
    /// Whether containers outside of a service can join it.
    pub attachable: bool,
    /// Whether it has IPv6 addresses.
    #[serde(rename = "EnableIPv6")]
    pub ipv6: bool,
    /// All labels.
    pub labels: BTreeMap<String, String>,
}

/// The networks that every engine has.
pub(super) const PREDEFINED: [&str; 3] = ["bridge", "host", "none"];

/// The hash of a configuration: of its JSON, in which Go escapes these characters.
pub fn config_hash(config: &Value) -> String {
    let mut text = config.to_string();
    for character in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
        let escape = format!("\\u{:04x}", u32::from(character));
        text = text.replace(character, &escape);
    }
    fingerprint(&text)
}

/// A hash of a text: 64 hexadecimal digits.
pub(crate) fn fingerprint(text: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let bytes = hash.as_ref().iter();
    bytes.fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}
