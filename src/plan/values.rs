//! Values that every Compose version or every engine rejects, for hosts without a Compose program (B06).
//!
//! Only certain cases are found: what some version may accept is not in here.

use composefile::{document::Node, services::split_at_colons};

use super::sent::{Given, SentService, SentStack};
use crate::text::printable;

/// Whether a value is certainly rejected.
type IsBad = fn(&str) -> bool;

/// The scalars that are checked: what they are, the test, and where they are below a service.
const SCALARS: [(&str, IsBad, &[&[&str]]); 4] = [
    (
        "a size",
        is_bad_size,
        &[
            &["mem_limit"],
            &["memswap_limit"],
            &["mem_reservation"],
            &["shm_size"],
            &["deploy", "resources", "limits", "memory"],
            &["deploy", "resources", "reservations", "memory"],
        ],
    ),
    (
        "a duration",
        is_bad_duration,
        &[
            &["stop_grace_period"],
            &["healthcheck", "interval"],
            &["healthcheck", "timeout"],
            &["healthcheck", "start_period"],
            &["deploy", "restart_policy", "delay"],
            &["deploy", "restart_policy", "window"],
        ],
    ),
    (
        "a number",
        is_bad_number,
        &[
            &["cpus"],
            &["cpu_count"],
            &["cpu_shares"],
            &["pids_limit"],
            &["oom_score_adj"],
            &["scale"],
            &["deploy", "replicas"],
            &["healthcheck", "retries"],
            &["deploy", "resources", "limits", "cpus"],
        ],
    ),
    (
        "a boolean",
        is_bad_flag,
        &[&["init"], &["privileged"], &["read_only"], &["tty"]],
    ),
];

/// A value that is rejected, with its node for the line.
pub(super) struct Bad<'d> {
    pub(super) node: Node<'d>,
    /// As a sentence without a full stop. It shows the value as it is written, never the value of a variable.
    pub(super) what: String,
}

/// The values of all services that are certainly rejected.
pub(super) fn bad<'d>(stack: &SentStack<'_, 'd, '_>) -> Vec<Bad<'d>> {
    let mut found = Vec::new();
    // Compose also reads the services that it does not start.
    for service in stack.services() {
        scalars(stack, &service, &mut found);
        ports(stack, &service, &mut found);
    }
    for service in stack.active() {
        mounts(stack, &service, &mut found);
    }
    found
}

fn written(node: Node<'_>) -> std::borrow::Cow<'_, str> {
    printable(node.as_str().unwrap_or_default())
}

fn scalars<'d>(
    stack: &SentStack<'_, 'd, '_>,
    service: &SentService<'_, 'd, '_>,
    found: &mut Vec<Bad<'d>>,
) {
    for (noun, is_bad, paths) in SCALARS {
        for path in paths {
            let Some(node) = service.node(path) else {
                continue;
            };
            if matches!(stack.read(node), Given::Is(text) if is_bad(&text)) {
                let (name, path) = (printable(service.name), path.join("."));
                let what = format!("service {name}: `{path}: {}` is not {noun}", written(node));
                found.push(Bad { node, what });
            }
        }
    }
}

fn ports<'d>(
    stack: &SentStack<'_, 'd, '_>,
    service: &SentService<'_, 'd, '_>,
    found: &mut Vec<Bad<'d>>,
) {
    for item in service.nodes("ports").flat_map(Node::items) {
        let mut check = |node: Node<'d>, is_bad: IsBad| {
            if matches!(stack.read(node), Given::Is(text) if is_bad(&text)) {
                let (name, written) = (printable(service.name), written(node));
                let what = format!("service {name}: `{written}` is not a port or a range of ports");
                found.push(Bad { node, what });
            }
        };
        if item.is_mapping() {
            for key in ["target", "published"] {
                if let Some(node) = item.get(key) {
                    check(node, is_bad_number);
                }
            }
        } else {
            check(item, is_bad_publish);
        }
    }
}

/// Mounts in the short syntax. Compose reads `x:` with one letter as a drive of Windows, as in `C:\data`: the whole
/// text becomes the target, or the source is no path of the engine.
fn mounts<'d>(
    stack: &SentStack<'_, 'd, '_>,
    service: &SentService<'_, 'd, '_>,
    found: &mut Vec<Bad<'d>>,
) {
    for node in service.nodes("volumes").flat_map(Node::items) {
        let Given::Is(text) = stack.read(node) else {
            continue;
        };
        let mut chars = text.chars();
        let is_drive = chars.next().is_some_and(char::is_alphabetic)
            && chars.next() == Some(':')
            && chars.next().is_some();
        let parts = split_at_colons(&text);
        let target = parts.get(1).or(parts.first()).copied().unwrap_or_default();
        let why = if is_drive {
            "Compose reads its first letter as a drive of Windows; use the long syntax"
        } else if parts.len() <= 2
            && text.len() > 2
            && !target.is_empty()
            && !target.starts_with('/')
        {
            "its target is not an absolute path"
        } else {
            continue;
        };
        let (name, written) = (printable(service.name), written(node));
        let what = format!("service {name}: the engine rejects the mount `{written}`: {why}");
        found.push(Bad { node, what });
    }
}

/// A size is a number with an optional unit: `512m`, `1.5 GiB`.
fn is_bad_size(text: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let text = text.trim().trim_start_matches(['-', '+']);
    let unit = text.trim_start_matches(is_number).trim();
    !text.starts_with(is_number)
        // Other forms of a number are 0x10, 1e3 and 1_000.
        || !(unit.starts_with(['x', 'X', 'e', 'E', '_'])
            || unit.chars().all(|c| "bkmgtpezyi".contains(c.to_ascii_lowercase())))
}

/// A duration is a sequence of numbers with units: `1h30m`. Some versions accept days and weeks.
fn is_bad_duration(text: &str) -> bool {
    const UNITS: [&str; 10] = ["", "ns", "us", "µs", "μs", "ms", "s", "m", "h", "d"];
    let text = text.trim().trim_start_matches(['-', '+']).to_lowercase();
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut units = text.split(is_number).map(str::trim);
    !text.is_empty()
        && (!text.starts_with(is_number) || units.any(|unit| unit != "w" && !UNITS.contains(&unit)))
}

/// Numbers have several forms; none of them starts with a letter, except infinity.
fn is_bad_number(text: &str) -> bool {
    let text = text
        .trim()
        .trim_start_matches(['-', '+', '.'])
        .to_lowercase();
    let is_special = ["inf", "nan"].iter().any(|name| text.starts_with(name));
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && !is_special
}

/// Compose accepts all words of YAML 1.1, and digits.
fn is_bad_flag(text: &str) -> bool {
    const WORDS: [&str; 12] = [
        "", "true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "0",
    ];
    let text = text.trim().to_lowercase();
    text != "1" && !WORDS.contains(&text.as_str())
}

/// `[[address:]published:]target[/protocol]`. Empty parts are reported elsewhere.
fn is_bad_publish(text: &str) -> bool {
    let (ports, protocol) = text.split_once('/').unwrap_or((text, ""));
    let protocol = protocol.to_lowercase();
    if !["", "tcp", "udp", "sctp"].contains(&protocol.as_str()) {
        return true;
    }
    let mut fields = ports.rsplit(':');
    let (target, published) = (fields.next(), fields.next());
    [target, published].into_iter().flatten().any(is_bad_range)
}

fn is_bad_range(text: &str) -> bool {
    let port = |text: &str| {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| is_digits)
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    !text.is_empty()
        && !matches!((port(first), port(last)), (Some(first), Some(last)) if first <= last)
}

#[cfg(test)]
mod tests;
