//! `stacklift rehearse [STACK]`: the production code against the embedded manager and engine.
//!
//! Nothing real is called. What is written lies in a folder for temporary files that goes at the end:
//! copies of compose and env files, never data.

use std::{
    collections::BTreeMap, ffi::OsStr, fs, os::unix::fs::PermissionsExt, path::Path, str::FromStr,
    sync::Arc,
};

use anyhow::{Context, Result, anyhow};
use tempfile::TempDir;

use super::{
    Common, Console, Ended, RehearseArguments, events, migrate as run_of, restore::store_at,
    settings::Settings,
};
use crate::{
    engine::{self, Engine},
    failure::Failure,
    migrate::{self, Migration},
    portainer::{self, BaseUrl, Manager},
    run::{Peers, Stopped},
    stack::{Location, Stack, StackName},
};
use composefile::{document::Document, services};
use rehearsal::{Era, Options, Rehearsal, World, seed};

/// The example that runs where none is named: it shows each kind of loss.
const DEFAULT: &str = "books-db";

/// `--era`.
#[derive(Debug, Clone, Copy)]
pub(super) struct EraArgument(Era);

impl FromStr for EraArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "sync" => Ok(Self(Era::Sync)),
            "async" => Ok(Self(Era::Async)),
            _ => Err("expected sync or async".to_owned()),
        }
    }
}

/// What a rehearsal plays: a world, and the stacks in it on disk.
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
    let stage = if common.stacks_root.is_some() || common.dir.is_some() {
        of_user(&name, &settings.location)?
    } else {
        of_examples(&settings.location)?
    };
    let options = Options {
        era: arguments.era.0,
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
    let stack = Stack::find(name, &stage.location)?;
    let ended = migrate_on(&rehearsal, &stack, &settings, arguments.force, console);
    show_requests(&rehearsal, console);
    // Kept until here: the run reads the copies in it.
    drop(stage.folder);
    ended
}

/// The six examples, as if started by hand.
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

/// A copy of the user's stack, as if started by hand.
fn of_user(name: &StackName, at: &Location) -> Result<Stage> {
    let stack = Stack::find(name.clone(), at)?;
    let source = stack.read()?;
    let folder = folder()?;
    let copy = folder.path().join(name.as_str());
    fs::create_dir(&copy).with_context(|| format!("failed to make {}", copy.display()))?;
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
                "the stack {name} cannot be rehearsed: it does not start even by hand"
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

/// The env files that a compose text names inside its directory.
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
    let manager = Manager::new(portainer::Options {
        base_url: base_url.clone(),
        key,
        tls: portainer::Tls::Off,
        timeout: settings.timeout,
        trace: trace.clone(),
    })?;
    let surroundings = engine::Surroundings {
        docker_host: Some(format!("unix://{}", rehearsal.socket().display())),
        ..engine::Surroundings::default()
    };
    let tool = &settings.location.tool;
    let engine = engine::Options::new(tool, engine::Choice::Api, surroundings, trace);
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
        on_refusal: run_of::on_refusal(force),
        store: &store,
        tool,
    };
    console.heading("the run, against an embedded manager and engine");
    let before = summary(rehearsal);
    let ended = migrate::run(&migration, &mut |event| events::show(console, &event));
    console.heading("the world before");
    console.line(&before);
    console.heading("the world after");
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
    console.heading("the requests made");
    for request in rehearsal.requests() {
        console.line(&request.to_string());
    }
}

/// Keeps both up until the process is interrupted.
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
    console.line("# up until Ctrl-C; in another shell, with these lines: stacklift books-db");
    let (interrupted, wait) = std::sync::mpsc::channel();
    ctrlc::set_handler(move || {
        // Whoever waits may have gone: then there is nobody to tell.
        let _ = interrupted.send(());
    })
    .context("failed to wait for Ctrl-C")?;
    // Either way it is over.
    let _ = wait.recv();
    Ok(())
}

fn folder() -> Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("stacklift-stacks-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()
        .context("failed to make a folder for the stacks of the rehearsal")?;
    Ok(folder)
}

/// A key for this rehearsal alone; its manager listens on loopback only.
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
    path.to_str()
        .with_context(|| format!("the folder {} is not UTF-8", path.display()))
}
