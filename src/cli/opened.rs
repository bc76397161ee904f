//! The settings, the API key, and the clients that they lead to, opened in the order of C04.

use std::{collections::BTreeSet, ffi::OsStr, path::Path, sync::Arc};

use anyhow::Result;
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    Cli, Common, Console, Ended,
    arguments::AdoptionArguments,
    peers,
    settings::{KeySource, Settings, repository},
};
use crate::{
    compose,
    disk::Refused,
    engine::{Engine, EngineReader, NoSharedVersion},
    failure::Failure,
    inventory::{Inventory, earlier, lost_dir},
    model::{Grant, Record, WantedAccess},
    observe::{Environments, Situation},
    plan::AdoptFlags,
    portainer::{Portainer, PortainerReader, Repository},
    run::{Peers, Setup, Stopped},
    stack::{Location, Stack, StackName, export_words, is_same, stack_dir},
    text::{Mask, command, printable},
};

/// Reads the settings and the API key of a run on these stacks.
pub(super) fn settings_and_key<'n>(
    common: &Common,
    stacks: impl IntoIterator<Item = &'n StackName>,
    console: &Console,
) -> Result<(Settings, SecretString), Ended> {
    let key = KeySource::find(common)?;
    for name in stacks {
        name.refuse_management_plane()?;
    }
    let settings = Settings::load(common).map_err(Stopped::untouched)?;
    let key = key.read().map_err(Stopped::untouched)?;
    console.hide(&key);
    Ok((settings, key))
}

/// The same, with the clients of both peers. Warns if the API key may go to another host unverified.
pub(super) fn settings_and_peers<'n>(
    common: &Common,
    stacks: impl IntoIterator<Item = &'n StackName>,
    console: &Arc<Console>,
) -> Result<(Settings, Arc<Peers>), Ended> {
    let (settings, key) = settings_and_key(common, stacks, console)?;
    peers::warn_about_tls(&settings, console);
    let peers = peers::open(&settings, Some(key), console).map_err(Stopped::untouched)?;
    Ok((settings, Arc::new(peers)))
}

/// Says where a stack is that was found outside the stacks root.
pub(super) fn say_where(name: &StackName, dir: &Path, at: &Location, console: &Console) {
    if at.dir.is_none() && !is_same(dir, &at.root.join(name.as_str())) {
        let dir = dir.display();
        console.note(&format!("{name} is in {dir}, where it was started"));
    }
}

/// What is read with these settings. `portainer` is its client and the ID of the environment.
pub(super) fn inventory<'a>(
    settings: &'a Settings,
    portainer: Option<(&'a PortainerReader, i64)>,
    engine: &'a EngineReader,
    compose: &'a compose::Installation,
) -> Inventory<'a> {
    Inventory {
        portainer,
        engine,
        base_url: &settings.base_url,
        location: &settings.location,
        compose,
        state: settings.state.as_deref(),
        flags: AdoptFlags::default(),
        access: None,
        typed: &settings.typed,
    }
}

/// A stack, and the clients to reach its surroundings.
pub(super) struct Opened {
    pub(super) settings: Settings,
    /// The ID of the environment.
    pub(super) endpoint: i64,
    pub(super) stack: Stack,
    pub(super) peers: Arc<Peers>,
    pub(super) compose: compose::Installation,
    /// Who may use the stack afterwards, if `--access` says so.
    pub(super) access: Option<WantedAccess>,
    /// The repository to deploy it from, if `--git` names one.
    pub(super) git: Option<Repository>,
}

impl Opened {
    /// The same, with `--access`.
    pub(super) fn shared_with(mut self, grants: &[Grant]) -> Result<Self, Stopped> {
        let wanted = self.peers.readers().0.wanted_access(grants);
        self.access = wanted.map_err(Stopped::untouched)?;
        Ok(self)
    }

    /// The same, with `--access` and `--git`. Fails if this host has no Compose program (B46).
    pub(super) fn adopted_with(
        self,
        flags: &AdoptionArguments,
        console: &Console,
    ) -> Result<Self, Stopped> {
        self.compose.compose().map_err(Stopped::untouched)?;
        let mut opened = self.shared_with(&flags.access.grants)?;
        let git = repository(&flags.git, opened.stack.file()).map_err(Stopped::untouched)?;
        if let Some(password) = git.as_ref().and_then(|git| git.password.as_ref()) {
            console.hide(password);
            let mask = Mask::new([password.expose_secret()]);
            opened.peers.readers().0.hide(mask);
        }
        opened.git = git;
        Ok(opened)
    }

    /// Finds the stack's files: those that its containers were started from, otherwise as Compose does. Asks the engine
    /// for those containers; if it does not answer, the plan says so. Fails if the engine cannot be used at all.
    pub(super) fn new(name: &OsStr, Cli { common, console }: Cli) -> Result<Self, Ended> {
        let name = StackName::new(name)?;
        let (settings, peers) = settings_and_peers(common, Some(&name), console)?;
        let opened = Self::open(&name, settings, peers, console);
        Ok(opened.map_err(Stopped::untouched)?)
    }

