//! The config hash that a version of Compose writes into the label of a container (N36).
//!
//! It is the SHA-256 of the service's JSON, whose form depends on the version. Every version prints nearly all that another one
//! hashes, so the hash of each follows from what one of them prints. [`RULES`] lists the differences.
//!
//! Invariant: pure.
#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeSet, HashMap},
    mem,
    sync::LazyLock,
};

use composefile::path::clean;
use serde_json::{Map, Value, json};

use super::version::ComposeVersion;
use crate::text::sha256;

/// The keys of a service with their values.
pub type Fields = Map<String, Value>;

/// The keys of a service in the order in which every version hashes them.
pub const ORDER: &str = "profiles annotations attach build develop blkio_config cap_add cap_drop cgroup_parent cgroup \
    cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpus cpuset cpu_shares command configs \
    container_name credential_spec depends_on deploy device_cgroup_rules devices dns dns_opt dns_search dockerfile \
    domainname entrypoint provider environment env_file expose extends external_links extra_hosts group_add gpus hostname \
    healthcheck image init ipc isolation labels label_file links logging log_driver log_opt mem_limit mem_reservation \
    memswap_limit mem_swappiness mac_address models net network_mode networks oom_kill_disable oom_score_adj pid pids_limit \
    platform ports privileged pull_policy read_only restart runtime scale secrets security_opt shm_size stdin_open \
    stop_grace_period stop_signal storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts volume_driver \
    volumes volumes_from working_dir pre_start post_start pre_stop pull_refresh_after umask";

/// The places of the keys in [`ORDER`].
static PLACES: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let keys = ORDER.split_whitespace().enumerate();
    keys.map(|(place, key)| (key, place)).collect()
});

/// A part of a service that versions hash in different ways.
struct Rule {
    /// The part, as users write it.
    part: &'static str,
    /// The first versions that hash it in another way than those before.
    since: &'static [ComposeVersion],
    /// Whether the difference is in Compose itself. Otherwise, it is in compose-go, which distributions replace.
    is_own: bool,
    /// What a version hashes. Several forms, if what is printed does not tell which one was written.
    forms: fn(Fields, ComposeVersion) -> Vec<Fields>,
}

const V2_20: ComposeVersion = ComposeVersion(2, 20, 0);
const V2_24: ComposeVersion = ComposeVersion(2, 24, 0);
const V2_24_4: ComposeVersion = ComposeVersion(2, 24, 4);
const V2_24_6: ComposeVersion = ComposeVersion(2, 24, 6);
const V2_24_7: ComposeVersion = ComposeVersion(2, 24, 7);
const V2_26: ComposeVersion = ComposeVersion(2, 26, 0);
const V2_29: ComposeVersion = ComposeVersion(2, 29, 0);
const V2_29_3: ComposeVersion = ComposeVersion(2, 29, 3);
const V2_30: ComposeVersion = ComposeVersion(2, 30, 0);
const V2_30_2: ComposeVersion = ComposeVersion(2, 30, 2);
const V2_32: ComposeVersion = ComposeVersion(2, 32, 0);
const V2_34: ComposeVersion = ComposeVersion(2, 34, 0);
const V2_36: ComposeVersion = ComposeVersion(2, 36, 0);
const V5: ComposeVersion = ComposeVersion(5, 0, 0);
const V5_0_2: ComposeVersion = ComposeVersion(5, 0, 2);

