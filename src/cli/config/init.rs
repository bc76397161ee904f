//! `stacklift config init`: asks for the settings that a host needs, and writes them into a settings file.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsStr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use secrecy::{ExposeSecret as _, SecretString};

use super::template::{edited, settings_file};
use crate::{
    cli::{
        Cli, Common, Console,
        arguments::InitArguments,
        confirm::is_on_terminal,
        options, peers,
        settings::{API_KEY, Settings, api_key_is_given, settings_text, system_file, user_file},
    },
    disk::{self, Dir, Existing, Rights},
    failure::Failure,
    model::{Container, is_portainers},
    portainer::is_rejected_key,
    text::{counted, said},
};

/// Everybody may read the settings. They contain no secret.
const MODE_OF_SETTINGS: u32 = 0o644;
const MODE_OF_KEY: u32 = 0o600;

/// How long the engine may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The settings to write, by their keys.
type Values = BTreeMap<&'static str, String>;

pub(super) fn run(arguments: InitArguments, cli: Cli) -> Result<()> {
    let Cli { common, console } = cli;
    let mut values = given(common);
    if arguments.print {
        let text = edited(&system_file(), &settings_file(), &values)?;
        console.line(&text);
        return Ok(());
    }
    let is_root = rustix::process::geteuid().is_root();
    let path = target(arguments, is_root)?;
    check(&path)?;
    let before = settings_text(&path)?;
    let all = before.iter().flat_map(|(_, now)| now);
    let now: Values = all.map(|(key, (_, now))| (*key, now.clone())).collect();
    let key = ask(&mut values, &now, &path, cli)?;
    let text = before.map_or_else(settings_file, |(text, _)| text);
    let text = edited(&path, &text, &values)?;
    let mut written = path.display().to_string();
    // A new key must not go to an old address: both files are written before the first gets its name.
    let mut files = vec![(path, text, MODE_OF_SETTINGS)];
    if let Some((file, key)) = &key {
        written = format!("{written} and {} (0600)", file.display());
        let text = format!("{}\n", key.expose_secret());
        files.push((file.clone(), text, MODE_OF_KEY));
    }
    write(&files)?;
    console.line(&format!("written {written}"));
    let key_file = options::API_KEY_FILE.key;
    let has_key = values.contains_key(key_file) || now.contains_key(key_file);
    if !has_key && !api_key_is_given() {
        console.line(&format!("no API key yet: run it again, or set {API_KEY}"));
    }
    let set = |(key, value): (&&str, &String)| variable(key, value);
    let names: Vec<&str> = values.iter().filter_map(set).collect();
    if let Some(set) = said(&names, "is set") {
        console.warning(&format!("{set}: variables take precedence over this file"));
    }
    console.line("Next: stacklift doctor");
    Ok(())
}

/// The variable that is set to something else than a setting, and takes precedence over it.
fn variable(key: &str, value: &str) -> Option<&'static str> {
    if key == options::API_KEY_FILE.key && api_key_is_given() {
        return Some(API_KEY);
    }
    let setting = options::ALL.iter().find(|setting| setting.key == key)?;
    let set = env::var_os(setting.variable)?;
    (!set.is_empty() && set != *value).then_some(setting.variable)
}

