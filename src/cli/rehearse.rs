//! `stacklift rehearse [STACK]`: a migration against the embedded Portainer and engine.
//!
//! Connects to nothing outside this process and its Compose program, and writes only to a temporary directory: copies of Compose
//! files and env files, never data. A signal removes the directory.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process,
    str::FromStr,
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use tempfile::TempDir;

use super::{
    Ended,
    arguments::{Common, RehearseArguments},
    console::Console,
    diff, events,
    interrupt::INTERRUPTED,
    migrate as migrate_command, peers,
    settings::Settings,
};
use crate::{
    compose,
    engine::{self, Engine},
    failure::Failure,
    migrate::{self, Migration},
    portainer::{self, BaseUrl, Portainer},
    rewrite::faithful::env_files_needed,
    run::{Consent, Event, Peers, RestoreCommand, Setup, Stopped},
    stack::{EXAMPLES, Location, Shell, Source, Stack, StackName, stack_dir},
    text::counted,
};
use composefile::{document::Document, path, services};
use rehearsal::{Options, Rehearsal, World, seed};

/// The default example. It shows each kind of loss.
const DEFAULT: &str = "books-db";

/// The home directory of the user who starts stacks in a [`World`].
const HOME: &str = "/home/operator";

/// The world of a rehearsal, and where its stacks are on disk.
struct Stage {
    world: World,
    location: Location,
}

pub(super) fn run(
    arguments: &RehearseArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    let settings = Settings::of_rehearsal(common)?;
    let named = arguments.stack.as_deref().unwrap_or(OsStr::new(DEFAULT));
    let name = StackName::new(named)?;
    name.refuse_management_plane()?;
    // Holds every file of the rehearsal.
    let folder = folder()?;
    let code = if arguments.serve { 0 } else { INTERRUPTED };
    remove_on_signal(folder.path(), code, console)?;
    let stage = if is_own(&name, arguments, common, &settings.location) {
        of_user(&name, &settings.location, folder.path())?
    } else {
        if !arguments.serve && !EXAMPLES.contains(&name.as_str()) {
            return Err(unknown_example(&name).into());
        }
        of_examples(&settings.location, folder.path())?
    };
    let options = Options {
        era: arguments.era.into(),
        folder: Some(folder.path().to_owned()),
        ..Options::default()
    };
    let rehearsal = Rehearsal::start(stage.world, &options)?;
    for rule in &arguments.faults {
        rehearsal.faults().add(rule.clone());
    }
    if arguments.serve {
        serve(&rehearsal, &stage.location.root, &name, console)?;
        return Ok(());
    }
    let stack = Stack::find(name, &stage.location)?;
    let snapshots = folder.path().join("state");
    let ended = migrate_on(
        &rehearsal,
        &stack,
        &settings,
        arguments.force,
        &snapshots,
        console,
    );
    if common.verbose {
        show_requests(&rehearsal, console);
    }
    ended
}

/// Whether the stack is one of the user's: a flag says where it is, or `STACKLIFT_STACKS_ROOT` names a directory that
/// contains it.
fn is_own(name: &StackName, arguments: &RehearseArguments, common: &Common, at: &Location) -> bool {
    let has_directory = || {
        let is_set = Settings::stacks_root_variable().is_some();
        is_set && stack_dir(name, at).is_ok_and(|dir| dir.is_dir())
    };
    common.stacks_root.is_some()
        || common.dir.is_some()
        || (arguments.stack.is_some() && has_directory())
}

/// Removes `folder` and exits with `code` on SIGINT, SIGTERM and SIGHUP.
fn remove_on_signal(folder: &Path, code: i32, console: &Arc<Console>) -> Result<()> {
    let (folder, console) = (folder.to_owned(), Arc::clone(console));
    ctrlc::set_handler(move || {
        console.done();
        // The rehearsal may be writing a file at the same time.
        for _ in 0..100 {
            match fs::remove_dir_all(&folder) {
                Err(_) if folder.exists() => thread::sleep(Duration::from_millis(5)),
                _ => break,
            }
        }
        if folder.exists() {
            let folder = folder.display();
            console.warning(&format!("could not delete the copies in {folder}"));
        }
        console.done();
        compose::remove_folders();
        process::exit(code);
    })
    .context("failed to handle signals")
}

fn unknown_example(name: &StackName) -> anyhow::Error {
    Failure::new(format!("unknown example stack {name}"))
        .hint(format!(
            "examples: {}; for your own stacks, use --stacks-root, --dir or STACKLIFT_STACKS_ROOT",
            EXAMPLES.join(", ")
        ))
        .into()
}

/// The example stacks, started without Portainer.
fn of_examples(at: &Location, folder: &Path) -> Result<Stage> {
    let root = folder.join("stacks");
    seed::write(&root).context("failed to write the example stacks")?;
    let world = World::with_examples(&key()?, path_text(&root)?)
        .map_err(|reason| anyhow!("failed to start the example stacks: {reason}"))?;
    let location = Location { root, ..at.clone() };
    Ok(Stage { world, location })
}

