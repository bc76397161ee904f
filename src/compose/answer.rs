//! What the program printed.

use std::{collections::BTreeMap, mem, process::Output};

use serde_json::{Map, Value};

use super::{
    Program,
    dialect::{CREATE_HOST_PATH, Fields, OMITS_TRUE, all_binds, readable_by, set_created},
    folder::compose_file,
    version::ComposeVersion,
};
use crate::{
    failure::Failure,
    text::{Mask, excerpt},
};

/// The oldest Compose program that Portainer contains, as far as this program supports it.
const OLDEST: ComposeVersion = ComposeVersion(2, 26, 0);
/// The newest known Compose whose schema accepts other values than the one before.
const NEWEST: ComposeVersion = ComposeVersion(5, 6, 0);

/// The exit status for files that do not exist.
const FILE_NOT_FOUND: i32 = 14;

/// Parts of messages that depend on the files of a host.
const ABOUT_FILES: [&str; 4] = [
    "no such file or directory",
    "permission denied",
    "is a directory",
    "not a directory",
];

/// A part of the message about a file that Compose would fetch.
const REMOTE: &str = "remote resource is disabled";

/// How the line of a Go program starts that ends for want of memory.
const OUT_OF_MEMORY: [&[u8]; 3] = [
    b"fatal error: runtime: out of memory",
    b"fatal error: runtime: cannot allocate memory",
    b"runtime: cannot allocate memory",
];

/// A part of the message about a value of the wrong type. From 2.26.1 to 5.7.1, the types are the same, but for `ignore` of a
/// `watch`, which no deployment reads.
const WRONG_TYPE: &str = " must be a ";

/// Parts of messages that name an unknown key, in programs of different versions.
const UNKNOWN_KEY: [&str; 2] = ["Additional property", "additional propert"];

/// Why the program rejects a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The program and its version.
    pub by: String,
    /// Its message, on one line and masked.
    pub message: String,
    /// Why Portainer's Compose may accept the text all the same.
    pub doubt: Option<Doubt>,
    /// Whether a file does not exist or cannot be read.
    pub is_about_files: bool,
}

/// Why one Compose program may reject what another accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Its version does not know the key.
    UnknownKey,
    /// Its version is older, or its schema is.
    Version,
    /// It sees other files.
    Files,
}

impl From<Rejection> for anyhow::Error {
    fn from(rejection: Rejection) -> Self {
        let Rejection { by, message, .. } = rejection;
        let failure = Failure::new(format!("{by} rejects it: {message}"));
        failure.hint_if_any(hint(&message)).into()
    }
}

impl Rejection {
    /// What a program with this exit status and message says about a text.
    pub fn new(by: &dyn Program, code: i32, message: &str) -> Self {
        // The file that is sent has a name of its own, which is not that of the user's file.
        let start = format!("validating {}: ", compose_file(0));
        Self {
            doubt: doubt(code, message, by.version()),
            is_about_files: is_about_files(code, message),
            by: by.name(),
            message: message.strip_prefix(&start).unwrap_or(message).to_owned(),
        }
    }
}

/// Why a rejection is not certain for the Compose of Portainer. `code` is the exit status.
///
/// A schema grows from version to version, so an older program may reject a key or a value that a newer one accepts, such as
/// `pull_policy: daily`. What follows the schema, such as a size that is no number, is the same in each version.
pub(super) fn doubt(code: i32, message: &str, version: ComposeVersion) -> Option<Doubt> {
    let has = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    if message.contains(REMOTE) || is_about_files(code, message) && has(&[" /", "\"/"]) {
        // Of the files in the directory of the stack, Portainer has none either.
        Some(Doubt::Files)
    } else if has(&UNKNOWN_KEY) {
        Some(Doubt::UnknownKey)
    } else if version < OLDEST
        || (version < NEWEST && message.starts_with("validating ") && !message.contains(WRONG_TYPE))
    {
        Some(Doubt::Version)
    } else {
        None
    }
}

fn is_about_files(code: i32, message: &str) -> bool {
    code == FILE_NOT_FOUND || ABOUT_FILES.iter().any(|part| message.contains(part))
}

/// Whether the program ended because it has a limit of memory (B43).
pub(super) fn is_out_of_memory(output: &Output) -> bool {
    let is_said = |line: &[u8]| OUT_OF_MEMORY.iter().any(|start| line.starts_with(start));
    let mut lines = output.stderr.split(|&byte| byte == b'\n');
    !output.status.success() && lines.any(is_said)
}

/// What to do about a message of the program, if that is known.
fn hint(message: &str) -> Option<&'static str> {
    message.contains(REMOTE).then_some(
        "stacklift does not fetch remote files: save them in the stack's directory, and refer to the local copies",
    )
}

