//! A service as its container shows it, and what it may have been where a container does not show it.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    Read,
    objects::{known, renamed},
};
use crate::model::{Container, ContainerSetting, compose_label, is_empty, is_short_id, is_unset};

pub(super) type Fields = Map<String, Value>;

/// Settings that a Compose file has in the same form.
const OF_CONFIG: &str = "Domainname MacAddress Tty OpenStdin";
const OF_HOST: &str = "ReadonlyRootfs Privileged Dns DnsSearch DnsOptions GroupAdd ExtraHosts Sysctls OomScoreAdj OomKillDisable CpuShares \
    CpuQuota CpuPeriod CpusetCpus CgroupParent UsernsMode UTSMode DeviceCgroupRules";
/// Settings that an image has, too.
const OF_IMAGE: &str = "User WorkingDir StopSignal";
const OF_CHECK: &str = "Test=test Interval=interval Timeout=timeout StartPeriod=start_period \
    StartInterval=start_interval Retries=retries";
const OF_DEVICE: &str = "Driver=driver Count=count DeviceIDs=device_ids Options=options";
const OF_ENDPOINT: &str = "IPv4Address=ipv4_address IPv6Address=ipv6_address \
    LinkLocalIPs=link_local_ips DriverOpts=driver_opts GwPriority=gw_priority";

/// The reservations of CPUs that are tried: a container does not show them.
const RESERVED_CPUS: [&str; 6] = ["0.1", "0.25", "0.5", "1", "2", "4"];

/// How many ports that are published, or exposed by the image, are tried as exposed, too.
const EXPOSED: usize = 3;

/// How many values of one key are tried at most.
const MOST: usize = 100;

/// How many log options or limits are tried with and without each.
const PARTED: usize = 5;

/// The service of a container.
#[derive(Default)]
pub(super) struct Draft {
    /// What the container shows.
    pub fields: Fields,
    /// One of each: the first is the most likely.
    pub choices: Vec<Vec<Fields>>,
    /// Lists whose order a container does not show, and what each item may have been. A `null` stands for no item.
    pub lists: BTreeMap<&'static str, Vec<Vec<Value>>>,
}

struct Drafting<'a> {
    one: &'a Container,
    /// The inspect object of its image, which has the same `Config`.
    image: &'a Container,
    read: &'a Read,
    service: &'a str,
    /// How many containers the service has.
    count: usize,
    draft: Draft,
}

impl Draft {
    /// The service of the first of its containers.
    pub(super) fn new(service: &str, read: &Read) -> Self {
        let (container, count) = &read.services[service];
        let mut images = read.images.iter();
        let image = images.find(|image| image["Id"] == container.image_id());
        let image = Container(image.cloned().unwrap_or_default());
        let mut drafting = Drafting {
            one: container,
            image: &image,
            read,
            service,
            count: *count,
            draft: Self::default(),
        };
        drafting.same();
        drafting.identity();
        drafting.process();
        drafting.healthcheck();
        drafting.resources();
        drafting.namespaces();
        drafting.networks();
        drafting.ports();
        drafting.mounts();
        drafting.dependencies();
        drafting.draft
    }
}

