//! `stacklift config init`: writes a settings file. Contacts neither Portainer nor the engine.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    io::{self, IsTerminal as _, stderr, stdin},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use secrecy::ExposeSecret as _;

use super::template::settings_file;
use crate::{
    cli::{
        Common, Console,
        arguments::InitArguments,
        options,
        settings::{system_file, user_file},
    },
    disk::{self, Dir, Existing, Rights},
    failure::Failure,
};

/// Everybody may read the settings. They contain no secret.
const MODE_OF_SETTINGS: u32 = 0o644;
const MODE_OF_KEY: u32 = 0o600;

pub(super) fn run(arguments: InitArguments, common: &Common, console: &Console) -> Result<()> {
    let mut values = given(common);
    if arguments.print {
        console.line(&settings_file(&values));
        return Ok(());
    }
    let is_root = rustix::process::geteuid().is_root();
    let path = target(arguments, is_root)?;
    // A package installs a file that sets nothing.
    let sets_nothing = disk::open(&path)
        .and_then(|(file, _)| io::read_to_string(file))
        .is_ok_and(|text| text == settings_file(&BTreeMap::new()));
    let existing = if arguments.force || sets_nothing {
        Existing::Replace
    } else {
        Existing::Keep
    };
    if existing == Existing::Keep && fs::symlink_metadata(&path).is_ok() {
        return Err(already_exists(&path));
    }
    if stdin().is_terminal() && stderr().is_terminal() {
        ask(&mut values, console)?;
    }
    write(&path, &settings_file(&values), MODE_OF_SETTINGS, existing)?;
    console.step("written", &path.display().to_string());
    console.hint("to check the settings, run: stacklift doctor");
    Ok(())
}

/// The settings that flags give. Paths are absolute, because the file is read in any directory.
fn given(common: &Common) -> BTreeMap<&'static str, String> {
    let given = options::ALL.iter().filter_map(|setting| {
        let value = setting.anywhere(common.value(setting.key)?);
        Some((setting.key, value.into_string().ok()?))
    });
    given
        .filter(|(_, value)| !options::is_api_key(value))
        .collect()
}

/// The file to write: that of the system for root, otherwise the user's.
fn target(arguments: InitArguments, is_root: bool) -> Result<PathBuf> {
    if arguments.system || (is_root && !arguments.user) {
        return Ok(system_file());
    }
    user_file().ok_or_else(|| {
        Failure::new("cannot find the directory of your settings: HOME is not set")
            .hint("set HOME, or use --system as root")
            .into()
    })
}

fn already_exists(path: &Path) -> anyhow::Error {
    Failure::new(format!("{} already exists", path.display()))
        .hint("edit it, or replace it with --force; stacklift config init --print shows every setting")
        .into()
}

/// Asks for the address of Portainer and for the key file, unless flags give them.
fn ask(values: &mut BTreeMap<&'static str, String>, console: &Console) -> Result<()> {
    let (base_url, key_file) = (options::BASE_URL, options::API_KEY_FILE);
    if !values.contains_key(base_url.key) {
        let question = format!("Address of Portainer [{}]:", base_url.default);
        let answer = answer(&question, console, base_url.check)?;
        values.extend((!answer.is_empty()).then_some((base_url.key, answer)));
    }
    console.hint(
        "create an API key in Portainer under My account > Access tokens, as an administrator",
    );
    if !values.contains_key(key_file.key) {
        let question = "File with the API key [none: use STACKMGR_API_KEY]:";
        let answer = answer(question, console, |_| Ok(()))?;
        if !answer.is_empty() {
            let path = std::path::absolute(in_home(&answer))?;
            values.insert(key_file.key, path.display().to_string());
        }
    }
    match values.get(key_file.key) {
        Some(path) => create_key_file(Path::new(path), console),
        None => Ok(()),
    }
}

/// Asks until the answer is empty or valid.
fn answer(
    question: &str,
    console: &Console,
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<String> {
    loop {
        let answer = console.ask_text(question).ok_or_else(canceled)?;
        match check(&answer) {
            Err(reason) if !answer.is_empty() => console.warning(&reason),
            _ => return Ok(answer),
        }
    }
}

fn canceled() -> anyhow::Error {
    Failure::new("canceled: no settings file was written")
        .hint("run the command again, or pass the settings as flags")
        .into()
}

/// Replaces `~/` at the start, as a shell does.
fn in_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// Asks for the key and writes the file, if it does not exist.
fn create_key_file(path: &Path, console: &Console) -> Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    let question = "API key (input is hidden; leave empty to create the file yourself):";
    let key = console.ask_secret(question)?.ok_or_else(canceled)?;
    if key.expose_secret().is_empty() {
        console.hint(&format!(
            "write the API key to the first line of {}, then run: chmod 600 {}",
            path.display(),
            path.display()
        ));
        return Ok(());
    }
    console.hide(&key);
    let text = format!("{}\n", key.expose_secret());
    write(path, &text, MODE_OF_KEY, Existing::Keep)?;
    console.step("written", &format!("{} (mode 0600)", path.display()));
    Ok(())
}

/// Writes a file atomically with at most this mode, and syncs it. Creates its directory.
fn write(path: &Path, text: &str, mode: u32, existing: Existing) -> Result<()> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    Dir::create(path.parent().unwrap_or(Path::new("/")))
        .and_then(|dir| {
            dir.write(name, text.as_bytes(), Rights::AtMost(mode), existing)?;
            dir.sync()
        })
        .with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_writes_the_settings_of_the_system() {
        let none = InitArguments {
            system: false,
            user: false,
            force: false,
            print: false,
        };
        let system = InitArguments {
            system: true,
            ..none
        };
        let user = InitArguments { user: true, ..none };
        let is_system = |arguments, is_root| {
            let path = target(arguments, is_root).expect("a home");
            path == Path::new("/etc/stacklift.toml")
        };
        assert!(is_system(none, true) && is_system(system, false));
        assert!(!is_system(none, false) && !is_system(user, true));
    }
}