/// A copy of the user's stack, started without Portainer.
fn of_user(name: &StackName, at: &Location, folder: &Path) -> Result<Stage> {
    let stack = Stack::find(name.clone(), at)?;
    let source = stack.read()?;
    let root = mirrored(folder, stack.dir().parent().unwrap_or(Path::new("/")));
    let copy = root.join(name.as_str());
    let file = stack.file().to_owned();
    let mut files = other_files(&stack, &source)?;
    files.insert(stack.compose_path(), source.compose);
    if let Some(env) = source.env {
        files.insert(stack.dir().join(".env"), env);
    }
    let mut world = World::new(&key()?);
    world.add_portainer();
    world.tool.clone_from(&at.tool);
    for (path, text) in &files {
        let to = match path.strip_prefix(stack.dir()) {
            Ok(inside) => copy.join(inside),
            Err(_) => mirrored(folder, path),
        };
        write_copy(&to, text)?;
        // A text can also name the file by its absolute path, or by `~`.
        let home = std::env::home_dir();
        let below_home =
            home.and_then(|home| Some(Path::new(HOME).join(path.strip_prefix(home).ok()?)));
        for path in [Some(&to), Some(path), below_home.as_ref()]
            .into_iter()
            .flatten()
        {
            let folder = path_text(path.parent().unwrap_or(Path::new("/")))?;
            let name = path.file_name().and_then(OsStr::to_str);
            world.add_stack(folder, [(name.unwrap_or_default(), text.as_str())]);
        }
    }
    let copy_text = path_text(&copy)?;
    let copied_file = format!("{copy_text}/{file}");
    let cannot_start = |reason: String| {
        Failure::new(format!("cannot rehearse the stack {name}: it does not start"))
            .source(reason)
            .hint("check it with `docker compose config`; the rehearsal knows only the stack's Compose files and env files")
    };
    let needed = world
        .add_external(name.as_str(), copy_text, &copied_file)
        .map_err(cannot_start)?;
    for path in needed.iter().map(Path::new) {
        let original = original(path, folder, (&copy, stack.dir()));
        stand_in(&mut world, path, &original)?;
    }
    world
        .start_file_by_hand(name.as_str(), copy_text, &copied_file)
        .map_err(cannot_start)?;
    let location = Location {
        root,
        dir: None,
        ..at.clone()
    };
    Ok(Stage { world, location })
}

/// The path of this host that a path of the world stands for. `copy` is the stack's directory in the world and on this
/// host.
fn original(path: &Path, folder: &Path, copy: (&Path, &Path)) -> PathBuf {
    if let Ok(inside) = path.strip_prefix(copy.0) {
        return copy.1.join(inside);
    }
    if let Ok(mirrored) = path.strip_prefix(folder.join("stacks")) {
        return Path::new("/").join(mirrored);
    }
    match (path.strip_prefix(HOME), std::env::home_dir()) {
        (Ok(inside), Some(home)) => home.join(inside),
        _ => path.to_owned(),
    }
}

/// Adds an empty file or directory to the world if `original` exists, and to the copies if `path` is among them. The
/// engine refuses a mount whose source is missing (M13). The contents are data, which is never copied.
fn stand_in(world: &mut World, path: &Path, original: &Path) -> Result<()> {
    let Ok(metadata) = fs::metadata(original) else {
        return Ok(());
    };
    let is_copy = path != original && !path.starts_with(HOME);
    if metadata.is_dir() {
        world.add_stack(path_text(path)?, []);
        if is_copy {
            fs::create_dir_all(path)
                .with_context(|| format!("failed to create {}", path.display()))?;
        }
        return Ok(());
    }
    // An env file that is also mounted is there already, with its text.
    if is_copy && !path.exists() {
        write_copy(path, "")?;
    }
    world.add_stack(path_text(path.parent().unwrap_or(Path::new("/")))?, []);
    world.add_empty_file(path_text(path)?);
    Ok(())
}

/// The files that Compose reads besides the Compose file and `.env`, by their absolute paths: env files, label files,
/// override files, and files of `extends` and `include`.
fn other_files(stack: &Stack, source: &Source) -> Result<BTreeMap<PathBuf, String>> {
    let mut paths = Vec::new();
    let shell = Shell::of(stack, None, |context| {
        paths = env_files_needed(&source.compose, source.env.as_deref(), context);
        Vec::new()
    });
    paths.extend_from_slice(shell.context().overrides);
    if let Ok(document) = Document::parse(&source.compose) {
        let services = services::services(&document);
        let extended = services.iter().filter_map(services::Service::extends_file);
        let named = extended.chain(services::includes(&document));
        paths.extend(named.map(|named| named.path.to_owned()));
    }
    let mut files = BTreeMap::new();
    for path in paths {
        if let Some(text) = stack.read_env(&path)? {
            let path = path_text(&stack.dir().join(path))?.to_owned();
            files.insert(PathBuf::from(path::clean(&path)), text);
        }
    }
    Ok(files)
}

