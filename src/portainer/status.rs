//! What Portainer says about itself and about the user of the API key (M22, B24).

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Error, PortainerReader, failed_to, http::Unread, wire};
use crate::model::{AdminOnly, Rights};

/// What Portainer says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Such as `2.23.0` (M17); `None` where the response does not say.
    pub version: Option<String>,
}

/// The user of the API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: Option<String>,
    /// Whether the user is an administrator; `None` where the response does not say. Other users may not see every record.
    pub is_administrator: Option<bool>,
}

impl PortainerReader {
    /// What Portainer says about itself. Needs no API key.
    pub fn status(&self) -> Result<Status> {
        let action = "read Portainer's version";
        let response = self.client.get("/api/system/status", action)?;
        let version = version(response).map_err(failed_to(action))?;
        Ok(Status { version })
    }

    /// Portainer's version, such as `2.23.0` (M17); `None` where the response does not say.
    pub fn version(&self) -> Result<Option<String>> {
        Ok(self.status()?.version)
    }

    /// The user of the API key.
    pub fn user(&self) -> Result<User> {
        let action = "get the user of the API key";
        let response = self.client.get("/api/users/me", action)?;
        user(response).map_err(failed_to(action))
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
                let is_forbidden = |what: &str| {
                    json["SecuritySettings"][format!("allow{what}ForRegularUsers")] == false
                };
                if is_forbidden("StackManagement") {
                    return Ok(Rights::NoStacks);
                }
                let restricted = ADMIN_ONLY
                    .into_iter()
                    .filter(|(what, _)| is_forbidden(what));
                Ok(Rights::OwnStacks(restricted.map(|(_, one)| one).collect()))
            }
            Err(Error::Refused { response, .. })
                if response.status == 403 && response.message().is_some() =>
            {
                Ok(Rights::NoEnvironment)
            }
            Err(Error::Refused { .. }) => Ok(Rights::OwnStacks(Vec::new())),
            Err(error) => Err(error.into()),
        }
    }
}

/// The settings of an environment that restrict the stacks of other users. Older versions have no `SecurityOpt`.
const ADMIN_ONLY: [(&str, AdminOnly); 7] = [
    ("BindMounts", AdminOnly::BindMounts),
    ("PrivilegedMode", AdminOnly::Privileged),
    ("HostNamespace", AdminOnly::HostPid),
    ("DeviceMapping", AdminOnly::Devices),
    ("SysctlSetting", AdminOnly::Sysctls),
    ("SecurityOpt", AdminOnly::SecurityOpt),
    ("ContainerCapabilities", AdminOnly::Capabilities),
];

/// The `Version` in Portainer's status (M17); `None` where it is missing or empty.
fn version(response: Unread) -> Result<Option<String>> {
    let json = wire::read(response)?;
    let version = json.get("Version").and_then(Value::as_str);
    Ok(version.filter(|text| !text.is_empty()).map(str::to_owned))
}

/// The `Username`, and whether the `Role` is 1, an administrator.
fn user(response: Unread) -> Result<User> {
    let json = wire::read(response)?;
    let name = json.get("Username").and_then(Value::as_str);
    let role = json.get("Role").and_then(Value::as_i64);
    Ok(User {
        name: name.map(str::to_owned),
        is_administrator: role.map(|role| role == 1),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ureq::{Body, http};

    use super::*;

    fn response(body: &[u8]) -> Unread {
        http::Response::new(Body::builder().data(body.to_vec()))
    }

    proptest! {
        #[test]
        fn any_response_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = version(response(&bytes));
            let _ = user(response(&bytes));
        }
    }
}
