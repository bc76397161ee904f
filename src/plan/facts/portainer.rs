//! Whether a stack runs Portainer itself (B04).

use crate::{model::Container, plan::Refusal};

/// The first container that runs Portainer (B04). `port` is `None` if Portainer is not on this host.
pub fn runs_portainer(containers: &[Container], port: Option<u16>) -> Option<Refusal> {
    containers.iter().find_map(|container| {
        Some(Refusal::RunsPortainer {
            container: container.name().to_owned(),
            because: container.runs_portainer(port)?,
        })
    })
}

/// The container of the Portainer at `port` of this host, if it is among `containers`.
pub fn portainer(containers: &[Container], port: u16) -> Option<&Container> {
    let mut by_port = containers.iter().filter(|one| one.publishes(port));
    by_port.next().or_else(|| {
        let is_portainer =
            |one: &&Container| one.runs_portainer(None).is_some() && one.state == "running";
        let mut by_image = containers.iter().filter(is_portainer);
        by_image.next().filter(|_| by_image.next().is_none())
    })
}