/// The error that the program printed, on one line: without its warnings, the values of `mask` and the path of the
/// temporary `folder`.
pub(super) fn message(output: &Output, folder: Option<&str>, mask: &Mask) -> String {
    // A value with several lines is masked before the lines are joined.
    let text = mask.hide(&String::from_utf8_lossy(&output.stderr));
    let text = match folder {
        Some(folder) => text.replace(&format!("{folder}/"), ""),
        None => text,
    };
    let warnings = ["time=\"", "WARN[", "WARNING: ", ">>>>"];
    let is_warning = |line: &str| warnings.iter().any(|start| line.starts_with(start));
    let is_error = |line: &&str| !line.is_empty() && !is_warning(line);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(is_error).collect();
    if lines.is_empty() {
        return "it printed no message".to_owned();
    }
    excerpt(&lines.join(" "))
}

/// Writes what `config` omits and other versions need, in syntax that they read. Each 0 in `ulimits`: Compose rejects a limit
/// without it. A `memswap_limit` of -1 as a number: old versions print it as a text, and reject that. From 5.0.0 on, the
/// `create_host_path: true` of bind mounts, which only newer versions take for the default (N28).
pub fn write_omitted(config: &mut Value, printed_by: ComposeVersion) {
    let services = config.get_mut("services").and_then(Value::as_object_mut);
    for service in services.into_iter().flat_map(Map::values_mut) {
        if service["memswap_limit"] == "-1" {
            service["memswap_limit"] = (-1).into();
        }
        let limits = service.get_mut("ulimits").and_then(Value::as_object_mut);
        for (_, limit) in limits.into_iter().flatten() {
            for key in ["soft", "hard"] {
                if limit.is_object() && limit.get(key).is_none() {
                    limit[key] = 0.into();
                }
            }
        }
        let Some(service) = service.as_object_mut() else {
            continue;
        };
        *service = readable_by(OLDEST, mem::take(service));
        for bind in all_binds(service) {
            if printed_by >= OMITS_TRUE && !bind.contains_key(CREATE_HOST_PATH) {
                set_created(bind, Some(true));
            }
        }
    }
}

/// Makes the namespaces that a service shares with others those of `containers`.
pub(super) fn share_by_id(service: &mut Fields, containers: &BTreeMap<String, String>) {
    for key in ["network_mode", "pid", "ipc"] {
        let mode = service.get(key).and_then(Value::as_str);
        let shared = mode.and_then(|mode| mode.strip_prefix("service:"));
        if let Some(id) = shared.and_then(|shared| containers.get(shared)) {
            service.insert(key.to_owned(), format!("container:{id}").into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Portainer may have an older version, which rejects the syntax that a newer one prints.
    #[test]
    fn what_is_printed_is_written_in_the_syntax_of_every_version() {
        let mut config = serde_json::json!({"services": {"a": {
            "devices": [
                {"source": "/dev/null", "target": "/dev/x", "permissions": "rwm"},
                {"source": "/dev/full", "target": "/dev/full", "permissions": "r"},
            ],
            "develop": {"watch": [{"path": "/a", "action": "rebuild", "exec": {"command": null}}]},
        }}});
        write_omitted(&mut config, NEWEST);
        let expected = serde_json::json!({
            "devices": ["/dev/null:/dev/x", "/dev/full:/dev/full:r"],
            "develop": {"watch": [{"path": "/a", "action": "rebuild"}]},
        });
        assert_eq!(config["services"]["a"], expected);
    }

    #[test]
    fn a_message_has_no_warnings() {
        let text = "time=\"now\" level=warning\nWARNING: Error loading config file: open /root/.docker/config.json: permission denied\nno such file\n";
        let output = Output {
            status: std::process::ExitStatus::default(),
            stdout: Vec::new(),
            stderr: text.into(),
        };
        assert_eq!(message(&output, None, &Mask::default()), "no such file");
    }

    #[test]
    fn a_rejection_is_in_doubt_where_programs_differ() {
        let (old, supported, newest) = ["1.29.2", "2.26.1", "5.6.1"]
            .map(|text| ComposeVersion::parse(text).expect("a version"))
            .into();
        let size = "decoding failed: error decoding 'services[a].mem_limit': invalid size: 'lots'";
        let schema = "validating docker-compose.yml: services.a.cgroup must be one of the following: \"host\"";
        let of_type = "validating docker-compose.yml: services.a.restart must be a string";
        let key =
            "validating docker-compose.yml: services.a Additional property foo is not allowed";
        let file = "env file /s/x.env not found: stat /s/x.env: no such file or directory";
        let own = "env file x.env not found: stat x.env: no such file or directory";
        for (code, message, version, expected) in [
            (15, size, old, Some(Doubt::Version)),
            (15, size, supported, None),
            (15, schema, supported, Some(Doubt::Version)),
            (15, schema, newest, None),
            (15, of_type, supported, None),
            (15, key, newest, Some(Doubt::UnknownKey)),
            (14, file, newest, Some(Doubt::Files)),
            (1, file, newest, Some(Doubt::Files)),
            (14, own, newest, None),
        ] {
            assert_eq!(doubt(code, message, version), expected, "{message}");
        }
    }
}
