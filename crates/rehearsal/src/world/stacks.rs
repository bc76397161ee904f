//! What Portainer does with its stacks.

use super::{
    containers::AnonymousVolumes,
    deployment::Deployment,
    errors::PortainerError,
    record::{DeploymentNote, Pending, Record, ResourceControl, Status, Update, Variable},
    state::{Era, World},
};

/// The stack name as Portainer normalizes it (M02).
fn normalize(name: &str) -> String {
    let allowed = |c: &char| matches!(c, '-' | '_' | 'a'..='z' | '0'..='9');
    name.to_lowercase().chars().filter(allowed).collect()
}

impl World {
    /// Adds a stack to Portainer and returns its ID. Deploys nothing.
    pub fn add_record(&mut self, name: &str, endpoint: u64, text: &str) -> u64 {
        let id = self.next_record();
        let record = self.new_record(
            id,
            name,
            endpoint,
            text.to_owned(),
            Some(Vec::new()),
            "admin",
        );
        self.records.insert(id, record);
        id
    }

    /// Fails with 404 if the environment does not exist.
    pub(crate) fn check_endpoint(&self, endpoint: u64) -> Result<(), PortainerError> {
        let message =
            "Unable to find an environment with the specified identifier inside the database";
        match self.endpoints.get(&endpoint) {
            Some(_) => Ok(()),
            None => Err(PortainerError::no_endpoint(message, endpoint)),
        }
    }

    /// Creates a stack and returns its ID.
    ///
    /// The old Portainer runs `compose up` first and keeps the stack only if that succeeds (M05, M06). The newer one
    /// deploys in the background (N01, N06).
    pub fn create(
        &mut self,
        endpoint: u64,
        name: &str,
        text: String,
        env: Option<Vec<Variable>>,
        user: &str,
    ) -> Result<u64, PortainerError> {
        self.check_endpoint(endpoint)?;
        let name = normalize(name);
        // In any environment (M20).
        if self.records.values().any(|record| record.name == name) {
            let text = format!("A stack with the normalized name '{name}' already exists");
            return Err(PortainerError::new(409, &text, &text));
        }
        let id = self.next_record();
        match self.era {
            Era::Sync => {
                self.deploy(
                    endpoint,
                    id,
                    &name,
                    &text,
                    env.as_deref().unwrap_or_default(),
                )
                .map_err(|reason| PortainerError::failed(&reason))?;
                let record = self.new_record(id, &name, endpoint, text, env, user);
                self.records.insert(id, record);
            }
            Era::Async => {
                let mut record = self.new_record(id, &name, endpoint, text, env, user);
                record.status = Status::Deploying;
                self.records.insert(id, record);
                self.begin(id, false);
            }
        }
        Ok(id)
    }

    /// Replaces text and variables of a stack, and deploys it again (M06, M16, N07).
    ///
    /// # Errors
    /// The error response of Portainer.
    pub fn update(
        &mut self,
        id: u64,
        endpoint: Option<u64>,
        update: Update,
        user: &str,
    ) -> Result<(), PortainerError> {
        let record = self
            .records
            .get(&id)
            .ok_or_else(|| PortainerError::no_record(&id.to_string()))?;
        let endpoint = endpoint.unwrap_or(record.endpoint);
        if !self.endpoints.contains_key(&endpoint) {
            let message =
                "Unable to find the environment associated to the stack inside the database";
            return Err(PortainerError::no_endpoint(message, endpoint));
        }
        if record.status == Status::Deploying {
            return Err(PortainerError::busy());
        }
        let (name, in_error) = (record.name.clone(), record.status == Status::Error);
        if self.era == Era::Sync {
            let env = update.env.as_deref().unwrap_or_default();
            self.deploy(endpoint, id, &name, &update.text, env)
                .map_err(|reason| PortainerError::failed(&reason))?;
        }
        let (now, era) = (self.seconds(), self.era);
        if let Some(record) = self.records.get_mut(&id) {
            record.endpoint = endpoint;
            record.text = update.text;
            record.env = update.env;
            record.updated = now;
            user.clone_into(&mut record.updated_by);
            record.status = if era == Era::Sync {
                Status::Active
            } else {
                Status::Deploying
            };
        }
        if era == Era::Async {
            self.begin(id, in_error);
        }
        Ok(())
    }

    /// Runs `compose down` in the given environment, then deletes the stack (M03, M04, M19, N07).
    ///
    /// # Errors
    /// The error response of Portainer.
    pub fn delete(&mut self, id: u64, endpoint: u64) -> Result<(), PortainerError> {
        let record = self
            .records
            .get(&id)
            .ok_or_else(|| PortainerError::no_record(&id.to_string()))?;
        let Some(there) = self.endpoints.get(&endpoint) else {
            let message = "Unable to find the endpoint associated to the stack inside the database";
            return Err(PortainerError::no_endpoint(message, endpoint));
        };
        if record.status == Status::Deploying {
            return Err(PortainerError::busy());
        }
        let (engine, name) = (there.engine.clone(), record.name.clone());
        self.down_on(&engine, &name);
        self.records.remove(&id);
        Ok(())
    }

