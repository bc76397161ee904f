//! The status and the access rights of a record (B18), and the users, teams and rights of containers (B23).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::{Value, json};
use ureq::http::Method;

use super::{Error, Portainer, PortainerReader, failed_to, path_of, wire};
use crate::{
    failure::Failure,
    model::{Access, Grant, Record, WantedAccess},
    text::printable,
};

/// The status and the access rights of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Whether a user stopped it (`Status` 2).
    pub inactive: bool,
    /// Who may use it. Without a resource control, only administrators may.
    pub access: Access,
    /// The ID of its resource control, if it has one.
    pub control: Option<i64>,
    /// When it was created, in seconds since 1970 (M17), if Portainer says so.
    pub created: Option<i64>,
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
        let users = access
            .users
            .iter()
            .map(|id| Grant::User(name(&self.users, id)));
        let teams = access
            .teams
            .iter()
            .map(|id| Grant::Team(name(&self.teams, id)));
        let public = access.public.then_some(Grant::Public);
        users.chain(teams).chain(public).collect()
    }

    /// Removes users and teams that do not exist.
    pub fn retain_existing(&self, grants: &mut BTreeSet<Grant>) {
        grants.retain(|one| self.id_of(one).is_ok());
    }

    /// What `--access` asks for. Fails if a user or team does not exist.
    pub fn wanted(&self, grants: &[Grant]) -> Result<WantedAccess> {
        let grants: BTreeSet<Grant> = grants.iter().cloned().collect();
        let mut access = Access::default();
        for one in &grants {
            match (one, self.id_of(one)?) {
                (Grant::User(_), Some(id)) => _ = access.users.insert(id),
                (_, Some(id)) => _ = access.teams.insert(id),
                _ => access.public = *one == Grant::Public,
            }
        }
        Ok(WantedAccess { grants, access })
    }

    /// The ID of a user or team. Portainer ignores the case of names.
    fn id_of(&self, grant: &Grant) -> Result<Option<i64>> {
        let (kind, name, all) = match grant {
            Grant::User(name) => ("user", name, &self.users),
            Grant::Team(name) => ("team", name, &self.teams),
            Grant::Public | Grant::Admins => return Ok(None),
        };
        let is_it = |one: &&i64| all[one].to_lowercase() == name.to_lowercase();
        if let Some(id) = all.keys().find(is_it) {
            return Ok(Some(*id));
        }
        let known: Vec<&str> = all.values().map(String::as_str).collect();
        let hint = match known.as_slice() {
            [] => format!("Portainer has no {kind}s"),
            known => format!("its {kind}s are: {}", known.join(", ")),
        };
        let failure = Failure::new(format!("Portainer has no {grant}"));
        Err(failure.hint(printable(&hint)).into())
    }
}

impl PortainerReader {
    /// The users and teams. Only an administrator may list all of them.
    pub fn people(&self) -> Result<People> {
        let list = |what: &str, name: &str| {
            let action = format!("list the {what} of Portainer");
            let response = self.client.get(&format!("/api/{what}"), &action)?;
            let list = wire::read(response).map_err(failed_to(&action))?;
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
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let action = "read who may use the containers";
        let ids = ids.join("%22%2C%22");
        let path = format!(
            "/api/endpoints/{endpoint}/docker/containers/json?all=1&filters=%7B%22id%22%3A%5B%22{ids}%22%5D%7D"
        );
        let list = self.client.get(&path, action)?;
        let list = wire::read(list).map_err(failed_to(action))?;
        let own = |one: &Value| {
            let control = one.pointer("/Portainer/ResourceControl")?;
            let id = one["Id"].as_str()?;
            let is_own = control["ResourceId"] == id;
            is_own.then_some((id.to_owned(), (control["Id"].as_i64()?, access_of(control))))
        };
        Ok(list
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(own)
            .collect())
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
        client.change_or_refuse(Method::POST, &path, &json!({}), &action)
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
        client.change_or_refuse(Method::PUT, &path, &body, action)
    }
}
