//! A stack and its peers, opened for `adopt` and `plan` in the order of C04; and the peers alone, for `list`.

use std::{ffi::OsStr, sync::Arc};

use secrecy::SecretString;

use super::{
    Common, Console, Ended, peers,
    settings::{KeySource, Settings},
};
use crate::{
    compose,
    engine::{self, Engine, NoSharedVersion},
    observe::Situation,
    portainer::{self, Portainer},
    run::{Peers, Setup, Stopped},
    stack::{Stack, StackName},
};

/// A stack, and the clients to reach its surroundings.
pub(super) struct Opened {
    pub(super) settings: Settings,
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
        let key = KeySource::from_env()?;
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
        settings: Settings,
        key: SecretString,
        console: &Arc<Console>,
    ) -> Result<Self, Stopped> {
        let peers = peers::open(&settings, key, console).map_err(Stopped::untouched)?;
        let (_, engine) = peers.readers();
        let containers = match engine.list(name.as_str()) {
            Err(error) if NoSharedVersion::caused(&error) => {
                return Err(Stopped::untouched(error));
            }
            listed => listed.unwrap_or_default(),
        };
        engine.refuse_podman().map_err(Stopped::untouched)?;
        let earlier = peers::earlier(&settings, &name);
        let stack = Stack::find_started(name, &settings.location, &containers, earlier)
            .map_err(Stopped::untouched)?;
        Ok(Self {
            compose: compose::Host::new(&settings.location.tool, console.trace())
                .that_started(&containers),
            settings,
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
            endpoint: self.settings.endpoint,
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
    portainer: Option<Portainer>,
    /// Why there is no API key, and so no Portainer.
    pub(super) key_error: Option<anyhow::Error>,
}

impl Surroundings {
    /// Prepares both clients without sending a request. The settings do not name a stack's directory.
    pub(super) fn new(common: &Common, console: &Arc<Console>) -> Result<Self, Ended> {
        let common = Common {
            dir: None,
            ..common.clone()
        };
        let settings = Settings::load(&common)?;
        let engine = peers::engine(&settings, console);
        let (portainer, key_error) = match KeySource::from_env().and_then(KeySource::read) {
            Ok(key) => {
                console.hide(&key);
                peers::warn_about_tls(&settings, console);
                (Some(peers::portainer(&settings, key, console)?), None)
            }
            Err(error) => (None, Some(error)),
        };
        Ok(Self {
            settings,
            engine,
            portainer,
            key_error,
        })
    }

    /// `None` without an API key.
    pub(super) fn portainer(&self) -> Option<&portainer::Reader> {
        self.portainer.as_ref().map(Portainer::reader)
    }

    pub(super) fn engine(&self) -> &engine::Reader {
        self.engine.reader()
    }
}
