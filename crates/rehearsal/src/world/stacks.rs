//! What Portainer does with its stacks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    compose_files::ComposeFiles,
    container::Container,
    entities::{ADMIN, Endpoint},
    errors::Refused,
    record::{Files, Kind, Record, ResourceControl, Status, Work},
    resolve::Project,
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
        let mut record = self.new_record(name, endpoint);
        (record.text, record.env) = (text.to_owned(), Some(Vec::new()));
        let id = record.id;
        self.records.insert(id, record);
        id
    }

    /// An environment by its ID.
    pub fn endpoint(&self, id: u64) -> Result<&Endpoint, Refused> {
        let message =
            "Unable to find an environment with the specified identifier inside the database";
        let missing = || Refused::no_endpoint(message, id);
        self.endpoints.get(&id).ok_or_else(missing)
    }

    /// Whether an environment is the engine of this host. The containers of others are not simulated.
    pub fn is_here(&self, endpoint: u64) -> bool {
        let environment = self.endpoints.get(&endpoint);
        environment
            .is_some_and(|environment| environment.engine == self.engine && !environment.is_clone)
    }

    /// Checks a request to create a stack, and gives the stack its ID.
    pub fn prepare_create(&mut self, endpoint: u64, name: &str) -> Result<Work, Refused> {
        let name = normalize(name);
        // M20
        let mut same = self.records.values().filter(|record| record.name == name);
        let has_containers = self.is_here(endpoint) && !self.project(&name).is_empty();
        let is_taken = same.clone().any(|record| record.endpoint == endpoint)
            || (self.era != Era::Async && has_containers && same.next().is_some());
        if is_taken {
            let text = format!("A stack with the normalized name '{name}' already exists");
            return Err(Refused::same(409, &text));
        }
        let record = self.new_record(&name, endpoint);
        let kind = Kind::Create;
        Ok(Work { kind, record })
    }

    /// A stack by its ID.
    pub fn record(&self, id: u64) -> Result<&Record, Refused> {
        let missing = || Refused::no_record(&id.to_string());
        self.records.get(&id).ok_or_else(missing)
    }

    /// The same with the ID as it is in the path of a request.
    pub fn record_of(&self, id: &str) -> Result<&Record, Refused> {
        let missing = || Refused::no_record(id);
        let found = id.parse().ok().and_then(|id: u64| self.records.get(&id));
        found.ok_or_else(missing)
    }

    /// Checks a request to update or delete a stack.
    pub fn prepare(&self, id: u64, endpoint: Option<u64>, kind: Kind) -> Result<Work, Refused> {
        let mut record = self.record(id)?.clone();
        record.endpoint = endpoint.unwrap_or(record.endpoint);
        if !self.endpoints.contains_key(&record.endpoint) {
            let message = "Unable to find the endpoint associated to the stack inside the database";
            return Err(Refused::no_endpoint(message, record.endpoint));
        }
        if record.status == Status::Deploying {
            return Err(Refused::same(409, "The stack deployment is in progress"));
        }
        Ok(Work { kind, record })
    }

    /// Performs a change. Returns the ID of the stack.
    ///
    /// The old Portainer runs `compose up` first and keeps a new stack only if that succeeds (M05, M06). The newer one
    /// deploys in the background (N01, N06).
    ///
    /// # Errors
    /// The error response of Portainer.
    pub fn perform(&mut self, work: &Work) -> Result<u64, Refused> {
        let Record {
            id, endpoint, name, ..
        } = &work.record;
        if work.kind == Kind::Delete {
            self.down_in(*endpoint, name);
        } else if self.era == Era::Async {
            self.store_deploying(work, Some(self.deploy_polls));
            return Ok(*id);
        } else {
            let created = self.create(&work.record);
            let outcome = created.and_then(|created| self.start_all(&created));
            outcome.map_err(|reason| self.undo(work, &reason))?;
        }
        self.complete(work)
    }

    /// Runs `compose down` after a deployment that failed for this reason.
    pub fn undo(&mut self, work: &Work, reason: &str) -> Refused {
        let sent = &work.record;
        self.down_in(sent.endpoint, &sent.name);
        // A new deployment of a Git stack has replaced its clone (M24).
        if let Some(record) = self.records.get_mut(&sent.id).filter(|_| sent.recreates) {
            record.text.clone_from(&sent.text);
            record.files.clone_from(&sent.files);
        }
        Refused::failed(reason)
    }

    /// Writes a change that succeeded to Portainer's database. Returns the ID of the stack.
    ///
    /// # Errors
    /// If a stack that is updated is gone.
    pub fn complete(&mut self, work: &Work) -> Result<u64, Refused> {
        let mut record = work.record.clone();
        let (id, now) = (record.id, self.seconds());
        match work.kind {
            Kind::Create => record.created = now,
            Kind::Update => {
                self.record(id)?;
                record.updated = now;
                record.status = Status::Active;
            }
            Kind::Delete => {
                self.records.remove(&id);
                return Ok(id);
            }
        }
        self.records.insert(id, record);
        Ok(id)
    }

    /// Stores a stack that is being deployed: [`Self::end_deployment`] ends it, or so many polls do.
    pub fn store_deploying(&mut self, work: &Work, polls: Option<u32>) {
        let id = work.record.id;
        let before = self.records.get(&id);
        let (status, text) = before.map(|old| (old.status, old.text.clone())).unzip();
        // The stack was there when the request was checked.
        let _ = self.complete(work);
        let note = self.note(Status::Deploying, "");
        if let Some(record) = self.records.get_mut(&id) {
            record.status = Status::Deploying;
            record.deployments = vec![note];
            record.before = text;
            record.was_in_error = status == Some(Status::Error);
            record.polls = polls;
        }
    }

    /// Ends a deployment. A stack that is gone stays gone. The update that fails leaves the text before it, and its own
    /// variables (N15).
    pub fn end_deployment(&mut self, id: u64, outcome: Result<(), String>) {
        let (status, message) = match outcome {
            Ok(()) => (Status::Active, String::new()),
            Err(reason) => (Status::Error, format!("failed to deploy a stack: {reason}")),
        };
        let note = self.note(status, &message);
        if let Some(record) = self.records.get_mut(&id) {
            record.status = status;
            record.deployments.push(note);
            (record.polls, record.was_in_error) = (None, false);
            if let Some(text) = record.before.take().filter(|_| status == Status::Error) {
                record.text = text;
            }
        }
    }

    fn note(&self, status: Status, message: &str) -> Value {
        json!({ "Status": status as u8, "Time": self.seconds(), "Message": message })
    }

    /// Reads a stack. A deployment in progress advances by one poll (N01).
    pub(crate) fn poll(&mut self, id: u64) {
        let record = self.records.get_mut(&id);
        match record.and_then(|record| record.polls.as_mut()) {
            Some(0) => self.finish_deployment(id),
            Some(polls) => *polls -= 1,
            None => {}
        }
    }

    /// Finishes a deployment in progress: this is when containers change.
    pub fn finish_deployment(&mut self, id: u64) {
        let record = self.records.get(&id).cloned();
        if let Some(record) = record.filter(|record| record.status == Status::Deploying) {
            let outcome = self.create(&record);
            let outcome = outcome.and_then(|created| self.start_all(&created));
            self.end_deployment(id, outcome);
        }
    }

    /// The first half of the `up` of a stack. One that was in error is removed first (N07). Returns the IDs of the
    /// containers to start.
    ///
    /// # Errors
    /// The message that Compose prints.
    pub fn create(&mut self, record: &Record) -> Result<Vec<String>, String> {
        if record.was_in_error {
            self.down_in(record.endpoint, &record.name);
        }
        let project = self.project_of(record)?;
        if !self.is_here(record.endpoint) {
            return Ok(Vec::new());
        }
        self.create_all(&project)
    }

    /// The deployment of a stack: its directory contains only the Compose file and `stack.env` (M07, M11), or a clone. There,
    /// `stack.env` lies at the root, after the `.env` next to the Compose file, which Compose reads itself if there are no
    /// variables.
    fn project_of(&self, record: &Record) -> Result<Project, String> {
        let at = |name: &str| format!("/data/compose/{}/{name}", record.id);
        let files = record.entries.iter().map(|name| at(name));
        let files = files.collect::<Vec<_>>();
        let there = record.files.iter();
        let mut there = there
            .map(|(name, text)| (at(name), text.clone()))
            .collect::<Files>();
        let folder = files[0].rsplit_once('/').map_or("", |(folder, _)| folder);
        let own = there.get(&format!("{folder}/.env"));
        let own = own.map(|own| format!("{own}\n"));
        let variables = record.env.iter().flatten();
        let lines = variables.map(|variable| format!("{}={}\n", variable.name, variable.value));
        let lines = lines.collect::<Vec<_>>();
        let mut env_files = Vec::new();
        if !lines.is_empty() {
            env_files.push(at("stack.env"));
            there.insert(at("stack.env"), own.into_iter().chain(lines).collect());
        }
        there.insert(files[0].clone(), record.text.clone());
        let resolved = Project::resolve(
            &ComposeFiles {
                project: Some(&record.name),
                folder,
                files: &files,
                env_files: &env_files,
                shell: &BTreeMap::new(),
                interpolates: true,
                home: "/root",
                read: &|path| there.get(path).cloned(),
            },
            self.era != Era::Sync,
        )?;
        Ok(Project {
            removes_orphans: resolved.removes_orphans.or(record.prune),
            recreates_all: record.recreates,
            ..resolved
        })
    }

    /// Runs `compose down`: removes containers and networks, keeps volumes (M04).
    pub fn down(&mut self, project: &str) {
        self.remove_containers(project);
        let label = self.label("project");
        self.networks
            .retain(|network| network["Labels"][&label] != project);
    }

    /// Runs `compose down` in an environment.
    pub fn down_in(&mut self, endpoint: u64, project: &str) {
        if self.is_here(endpoint) {
            self.down(project);
        }
    }

    /// Removes the containers of a project, as `compose down` does.
    pub fn remove_containers(&mut self, project: &str) {
        // `down` stops it, and the engine removes what ran with `--rm`.
        let with_volumes =
            |one: &Container| one.is_running() && one.host_config["AutoRemove"] == true;
        self.remove_all(&self.ids(project, with_volumes), true);
        self.remove_all(&self.ids(project, |_| true), false);
    }

    /// A stack with a new ID, without text and variables.
    fn new_record(&mut self, name: &str, endpoint: u64) -> Record {
        let id = self.next_record;
        self.next_record += 1;
        Record {
            id,
            name: name.to_owned(),
            endpoint,
            created: self.seconds(),
            created_by: ADMIN.to_owned(),
            entries: vec!["docker-compose.yml".to_owned()],
            control: ResourceControl {
                id,
                ..ResourceControl::default()
            },
            ..Record::default()
        }
    }
}
