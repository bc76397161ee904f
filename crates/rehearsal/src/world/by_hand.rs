//! Stacks that a person starts with `compose up`.

use serde_json::json;

use super::{
    context::Shared, deployment::Deployment, entities::Network, mounts::Source, state::World,
};

impl World {
    /// Starts the stack in `folder` as `compose up -d` in that directory does.
    ///
    /// Reads the Compose file, `.env` and other env files from [`World::host`], and creates missing bind sources.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn start_by_hand(&mut self, project: &str, folder: &str) -> Result<(), String> {
        let file = self.compose_file(folder)?;
        self.start_file_by_hand(project, folder, &file)
    }

    /// Starts a stack from the given Compose file.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn start_file_by_hand(
        &mut self,
        project: &str,
        folder: &str,
        file: &str,
    ) -> Result<(), String> {
        let deployment = self.deployment_by_hand(project, folder, file)?;
        self.up(&deployment)
    }

    /// Adds the external networks and volumes that a Compose file needs, and returns the paths that must exist before
    /// [`World::start_file_by_hand`]: the sources of long-syntax binds, secrets and configs.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn add_external(
        &mut self,
        project: &str,
        folder: &str,
        file: &str,
    ) -> Result<Vec<String>, String> {
        let deployment = self.deployment_by_hand(project, folder, file)?;
        let engine = &deployment.engine;
        let resolved = self.resolve(&deployment)?;
        let external = |shared: &&Shared| shared.external;
        for network in resolved.networks.values().filter(external) {
            let named = |one: &Network| one.engine == *engine && one.name == network.name;
            if !self.networks.iter().any(named) {
                self.create_network(engine, &json!({ "Name": network.name }))
                    .map_err(|error| error.message)?;
            }
        }
        for volume in resolved.volumes.values().filter(external) {
            // An existing volume stays as it is.
            self.create_volume(engine, &json!({ "Name": volume.name }))
                .map_err(|error| error.message)?;
        }
        let mounts = resolved.services.iter().flat_map(|service| &service.mounts);
        let needed = mounts.filter_map(|mount| match &mount.source {
            Source::Bind {
                path,
                create: false,
                ..
            } => Some(path.clone()),
            _ => None,
        });
        Ok(needed.collect())
    }

    /// The services that `compose up -d` would create or recreate. Changes nothing.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn up_would_change(&self, project: &str, folder: &str) -> Result<Vec<String>, String> {
        let file = self.compose_file(folder)?;
        let deployment = self.deployment_by_hand(project, folder, &file)?;
        self.changed_by(&deployment)
    }

    pub(super) fn compose_file(&self, folder: &str) -> Result<String, String> {
        let of_tool = |extension| format!("{}-compose.{extension}", self.tool);
        let names = [
            "compose.yaml".to_owned(),
            "compose.yml".to_owned(),
            of_tool("yml"),
            of_tool("yaml"),
        ];
        let mut files = names.iter().map(|name| format!("{folder}/{name}"));
        let file = files.find(|path| self.read_host(path).is_some());
        file.ok_or_else(|| format!("no configuration file in {folder}"))
    }

    pub(super) fn deployment_by_hand(
        &self,
        project: &str,
        folder: &str,
        file: &str,
    ) -> Result<Deployment, String> {
        let text = self
            .read_host(file)
            .ok_or_else(|| format!("no such file: {file}"))?
            .to_owned();
        let env_path = format!("{folder}/.env");
        Ok(Deployment {
            engine: self.engine.id.clone(),
            project: project.to_owned(),
            text,
            env_text: self.read_host(&env_path).map(str::to_owned),
            env_path,
            folder: folder.to_owned(),
            file: file.to_owned(),
            home: "/home/operator".to_owned(),
            compose: self.local_compose.into(),
            by_hand: true,
        })
    }
}
