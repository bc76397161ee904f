//! Loads the settings. Precedence: flags, environment, user settings, system settings, defaults.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    env,
    io::{self, ErrorKind, Read as _},
    ops::Range,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use serde::Deserialize;
use toml::de::DeTable;

use super::{
    arguments::Common,
    options::{self, Endpoint, Setting, is_api_key},
};
use crate::{
    disk::{self, Refused},
    engine,
    failure::Failure,
    portainer::{BaseUrl, Tls},
    run::RestoreCommand,
    stack::Location,
};

mod key;
mod origin;

pub(super) use key::{KeySource, VARIABLE as API_KEY, is_given as api_key_is_given};
pub(super) use origin::{Origin, Picked, Problem, SettingsFile};

/// The variable that names the directory for snapshots.
pub(super) const STATE_DIR: &str = "STACKLIFT_STATE_DIR";

/// The variable that names the system's settings file.
const SYSTEM_SETTINGS: &str = "STACKLIFT_SYSTEM_SETTINGS";
const SYSTEM_FILE: &str = "/etc/stacklift.toml";
const USER_FILE: &str = "stacklift.toml";
/// The size limit of a settings file, in bytes.
const LONGEST_FILE: u64 = 64 * 1024;
/// A key is suggested for an unknown one if at most one in this many characters has to be changed.
const CHARACTERS_PER_TYPO: usize = 3;

/// The settings of a run.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub base_url: BaseUrl,
    /// The file with the API key, if one is named. `STACKMGR_API_KEY` takes precedence over it (C02).
    pub api_key_file: Option<PathBuf>,
    pub location: Location,
    /// The environment. Never `Auto` where Portainer is used.
    pub endpoint: Endpoint,
    pub engine: engine::Choice,
    pub tls: Tls,
    pub header_file: Option<PathBuf>,
    pub timeout: Duration,
    /// The flags that were typed, for the commands that are printed (B14).
    pub typed: RestoreCommand,
}

/// A settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    base_url: Option<String>,
    #[serde(rename = "api-key-file")]
    key: Option<String>,
    stacks_root: Option<String>,
    /// A number or a text.
    endpoint: Option<toml::Value>,
    tool: Option<String>,
    engine: Option<String>,
    tls: Option<String>,
    #[serde(rename = "header-file")]
    headers: Option<String>,
    timeout: Option<String>,
    /// The line of each key.
    #[serde(skip)]
    lines: BTreeMap<String, usize>,
}

/// The settings and where each comes from, also if some are invalid.
pub(super) struct Sourced {
    /// The settings, or the first error.
    pub settings: Result<Settings>,
    /// Every setting, in the order of [`options::ALL`].
    pub picked: Vec<Picked>,
    /// The files that were looked for.
    pub files: Vec<SettingsFile>,
}

impl Sourced {
    /// Merges all sources.
    pub(super) fn load(flags: &Common) -> Self {
        let mut first_error = None;
        let (mut contents, mut files) = (Vec::new(), Vec::new());
        for path in settings_files() {
            let (exists, error) = match read(&path) {
                Ok(Some(file)) => {
                    contents.push((path.clone(), file));
                    (true, None)
                }
                Ok(None) => (false, None),
                Err(error) => {
                    let shown = origin::Problem::of(&error);
                    first_error.get_or_insert(error);
                    (true, Some(shown))
                }
            };
            files.push(SettingsFile {
                path,
                exists,
                error,
            });
        }
        let env = |name: &str| env::var(name).ok();
        let sources = Sources::new(&env, &contents);
        let merged = Settings::of(flags, &sources);
        let mut picked = sources.picked.into_inner();
        for (setting, picked) in options::ALL.iter().zip(&mut picked) {
            if let Err(error) = require_utf8(setting.variable) {
                picked.replace_by_invalid(setting.variable, &error);
                first_error.get_or_insert(error);
            }
        }
        Self {
            settings: first_error.map_or(merged, Err),
            picked,
            files,
        }
    }
}

impl Settings {
    /// Merges all sources.
    pub(super) fn load(flags: &Common) -> Result<Self> {
        Sourced::load(flags).settings
    }

