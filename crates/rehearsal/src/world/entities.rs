//! Environments, and hashes.

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

/// The name of Portainer's administrator.
pub const ADMIN: &str = "admin";

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
