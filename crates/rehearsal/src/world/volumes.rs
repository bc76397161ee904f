//! Volumes, and the mounts of a container by the rules of the engine.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    container::{Mount, MountType},
    entities::Volume,
    errors::EngineError,
    settings::{pairs, text, texts},
    state::World,
};

impl World {
    /// Returns the volume with that name, and creates it if it does not exist.
    ///
    /// An empty name creates an anonymous volume.
    pub(crate) fn create_volume(
        &mut self,
        engine: &str,
        given: &Value,
    ) -> Result<&Volume, EngineError> {
        let name = match text(given, "Name") {
            "" => self.new_id(),
            name => checked(name)?.to_owned(),
        };
        let is_it = |one: &Volume| one.engine == engine && one.name == name;
        if let Some(at) = self.volumes.iter().position(is_it) {
            return Ok(&self.volumes[at]);
        }
        let driver = match text(given, "Driver") {
            "" => "local",
            driver => driver,
        };
        self.volumes.push(Volume {
            mountpoint: format!("{}/{name}/_data", self.volume_folder),
            name: name.clone(),
            engine: engine.to_owned(),
            driver: driver.to_owned(),
            options: pairs(given.get("DriverOpts")).collect(),
            labels: pairs(given.get("Labels")).collect(),
            content: String::new(),
            created: self.seconds(),
        });
        Ok(&self.volumes[self.volumes.len() - 1])
    }

    /// Removes a volume. Fails if a container mounts it.
    pub(crate) fn remove_volume(&mut self, engine: &str, name: &str) -> Result<(), EngineError> {
        self.volume_on(engine, name)?;
        let here = self.containers.values().filter(|one| one.engine == engine);
        let users = here
            .filter(|one| one.mounts.iter().any(|mount| mount.is_volume(name)))
            .map(|one| one.id.clone())
            .collect::<Vec<_>>();
        if !users.is_empty() {
            let users = users.join(", ");
            let message = format!("remove {name}: volume is in use - [{users}]");
            return Err(EngineError::new(409, message));
        }
        self.volumes
            .retain(|volume| volume.engine != engine || volume.name != name);
        Ok(())
    }

    /// A volume of an engine, by name.
    pub(crate) fn volume_on(&self, engine: &str, name: &str) -> Result<&Volume, EngineError> {
        let mut here = self.volumes.iter().filter(|one| one.engine == engine);
        here.find(|one| one.name == name)
            .ok_or_else(|| EngineError::new(404, format!("get {name}: no such volume")))
    }

    /// The mounts of a container. Creates missing volumes.
    pub(super) fn mounts_of(
        &mut self,
        engine: &str,
        config: &Value,
        host: &Value,
    ) -> Result<Vec<Mount>, EngineError> {
        let own = self.own_mounts(host)?;
        let targets = own.iter().map(|one| one.target.clone());
        let mut taken = targets.collect::<BTreeSet<_>>();
        let mut mounts = self.mounts_from(engine, host)?;
        mounts.retain(|mount| !taken.contains(&mount.target));
        taken.extend(mounts.iter().map(|mount| mount.target.clone()));
        let tmpfs = host.get("Tmpfs").and_then(Value::as_object);
        taken.extend(tmpfs.into_iter().flatten().map(|(path, _)| path.clone()));
        for mut mount in own {
            if mount.kind == MountType::Volume {
                let (name, driver, labels) = volume_request(host, &mount);
                let request = json!({ "Name": name, "DriverOpts": driver, "Labels": labels });
                mount.own = name.is_empty();
                mount.uses(self.create_volume(engine, &request)?);
            }
            mounts.push(mount);
        }
        let declared = config.get("Volumes").and_then(Value::as_object);
        for (target, _) in declared.into_iter().flatten() {
            if !taken.contains(target) {
                let mut mount = Mount::new(MountType::Volume, target);
                mount.own = true;
                mount.uses(self.create_volume(engine, &json!({}))?);
                mounts.push(mount);
            }
        }
        Ok(mounts)
    }

    /// The mounts in `Binds` and `Mounts`. Fails if two have the same target.
    fn own_mounts(&mut self, host: &Value) -> Result<Vec<Mount>, EngineError> {
        let mut found = Vec::<Mount>::new();
        let short = texts(host.get("Binds"));
        let short = short.iter().map(|bind| short_mount(bind));
        let long = host["Mounts"].as_array().into_iter().flatten();
        let long = long.map(|mount| self.long_mount(mount));
        for mount in short.chain(long).collect::<Vec<_>>() {
            let mount = mount?;
            if found.iter().any(|one| one.target == mount.target) {
                let message = format!("Duplicate mount point: {}", mount.target);
                return Err(EngineError::new(400, message));
            }
            found.push(mount);
        }
        for mount in &found {
            // The engine creates a missing source in short syntax.
            if mount.kind == MountType::Bind && !self.has_path(&mount.source) {
                self.add_directory(&mount.source);
            }
        }
        Ok(found)
    }