impl Drafting<'_> {
    /// Sets what is not at its default.
    fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        if !is_unset(&value) {
            self.draft.fields.insert(key.to_owned(), value);
        }
    }

    /// The key may have had one of these values. `null` stands for none.
    fn choose(&mut self, key: &str, values: impl IntoIterator<Item = Value>) {
        let fields = |value| Fields::from_iter([(key.to_owned(), value)]);
        let choice = values.into_iter().map(fields).collect();
        self.draft.choices.push(choice);
    }

    fn list(&mut self, key: &'static str, items: Vec<Vec<Value>>) {
        if !items.is_empty() {
            self.draft.lists.insert(key, items);
        }
    }

    /// The first values that the container has, and its image does not.
    fn same(&mut self) {
        let one = &self.one.0;
        self.draft.fields = settings(&one["Config"], OF_CONFIG);
        let of_host = settings(&one["HostConfig"], OF_HOST);
        self.draft.fields.extend(of_host);
        let of_image = settings(&self.image.0["Config"], OF_IMAGE);
        for (key, value) in settings(&one["Config"], OF_IMAGE) {
            if of_image.get(&key) == Some(&value) {
                self.choose(&key, [Value::Null, value]);
            } else {
                self.draft.fields.insert(key, value);
            }
        }
        if let Some(init) = self.one.at("/HostConfig/Init") {
            self.draft.fields.insert("init".to_owned(), init.clone());
        }
        // The engine may sort capabilities, and writes their whole names.
        for (field, key) in [("CapAdd", "cap_add"), ("CapDrop", "cap_drop")] {
            let all = self.one.items(&format!("/HostConfig/{field}"));
            let forms = all.filter_map(Value::as_str).map(|name| {
                let short = name.strip_prefix("CAP_").map(Value::from);
                short.into_iter().chain([name.into()]).collect()
            });
            self.list(key, forms.collect());
        }
        // The engine adds an option of its own to a container that shares much of the host.
        let all: Vec<&Value> = self.one.items("/HostConfig/SecurityOpt").collect();
        let own: Vec<&&Value> = all.iter().filter(|one| **one != "label=disable").collect();
        if own.len() < all.len() {
            let less = (!own.is_empty()).then_some(own);
            self.choose("security_opt", [json!(less), json!(all)]);
        } else {
            self.set("security_opt", json!(all));
        }
    }

    fn identity(&mut self) {
        let (project, service) = (&self.read.project, self.service);
        let image = self.one.image_name();
        if image == format!("{project}-{service}") || image == format!("{project}_{service}") {
            let built = known(json!({ "build": { "context": "." } }));
            let choice = vec![known(json!({ "image": image })), built];
            self.draft.choices.push(choice);
        } else {
            self.set("image", image);
        }
        let name = self.one.name();
        let is_default = ["-", "_"].iter().any(|by| {
            let number = name.strip_prefix(&format!("{project}{by}{service}{by}"));
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        });
        match self.count {
            1 if is_default => {}
            1 => self.set("container_name", name),
            _ => self.set("scale", self.count),
        }
        match self.one.hostname() {
            Some(name) if self.one.network_mode() == "host" || is_short_id(name) => {
                self.choose("hostname", [Value::Null, name.into()]);
            }
            name => self.set("hostname", name.unwrap_or_default()),
        }
        let own = compose_label(&self.read.tool, "");
        let of_image = &self.image.0["Config"]["Labels"];
        let labels = self.one.fields("/Config/Labels");
        let labels =
            labels.filter(|(name, value)| !name.starts_with(&own) && of_image[name] != **value);
        let owned = labels.map(|(name, value)| (name.clone(), value.clone()));
        self.set("labels", owned.collect::<Fields>());
        if let Some(os) = self.image.present("/Os").and_then(Value::as_str) {
            let platform = format!("{os}/{}", self.image.text("/Architecture"));
            self.choose("platform", [Value::Null, platform.into()]);
        }
    }

    fn process(&mut self) {
        let [command, entrypoint] = ["/Config/Cmd", "/Config/Entrypoint"].map(|pointer| {
            let own = self.one.present(pointer);
            let is_own = own != self.image.present(pointer);
            (own.cloned().unwrap_or_default(), is_own)
        });
        // The engine takes the command of the image only beside its entrypoint.
        if command.1 || entrypoint.1 {
            self.set("command", command.0);
        } else if !is_unset(&command.0) {
            self.choose("command", [Value::Null, command.0]);
        }
        if entrypoint.1 {
            self.set("entrypoint", entrypoint.0);
        }
        if let Some(grace) = self.one.stop_grace() {
            self.set("stop_grace_period", format!("{grace}s"));
        }
        // The engine appends the variables of the image, in their order.
        let [mut own, of_image] = [self.one, self.image].map(|of| {
            let texts = of.items("/Config/Env").filter_map(Value::as_str);
            texts.collect::<Vec<_>>()
        });
        let mut left = of_image.as_slice();
        let place = |last: &&str, left: &[&str]| left.iter().position(|one| one == last);
        while let Some(at) = own.last().and_then(|last| place(last, left)) {
            left = &left[..at];
            own.pop();
        }
        // A variable without a value is one that was not set.
        let pairs = own.iter().map(|pair| match pair.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*pair, None),
        });
        self.set("environment", json!(pairs.collect::<BTreeMap<_, _>>()));
        let driver = self.one.text("/HostConfig/LogConfig/Type");
        let default = self.read.log_driver.as_ref();
        let is_default = default.is_none_or(|default| default == driver);
        let driver = json!({ "driver": driver });
        let options = self.one.present("/HostConfig/LogConfig/Config");
        match options.and_then(Value::as_object) {
            None if is_default => self.choose("logging", [Value::Null, driver]),
            None => self.choose("logging", [driver, Value::Null]),
            Some(options) => {
                let forms = parts(options).into_iter().flat_map(|options| {
                    if options.is_empty() {
                        return [Value::Null, driver.clone()];
                    }
                    let mut both = driver.clone();
                    both["options"] = options.clone().into();
                    [both, json!({ "options": options })]
                });
                self.choose("logging", forms);
            }
        }
    }

    fn healthcheck(&mut self) {
        let [own, of_image] =
            [self.one, self.image].map(|of| renamed(&of.0["Config"]["Healthcheck"], OF_CHECK));
        if own.get("test") == Some(&json!(["NONE"])) {
            return self.choose("healthcheck", [json!({ "disable": true }), own.into()]);
        }
        let all = own.into_iter();
        let own = all.filter(|(key, value)| of_image.get(key) != Some(value));
        let written = own.map(|(key, value)| match value.as_u64() {
            Some(nanoseconds) if key != "retries" => (key, duration(nanoseconds).into()),
            _ => (key, value),
        });
        self.set("healthcheck", written.collect::<Fields>());
    }

    /// Limits, devices and the restart policy, each in one of its two places.
    fn resources(&mut self) {
        let one = self.one;
        let number = |key: &str| {
            let number = one.at(&format!("/HostConfig/{key}"))?.as_i64();
            number.filter(|&number| number != 0)
        };
        let (memory, reserved) = (number("Memory"), number("MemoryReservation").map(bytes));
        let cpus = number("NanoCpus").map(|nano| {
            let text = format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        });
        let pids = number("PidsLimit");
        let swap = number("MemorySwap").filter(|swap| memory.is_none_or(|one| *swap != 2 * one));
        let shared = number("ShmSize").filter(|&size| size != 64 << 20);
        let memory = memory.map(bytes);
        self.set("memswap_limit", swap.map_or(Value::Null, bytes));
        if let Some(size) = shared {
            self.choose("shm_size", [bytes(size), Value::Null]);
        }
        let swappiness = number("MemorySwappiness").filter(|&percent| percent != -1);
        self.set("mem_swappiness", swappiness);
        let runtime = one.text("/HostConfig/Runtime");
        self.set("runtime", if runtime == "runc" { "" } else { runtime });
        self.devices();

        let policy = one.text("/HostConfig/RestartPolicy/Name");
        let retries = number("RestartPolicy/MaximumRetryCount");
        let restart = match (policy, retries) {
            ("", _) => Fields::new(),
            (policy, None) => known(json!({ "restart": policy })),
            (policy, Some(retries)) => known(json!({ "restart": format!("{policy}:{retries}") })),
        };
        let top = known(
            json!({ "mem_limit": memory, "cpus": cpus, "pids_limit": pids, "mem_reservation": reserved }),
        );
        let limits = known(json!({ "memory": memory, "cpus": cpus, "pids": pids }));
        let devices = self.requested();
        let mut choice = Vec::new();
        let mut add = |parts: &[&Fields], deploy: Value| {
            let deploy = known(json!({ "deploy": deploy }));
            let parts = parts.iter().copied().chain([&deploy]);
            choice.push(parts.flat_map(Clone::clone).collect::<Fields>());
        };
        if is_empty(&devices) {
            add(&[&restart, &top], Value::Null);
        }
        if !(top.is_empty() && is_empty(&devices)) {
            for cpus in [None].into_iter().chain(RESERVED_CPUS.map(Some)) {
                let reservations =
                    known(json!({ "memory": reserved, "cpus": cpus, "devices": devices }));
                let resources = known(json!({ "limits": limits, "reservations": reservations }));
                add(&[&restart], json!({ "resources": resources }));
            }
        }
        if is_empty(&devices) {
            add(&[&restart, &top], json!({ "replicas": self.count }));
            let condition = if policy == "always" { "any" } else { policy };
            let deployed = known(json!({ "condition": condition, "max_attempts": retries }));
            add(&[&top], json!({ "restart_policy": deployed }));
        }
        // After engine 20.10, this is also the default.
        if policy == "no" {
            let without = choice.clone().into_iter().map(|mut one| {
                one.shift_remove("restart");
                one
            });
            choice.extend(without.collect::<Vec<_>>());
        }
        self.draft.choices.push(choice);
    }

    /// The devices that are asked for by what they can do.
    fn requested(&self) -> Value {
        let requests = self.one.items("/HostConfig/DeviceRequests").map(|request| {
            let mut device = renamed(request, OF_DEVICE);
            let capabilities = request["Capabilities"][0].clone();
            device.insert("capabilities".to_owned(), capabilities);
            if device.get("count") == Some(&json!(-1)) {
                device.insert("count".to_owned(), "all".into());
            }
            Value::Object(device)
        });
        requests.collect()
    }

    fn devices(&mut self) {
        let devices = self.one.items("/HostConfig/Devices").map(|device| {
            let text = |key: &str| device[key].as_str().unwrap_or_default();
            let path = format!("{}:{}", text("PathOnHost"), text("PathInContainer"));
            match text("CgroupPermissions") {
                "" | "rwm" => path,
                other => format!("{path}:{other}"),
            }
        });
        self.set("devices", devices.collect::<Vec<_>>());
        let limits = self.one.items("/HostConfig/Ulimits").map(|limit| {
            let pair = json!({ "soft": limit["Soft"], "hard": limit["Hard"] });
            (limit["Name"].as_str().unwrap_or_default().to_owned(), pair)
        });
        let limits: Fields = limits.collect();
        let single = |(name, pair): (&String, &Value)| match &pair["soft"] {
            soft if *soft == pair["hard"] => (name.clone(), soft.clone()),
            _ => (name.clone(), pair.clone()),
        };
        let forms = parts(&limits).into_iter().flat_map(|pairs| {
            let single: Fields = pairs.iter().map(single).collect();
            [pairs.into(), single.into()]
        });
        if !limits.is_empty() {
            self.choose("ulimits", forms);
        }
    }

    /// The service, or the container, that a mode names.
    fn shared(&self, mode: &str) -> String {
        let id = mode.strip_prefix("container:");
        match id.and_then(|id| self.read.ids.get(id)) {
            Some(service) => format!("service:{service}"),
            None => mode.to_owned(),
        }
    }

    fn namespaces(&mut self) {
        for (field, key) in [("PidMode", "pid"), ("IpcMode", "ipc")] {
            match self.one.text(&format!("/HostConfig/{field}")) {
                "private" => {}
                // Also the default of old clients, and of an engine with that setting.
                "shareable" => self.choose(key, ["shareable".into(), Value::Null]),
                mode => self.set(key, self.shared(mode)),
            }
        }
        let all = self.one.items("/HostConfig/VolumesFrom");
        let from = all.filter_map(Value::as_str).map(|from| {
            let (id, mode) = from.split_once(':').unwrap_or((from, "rw"));
            let name = self.shared(&format!("container:{id}"));
            match (name.trim_start_matches("service:"), mode) {
                (name, "rw") => name.to_owned(),
                (name, mode) => format!("{name}:{mode}"),
            }
        });
        self.set("volumes_from", from.collect::<Vec<_>>());
    }

    fn networks(&mut self) {
        let mode = self.one.network_mode();
        if !self.one.networks().any(|(name, _)| name == mode)
            || matches!(mode, "host" | "none" | "bridge")
        {
            let mode = if mode == "default" { "bridge" } else { mode };
            return self.set("network_mode", self.shared(mode));
        }
        let mut choice = vec![Fields::new()];
        for (name, endpoint) in self.one.networks() {
            let settings = self.endpoint(endpoint);
            let keys = self.read.objects.network_keys(name);
            let extended = choice.iter().flat_map(|all| {
                keys.iter().map(|key| {
                    let one = (key.clone(), settings.clone());
                    all.clone().into_iter().chain([one]).collect()
                })
            });
            choice = extended.take(MOST).collect();
        }
        let written = choice.into_iter().map(|all| {
            if all.values().all(Value::is_null) {
                all.keys().cloned().collect()
            } else {
                Value::Object(all)
            }
        });
        self.choose("networks", written);
        self.links();
    }

    fn endpoint(&self, endpoint: &Value) -> Value {
        let config = &endpoint["IPAMConfig"];
        let mut own = vec![self.service, self.one.name(), self.one.short_id()];
        let aliases = endpoint["Aliases"].as_array().into_iter().flatten();
        let chosen = aliases.filter_map(Value::as_str).filter(|alias| {
            let at = own.iter().position(|one| one == alias);
            at.map(|at| own.remove(at)).is_none()
        });
        let aliases = json!({ "aliases": chosen.collect::<Vec<_>>() });
        let mut settings = renamed(&aliases, "aliases=aliases");
        settings.extend(renamed(config, OF_ENDPOINT));
        settings.extend(renamed(endpoint, OF_ENDPOINT));
        if settings.is_empty() && config.is_null() {
            Value::Null
        } else {
            settings.into()
        }
    }

    /// Compose links a container by the alias, the name and the number of the service, one of another project by the alias.
    fn links(&mut self) {
        let networks = self.one.networks();
        let links = networks.filter_map(|(_, endpoint)| endpoint["Links"].as_array());
        let pairs = links
            .flatten()
            .filter_map(|link| link.as_str()?.split_once(':'));
        let mut seen = BTreeSet::new();
        let (mut links, mut external) = (Vec::new(), Vec::new());
        for (container, alias) in pairs {
            let Some(service) = self.read.objects.service_of(container) else {
                continue;
            };
            let (name, kind, all) = if service.is_empty() {
                (container, alias, &mut external)
            } else {
                (service, "", &mut links)
            };
            if seen.insert((name, kind)) {
                let with = Value::from(format!("{name}:{alias}"));
                let short = (alias == name).then(|| name.into());
                all.push(short.into_iter().chain([with]).collect());
            }
        }
        self.list("links", links);
        self.list("external_links", external);
    }

    fn ports(&mut self) {
        let bindings = self.one.port_bindings().map(|binding| {
            let (port, protocol) = (binding.container_port, binding.protocol);
            let address = match binding.address {
                "" => String::new(),
                v6 if v6.contains(':') => format!("[{v6}]:"),
                other => format!("{other}:"),
            };
            let published = match binding.published {
                "" | "0" if address.is_empty() => String::new(),
                published => format!("{published}:"),
            };
            let order = (port.parse::<u32>().unwrap_or_default(), protocol);
            let protocol = match protocol {
                "tcp" => String::new(),
                other => format!("/{other}"),
            };
            let port = format!("{address}{published}{port}{protocol}");
            (order, vec![port.into()])
        });
        let mut ports: Vec<_> = bindings.collect();
        ports.sort_by_key(|(order, _)| *order);
        self.list("ports", ports.into_iter().map(|(_, port)| port).collect());
        let bindings = self.one.fields("/HostConfig/PortBindings");
        let bound: BTreeSet<&str> = bindings.map(|(port, _)| port.as_str()).collect();
        let of_image = &self.image.0["Config"]["ExposedPorts"];
        let exposed = self
            .one
            .fields("/Config/ExposedPorts")
            .map(|(port, _)| port.as_str());
        let exposed = exposed.filter(|port| !bound.contains(port) && of_image.get(*port).is_none());
        let exposed = exposed.map(|port| match port.strip_suffix("/tcp") {
            Some(bare) => vec![bare.into(), port.into()],
            None => vec![port.into()],
        });
        let mut exposed: Vec<Vec<Value>> = exposed.collect();
        // A port that the image exposes or that is published, too, is shown once, the latter by later engines.
        let of_image = of_image.as_object().into_iter().flatten();
        let mut shown = bound.clone();
        shown.extend(of_image.map(|(port, _)| port.as_str()));
        if exposed.is_empty() && shown.len() <= EXPOSED {
            let bare = shown.iter().map(|port| port.trim_end_matches("/tcp"));
            exposed = bare.map(|port| vec![Value::Null, port.into()]).collect();
        }
        self.list("expose", exposed);
    }

    fn mounts(&mut self) {
        let (mut volumes, mut secrets) = (Vec::new(), Vec::new());
        let binds = self.one.items("/HostConfig/Binds");
        for bind in binds.filter_map(Value::as_str) {
            let mut parts = bind.split(':');
            let mut next = || parts.next().unwrap_or_default();
            let (source, target, options) = (next(), next(), next());
            let is_path = source.starts_with('/');
            let kind = if is_path { "bind" } else { "volume" };
            volumes.push(self.forms(kind, source, target, options.split(',')));
        }
        for mount in self.one.items("/HostConfig/Mounts") {
            let text = |key: &str| mount[key].as_str().unwrap_or_default();
            let (kind, source, target) = (text("Type"), text("Source"), text("Target"));
            let is_read_only = mount["ReadOnly"] == true;
            if let Some(name) = secret(mount) {
                secrets.push(vec![name.into()]);
            } else if kind == "volume" {
                let no_copy = mount["VolumeOptions"]["NoCopy"] == true;
                let all = [("ro", is_read_only), ("nocopy", no_copy)].into_iter();
                let options = all.filter_map(|(option, is_set)| is_set.then_some(option));
                volumes.push(self.forms(kind, source, target, options));
            } else {
                let long = json!({ "type": kind, "source": source, "target": target, "read_only": is_read_only });
                let form = |more: Value| {
                    let mut long = long.as_object().cloned().unwrap_or_default();
                    long.retain(|_, value| !is_unset(value));
                    long.extend((!more.is_null()).then(|| (kind.to_owned(), more)));
                    Value::Object(long)
                };
                let options = [
                    ("BindOptions", "Propagation=propagation"),
                    ("TmpfsOptions", "SizeBytes=size Mode=mode"),
                ];
                let options = options.map(|(options, names)| renamed(&mount[options], names));
                let options: Fields = options.into_iter().flatten().collect();
                let mut forms = vec![form(options.clone().into())];
                if options.is_empty() {
                    forms.insert(0, form(Value::Null));
                }
                if options.is_empty() && kind == "bind" {
                    forms.push(form(json!({ "create_host_path": false })));
                }
                volumes.push(forms);
            }
        }
        self.list("volumes", volumes);
        self.list("secrets", secrets);
        let all = self.one.fields("/HostConfig/Tmpfs");
        let tmpfs = all.map(|(target, options)| match options.as_str() {
            None | Some("") => vec![target.as_str().into()],
            Some(options) => vec![format!("{target}:{options}").into()],
        });
        self.list("tmpfs", tmpfs.collect());
    }

    /// The short and the long form of a mount, with each name that its volume may have in the file.
    fn forms<'o>(
        &self,
        kind: &str,
        source: &str,
        target: &str,
        options: impl Iterator<Item = &'o str>,
    ) -> Vec<Value> {
        let objects = &self.read.objects;
        let is_set = |option: &&str| !matches!(*option, "" | "rw");
        let options: Vec<&str> = options.filter(is_set).collect();
        if kind == "volume" && (source.is_empty() || objects.is_anonymous(source)) {
            // A volume that an earlier container had, and that its image declares, is in no file.
            let declared = self.image.0["Config"]["Volumes"].get(target);
            let long = json!({ "type": kind, "target": target });
            let forms = [Value::Null, target.into(), long];
            return forms[usize::from(declared.is_none() || source.is_empty())..].to_vec();
        }
        let own = [source.to_owned()];
        let keys = match kind {
            "bind" => &own,
            _ => objects.volume_keys(source),
        };
        let forms = keys.iter().flat_map(|key| {
            let colon = if options.is_empty() { "" } else { ":" };
            let short = Value::from(format!("{key}:{target}{colon}{}", options.join(",")));
            let mut long = json!({ "type": kind, "source": key, "target": target });
            if options.contains(&"ro") {
                long["read_only"] = true.into();
            }
            [short, long]
        });
        forms.collect()
    }

    fn dependencies(&mut self) {
        let label = compose_label(&self.read.tool, "depends_on");
        let known: BTreeSet<&str> = self.read.ids.values().map(String::as_str).collect();
        let entries = self.one.label(&label).unwrap_or_default().split(',');
        let entries = entries.map(|entry| entry.split(':').collect::<Vec<_>>());
        let all = entries.filter_map(|entry| {
            let (&name, rest) = entry.split_first()?;
            let mut how = json!({ "condition": rest.first().unwrap_or(&"service_started") });
            if rest.get(1) == Some(&"true") {
                how["restart"] = true.into();
            }
            known.contains(name).then(|| (name.to_owned(), how))
        });
        let all: Fields = all.collect();
        let plain = json!({ "condition": "service_started" });
        let is_plain = all.values().all(|how| *how == plain);
        let names = || all.keys().cloned().collect();
        let value = if is_plain { names() } else { Value::from(all) };
        self.set("depends_on", value);
    }
}

