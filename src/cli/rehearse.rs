//! `stacklift rehearse [STACK]`: a migration against the embedded Portainer and engine.
//!
//! Connects to nothing outside this process, and writes only to a temporary directory: copies of Compose
//! files and env files, never data.

use std::{
    collections::BTreeMap, ffi::OsStr, fs, os::unix::fs::PermissionsExt, path::Path, str::FromStr,
    sync::Arc,
};

use anyhow::{Context, Result, anyhow};
use tempfile::TempDir;

use super::{
    Ended,
    arguments::{Common, RehearseArguments},
    console::Console,
    events, migrate as migrate_command,
    restore::store_at,
    settings::Settings,
};
use crate::{
    engine::{self, Engine},
    failure::Failure,
    migrate::{self, Migration},
    portainer::{self, BaseUrl, Portainer},
    run::{Peers, Stopped},
    stack::{EXAMPLES, Location, Stack, StackName},
};
use composefile::{document::Document, services};
use rehearsal::{Options, Rehearsal, World, seed};

/// The default example. It shows each kind of loss.
const DEFAULT: &str = "books-db";

/// The world of a rehearsal, and its stacks on disk.
struct Stage {
    folder: TempDir,
    world: World,
    location: Location,
}

pub(super) fn run(
    arguments: &RehearseArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    let settings = Settings::of_flags(common)?;
    let named = arguments.stack.as_deref().unwrap_or(OsStr::new(DEFAULT));
    let name = StackName::new(named)?;
    name.refuse_management_plane()?;
    let own = common.stacks_root.is_some() || common.dir.is_some();
    let stage = if own {
        of_user(&name, &settings.location)?
    } else {
        of_examples(&settings.location)?
    };
    let options = Options {
        era: arguments.era.into(),
        ..Options::default()
    };
    let rehearsal = Rehearsal::start(stage.world, &options)?;
    for rule in &arguments.faults {
        rehearsal.faults().add(rule.clone());
    }
    if arguments.serve {
        serve(&rehearsal, &stage.location.root, console)?;
        return Ok(());
    }
    if !own && !EXAMPLES.contains(&name.as_str()) {
        return Err(unknown_example(&name).into());
    }
    let stack = Stack::find(name, &stage.location)?;
    let ended = migrate_on(&rehearsal, &stack, &settings, arguments.force, console);
    show_requests(&rehearsal, console);
    // The run reads the copies in this directory.
    drop(stage.folder);
    ended
}

fn unknown_example(name: &StackName) -> anyhow::Error {
    Failure::new(format!("unknown example stack {name}"))
        .hint(format!(
            "examples: {}; use --stacks-root or --dir for your own stacks",
            EXAMPLES.join(", ")
        ))
        .into()
}

/// The example stacks, started without Portainer.
fn of_examples(at: &Location) -> Result<Stage> {
    let folder = folder()?;
    seed::write(folder.path()).context("failed to write the example stacks")?;
    let world = World::with_examples(&key()?, path_text(folder.path())?)
        .map_err(|reason| anyhow!("failed to start the example stacks: {reason}"))?;
    let location = Location {
        root: folder.path().to_owned(),
        ..at.clone()
    };
    Ok(Stage {
        folder,
        world,
        location,
    })
}

/// A copy of the user's stack, started without Portainer.
fn of_user(name: &StackName, at: &Location) -> Result<Stage> {
    let stack = Stack::find(name.clone(), at)?;
    let source = stack.read()?;
    let folder = folder()?;
    let copy = folder.path().join(name.as_str());
    fs::create_dir(&copy).with_context(|| format!("failed to create {}", copy.display()))?;
    let file = stack.file().to_owned();
    let mut files = BTreeMap::from([(file.clone(), source.compose.clone())]);
    for path in env_files(&source.compose) {
        if let Some(text) = stack.read_env(&path)? {
            files.insert(path, text);
        }
    }
    if let Some(env) = source.env {
        files.insert(".env".to_owned(), env);
    }
    for (path, text) in &files {
        copy_file(&copy, path, text)?;
    }
    let mut world = World::new(&key()?);
    world.add_portainer();
    world.tool.clone_from(&at.tool);
    let root = path_text(&copy)?.to_owned();
    world.add_stack(
        &root,
        files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str())),
    );
    world
        .start_file_by_hand(name.as_str(), &root, &format!("{root}/{file}"))
        .map_err(|reason| {
            Failure::new(format!(
                "cannot rehearse the stack {name}: `docker compose` would reject it too"
            ))
            .source(reason)
        })?;
    let location = Location {
        root: folder.path().to_owned(),
        dir: None,
        ..at.clone()
    };
    Ok(Stage {
        folder,
        world,
        location,
    })
}

/// The env files of a Compose file that are in its directory.
fn env_files(compose: &str) -> Vec<String> {
    let Ok(document) = Document::parse(compose) else {
        return Vec::new();
    };
    services::services(&document)
        .iter()
        .flat_map(services::Service::env_files)
        .map(|file| file.path.to_owned())
        .filter(|path| is_inside(path))
        .collect()
}

fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '~']) && !path.split('/').any(|part| part == "..")
}

fn copy_file(to: &Path, path: &str, text: &str) -> Result<()> {
    let path = to.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

fn migrate_on(
    rehearsal: &Rehearsal,
    stack: &Stack,
    settings: &Settings,
    force: bool,
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
    let state = folder()?;
    let store = store_at(
        state.path(),
        stack.name(),
        stack.dir(),
        &base_url,
        settings.endpoint,
    );
    let peers = Peers::new(manager, engine);
    let migration = Migration {
        stack,
        peers: &peers,
        base_url: &base_url,
        endpoint: settings.endpoint,
        today: chrono::Local::now().date_naive(),
        on_refusal: migrate_command::on_refusal(force),
        store: &store,
        tool,
    };
    console.heading("Migration with an embedded Portainer and engine");
    let before = summary(rehearsal);
    let ended = migrate::run(&migration, &mut |event| events::show(console, &event));
    console.heading("State before");
    console.line(&before);
    console.heading("State after");
    console.line(&summary(rehearsal));
    // Its snapshot is deleted with the rehearsal.
    ended.map_err(|stopped| {
        Ended::Stopped(Stopped {
            state: stopped.state.without_snapshot(),
            ..stopped
        })
    })
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
fn serve(rehearsal: &Rehearsal, root: &Path, console: &Console) -> Result<()> {
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
    console.line("# Running until Ctrl-C. Paste these lines into another shell, then run: stacklift books-db");
    let (interrupted, wait) = std::sync::mpsc::channel();
    ctrlc::set_handler(move || {
        // It fails only if nothing is waiting any more.
        let _ = interrupted.send(());
    })
    .context("failed to wait for Ctrl-C")?;
    // An error means that the handler is gone: the rehearsal ends as well.
    let _ = wait.recv();
    Ok(())
}

fn folder() -> Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("stacklift-stacks-")
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
