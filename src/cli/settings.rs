//! Loads the settings. Precedence: flags, environment, user settings, system settings, defaults.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use etcetera::BaseStrategy;

use super::{
    arguments::Common,
    options::{self, Setting},
};
use crate::{
    disk, engine,
    failure::Failure,
    finding::Finding,
    portainer::{BaseUrl, Tls},
    process::own_variables,
    run::RestoreCommand,
    stack::Location,
    text::{listed, near, plural},
};

mod file;
mod git;
mod key;
mod source;

pub(super) use file::{parse as parse_settings, read_secret, settings_text};
pub(super) use git::{git_password, repository};
pub(super) use key::{KeySource, VARIABLE as API_KEY, is_given as api_key_is_given};
pub(super) use source::{FileEntry, SettingEntry, Source};

use file::Values;

/// The variable that names the directory for snapshots.
pub(super) const STATE_DIR: &str = "STACKLIFT_STATE_DIR";

/// The directory for snapshots of root.
const ROOTS_STATE: &str = "/var/lib/stacklift";

/// Set in a container image: the directory for snapshots must be in a mount, because the container does not last.
const STATE_MOUNT: &str = "STACKLIFT_STATE_MOUNT";

/// The variable that names the system's settings file.
const SYSTEM_SETTINGS: &str = "STACKLIFT_SYSTEM_SETTINGS";
/// The variables besides those of [`options::ALL`].
const OTHER_VARIABLES: [&str; 6] = [
    API_KEY,
    STATE_DIR,
    STATE_MOUNT,
    SYSTEM_SETTINGS,
    git::USER,
    git::PASSWORD,
];
const SYSTEM_FILE: &str = "/etc/stacklift.toml";
const USER_FILE: &str = "stacklift.toml";

/// The settings of a run.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub base_url: BaseUrl,
    /// The file with the API key, if one is named. `STACKMGR_API_KEY` takes precedence over it (C02).
    pub api_key_file: Option<PathBuf>,
    pub location: Location,
    /// The ID of the environment. `None` for `auto`, but never where Portainer is used.
    pub endpoint: Option<i64>,
    pub engine: engine::Choice,
    pub tls: Tls,
    pub header_file: Option<PathBuf>,
    pub timeout: Duration,
    /// The directory for snapshots, if there is one.
    pub state: Option<PathBuf>,
    /// The flags that were typed, for the commands that are printed (B14).
    pub typed: RestoreCommand,
    /// The settings that are not the default, by their keys, as they can be given in any directory (B14).
    pub changed: Vec<(&'static str, OsString)>,
}

/// The settings and where each comes from, also if some are invalid.
pub(super) struct Sourced {
    /// The settings, or the first error.
    pub settings: Result<Settings>,
    /// Every setting, in the order of [`options::ALL`].
    pub entries: Vec<SettingEntry>,
    /// The files that were looked for.
    pub files: Vec<FileEntry>,
}

/// Reads a variable of the environment.
type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Sourced {
    /// Merges all sources.
    pub(super) fn load(flags: &Common) -> Self {
        let (mut contents, mut files) = (Vec::new(), Vec::new());
        for path in user_file().into_iter().chain([system_file()]) {
            let read = settings_text(&path);
            files.push(FileEntry {
                path: path.display().to_string(),
                exists: !matches!(read, Ok(None)),
                error: read.as_ref().err().map(Finding::of_error),
            });
            contents.extend(read.ok().flatten().map(|(_, values)| (path, values)));
        }
        let entries = merge(flags, &|name| env::var_os(name), &contents);
        let of_file = files.iter().find_map(|file| file.error.as_ref());
        Self {
            settings: of_file.map_or_else(
                || Settings::of(flags, &entries),
                |problem| Err(Failure::from(problem).into()),
            ),
            entries,
            files,
        }
    }
}

