//! The request that creates a container: what the engine makes of the configuration of a service.

use std::collections::BTreeMap;

use composefile::{duration::seconds, path::clean};
use serde_json::{Map, Value, json};

use super::{
    container::Container,
    resolve::Project,
    service::Service,
    state::World,
    typed::number,
    values::{entries, fraction, labels, many, text, texts},
};

/// One container of a project.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    pub project: &'r Project,
    pub service: &'r Service,
    pub number: usize,
}

/// The fields of `Config` with the keys of a service that they take unchanged.
const CONFIG: &str = "Hostname:hostname Domainname:domainname User:user WorkingDir:working_dir MacAddress:mac_address \
                      StopSignal:stop_signal Tty:tty OpenStdin:stdin_open Entrypoint:entrypoint";

/// The same of `HostConfig`.
const HOST_CONFIG: &str = "Annotations:annotations CgroupParent:cgroup_parent CgroupnsMode:cgroup CpuShares:cpu_shares \
                           CpusetCpus:cpuset Init:init OomKillDisable:oom_kill_disable OomScoreAdj:oom_score_adj \
                           PidsLimit:pids_limit Privileged:privileged ReadonlyRootfs:read_only Runtime:runtime \
                           StorageOpt:storage_opt Sysctls:sysctls UsernsMode:userns_mode UTSMode:uts \
                           VolumeDriver:volume_driver";

/// The fields of `HostConfig` that are empty lists without a key.
const LISTS: &str = "CapAdd:cap_add CapDrop:cap_drop DeviceCgroupRules:device_cgroup_rules Dns:dns DnsOptions:dns_opt \
                     DnsSearch:dns_search GroupAdd:group_add SecurityOpt:security_opt Links:external_links";

/// The fields of `HostConfig` that are sizes.
const SIZES: &str =
    "Memory:mem_limit MemoryReservation:mem_reservation MemorySwap:memswap_limit ShmSize:shm_size";

/// The pairs of one of these tables.
fn fields(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.split(' ').filter_map(|pair| pair.split_once(':'))
}

impl World {
    /// The body of the request that creates a container.
    pub(super) fn body(
        &self,
        run: &Run<'_>,
        hash: String,
        name: &str,
        old: Option<&Container>,
    ) -> Value {
        let service = &run.service.config;
        let variables = entries(&service["environment"]);
        let variables = variables.filter_map(|(name, value)| Some((name, text(value)?)));
        let mut body = json!({
            "AttachStdout": true,
            "AttachStderr": true,
            "Image": run.service.image(&run.project.name),
            "Env": variables.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
            "ExposedPorts": exposed(service),
            "Cmd": texts(&service["command"]),
            "Healthcheck": service.get("healthcheck").map(health),
            "Labels": self.labels(run, hash, old),
        });
        for (field, key) in fields(CONFIG) {
            body[field] = service[key].clone();
        }
        if let Some(grace) = run.service.text("stop_grace_period") {
            body["StopTimeout"] = fraction(seconds(&grace).ceil());
        }
        let endpoints = endpoints(run, name);
        body["HostConfig"] = self.host_config(run, old);
        if body["HostConfig"]["NetworkMode"].is_null() {
            let first = endpoints.first().map_or("none", |(network, _)| network);
            body["HostConfig"]["NetworkMode"] = json!(first);
        }
        let first = endpoints.into_iter().take(1).collect::<Map<_, _>>();
        body["NetworkingConfig"] = json!({ "EndpointsConfig": first });
        body
    }