/// The settings that flags give. Paths are absolute, because the file is read in any directory.
fn given(common: &Common) -> Values {
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

/// Asks for what no flag gives: the address, the API key and the stacks root. `now` are the settings that the file at
/// `path` has. Returns the key and its file.
fn ask(
    values: &mut Values,
    now: &Values,
    path: &Path,
    cli: Cli,
) -> Result<Option<(PathBuf, SecretString)>> {
    let console = cli.console;
    let asked = [
        options::BASE_URL,
        options::API_KEY_FILE,
        options::STACKS_ROOT,
    ];
    let missing = asked
        .iter()
        .filter(|setting| !values.contains_key(setting.key) && !now.contains_key(setting.key));
    if !is_on_terminal() {
        let missing: Vec<String> = missing
            .map(|setting| format!("--{}", setting.key))
            .collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let hint = format!("pass {}", missing.join(", "));
        let failure = Failure::new("cannot ask for the settings without a terminal");
        return Err(failure.hint(hint).into());
    }
    let [base_url, key_file, stacks_root] = asked;
    if !values.contains_key(base_url.key) {
        let default = now
            .get(base_url.key)
            .map_or(base_url.default, String::as_str);
        let question = format!("Portainer's address [{default}]:");
        let check = |answer: &str| (base_url.check)(&with_scheme(answer));
        let answer = answer(&question, console, check)?;
        if !answer.is_empty() {
            let url = with_scheme(&answer);
            if url != answer {
                console.line(&format!("assumed {url}"));
            }
            values.insert(base_url.key, url);
        }
    }
    let mut key = None;
    if !values.contains_key(key_file.key) {
        key = ask_key(now.get(key_file.key), values, path, cli)?;
        let file = key.iter().map(|(file, _)| file.display().to_string());
        values.extend(file.map(|file| (key_file.key, file)));
    }
    if !values.contains_key(stacks_root.key) {
        let root = ask_root(now.get(stacks_root.key), cli)?;
        values.insert(stacks_root.key, root);
    }
    Ok(key)
}

/// The URL, with `https://` if it has no scheme.
fn with_scheme(url: &str) -> String {
    let start = if url.contains("://") { "" } else { "https://" };
    format!("{start}{url}")
}

/// Asks Portainer once, at the address that was given. Fails if that does not lead to it, or if it rejects the key.
fn try_key(key: SecretString, values: &Values, Cli { common, console }: Cli) -> Result<()> {
    let mut common = common.clone();
    let given = values.get_key_value(options::BASE_URL.key);
    let given = given.map(|(&flag, url)| (flag.to_owned(), url.into()));
    common.typed.extend(given);
    console.waiting("asking Portainer");
    let asked = Settings::load(&common).and_then(|mut settings| {
        settings.timeout = settings.timeout.min(LIMIT);
        peers::warn_about_tls(&settings, console);
        let portainer = peers::portainer(&settings, key, true, console)?;
        portainer.reader().environments()
    });
    console.done();
    asked.map(drop)
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
    Failure::new("canceled: nothing was written")
        .hint("run the command again, or pass the settings as flags")
        .into()
}

/// Asks for the API key until Portainer does not reject it. Returns it with the file to write it to: the one of the settings,
/// otherwise one next to them. `None` if the answer is empty.
fn ask_key(
    now: Option<&String>,
    values: &Values,
    settings: &Path,
    cli: Cli,
) -> Result<Option<(PathBuf, SecretString)>> {
    let console = cli.console;
    let file = now.map_or_else(|| settings.with_extension("key"), PathBuf::from);
    check(&file)?;
    let what = match now {
        Some(file) => &format!("empty keeps {file}"),
        None => "My account → Access tokens",
    };
    loop {
        let key = console.ask_secret(&format!("API key (hidden; {what}):"))?;
        let key = key.ok_or_else(canceled)?;
        console.hide(&key);
        if key.expose_secret().is_empty() {
            return Ok(None);
        }
        let tried = try_key(key.clone(), values, cli);
        if let Err(error) = &tried {
            console.warning(&format!("{error:#}"));
        }
        if !tried.is_err_and(|error| is_rejected_key(&error)) {
            return Ok(Some((file, key)));
        }
    }
}

/// Asks for the stacks root. The default is the one of the settings, otherwise where most projects run from.
fn ask_root(now: Option<&String>, cli: Cli) -> Result<String> {
    let default = options::STACKS_ROOT.default.to_owned();
    let (root, why) = match (now, most_projects(cli)) {
        (Some(root), _) => (root.clone(), String::new()),
        (None, Some((root, projects))) => {
            let run = if projects == 1 { "runs" } else { "run" };
            let projects = counted(projects, "project");
            (root, format!(": {projects} {run} from there"))
        }
        (None, None) => (default, String::new()),
    };
    let question = format!("Directory of your stacks [{root}{why}]:");
    let is_dir = |answer: &str| match Path::new(answer) {
        path if !path.is_absolute() => Err("expected an absolute path".to_owned()),
        path if disk::is_dir(path) => Ok(()),
        path if path.exists() => Err(format!("{answer} is not a directory")),
        _ => Err(format!("{answer} does not exist")),
    };
    let answer = answer(&question, cli.console, is_dir)?;
    Ok(if answer.is_empty() { root } else { answer })
}

/// The directory in which most projects of the engine have theirs, and how many. `None` if the engine does not answer.
fn most_projects(Cli { common, console }: Cli) -> Option<(String, usize)> {
    let mut settings = Settings::load(common).ok()?;
    settings.timeout = settings.timeout.min(LIMIT);
    let tool = &settings.location.tool;
    let containers = peers::engine(&settings, console).list_all().ok()?;
    let mut projects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (parent, project) in containers
        .iter()
        .filter_map(|container| started(container, tool))
    {
        projects.entry(parent).or_default().insert(project);
    }
    let counts = projects.into_iter().map(|(dir, all)| (dir, all.len()));
    let (dir, count) = counts.max_by_key(|(_, count)| *count)?;
    Some((dir.to_owned(), count))
}

/// The parent of the directory that a container was started in by hand, and its project.
fn started<'c>(container: &'c Container, tool: &str) -> Option<(&'c str, &'c str)> {
    let dir = container.compose_label(tool, "project.working_dir")?;
    let parent = Path::new(dir).parent()?.to_str()?;
    let is_here = !is_portainers(dir) && disk::is_dir(Path::new(dir));
    Some((parent, container.compose_label(tool, "project")?)).filter(|_| is_here)
}