/// The differences of the versions from [`OLDEST`] to [`NEWEST`] (N36), in the order in which they are named: last those that
/// the text prevents if no other remains (B39).
const RULES: [Rule; 17] = [
    Rule::own("`depends_on`", &[V2_29_3], |service, version| {
        vec![without(service, "depends_on", version >= V2_29_3)]
    }),
    Rule::own("`profiles`", &[V2_30_2], |service, version| {
        vec![without(service, "profiles", version >= V2_30_2)]
    }),
    Rule::of("the mode of secrets and configs", &[V2_34], modes),
    Rule::of("the settings of its networks", &[V2_36], networks),
    Rule::of("`devices`", &[V2_29_3], devices),
    Rule::of("`develop`", &[V2_32], develop),
    Rule::of(PORTS, &[V2_29], ports),
    Rule::of("variables without a value", &[V2_24_7, V2_29], environment),
    Rule::of("reserved devices without `count`", &[V2_30], counts),
    Rule::of("`cpus` of `deploy`", &[V2_26], cpus),
    Rule::of("secrets without `target`", &[V2_24_6], targets),
    Rule::own("`label_file`", &[V2_34], |service, version| {
        vec![without(service, "label_file", version < V2_34)]
    }),
    Rule::own("`storage_opt`", &[V2_24_4], |service, version| {
        vec![without(service, "storage_opt", version < V2_24_4)]
    }),
    Rule::of(
        "`extra_hosts` or `depends_on`",
        &[V2_20, V2_24],
        older_lists,
    ),
    Rule::own("the service", &[V2_24], replicas),
    Rule::of(
        "the `target` of mounts in the long syntax",
        &[V2_30],
        mounts,
    ),
    Rule::of(
        "bind mounts in the short syntax or with `create_host_path`",
        &[V5, V5_0_2],
        binds,
    ),
];

const PORTS: &str = "`ports` without `mode` or `protocol`";

/// What no version hashes.
const NEVER_HASHED: [&str; 3] = ["build", "pull_policy", "scale"];

/// The oldest and the newest version whose hashes are known.
const OLDEST: (u16, u16) = (2, 19);
const NEWEST: (u16, u16) = (5, 7);

impl Rule {
    const fn of(
        part: &'static str,
        since: &'static [ComposeVersion],
        forms: fn(Fields, ComposeVersion) -> Vec<Fields>,
    ) -> Self {
        let is_own = false;
        Self {
            part,
            since,
            is_own,
            forms,
        }
    }

    const fn own(
        part: &'static str,
        since: &'static [ComposeVersion],
        forms: fn(Fields, ComposeVersion) -> Vec<Fields>,
    ) -> Self {
        Self {
            is_own: true,
            ..Self::of(part, since, forms)
        }
    }
}

/// The versions that compute the same hashes, by the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dialect {
    compose: ComposeVersion,
    compose_go: ComposeVersion,
}

impl Dialect {
    /// That of a version.
    pub fn of(version: ComposeVersion) -> Self {
        let first = |is_own| {
            let rules = RULES.iter().filter(|rule| rule.is_own == is_own);
            let changes = rules.flat_map(|rule| rule.since).copied();
            let earlier = changes.filter(|since| *since <= version);
            earlier
                .max()
                .unwrap_or(ComposeVersion(OLDEST.0, OLDEST.1, 0))
        };
        Self {
            compose: first(true),
            compose_go: first(false),
        }
    }

    /// Those of the versions from `first` to `last`.
    pub fn between(first: ComposeVersion, last: ComposeVersion) -> BTreeSet<Self> {
        let changes = RULES.iter().flat_map(|rule| rule.since).copied();
        let within = changes.filter(|since| first < *since && *since <= last);
        within.chain([first]).map(Self::of).collect()
    }

    /// That of the 2.26.1 of Debian, which is built with the compose-go of a later version.
    pub fn of_debian() -> Self {
        Self {
            compose_go: Self::of(V2_32).compose_go,
            ..Self::of(ComposeVersion(2, 26, 1))
        }
    }

    /// Those of all known versions.
    pub fn all() -> BTreeSet<Self> {
        let mut all = Self::between(ComposeVersion(0, 0, 0), ComposeVersion(u16::MAX, 0, 0));
        all.insert(Self::of_debian());
        all
    }

    /// Whether the hashes of a version are known.
    pub fn is_known(version: ComposeVersion) -> bool {
        (OLDEST..=NEWEST).contains(&(version.0, version.1))
    }

