//! Stacks that a person starts with `compose up`.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    body::{creates_source, mounts},
    compose_files::ComposeFiles,
    resolve::Project,
    service::Service,
    settings::text,
    state::World,
};

impl World {
    /// Starts the stack in `folder` as `compose up -d` in that directory does. Without files, from the one that Compose
    /// finds.
    ///
    /// Reads the Compose files, `.env` and other env files from [`World::host`], and creates missing bind sources.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn start_by_hand(
        &mut self,
        project: &str,
        folder: &str,
        files: &[&str],
    ) -> Result<(), String> {
        let project = self.by_hand(project, folder, files)?;
        self.up(&project)
    }

    /// Adds the external networks and volumes that Compose files need, and lets the services succeed for whose success others
    /// wait. Returns the paths that must exist before [`World::start_by_hand`]: the sources of long-syntax binds, secrets and
    /// configs.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn add_external(
        &mut self,
        project: &str,
        folder: &str,
        files: &[&str],
    ) -> Result<Vec<String>, String> {
        let resolved = self.by_hand(project, folder, files)?;
        let external = |section: &str| {
            let all = resolved.config[section].as_object().into_iter().flatten();
            let external = all.filter(|(_, definition)| definition["external"] == true);
            external.map(|(_, definition)| json!({ "Name": definition["name"] }))
        };
        for network in external("networks") {
            if self.network(text(&network, "Name")).is_err() {
                self.create_network(&network)?;
            }
        }
        for volume in external("volumes") {
            // An existing volume stays as it is.
            self.create_volume(&volume);
        }
        let services = resolved.services.iter();
        let needs = services.clone().flat_map(Service::depends_on);
        let awaited = needs.filter(|(_, how)| how["condition"] == "service_completed_successfully");
        let jobs = awaited.map(|(name, _)| (format!("{project}/{name}"), 0));
        self.exits.extend(jobs);
        let mounts = services.flat_map(|service| mounts(service, &resolved));
        let needed = mounts.filter(|mount| mount["Type"] == "bind" && !creates_source(mount));
        Ok(needed
            .map(|mount| text(&mount, "Source").to_owned())
            .collect())
    }

    fn by_hand(&self, project: &str, folder: &str, files: &[&str]) -> Result<Project, String> {
        let files = files.iter().copied().map(str::to_owned);
        let files = ComposeFiles {
            project: Some(project),
            folder,
            files: &files.collect::<Vec<_>>(),
            env_files: &[],
            shell: &BTreeMap::new(),
            interpolates: true,
            home: &self.home,
            read: &|path| self.read_host(path).map(str::to_owned),
        };
        Ok(Project {
            by_hand: true,
            ..Project::resolve(&files, false)?
        })
    }
}
