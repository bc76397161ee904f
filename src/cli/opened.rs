//! The settings, the API key, and the clients that they lead to, opened in the order of C04.

use std::{collections::BTreeSet, ffi::OsStr, path::Path, sync::Arc};

use anyhow::Result;
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    Cli, Common, Console, Ended,
    arguments::{AccessArguments, AdoptionArguments},
    peers,
    settings::{KeySource, Settings, repository},
};
use crate::{
    compose,
    disk::Refused,
    engine::{EngineReader, NoSharedVersion},
    failure::Failure,
    inventory::{Inventory, earlier, lost_dir},
    model::{Container, Record, WantedAccess, is_portainers},
    observe::{Environments, Situation},
    plan::AdoptFlags,
    portainer::Repository,
    run::{Peers, Setup, Stopped},
    stack::{
        Location, Stack, StackName, deeper_dirs, export_words, is_same, stack_dir, started_dirs,
    },
    text::{Mask, command, printable, shell_word},
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

/// Says where a stack is that was found outside the stacks root.
pub(super) fn say_where(name: &StackName, dir: &Path, at: &Location, console: &Console) {
    if at.dir.is_none() && !is_same(dir, &at.root.join(name.as_str())) {
        let dir = dir.display();
        console.note(&format!("{name} is in {dir}"));
    }
}

/// The settings, and the clients that they lead to.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// Without the ID of an environment, Portainer is not asked.
    pub(super) settings: Settings,
    pub(super) peers: Arc<Peers>,
    pub(super) compose: Arc<compose::Installation>,
}

impl Surroundings {
    /// Prepares both clients, without a request. Without a key, Portainer is not asked.
    pub(super) fn with(
        settings: Settings,
        key: Option<SecretString>,
        console: &Arc<Console>,
    ) -> Result<Self> {
        let peers = peers::open(&settings, key, console)?;
        let compose = compose::Installation::new(&settings.location.tool, console.trace());
        Ok(Self {
            settings,
            peers: Arc::new(peers),
            compose: Arc::new(compose),
        })
    }

    /// Reads the settings and the API key of a run on these stacks. Warns if the key may go to another host unverified.
    pub(super) fn new<'n>(
        common: &Common,
        stacks: impl IntoIterator<Item = &'n StackName>,
        console: &Arc<Console>,
    ) -> Result<Self, Ended> {
        let (settings, key) = settings_and_key(common, stacks, console)?;
        peers::warn_about_tls(&settings, console);
        let opened = Self::with(settings, Some(key), console);
        Ok(opened.map_err(Stopped::untouched)?)
    }

    /// This host, without Portainer.
    pub(super) fn of_host(settings: &Settings, console: &Arc<Console>) -> Result<Self> {
        let settings = Settings {
            endpoint: None,
            ..settings.clone()
        };
        Self::with(settings, None, console)
    }

    /// As far as they can be used, with the ID of the environment, or why Portainer is not asked: there is no API key, or
    /// `--endpoint auto` could not read it. The settings do not name a stack's directory.
    pub(super) fn without_stack(
        Cli { common, console }: Cli,
    ) -> Result<(Self, Result<i64>), Ended> {
        let mut common = common.clone();
        common.dir = None;
        common.typed.retain(|(flag, _)| flag != "dir");
        let settings = Settings::load(&common)?;
        let key = KeySource::of(settings.api_key_file.as_deref()).and_then(KeySource::read);
        let key = match key {
            Ok(key) => key,
            Err(error) => return Ok((Self::of_host(&settings, console)?, Err(error))),
        };
        console.hide(&key);
        peers::warn_about_tls(&settings, console);
        let mut at = Self::with(settings, Some(key), console)?;
        let environment = match at.settings.endpoint {
            Some(id) => Ok(id),
            None => match at.environments() {
                Ok(search) => Ok(peers::found(&search, &at.settings, console)?),
                Err(error) => Err(error),
            },
        };
        at.settings.endpoint = environment.as_ref().ok().copied();
        Ok((at, environment))
    }

    /// The same with clients of its own, for a run besides others on this console.
    pub(super) fn again(&self, console: &Arc<Console>) -> Result<Self> {
        let engine = peers::engine(&self.settings, console);
        Ok(Self {
            settings: self.settings.clone(),
            peers: Arc::new(self.peers.again(console.trace(), engine)?),
            compose: Arc::new(self.compose.again(console.trace())),
        })
    }

    fn environments(&self) -> Result<Environments> {
        let (portainer, engine) = self.peers.readers();
        Environments::of_host(portainer, engine)
    }

    /// The ID of the environment. For `--endpoint auto`, finds it, and keeps it in the settings.
    pub(super) fn environment(&mut self, console: &Console) -> Result<i64> {
        let id = match self.settings.endpoint {
            Some(id) => id,
            None => peers::found(&self.environments()?, &self.settings, console)?,
        };
        self.settings.endpoint = Some(id);
        Ok(id)
    }

    /// What can be read of every stack.
    pub(super) fn inventory(&self) -> Inventory<'_> {
        let (portainer, engine) = self.peers.readers();
        Inventory {
            portainer: self.settings.endpoint.map(|id| (portainer, id)),
            engine,
            base_url: &self.settings.base_url,
            location: &self.settings.location,
            compose: &self.compose,
            state: self.settings.state.as_deref(),
            flags: AdoptFlags::default(),
            access: None,
            typed: &self.settings.typed,
        }
    }

    /// Whom `--access` lets use a stack.
    pub(super) fn wanted(&self, access: &AccessArguments) -> Result<Option<WantedAccess>, Stopped> {
        let wanted = self.peers.readers().0.wanted_access(&access.grants);
        wanted.map_err(Stopped::untouched)
    }
}

