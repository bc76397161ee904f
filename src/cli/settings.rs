//! Settings: flag > environment > the user's file > `/etc/stacklift.toml` > default.

use std::{
    env, fs,
    io::{ErrorKind, Read as _},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use secrecy::SecretString;
use serde::Deserialize;

use super::Common;
use crate::{
    engine,
    failure::Failure,
    portainer::{BaseUrl, Tls},
    stack::Location,
};

const SYSTEM_FILE: &str = "/etc/stacklift.toml";
const USER_FILE: &str = "stacklift.toml";
/// The longest settings file that is read, in bytes.
const LONGEST_FILE: u64 = 64 * 1024;
/// The longest beginning of a key file in which its first line is looked for, in bytes.
const LONGEST_KEY: u64 = 64 * 1024;
const KNOWN: &str =
    "it knows base-url, stacks-root, endpoint, tool, engine, tls and timeout, each on a line";

/// The settings of a run.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub base_url: BaseUrl,
    pub location: Location,
    pub endpoint: i64,
    pub engine: engine::Choice,
    pub tls: Tls,
    pub timeout: Duration,
}

/// A settings file. An unknown key is an error that names it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    base_url: Option<String>,
    stacks_root: Option<String>,
    endpoint: Option<i64>,
    tool: Option<String>,
    engine: Option<String>,
    tls: Option<String>,
    timeout: Option<String>,
}

impl Settings {
    /// Puts the settings together.
    pub(super) fn load(flags: &Common) -> Result<Self> {
        let mut files = Vec::new();
        for path in user_file().into_iter().chain([PathBuf::from(SYSTEM_FILE)]) {
            if let Some(file) = read(&path)? {
                files.push((path, file));
            }
        }
        Self::from_sources(flags, &|name| env::var(name).ok(), &files)
    }

    /// The settings of the flags and the defaults alone: for the rehearsal.
    pub(super) fn of_flags(flags: &Common) -> Result<Self> {
        Self::from_sources(flags, &|_| None, &[])
    }

    /// The settings of a file with this text, and the defaults.
    #[cfg(fuzzing)]
    pub(super) fn of_file(text: &str) -> Result<Self> {
        let file = (PathBuf::from(USER_FILE), toml::from_str(text)?);
        Self::from_sources(&Common::default(), &|_| None, &[file])
    }

    fn from_sources(
        flags: &Common,
        env: &dyn Fn(&str) -> Option<String>,
        files: &[(PathBuf, File)],
    ) -> Result<Self> {
        let sources = Sources { env, files };
        let base_url = sources.pick(
            flags.base_url.clone(),
            "STACKLIFT_BASE_URL",
            ("base-url", |file| file.base_url.clone()),
            "https://localhost:9443",
            BaseUrl::from_str,
        )?;
        let root = sources.pick(
            flags.stacks_root.clone(),
            "STACKLIFT_STACKS_ROOT",
            ("stacks-root", |file| file.stacks_root.clone()),
            "/opt/stacks",
            |text| Ok(PathBuf::from(text)),
        )?;
        let endpoint = sources.pick(
            flags.endpoint,
            "STACKLIFT_ENDPOINT",
            ("endpoint", |file| file.endpoint.map(|id| id.to_string())),
            "1",
            |text| text.parse().map_err(|_| "it is not a number".to_owned()),
        )?;
        let tool = sources.pick(
            flags.tool.clone(),
            "STACKLIFT_TOOL",
            ("tool", |file| file.tool.clone()),
            "docker",
            tool_name,
        )?;
        let engine = sources.pick(
            flags.engine,
            "STACKLIFT_ENGINE",
            ("engine", |file| file.engine.clone()),
            "auto",
            |text| engine::Choice::from_str(text).map_err(|error| error.clone()),
        )?;
        let tls = sources.pick(
            flags.tls.clone(),
            "STACKLIFT_TLS",
            ("tls", |file| file.tls.clone()),
            "off",
            Tls::from_str,
        )?;
        let timeout = sources.pick(
            flags.timeout,
            "STACKLIFT_TIMEOUT",
            ("timeout", |file| file.timeout.clone()),
            "20m",
            duration,
        )?;
        Ok(Self {
            base_url,
            location: Location {
                root,
                dir: flags.dir.clone(),
                file: flags.file.clone(),
                tool,
            },
            endpoint,
            engine,
            tls,
            timeout,
        })
    }
}

struct Sources<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    files: &'a [(PathBuf, File)],
}

impl Sources<'_> {
    fn pick<T>(
        &self,
        flag: Option<T>,
        variable: &str,
        (key, field): (&str, fn(&File) -> Option<String>),
        default: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T> {
        if let Some(value) = flag {
            return Ok(value);
        }
        let (origin, text) = if let Some(text) = (self.env)(variable).filter(|t| !t.is_empty()) {
            (variable.to_owned(), text)
        } else if let Some((path, text)) = self
            .files
            .iter()
            .find_map(|(path, file)| Some((path, field(file)?)))
        {
            (format!("{key} in {}", path.display()), text)
        } else {
            ("the default".to_owned(), default.to_owned())
        };
        parse(&text).map_err(|reason| {
            Failure::new(format!("{origin} cannot be used: {reason}"))
                .hint(format!(
                    "{variable}, --{key} and the settings files take the same values; see --help"
                ))
                .into()
        })
    }
}

fn user_file() -> Option<PathBuf> {
    let dirs = etcetera::choose_base_strategy().ok()?;
    Some(dirs.config_dir().join(USER_FILE))
}

