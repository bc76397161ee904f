//! A stack and its peers, opened for `adopt` and `plan` in the order of C04; and the peers alone, for `list`.

use std::{ffi::OsStr, sync::Arc};

use secrecy::SecretString;

use super::{
    Common, Console, Ended,
    options::Endpoint,
    peers,
    settings::{KeySource, Settings},
};
use crate::{
    compose,
    engine::{self, Engine, NoSharedVersion},
    observe::{Search, Situation},
    portainer::{self, Portainer},
    run::{Peers, Setup, Stopped},
    stack::{Stack, StackName},
};

/// A stack, and the clients to reach its surroundings.
pub(super) struct Opened {
    pub(super) settings: Settings,
    /// The ID of the environment.
    pub(super) endpoint: i64,
    pub(super) stack: Stack,
    pub(super) peers: Peers,
    pub(super) compose: compose::Host,
}

impl Opened {
    /// Finds the stack's files: those that its containers were started from, otherwise as Compose does. Asks the engine
    /// for those containers; if it does not answer, the plan says so. Fails if the engine cannot be used at all.
    pub(super) fn new(
        name: &OsStr,
        common: &Common,
        console: &Arc<Console>,
    ) -> Result<Self, Ended> {
        let name = StackName::new(name)?;
        let key = KeySource::find(common)?;
        name.refuse_management_plane()?;
        let settings = Settings::load(common).map_err(Stopped::untouched)?;
        let key = key.read().map_err(Stopped::untouched)?;
        console.hide(&key);
        peers::warn_about_tls(&settings, console);
        Ok(Self::open(name, settings, key, console)?)
    }

    /// The same, with settings and a key that were read before.
    pub(super) fn open(
        name: StackName,
        mut settings: Settings,
        key: SecretString,
        console: &Arc<Console>,
    ) -> Result<Self, Stopped> {
        let peers = peers::open(&settings, key, console).map_err(Stopped::untouched)?;
        let (portainer, engine) = peers.readers();
        console.waiting("finding the stack's containers");
        let containers = match engine.list(name.as_str()) {
            Err(error) if NoSharedVersion::caused(&error) => {
                return Err(Stopped::untouched(error));
            }
            listed => listed.unwrap_or_default(),
        };
        engine.refuse_podman().map_err(Stopped::untouched)?;
        let endpoint = peers::environment(&settings, portainer, engine, console)
            .map_err(Stopped::untouched)?;
        settings.endpoint = Endpoint::Id(endpoint);
        let earlier = peers::earlier(&name);
        let stack = Stack::find_started(name, &settings.location, &containers, earlier)
            .map_err(Stopped::untouched)?;
        console.done();
        Ok(Self {
            compose: compose::Host::new(&settings.location.tool, console.trace())
                .that_started(&containers),
            settings,
            endpoint,
            stack,
            peers,
        })
    }

    pub(super) fn setup(&self) -> Result<Setup, Stopped> {
        peers::setup(&self.settings, self.stack.name()).map_err(Stopped::untouched)
    }

    /// What a plan reads: it cannot write.
    pub(super) fn situation(&self) -> Situation<'_> {
        let (portainer, engine) = self.peers.readers();
        Situation {
            portainer: Some(portainer),
            engine,
            stack: &self.stack,
            base_url: &self.settings.base_url,
            endpoint: self.endpoint,
            tool: &self.settings.location.tool,
            compose: &self.compose,
            host: None,
        }
    }
}

/// Portainer and the engine, without a stack.
pub(super) struct Surroundings {
    pub(super) settings: Settings,
    engine: Engine,
    /// Portainer and the ID of the environment.
    portainer: Option<(Portainer, i64)>,
    /// Why Portainer is not used: there is no API key, or `--endpoint auto` could not read it.
    pub(super) no_portainer: Option<anyhow::Error>,
}

impl Surroundings {
    /// Prepares both clients. Sends no request, unless the environment has to be found. The settings do not name a stack's
    /// directory.
    pub(super) fn new(common: &Common, console: &Arc<Console>) -> Result<Self, Ended> {
        let mut common = common.clone();
        common.dir = None;
        common.typed.retain(|(flag, _)| flag != "dir");
        let mut settings = Settings::load(&common)?;
        let engine = peers::engine(&settings, console);
        let (portainer, no_portainer) =
            match KeySource::of(settings.api_key_file.as_deref()).and_then(KeySource::read) {
                Ok(key) => {
                    console.hide(&key);
                    peers::warn_about_tls(&settings, console);
                    let portainer = peers::portainer(&settings, key, console)?;
                    let endpoint = match settings.endpoint {
                        Endpoint::Id(id) => Ok(id),
                        Endpoint::Auto => match Search::new(portainer.reader(), engine.reader()) {
                            Ok(search) => Ok(peers::found(&search, &settings, console)?),
                            Err(error) => Err(error),
                        },
                    };
                    match endpoint {
                        Ok(id) => {
                            settings.endpoint = Endpoint::Id(id);
                            (Some((portainer, id)), None)
                        }
                        Err(error) => (None, Some(error)),
                    }
                }
                Err(error) => (None, Some(error)),
            };
        Ok(Self {
            settings,
            engine,
            portainer,
            no_portainer,
        })
    }

    /// Portainer and the ID of the environment; `None` if [`Self::no_portainer`] says why.
    pub(super) fn portainer(&self) -> Option<(&portainer::Reader, i64)> {
        let (portainer, endpoint) = self.portainer.as_ref()?;
        Some((portainer.reader(), *endpoint))
    }

    pub(super) fn engine(&self) -> &engine::Reader {
        self.engine.reader()
    }
}

/// The clients for `doctor`, which only reads.
pub(super) struct Diagnosed {
    engine: Engine,
    portainer: Option<Portainer>,
    /// Why there is no client for Portainer.
    pub(super) no_portainer: Option<anyhow::Error>,
}

impl Diagnosed {
    /// Prepares both clients without sending a request. Without an API key, the requests carry an empty one: Portainer's
    /// status needs none.
    pub(super) fn new(
        settings: &Settings,
        key: Option<SecretString>,
        console: &Arc<Console>,
    ) -> Self {
        let engine = peers::engine(settings, console);
        let portainer = peers::portainer_as_pinned(settings, key.unwrap_or_default(), console);
        let (portainer, no_portainer) = match portainer {
            Ok(portainer) => (Some(portainer), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            engine,
            portainer,
            no_portainer,
        }
    }

    /// `None` if [`Self::no_portainer`] says why.
    pub(super) fn portainer(&self) -> Option<&portainer::Reader> {
        self.portainer.as_ref().map(Portainer::reader)
    }

    pub(super) fn engine(&self) -> &engine::Reader {
        self.engine.reader()
    }
}