/// A stack, and the clients to reach its surroundings.
pub(super) struct Opened {
    pub(super) at: Surroundings,
    pub(super) stack: Stack,
    /// Who may use the stack afterwards, if `--access` says so.
    pub(super) access: Option<WantedAccess>,
    /// The repository to deploy it from, if `--git` names one.
    pub(super) git: Option<Repository>,
}

impl Opened {
    /// The same, with `--access` and `--git`. Fails if this host has no Compose program (B46).
    pub(super) fn adopted_with(
        mut self,
        flags: &AdoptionArguments,
        console: &Console,
    ) -> Result<Self, Stopped> {
        self.at.compose.compose().map_err(Stopped::untouched)?;
        self.access = self.at.wanted(&flags.access)?;
        let git = repository(&flags.git, self.stack.file()).map_err(Stopped::untouched)?;
        if let Some(password) = git.as_ref().and_then(|git| git.password.as_ref()) {
            console.hide(password);
            let mask = Mask::new([password.expose_secret()]);
            self.at.peers.readers().0.hide(mask);
        }
        self.git = git;
        Ok(self)
    }

    /// Finds the stack's files: those that its containers were started from, otherwise as Compose does. Asks the engine
    /// for those containers; if it does not answer, the plan says so. Fails if the engine cannot be used at all.
    pub(super) fn new(name: &OsStr, Cli { common, console }: Cli) -> Result<Self, Ended> {
        let name = StackName::new(name)?;
        let at = Surroundings::new(common, Some(&name), console)?;
        Ok(Self::open(&name, at, console).map_err(Stopped::untouched)?)
    }

    /// The same, with settings and clients that were opened before.
    pub(super) fn open(name: &StackName, at: Surroundings, console: &Console) -> Result<Self> {
        let engine = at.peers.readers().1;
        console.waiting("finding the stack's containers");
        let containers = match engine.list(name.as_str()) {
            Err(error) if NoSharedVersion::caused(&error) => return Err(error),
            listed => listed.unwrap_or_default(),
        };
        engine.refuse_podman()?;
        let stack = at.inventory().stack(name, &containers);
        let stack = stack.map_err(|error| elsewhere(name, error, &containers, &at, console))?;
        let opened = Self::of(stack, at, console)?;
        console.done();
        say_where(
            name,
            opened.stack.dir(),
            &opened.at.settings.location,
            console,
        );
        Ok(opened)
    }

    /// A stack whose files were found.
    pub(super) fn of(stack: Stack, mut at: Surroundings, console: &Console) -> Result<Self> {
        at.environment(console)?;
        Ok(Self {
            at,
            stack,
            access: None,
            git: None,
        })
    }

    pub(super) fn setup(&self) -> Result<Setup, Stopped> {
        peers::setup(&self.at.settings, self.stack.name()).map_err(Stopped::untouched)
    }

    /// What a plan reads: it cannot write.
    pub(super) fn situation(&self) -> Situation<'_> {
        Situation {
            access: self.access.as_ref(),
            git: self.git.as_ref(),
            ..self.at.inventory().situation(&self.stack)
        }
    }
}

/// Says where a stack is whose files were not found for this reason: its directory belongs to another project, or Portainer has it.
fn elsewhere(
    name: &StackName,
    error: anyhow::Error,
    containers: &[Container],
    at: &Surroundings,
    console: &Console,
) -> anyhow::Error {
    let (portainer, engine) = at.peers.readers();
    let location = &at.settings.location;
    if containers.is_empty()
        && Refused::in_chain(&error).is_none()
        && let Ok(dir) = stack_dir(name, location)
        && let Some(project) =
            only_project(engine, &location.tool, |started| started.starts_with(&dir))
    {
        let hint = format!(
            "the containers of its directory belong to project {}: pass that name instead",
            printable(&project)
        );
        return Failure::new(format!("{error:#}")).hint(hint).into();
    }
    let Ok(endpoint) = at.clone().environment(console) else {
        return error;
    };
    let own = name.as_str();
    let records = portainer.records(endpoint, own, &name.portainer_name());
    let is_here = |record: &Record| record.endpoint_id == endpoint && record.name == own;
    let mut started = started_dirs(containers, &location.tool).into_iter();
    // A file in Portainer's directory is not one of the stack (M07).
    let is_lost = Failure::is_mistyped(&error)
        || started.any(is_portainers) && Refused::in_chain(&error).is_none();
    if !is_lost || !records.is_ok_and(|all| all.iter().any(is_here)) {
        return error;
    }
    let earlier = earlier(at.settings.state.as_deref(), name, &location.tool);
    let dir = lost_dir((own, location), containers, earlier);
    let export = command(&export_words(own, dir.as_deref()));
    let looked_in = stack_dir(name, location).unwrap_or_default();
    let what = format!(
        "{name} is in Portainer, and has no Compose file in {}",
        looked_in.display()
    );
    let deeper = deeper_dirs(own, location).into_iter();
    let found: Vec<String> = deeper
        .map(|dir| format!("--dir {}", shell_word(&dir.to_string_lossy())))
        .collect();
    let elsewhere = match found.as_slice() {
        [] => "if its files are elsewhere, pass their directory with --dir".to_owned(),
        found => format!(
            "there is a Compose file elsewhere: if it belongs to the stack, pass {}",
            found.join(" or ")
        ),
    };
    let hint =
        format!("{elsewhere}; otherwise, edit it in Portainer, or write files with `{export}`");
    Failure::new(what).hint(hint).into()
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
