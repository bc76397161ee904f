//! Volumes, and the mounts of a container by the rules of the engine.

use std::collections::BTreeMap;

use composefile::services::{MountSpec, MountType};
use serde_json::{Value, json};

use super::{
    errors::Refused,
    settings::text,
    state::World,
    values::{entries, labels, many, texts},
};

impl World {
    /// Returns the volume with that name, and creates it if it does not exist.
    ///
    /// An empty name creates an anonymous volume.
    pub(crate) fn create_volume(&mut self, given: &Value) -> &Value {
        let name = match text(given, "Name") {
            "" => self.new_id(),
            name => name.to_owned(),
        };
        let known = self
            .volumes
            .iter()
            .position(|volume| volume["Name"] == name);
        let at = known.unwrap_or_else(|| {
            let driver = Some(text(given, "Driver")).filter(|driver| !driver.is_empty());
            self.volumes.push(json!({
                "Name": name,
                "Mountpoint": format!("/var/lib/docker/volumes/{name}/_data"),
                "Driver": driver.unwrap_or("local"),
                "Options": labels(&given["DriverOpts"]),
                "Labels": labels(&given["Labels"]),
                "Content": "",
            }));
            self.volumes.len() - 1
        });
        &self.volumes[at]
    }

    /// The mounts of a container, and the names of the volumes that were created for it alone. Creates missing volumes.
    pub(super) fn mounts_of(
        &mut self,
        config: &Value,
        host: &Value,
    ) -> Result<(Vec<Value>, Vec<String>), Refused> {
        let short = texts(&host["Binds"]).into_iter().map(|bind| in_long(&bind));
        let long = many(&host["Mounts"]).iter().cloned().map(Ok);
        let mut wanted = short.chain(long).collect::<Result<Vec<_>, _>>()?;
        let mut mounts = self.mounts_from(host)?;
        mounts.retain(|mount| {
            wanted
                .iter()
                .all(|own| own["Target"] != mount["Destination"])
        });
        for (target, _) in entries(&config["Volumes"]) {
            let is_taken = host["Tmpfs"].get(target).is_some()
                || wanted.iter().any(|own| own["Target"] == *target)
                || mounts.iter().any(|mount| mount["Destination"] == *target);
            if !is_taken {
                wanted.push(json!({ "Type": "volume", "Target": target }));
            }
        }
        let mut own = Vec::new();
        for given in &wanted {
            let mount = self.mount(given)?;
            if mount["Type"] == "volume" && text(given, "Source").is_empty() {
                own.push(text(&mount, "Name").to_owned());
            }
            mounts.push(mount);
        }
        Ok((mounts, own))
    }

    /// A mount of a request in the long form.
    fn mount(&mut self, given: &Value) -> Result<Value, Refused> {
        let kind = match text(given, "Type") {
            kind @ ("bind" | "tmpfs") => kind,
            _ => "volume",
        };
        let mut source = text(given, "Source").to_owned();
        let mut mount = json!({ "Type": kind });
        if kind == "volume" {
            let options = &given["VolumeOptions"];
            let volume = self.create_volume(&json!({
                "Name": source,
                "DriverOpts": options["DriverConfig"]["Options"],
                "Labels": options["Labels"],
            }));
            mount["Name"] = volume["Name"].clone();
            text(volume, "Mountpoint").clone_into(&mut source);
        } else if kind == "bind" && !self.has_path(&source) {
            if given["BindOptions"]["CreateMountpoint"] != true {
                return Err(Refused::new(
                    400,
                    format!(
                        "invalid mount config for type \"bind\": bind source path does not exist: {source}"
                    ),
                ));
            }
            self.add_directory(&source);
        }
        mount["Source"] = json!(source);
        mount["Destination"] = given["Target"].clone();
        mount["RW"] = json!(given["ReadOnly"] != true);
        Ok(mount)
    }

    /// The mounts of the containers in `VolumesFrom`.
    fn mounts_from(&self, host: &Value) -> Result<Vec<Value>, Refused> {
        let mut found = BTreeMap::new();
        for from in texts(&host["VolumesFrom"]) {
            let (name, mode) = from.split_once(':').unwrap_or((&from, ""));
            for mount in &self.find(name)?.mounts {
                let mut mount = mount.clone();
                mount["RW"] = json!(mount["RW"] == true && !is_read_only(mode));
                found.insert(text(&mount, "Destination").to_owned(), mount);
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
    let is_bind = spec.kind == MountType::Bind;
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
