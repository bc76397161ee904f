//! A stack and its peers, opened for `adopt` and `plan` in the order of C04.

use std::{ffi::OsStr, sync::Arc};

use super::{
    Common, Console, Ended, peers,
    settings::{KeySource, Settings},
};
use crate::{
    compose,
    engine::NoSharedVersion,
    observe::Situation,
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
        let peers = peers::open(&settings, key, console).map_err(Stopped::untouched)?;
        let (_, engine) = peers.readers();
        let containers = match engine.list(name.as_str()) {
            Err(error) if NoSharedVersion::caused(&error) => {
                return Err(Stopped::untouched(error).into());
            }
            listed => listed.unwrap_or_default(),
        };
        engine.refuse_podman().map_err(Stopped::untouched)?;
        let stack = Stack::find_started(name, &settings.location, &containers)
            .map_err(Stopped::untouched)?;
        Ok(Self {
            compose: compose::Host::new(&settings.location.tool, console.trace()),
            settings,
            stack,
            peers,
        })
    }

    pub(super) fn setup(&self) -> Result<Setup, Ended> {
        Ok(peers::setup(&self.settings, self.stack.name()).map_err(Stopped::untouched)?)
    }

    /// What a plan reads: it cannot write.
    pub(super) fn situation(&self) -> Situation<'_> {
        let (portainer, engine) = self.peers.readers();
        Situation {
            portainer,
            engine,
            stack: &self.stack,
            base_url: &self.settings.base_url,
            endpoint: self.settings.endpoint,
            tool: &self.settings.location.tool,
            compose: &self.compose,
        }
    }
}
