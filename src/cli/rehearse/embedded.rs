//! An embedded Portainer and engine, and the clients that reach them.

use std::{sync::Arc, time::Duration};

use anyhow::{Error, Result};
use rehearsal::{Options, Rehearsal, World};

use super::{Rehearsed, program};
use crate::{
    adopt::{self, Adopt, OnFailure},
    cli::{
        opened::{Opened, Surroundings},
        peers,
        settings::Settings,
    },
    compose, disk,
    engine::{self, Engine},
    migrate::{self, Migration},
    plan::{AdoptFlags, Keep, Plan},
    portainer::{BaseUrl, Portainer, Tls},
    report::AdoptReport,
    run::{Consent, Listener, Peers, RestoreCommand, Setup, Stopped},
    snapshot::Place,
    stack::stack_dir,
};

/// How long an adoption waits for containers, as without `--wait`.
const WAIT: Duration = Duration::from_mins(1);

/// No job of the user runs in a rehearsal.
pub(super) const FLAGS: AdoptFlags = AdoptFlags {
    overwrite: true,
    pull: false,
    keep: Keep {
        anonymous: false,
        variables: false,
        orphans: false,
        jobs: true,
    },
};

/// What is compared of two ways.
pub(super) const FACTS: [&str; 6] = [
    "kept running",
    "restarted",
    "recreated",
    "removed",
    "losses",
    "result",
];

/// A stack in a simulated Portainer and Docker.
pub(super) struct Embedded {
    pub(super) rehearsal: Arc<Rehearsal>,
    pub(super) opened: Opened,
    setup: Setup,
}

impl Embedded {
    /// Starts Portainer and the engine. `run` names the directory of its snapshots.
    pub(super) fn new(of: &Rehearsed, world: World, run: &str) -> Result<Self> {
        let (stack, console) = (of.stack, of.console);
        let options = Options {
            era: of.arguments.era,
            folder: Some(of.folder.to_owned()),
            is_private: true,
            ..Options::default()
        };
        let rehearsal = Rehearsal::start(world, &options)?;
        let snapshots = of.folder.join("state").join(run);
        let key = rehearsal.key().into();
        console.hide(&key);
        let base_url: BaseUrl = rehearsal.base_url().parse().map_err(Error::msg::<String>)?;
        let settings = Settings {
            base_url: base_url.clone(),
            state: Some(snapshots.clone()),
            tls: Tls::Off,
            ..of.settings.clone()
        };
        let portainer = Portainer::new(peers::unpinned(&settings, key, console))?;
        let client = engine::ClientConfig {
            docker_host: Some(format!("unix://{}", rehearsal.socket().display())),
            ..engine::ClientConfig::default()
        };
        let tool = &settings.location.tool;
        let (choice, timeout) = (engine::Choice::Api, settings.timeout);
        let engine = engine::Options::new(tool, choice, client, timeout, console.trace());
        let engine = Engine::open(engine);
        let setup = Setup::new(
            Place::new(&snapshots, stack.name().as_str()),
            base_url,
            settings.timeout,
            RestoreCommand::default(),
            RestoreCommand::default(),
        )?;
        let rehearsal = Arc::new(rehearsal);
        let host = compose::Installation::new(tool, console.trace());
        let original = stack_dir(stack.name(), &settings.location)?;
        let original = disk::is_dir(&original).then_some(original);
        let program = program::Embedded::new(Arc::clone(&rehearsal), host, original)?;
        let peers = Arc::new(Peers::new(portainer, engine));
        let at = Surroundings {
            settings,
            peers,
            compose: Arc::new(compose::Installation::with(program)),
        };
        let opened = Opened::of(stack.clone(), at, console)?;
        Ok(Self {
            rehearsal,
            opened,
            setup,
        })
    }

    pub(super) fn migrate(&self, force: bool, listener: &mut Listener) -> Result<(), Stopped> {
        let migration = Migration {
            situation: self.opened.situation(),
            peers: &self.opened.at.peers,
            today: chrono::Local::now().date_naive(),
            force,
            consent: Consent::Given,
            setup: &self.setup,
        };
        migrate::run(&migration, listener)
    }

    pub(super) fn adopt(&self, listener: &mut Listener) -> (AdoptReport, Result<(), Stopped>) {
        let adopt = Adopt {
            situation: self.opened.situation(),
            peers: &self.opened.at.peers,
            setup: &self.setup,
            flags: FLAGS,
            consent: Consent::Given,
            confirmed: None,
            wait: WAIT,
            on_failure: OnFailure::Restore,
        };
        adopt::run(&adopt, listener)
    }

    /// The [`FACTS`] of a run: what it did to the containers that existed before it, how much the stack loses, and how it ended.
    pub(super) fn outcome(
        &self,
        before: &World,
        way: Option<&Plan>,
        succeeded: bool,
    ) -> Vec<String> {
        let after = self.world();
        let losses = way.map_or(0, |way| way.losses.len());
        let (mut kept, mut restarted, mut recreated, mut removed) = (0, 0, 0, 0);
        for old in before.project(self.opened.stack.name().as_str()) {
            *match after.container(&old.name) {
                None => &mut removed,
                Some(now) if now.id != old.id => &mut recreated,
                Some(now) if now.started != old.started => &mut restarted,
                Some(_) => &mut kept,
            } += 1;
        }
        let counts = [kept, restarted, recreated, removed, losses].map(|count| count.to_string());
        let ended = if succeeded { "succeeded" } else { "failed" };
        counts.into_iter().chain([ended.to_owned()]).collect()
    }

    /// The world as it is now.
    pub(super) fn world(&self) -> World {
        self.rehearsal.world(|world| world.clone())
    }
}
