//! The settings that a flag, an environment variable and a settings file can give: names, defaults and syntax.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

/// A setting. Its flag is `--` and the key.
pub(super) struct Setting {
    /// The key in a settings file.
    pub key: &'static str,
    pub variable: &'static str,
    /// Empty if there is none.
    pub default: &'static str,
}

pub(super) const BASE_URL: Setting = Setting {
    key: "base-url",
    variable: "STACKLIFT_BASE_URL",
    default: "https://localhost:9443",
};
pub(super) const API_KEY_FILE: Setting = Setting {
    key: "api-key-file",
    variable: "STACKMGR_API_KEY_FILE",
    default: "",
};
pub(super) const STACKS_ROOT: Setting = Setting {
    key: "stacks-root",
    variable: "STACKLIFT_STACKS_ROOT",
    default: "/opt/stacks",
};
pub(super) const ENDPOINT: Setting = Setting {
    key: "endpoint",
    variable: "STACKLIFT_ENDPOINT",
    default: "1",
};
pub(super) const TOOL: Setting = Setting {
    key: "tool",
    variable: "STACKLIFT_TOOL",
    default: "docker",
};
pub(super) const ENGINE: Setting = Setting {
    key: "engine",
    variable: "STACKLIFT_ENGINE",
    default: "auto",
};
pub(super) const TLS: Setting = Setting {
    key: "tls",
    variable: "STACKLIFT_TLS",
    default: "off",
};
pub(super) const TIMEOUT: Setting = Setting {
    key: "timeout",
    variable: "STACKLIFT_TIMEOUT",
    default: "20m",
};

pub(super) const HEADER_FILE: Setting = Setting {
    key: "header-file",
    variable: "STACKLIFT_HEADER_FILE",
    default: "",
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

/// `--endpoint`: the Portainer environment for this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// The environment with this ID.
    Id(i64),
    /// The one whose engine is the engine of this host.
    Auto,
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            // The text is not quoted: in a settings file, it may be a misplaced API key (C56).
            id => id
                .parse()
                .map(Self::Id)
                .map_err(|_| "expected a number or `auto`".to_owned()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// How the API keys of Portainer start.
const START_OF_KEY: &str = "ptr_";

/// Whether a text is an API key of Portainer, such as one in the place of a path.
pub(super) fn is_api_key(text: &str) -> bool {
    text.starts_with(START_OF_KEY)
}

/// `--api-key-file`: a path. An empty text means no file.
pub(super) fn key_file(text: &str) -> Result<Option<PathBuf>, String> {
    if is_api_key(text) {
        return Err("expected the path of a file, not the API key".to_owned());
    }
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

/// `--tool`: a command name without a path.
pub(super) fn tool_name(text: &str) -> Result<String, String> {
    let bare = !text.is_empty()
        && !text.starts_with(['-', '.'])
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if bare {
        Ok(text.to_owned())
    } else {
        Err("expected a command name without a path, such as docker".to_owned())
    }
}

/// `--file`: the name of a file in the stack directory.
pub(super) fn plain_name(text: &str) -> Result<String, String> {
    let plain = !text.is_empty()
        && text != "."
        && text != ".."
        && !text.contains('/')
        && !text.contains(char::is_control);
    if plain {
        Ok(text.to_owned())
    } else {
        Err("expected the name of a file in the stack directory, without a path".to_owned())
    }
}

/// `--timeout`: seconds, or a number with `s`, `m` or `h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().find(|(_, c)| !c.is_ascii_digit()) {
        Some((at, _)) => text.split_at(at),
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