/// Every setting from its first source. The value of an invalid one is left out: it may be a misplaced API key (C56).
fn merge(flags: &Common, variables: Variables, files: &[(PathBuf, Values)]) -> Vec<SettingEntry> {
    let entry = |setting: &Setting| {
        let (name, variable) = (setting.key, setting.variable);
        // An empty variable is unset.
        let given = variables(variable).filter(|text| !text.is_empty());
        let mut files = files.iter();
        let found = files.find_map(|(path, values)| Some((path, values.get(name)?)));
        let (source, text) = match (flags.value(name), given, found) {
            (Some(text), ..) => (Source::flag(name), Ok(text.to_owned())),
            (_, Some(given), _) => (Source::variable(variable), utf8(variable, given)),
            (_, _, Some((path, (line, text)))) => (Source::file(path, *line), Ok(text.clone())),
            _ => (Source::DEFAULT, Ok(setting.default.to_owned())),
        };
        let value = text.and_then(|text| {
            (setting.check)(&text).map_err(|reason| {
                let hint = format!("see --{name} in `stacklift --help` for valid values");
                Failure::new(format!("invalid {}: {reason}", source.of(name))).hint(hint)
            })?;
            Ok(Some(text).filter(|text| !text.is_empty()))
        });
        let error = value.as_ref().err().map(Finding::of_error);
        SettingEntry {
            name,
            value: value.ok().flatten(),
            source,
            error,
        }
    };
    options::ALL.iter().map(entry).collect()
}

impl Settings {
    /// Merges all sources.
    pub(super) fn load(flags: &Common) -> Result<Self> {
        Sourced::load(flags).settings
    }

    /// The flags, the stacks root of the settings, and the defaults, for the rehearsal.
    pub(super) fn of_rehearsal(flags: &Common) -> Result<Self> {
        let mut settings = Self::of(flags, &merge(flags, &|_| None, &[]))?;
        if let Ok(own) = Self::load(flags) {
            settings.location.root = own.location.root;
        }
        Ok(settings)
    }

    fn of(flags: &Common, entries: &[SettingEntry]) -> Result<Self> {
        if let Some(problem) = entries.iter().find_map(|entry| entry.error.as_ref()) {
            return Err(Failure::from(problem).into());
        }
        let given = |setting: &Setting| {
            let entry = entries.iter().find(|entry| entry.name == setting.key);
            entry.and_then(|entry| entry.value.as_deref())
        };
        let text = |setting: &Setting| given(setting).unwrap_or_default().to_owned();
        let all = options::ALL.iter().zip(entries);
        // What the system's file says holds in every directory and shell.
        let all = all.filter(|(_, entry)| !entry.source.is_file(SYSTEM_FILE));
        let changed = all.filter_map(|(setting, entry)| {
            let value = entry.value.as_deref();
            let value = value.filter(|value| *value != setting.default)?;
            Some((setting.key, setting.anywhere(value)))
        });
        let invalid = anyhow::Error::msg::<String>;
        Ok(Self {
            base_url: text(&options::BASE_URL).parse().map_err(invalid)?,
            api_key_file: given(&options::API_KEY_FILE).map(PathBuf::from),
            location: Location {
                root: text(&options::STACKS_ROOT).into(),
                dir: flags.dir.clone(),
                file: flags.file.clone(),
                tool: text(&options::TOOL),
            },
            endpoint: options::environment(&text(&options::ENDPOINT)).map_err(invalid)?,
            engine: text(&options::ENGINE).parse().map_err(invalid)?,
            tls: text(&options::TLS).parse().map_err(invalid)?,
            header_file: given(&options::HEADER_FILE).map(PathBuf::from),
            timeout: options::duration(&text(&options::TIMEOUT)).map_err(invalid)?,
            state: state_folder().ok(),
            typed: flags.repeatable(),
            changed: changed.collect(),
        })
    }
}

/// The name of a variable without its prefix.
fn rest(name: &str) -> &str {
    name.split_once('_').map_or("", |(_, rest)| rest)
}

/// A warning that names the variables that may be meant as those of this program. `None` if there are none.
pub(super) fn unknown_variables() -> Option<String> {
    let known = options::ALL.map(|setting| setting.variable);
    let known = [&known[..], &OTHER_VARIABLES].concat();
    let names = own_variables().map(|name| name.to_string_lossy().into_owned());
    let unknown: BTreeSet<String> = names.filter(|name| !known.contains(&&**name)).collect();
    // One prefix is as good as the other.
    let with_rest = |wanted: &str| known.iter().copied().find(|name| rest(name) == wanted);
    // Others are somebody else's.
    let told = unknown.iter().filter_map(|name| {
        let own = rest(name);
        let near = || with_rest(near(own, known.iter().copied().map(rest)).first()?);
        let meant = with_rest(own).or_else(near)?;
        Some(format!("{name} (did you mean {meant}?)"))
    });
    let told: Vec<String> = told.collect();
    let noun = plural(told.len(), "variable");
    (!told.is_empty()).then(|| format!("ignored the unknown {noun} {}", listed(&told)))
}

