//! Volumes, and the mounts of a container by the rules of the engine.

use std::collections::{BTreeMap, BTreeSet};

use composefile::services::{self, MountSpec};
use serde_json::{Value, json};

use super::{
    container::{Mount, MountType},
    entities::Volume,
    errors::EngineError,
    settings::text,
    state::World,
    values::{labels, texts},
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
    ) -> Result<Vec<Mount>, EngineError> {
        let own = self.own_mounts(host)?;
        let targets = own.iter().map(|one| one.target.clone());
        let mut taken = targets.collect::<BTreeSet<_>>();
        let mut mounts = self.mounts_from(host)?;
        mounts.retain(|mount| !taken.contains(&mount.target));
        taken.extend(mounts.iter().map(|mount| mount.target.clone()));
        let tmpfs = host.get("Tmpfs").and_then(Value::as_object);
        taken.extend(tmpfs.into_iter().flatten().map(|(path, _)| path.clone()));
        let declared = config.get("Volumes").and_then(Value::as_object);
        let others = declared
            .into_iter()
            .flatten()
            .filter(|(target, _)| !taken.contains(*target))
            .map(|(target, _)| Mount::new(MountType::Volume, target));
        for mut mount in own.into_iter().chain(others) {
            if mount.kind == MountType::Volume {
                mount.own = mount.name.is_none();
                let request = volume_request(host, &mount);
                mount.uses(self.create_volume(&request));
            }
            mounts.push(mount);
        }
        Ok(mounts)
    }

    /// The mounts in `Binds` and `Mounts`.
    fn own_mounts(&mut self, host: &Value) -> Result<Vec<Mount>, EngineError> {
        let binds = texts(&host["Binds"]);
        let short = binds.iter().map(|bind| short_mount(bind));
        let mounts = host["Mounts"].as_array().into_iter().flatten();
        let long = mounts.map(|mount| self.long_mount(mount));
        let found = short.chain(long).collect::<Result<Vec<_>, _>>()?;
        for mount in &found {
            // The engine creates a missing source in short syntax.
            if mount.kind == MountType::Bind && !self.has_path(&mount.source) {
                self.add_directory(&mount.source);
            }
        }
        Ok(found)
    }

    fn long_mount(&self, given: &Value) -> Result<Mount, EngineError> {
        let source = text(given, "Source");
        let kind = match text(given, "Type") {
            "bind" => MountType::Bind,
            "tmpfs" => MountType::Tmpfs,
            _ => MountType::Volume,
        };
        let mut mount = Mount::new(kind, text(given, "Target"));
        mount.writable = given["ReadOnly"] != true;
        match kind {
            MountType::Bind if !self.has_path(source) => {
                return Err(EngineError::new(
                    400,
                    format!(
                        "invalid mount config for type \"bind\": bind source path does not exist: {source}"
                    ),
                ));
            }
            MountType::Bind => source.clone_into(&mut mount.source),
            MountType::Volume if !source.is_empty() => mount.name = Some(source.to_owned()),
            MountType::Volume | MountType::Tmpfs => {}
        }
        Ok(mount)
    }

    /// The mounts of the containers in `VolumesFrom`.
    fn mounts_from(&self, host: &Value) -> Result<Vec<Mount>, EngineError> {
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

impl Mount {
    fn new(kind: MountType, target: &str) -> Self {
        Self {
            kind,
            target: target.to_owned(),
            writable: true,
            ..Self::default()
        }
    }

    fn uses(&mut self, volume: &Volume) {
        let name = &volume.name;
        self.anonymous = name.len() == 64 && name.chars().all(|c| c.is_ascii_hexdigit());
        self.name = Some(name.clone());
        self.source.clone_from(&volume.mountpoint);
    }
}

/// `source:target[:options]`
fn short_mount(bind: &str) -> Result<Mount, EngineError> {
    let given = MountSpec::parse(bind).and_then(|spec| Some((spec, spec.source?)));
    let Some((spec, source)) = given else {
        let message = format!("invalid volume specification: '{bind}'");
        return Err(EngineError::new(400, message));
    };
    let mut mount = Mount::new(MountType::Volume, spec.target);
    mount.writable = !is_read_only(spec.options.unwrap_or_default());
    if spec.kind == services::MountType::Bind {
        mount.kind = MountType::Bind;
        source.clone_into(&mut mount.source);
    } else {
        mount.name = Some(source.to_owned());
    }
    Ok(mount)
}

/// Whether the options of a mount make it read-only.
pub(super) fn is_read_only(options: &str) -> bool {
    options.split(',').any(|option| option == "ro")
}

/// The body that creates the volume for a mount.
fn volume_request(host: &Value, mount: &Mount) -> Value {
    let mut long = host["Mounts"].as_array().into_iter().flatten();
    let of_mount = long.find(|one| text(one, "Target") == mount.target);
    let options = of_mount.map_or(&Value::Null, |one| &one["VolumeOptions"]);
    json!({
        "Name": mount.name,
        "DriverOpts": options["DriverConfig"]["Options"],
        "Labels": options["Labels"],
    })
}
