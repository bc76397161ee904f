//! The settings that a flag, an environment variable and a settings file can give. The flags, the settings file of
//! `config init`, and what `config` shows come from this table.

use std::{ffi::OsString, path::absolute, str::FromStr, time::Duration};

use clap::{Arg, ValueHint};

use crate::{
    engine,
    portainer::{BaseUrl, Tls},
};

/// A setting. Its flag is `--` and the key.
pub(super) struct Setting {
    /// The key in a settings file.
    pub key: &'static str,
    pub variable: &'static str,
    /// Empty if there is none.
    pub default: &'static str,
    /// What the help shows in place of a value.
    pub placeholder: &'static str,
    /// The first sentence of the help.
    pub help: &'static str,
    /// The rest of the help; empty if there is none.
    pub more: &'static str,
    pub hint: ValueHint,
    /// Why a text is not valid. The reason does not quote the text: in a settings file, it may be a misplaced API key (C56).
    pub check: fn(&str) -> Result<(), String>,
}

pub(super) const BASE_URL: Setting = Setting {
    key: "base-url",
    variable: "STACKLIFT_BASE_URL",
    default: "https://localhost:9443",
    placeholder: "URL",
    help: "URL of Portainer",
    more: "",
    hint: ValueHint::Other,
    check: parses::<BaseUrl>,
};
pub(super) const API_KEY_FILE: Setting = Setting {
    key: "api-key-file",
    variable: "STACKMGR_API_KEY_FILE",
    default: "",
    placeholder: "FILE",
    help: "File whose first line is the API key; used if `STACKMGR_API_KEY` is not set",
    more: "",
    hint: ValueHint::FilePath,
    check: not_a_key,
};
pub(super) const STACKS_ROOT: Setting = Setting {
    key: "stacks-root",
    variable: "STACKLIFT_STACKS_ROOT",
    default: "/opt/stacks",
    placeholder: "DIR",
    help: "Directory that contains the stack directories",
    more: "",
    hint: ValueHint::DirPath,
    check: any,
};
pub(super) const ENDPOINT: Setting = Setting {
    key: "endpoint",
    variable: "STACKLIFT_ENDPOINT",
    default: "1",
    placeholder: "ID",
    help: "ID of the Portainer environment for this host, or `auto`",
    more: "`auto` asks Portainer which environment is this host.",
    hint: ValueHint::Other,
    check: |text| environment(text).map(drop),
};
pub(super) const TOOL: Setting = Setting {
    key: "tool",
    variable: "STACKLIFT_TOOL",
    default: "docker",
    placeholder: "TOOL",
    help: "Container command",
    more: "Also determines the names of the Compose file (TOOL-compose.yml) and of the container labels \
           (com.TOOL.compose.project).",
    hint: ValueHint::Other,
    check: tool_name,
};
pub(super) const ENGINE: Setting = Setting {
    key: "engine",
    variable: "STACKLIFT_ENGINE",
    default: "auto",
    placeholder: "METHOD",
    help: "How to connect to Docker: auto, api or command",
    more: "",
    hint: ValueHint::Other,
    check: parses::<engine::Choice>,
};
pub(super) const TLS: Setting = Setting {
    key: "tls",
    variable: "STACKLIFT_TLS",
    default: "off",
    placeholder: "MODE",
    help: "Verification of Portainer's certificate: off, pin, sha256:…, system or a PEM file",
    more: "`off` accepts any certificate. `pin` asks once whether to trust Portainer's certificate, and then accepts no \
           other. `pin:FINGERPRINT` pins that certificate without asking, even in place of another one. \
           `sha256:FINGERPRINT` accepts only that certificate, and stores nothing. `system` accepts certificates that the \
           system trusts. A path accepts the certificates in the PEM file, and those that they signed.",
    hint: ValueHint::FilePath,
    check: parses::<Tls>,
};
pub(super) const HEADER_FILE: Setting = Setting {
    key: "header-file",
    variable: "STACKLIFT_HEADER_FILE",
    default: "",
    placeholder: "FILE",
    help: "File with headers for each request to Portainer, one `Name: value` per line",
    more: "For a proxy in front of Portainer that authenticates its clients. The file must be owned by you or root, and \
           must not be accessible to others.",
    hint: ValueHint::FilePath,
    check: any,
};
pub(super) const TIMEOUT: Setting = Setting {
    key: "timeout",
    variable: "STACKLIFT_TIMEOUT",
    default: "20m",
    placeholder: "DURATION",
    help: "Time limit for each deployment and each deletion in Portainer",
    more: "In seconds, or with the unit s, m or h: 90, 90s, 20m, 2h. At most 168h.",
    hint: ValueHint::Other,
    check: |text| duration(text).map(drop),
};

