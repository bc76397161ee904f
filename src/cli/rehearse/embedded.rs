//! An embedded Portainer and engine, and the clients that reach them.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, anyhow};
use rehearsal::{Era, Options, Rehearsal, Request, Rule, World};

use super::program;
use crate::{
    adopt::{self, Adopt, OnFailure},
    cli::{Console, migrate as migrate_command, peers, settings::Settings},
    compose, disk,
    engine::{self, Engine},
    migrate::{self, Migration},
    observe::Situation,
    plan::Keep,
    portainer::{self, BaseUrl, Portainer},
    run::{Consent, Listener, Peers, RestoreCommand, Setup, Stopped},
    stack::{Stack, stack_dir},
};

/// How long an adoption waits for containers, as without `--wait`.
const WAIT: Duration = Duration::from_mins(1);

/// Starts Portainer and the engine.
pub(super) fn start(world: World, era: Era, folder: &Path) -> Result<Rehearsal> {
    let options = Options {
        era,
        folder: Some(folder.to_owned()),
        ..Options::default()
    };
    Rehearsal::start(world, &options)
}

/// Lets API calls fail from now on.
pub(super) fn disturb(rehearsal: &Rehearsal, faults: &[Rule]) {
    for rule in faults {
        rehearsal.faults().add(rule.clone());
    }
}

/// A stack in an embedded Portainer and engine.
pub(super) struct Embedded<'a> {
    rehearsal: Arc<Rehearsal>,
    stack: &'a Stack,
    settings: &'a Settings,
    endpoint: i64,
    base_url: BaseUrl,
    peers: Peers,
    setup: Setup,
    compose: compose::Host,
}

impl<'a> Embedded<'a> {
    pub(super) fn new(
        rehearsal: Rehearsal,
        stack: &'a Stack,
        settings: &'a Settings,
        snapshots: PathBuf,
        console: &Arc<Console>,
    ) -> Result<Self> {
        let key = rehearsal.key().into();
        console.hide(&key);
        let base_url = rehearsal.base_url();
        let base_url = BaseUrl::from_str(&base_url).map_err(|reason| anyhow!(reason))?;
        let trace = console.trace();
        let portainer = Portainer::new(portainer::Options {
            base_url: base_url.clone(),
            key,
            tls: portainer::Tls::Off,
            pin: None,
            headers: portainer::Headers::default(),
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
        let setup = Setup::new(
            peers::place(snapshots, stack.name()),
            base_url.clone(),
            settings.timeout,
            RestoreCommand::default(),
        )?;
        let endpoint = peers::environment(settings, portainer.reader(), engine.reader(), console)?;
        let rehearsal = Arc::new(rehearsal);
        let host = compose::Host::new(tool, console.trace());
        let original = stack_dir(stack.name(), &settings.location)?;
        let original = disk::is_dir(&original).then_some(original);
        let program = program::Embedded::new(Arc::clone(&rehearsal), host, original)?;
        Ok(Self {
            compose: compose::Host::with(program),
            peers: Peers::new(portainer, engine),
            rehearsal,
            stack,
            settings,
            endpoint,
            base_url,
            setup,
        })
    }

    pub(super) fn situation(&self) -> Situation<'_> {
        let (portainer, engine) = self.peers.readers();
        Situation {
            portainer: Some(portainer),
            engine,
            stack: self.stack,
            base_url: &self.base_url,
            endpoint: self.endpoint,
            tool: &self.settings.location.tool,
            compose: &self.compose,
            host: None,
        }
    }

    pub(super) fn migrate(&self, force: bool, listener: &mut Listener) -> Result<(), Stopped> {
        let migration = Migration {
            situation: self.situation(),
            peers: &self.peers,
            today: chrono::Local::now().date_naive(),
            on_refusal: migrate_command::on_refusal(force),
            consent: Consent::Given,
            grace: None,
            setup: &self.setup,
        };
        migrate::run(&migration, listener)
    }

    pub(super) fn adopt(&self, listener: &mut Listener) -> Result<(), Stopped> {
        let adopt = Adopt {
            situation: self.situation(),
            peers: &self.peers,
            setup: &self.setup,
            keep: Keep::default(),
            pull: false,
            consent: Consent::Given,
            confirmed: None,
            wait: WAIT,
            timeout: self.settings.timeout,
            on_failure: OnFailure::Restore,
        };
        adopt::run(&adopt, listener).1
    }

    /// Lets API calls fail from now on.
    pub(super) fn disturb(&self, faults: &[Rule]) {
        disturb(&self.rehearsal, faults);
    }

    /// The world as it is now.
    pub(super) fn world(&self) -> World {
        self.rehearsal.world(|world| world.clone())
    }

    /// The requests so far.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.rehearsal.requests()
    }
}
