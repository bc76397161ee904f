//! What the Compose program of this host answers.

use std::collections::BTreeMap;

use super::{
    deployment::{Compose, Deployment},
    state::World,
};

impl World {
    /// The version of the Compose program that starts stacks by hand.
    pub fn compose_version(&self) -> &'static str {
        Compose::from(self.local_compose).version()
    }

    /// The hash of each service that a text starts, as [`World::compose_version`] computes it, by its name. `env` is
    /// `stack.env`; it is not written if it is empty (M07).
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn hashes_of_text(
        &self,
        project: &str,
        text: &str,
        env: &str,
    ) -> Result<BTreeMap<String, String>, String> {
        let folder = "/stack";
        self.hashes(&Deployment {
            engine: self.engine.id.clone(),
            project: project.to_owned(),
            text: text.to_owned(),
            env_text: (!env.is_empty()).then(|| env.to_owned()),
            env_path: format!("{folder}/stack.env"),
            folder: folder.to_owned(),
            file: format!("{folder}/docker-compose.yml"),
            home: "/root".to_owned(),
            compose: self.local_compose.into(),
            by_hand: false,
        })
    }

    /// The hash of each service of the stack in `folder`. Without a file, of the one that Compose finds.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn hashes_on_disk(
        &self,
        project: &str,
        folder: &str,
        file: Option<&str>,
    ) -> Result<BTreeMap<String, String>, String> {
        let file = match file {
            Some(file) => format!("{folder}/{file}"),
            None => self.compose_file(folder)?,
        };
        self.hashes(&self.deployment_by_hand(project, folder, &file)?)
    }

    fn hashes(&self, deployment: &Deployment) -> Result<BTreeMap<String, String>, String> {
        let services = self.resolve(deployment)?.services.into_iter();
        let hashes = services.map(|service| {
            let hash = deployment.compose.hash(&service);
            (service.name, hash)
        });
        Ok(hashes.collect())
    }
}