    /// The first part of a service that the other dialect hashes in another way.
    pub fn difference(self, other: Self, service: &Fields) -> Option<&'static str> {
        let differs = |rule: &&Rule| self.json_of(rule, service) != other.json_of(rule, service);
        RULES.iter().find(differs).map(|rule| rule.part)
    }

    /// The part for which an equal hash proves nothing, although a version of the dialect `created_by` wrote it: these versions hash
    /// it in one of several forms, and what was printed does not tell in which.
    pub fn open_part(
        self,
        created_by: Option<Self>,
        service: &Fields,
        has_long_ports: bool,
    ) -> Option<&'static str> {
        // In the short syntax, a port always has a mode and a protocol.
        let mut rules = RULES
            .iter()
            .filter(|rule| has_long_ports || rule.part != PORTS);
        let is_open = |rule: &&Rule| {
            let forms = self.json_of(rule, service);
            forms.len() > 1
                && created_by.is_none_or(|dialect| dialect.json_of(rule, service) != forms)
        };
        rules.find(is_open).map(|rule| rule.part)
    }

    /// Whether these versions certainly keep a container of `service` with this hash that a version of the dialect `created_by`
    /// created.
    pub fn keeps(
        self,
        service: &Fields,
        hash: &str,
        created_by: Option<Self>,
        has_long_ports: bool,
    ) -> bool {
        let open = || self.open_part(created_by, service, has_long_ports);
        self.has_hash(service, hash) && open().is_none()
    }

    /// What a rule makes of a service, with the order of its keys.
    fn json_of(self, rule: &Rule, service: &Fields) -> Vec<String> {
        let forms = self.forms_of(rule, service.clone()).into_iter();
        forms.map(|form| Value::from(form).to_string()).collect()
    }

    /// Whether these versions write `hash` into the label of a container of `service`: the JSON that `config` prints, with real
    /// `$`, and with `create_host_path` of bind mounts as the file has it.
    pub fn has_hash(self, service: &Fields, hash: &str) -> bool {
        let mut forms = self.hashed(service).into_iter();
        forms.any(|form| sha256(&go_json(&form.into())) == hash)
    }

    /// What is hashed of a service, in its order: every form that may have been written.
    pub fn hashed(self, service: &Fields) -> Vec<Fields> {
        let mut service = service.clone();
        for key in NEVER_HASHED {
            service.shift_remove(key);
        }
        let mut forms = vec![service];
        for rule in &RULES {
            forms = forms
                .into_iter()
                .flat_map(|form| self.forms_of(rule, form))
                .collect();
        }
        for form in &mut forms {
            let mut fields: Vec<(String, Value)> = mem::take(form).into_iter().collect();
            fields.sort_by_cached_key(|(key, _)| {
                let place = PLACES.get(key.as_str()).unwrap_or(&usize::MAX);
                (*place, key.clone())
            });
            form.extend(fields);
        }
        forms
    }

    fn forms_of(self, rule: &Rule, service: Fields) -> Vec<Fields> {
        let version = if rule.is_own {
            self.compose
        } else {
            self.compose_go
        };
        (rule.forms)(service, version)
    }
}

