//! The config hashes of networks and volumes (N13).
//!
//! Compose hashes the JSON of its own types for them. `config` prints the same JSON, indented, with each `$` twice.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{model::ConfigHashes, text::sha256};

/// The hashes of the networks and volumes of a configuration in JSON, without those of services.
pub(super) fn hashes(config: &str) -> Result<ConfigHashes> {
    let config: Value = serde_json::from_str(config).context("unexpected configuration")?;
    let mut definitions = BTreeMap::new();
    let mut of = |kind: &str| {
        let all = config[kind].as_object().into_iter().flatten();
        let own = all.filter(|(_, one)| one["external"] != true);
        let hashes = own.filter_map(|(_, one)| {
            let name = one["name"].as_str()?.replace("$$", "$");
            let mut one = one.as_object()?.clone();
            // Compose hashes a volume without a driver as one of this driver.
            if kind == "volumes" && !one.contains_key("driver") {
                one.shift_insert(1, "driver".to_owned(), "local".into());
            }
            let definition = hashed(&one.into());
            let hash = sha256(&definition);
            definitions.insert(hash.clone(), serde_json::from_str(&definition).ok()?);
            Some((name, hash))
        });
        hashes.collect()
    };
    Ok(ConfigHashes {
        services: BTreeMap::new(),
        networks: of("networks"),
        volumes: of("volumes"),
        definitions,
    })
}

/// A value that `config` printed as the JSON that Go hashes: it escapes these characters.
pub fn hashed(value: &Value) -> String {
    let mut json = value.to_string().replace("$$", "$");
    for (character, escape) in [
        ("<", r"\u003c"),
        (">", r"\u003e"),
        ("&", r"\u0026"),
        ("\u{2028}", r"\u2028"),
        ("\u{2029}", r"\u2029"),
    ] {
        json = json.replace(character, escape);
    }
    json
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
            "front": {"name": "netx_front", "driver": "bridge", "driver_opts": {"com.docker.network.bridge.name": "br77", "k": "5"},
              "ipam": {"config": [{"subnet": "10.77.0.0/24", "gateway": "10.77.0.1", "aux_addresses": {"h": "10.77.0.9"}}]},
              "labels": {"a": "1", "b": "x\u003cy\u0026z"}},
            "other": {"name": "other", "ipam": {}, "external": true}},
          "volumes": {
            "data": {"name": "netx_data"},
            "opts": {"name": "netx_opts", "driver_opts": {"device": "tmpfs", "o": "size=1m", "type": "tmpfs"}, "labels": {"q": "1"}},
            "other": {"name": "others", "external": true}}}"#;
        let hashes = hashes(config).expect("a configuration");
        let all = hashes.networks.into_iter().chain(hashes.volumes);
        let shown: Vec<_> = all.map(|(name, hash)| name + " " + &hash).collect();
        let expected = [
            "netx_back 897bfd3972c15196182a409e1e7f598ce1ea2ced3c658f6c0b3175c461faa21b",
            "netx_default a87878c54bf709844a7abd7711752521f4373a4a42fadd0e6998ad8401b46027",
            "netx_front 067a326d024e149d495a5fd6d2dd825eaa1eaab3ddae24ddc048f79d9216dba4",
            "netx_data 30ae98a6e78310215ff3423fc2146c265f04955739610d2f23a57999b5863851",
            "netx_opts 9bc34015aa2b5414a6b22295ce955de84cad1ee87f4bfbc7f540fbc3ed04eebf",
        ];
        assert_eq!(shown, expected);
    }
}
