//! `compose up`: makes the containers of a project what a text says.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Container, Network, Volume, Volumes, World,
    deployment::{Compose, Deployment},
    resolve::{Project, Shared},
    service::Service,
};

/// One container that a deployment is about.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    pub deployment: &'r Deployment,
    pub project: &'r Project,
    pub service: &'r Service,
    pub number: usize,
}

impl World {
    /// One `compose up -d`. Where it fails it leaves what it did so far (N06); `down` is the caller's.
    pub(super) fn up(&mut self, deployment: &Deployment) -> Result<(), String> {
        let project = self.resolve(deployment)?;
        self.pull(deployment, &project)?;
        self.make_shared(deployment, &project)?;
        let mut recreated = BTreeSet::new();
        let mut wanted = Vec::new();
        for service in &project.services {
            for number in 1..=service.replicas {
                let run = Run {
                    deployment,
                    project: &project,
                    service,
                    number,
                };
                wanted.push((self.converge(&run, &mut recreated)?, service));
            }
            self.scale_down(deployment, service);
        }
        for (id, service) in wanted {
            self.start(&id, deployment, service)?;
        }
        Ok(())
    }

    /// Gets every image that is not there, before anything changes (N06, N10).
    fn pull(&mut self, deployment: &Deployment, project: &Project) -> Result<(), String> {
        for service in &project.services {
            let image = &service.image;
            if service.builds {
                // The context is read where compose runs (M11).
                if !deployment.by_hand {
                    return Err(format!(
                        "unable to prepare context: path {:?} not found",
                        deployment.folder
                    ));
                }
            } else if self.unpullable.contains(image) && !self.images.contains(image) {
                return Err(format!(
                    " {} Pulling \n {} Error \nError response from daemon: pull access denied for {image}, \
                     repository does not exist or may require 'docker login': denied: requested access to \
                     the resource is denied",
                    service.name, service.name
                ));
            }
            self.images.insert(image.clone());
        }
        Ok(())
    }

    fn make_shared(&mut self, deployment: &Deployment, project: &Project) -> Result<(), String> {
        let engine = &deployment.engine;
        let used = |key: &String| {
            project
                .services
                .iter()
                .any(|one| one.networks.contains_key(key))
        };
        for (key, network) in project.networks.iter().filter(|(key, _)| used(key)) {
            let there = self
                .networks
                .iter()
                .any(|one| one.engine == *engine && one.name == network.name);
            if network.external && !there {
                return Err(format!(
                    "network {} declared as external, but could not be found",
                    network.name
                ));
            }
            if !there {
                let mut labels = self.shared_labels(deployment, network);
                labels.insert(self.label("network"), key.clone());
                let id = self.new_id();
                self.networks.push(Network {
                    id,
                    name: network.name.clone(),
                    engine: engine.clone(),
                    driver: "bridge".to_owned(),
                    labels,
                    created: self.seconds(),
                });
            }
        }
        for volume in project.volumes.values() {
            let there = self
                .volumes
                .iter()
                .any(|one| one.engine == *engine && one.name == volume.name);
            if volume.external && !there {
                return Err(format!("external volume {:?} not found", volume.name));
            }
            if !there {
                let mut labels = self.shared_labels(deployment, volume);
                labels.insert(self.label("volume"), volume.key.clone());
                self.make_volume(engine, &volume.name, labels);
            }
        }
        Ok(())
    }

    fn shared_labels(&self, deployment: &Deployment, of: &Shared) -> BTreeMap<String, String> {
        let mut labels = of.labels.clone();
        labels.insert(self.label("project"), deployment.project.clone());
        labels.insert(
            self.label("version"),
            deployment.compose.version().to_owned(),
        );
        labels
    }

    pub(super) fn make_volume(
        &mut self,
        engine: &str,
        name: &str,
        labels: BTreeMap<String, String>,
    ) {
        self.volumes.push(Volume {
            name: name.to_owned(),
            engine: engine.to_owned(),
            labels,
            content: String::new(),
            created: self.seconds(),
        });
    }

    /// Leaves a container that is as it should be, creates or recreates one that is not (M05).
    fn converge(
        &mut self,
        run: &Run<'_>,
        recreated: &mut BTreeSet<String>,
    ) -> Result<String, String> {
        let Run {
            deployment,
            service,
            number,
            ..
        } = *run;
        let hash = deployment.compose.hash(service);
        let old = self.existing(deployment, &service.name, number);
        let follows = service
            .depends_on
            .iter()
            .any(|(name, dependency)| dependency.restart && recreated.contains(name));
        if let Some(old) = &old {
            let same = old.labels.get(&self.label("config-hash")) == Some(&hash);
            let built = service.builds && deployment.compose != Compose::V2_26;
            if same && !follows && !built {
                return Ok(old.id.clone());
            }
            recreated.insert(service.name.clone());
        }
        let new = self.create_container(run, hash, old.as_ref())?;
        if let Some(old) = old {
            self.remove_container(&old.id, Volumes::Kept);
        }
        let id = new.id.clone();
        self.containers.insert(id.clone(), new);
        Ok(id)
    }

    pub(super) fn existing(
        &self,
        deployment: &Deployment,
        service: &str,
        number: usize,
    ) -> Option<Container> {
        let (of, at) = (self.label("service"), self.label("container-number"));
        let number = number.to_string();
        let is_it = |one: &&&Container| {
            one.labels.get(&of).is_some_and(|name| name == service)
                && one.labels.get(&at) == Some(&number)
        };
        let project = self.project_on(&deployment.engine, &deployment.project);
        project.iter().find(is_it).map(|one| (*one).clone())
    }

    fn scale_down(&mut self, deployment: &Deployment, service: &Service) {
        let (of, at) = (self.label("service"), self.label("container-number"));
        let is_over = |one: &&&Container| {
            let number = one
                .labels
                .get(&at)
                .and_then(|number| number.parse::<usize>().ok());
            one.labels.get(&of) == Some(&service.name) && number > Some(service.replicas)
        };
        let project = self.project_on(&deployment.engine, &deployment.project);
        let over = project
            .iter()
            .filter(is_over)
            .map(|one| one.id.clone())
            .collect::<Vec<_>>();
        for id in over {
            self.remove_container(&id, Volumes::Kept);
        }
    }

    /// Starts a container that does not run (N08) and lets it write into its empty volumes.
    fn start(
        &mut self,
        id: &str,
        deployment: &Deployment,
        service: &Service,
    ) -> Result<(), String> {
        let Some(container) = self.containers.get(id) else {
            return Ok(());
        };
        if container.is_running() {
            return Ok(());
        }
        self.start_container(id)?;
        let code = self
            .exits
            .get(&format!("{}/{}", deployment.project, service.name))
            .copied();
        let now = self.seconds();
        if let (Some(code), Some(container)) = (code, self.containers.get_mut(id)) {
            container.exit(code, now);
        }
        Ok(())
    }
}