/// A value as the JSON that Compose hashes: Go escapes these characters.
pub fn go_json(value: &Value) -> String {
    let mut json = value.to_string();
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

/// The first version that prints `create_host_path: false` and omits `true`; earlier ones print `true` and omit `false` (N28).
pub(super) const OMITS_TRUE: ComposeVersion = V5;

/// The key of a bind mount that says whether Docker creates a missing source.
pub(super) const CREATE_HOST_PATH: &str = "create_host_path";

/// The `bind` of each bind mount of a service that has one.
pub(super) fn all_binds(service: &mut Fields) -> impl Iterator<Item = &mut Fields> {
    let binds = items(service, "volumes").filter(|mount| mount["type"] == "bind");
    binds.filter_map(|mount| mount.get_mut("bind")?.as_object_mut())
}

/// Writes `create_host_path` where compose-go has it.
pub(super) fn set_created(bind: &mut Fields, creates: Option<bool>) {
    bind.shift_remove(CREATE_HOST_PATH);
    if let Some(creates) = creates {
        let before = ["selinux", "propagation"].into_iter();
        let at = before.filter(|key| bind.contains_key(*key)).count();
        bind.shift_insert(at, CREATE_HOST_PATH.to_owned(), creates.into());
    }
}

/// N28: `true` is omitted since 5.0.0, and `false` before.
fn binds(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    for bind in all_binds(&mut service) {
        let creates = bind.get(CREATE_HOST_PATH).and_then(Value::as_bool);
        let hashed = match creates {
            Some(true) => (version < V5).then_some(true),
            None if version >= V5 && version < V5_0_2 => Some(false),
            Some(false) if version >= V5 => Some(false),
            _ => None,
        };
        set_created(bind, hashed);
    }
    vec![service]
}

/// The path in the container is clean since 2.30.0.
fn mounts(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    if version >= V2_30 {
        clean_targets(&mut service);
    }
    vec![service]
}

/// Cleans the path of each mount in the container.
pub(super) fn clean_targets(service: &mut Fields) {
    for mount in items(service, "volumes") {
        if let Some(target) = mount.get_mut("target")
            && let Some(path) = target.as_str().filter(|path| path.starts_with('/'))
        {
            *target = clean(path).into();
        }
    }
}

/// A number, and a text of octal digits since 2.34.0. Earlier versions read a text as a decimal number: `"0440"` as 440.
fn modes(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    let octal = |digits: &str| u32::from_str_radix(digits, 8).ok();
    let form = |mode: u32| -> Value {
        if version < V2_34 {
            mode.into()
        } else {
            format!("0{mode:o}").into()
        }
    };
    // What is hashed of a mode that was written as a text, if what is printed does not tell.
    let mut texts = Vec::new();
    for (at, mode) in file_modes(&mut service).enumerate() {
        let (number, text) = match &*mode {
            Value::String(digits) => {
                let decimal = digits.parse().ok().filter(|_| version < V2_34);
                (octal(digits), decimal)
            }
            number => {
                let number = number.as_u64().and_then(|number| number.try_into().ok());
                let digits = number.filter(|_| version >= V2_34);
                (
                    number,
                    digits.and_then(|digits: u32| octal(&digits.to_string())),
                )
            }
        };
        if let Some(number) = number {
            *mode = form(number);
            texts.extend(text.map(|text| (at, form(text))));
        }
    }
    let open: Vec<usize> = (0..texts.len()).collect();
    subsets(service, &open, |service, index| {
        let (at, text) = &texts[index];
        if let Some(mode) = file_modes(service).nth(*at) {
            text.clone_into(mode);
        }
    })
}

/// The modes of a service's secrets and configs.
fn file_modes(service: &mut Fields) -> impl Iterator<Item = &mut Value> {
    let lists = service
        .iter_mut()
        .filter(|(key, _)| ["secrets", "configs"].contains(&key.as_str()));
    let files = lists.filter_map(|(_, list)| list.as_array_mut()).flatten();
    files.filter_map(|file| file.get_mut("mode"))
}

/// The keys of a network are sorted since 2.36.0.
fn networks(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    const OLDER: [&str; 8] = [
        "priority",
        "gw_priority",
        "aliases",
        "ipv4_address",
        "ipv6_address",
        "link_local_ips",
        "mac_address",
        "driver_opts",
    ];
    let networks = service.get_mut("networks").and_then(Value::as_object_mut);
    let networks = networks.into_iter().flat_map(Map::values_mut);
    for network in networks.filter_map(Value::as_object_mut) {
        network.sort_keys();
        if version < V2_36 {
            let older = OLDER
                .into_iter()
                .filter_map(|key| network.shift_remove_entry(key));
            let mut older: Fields = older.collect();
            older.append(network);
            *network = older;
        }
    }
    vec![service]
}

/// Texts as they are written, and mappings since 2.29.3.
fn devices(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    let mut open = Vec::new();
    for (at, device) in items(&mut service, "devices").enumerate() {
        let mapping = match device.as_str() {
            Some(text) => {
                let mut parts = text.splitn(3, ':');
                let source = parts.next().unwrap_or_default();
                let (target, permissions) = (parts.next(), parts.next());
                json!({"source": source, "target": target.unwrap_or(source), "permissions": permissions.unwrap_or("rwm")})
            }
            None => device.clone(),
        };
        if version >= V2_29_3 {
            *device = mapping;
        } else if !device.is_string() {
            let of = |key: &str| mapping[key].as_str().unwrap_or_default();
            let (source, target, permissions) = (of("source"), of("target"), of("permissions"));
            *device = match permissions {
                "rwm" if source == target => source.into(),
                "rwm" => format!("{source}:{target}").into(),
                _ => format!("{source}:{target}:{permissions}").into(),
            };
            // `/a` may have been written as `/a:/a`.
            open.extend((source == target && permissions == "rwm").then_some(at));
        }
    }
    subsets(service, &open, |service, at| {
        if let Some(device) = items(service, "devices").nth(at) {
            let source = device.as_str().unwrap_or_default();
            *device = format!("{source}:{source}").into();
        }
    })
}

/// A service in syntax that this version reads: later versions print some parts in a syntax that they added.
pub(super) fn readable_by(version: ComposeVersion, service: Fields) -> Fields {
    let rules = [devices, develop].into_iter();
    rules.fold(service, |service, rule| {
        rule(service, version).swap_remove(0)
    })
}

/// A `watch` has `exec` since 2.32.0, also without a command.
fn develop(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    let none = json!({"command": null});
    let watch = service
        .get_mut("develop")
        .and_then(|develop| develop.get_mut("watch"));
    let rules = watch.and_then(Value::as_array_mut).into_iter().flatten();
    for rule in rules.filter_map(Value::as_object_mut) {
        if version < V2_32 && rule.get("exec") == Some(&none) {
            rule.shift_remove("exec");
        } else if version >= V2_32 && !rule.contains_key("exec") {
            let before = ["path", "action", "target"].into_iter();
            let at = before.filter(|key| rule.contains_key(*key)).count();
            rule.shift_insert(at, "exec".to_owned(), none.clone());
        }
    }
    vec![service]
}

/// Before 2.29.0, a port in the long syntax has no default `mode` and `protocol`.
fn ports(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    let is_open = |port: &Value| port["mode"] == "ingress" || port["protocol"] == "tcp";
    let ports = items(&mut service, "ports").enumerate();
    let open = ports.filter(|(_, port)| version < V2_29 && is_open(port));
    let open: Vec<usize> = open.map(|(at, _)| at).collect();
    subsets(service, &open, |service, at| {
        if let Some(Value::Object(port)) = items(service, "ports").nth(at) {
            port.retain(|key, value| {
                !(key == "mode" && value == "ingress" || key == "protocol" && value == "tcp")
            });
        }
    })
}

/// From 2.24.7 to 2.28, variables without a value are left out.
fn environment(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    let leaves_out = version >= V2_24_7 && version < V2_29;
    if leaves_out && let Some(Value::Object(variables)) = service.get_mut("environment") {
        variables.retain(|_, value| !value.is_null());
        let is_empty = variables.is_empty();
        return vec![without(service, "environment", is_empty)];
    }
    vec![service]
}

/// Before 2.30.0, no count is no `count`; since then, it is that of all devices.
fn counts(service: Fields, version: ComposeVersion) -> Vec<Fields> {
    let deploy = service.get("deploy");
    let reserved = deploy.and_then(|deploy| deploy.pointer("/resources/reservations/devices"));
    let reserved = reserved
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate();
    let open = reserved.filter(|(_, device)| version < V2_30 && device["count"] == -1);
    let open: Vec<usize> = open.map(|(at, _)| at).collect();
    subsets(service, &open, |service, at| {
        let device = format!("/resources/reservations/devices/{at}");
        let deploy = service.get_mut("deploy");
        if let Some(Value::Object(device)) = deploy.and_then(|deploy| deploy.pointer_mut(&device)) {
            device.shift_remove("count");
        }
    })
}

/// Before 2.26.0, a text as it is written: `0.5` or `0.50`.
fn cpus(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    const SIDES: [&str; 2] = ["/resources/limits/cpus", "/resources/reservations/cpus"];
    let mut open = Vec::new();
    for (at, side) in SIDES.iter().enumerate().filter(|_| version < V2_26) {
        if let Some(cpus) = service
            .get_mut("deploy")
            .and_then(|deploy| deploy.pointer_mut(side))
            && cpus.is_number()
        {
            *cpus = cpus.to_string().into();
            open.push(at);
        }
    }
    subsets(service, &open, |service, at| {
        if let Some(cpus) = service
            .get_mut("deploy")
            .and_then(|deploy| deploy.pointer_mut(SIDES[at]))
        {
            *cpus = format!("{}0", cpus.as_str().unwrap_or_default()).into();
        }
    })
}

/// Before 2.24.6, a secret has no default `target`.
fn targets(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    for secret in items(&mut service, "secrets").filter_map(Value::as_object_mut) {
        let source = secret
            .get("source")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let default = format!("/run/secrets/{source}");
        if version < V2_24_6 && secret.get("target") == Some(&default.into()) {
            secret.shift_remove("target");
        }
    }
    vec![service]
}

/// Before 2.24.0, `host:address`; before 2.20.0, a dependency is not `required`.
fn older_lists(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    if version < V2_24 {
        for host in items(&mut service, "extra_hosts") {
            if let Some((name, address)) = host.as_str().and_then(|host| host.split_once('=')) {
                *host = format!("{name}:{address}").into();
            }
        }
    }
    if version < V2_20
        && let Some(Value::Object(dependencies)) = service.get_mut("depends_on")
    {
        let dependencies = dependencies.values_mut().filter_map(Value::as_object_mut);
        dependencies.for_each(|how| drop(how.shift_remove("required")));
    }
    vec![service]
}

/// Before 2.24.0, every service has `deploy` with one replica; since then, none has `replicas`.
fn replicas(mut service: Fields, version: ComposeVersion) -> Vec<Fields> {
    if version < V2_24 {
        let default = json!({"resources": {}, "placement": {}});
        let deploy = service.entry("deploy").or_insert(default);
        if let Some(deploy) = deploy.as_object_mut() {
            deploy.shift_remove("replicas");
            let at = usize::from(deploy.contains_key("mode"));
            deploy.shift_insert(at, "replicas".to_owned(), 1.into());
        }
    } else if let Some(Value::Object(deploy)) = service.get_mut("deploy") {
        deploy.shift_remove("replicas");
    }
    vec![service]
}

/// The service, with each subset of the places in `open` changed. Of many places, only none and all are.
pub(super) fn subsets(
    service: Fields,
    open: &[usize],
    change: impl Fn(&mut Fields, usize),
) -> Vec<Fields> {
    const MOST: usize = 7;
    let all = (1_usize << open.len().min(MOST)) - 1;
    if open.is_empty() {
        return vec![service];
    }
    let masks: Vec<usize> = match open.len() {
        ..=MOST => (0..=all).collect(),
        _ => vec![0, all],
    };
    let changed = masks.into_iter().map(|mask| {
        let mut service = service.clone();
        for (bit, &at) in open.iter().enumerate() {
            if mask == all || bit < MOST && mask & (1 << bit) != 0 {
                change(&mut service, at);
            }
        }
        service
    });
    changed.collect()
}

fn without(mut service: Fields, key: &str, is_removed: bool) -> Fields {
    if is_removed {
        service.shift_remove(key);
    }
    service
}

/// The items of a list of a service.
fn items<'s>(service: &'s mut Fields, key: &str) -> impl Iterator<Item = &'s mut Value> {
    let list = service.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::{
        compose::{Project, Read},
        model::{WrittenMount, WrittenService, WrittenServices},
    };

    /// What compose-go marshals for the same services in the versions of Compose, and what three versions print.
    #[derive(Deserialize)]
    struct Recorded {
        /// Those that were recorded.
        versions: Vec<String>,
        /// Each version with another hash than the one before it, by service.
        hashes: BTreeMap<String, Vec<(String, String)>>,
        /// By the version that printed them.
        printed: BTreeMap<String, Value>,
    }

    fn recorded() -> Recorded {
        let text = include_str!("../../tests/fixtures/config-hashes.json");
        serde_json::from_str(text).expect("the recorded hashes")
    }

    fn version(text: &str) -> ComposeVersion {
        ComposeVersion::parse(text).expect("a version")
    }

    #[test]
    fn n36_each_version_hashes_what_any_other_prints() {
        // What the file has for `create_host_path`, but for the short syntax.
        let long = [
            ("/t", Some(true)),
            ("/y", None),
            ("/z", None),
            ("/q", Some(false)),
            ("/p", None),
        ];
        // One letter before a colon is a drive, so this has a relative path in the container.
        let short = ["/x", "/x2", "/r", "/etc/localtime", "ro", "/s", "/s2"];
        let short = short.map(|target| (target, Some(true)));
        let all = long.into_iter().chain(short);
        let written = |(target, creates): (&str, _)| {
            let (key, target) = (clean(target), target.to_owned());
            (key, WrittenMount { creates, target })
        };
        let binds = all.map(written).collect();
        let Recorded {
            versions,
            hashes,
            printed,
        } = recorded();
        let mut written: WrittenServices = hashes
            .keys()
            .map(|service| (service.clone(), WrittenService::default()))
            .collect();
        written.insert(
            "bind".to_owned(),
            WrittenService {
                mounts: binds,
                ..WrittenService::default()
            },
        );
        let mut wrong = Vec::new();
        for (printer, services) in &printed {
            let read = Read {
                config: json!({ "services": services }),
                printed_by: version(printer),
                folder: None,
            };
            let project = Project::new(&read, &BTreeMap::new(), Some(&written));
            for of in &versions {
                for (service, changes) in &hashes {
                    let of = version(of);
                    let earlier = changes.iter().rfind(|(since, _)| version(since) <= of);
                    let (_, hash) = earlier.expect("a hash");
                    if !project.has_hash(service, hash, [Dialect::of(of)]) {
                        wrong.push(format!("{service} of {of}, printed by {printer}"));
                    }
                }
            }
        }
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn n36_versions_with_the_same_rules_are_one_dialect() {
        let of = |text| Dialect::of(version(text));
        for (one, other) in [
            ("2.36.0", "2.40.3"),
            ("5.0.2", "5.6.1"),
            ("2.29.0", "2.29.2"),
        ] {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
        let between = |first, last| Dialect::between(version(first), version(last)).len();
        assert_eq!(between("2.29.2", "2.29.2"), 1);
        // `profiles`, devices, `develop`, modes and networks.
        assert_eq!(between("2.29.7", "2.40.3"), 6);
        assert_ne!(Dialect::of_debian(), of("2.26.1"));
        assert!(Dialect::all().contains(&Dialect::of_debian()));
        let is_known = |text| Dialect::is_known(version(text));
        assert!(is_known("2.19.0") && is_known("5.7.9"));
        assert!(!is_known("2.18.1") && !is_known("5.8.0"));
    }

    #[test]
    fn n36_of_many_open_places_only_none_and_all_are_changed() {
        let ports = |bare: bool| -> Value {
            let port = |at: u8| {
                let whole = json!({"mode": "ingress", "target": at, "protocol": "tcp"});
                if bare { json!({"target": at}) } else { whole }
            };
            (0..70).map(port).collect()
        };
        let service = |bare| Fields::from_iter([("ports".to_owned(), ports(bare))]);
        let forms = Dialect::of(version("2.28.1")).hashed(&service(false));
        assert_eq!(forms.len(), 2);
        assert_eq!(forms[1]["ports"], ports(true));
        assert_eq!(
            Dialect::of(version("2.29.0")).hashed(&service(false)).len(),
            1
        );
    }

    #[test]
    fn n36_a_mode_that_is_a_text_was_a_decimal_number() {
        let service = |first: Value, second: Value| -> Fields {
            let file = |source: &str, mode| json!({"source": source, "target": format!("/run/secrets/{source}"), "mode": mode});
            let secrets = [file("s", first), file("t", second)];
            let service = json!({
                "command": null, "entrypoint": null, "image": "busybox", "networks": {"default": null}, "secrets": secrets,
            });
            service.as_object().expect("a service").clone()
        };
        // What compose-go hashes of `[{source: s, mode: "0440"}, {source: t, mode: 0440}]`, and what these versions print.
        let decimal = "c48592339446563d7b80be2c02fe632982974be0f097e7aaf92e1226e0387544";
        let octal = "e9d0265030e294b6d4bb531ab1238396950fa96e763e0c5b2cc712df253ec981";
        let of = |text| Dialect::of(version(text));
        for printed in [
            service(440.into(), 288.into()),
            service("0440".into(), "0440".into()),
        ] {
            for (text, hash) in [
                ("2.26.1", decimal),
                ("2.29.2", decimal),
                ("2.33.1", decimal),
                ("2.34.0", octal),
                ("5.6.1", octal),
            ] {
                assert!(of(text).has_hash(&printed, hash), "{text} {printed:?}");
                assert!(of(text).keeps(&printed, hash, Some(of(text)), false));
            }
            assert!(!of("2.29.2").has_hash(&printed, octal));
            assert!(!of("2.40.3").has_hash(&printed, decimal));
        }
        let printed = service("0440".into(), "0440".into());
        // Only a Compose that reads texts in the same way certainly keeps it.
        assert!(of("2.29.2").keeps(&printed, decimal, Some(of("2.26.1")), false));
        assert!(!of("2.29.2").keeps(&printed, decimal, None, false));
    }

    #[test]
    fn n36_an_equal_hash_of_one_of_several_forms_proves_nothing_of_another_version() {
        let device = json!({"capabilities": ["gpu"], "count": -1});
        let service = json!({"deploy": {"resources": {"reservations": {"devices": [device]}}}});
        let service = service.as_object().expect("a service");
        let of = |text| Dialect::of(version(text));
        let (old, newer) = (of("2.29.2"), of("5.6.1"));
        let hash = sha256(&go_json(&service.clone().into()));
        // It may have been written without `count`, which only the newer one hashes.
        assert!(old.has_hash(service, &hash) && newer.has_hash(service, &hash));
        assert!(!old.keeps(service, &hash, Some(newer), false));
        assert!(!old.keeps(service, &hash, None, false));
        assert!(old.keeps(service, &hash, Some(of("2.26.1")), false));
        assert!(newer.keeps(service, &hash, None, false));
    }

    #[test]
    fn n36_the_part_that_differs_is_named() {
        let short = json!({"type": "bind", "source": "/a", "target": "/a", "bind": {"create_host_path": true}});
        let service = |value: Value| value.as_object().expect("a service").clone();
        let of = |text| Dialect::of(version(text));
        for (fields, one, other, expected) in [
            (
                json!({"depends_on": {"a": {}}}),
                "2.29.2",
                "2.40.3",
                Some("`depends_on`"),
            ),
            (json!({"depends_on": {"a": {}}}), "2.26.1", "2.29.2", None),
            (
                json!({"profiles": ["a"]}),
                "2.29.2",
                "5.6.1",
                Some("`profiles`"),
            ),
            // B39 would prevent that of the bind mount.
            (
                json!({"depends_on": {"a": {}}, "volumes": [short]}),
                "5.6.1",
                "2.29.2",
                Some("`depends_on`"),
            ),
            (
                json!({"volumes": [short]}),
                "5.6.1",
                "2.29.2",
                Some("bind mounts in the short syntax or with `create_host_path`"),
            ),
            (
                json!({"networks": {"a": {"priority": 1, "aliases": ["b"]}}}),
                "2.29.2",
                "5.6.1",
                Some("the settings of its networks"),
            ),
            (
                json!({"volumes": [{"type": "volume", "target": "/a/"}]}),
                "2.29.7",
                "2.30.0",
                Some("the `target` of mounts in the long syntax"),
            ),
            (json!({"image": "x"}), "2.24.0", "5.6.1", None),
            (
                json!({"image": "x"}),
                "2.23.3",
                "5.6.1",
                Some("the service"),
            ),
        ] {
            assert_eq!(
                of(one).difference(of(other), &service(fields)),
                expected,
                "{one} {other}"
            );
        }
    }
}
