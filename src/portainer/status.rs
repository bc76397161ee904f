//! What Portainer says about itself and about the user of the API key (M22, B24).

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};

use super::{Error, PortainerReader, failed_to, wire};
use crate::model::Rights;

/// The user of the API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: Option<i64>,
    pub name: Option<String>,
    /// Whether the user is an administrator; `None` where the response does not say. Other users may not see every record.
    pub is_administrator: Option<bool>,
}

impl PortainerReader {
    /// Portainer's version, such as `2.23.0` (M17); `None` where the response does not say. Needs no API key.
    pub fn version(&self) -> Result<Option<String>> {
        let status = self.json("/api/system/status", "read Portainer's version")?;
        let version = status["Version"].as_str().filter(|text| !text.is_empty());
        Ok(version.map(str::to_owned))
    }

    /// The user of the API key.
    pub fn user(&self) -> Result<User> {
        let user = self.json("/api/users/me", "get the user of the API key")?;
        Ok(User {
            id: user["Id"].as_i64(),
            name: user["Username"].as_str().map(str::to_owned),
            is_administrator: user["Role"].as_i64().map(|role| role == 1),
        })
    }

    /// What the user of the API key sees and may do on an environment.
    pub fn rights(&self, endpoint: i64) -> Rights {
        let rights = || {
            let role = self.user()?.is_administrator;
            if role.context("the response of Portainer does not name the user's role")? {
                return Ok(Rights::Administrator);
            }
            self.rights_of_others(endpoint)
        };
        rights().unwrap_or_else(|error: anyhow::Error| Rights::Unknown(format!("{error:#}")))
    }

    /// What users who are not administrators may do, as far as Portainer says.
    fn rights_of_others(&self, endpoint: i64) -> Result<Rights> {
        let action = format!("read the settings of environment {endpoint}");
        match self
            .client
            .get(&format!("/api/endpoints/{endpoint}"), &action)
        {
            Ok(response) => {
                let json = wire::read(response).map_err(failed_to(&action))?;
                let settings = json["SecuritySettings"].as_object().into_iter().flatten();
                let forbidden = settings.filter(|(_, is_allowed)| **is_allowed == false);
                let names = forbidden.filter_map(|(name, _)| {
                    let name = name.strip_prefix("allow")?;
                    Some(name.strip_suffix("ForRegularUsers")?.to_owned())
                });
                let names: BTreeSet<String> = names.collect();
                if names.contains("StackManagement") {
                    return Ok(Rights::NoStacks);
                }
                Ok(Rights::OwnStacks(names))
            }
            Err(error) if error.status() == Some(403) => Ok(Rights::NoEnvironment),
            Err(Error::Refused { .. }) => Ok(Rights::OwnStacks(BTreeSet::new())),
            Err(error) => Err(error.into()),
        }
    }
}
