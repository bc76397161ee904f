//! What the user of the API key sees and may do (M22, B24).

use anyhow::{Context as _, Result};

use super::{Error, PortainerReader, failed_to, wire};
use crate::model::Rights;

impl PortainerReader {
    /// What the user of the API key sees and may do on an environment.
    pub fn rights(&self, endpoint: i64) -> Rights {
        let rights = || {
            let role = self.user()?.is_administrator;
            Ok(
                match role.context("the response of Portainer does not name the user's role")? {
                    true => Rights::Administrator,
                    false if self.manages_stacks(endpoint)? => Rights::OwnStacks,
                    false => Rights::NoStacks,
                },
            )
        };
        rights().unwrap_or_else(|error: anyhow::Error| Rights::Unknown(format!("{error:#}")))
    }

    /// Whether users who are not administrators may manage stacks, as far as Portainer says. A user who may not use the
    /// environment at all is refused there.
    fn manages_stacks(&self, endpoint: i64) -> Result<bool> {
        let action = format!("read the settings of environment {endpoint}");
        match self
            .client
            .get(&format!("/api/endpoints/{endpoint}"), &action)
        {
            Ok(response) => {
                let json = wire::read(response).map_err(failed_to(&action))?;
                Ok(json["SecuritySettings"]["allowStackManagementForRegularUsers"] != false)
            }
            Err(Error::Refused { .. }) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