    fn host_config(&self, run: &Run<'_>, old: Option<&Container>) -> Value {
        let service = &run.service.config;
        let restart = run.service.text("restart").unwrap_or_default();
        let (restart, count) = restart.split_once(':').unwrap_or((&restart, "0"));
        let devices = many(&service["devices"]).iter().map(|device| {
            json!({
                "PathOnHost": device["source"],
                "PathInContainer": device["target"],
                "CgroupPermissions": device["permissions"],
            })
        });
        let mut host = json!({
            "PortBindings": bindings(service),
            "RestartPolicy": { "Name": restart, "MaximumRetryCount": count.parse::<u32>().unwrap_or(0) },
            "Devices": devices.collect::<Vec<_>>(),
        });
        for (field, key) in fields(LISTS) {
            host[field] = json!(texts(&service[key]));
        }
        for (field, key) in fields(HOST_CONFIG) {
            host[field] = service[key].clone();
        }
        for (field, key) in fields(SIZES) {
            host[field] = number(&service[key]);
        }
        if !service["extra_hosts"].is_null() {
            let hosts = texts(&service["extra_hosts"]).into_iter();
            host["ExtraHosts"] = hosts.map(|host| host.replacen('=', ":", 1)).collect();
        }
        if service["ulimits"].is_object() {
            let limits = entries(&service["ulimits"]).map(|(name, limit)| {
                let side = |side: &str| limit.get(side).unwrap_or(limit);
                json!({ "Name": name, "Soft": side("soft"), "Hard": side("hard") })
            });
            host["Ulimits"] = limits.collect();
        }
        if service["logging"].is_object() {
            let driver = text(&service["logging"]["driver"]);
            let driver = driver.unwrap_or_else(|| "json-file".to_owned());
            host["LogConfig"] = json!({ "Type": driver, "Config": service["logging"]["options"] });
        }
        for (field, key) in fields("NetworkMode:network_mode PidMode:pid IpcMode:ipc") {
            let mode = run.service.text(key);
            host[field] = json!(mode.map(|mode| self.mode(&run.project.name, &mode)));
        }
        let sources = texts(&service["volumes_from"]).into_iter();
        let sources = sources.map(|from| self.volumes_from(&run.project.name, &from));
        host["VolumesFrom"] = sources.collect();
        let tmpfs = texts(&service["tmpfs"]).into_iter().map(|item| {
            let (target, options) = item.split_once(':').unwrap_or((&item, ""));
            (target.to_owned(), json!(options))
        });
        host["Tmpfs"] = tmpfs.collect::<Map<_, _>>().into();
        let all = self.with_kept_volumes(run, old).into_iter();
        let (short, long): (Vec<_>, Vec<_>) = all.partition(creates_source);
        let binds = short.iter().map(|mount| {
            let mode = if mount["ReadOnly"] == true {
                "ro"
            } else {
                "rw"
            };
            let [source, target] =
                ["Source", "Target"].map(|end| text(&mount[end]).unwrap_or_default());
            format!("{source}:{target}:{mode}")
        });
        host["Binds"] = binds.collect();
        host["Mounts"] = long.into();
        host
    }

    /// The mounts of a container. The Compose programs keep its anonymous volumes, the library does not (N04).
    fn with_kept_volumes(&self, run: &Run<'_>, old: Option<&Container>) -> Vec<Value> {
        let mut mounts = mounts(run.service, run.project);
        let image = self.image(&run.service.image(&run.project.name));
        let tmpfs = texts(&run.service.config["tmpfs"]);
        let is_declared = |target: &str| {
            let mut others = tmpfs.iter().filter_map(|item| item.split(':').next());
            image.is_some_and(|image| image["Config"]["Volumes"].get(target).is_some())
                && !others.any(|other| other == target)
        };
        let old = old.filter(|_| !run.project.by_library);
        for kept in old.iter().flat_map(|old| &old.mounts) {
            let (name, target) = (kept["Name"].clone(), &kept["Destination"]);
            let mut all = mounts.iter_mut();
            match all.find(|mount| mount["Target"] == *target) {
                _ if name.is_null() => {}
                Some(Value::Object(mount)) if mount.contains_key("VolumeOptions") => {
                    mount.shift_remove("VolumeOptions");
                    mount.insert("Source".to_owned(), name);
                }
                None if is_declared(target.as_str().unwrap_or_default()) => {
                    mounts.push(json!({ "Type": "volume", "Source": name, "Target": target }));
                }
                _ => {}
            }
        }
        mounts
    }

    fn labels(
        &self,
        run: &Run<'_>,
        hash: String,
        old: Option<&Container>,
    ) -> BTreeMap<String, String> {
        let (project, service) = (run.project, run.service);
        let depends_on = service.depends_on().map(|(name, how)| {
            let condition = text(&how["condition"]).unwrap_or_default();
            format!("{name}:{condition}:{}", how["restart"] == true)
        });
        let env_files = project.env_files.join(",");
        let own = [
            ("config-hash", Some(hash)),
            ("container-number", Some(run.number.to_string())),
            ("depends_on", Some(depends_on.collect::<Vec<_>>().join(","))),
            ("image", Some(self.image_of(run))),
            ("oneoff", Some("False".to_owned())),
            ("project", Some(project.name.clone())),
            ("project.config_files", Some(project.files.join(","))),
            (
                "project.environment_file",
                Some(env_files).filter(|files| !files.is_empty()),
            ),
            ("project.working_dir", Some(project.folder.clone())),
            ("replace", old.map(|old| old.id.clone())),
            ("service", Some(service.name.clone())),
            ("version", Some(project.version().to_owned())),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((self.label(name), value?)));
        let mut labels = labels(&service.config["labels"]);
        labels.extend(own);
        labels
    }
}