/// Fails if a file of this path cannot be written, or if another user could replace it (B32).
fn check(path: &Path) -> Result<()> {
    let (dir, name) = parts(path);
    let found = disk::check_path(dir).and_then(|()| match Dir::open(dir) {
        Err(error) if disk::is_absent(&error) => Ok(()),
        dir => dir?.has_file(name).map(drop),
    });
    found.map_err(|error| {
        Failure::new(format!("refusing to write {}", path.display()))
            .source(error)
            .hint("it must be a regular file or not exist, and no other user may be able to replace it: correct that, then run the command again")
            .into()
    })
}

/// Writes files with at most these modes and those that they have, and syncs them. Each is complete before the first gets its
/// name. Creates their directories.
fn write(files: &[(PathBuf, String, u32)]) -> Result<()> {
    let failed = |path: &Path| format!("failed to write {}", path.display());
    let mut dirs = Vec::new();
    for (path, ..) in files {
        check(path)?;
        dirs.push(Dir::create(parts(path).0).with_context(|| failed(path))?);
    }
    let mut prepared = Vec::new();
    for ((path, text, mode), dir) in files.iter().zip(&dirs) {
        let now = disk::metadata(path).map_or(*mode, |found| found.mode());
        let rights = Rights::AtMost(mode & now);
        let file = dir.prepare(parts(path).1, text.as_bytes(), rights, Existing::Replace);
        prepared.push((path, dir, file.with_context(|| failed(path))?));
    }
    for (path, dir, file) in prepared {
        let finished = file.finish().and_then(|()| dir.sync());
        finished.with_context(|| failed(path))?;
    }
    Ok(())
}

/// The directory and the name of a file.
fn parts(path: &Path) -> (&Path, &str) {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    (path.parent().unwrap_or(Path::new("/")), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_writes_the_settings_of_the_system() {
        let none = InitArguments {
            system: false,
            user: false,
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
