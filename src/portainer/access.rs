//! The status and the access rights of a record (B18), and the users, teams and rights of containers (B23).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use ureq::http::Method;

use super::{Error, Portainer, PortainerReader, Repository, failed_to, path_of, wire};
use crate::{
    failure::Failure,
    model::{Access, Grant, Record, WantedAccess},
    text::printable,
};

/// The status and the access rights of a record.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Whether a user stopped it (`Status` 2).
    pub inactive: bool,
    /// Who may use it. Without a resource control, only administrators may.
    pub access: Access,
    /// The ID of its resource control, if it has one.
    pub control: Option<i64>,
    /// When it was created, in seconds since 1970 (M17), if Portainer says so.
    pub created: Option<i64>,
    /// The repository that it is deployed from, if it is a Git stack (M24).
    pub git: Option<Repository>,
}

impl Standing {
    /// Reads the JSON of a record.
    pub(super) fn of(record: &Value) -> Self {
        let control = &record["ResourceControl"];
        Self {
            inactive: record["Status"] == 2,
            access: access_of(control),
            control: control["Id"].as_i64(),
            created: record["CreationDate"].as_i64(),
            git: Repository::of(record),
        }
    }
}

/// What a resource control gives.
fn access_of(control: &Value) -> Access {
    let ids = |list: &str, key: &str| {
        let entries = control[list].as_array().into_iter().flatten();
        entries.filter_map(|entry| entry[key].as_i64()).collect()
    };
    Access {
        users: ids("UserAccesses", "UserId"),
        teams: ids("TeamAccesses", "TeamId"),
        public: control["Public"] == true,
    }
}

/// The users and teams of Portainer: their names by ID.
#[derive(Debug, Default)]
pub struct People {
    users: BTreeMap<i64, String>,
    teams: BTreeMap<i64, String>,
}

impl People {
    /// Those who have this access. Somebody whose name is unknown has the ID as name.
    pub fn grants(&self, access: &Access) -> BTreeSet<Grant> {
        let name = |of: &BTreeMap<i64, String>, id: &i64| {
            of.get(id).cloned().unwrap_or_else(|| id.to_string())
        };
        let user = |id| Grant::User(name(&self.users, id));
        let team = |id| Grant::Team(name(&self.teams, id));
        let (users, teams) = (access.users.iter(), access.teams.iter());
        let public = access.public.then_some(Grant::Public);
        users
            .map(user)
            .chain(teams.map(team))
            .chain(public)
            .collect()
    }
}

/// The ID that has a name. Portainer ignores the case of names.
fn id_of(grant: &Grant, name: &str, all: &BTreeMap<i64, String>) -> Result<i64> {
    let is_it = |one: &&i64| all[one].to_lowercase() == name.to_lowercase();
    all.keys().find(is_it).copied().ok_or_else(|| {
        let known: Vec<&str> = all.values().map(String::as_str).collect();
        let hint = match known.as_slice() {
            [] => "Portainer has none".to_owned(),
            known => format!("Portainer has: {}", printable(&known.join(", "))),
        };
        let failure = Failure::new(format!("Portainer has no {grant}"));
        failure.hint(hint).into()
    })
}

impl PortainerReader {
    /// What `--access` asks for, if it is given. Fails if a user or team does not exist.
    pub fn wanted_access(&self, grants: &[Grant]) -> Result<Option<WantedAccess>> {
        if grants.is_empty() {
            return Ok(None);
        }
        let mut alone = grants
            .iter()
            .filter(|grant| matches!(grant, Grant::Public | Grant::Admins));
        if let Some(one) = alone.next().filter(|_| grants.len() > 1) {
            let flag = one.as_flag();
            return Err(anyhow!("--access {flag} excludes every other --access"));
        }
        let people = self.people();
        let people = people.context("cannot look up the users and teams of --access")?;
        let mut access = Access::default();
        for one in grants {
            match one {
                Grant::Public => access.public = true,
                Grant::Admins => {}
                Grant::User(name) => _ = access.users.insert(id_of(one, name, &people.users)?),
                Grant::Team(name) => _ = access.teams.insert(id_of(one, name, &people.teams)?),
            }
        }
        let grants = grants.iter().cloned().collect();
        Ok(Some(WantedAccess { grants, access }))
    }