fn read(path: &Path) -> Result<Option<File>> {
    let failed = || format!("failed to read the settings file {}", path.display());
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(failed),
    };
    let own = rustix::process::geteuid().as_raw();
    if !metadata.is_file()
        || (metadata.uid() != 0 && metadata.uid() != own)
        || metadata.mode() & 0o022 != 0
    {
        return Err(Failure::new(format!(
            "the settings file {} is refused: it must be a file of yours or root's that others cannot write",
            path.display()
        ))
        .hint(format!("chown it, and chmod go-w {}", path.display()))
        .into());
    }
    if metadata.len() > LONGEST_FILE {
        return Err(Failure::new(format!(
            "the settings file {} is refused: it is longer than {} KiB",
            path.display(),
            LONGEST_FILE / 1024
        ))
        .hint(KNOWN)
        .into());
    }
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(failed()).source(error).hint(KNOWN))?;
    toml::from_str(&text)
        .map(Some)
        .map_err(|error| Failure::new(failed()).source(error).hint(KNOWN).into())
}

/// Where snapshots are kept: `STACKLIFT_STATE_DIR`, else `/var/lib/stacklift` for root and the user's state
/// folder otherwise.
pub(super) fn state_folder() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("STACKLIFT_STATE_DIR").filter(|folder| !folder.is_empty()) {
        return std::path::absolute(folder).context("STACKLIFT_STATE_DIR cannot be used");
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/stacklift"));
    }
    let dirs = etcetera::choose_base_strategy().ok();
    let state = dirs.and_then(|dirs| dirs.state_dir());
    Ok(state
        .ok_or_else(|| {
            Failure::new("there is no folder to keep snapshots in: HOME is not set")
                .hint("name one in STACKLIFT_STATE_DIR")
        })?
        .join("stacklift"))
}

/// The API key (C02): `STACKMGR_API_KEY`, else the file that `STACKMGR_API_KEY_FILE` names.
#[derive(Debug)]
pub(super) enum KeySource {
    Given(SecretString),
    File(PathBuf),
}

impl KeySource {
    /// Where the key comes from; reads no file, so that a refusal after it has read nothing (C05).
    pub(super) fn from_env() -> Result<Self> {
        let given = env::var_os("STACKMGR_API_KEY").filter(|key| !key.is_empty());
        if let Some(key) = given {
            let key = key.into_string().map_err(|_| {
                Failure::new("STACKMGR_API_KEY is not UTF-8").hint("set it to the key alone")
            })?;
            return Ok(Self::Given(key.into()));
        }
        // Unset, not empty: an empty variable asks for the message of C02.
        let unset = env::var_os("STACKMGR_API_KEY").is_none();
        match env::var_os("STACKMGR_API_KEY_FILE").filter(|path| unset && !path.is_empty()) {
            Some(path) => Ok(Self::File(path.into())),
            None => Err(key_required().into()),
        }
    }

    /// The key itself.
    pub(super) fn read(self) -> Result<SecretString> {
        let path = match self {
            Self::Given(key) => return Ok(key),
            Self::File(path) => path,
        };
        // It may be a pipe, and one that never ends.
        let mut text = String::new();
        fs::File::open(&path)
            .and_then(|file| file.take(LONGEST_KEY).read_to_string(&mut text))
            .map_err(|error| {
                Failure::new(format!("failed to read the key file {}", path.display()))
                    .source(error)
                    .hint("STACKMGR_API_KEY_FILE names a text file whose first line is the key")
            })?;
        let key = text.lines().next().unwrap_or_default().trim();
        if key.is_empty() {
            return Err(Failure::new(format!(
                "the first line of the key file {} is empty",
                path.display()
            ))
            .hint("put the manager's API key there, alone on the first line")
            .into());
        }
        Ok(key.into())
    }
}

fn key_required() -> Failure {
    Failure::new("STACKMGR_API_KEY is required: the manager's API key").hint(
        "make a key in the manager (My account > Access tokens), then: export STACKMGR_API_KEY=…; or name a file that holds it in STACKMGR_API_KEY_FILE",
    )
}

/// `--tool`: a bare name.
pub(super) fn tool_name(text: &str) -> Result<String, String> {
    let bare = !text.is_empty()
        && !text.starts_with(['-', '.'])
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if bare {
        Ok(text.to_owned())
    } else {
        Err("expected a bare command name such as docker".to_owned())
    }
}

/// `--file`: a plain name inside the stack's directory.
pub(super) fn plain_name(text: &str) -> Result<String, String> {
    let plain = !text.is_empty()
        && text != "."
        && text != ".."
        && !text.contains('/')
        && !text.contains(char::is_control);
    if plain {
        Ok(text.to_owned())
    } else {
        Err("expected the plain name of a file in the stack's directory".to_owned())
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
        .ok_or_else(|| "expected a time between 1s and 168h, such as 90s or 20m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_before_environment_before_file_before_default() {
        let file = |endpoint| File {
            endpoint: Some(endpoint),
            ..File::default()
        };
        let files = [("user".into(), file(4)), ("system".into(), file(5))];
        let flags = Common {
            endpoint: Some(2),
            ..Common::default()
        };
        let env = |name: &str| (name == "STACKLIFT_ENDPOINT").then(|| "3".to_owned());
        let none = |_: &str| None;
        let endpoint = |flags: &Common, env: &dyn Fn(&str) -> Option<String>, files: &[_]| {
            Settings::from_sources(flags, env, files)
                .expect("settings")
                .endpoint
        };
        assert_eq!(endpoint(&flags, &env, &files), 2);
        assert_eq!(endpoint(&Common::default(), &env, &files), 3);
        assert_eq!(endpoint(&Common::default(), &none, &files), 4);
        assert_eq!(endpoint(&Common::default(), &none, &files[1..]), 5);
        assert_eq!(endpoint(&Common::default(), &none, &[]), 1);
    }

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
