//! The status and the access rights of a record (B18).

use serde_json::{Value, json};
use ureq::http::Method;

use super::{Error, Portainer, path_of};
use crate::model::{Access, Record};

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
        let ids = |list: &str, key: &str| {
            let entries = control[list].as_array().into_iter().flatten();
            entries.filter_map(|entry| entry[key].as_i64()).collect()
        };
        Self {
            inactive: record["Status"] == 2,
            access: Access {
                users: ids("UserAccesses", "UserId"),
                teams: ids("TeamAccesses", "TeamId"),
                public: control["Public"] == true,
            },
            control: control["Id"].as_i64(),
            created: record["CreationDate"].as_i64(),
        }
    }
}

impl Portainer {
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
        let is_shared = access.public || !access.users.is_empty() || !access.teams.is_empty();
        let body = json!({
            "Public": access.public,
            "Users": access.users,
            "Teams": access.teams,
            "AdministratorsOnly": !is_shared,
        });
        let path = format!("/api/resource_controls/{control}");
        let client = &self.0.client;
        client.change_or_refuse(Method::PUT, &path, &body, action)
    }
}