    /// The users and teams. Only an administrator may list all of them.
    pub fn people(&self) -> Result<People> {
        let list = |what: &str, name: &str| {
            let action = format!("list the {what} of Portainer");
            let list = self.json(&format!("/api/{what}"), &action)?;
            let all = list.as_array().into_iter().flatten();
            let named = |one: &Value| Some((one["Id"].as_i64()?, one[name].as_str()?.to_owned()));
            Ok::<_, anyhow::Error>(all.filter_map(named).collect())
        };
        Ok(People {
            users: list("users", "Username")?,
            teams: list("teams", "Name")?,
        })
    }

    /// The resource controls that containers have of their own, by the container's ID: the ID of each, and what it gives.
    ///
    /// Portainer stores the labels of a container as its own control when it answers, unless the container has one or its
    /// stack is in Portainer (M23).
    pub fn own_controls(
        &self,
        endpoint: i64,
        ids: &[&str],
    ) -> Result<BTreeMap<String, (i64, Access)>> {
        let list = self.containers(endpoint, ids, "read who may use the containers")?;
        let own = |one: &Value| {
            let control = one.pointer("/Portainer/ResourceControl")?;
            let id = one["Id"].as_str()?;
            let is_own = control["ResourceId"] == id;
            is_own.then_some((id.to_owned(), (control["Id"].as_i64()?, access_of(control))))
        };
        Ok(list.iter().filter_map(own).collect())
    }

    /// Which of these containers Portainer lists on an environment (B37), by ID. It leaves out those that the API key may not
    /// see.
    pub fn container_ids(&self, endpoint: i64, ids: &[&str]) -> Result<BTreeSet<String>> {
        let action = format!("list the containers of environment {endpoint}");
        let list = self.containers(endpoint, ids, &action)?;
        let ids = list.iter().filter_map(|one| one["Id"].as_str());
        Ok(ids.map(str::to_owned).collect())
    }

    /// The containers with these IDs, as the engine of an environment lists them.
    fn containers(&self, endpoint: i64, ids: &[&str], action: &str) -> Result<Vec<Value>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids = ids.join("%22%2C%22");
        let path = format!(
            "/api/endpoints/{endpoint}/docker/containers/json?all=1&filters=%7B%22id%22%3A%5B%22{ids}%22%5D%7D"
        );
        let Value::Array(list) = self.json(&path, action)? else {
            let unexpected = wire::unexpected("expected a list of containers");
            return Err(failed_to(action)(unexpected.into()));
        };
        Ok(list)
    }
}

impl Portainer {
    /// Removes a resource control: its container then belongs to those who may use the stack.
    pub fn remove_control(&self, control: i64) -> Result<(), Error> {
        let path = format!("/api/resource_controls/{control}");
        let action = "remove the access rights of a container";
        self.0.client.delete(&path, action)
    }

    /// Stops a record: Portainer removes its containers and marks it inactive.
    pub fn stop(&self, record: &Record) -> Result<(), Error> {
        let action = format!("stop Portainer stack {}", record.id);
        let path = path_of(record).replacen('?', "/stop?", 1);
        let client = &self.0.client;
        client.change_object(&record.id, Method::POST, &path, &json!({}), &action)
    }

    /// Sets the access rights of the resource control `control`.
    pub fn set_access(&self, control: i64, access: &Access) -> Result<(), Error> {
        let action = "set the access rights of the stack";
        let body = json!({
            "Public": access.public,
            "Users": access.users,
            "Teams": access.teams,
            "AdministratorsOnly": !access.is_shared(),
        });
        let path = format!("/api/resource_controls/{control}");
        let client = &self.0.client;
        client.change_object(&control.to_string(), Method::PUT, &path, &body, action)
    }
}
