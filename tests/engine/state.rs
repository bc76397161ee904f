//! What exists of a stack, and how two such states are compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    ops::Index,
    path::Path,
};

use serde_json::{Value, json};
use testbed::Status;

use crate::{
    bench::Stack,
    sameness::{assert_same, assert_same_networks},
};

/// The inspect objects of containers, by name. The index is a service.
#[derive(Debug, Clone)]
pub struct Containers(pub BTreeMap<String, Value>);

/// What exists of a stack.
#[derive(Debug, Clone)]
pub struct State {
    pub containers: Containers,
    pub networks: Vec<Value>,
    /// The mounted volumes, and those that were created for containers of the test's image.
    pub volumes: BTreeSet<String>,
    /// A checksum of each file in each volume and bind mount, by source and path.
    pub data: BTreeSet<String>,
    /// The text and the state of each Portainer stack.
    pub records: Vec<(String, Status)>,
}

/// What happened to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Untouched,
    Recreated,
    Started,
    Removed,
}

impl Index<&str> for Containers {
    type Output = Value;

    fn index(&self, service: &str) -> &Value {
        let mut containers = self.0.values();
        containers
            .find(|container| service_of(container) == service)
            .unwrap_or_else(|| panic!("no container of {service}"))
    }
}

impl Containers {
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// What all of them mount.
    pub fn mounts(&self) -> impl Iterator<Item = &Value> {
        let all = self.0.values();
        all.flat_map(|container| container["Mounts"].as_array().unwrap())
    }

    fn services(&self) -> BTreeSet<&str> {
        self.0.values().map(service_of).collect()
    }

    /// What happened to each service since, in the order of their names.
    pub fn happened(&self, after: &Self) -> BTreeMap<String, Happened> {
        let of = |service: &str, pointer: &str| {
            [self, after].map(|containers| {
                let all = containers.0.values();
                let own = all.filter(|container| service_of(container) == service);
                let values = own.map(|container| container.pointer(pointer).unwrap().to_string());
                values.collect::<BTreeSet<_>>()
            })
        };
        let happened = |service: &&str| {
            let [old, new] = of(service, "/Id");
            let [old_start, new_start] = of(service, "/State/StartedAt");
            let happened = match () {
                () if new.is_empty() => Happened::Removed,
                () if old.is_empty() => Happened::Started,
                () if old != new => Happened::Recreated,
                () if old_start != new_start => Happened::Started,
                () => Happened::Untouched,
            };
            ((*service).to_owned(), happened)
        };
        let all = &self.services() | &after.services();
        all.iter().map(happened).collect()
    }

    /// Asserts that nothing happened to any service.
    #[track_caller]
    pub fn assert_untouched(&self, after: &Self) {
        let happened = self.happened(after);
        let is_untouched = |one: &Happened| *one == Happened::Untouched;
        assert!(happened.values().all(is_untouched), "{happened:?}");
    }
}

impl State {
    /// Asserts that the containers have the same variables, mounts, networks, ports and image, and that no volume and no byte is lost or
    /// new.
    #[track_caller]
    pub fn assert_kept(&self, after: &Self) {
        assert_eq!(self.volumes, after.volumes);
        assert_eq!(self.data, after.data);
        assert_eq!(self.containers.names(), after.containers.names());
        for (name, before) in &self.containers.0 {
            let after = &after.containers.0[name];
            assert_eq!(essence(before), essence(after), "{name}");
        }
    }
}

impl Stack {
    pub fn state(&self) -> State {
        let containers = self.containers();
        State {
            networks: self.networks(),
            volumes: self.volumes(&containers),
            data: self.data(&containers),
            records: self.rehearsal.world(|world| {
                let records = world.records.values();
                records.map(|one| (one.text.clone(), one.status)).collect()
            }),
            containers,
        }
    }

    /// Asserts that everything is as it was: every key of each container and network, every volume and byte, and each
    /// Portainer stack.
    #[track_caller]
    pub fn assert_is(&self, before: &State) {
        assert_eq!(self.assert_has_objects(before).records, before.records);
    }

    /// The same, but for the Portainer stacks. Returns the state.
    #[track_caller]
    pub fn assert_has_objects(&self, before: &State) -> State {
        self.wait_until_healthy();
        let now = self.state();
        assert_same(&before.containers, &now.containers);
        assert_same_networks(&before.networks, &now.networks);
        assert_eq!(before.volumes, now.volumes);
        assert_eq!(before.data, now.data);
        now
    }