/// The value of a variable as text.
fn utf8(variable: &str, value: OsString) -> Result<String> {
    value.into_string().map_err(|_| {
        Failure::new(format!("{variable} is not valid UTF-8"))
            .hint("set it to valid UTF-8, or unset it")
            .into()
    })
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

/// The directory for snapshots: `STACKLIFT_STATE_DIR`, else `/var/lib/stacklift` for root and the user's state
/// directory otherwise. Fails if it would be lost with the container.
pub(super) fn state_folder() -> Result<PathBuf> {
    let folder = given_state_folder()?.map_or_else(default_state_folder, Ok)?;
    if env::var_os(STATE_MOUNT).is_some() && !disk::is_in_mount(&folder) {
        let shown = folder.display();
        let what =
            format!("the directory for snapshots, {shown}, would be lost with this container");
        let hint = format!("mount a directory of the host there: -v {shown}:{shown}");
        return Err(Failure::new(what).hint(hint).into());
    }
    Ok(folder)
}

/// The other directories of this host that may have snapshots, with the name of their user if it is another one.
pub(super) fn other_state_folders() -> Vec<(Option<String>, PathBuf)> {
    let own = rustix::process::geteuid();
    let users = disk::open(Path::new("/etc/passwd")).ok();
    let users = users.and_then(|(file, _)| io::read_to_string(file).ok());
    let mut folders: Vec<_> = users_of(&users.unwrap_or_default())
        .filter(|(_, id, _)| *id != own.as_raw())
        .map(|(user, id, home)| {
            let folder = match id {
                0 => PathBuf::from(ROOTS_STATE),
                _ => Path::new(home).join(".local/state/stacklift"),
            };
            (Some(user.to_owned()), folder)
        })
        .collect();
    folders.extend(default_state_folder().map(|own| (None, own)));
    let used = state_folder().unwrap_or_default();
    folders.retain(|(_, folder)| *folder != used);
    folders
}

/// The users in the text of `/etc/passwd`: name, ID and home.
fn users_of(passwd: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let id = fields.nth(1)?.parse().ok()?;
        Some((name, id, fields.nth(2)?))
    })
}

fn default_state_folder() -> Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from(ROOTS_STATE));
    }
    let dirs = etcetera::choose_base_strategy().ok();
    let state = dirs.and_then(|dirs| dirs.state_dir());
    let state = state.ok_or_else(|| {
        Failure::new("cannot find a directory for snapshots: HOME is not set")
            .hint("set STACKLIFT_STATE_DIR to a directory")
    })?;
    Ok(state.join("stacklift"))
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
    fn b40_users_are_read_from_the_file_of_the_system() {
        let text = "root:x:0:0:root:/root:/bin/bash\nx\nali:x:1000:1000:,,,:/home/ali:/bin/sh\n";
        let all: Vec<_> = users_of(text).collect();
        assert_eq!(all, [("root", 0, "/root"), ("ali", 1000, "/home/ali")]);
    }

    #[test]
    fn b14_a_setting_of_the_system_need_not_be_repeated() {
        let changed = |path: &str| {
            let values = Values::from([("stacks-root", (1, "/srv/stacks".to_owned()))]);
            let flags = Common::default();
            let entries = merge(&flags, &|_| None, &[(path.into(), values)]);
            Settings::of(&flags, &entries).expect("settings").changed
        };
        assert_eq!(changed(SYSTEM_FILE), []);
        assert_eq!(changed(USER_FILE), [("stacks-root", "/srv/stacks".into())]);
    }

    #[test]
    fn an_endpoint_in_a_file_is_a_number_or_auto() {
        for (value, endpoint) in [("3", Some(3)), ("\"3\"", Some(3)), ("\"auto\"", None)] {
            let settings = of_file(&format!("endpoint = {value}\n")).expect(value);
            assert_eq!(settings.endpoint, endpoint, "{value}");
        }
        let error = of_file("endpoint = \"secret\"\n").expect_err("a text");
        let expected = "invalid endpoint in stacklift.toml: expected a number or `auto`";
        assert_eq!(error.to_string(), expected);
    }

    /// The settings of a file with this text, and the defaults.
    fn of_file(text: &str) -> Result<Settings> {
        let path = PathBuf::from(USER_FILE);
        let file = file::parse(&path, text)?;
        let flags = Common::default();
        Settings::of(&flags, &merge(&flags, &|_| None, &[(path, file)]))
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
                "did you mean `api-key-file`? valid keys: base-url, ",
            ),
            (
                "timeout = 20\n",
                "cannot parse the settings file stacklift.toml: line 1: timeout must be a string in quotes",
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