/// The settings of an object that are not at their default, by their keys in a Compose file.
fn settings(object: &Value, fields: &str) -> Fields {
    let settings = fields.split_whitespace().filter_map(ContainerSetting::of);
    let set = settings.filter(|setting| !is_unset(&object[setting.field]));
    set.map(|setting| (setting.key.to_owned(), object[setting.field].clone()))
        .collect()
}

/// What a file may have had of the settings of a container, the whole first: the daemon adds its own (`log-opts`,
/// `default-ulimits`) to those of the file.
fn parts(all: &Fields) -> Vec<Fields> {
    if all.len() > PARTED {
        return vec![all.clone(), Fields::new()];
    }
    all.iter().fold(vec![Fields::new()], |parts, (key, value)| {
        let with = parts.iter().cloned().map(|mut part| {
            part.insert(key.clone(), value.clone());
            part
        });
        with.chain(parts.iter().cloned()).collect()
    })
}

/// The name of the secret that a mount is.
pub(super) fn secret(mount: &Value) -> Option<&str> {
    let name = mount["Target"].as_str()?.strip_prefix("/run/secrets/")?;
    let is_file = mount["Type"] == "bind" && mount["ReadOnly"] == true;
    (is_file && !name.contains('/')).then_some(name)
}

/// A number of bytes with the largest unit that divides it.
fn bytes(bytes: i64) -> Value {
    let mut units = [("g", 30), ("m", 20), ("k", 10)].into_iter();
    match units.find(|(_, shift)| bytes > 0 && bytes % (1 << shift) == 0) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift).into(),
        None => bytes.into(),
    }
}

