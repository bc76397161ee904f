//! Whether a stack runs Portainer itself (B04).

use super::Refusal;
use crate::{
    model::{Container, PublishedPort},
    text::printable,
};

/// Images of Portainer itself, without its agent.
const PORTAINER_IMAGES: [&str; 3] = ["portainer", "portainer-ce", "portainer-ee"];

/// The first container that runs Portainer (B04): by its image, or because it publishes Portainer's port. `port` is
/// `None` if Portainer is not on this host.
pub fn runs_portainer(containers: &[Container], port: Option<u16>) -> Option<Refusal> {
    containers.iter().find_map(|container| {
        let because = if is_portainer_image(&container.image) {
            format!("runs {}", printable(&container.image))
        } else {
            let port = port?;
            publishes(container, port).then(|| format!("publishes Portainer's port {port}"))?
        };
        Some(Refusal::RunsPortainer {
            container: container.name().to_owned(),
            because,
        })
    })
}

/// The container of the Portainer at `port` of this host, if it is among `containers`.
pub(super) fn portainer(containers: &[Container], port: u16) -> Option<&Container> {
    let mut by_port = containers.iter().filter(|one| publishes(one, port));
    by_port.next().or_else(|| {
        let is_portainer =
            |one: &&Container| is_portainer_image(&one.image) && one.state == "running";
        let mut by_image = containers.iter().filter(is_portainer);
        by_image.next().filter(|_| by_image.next().is_none())
    })
}

fn publishes(container: &Container, port: u16) -> bool {
    let is_it =
        |published: &PublishedPort| published.host_port == port && published.protocol == "tcp";
    container.ports.iter().any(is_it)
}

/// `[registry/]portainer/portainer[-ce|-ee][:tag][@digest]`.
fn is_portainer_image(image: &str) -> bool {
    let image = image.split('@').next().unwrap_or(image);
    let mut parts = image.rsplit('/');
    let repository = parts.next().unwrap_or_default();
    let repository = repository.split(':').next().unwrap_or_default();
    parts.next() == Some("portainer") && PORTAINER_IMAGES.contains(&repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portainers_images_are_recognized() {
        for image in [
            "portainer/portainer-ce:2.21.0",
            "portainer/portainer-ee",
            "portainer/portainer@sha256:00",
            "registry.example:5000/portainer/portainer-ce:latest",
        ] {
            assert!(is_portainer_image(image), "{image}");
        }
        for image in ["portainer/agent:2", "portainer-ce", "nginx", "x/portainer"] {
            assert!(!is_portainer_image(image), "{image}");
        }
    }
}