    /// The flags, `STACKLIFT_STACKS_ROOT` and the defaults, for the rehearsal.
    pub(super) fn of_rehearsal(flags: &Common) -> Result<Self> {
        require_utf8(options::STACKS_ROOT.variable)?;
        let root = |name: &str| {
            let is_root = name == options::STACKS_ROOT.variable;
            is_root.then(Self::stacks_root_variable).flatten()
        };
        Self::from_sources(flags, &root, &[])
    }

    /// `STACKLIFT_STACKS_ROOT`, unless it is empty.
    pub(super) fn stacks_root_variable() -> Option<String> {
        let root = env::var(options::STACKS_ROOT.variable).ok();
        root.filter(|root| !root.is_empty())
    }

    fn from_sources(
        flags: &Common,
        env: &dyn Fn(&str) -> Option<String>,
        files: &[(PathBuf, File)],
    ) -> Result<Self> {
        Self::of(flags, &Sources::new(env, files))
    }

    /// Picks every setting before it fails, so that [`Sources::picked`] has all of them.
    fn of(flags: &Common, sources: &Sources) -> Result<Self> {
        let base_url = sources.pick(
            &options::BASE_URL,
            flags.base_url.clone(),
            ToString::to_string,
            |file| file.base_url.clone(),
            BaseUrl::from_str,
        );
        let path = |path: &PathBuf| path.display().to_string();
        let api_key_file = sources.pick(
            &options::API_KEY_FILE,
            flags.api_key_file.clone().map(Some),
            |file| {
                file.as_ref()
                    .map(path)
                    .filter(|path| !is_api_key(path))
                    .unwrap_or_default()
            },
            |file| file.key.clone(),
            options::key_file,
        );
        let root = sources.pick(
            &options::STACKS_ROOT,
            flags.stacks_root.clone(),
            path,
            |file| file.stacks_root.clone(),
            |text| Ok(PathBuf::from(text)),
        );
        let endpoint = sources.pick(
            &options::ENDPOINT,
            flags.endpoint,
            ToString::to_string,
            |file| file.endpoint.as_ref().map(id_or_text),
            Endpoint::from_str,
        );
        let tool = sources.pick(
            &options::TOOL,
            flags.tool.clone(),
            ToString::to_string,
            |file| file.tool.clone(),
            options::tool_name,
        );
        let engine = sources.pick(
            &options::ENGINE,
            flags.engine,
            ToString::to_string,
            |file| file.engine.clone(),
            engine::Choice::from_str,
        );
        let tls = sources.pick(
            &options::TLS,
            flags.tls.clone(),
            ToString::to_string,
            |file| file.tls.clone(),
            Tls::from_str,
        );
        let header_file = sources.pick(
            &options::HEADER_FILE,
            flags.header_file.clone(),
            path,
            |file| file.headers.clone(),
            |text| Ok(PathBuf::from(text)),
        );
        let timeout = sources.pick(
            &options::TIMEOUT,
            flags.timeout,
            |limit| format!("{}s", limit.as_secs()),
            |file| file.timeout.clone(),
            options::duration,
        );
        Ok(Self {
            base_url: base_url?,
            api_key_file: api_key_file?,
            location: Location {
                root: root?,
                dir: flags.dir.clone(),
                file: flags.file.clone(),
                tool: tool?,
            },
            endpoint: endpoint?,
            engine: engine?,
            tls: tls?,
            header_file: Some(header_file?).filter(|path| !path.as_os_str().is_empty()),
            timeout: timeout?,
            typed: RestoreCommand::typed(&flags.typed),
        })
    }
}

struct Sources<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    files: &'a [(PathBuf, File)],
    picked: RefCell<Vec<Picked>>,
}

impl<'a> Sources<'a> {
    fn new(env: &'a dyn Fn(&str) -> Option<String>, files: &'a [(PathBuf, File)]) -> Self {
        Self {
            env,
            files,
            picked: RefCell::default(),
        }
    }