    /// Reads a stack. A deployment in progress advances by one poll (N01).
    pub(crate) fn poll(&mut self, id: u64) -> Option<&Record> {
        let pending = self.records.get_mut(&id)?.pending.as_mut();
        if let Some(pending) = pending {
            if pending.polls == 0 {
                self.finish_deployment(id);
            } else if pending.polls != u32::MAX {
                pending.polls -= 1;
            }
        }
        self.records.get(&id)
    }

    /// Finishes every deployment that is due.
    pub(super) fn finish_due_deployments(&mut self) {
        let is_due = |id: &&u64| {
            let pending = self
                .records
                .get(*id)
                .and_then(|record| record.pending.as_ref());
            pending.is_some_and(|pending| pending.due.is_some_and(|due| due <= self.now))
        };
        for id in self
            .deploying
            .iter()
            .filter(is_due)
            .copied()
            .collect::<Vec<_>>()
        {
            self.finish_deployment(id);
        }
    }

    /// Finishes a deployment in progress: this is when containers change.
    pub fn finish_deployment(&mut self, id: u64) {
        self.deploying.remove(&id);
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        let Some(pending) = record.pending.take() else {
            return;
        };
        let record = record.clone();
        if pending.down_first
            && let Some(endpoint) = self.endpoints.get(&record.endpoint)
        {
            let engine = endpoint.engine.clone();
            self.down_on(&engine, &record.name);
        }
        let env = record.env.as_deref().unwrap_or_default();
        let outcome = self.deploy(record.endpoint, id, &record.name, &record.text, env);
        let (status, message) = match outcome {
            Ok(()) => (Status::Active, String::new()),
            Err(reason) => (Status::Error, format!("failed to deploy a stack: {reason}")),
        };
        let time = self.seconds();
        if let Some(record) = self.records.get_mut(&id) {
            record.status = status;
            record.deployments.push(DeploymentNote {
                status,
                time,
                message,
            });
        }
    }

    fn begin(&mut self, id: u64, down_first: bool) {
        let due = self.deploy_millis.map(|millis| self.now + millis);
        let note = DeploymentNote {
            status: Status::Deploying,
            time: self.seconds(),
            message: String::new(),
        };
        let polls = self.deploy_polls;
        self.deploying.insert(id);
        if let Some(record) = self.records.get_mut(&id) {
            record.deployments = vec![note];
            record.pending = Some(Pending {
                polls,
                due,
                down_first,
            });
        }
    }

    /// Runs `compose up` as Portainer does: in its own directory.
    fn deploy(
        &mut self,
        endpoint: u64,
        id: u64,
        name: &str,
        text: &str,
        env: &[Variable],
    ) -> Result<(), String> {
        let engine = self
            .endpoints
            .get(&endpoint)
            .map(|there| there.engine.clone());
        let engine = engine.ok_or("no such environment")?;
        let folder = format!("/data/compose/{id}");
        let deployment = Deployment::by_portainer(&engine, name, text, env, &folder, self.era);
        let outcome = self.up(&deployment);
        if outcome.is_err() && self.era == Era::Sync {
            self.down_on(&engine, name);
        }
        outcome
    }

    /// Runs `compose down` on this host: removes containers and networks, keeps volumes (M04).
    pub fn down(&mut self, project: &str) {
        let engine = self.engine.id.clone();
        self.down_on(&engine, project);
    }

    /// Removes the project's named volumes, as `removeVolumes` in a DELETE does (N02).
    pub(crate) fn remove_volumes(&mut self, endpoint: u64, project: &str) {
        let Some(there) = self.endpoints.get(&endpoint) else {
            return;
        };
        let (engine, label) = (&there.engine, self.label("project"));
        self.volumes.retain(|volume| {
            volume.engine != *engine || volume.labels.get(&label).is_none_or(|of| of != project)
        });
    }

    fn down_on(&mut self, engine: &str, project: &str) {
        let ids = self
            .project_on(engine, project)
            .into_iter()
            .map(|one| one.id.clone());
        for id in ids.collect::<Vec<_>>() {
            self.remove_container(&id, AnonymousVolumes::Keep);
        }
        let label = self.label("project");
        self.networks.retain(|network| {
            network.engine != engine || network.labels.get(&label).is_none_or(|of| of != project)
        });
    }

    fn next_record(&mut self) -> u64 {
        let id = self.next.record;
        self.next.record += 1;
        id
    }

    fn new_record(
        &mut self,
        id: u64,
        name: &str,
        endpoint: u64,
        text: String,
        env: Option<Vec<Variable>>,
        user: &str,
    ) -> Record {
        let control = self.next.control;
        self.next.control += 1;
        Record {
            id,
            name: name.to_owned(),
            endpoint,
            text,
            env,
            status: Status::Active,
            created: self.seconds(),
            created_by: user.to_owned(),
            updated: 0,
            updated_by: String::new(),
            control: ResourceControl {
                id: control,
                users: Vec::new(),
                teams: Vec::new(),
                public: false,
            },
            auto_update: None,
            git: None,
            webhook: None,
            deployments: Vec::new(),
            pending: None,
        }
    }
}