fn duration(nanoseconds: u64) -> String {
    let mut units = [("s", 1_000_000_000), ("ms", 1_000_000)].into_iter();
    match units.find(|(_, size)| nanoseconds.is_multiple_of(*size)) {
        Some((unit, size)) => format!("{}{unit}", nanoseconds / size),
        None => format!("{nanoseconds}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        reconstruct::objects::{Known, Objects},
        text::Mask,
    };

    #[test]
    fn the_daemon_may_have_added_log_options_and_limits() {
        let all = json!({"max-file": "3", "max-size": "1m"});
        let tried = parts(all.as_object().expect("options"));
        let expected = [
            json!({"max-file": "3", "max-size": "1m"}),
            json!({"max-size": "1m"}),
            json!({"max-file": "3"}),
            json!({}),
        ];
        assert_eq!(
            tried.into_iter().map(Value::from).collect::<Vec<_>>(),
            expected
        );
        let many: Fields = (0..9).map(|at| (at.to_string(), at.into())).collect();
        assert_eq!(parts(&many), [many, Fields::new()]);
    }

    #[test]
    fn what_a_container_shows_is_written() {
        let container = json!({
            "Id": "0a".repeat(32),
            "Name": "/shop-web-1",
            "Config": {"Image": "x"},
            "HostConfig": {
                "IpcMode": "shareable",
                "LogConfig": {"Type": "none", "Config": {}},
                "MemorySwappiness": 10,
                "NetworkMode": "front",
            },
            "NetworkSettings": {"Networks": {"front": {
                "Links": ["shop-db-1:db", "shop-db-2:db", "proxy:proxy", "proxy:p", "gone:g"],
            }}},
        });
        let containers = [("shop-db-1", "db"), ("shop-db-2", "db"), ("proxy", "")];
        let containers = containers.map(|(name, service)| (name.to_owned(), service.to_owned()));
        let objects = Objects::new(Known {
            tool: "docker",
            project: "shop",
            networks: &[json!({ "Name": "front" })],
            volumes: &[],
            containers: containers.into(),
            fixed: Vec::new(),
        });
        let mut read = Read {
            tool: "docker".to_owned(),
            project: "shop".to_owned(),
            services: BTreeMap::from([("web".to_owned(), (Container(container), 1))]),
            ids: BTreeMap::new(),
            images: Vec::new(),
            objects,
            log_driver: Some("json-file".to_owned()),
            mask: Mask::default(),
        };
        let mut service = json!({
            "image": "x",
            "external_links": ["proxy", "proxy:p"],
            "ipc": "shareable",
            "links": ["db"],
            "logging": {"driver": "none"},
            "mem_swappiness": 10,
            "networks": ["front"],
        });
        let written = |read: &Read| {
            let draft = Draft::new("web", read);
            Value::from(draft.service(&draft.likely()))
        };
        assert_eq!(written(&read), service);
        read.log_driver = Some("none".to_owned());
        service["logging"].take();
        let without = service.as_object_mut().expect("a service");
        without.retain(|_, value| !value.is_null());
        assert_eq!(written(&read), service);
    }
}