    /// The flag, or the first other source that has the setting. An empty variable is unset.
    fn pick<T>(
        &self,
        setting: &Setting,
        flag: Option<T>,
        show: impl Fn(&T) -> String,
        field: fn(&File) -> Option<String>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T> {
        let (origin, text, value) = if let Some(flag) = flag {
            (Origin::Flag(setting.key), show(&flag), Ok(flag))
        } else {
            let (origin, text) = self.find(setting, field);
            let value = parse(&text);
            (origin, text, value)
        };
        let value = value.map_err(|reason| {
            Failure::new(format!("invalid {}: {reason}", origin.of(setting.key))).hint(format!(
                "see --{} in `stacklift --help` for valid values",
                setting.key
            ))
        });
        let value = value.map_err(anyhow::Error::from);
        // An invalid value may be a misplaced API key (C56).
        let is_shown = value.is_ok() && !text.is_empty();
        self.picked.borrow_mut().push(Picked {
            key: setting.key,
            value: is_shown.then_some(text),
            origin,
            error: value.as_ref().err().map(origin::Problem::of),
        });
        value
    }

    /// The first source that has the setting, and its text.
    fn find(&self, setting: &Setting, field: fn(&File) -> Option<String>) -> (Origin, String) {
        let variable = setting.variable;
        if let Some(text) = (self.env)(variable).filter(|text| !text.is_empty()) {
            return (Origin::Variable(variable), text);
        }
        let mut files = self.files.iter();
        let found = files.find_map(|(path, file)| Some((path, file, field(file)?)));
        match found {
            Some((path, file, text)) => {
                let (path, line) = (path.clone(), file.lines.get(setting.key).copied());
                (Origin::File { path, line }, text)
            }
            None => (Origin::Default, setting.default.to_owned()),
        }
    }
}

/// The text of an endpoint in a settings file; empty, which is not valid, if it is neither a number nor a text.
fn id_or_text(value: &toml::Value) -> String {
    match value {
        toml::Value::Integer(id) => id.to_string(),
        toml::Value::String(text) => text.clone(),
        _ => String::new(),
    }
}

/// Refuses a variable that is not UTF-8: without this, the default would replace it.
fn require_utf8(variable: &str) -> Result<()> {
    match env::var(variable) {
        Err(env::VarError::NotUnicode(_)) => {
            Err(Failure::new(format!("{variable} is not valid UTF-8"))
                .hint("set it to a UTF-8 text, or unset it")
                .into())
        }
        _ => Ok(()),
    }
}

/// Where settings files are looked for. The first has precedence.
fn settings_files() -> impl Iterator<Item = PathBuf> {
    user_file().into_iter().chain([system_file()])
}

/// The system's settings file.
pub(super) fn system_file() -> PathBuf {
    let named = env::var_os(SYSTEM_SETTINGS).filter(|path| !path.is_empty());
    named.map_or_else(|| SYSTEM_FILE.into(), PathBuf::from)
}

/// The user's settings file; `None` if the user has no home directory.
pub(super) fn user_file() -> Option<PathBuf> {
    let dirs = etcetera::choose_base_strategy().ok()?;
    Some(dirs.config_dir().join(USER_FILE))
}

fn read(path: &Path) -> Result<Option<File>> {
    let failed = || format!("failed to read the settings file {}", path.display());
    let (file, metadata) = match disk::open(path) {
        Ok(opened) => opened,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) if Refused::of(&error).is_some() => {
            return Err(Failure::new(format!(
                "refusing to read the settings file {}: {error}",
                path.display()
            ))
            .hint("move it away; to write a settings file, run: stacklift config init")
            .into());
        }
        Err(error) => {
            return Err(Failure::new(failed())
                .source(error)
                .hint("it must be a UTF-8 text file that you can read")
                .into());
        }
    };
    if !disk::is_ours(&metadata) || metadata.mode() & 0o022 != 0 {
        return Err(Failure::new(format!(
            "refusing to read the settings file {}: it must be a file that is owned by you or root and not writable by others",
            path.display()
        ))
        .hint(format!("check its owner, then run: chmod go-w {}", path.display()))
        .into());
    }
    if metadata.len() > LONGEST_FILE {
        return Err(Failure::new(format!(
            "refusing to read the settings file {}: it is larger than {} KiB",
            path.display(),
            LONGEST_FILE / 1024
        ))
        .hint(valid_keys())
        .into());
    }
    let text = io::read_to_string(file.take(LONGEST_FILE)).map_err(|error| {
        Failure::new(failed())
            .source(error)
            .hint("it must be a UTF-8 text file that you can read")
    })?;
    parse(path, &text).map(Some).map_err(Into::into)
}