pub(super) const ALL: [Setting; 9] = [
    BASE_URL,
    API_KEY_FILE,
    STACKS_ROOT,
    ENDPOINT,
    TOOL,
    ENGINE,
    TLS,
    HEADER_FILE,
    TIMEOUT,
];

impl Setting {
    /// The flag. Its help shows the variable and the default as clap does for its own `env` and `default_value`. Those
    /// would end the precedence of settings files over defaults, and the rule that an empty variable is unset.
    pub(super) fn flag(&self, reads_variables: bool) -> Arg {
        let variable = reads_variables.then(|| format!("[env: {}]", self.variable));
        let default = (!self.default.is_empty()).then(|| format!("[default: {}]", self.default));
        let notes: Vec<String> = variable.into_iter().chain(default).collect();
        let paragraphs = [self.help, self.more, &notes.join("\n")];
        let paragraphs = paragraphs.into_iter().filter(|part| !part.is_empty());
        // The error of a flag quotes its value, which may be a misplaced API key (C56).
        let is_key_file = self.key == API_KEY_FILE.key;
        let check = if is_key_file { any } else { self.check };
        Arg::new(self.key)
            .long(self.key)
            .global(true)
            .help_heading("Settings")
            .hide_short_help(true)
            .value_name(self.placeholder)
            .value_hint(self.hint)
            .value_parser(move |text: &str| check(text).map(|()| text.to_owned()))
            .help(format!("{} {}", self.help, notes.join(" ")))
            .long_help(paragraphs.collect::<Vec<_>>().join("\n\n"))
    }

    /// A value that means the same in every directory: a path is absolute.
    pub(super) fn anywhere(&self, text: &str) -> OsString {
        let is_path = match self.key {
            "tls" => matches!(text.parse(), Ok(Tls::File(_))),
            _ => !text.is_empty() && self.hint != ValueHint::Other,
        };
        let path = absolute(text).ok().filter(|_| is_path);
        path.map_or_else(|| text.into(), Into::into)
    }
}

fn parses<T: FromStr<Err = String>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(drop)
}

#[expect(clippy::unnecessary_wraps, reason = "a check of a setting")]
fn any(_: &str) -> Result<(), String> {
    Ok(())
}

/// `--endpoint`: the ID of the Portainer environment for this host. `None` for `auto`: the one whose engine is the engine of
/// this host.
pub(super) fn environment(text: &str) -> Result<Option<i64>, String> {
    let id = (text != "auto").then(|| text.parse()).transpose();
    id.map_err(|_| "expected a number or `auto`".to_owned())
}

/// How the API keys of Portainer start.
const START_OF_KEY: &str = "ptr_";

/// Whether a text is an API key of Portainer, such as one in the place of a path.
pub(super) fn is_api_key(text: &str) -> bool {
    text.starts_with(START_OF_KEY)
}

fn not_a_key(text: &str) -> Result<(), String> {
    if is_api_key(text) {
        return Err("it contains an API key instead of the path of a file".to_owned());
    }
    Ok(())
}

/// `--tool`: a command name without a path.
fn tool_name(text: &str) -> Result<(), String> {
    let is_other = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.');
    if text.is_empty() || text.starts_with(['-', '.']) || text.contains(is_other) {
        return Err("expected a command name without a path, such as docker".to_owned());
    }
    Ok(())
}

/// `--file`: the name of a file in the stack directory.
pub(super) fn plain_name(text: &str) -> Result<String, String> {
    let is_name = !["", ".", ".."].contains(&text);
    if is_name && !text.contains('/') && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    Err("expected the name of a file in the stack directory, without a path".to_owned())
}

/// `--timeout`: seconds, or a number with `s`, `m` or `h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    number
        .parse::<u32>()
        .ok()
        .map(|number| u64::from(number) * seconds)
        .filter(|seconds| (1..=7 * 24 * 3600).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a duration between 1s and 168h, such as 90s or 20m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("20m", 1200), ("2h", 7200)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "0", "m", "-1", "1d", "1.5m", "99999999999s", "169h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
