//! What a request to Portainer contains.

use serde::Deserialize;

use crate::{
    http::Incoming,
    world::{PortainerError, Variable},
};

pub(super) fn number(incoming: &Incoming, name: &str) -> Result<Option<u64>, PortainerError> {
    let Some(text) = incoming.query(name) else {
        return Ok(None);
    };
    let parsed = text
        .parse::<i64>()
        .map(|number| Some(u64::try_from(number).unwrap_or(0)));
    parsed.map_err(|_| {
        let message = format!("Invalid query parameter: {name}");
        PortainerError::new(400, &message, "Invalid query parameter")
    })
}

pub(super) fn missing_endpoint() -> PortainerError {
    PortainerError::new(
        400,
        "Invalid query parameter: endpointId",
        "Missing query parameter",
    )
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct AccessPayload {
    pub public: bool,
    pub administrators_only: bool,
    pub users: Option<Vec<u64>>,
    pub teams: Option<Vec<u64>>,
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
pub(super) struct CreatePayload {
    pub name: String,
    pub stack_file_content: String,
    pub env: Option<Vec<EnvPayload>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct UpdatePayload {
    pub stack_file_content: String,
    pub env: Option<Vec<EnvPayload>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct EnvPayload {
    pub name: String,
    pub value: String,
}

pub(super) fn variables(env: Option<Vec<EnvPayload>>) -> Option<Vec<Variable>> {
    let variable = |one: EnvPayload| Variable {
        name: one.name,
        value: one.value,
    };
    env.map(|env| env.into_iter().map(variable).collect())
}

pub(super) fn payload<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, PortainerError> {
    serde_json::from_slice(body).map_err(|error| {
        let details = if error.is_eof() {
            "Unexpected EOF".to_owned()
        } else {
            error.to_string()
        };
        PortainerError::new(400, "Invalid request payload", &details)
    })
}
