//! How Compose prints a configuration: which keys it knows, in which order, and what it makes of their values.

use std::collections::BTreeMap;

use composefile::duration;
use serde_json::{Value, json};

use super::values::{entries, fraction, labels, many, pairs, text, texts};

/// The keys of each part of a configuration, in the order in which Compose prints and hashes them. After the colon stands
/// what a value is; without one, it is text. `[` is a list and `{` a mapping of parts. An empty value is left out, unless
/// the key ends in `?`; one that ends in `!` is always there.
const PARTS: &str = "\
Service profiles:texts annotations:map attach:flag? build:Build develop:Develop blkio_config:Blkio cap_add:texts \
    cap_drop:texts cgroup_parent cgroup cpu_count:number cpu_percent:number cpu_period:number cpu_quota:number \
    cpu_rt_period:number cpu_rt_runtime:number cpus:number cpuset cpu_shares:number command:command! configs:[File \
    container_name credential_spec:Credential depends_on:{Dependency deploy:Deploy device_cgroup_rules:texts \
    devices:[Device dns:texts dns_opt:texts dns_search:texts domainname entrypoint:command! provider:any \
    environment:variables expose:texts external_links:texts extra_hosts:hosts group_add:texts gpus:[Request hostname \
    healthcheck:Health image init:flag? ipc isolation labels:map label_file:texts links:texts logging:Logging \
    mem_limit:size mem_reservation:size memswap_limit:size mem_swappiness:size mac_address models:any network_mode \
    networks:{Attachment oom_kill_disable:flag oom_score_adj:number pid pids_limit:number platform ports:[Port \
    privileged:flag pull_policy read_only:flag restart runtime scale:number? secrets:[File security_opt:texts \
    shm_size:size stdin_open:flag stop_grace_period:span? stop_signal storage_opt:map sysctls:map tmpfs:texts tty:flag \
    ulimits:{Limit use_api_socket:flag user userns_mode uts volumes:[Mount volumes_from:texts working_dir \
    pre_start:[Hook post_start:[Hook pre_stop:[Hook
