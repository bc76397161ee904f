//! The config hashes of networks and volumes (N13).
//!
//! Compose hashes the JSON of its own types for them. `config` prints the same JSON, indented, with each `$` twice.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::{model::ConfigHashes, text::sha256};

/// The part of a configuration that has networks and volumes.
#[derive(Deserialize)]
pub(super) struct Resources {
    #[serde(default)]
    networks: BTreeMap<String, Network>,
    #[serde(default)]
    volumes: BTreeMap<String, Volume>,
}

/// `NetworkConfig` of compose-go: the order of the fields matters.
#[derive(Deserialize, Serialize)]
struct Network {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    driver: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    driver_opts: BTreeMap<String, String>,
    /// Compose writes it even if it is empty.
    #[serde(default)]
    ipam: Ipam,
    #[serde(default, skip_serializing_if = "is_false")]
    external: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    internal: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    attachable: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_ipv4: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_ipv6: Option<bool>,
}

/// `IPAMConfig` of compose-go.
#[derive(Default, Deserialize, Serialize)]
struct Ipam {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    driver: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    config: Vec<Pool>,
}

/// `IPAMPool` of compose-go.
#[derive(Deserialize, Serialize)]
struct Pool {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    subnet: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    gateway: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    ip_range: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    aux_addresses: BTreeMap<String, String>,
}

/// `VolumeConfig` of compose-go.
#[derive(Deserialize, Serialize)]
struct Volume {
    name: String,
    /// Compose hashes a volume without a driver as one of this driver.
    #[serde(default = "local")]
    driver: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    driver_opts: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_false")]
    external: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
}

impl Resources {
    /// Those of a configuration in JSON.
    pub(super) fn of(config: &str) -> Result<Self> {
        serde_json::from_str(config).context("unexpected networks or volumes in the configuration")
    }

    /// Their hashes, beside those of `services`.
    pub(super) fn hashes(&self, services: BTreeMap<String, String>) -> Result<ConfigHashes> {
        let networks = self.networks.values().filter(|one| !one.external);
        let volumes = self.volumes.values().filter(|one| !one.external);
        Ok(ConfigHashes {
            services,
            networks: networks
                .map(|one| hash(&one.name, one))
                .collect::<Result<_>>()?,
            volumes: volumes
                .map(|one| hash(&one.name, one))
                .collect::<Result<_>>()?,
        })
    }
}

/// The name and the hash of the JSON that Go writes: it escapes these characters.
fn hash(name: &str, definition: &impl Serialize) -> Result<(String, String)> {
    let mut json = serde_json::to_string(definition)?.replace("$$", "$");
    for (character, escape) in [("<", r"\u003c"), (">", r"\u003e"), ("&", r"\u0026")] {
        json = json.replace(character, escape);
    }
    Ok((name.replace("$$", "$"), sha256(&json)))
}

fn local() -> String {
    "local".to_owned()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each hash is one that Compose 2.40.3 and 5.6.1 wrote into the label of what they created from this configuration.
    #[test]
    fn hashes_are_those_of_the_labels() {
        let config = r#"{"name": "netx", "networks": {
            "back": {"name": "netx_back", "ipam": {}, "internal": true, "attachable": true, "enable_ipv6": false},
            "default": {"name": "netx_default", "ipam": {}},
            "front": {"name": "netx_front", "driver": "bridge", "driver_opts": {"k": "5", "com.docker.network.bridge.name": "br77"},
              "ipam": {"config": [{"subnet": "10.77.0.0/24", "gateway": "10.77.0.1", "aux_addresses": {"h": "10.77.0.9"}}]},
              "labels": {"a": "1", "b": "x\u003cy\u0026z"}},
            "other": {"name": "other", "ipam": {}, "external": true}},
          "volumes": {
            "data": {"name": "netx_data"},
            "opts": {"name": "netx_opts", "driver_opts": {"device": "tmpfs", "o": "size=1m", "type": "tmpfs"}, "labels": {"q": "1"}},
            "other": {"name": "others", "external": true}}}"#;
        let resources = Resources::of(config).expect("a configuration");
        let hashes = resources.hashes(BTreeMap::new()).expect("hashes");
        let expected = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned()))
                .collect()
        };
        assert_eq!(
            hashes.networks,
            expected(&[
                (
                    "netx_back",
                    "897bfd3972c15196182a409e1e7f598ce1ea2ced3c658f6c0b3175c461faa21b"
                ),
                (
                    "netx_default",
                    "a87878c54bf709844a7abd7711752521f4373a4a42fadd0e6998ad8401b46027"
                ),
                (
                    "netx_front",
                    "067a326d024e149d495a5fd6d2dd825eaa1eaab3ddae24ddc048f79d9216dba4"
                ),
            ])
        );
        assert_eq!(
            hashes.volumes,
            expected(&[
                (
                    "netx_data",
                    "30ae98a6e78310215ff3423fc2146c265f04955739610d2f23a57999b5863851"
                ),
                (
                    "netx_opts",
                    "9bc34015aa2b5414a6b22295ce955de84cad1ee87f4bfbc7f540fbc3ed04eebf"
                ),
            ])
        );
    }
}