/// The absolute `path` below `folder`, so that `..` in it leads to the copies of the same files.
fn mirrored(folder: &Path, path: &Path) -> PathBuf {
    let mirror = folder.join("stacks");
    mirror.join(path.strip_prefix("/").unwrap_or(path))
}

fn write_copy(path: &Path, text: &str) -> Result<()> {
    let what = || format!("failed to write {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(what)?;
    }
    fs::write(path, text).with_context(what)
}

fn migrate_on(
    rehearsal: &Rehearsal,
    stack: &Stack,
    settings: &Settings,
    force: bool,
    snapshots: &Path,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    let key = rehearsal.key().into();
    console.hide(&key);
    let base_url = BaseUrl::from_str(&rehearsal.base_url()).map_err(|reason| anyhow!(reason))?;
    let trace = console.trace();
    let manager = Portainer::new(portainer::Options {
        base_url: base_url.clone(),
        key,
        tls: portainer::Tls::Off,
        timeout: settings.timeout,
        trace: trace.clone(),
    })?;
    let client = engine::ClientConfig {
        docker_host: Some(format!("unix://{}", rehearsal.socket().display())),
        ..engine::ClientConfig::default()
    };
    let tool = &settings.location.tool;
    let engine = engine::Options::new(tool, engine::Choice::Api, client, trace);
    let engine = Engine::open(engine.within(settings.timeout));
    let peers = Peers::new(manager, engine);
    let setup = Setup::new(
        peers::place(snapshots.to_owned(), settings, stack.name())?,
        base_url.clone(),
        settings.timeout,
        RestoreCommand::default(),
    )?;
    let compose = compose::Host::new(tool, console.trace());
    let migration = Migration {
        stack,
        peers: &peers,
        base_url: &base_url,
        endpoint: settings.endpoint,
        today: chrono::Local::now().date_naive(),
        on_refusal: migrate_command::on_refusal(force),
        consent: Consent::Given,
        grace: None,
        setup: &setup,
        tool,
        compose: &compose,
    };
    console.heading("Migration with an embedded Portainer and engine");
    let before = summary(rehearsal);
    let mut warnings = 0;
    let ended = migrate::run(&migration, &mut |event| {
        warnings += usize::from(matches!(event, Event::Warning(_)));
        events::show(console, &event);
    });
    console.done();
    console.heading("Changes");
    match diff::lines(&before, &summary(rehearsal)) {
        changes if changes.is_empty() => console.line("none"),
        changes => console.line(&changes),
    }
    console.heading("Verdict");
    console.line(&verdict(stack, ended.is_ok(), warnings));
    // Its snapshot is deleted with the rehearsal.
    ended.map_err(|stopped| {
        Ended::Stopped(Stopped {
            state: stopped.state.without_snapshot(),
            ..stopped
        })
    })
}

fn verdict(stack: &Stack, succeeded: bool, warnings: usize) -> String {
    let name = stack.name();
    match (succeeded, warnings) {
        (false, _) => format!("the rehearsed migration of {name} failed"),
        (true, 0) => format!("the rehearsed migration of {name} succeeded"),
        (true, warnings) => format!(
            "the rehearsed migration of {name} succeeded, with {} above",
            counted(warnings, "warning")
        ),
    }
}

fn summary(rehearsal: &Rehearsal) -> String {
    rehearsal.world(|world| world.summary().to_string())
}

fn show_requests(rehearsal: &Rehearsal, console: &Console) {
    console.heading("API requests");
    for request in rehearsal.requests() {
        console.line(&request.to_string());
    }
}

/// Keeps Portainer and the engine running until the process is interrupted.
fn serve(rehearsal: &Rehearsal, root: &Path, name: &StackName, console: &Console) -> Result<()> {
    let certificate = root.join("certificate.pem");
    fs::write(&certificate, rehearsal.certificate_pem())
        .with_context(|| format!("failed to write {}", certificate.display()))?;
    for (name, value) in [
        ("STACKMGR_API_KEY", rehearsal.key().to_owned()),
        ("STACKLIFT_BASE_URL", rehearsal.base_url()),
        ("STACKLIFT_STACKS_ROOT", path_text(root)?.to_owned()),
        ("STACKLIFT_TLS", path_text(&certificate)?.to_owned()),
        (
            "STACKLIFT_STATE_DIR",
            path_text(&root.join("state"))?.to_owned(),
        ),
        (
            "DOCKER_HOST",
            format!("unix://{}", rehearsal.socket().display()),
        ),
    ] {
        console.line(&format!("export {name}={value}"));
    }
    console.line(&format!(
        "# Running until Ctrl-C. Paste these lines into another shell, then run: stacklift {name}"
    ));
    // The handler of the signal ends the process.
    loop {
        thread::park();
    }
}

fn folder() -> Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("stacklift-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()
        .context("failed to create a temporary directory for the rehearsal")?;
    Ok(folder)
}

/// A random API key for this rehearsal.
fn key() -> Result<String> {
    let folder = folder()?;
    let random = folder
        .path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    Ok(format!("ptr_{random}"))
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| {
        format!(
            "the path of the directory {} is not valid UTF-8",
            path.display()
        )
    })
}