    fn long_mount(&self, given: &Value) -> Result<Mount, EngineError> {
        let (source, target) = (text(given, "Source"), text(given, "Target"));
        let kind = match text(given, "Type") {
            "bind" => MountType::Bind,
            "volume" => MountType::Volume,
            "tmpfs" => MountType::Tmpfs,
            other => {
                return Err(EngineError::new(
                    400,
                    format!("mount type unknown: {other:?}"),
                ));
            }
        };
        if target.is_empty() {
            let message = "invalid mount config for type \"bind\": field Target must not be empty";
            return Err(EngineError::new(400, message));
        }
        let mut mount = Mount::new(kind, target);
        mount.read_only = given["ReadOnly"] == true;
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
            MountType::Volume if !source.is_empty() => mount.named(checked(source)?),
            MountType::Volume | MountType::Tmpfs => {}
        }
        if kind == MountType::Volume {
            "z".clone_into(&mut mount.mode);
        }
        Ok(mount)
    }

    /// The mounts of the containers in `VolumesFrom`.
    fn mounts_from(&self, engine: &str, host: &Value) -> Result<Vec<Mount>, EngineError> {
        let mut found = BTreeMap::new();
        for from in texts(host.get("VolumesFrom")) {
            let (name, mode) = from.split_once(':').unwrap_or((&from, ""));
            let other = self
                .find_on(engine, name)
                .map_err(|error| EngineError::new(400, error.message))?;
            for mount in &other.mounts {
                let mut mount = mount.clone();
                mount.read_only |= mode.split(',').any(|option| option == "ro");
                mount.own = false;
                if mount.mode == "z" {
                    mount.mode.clear();
                }
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
            name: None,
            anonymous: false,
            own: false,
            source: String::new(),
            target: target.to_owned(),
            read_only: false,
            mode: String::new(),
        }
    }

    fn uses(&mut self, volume: &Volume) {
        self.named(&volume.name);
        self.source.clone_from(&volume.mountpoint);
    }

    fn named(&mut self, volume: &str) {
        self.name = Some(volume.to_owned());
        self.anonymous = volume.len() == 64 && volume.chars().all(|c| c.is_ascii_hexdigit());
    }
}

/// `source:target[:options]`
fn short_mount(bind: &str) -> Result<Mount, EngineError> {
    let parts = bind.split(':').collect::<Vec<_>>();
    let (source, target, mode) = match parts.as_slice() {
        [source, target] => (*source, *target, ""),
        [source, target, mode] => (*source, *target, *mode),
        _ => {
            let message = format!("invalid volume specification: '{bind}'");
            return Err(EngineError::new(400, message));
        }
    };
    let is_path = source.starts_with('/');
    let kind = if is_path {
        MountType::Bind
    } else {
        MountType::Volume
    };
    let mut mount = Mount::new(kind, target);
    mount.read_only = mode.split(',').any(|option| option == "ro");
    if is_path {
        source.clone_into(&mut mount.source);
        mode.clone_into(&mut mount.mode);
    } else {
        mount.named(checked(source)?);
        let shown = if mode.is_empty() { "z" } else { mode };
        shown.clone_into(&mut mount.mode);
    }
    Ok(mount)
}

/// Checks a volume name.
fn checked(name: &str) -> Result<&str, EngineError> {
    if is_name(name) {
        return Ok(name);
    }
    Err(EngineError::new(
        400,
        format!(
            "create {name}: \"{name}\" includes invalid characters for a local volume name, only \
             \"[a-zA-Z0-9][a-zA-Z0-9_.-]\" are allowed. If you intended to pass a host directory, use \
             absolute path"
        ),
    ))
}

/// `[a-zA-Z0-9][a-zA-Z0-9_.-]+`
pub(super) fn is_name(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// Name, driver options and labels of the volume for a mount.
fn volume_request<'h>(host: &'h Value, mount: &Mount) -> (String, &'h Value, &'h Value) {
    const NONE: &Value = &Value::Null;
    let mut long = host["Mounts"].as_array().into_iter().flatten();
    let options = long
        .find(|one| text(one, "Target") == mount.target)
        .map_or(NONE, |one| &one["VolumeOptions"]);
    let name = mount.name.clone().unwrap_or_default();
    (
        name,
        &options["DriverConfig"]["Options"],
        &options["Labels"],
    )
}
