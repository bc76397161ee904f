//! Volumes, and the mounts of a container by the rules of the engine.

use std::collections::BTreeMap;

use composefile::services::{self, MountSpec};
use serde_json::{Value, json};

use super::{
    container::{Mount, MountType},
    entities::Volume,
    errors::Refused,
    settings::text,
    state::World,
    values::{entries, labels, many, texts},
};

impl World {
    /// Returns the volume with that name, and creates it if it does not exist.
    ///
    /// An empty name creates an anonymous volume.
    pub(crate) fn create_volume(&mut self, given: &Value) -> &Volume {
        let name = match text(given, "Name") {
            "" => self.new_id(),
            name => name.to_owned(),
        };
        let known = self.volumes.iter().position(|one| one.name == name);
        let at = known.unwrap_or_else(|| {
            let driver = match text(given, "Driver") {
                "" => "local",
                driver => driver,
            };
            self.volumes.push(Volume {
                mountpoint: format!("{}/{name}/_data", self.volume_folder),
                name,
                driver: driver.to_owned(),
                options: labels(&given["DriverOpts"]),
                labels: labels(&given["Labels"]),
                content: String::new(),
            });
            self.volumes.len() - 1
        });
        &self.volumes[at]
    }

    /// The mounts of a container. Creates missing volumes.
    pub(super) fn mounts_of(
        &mut self,
        config: &Value,
        host: &Value,
    ) -> Result<Vec<Mount>, Refused> {
        let short = texts(&host["Binds"]).into_iter().map(|bind| in_long(&bind));
        let long = many(&host["Mounts"]).iter().cloned().map(Ok);
        let mut wanted = short.chain(long).collect::<Result<Vec<_>, _>>()?;
        let mut mounts = self.mounts_from(host)?;
        mounts.retain(|mount| wanted.iter().all(|own| own["Target"] != *mount.target));
        for (target, _) in entries(&config["Volumes"]) {
            let is_taken = host["Tmpfs"].get(target).is_some()
                || wanted.iter().any(|own| own["Target"] == *target)
                || mounts.iter().any(|mount| mount.target == *target);
            if !is_taken {
                wanted.push(json!({ "Type": "volume", "Target": target }));
            }
        }
        for given in &wanted {
            mounts.push(self.mount(given)?);
        }
        Ok(mounts)
    }

    /// A mount of a request in the long form.
    fn mount(&mut self, given: &Value) -> Result<Mount, Refused> {
        let source = text(given, "Source");
        let mut mount = Mount {
            target: text(given, "Target").to_owned(),
            writable: given["ReadOnly"] != true,
            ..Mount::default()
        };
        match text(given, "Type") {
            "bind" => {
                if !self.has_path(source) {
                    if given["BindOptions"]["CreateMountpoint"] != true {
                        return Err(Refused::new(
                            400,
                            format!(
                                "invalid mount config for type \"bind\": bind source path does not exist: {source}"
                            ),
                        ));
                    }
                    self.add_directory(source);
                }
                mount.kind = MountType::Bind;
                source.clone_into(&mut mount.source);
            }
            "tmpfs" => mount.kind = MountType::Tmpfs,
            _ => {
                let options = &given["VolumeOptions"];
                let volume = self.create_volume(&json!({
                    "Name": source,
                    "DriverOpts": options["DriverConfig"]["Options"],
                    "Labels": options["Labels"],
                }));
                let name = &volume.name;
                mount.own = source.is_empty();
                mount.anonymous = name.len() == 64 && name.chars().all(|c| c.is_ascii_hexdigit());
                mount.name = Some(name.clone());
                mount.source.clone_from(&volume.mountpoint);
            }
        }
        Ok(mount)
    }

    /// The mounts of the containers in `VolumesFrom`.
    fn mounts_from(&self, host: &Value) -> Result<Vec<Mount>, Refused> {
        let mut found = BTreeMap::new();
        for from in texts(&host["VolumesFrom"]) {
            let (name, mode) = from.split_once(':').unwrap_or((&from, ""));
            for mount in &self.find(name)?.mounts {
                let mount = Mount {
                    writable: mount.writable && !is_read_only(mode),
                    own: false,
                    ..mount.clone()
                };
                found.insert(mount.target.clone(), mount);
            }
        }
        Ok(found.into_values().collect())
    }
}

/// The long form of `source:target[:options]`, of which the engine creates a missing source.
fn in_long(bind: &str) -> Result<Value, Refused> {
    let given = MountSpec::parse(bind).and_then(|spec| Some((spec, spec.source?)));
    let Some((spec, source)) = given else {
        let message = format!("invalid volume specification: '{bind}'");
        return Err(Refused::new(400, message));
    };
    let is_bind = spec.kind == services::MountType::Bind;
    Ok(json!({
        "Type": if is_bind { "bind" } else { "volume" },
        "Source": source,
        "Target": spec.target,
        "ReadOnly": is_read_only(spec.options.unwrap_or_default()),
        "BindOptions": { "CreateMountpoint": true },
    }))
}

/// Whether the options of a mount make it read-only.
fn is_read_only(options: &str) -> bool {
    options.split(',').any(|option| option == "ro")
}
