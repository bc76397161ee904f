//! The manager's records and what its calls do.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{Era, Refusal, Volumes, World, deployment::Deployment};

/// The manager's entry of a stack.
#[derive(Clone, PartialEq, Serialize)]
pub struct Record {
    /// Its id.
    pub id: u64,
    /// The normalised name (M02).
    pub name: String,
    /// The endpoint it is on.
    pub endpoint: u64,
    /// The compose text.
    pub text: String,
    /// The variables; `None` where the create left them out.
    pub env: Option<Vec<Variable>>,
    /// Active, inactive, deploying, in error.
    pub status: Status,
    /// Seconds since 1970.
    pub created: i64,
    /// The user's name.
    pub created_by: String,
    /// Seconds since 1970; 0 is never.
    pub updated: i64,
    /// The user's name; empty for never.
    pub updated_by: String,
    /// Who may see it.
    pub control: ResourceControl,
    /// `AutoUpdate`, as it is sent.
    pub auto_update: Option<Value>,
    /// `GitConfig`, as it is sent.
    pub git: Option<Value>,
    /// A webhook of the record's own.
    pub webhook: Option<String>,
    /// What the deployments came to, oldest first (N01).
    pub deployments: Vec<DeploymentNote>,
    pub(super) pending: Option<Pending>,
}

impl fmt::Debug for Record {
    // Without text and env: they hold values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("endpoint", &self.endpoint)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A deployment that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Pending {
    polls: u32,
    due: Option<i64>,
    /// Whether `down` runs before it (N07).
    down_first: bool,
}

/// One variable of a record.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, as `.env` wrote it.
    pub value: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

/// The state of a record, by the number that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Status {
    /// 1
    Active,
    /// 2
    Inactive,
    /// 3
    Deploying,
    /// 4
    Error,
}

impl Status {
    /// The number that is sent.
    pub fn number(self) -> u8 {
        match self {
            Self::Active => 1,
            Self::Inactive => 2,
            Self::Deploying => 3,
            Self::Error => 4,
        }
    }
}

/// What a deployment came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeploymentNote {
    /// The state from then on.
    pub status: Status,
    /// Seconds since 1970.
    pub time: i64,
    /// The reason of an error.
    pub message: String,
}

/// Who may see a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResourceControl {
    /// Its id.
    pub id: u64,
    /// Ids of users.
    pub users: Vec<u64>,
    /// Ids of teams.
    pub teams: Vec<u64>,
    /// Whether everyone may.
    pub public: bool,
}

impl Record {
    pub(super) fn shift_due(&mut self, millis: i64) {
        if let Some(due) = self
            .pending
            .as_mut()
            .and_then(|pending| pending.due.as_mut())
        {
            *due += millis;
        }
    }
}

/// What a PUT changes.
pub struct Update {
    /// The new text.
    pub text: String,
    /// The new variables.
    pub env: Option<Vec<Variable>>,
}

/// The name as the manager writes it (M02).
fn normalise(name: &str) -> String {
    let allowed = |c: &char| matches!(c, '-' | '_' | 'a'..='z' | '0'..='9');
    name.to_lowercase().chars().filter(allowed).collect()
}

impl World {
    /// Adds a record as if the manager had made it before; nothing is deployed.
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

    /// Whether a new record may be made on the endpoint (404).
    pub fn check_endpoint(&self, endpoint: u64) -> Result<(), Refusal> {
        let message =
            "Unable to find an environment with the specified identifier inside the database";
        match self.endpoints.get(&endpoint) {
            Some(_) => Ok(()),
            None => Err(Refusal::no_endpoint(message, endpoint)),
        }
    }

    /// CREATE: `compose up` for that project, and a record where it succeeds (M05, M06, N01, N06).
    pub fn create(
        &mut self,
        endpoint: u64,
        name: &str,
        text: String,
        env: Option<Vec<Variable>>,
        user: &str,
    ) -> Result<u64, Refusal> {
        self.check_endpoint(endpoint)?;
        let name = normalise(name);
        // On any endpoint (M20).
        if self.records.values().any(|record| record.name == name) {
            let text = format!("A stack with the normalized name '{name}' already exists");
            return Err(Refusal::new(409, &text, &text));
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
                .map_err(|reason| Refusal::failed(&reason))?;
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

    /// PUT: changes text and env, then `compose up` (M06, M16, N07).
    pub fn update(
        &mut self,
        id: u64,
        endpoint: Option<u64>,
        update: Update,
        user: &str,
    ) -> Result<(), Refusal> {
        let record = self
            .records
            .get(&id)
            .ok_or_else(|| Refusal::no_record(&id.to_string()))?;
        let endpoint = endpoint.unwrap_or(record.endpoint);
        if !self.endpoints.contains_key(&endpoint) {
            let message =
                "Unable to find the environment associated to the stack inside the database";
            return Err(Refusal::no_endpoint(message, endpoint));
        }
        if record.status == Status::Deploying {
            return Err(Refusal::busy());
        }
        let (name, in_error) = (record.name.clone(), record.status == Status::Error);
        if self.era == Era::Sync {
            let env = update.env.as_deref().unwrap_or_default();
            self.deploy(endpoint, id, &name, &update.text, env)
                .map_err(|reason| Refusal::failed(&reason))?;
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

    /// DELETE: `compose down` on the endpoint that is named, then the record goes (M03, M04, M19, N07).
    pub fn delete(&mut self, id: u64, endpoint: u64) -> Result<(), Refusal> {
        let record = self
            .records
            .get(&id)
            .ok_or_else(|| Refusal::no_record(&id.to_string()))?;
        let Some(there) = self.endpoints.get(&endpoint) else {
            let message = "Unable to find the endpoint associated to the stack inside the database";
            return Err(Refusal::no_endpoint(message, endpoint));
        };
        if record.status == Status::Deploying {
            return Err(Refusal::busy());
        }
        let (engine, name) = (there.engine.clone(), record.name.clone());
        self.down_on(&engine, &name);
        self.records.remove(&id);
        Ok(())
    }

    /// One look at a record: a deployment goes on by one poll (N01).
    pub fn poll(&mut self, id: u64) -> Option<&Record> {
        let pending = self.records.get_mut(&id)?.pending.as_mut();
        if let Some(pending) = pending {
            if pending.polls == 0 {
                self.settle(id);
            } else if pending.polls != u32::MAX {
                pending.polls -= 1;
            }
        }
        self.records.get(&id)
    }

    /// Ends every deployment whose time is over.
    pub(super) fn settle_due(&mut self) {
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
            self.settle(id);
        }
    }

    /// Ends a deployment that goes on: now the containers change.
    pub fn settle(&mut self, id: u64) {
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

    /// `compose up` as the manager runs it: in its own folder, with what it can read there.
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
        let deployment = Deployment::by_manager(&engine, name, text, env, &folder, self.era);
        let outcome = self.up(&deployment);
        if outcome.is_err() && self.era == Era::Sync {
            self.down_on(&engine, name);
        }
        outcome
    }

    /// `compose down` on this host: containers and networks go, volumes stay (M04).
    pub fn down(&mut self, project: &str) {
        let engine = self.engine.id.clone();
        self.down_on(&engine, project);
    }

    /// What `removeVolumes` adds to a DELETE: named volumes of the project go, data and all (N02).
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
            self.remove_container(&id, Volumes::Kept);
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
