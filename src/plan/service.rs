//! What happens to a service.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    model::Container,
    plan::{Facts, Fate},
};

/// What happens to a service without containers.
pub const NOT_STARTED: &str = "has no container yet and will be started";

/// What happens to a service.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServicePlan {
    pub service: String,
    /// The names of its containers.
    pub containers: Vec<String>,
    pub fate: Fate,
    /// If a running container is stopped: the longest time that the engine waits before it kills the container, in seconds.
    #[serde(rename = "stop_seconds")]
    pub stop_grace: Option<u32>,
    /// How many containers the text asks for, if that is known.
    #[serde(skip)]
    pub asked: Option<usize>,
    /// Whether its fate says that its image is a different one now.
    #[serde(skip)]
    pub tells_image: bool,
    /// Whether its containers have the image and the configuration that are sent.
    #[serde(skip)]
    pub is_as_sent: bool,
    /// The services that it depends on.
    #[serde(skip)]
    pub needs: Vec<String>,
    /// Whether a container of it restarts again and again.
    #[serde(skip)]
    pub restarting: bool,
}

impl ServicePlan {
    /// Whether Portainer creates a container of it, or may do so.
    pub fn may_create(&self) -> bool {
        match self.fate {
            Fate::Recreated(_) | Fate::Unknown(_) => true,
            Fate::Started(_) => self.asked.is_none_or(|asked| asked > self.containers.len()),
            _ => false,
        }
    }

    /// Whether it is the row of a container that is removed, and that is among these.
    pub fn removes_one_of(&self, containers: &[String]) -> bool {
        matches!(self.fate, Fate::Removed(_))
            && self.containers.iter().any(|own| containers.contains(own))
    }

    /// Whether it has more containers than the text asks for, and it is unknown which ones stay.
    pub fn keeps_unknown_ones(&self) -> bool {
        let asked = self.asked.unwrap_or(usize::MAX);
        matches!(self.fate, Fate::Unknown(_)) && asked < self.containers.len()
    }

    /// Gives it a fate for which its containers may be stopped.
    pub fn may_stop(&mut self, facts: &Facts, fate: Fate) {
        self.fate = fate;
        self.tells_image = false;
        self.stop_grace = stop_grace(&inspected(facts, &self.containers));
    }
}

/// The row of the container with this name.
pub fn row_of<'s>(services: &'s [ServicePlan], container: &str) -> Option<&'s ServicePlan> {
    let has = |one: &&ServicePlan| one.containers.iter().any(|own| own == container);
    services.iter().find(has)
}

/// What happens to the container with this name.
pub fn fate_of<'s>(services: &'s [ServicePlan], container: &str) -> Option<&'s Fate> {
    row_of(services, container).map(|service| &service.fate)
}

/// What a container is called: as its service, unless that has several.
pub fn called<'s>(services: &'s [ServicePlan], container: &'s str) -> Option<&'s str> {
    let row = row_of(services, container)?;
    let is_only = row.containers.len() == 1;
    Some(if is_only { &row.service } else { container })
}

/// The longest time that one of the running containers has to stop, in seconds.
pub fn stop_grace(containers: &[&Container]) -> Option<u32> {
    let running = containers.iter().filter(|container| container.is_running());
    running
        .map(|container| container.stop_grace().unwrap_or(10))
        .max()
}

/// The inspect objects of the containers with these names.
pub fn inspected<'a>(facts: &Facts<'a>, names: &[String]) -> Vec<&'a Container> {
    let all = facts.host.inspected();
    all.filter(|container| names.iter().any(|name| name == container.name()))
        .collect()
}