/// Parses a settings file. The error does not quote the line, which may contain a misplaced API key (C56).
fn parse(path: &Path, text: &str) -> Result<File, Failure> {
    let file = toml::from_str(text).map(|file| File {
        lines: lines_of_keys(text),
        ..file
    });
    file.map_err(|error| {
        let (reason, place, hint) = match unknown_key(text) {
            Some((key, place)) => (
                format!("unknown key `{key}`"),
                Some(place),
                match similar_key(&key) {
                    Some(similar) => format!("did you mean `{similar}`? {}", valid_keys()),
                    None => valid_keys(),
                },
            ),
            None => (
                error.message().to_owned(),
                error.span(),
                format!(
                    "expected lines such as: {} = \"{}\"",
                    options::TIMEOUT.key,
                    options::TIMEOUT.default
                ),
            ),
        };
        let line = place.map_or(String::new(), |place| {
            format!("line {}: ", line_of(text, &place))
        });
        Failure::new(format!(
            "cannot parse the settings file {}: {line}{reason}",
            path.display()
        ))
        .hint(hint)
    })
}

/// The line of a place in a text, from 1.
fn line_of(text: &str, place: &Range<usize>) -> usize {
    let before = text.get(..place.start).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// The line of each key, if the text is TOML.
fn lines_of_keys(text: &str) -> BTreeMap<String, usize> {
    let Ok(table) = DeTable::parse(text) else {
        return BTreeMap::new();
    };
    let keys = table.get_ref().keys();
    keys.map(|key| (key.get_ref().to_string(), line_of(text, &key.span())))
        .collect()
}

/// The first key that is not a setting, and its place, if the text is TOML.
fn unknown_key(text: &str) -> Option<(String, Range<usize>)> {
    let table = DeTable::parse(text).ok()?;
    let known = |key: &str| options::ALL.iter().any(|setting| setting.key == key);
    table
        .get_ref()
        .keys()
        .filter(|key| !known(key.get_ref()))
        .map(|key| (key.get_ref().to_string(), key.span()))
        .min_by_key(|(_, place)| place.start)
}

fn similar_key(key: &str) -> Option<&'static str> {
    options::ALL
        .iter()
        .map(|setting| {
            let changes = strsim::damerau_levenshtein(&key.to_lowercase(), setting.key);
            (changes, setting.key)
        })
        .filter(|(changes, key)| changes * CHARACTERS_PER_TYPO <= key.len())
        .min()
        .map(|(_, key)| key)
}

fn valid_keys() -> String {
    let keys = options::ALL.map(|setting| setting.key).join(", ");
    format!("valid keys: {keys}")
}

/// The directory for snapshots: `STACKLIFT_STATE_DIR`, else `/var/lib/stacklift` for root and the user's state
/// directory otherwise.
pub(super) fn state_folder() -> Result<PathBuf> {
    if let Some(folder) = given_state_folder()? {
        return Ok(folder);
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/stacklift"));
    }
    let dirs = etcetera::choose_base_strategy().ok();
    let state = dirs.and_then(|dirs| dirs.state_dir());
    Ok(state
        .ok_or_else(|| {
            Failure::new("cannot find a directory for snapshots: HOME is not set")
                .hint("set STACKLIFT_STATE_DIR to a directory")
        })?
        .join("stacklift"))
}