    /// The volumes that these containers mount, and those that were created for containers of this test's image. A file
    /// of the image identifies them.
    fn volumes(&self, containers: &Containers) -> BTreeSet<String> {
        let mut volumes = self.lines("volume ls -q --filter dangling=true");
        volumes.retain(|volume| volume.len() == 64 && self.is_of_image(volume));
        let names = containers.mounts().map(|mount| &mount["Name"]);
        volumes.extend(names.filter_map(|name| name.as_str().map(str::to_owned)));
        volumes.into_iter().collect()
    }

    fn is_of_image(&self, volume: &str) -> bool {
        let inspect = format!("volume inspect --format {{{{.Mountpoint}}}} {volume}");
        let Some(mount_point) = self.lines(&inspect).pop() else {
            return false;
        };
        // Prefers the mount point: while a container uses the volume, another test cannot remove it.
        match fs::metadata(Path::new(&mount_point).join(&self.host.project)) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                self.in_volume(volume, "$PROJECT") == "$PROJECT"
            }
            found => found.is_ok(),
        }
    }

    /// A checksum of each file that these containers mount, with the source and the path.
    fn data(&self, containers: &Containers) -> BTreeSet<String> {
        let mounts = containers.mounts().filter_map(|mount| {
            let kind = mount["Type"].as_str().unwrap();
            let source = match kind {
                "volume" => mount["Name"].as_str().unwrap(),
                "bind" => mount["Source"].as_str().unwrap(),
                _ => return None,
            };
            Some(format!(
                "--mount type={kind},source={source},target=/data/{source},readonly"
            ))
        });
        let mounts: BTreeSet<String> = mounts.collect();
        if mounts.is_empty() {
            return BTreeSet::new();
        }
        let mounts = mounts.into_iter().collect::<Vec<_>>().join(" ");
        let script = "/bin/busybox find /data -type f -exec /bin/busybox md5sum {} +; echo END";
        let run = "run --rm --label $MARK --network=none";
        let run = format!("{run} {mounts} $IMAGE /bin/sh -c '{script}'");
        // `docker run` can lose the output of a short command.
        let mut tries = (0..5).map(|_| self.docker(&run));
        let listed = tries.find(|files| files.ends_with("END"));
        let files = listed.expect("the files");
        files.lines().map(str::to_owned).collect()
    }
}

/// The networks of a container, with the aliases and the fixed address.
pub fn networks(container: &Value) -> BTreeSet<String> {
    let id = &container["Id"].as_str().unwrap()[..12];
    let networks = container["NetworkSettings"]["Networks"].as_object();
    let shown = |(name, endpoint): (&String, &Value)| {
        let aliases = endpoint["Aliases"].as_array().into_iter().flatten();
        let aliases = aliases.filter(|alias| **alias != id).map(Value::to_string);
        let aliases: BTreeSet<String> = aliases.collect();
        let address = &endpoint["IPAMConfig"]["IPv4Address"];
        format!("{name} {aliases:?} {address}")
    };
    networks.unwrap().iter().map(shown).collect()
}

/// What must be the same after a container was recreated.
fn essence(container: &Value) -> Value {
    let sorted = |value: &Value| {
        let items = value.as_array().into_iter().flatten();
        items.map(Value::to_string).collect::<BTreeSet<_>>()
    };
    let mounts = container["Mounts"].as_array().unwrap().iter();
    let mounts = mounts.map(|mount| {
        let keys = ["Type", "Name", "Source", "Destination", "RW"];
        json!(keys.map(|key| &mount[key]))
    });
    let (config, host) = (&container["Config"], &container["HostConfig"]);
    json!({
        "running": container["State"]["Running"],
        "healthy": container["State"]["Health"]["Status"],
        "image": container["Image"],
        "command": [config["Entrypoint"], config["Cmd"]],
        "env": sorted(&config["Env"]),
        "user": config["User"],
        "mounts": sorted(&mounts.collect()),
        "networks": networks(container),
        "ports": host["PortBindings"],
        "restart": host["RestartPolicy"],
        "init": host["Init"],
    })
}

fn service_of(container: &Value) -> &str {
    let label = &container["Config"]["Labels"]["com.docker.compose.service"];
    label.as_str().unwrap()
}