    /// The same, with settings and clients that were opened before.
    pub(super) fn open(
        name: &StackName,
        settings: Settings,
        peers: Arc<Peers>,
        console: &Arc<Console>,
    ) -> Result<Self> {
        let engine = peers.readers().1;
        console.waiting("finding the stack's containers");
        let containers = match engine.list(name.as_str()) {
            Err(error) if NoSharedVersion::caused(&error) => return Err(error),
            listed => listed.unwrap_or_default(),
        };
        engine.refuse_podman()?;
        let earlier = || earlier(settings.state.as_deref(), name, &settings.location.tool);
        let stack = Stack::find_started(name, &settings.location, &containers, earlier);
        let stack = stack.map_err(|error| {
            if containers.is_empty()
                && Refused::in_chain(&error).is_none()
                && let Ok(dir) = stack_dir(name, &settings.location)
                && let Some(project) = only_project(engine, &settings.location.tool, |started| {
                    started.starts_with(&dir)
                })
            {
                let hint = format!(
                    "the containers of its directory belong to project {}: pass that name instead",
                    printable(&project)
                );
                return Failure::new(format!("{error:#}")).hint(hint).into();
            }
            let readers = peers.readers();
            let Ok(endpoint) = peers::environment(&mut settings.clone(), readers, console) else {
                return error;
            };
            let own = name.as_str();
            let records = readers.0.records(endpoint, own, &name.portainer_name());
            let is_here = |record: &Record| record.endpoint_id == endpoint && record.name == own;
            if !Failure::is_mistyped(&error) || !records.is_ok_and(|all| all.iter().any(is_here)) {
                return error;
            }
            let dir = lost_dir((own, &settings.location), &containers, earlier());
            let export = command(&export_words(own, dir.as_deref()));
            let what = format!("{name} is in Portainer, and has no Compose file on this host");
            let hint = format!("edit it in Portainer; to write it to files: {export}");
            Failure::new(what).hint(hint).into()
        })?;
        let opened = Self::of(stack, settings, peers, console)?;
        console.done();
        say_where(name, opened.stack.dir(), &opened.settings.location, console);
        Ok(opened)
    }

    /// A stack whose files were found.
    pub(super) fn of(
        stack: Stack,
        mut settings: Settings,
        peers: Arc<Peers>,
        console: &Arc<Console>,
    ) -> Result<Self> {
        let endpoint = peers::environment(&mut settings, peers.readers(), console)?;
        Ok(Self {
            compose: compose::Installation::new(&settings.location.tool, console.trace()),
            settings,
            endpoint,
            stack,
            peers,
            access: None,
            git: None,
        })
    }

    pub(super) fn setup(&self) -> Result<Setup, Stopped> {
        peers::setup(&self.settings, self.stack.name()).map_err(Stopped::untouched)
    }

    /// What a plan reads: it cannot write.
    pub(super) fn situation(&self) -> Situation<'_> {
        let (portainer, engine) = self.peers.readers();
        let portainer = Some((portainer, self.endpoint));
        Situation {
            access: self.access.as_ref(),
            git: self.git.as_ref(),
            ..inventory(&self.settings, portainer, engine, &self.compose).situation(&self.stack)
        }
    }
}

/// The only project whose containers were started in such a directory.
pub(super) fn only_project(
    engine: &EngineReader,
    tool: &str,
    is_there: impl Fn(&Path) -> bool,
) -> Option<String> {
    let all = engine.list_all().ok()?;
    let here = all.iter().filter(|container| {
        let started = container.compose_label(tool, "project.working_dir");
        started.is_some_and(|started| is_there(Path::new(started)))
    });
    let projects = here.filter_map(|container| container.compose_label(tool, "project"));
    let mut projects: BTreeSet<&str> = projects.collect();
    let project = projects.pop_first()?;
    projects.is_empty().then(|| project.to_owned())
}

/// Portainer and the engine, without a stack.
pub(super) struct Surroundings {
    pub(super) settings: Settings,
    pub(super) engine: Engine,
    /// Portainer and the ID of the environment, or why Portainer is not used: there is no API key, or `--endpoint auto`
    /// could not read it.
    pub(super) portainer: Result<(Portainer, i64)>,
    pub(super) compose: compose::Installation,
}

impl Surroundings {
    /// Prepares both clients. Sends no request, unless the environment has to be found. The settings do not name a stack's
    /// directory.
    pub(super) fn new(Cli { common, console }: Cli) -> Result<Self, Ended> {
        let mut common = common.clone();
        common.dir = None;
        common.typed.retain(|(flag, _)| flag != "dir");
        let mut settings = Settings::load(&common)?;
        let engine = peers::engine(&settings, console);
        let key = KeySource::of(settings.api_key_file.as_deref()).and_then(KeySource::read);
        let portainer = match key {
            Ok(key) => {
                console.hide(&key);
                peers::warn_about_tls(&settings, console);
                let portainer = peers::portainer(&settings, key, true, console)?;
                let id = match settings.endpoint {
                    Some(id) => Ok(id),
                    None => match Environments::of_host(portainer.reader(), &engine) {
                        Ok(search) => Ok(peers::found(&search, &settings, console)?),
                        Err(error) => Err(error),
                    },
                };
                id.map(|id| (portainer, id))
            }
            Err(error) => Err(error),
        };
        if let Ok((_, id)) = portainer {
            settings.endpoint = Some(id);
        }
        Ok(Self {
            compose: compose::Installation::new(&settings.location.tool, console.trace()),
            settings,
            engine,
            portainer,
        })
    }

    /// What can be read of every stack.
    pub(super) fn inventory(&self) -> Inventory<'_> {
        let portainer = self.portainer.as_ref().ok();
        let portainer = portainer.map(|(portainer, id)| (portainer.reader(), *id));
        inventory(&self.settings, portainer, &self.engine, &self.compose)
    }
}
