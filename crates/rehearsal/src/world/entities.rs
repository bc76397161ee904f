//! Environments and API keys.

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

/// A Portainer API key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub(crate) secret: String,
    /// The name of its user.
    pub user: String,
    /// Whether its user is an administrator, who may do everything. Others see a filtered list of stacks.
    pub is_admin: bool,
}

impl ApiKey {
    pub(super) fn new(secret: &str, user: &str, is_admin: bool) -> Self {
        Self {
            secret: secret.to_owned(),
            user: user.to_owned(),
            is_admin,
        }
    }
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