Build context dockerfile dockerfile_inline entitlements:texts args:variables ssh:ssh labels:map cache_from:texts \
    cache_to:texts no_cache:flag additional_contexts:map pull:flag extra_hosts:hosts isolation network target \
    secrets:[File shm_size:size tags:texts ulimits:{Limit platforms:texts privileged:flag
Develop watch:[Watch
Watch path! action! target exec:Hook ignore:texts include:texts initial_sync:flag
Blkio weight:number weight_device:any device_read_bps:any device_read_iops:any device_write_bps:any \
    device_write_iops:any
Credential config file registry
Dependency condition restart:flag required:flag?
Deploy mode replicas:number? labels:map update_config:Update rollback_config:Update resources:Resources! \
    restart_policy:Restart placement:Placement! endpoint_mode
Update parallelism:number? delay:span failure_action monitor:span max_failure_ratio:number order
Resources limits:Resource reservations:Resource
Resource cpus:number memory:size pids:number devices:[Request generic_resources:any
Restart condition delay:span? max_attempts:number? window:span?
Placement constraints:texts preferences:[Spread max_replicas_per_node:number
Spread spread
Request capabilities:texts driver count:count device_ids:texts options:map
Device source target permissions
Health test:test timeout:span? interval:span? retries:number? start_period:span? start_interval:span? disable:flag
Logging driver options:map
Attachment priority:number gw_priority:number aliases:texts interface_name ipv4_address ipv6_address \
    link_local_ips:texts mac_address driver_opts:map
Port name mode host_ip target:number published protocol app_protocol
File source target uid gid mode:any?
Limit soft:number hard:number
Mount type source target read_only:flag consistency bind:Bind volume:Volume tmpfs:Tmpfs image:Image
Bind selinux propagation create_host_path:flag recursive
Volume nocopy:flag subpath
Tmpfs size:size mode:number
Image subpath
Hook command:command! user privileged:flag working_dir environment:variables
networks name driver driver_opts:map ipam:Ipam! external:flag internal:flag attachable:flag labels:map \
    enable_ipv4:flag? enable_ipv6:flag?
Ipam driver config:[Pool
Pool subnet gateway ip_range aux_addresses:map
volumes name driver driver_opts:map external:flag labels:map
secrets name file environment content external:flag labels:map driver driver_opts:map template_driver
configs name file environment content external:flag labels:map driver driver_opts:map template_driver
";

/// A part of a configuration as Compose prints it.
pub(super) fn part(name: &str, written: &Value) -> Value {
    let mut parts = PARTS
        .lines()
        .map(|line| line.split_once(' ').unwrap_or_default());
    let found = parts.find(|(part, _)| *part == name).unwrap_or_default();
    let entries = found.1.split_whitespace().filter_map(|entry| {
        let (always, set) = (entry.ends_with('!'), entry.ends_with('?'));
        let entry = entry.trim_end_matches(['!', '?']);
        let (key, kind) = entry.split_once(':').unwrap_or((entry, "text"));
        let mut value = typed(kind, &written[key]);
        if always && value.is_null() && is_part(kind) {
            value = part(kind, &Value::Null);
        }
        let is_printed = always || !(value.is_null() || !set && is_empty(kind, &value));
        is_printed.then(|| (key.to_owned(), value))
    });
    entries.collect()
}

fn is_part(kind: &str) -> bool {
    kind.starts_with(|c: char| c.is_ascii_uppercase())
}

fn is_empty(kind: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => {
            text.is_empty() || matches!((kind, text.as_str()), ("size", "0") | ("span", "0s"))
        }
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && !is_part(kind),
    }
}

/// A value of this kind.
fn typed(kind: &str, value: &Value) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    let one = || text(value).unwrap_or_default();
    match kind {
        "any" => value.clone(),
        "text" => one().into(),
        "texts" => texts(value).into(),
        "flag" => ["true", "yes", "y", "on"]
            .contains(&one().to_lowercase().as_str())
            .into(),
        "count" if one().eq_ignore_ascii_case("all") => (-1).into(),
        "number" | "count" => number(value),
        "size" => bytes(&one()).to_string().into(),
        "span" => span(&one()).into(),
        "command" => value.as_str().map_or_else(|| texts(value), words).into(),
        "test" => match value {
            Value::String(line) => json!(["CMD-SHELL", line]),
            list => texts(list).into(),
        },
        "map" => json!(labels(value)),
        "variables" => json!(pairs(value)),
        "hosts" => hosts(value).into(),
        "ssh" => pairs(value)
            .into_iter()
            .map(|(id, path)| match path {
                Some(path) => format!("{id}: {path}"),
                None => id,
            })
            .collect(),
        _ => match (kind.strip_prefix('['), kind.strip_prefix('{'), value) {
            (Some(kind), ..) => many(value).iter().map(|item| typed(kind, item)).collect(),
            (_, Some(kind), Value::Object(map)) => {
                let parts = map.iter().map(|(key, value)| (key, typed(kind, value)));
                json!(parts.collect::<BTreeMap<_, _>>())
            }
            (_, _, Value::Object(_)) => part(kind, value),
            // A limit may be one number for both.
            _ => number(value),
        },
    }
}

/// The number of a text; a text that is none stays.
pub(super) fn number(value: &Value) -> Value {
    let text = text(value).unwrap_or_default();
    let whole = text.parse::<i64>().map(Value::from);
    let number = whole.or_else(|_| text.parse::<f64>().map(fraction));
    number.unwrap_or_else(|_| value.clone())
}

/// The lines of `extra_hosts`: `host=address`, sorted.
fn hosts(value: &Value) -> Vec<String> {
    let mapped = entries(value).flat_map(|(host, addresses)| {
        let addresses = texts(addresses).into_iter();
        addresses.map(|address| (host.clone(), address))
    });
    let listed = texts(value).into_iter().map(|line| {
        let parts = line.split_once('=').or_else(|| line.split_once(':'));
        let (host, addresses) = parts.unwrap_or((&line, ""));
        (host.to_owned(), addresses.to_owned())
    });
    let mut lines = Vec::new();
    for (host, addresses) in mapped.chain(listed) {
        for address in addresses.split(',') {
            let inner = address.strip_prefix('[');
            let bare = inner.and_then(|inner| inner.strip_suffix(']'));
            lines.push(format!("{host}={}", bare.unwrap_or(address)));
        }
    }
    lines.sort();
    lines
}

/// The words of a command line, by the rules of a shell without variables. It ends at an operator such as `;`.
pub(super) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, ';' | '&' | '|' | '<' | '>') => break,
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The bytes of a size: `64m` → 67,108,864
fn bytes(size: &str) -> i64 {
    let size = size.trim();
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let unit = size[digits.len()..].trim().to_ascii_lowercase();
    // `kib`, `kb` and `k` are the same.
    let power = unit.chars().next().and_then(|unit| " kmgtp".find(unit));
    let power = power.and_then(|power| i32::try_from(10 * power).ok());
    let number = digits.parse::<f64>().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "as Go does")]
    let bytes = (number * 2_f64.powi(power.unwrap_or(0))) as i64;
    bytes
}

/// A span as Go prints it: `90s` → `1m30s`
fn span(text: &str) -> String {
    let seconds = duration::seconds(text);
    let whole = seconds.trunc();
    let (hours, minutes) = (whole / 3600.0, (whole % 3600.0) / 60.0);
    let rest = whole % 60.0 + seconds.fract();
    let rest = (rest * 1e9).round() / 1e9;
    match (hours.trunc(), minutes.trunc()) {
        _ if seconds == 0.0 => "0s".to_owned(),
        _ if seconds < 1e-3 => format!("{}µs", (seconds * 1e9).round() / 1e3),
        _ if seconds < 1.0 => format!("{}ms", (seconds * 1e9).round() / 1e6),
        (0.0, 0.0) => format!("{rest}s"),
        (0.0, minutes) => format!("{minutes}m{rest}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}s"),
    }
}
