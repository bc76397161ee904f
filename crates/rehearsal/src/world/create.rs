//! How Compose creates one container.

use super::{
    body::{Run, endpoints},
    container::Container,
    errors::Refused,
    settings::text,
    state::World,
    values::many,
};

impl World {
    /// Creates the container without starting it, and replaces the old one.
    pub(super) fn create_for_service(
        &mut self,
        run: &Run<'_>,
        hash: String,
        old: Option<&Container>,
    ) -> Result<String, String> {
        let (project, service) = (run.project, run.service);
        let plain = || {
            // Container names are ASCII; Compose restricts project names in the same way.
            let name = format!("{}-{}-{}", project.name, service.name, run.number);
            let plain = name.chars().filter(char::is_ascii).collect::<String>();
            plain.trim_start_matches('-').to_owned()
        };
        let name = service.text("container_name").unwrap_or_else(plain);
        let failed = |error: Refused| {
            let reason = error.message;
            format!(" Container {name}  Creating\nError response from daemon: {reason}")
        };
        let body = self.body(run, hash, &name, old);
        let long = many(&body["HostConfig"]["Mounts"]).iter();
        for mount in long.filter(|mount| project.by_hand && mount["Type"] == "bind") {
            if !self.has_path(text(mount, "Source")) {
                self.add_directory(text(mount, "Source"));
            }
        }
        // A temporary name: if the create fails, the old container is still there.
        let temporary = old.map(|old| format!("{}_{name}", old.short_id()));
        let id = self
            .create_container(temporary.as_ref().unwrap_or(&name), &body)
            .map_err(failed)?;
        for (network, endpoint) in endpoints(run, &name).into_iter().skip(1) {
            self.connect(&network, &id, &endpoint).map_err(failed)?;
        }
        if let Some(old) = old {
            self.remove_container(&old.id, false);
            self.check_name(&name).map_err(failed)?;
            name.clone_into(&mut self.find_mut(&id).map_err(failed)?.name);
        }
        Ok(id)
    }

    pub(super) fn existing(
        &self,
        project: &str,
        service: &str,
        number: usize,
    ) -> Option<Container> {
        let number = number.to_string();
        let mut containers = self.project(project).into_iter();
        let found = containers.find(|container| {
            self.label_of(container, "service") == Some(service)
                && self.label_of(container, "container-number") == Some(&number)
        });
        found.cloned()
    }

    /// Converts `service:a` to the engine's form, `container:<id>`.
    pub(super) fn mode(&self, project: &str, mode: &str) -> String {
        let service = mode.strip_prefix("service:");
        match service.and_then(|of| self.existing(project, of, 1)) {
            Some(container) => format!("container:{}", container.id),
            None => mode.to_owned(),
        }
    }

    /// Converts a service to the engine's form, `<id>`. Compose 2.26 drops a mode such as `:ro`.
    pub(super) fn volumes_from(&self, project: &str, from: &str) -> String {
        if let Some(container) = from.strip_prefix("container:") {
            return container.to_owned();
        }
        let service = from.split(':').next().unwrap_or_default();
        self.existing(project, service, 1)
            .map_or_else(|| service.to_owned(), |container| container.id)
    }

    /// The ID of a service's image; empty if the image is missing.
    pub(super) fn image_of(&self, run: &Run<'_>) -> String {
        let image = self.image(&run.service.image(&run.project.name));
        image.map_or_else(String::new, |image| text(image, "Id").to_owned())
    }
}