/// The mounts of a service in the form of the engine. The engine creates the missing source of a short one (M13).
pub(super) fn mounts(service: &Service, project: &Project) -> Vec<Value> {
    let mut mounts = Vec::new();
    for item in many(&service.config["volumes"]) {
        let mut mount = json!({ "Type": item["type"], "Target": item["target"] });
        match (text(&mount["Type"]).as_deref(), text(&item["source"])) {
            (Some("tmpfs"), _) => {}
            (Some("bind"), Some(path)) => {
                mount["Source"] = json!(clean(&path));
                if item["bind"]["create_host_path"] == true {
                    mount["BindOptions"] = json!({ "CreateMountpoint": true });
                }
            }
            (_, Some(key)) => mount["Source"] = json!(project.name_of("volumes", &key)),
            (_, None) => mount["VolumeOptions"] = json!({}),
        }
        if item["read_only"] == true {
            mount["ReadOnly"] = json!(true);
        }
        mounts.push(mount);
    }
    for section in ["secrets", "configs"] {
        for item in many(&service.config[section]) {
            let key = text(&item["source"]).unwrap_or_default();
            if let Some(file) = text(&project.config[section][&key]["file"]) {
                let target = text(&item["target"]).unwrap_or_else(|| format!("/{key}"));
                mounts.push(json!({
                    "Type": "bind",
                    "Source": clean(&file),
                    "Target": target,
                    "ReadOnly": true,
                }));
            }
        }
    }
    mounts
}

/// Whether the engine creates the missing source of a mount.
pub(super) fn creates_source(mount: &Value) -> bool {
    mount["BindOptions"]["CreateMountpoint"] == true
}

/// The networks of a service, by their name on the engine, with their `EndpointConfig`.
pub(super) fn endpoints(run: &Run<'_>, name: &str) -> Vec<(String, Value)> {
    let endpoints = run.service.networks().map(|(key, options)| {
        let mut aliases = vec![name.to_owned(), run.service.name.clone()];
        aliases.extend(texts(&options["aliases"]));
        let ipam = match options.get("ipv4_address") {
            Some(address) => json!({ "IPv4Address": address }),
            None if options.is_object() => json!({}),
            None => Value::Null,
        };
        let endpoint = json!({ "Aliases": aliases, "IPAMConfig": ipam });
        (run.project.name_of("networks", key).to_owned(), endpoint)
    });
    endpoints.collect()
}

/// `ExposedPorts`. Compose adds no protocol to an `expose` entry that has none.
fn exposed(service: &Value) -> Value {
    let mut ports = json!({});
    for port in many(&service["ports"]) {
        ports[key_of(port)] = json!({});
    }
    for item in texts(&service["expose"]) {
        let bare = item.strip_suffix("/tcp").unwrap_or(&item);
        if ports.get(format!("{bare}/tcp")).is_none() && ports.get(bare).is_none() {
            ports[bare] = json!({});
        }
    }
    ports
}

/// A port as the engine names it: `80/tcp`.
fn key_of(port: &Value) -> String {
    let protocol = text(&port["protocol"]).unwrap_or_else(|| "tcp".to_owned());
    format!("{}/{protocol}", port["target"])
}

fn bindings(service: &Value) -> Value {
    let mut bindings = BTreeMap::<String, Vec<Value>>::new();
    for port in many(&service["ports"]) {
        let [address, published] =
            ["host_ip", "published"].map(|key| text(&port[key]).unwrap_or_default());
        // One target gets any of the published ports. The engine chooses a port for 0.
        let first = published.split('-').next().filter(|first| *first != "0");
        let binding = json!({ "HostIp": address, "HostPort": first.unwrap_or_default() });
        bindings.entry(key_of(port)).or_default().push(binding);
    }
    json!(bindings)
}

fn health(check: &Value) -> Value {
    if check["disable"] == true {
        return json!({ "Test": ["NONE"] });
    }
    let mut health = json!({});
    for (field, key) in fields("Test:test Retries:retries") {
        if !check[key].is_null() {
            health[field] = check[key].clone();
        }
    }
    let spans =
        "Interval:interval Timeout:timeout StartPeriod:start_period StartInterval:start_interval";
    for (field, key) in fields(spans) {
        if let Some(span) = text(&check[key]) {
            health[field] = fraction((seconds(&span) * 1e9).round());
        }
    }
    health
}