/// `STACKLIFT_STATE_DIR`, absolute, if it is set.
pub(super) fn given_state_folder() -> Result<Option<PathBuf>> {
    let given = env::var_os(STATE_DIR).filter(|folder| !folder.is_empty());
    given
        .map(|folder| std::path::absolute(folder).context("invalid STACKLIFT_STATE_DIR"))
        .transpose()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn flag_before_environment_before_file_before_default() {
        let file = |endpoint: i64| File {
            endpoint: Some(endpoint.into()),
            ..File::default()
        };
        let files = [("user".into(), file(4)), ("system".into(), file(5))];
        let flags = Common {
            endpoint: Some(Endpoint::Id(2)),
            ..Common::default()
        };
        let env = |name: &str| (name == "STACKLIFT_ENDPOINT").then(|| "3".to_owned());
        let none = |_: &str| None;
        let endpoint = |flags: &Common, env: &dyn Fn(&str) -> Option<String>, files: &[_]| {
            Settings::from_sources(flags, env, files)
                .expect("settings")
                .endpoint
        };
        let id = Endpoint::Id;
        assert_eq!(endpoint(&flags, &env, &files), id(2));
        assert_eq!(endpoint(&Common::default(), &env, &files), id(3));
        assert_eq!(endpoint(&Common::default(), &none, &files), id(4));
        assert_eq!(endpoint(&Common::default(), &none, &files[1..]), id(5));
        assert_eq!(endpoint(&Common::default(), &none, &[]), id(1));
    }

    #[test]
    fn an_endpoint_in_a_file_is_a_number_or_auto() {
        for (value, endpoint) in [
            ("3", Endpoint::Id(3)),
            ("\"3\"", Endpoint::Id(3)),
            ("\"auto\"", Endpoint::Auto),
        ] {
            let settings = of_file(&format!("endpoint = {value}\n")).expect(value);
            assert_eq!(settings.endpoint, endpoint, "{value}");
        }
        for value in ["\"secret\"", "true", "1.5", "[1]"] {
            let error = of_file(&format!("endpoint = {value}\n")).expect_err(value);
            assert_eq!(
                error.to_string(),
                "invalid endpoint in stacklift.toml: expected a number or `auto`"
            );
        }
    }

    /// The settings of a file with this text, and the defaults.
    fn of_file(text: &str) -> Result<Settings> {
        let path = PathBuf::from(USER_FILE);
        let file = parse(&path, text)?;
        Settings::from_sources(&Common::default(), &|_| None, &[(path, file)])
    }

    #[test]
    fn an_empty_variable_is_unset() {
        let env = |_: &str| Some(String::new());
        let settings = Settings::from_sources(&Common::default(), &env, &[]).expect("settings");
        assert_eq!(settings.endpoint, Endpoint::Id(1));
    }

    #[test]
    fn a_file_can_hold_every_setting() {
        for setting in options::ALL {
            let value = match setting.key {
                "endpoint" => setting.default.to_owned(),
                _ => format!("{:?}", setting.default),
            };
            of_file(&format!("{} = {value}\n", setting.key)).expect(setting.key);
        }
    }

    #[test]
    fn an_error_of_a_file_names_the_line_and_a_similar_key_and_no_value() {
        for (text, message, hint) in [
            (
                "tool = \"docker\"\nbase-ulr = \"secret\"\n",
                "cannot parse the settings file stacklift.toml: line 2: unknown key `base-ulr`",
                "did you mean `base-url`? valid keys: base-url, ",
            ),
            (
                "url = \"secret\"\n",
                "cannot parse the settings file stacklift.toml: line 1: unknown key `url`",
                "valid keys: base-url, ",
            ),
            (
                "log = \"secret\"\n",
                "cannot parse the settings file stacklift.toml: line 1: unknown key `log`",
                "valid keys: base-url, ",
            ),
            (
                "Timeout = \"secret\"\n",
                "cannot parse the settings file stacklift.toml: line 1: unknown key `Timeout`",
                "did you mean `timeout`? valid keys: base-url, ",
            ),
            (
                "api-key = \"secret\"\n",
                "cannot parse the settings file stacklift.toml: line 1: unknown key `api-key`",
                "valid keys: base-url, ",
            ),
            (
                "timeout = 20\n",
                "cannot parse the settings file stacklift.toml: line 1: invalid type: ",
                "expected lines such as: timeout = \"20m\"",
            ),
            (
                "\n\nstacks-root = /opt secret\n",
                "cannot parse the settings file stacklift.toml: line 3: ",
                "expected lines such as: timeout = \"20m\"",
            ),
        ] {
            let error = of_file(text).expect_err(text);
            let shown = format!("{error:#}");
            assert!(shown.starts_with(message), "{shown}");
            assert!(
                !shown.contains("secret") && !shown.contains('\n'),
                "{shown}"
            );
            let shown = Failure::hint_of(&error).expect("a hint");
            assert!(shown.starts_with(hint), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_settings_or_an_error(
            text in proptest::collection::vec(
                prop_oneof![
                    "(base-url|stacks-root|endpoint|tool|engine|tls|header-file|timeout|other) = ",
                    "(\"(https://[a-z@:/#?0-9]{0,12}|auto|off|20m|[ -~]{0,8})\"|-?[0-9]{1,20}|true)\n",
                    "(?s).{0,8}",
                ],
                0..8,
            ).prop_map(|parts| parts.concat())
        ) {
            let shown = |text| match of_file(text) {
                Ok(settings) => format!("{settings:?}"),
                Err(error) => format!("{error:#}"),
            };
            prop_assert_eq!(shown(&text), shown(&text));
        }
    }
}
