//! The mounts of a container that are in memory (B36).
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::{Changes, Container};

impl Container {
    /// The paths of its mounts in memory (B36): `tmpfs` mounts, those of `volumes` that are a `tmpfs`, and `/dev/shm`, unless it
    /// is another's.
    pub fn in_memory(&self, volumes: &[Value]) -> BTreeSet<&str> {
        const SHARED: &str = "/dev/shm";
        let is_tmpfs = |mount: &Value| match mount["Type"].as_str() {
            Some("volume") => volumes.iter().any(|volume| {
                volume["Name"] == mount["Name"]
                    && volume["Driver"] == "local"
                    && matches!(volume["Options"]["type"].as_str(), Some("tmpfs" | "ramfs"))
            }),
            kind => kind == Some("tmpfs"),
        };
        let mounts = self.mounts().filter(|mount| is_tmpfs(mount));
        let mounts = mounts.filter_map(|mount| mount["Destination"].as_str());
        let tmpfs = self.fields("/HostConfig/Tmpfs").map(|(path, _)| &**path);
        let is_own = matches!(
            self.text("/HostConfig/IpcMode"),
            "" | "private" | "shareable"
        ) && self.at("/HostConfig/ShmSize").and_then(Value::as_u64) > Some(0)
            && !self.mount_points().contains(&SHARED);
        mounts
            .chain(tmpfs)
            .chain(is_own.then_some(SHARED))
            .collect()
    }

    /// The mounts in memory that held files according to `changes`, without the volumes that one of `others` keeps mounted
    /// (B36).
    pub fn emptied<'c>(&self, changes: &'c Changes, others: &[&Container]) -> Vec<&'c str> {
        let mut held = BTreeSet::new();
        for (name, target) in self.volumes() {
            let mounts = |one: &&Container| one.volumes().iter().any(|(other, _)| *other == name);
            if others
                .iter()
                .filter(|container| container.is_running())
                .any(mounts)
            {
                held.insert(target);
            }
        }
        let all = changes.in_memory.iter().map(String::as_str);
        all.filter(|path| !held.contains(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b36_every_kind_of_mount_in_memory_is_found() {
        let volume = |name: &str, target: &str| json!({"Type": "volume", "Name": name, "Destination": target});
        let volumes = [
            json!({"Name": "ram", "Driver": "local", "Options": {"type": "tmpfs", "device": "tmpfs"}}),
            json!({"Name": "nfs", "Driver": "local", "Options": {"type": "nfs"}}),
            json!({"Name": "plain", "Driver": "local", "Options": null}),
            json!({"Name": "other", "Driver": "rexray", "Options": {"type": "tmpfs"}}),
        ];
        let of = |ipc: &str, size: u64, shared: Value| {
            let container = Container(json!({
                "HostConfig": {"Tmpfs": {"/run": ""}, "IpcMode": ipc, "ShmSize": size},
                "Mounts": [
                    {"Type": "tmpfs", "Destination": "/long"},
                    {"Type": "bind", "Source": "/srv", "Destination": "/srv"},
                    volume("ram", "/r"), volume("nfs", "/n"), volume("plain", "/p"), volume("other", "/o"), shared,
                ],
            }));
            let found = container.in_memory(&volumes);
            found.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let own = ["/long", "/r", "/run"];
        let with_shared = ["/dev/shm", "/long", "/r", "/run"];
        for ipc in ["private", "shareable"] {
            assert_eq!(of(ipc, 1 << 26, json!({})), with_shared);
        }
        for ipc in ["host", "container:b", "none"] {
            assert_eq!(of(ipc, 1 << 26, json!({})), own);
        }
        let bind = json!({"Type": "bind", "Source": "/dev/shm", "Destination": "/dev/shm"});
        assert_eq!(of("private", 1 << 26, bind), own);
    }

    #[test]
    fn b36_a_volume_that_a_running_container_mounts_is_not_emptied() {
        let mounts = |volume: &str, target: &str| json!([{"Type": "volume", "Name": volume, "Destination": target}]);
        let container = Container(json!({"Mounts": mounts("ram", "/r")}));
        let changes = Changes {
            in_memory: vec!["/r".to_owned(), "/run".to_owned()],
            ..Changes::default()
        };
        let other = |state: &str, volume: &str| {
            let state = json!({"Running": state == "running"});
            Container(json!({"State": state, "Mounts": mounts(volume, "/x")}))
        };
        let emptied = |other: &Container| container.emptied(&changes, &[other]);
        assert_eq!(emptied(&other("running", "ram")), ["/run"]);
        assert_eq!(emptied(&other("exited", "ram")), ["/r", "/run"]);
        assert_eq!(emptied(&other("running", "another")), ["/r", "/run"]);
    }
}
