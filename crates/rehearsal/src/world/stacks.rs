//! What Portainer does with its stacks.

use super::{
    containers::AnonymousVolumes,
    deployment::Deployment,
    entities::{ApiKey, Role},
    errors::PortainerError,
    in_flight::{Accepted, Ending, NamedVolumes, Work},
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

    /// The same for a user, who may not be allowed to use the environment.
    pub(crate) fn check_access(&self, endpoint: u64, user: &ApiKey) -> Result<(), PortainerError> {
        self.check_endpoint(endpoint)?;
        let restricted = self
            .endpoints
            .get(&endpoint)
            .is_some_and(|one| one.restricted);
        if restricted && user.role != Role::Administrator {
            let message = "Permission denied to access environment";
            let details = "Access denied to environment";
            return Err(PortainerError::new(403, message, details));
        }
        Ok(())
    }

    /// Fails with 403 if the user may not manage stacks on the environment (M22).
    pub(crate) fn check_stacks(
        &self,
        endpoint: u64,
        user: &ApiKey,
        action: &str,
    ) -> Result<(), PortainerError> {
        let forbidden = self
            .endpoints
            .get(&endpoint)
            .is_some_and(|one| one.forbids_stacks);
        if forbidden && user.role != Role::Administrator {
            let message = format!("{action} is disabled for non-admin users");
            return Err(PortainerError::new(403, &message, &message));
        }
        Ok(())
    }

    /// Creates a stack and returns its ID.
    ///
    /// # Errors
    /// The error response of Portainer.
    pub fn create(
        &mut self,
        endpoint: u64,
        name: &str,
        text: String,
        env: Option<Vec<Variable>>,
        user: &str,
    ) -> Result<u64, PortainerError> {
        let work = self.prepare_create(endpoint, name, text, env, user)?;
        let accepted = self.begin(work, Ending::default());
        self.finish(accepted)
    }

    /// Checks a request to create a stack, and gives the stack its ID.
    pub(crate) fn prepare_create(
        &mut self,
        endpoint: u64,
        name: &str,
        text: String,
        env: Option<Vec<Variable>>,
        user: &str,
    ) -> Result<Work, PortainerError> {
        self.check_endpoint(endpoint)?;
        let name = normalize(name);
        // In any environment (M20).
        if self.records.values().any(|record| record.name == name) {
            let text = format!("A stack with the normalized name '{name}' already exists");
            return Err(PortainerError::new(409, &text, &text));
        }
        let id = self.next_record();
        let record = self.new_record(id, &name, endpoint, text, env, user);
        Ok(Work::Create(Box::new(record)))
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
        let work = self.prepare_update(id, endpoint, update, user)?;
        let accepted = self.begin(work, Ending::default());
        self.finish(accepted).map(|_| ())
    }

    /// Checks a request to update a stack.
    pub(crate) fn prepare_update(
        &self,
        id: u64,
        endpoint: Option<u64>,
        update: Update,
        user: &str,
    ) -> Result<Work, PortainerError> {
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
        Ok(Work::Update {
            id,
            name: record.name.clone(),
            endpoint,
            update,
            user: user.to_owned(),
        })
    }

    /// Runs `compose down` in the given environment, then deletes the stack (M03, M04, M19, N07).
    ///
    /// # Errors
    /// The error response of Portainer.
    pub fn delete(&mut self, id: u64, endpoint: u64) -> Result<(), PortainerError> {
        let work = self.prepare_delete(id, endpoint, NamedVolumes::Keep)?;
        let accepted = self.begin(work, Ending::default());
        self.finish(accepted).map(|_| ())
    }

    /// Checks a request to delete a stack.
    pub(crate) fn prepare_delete(
        &self,
        id: u64,
        endpoint: u64,
        volumes: NamedVolumes,
    ) -> Result<Work, PortainerError> {
        let record = self
            .records
            .get(&id)
            .ok_or_else(|| PortainerError::no_record(&id.to_string()))?;
        if !self.endpoints.contains_key(&endpoint) {
            let message = "Unable to find the endpoint associated to the stack inside the database";
            return Err(PortainerError::no_endpoint(message, endpoint));
        }
        if record.status == Status::Deploying {
            return Err(PortainerError::busy());
        }
        let name = record.name.clone();
        Ok(Work::Delete {
            id,
            name,
            endpoint,
            volumes,
        })
    }

    /// Starts to work on a request.
    ///
    /// The old Portainer runs `compose up` first and keeps a new stack only if that succeeds (M05, M06). The newer one
    /// deploys in the background (N01, N06).
    pub(crate) fn begin(&mut self, work: Work, ending: Ending) -> Accepted {
        let id = work.id();
        if self.era == Era::Sync || matches!(work, Work::Delete { .. }) {
            return self.submit(work, ending);
        }
        let in_error = self.store_deploying(&work);
        self.begin_deployment(id, in_error, ending);
        Accepted::Ended(id)
    }

    /// Stores a stack whose deployment [`Self::end_deployment`] ends. Returns whether it was in error: then `down` comes
    /// first (N07).
    pub(crate) fn store_deploying(&mut self, work: &Work) -> bool {
        let id = work.id();
        let in_error = self.status_of(id) == Some(Status::Error);
        // The stack was there when the request was checked.
        let _ = self.complete(work);
        let note = self.note(Status::Deploying, String::new());
        if let Some(record) = self.records.get_mut(&id) {
            record.status = Status::Deploying;
            record.deployments = vec![note];
        }
        in_error
    }

    /// Ends a deployment. A stack that is gone stays gone.
    pub(crate) fn end_deployment(&mut self, id: u64, outcome: Result<(), String>) {
        let (status, message) = match outcome {
            Ok(()) => (Status::Active, String::new()),
            Err(reason) => (Status::Error, format!("failed to deploy a stack: {reason}")),
        };
        let note = self.note(status, message);
        if let Some(record) = self.records.get_mut(&id) {
            record.status = status;
            record.deployments.push(note);
        }
    }

    fn note(&self, status: Status, message: String) -> DeploymentNote {
        DeploymentNote {
            status,
            time: self.seconds(),
            message,
        }
    }

    fn status_of(&self, id: u64) -> Option<Status> {
        self.records.get(&id).map(|record| record.status)
    }

    /// Stops a stack: runs `compose down` and keeps the stack as inactive.
    ///
    /// # Errors
    /// The error response of Portainer.
    pub fn stop(&mut self, id: u64, endpoint: u64) -> Result<(), PortainerError> {
        let record = self.on(id, endpoint)?;
        if record.status == Status::Inactive {
            let text = "Stack is already inactive";
            return Err(PortainerError::new(400, text, text));
        }
        let name = record.name.clone();
        record.status = Status::Inactive;
        self.down_in(endpoint, &name);
        Ok(())
    }

    /// Starts a stopped stack. A failure removes everything, as in M06.
    ///
    /// # Errors
    /// The error response of Portainer.
    pub fn start_again(&mut self, id: u64, endpoint: u64) -> Result<(), PortainerError> {
        let record = self.on(id, endpoint)?;
        if record.status != Status::Inactive {
            let text = format!("A stack with the name '{}' is already running", record.name);
            return Err(PortainerError::new(409, &text, &text));
        }
        let record = record.clone();
        let env = record.env.as_deref().unwrap_or_default();
        let outcome = self
            .by_portainer(endpoint, id, &record.name, &record.text, env)
            .and_then(|deployment| self.up(&deployment));
        if let Err(reason) = outcome {
            self.down_in(endpoint, &record.name);
            return Err(PortainerError::failed(&reason));
        }
        self.on(id, endpoint)?.status = Status::Active;
        Ok(())
    }

    /// A stack and an environment that must exist.
    fn on(&mut self, id: u64, endpoint: u64) -> Result<&mut Record, PortainerError> {
        if !self.endpoints.contains_key(&endpoint) {
            let message =
                "Unable to find an endpoint with the specified identifier inside the database";
            return Err(PortainerError::no_endpoint(message, endpoint));
        }
        self.records
            .get_mut(&id)
            .ok_or_else(|| PortainerError::no_record(&id.to_string()))
    }

    /// The stack with this resource control.
    pub(crate) fn controlled(&mut self, control: &str) -> Result<&mut Record, PortainerError> {
        let number = control.parse::<u64>().unwrap_or(0);
        let mut all = self.records.values_mut();
        all.find(|record| record.control.id == number).ok_or_else(|| {
            let message =
                "Unable to find a resource control with the specified identifier inside the database";
            let details =
                format!("Object not found inside the database (bucket=resource_control, key={control})");
            PortainerError::new(404, message, &details)
        })
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
        let (endpoint, name) = (record.endpoint, record.name.clone());
        if pending.down_first {
            self.down_in(endpoint, &name);
        }
        let outcome = self.deploy_in_background(id, pending.fails);
        self.end_deployment(id, outcome);
    }

    /// Starts a deployment in the background. An ending that is not the default decides when it finishes.
    fn begin_deployment(&mut self, id: u64, down_first: bool, ending: Ending) {
        let (polls, due) = if ending == Ending::default() {
            let due = self.deploy_millis.map(|millis| self.now + millis);
            (self.deploy_polls, due)
        } else {
            (u32::MAX, Some(self.now + ending.after))
        };
        self.deploying.insert(id);
        if let Some(record) = self.records.get_mut(&id) {
            record.pending = Some(Pending {
                polls,
                due,
                down_first,
                fails: ending.fails,
            });
        }
    }

    /// A deployment by Portainer.
    pub(super) fn by_portainer(
        &self,
        endpoint: u64,
        id: u64,
        name: &str,
        text: &str,
        env: &[Variable],
    ) -> Result<Deployment, String> {
        let there = self.endpoints.get(&endpoint).ok_or("no such environment")?;
        let folder = format!("/data/compose/{id}");
        let engine = &there.engine;
        Ok(Deployment::by_portainer(
            engine, name, text, env, &folder, self.era,
        ))
    }

    /// Runs `compose down` on this host: removes containers and networks, keeps volumes (M04).
    pub fn down(&mut self, project: &str) {
        let engine = self.engine.id.clone();
        self.down_on(&engine, project);
    }

    /// Removes the project's named volumes, as `removeVolumes` in a DELETE does (N02).
    pub(super) fn remove_volumes(&mut self, endpoint: u64, project: &str) {
        let Some(there) = self.endpoints.get(&endpoint) else {
            return;
        };
        let (engine, label) = (&there.engine, self.label("project"));
        self.volumes.retain(|volume| {
            volume.engine != *engine || volume.labels.get(&label).is_none_or(|of| of != project)
        });
    }

    /// Runs `compose down` in an environment.
    pub(super) fn down_in(&mut self, endpoint: u64, project: &str) {
        if let Some(there) = self.endpoints.get(&endpoint) {
            let engine = there.engine.clone();
            self.down_on(&engine, project);
        }
    }

    /// Removes the containers of a project in an environment, but not its networks.
    pub(super) fn remove_project(&mut self, endpoint: u64, project: &str) {
        if let Some(there) = self.endpoints.get(&endpoint) {
            let engine = there.engine.clone();
            self.remove_containers(&engine, project);
        }
    }

    fn down_on(&mut self, engine: &str, project: &str) {
        self.remove_containers(engine, project);
        let label = self.label("project");
        self.networks.retain(|network| {
            network.engine != engine || network.labels.get(&label).is_none_or(|of| of != project)
        });
    }

    fn remove_containers(&mut self, engine: &str, project: &str) {
        let ids = self.project_on(engine, project).into_iter().map(|one| {
            // `down` stops it, and the engine removes what ran with `--rm`.
            let with_volumes = one.is_running() && one.host_config["AutoRemove"] == true;
            let volumes = if with_volumes {
                AnonymousVolumes::Remove
            } else {
                AnonymousVolumes::Keep
            };
            (one.id.clone(), volumes)
        });
        for (id, volumes) in ids.collect::<Vec<_>>() {
            self.remove_container(&id, volumes);
        }
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
