//! What the fuzz targets call of this module that is private otherwise.

use anyhow::Result;

use super::{Changes, api, command, tidy};
use crate::model::Container;

/// Reads a body as the answer to a listing of the Engine API.
pub fn listed(body: &[u8]) -> Result<Vec<Container>> {
    api::fuzzing::listed(body).map(tidied)
}

/// Reads what the command printed as an inspection.
pub fn inspected(output: &[u8]) -> Result<Vec<Container>> {
    command::fuzzing::inspected(output).map(tidied)
}

/// Reads a body as the list of changes in a container's own layer.
pub fn changes(body: &[u8]) -> Result<Changes> {
    api::fuzzing::changes(body)
}

/// Reads a body as each of the other answers of the Engine API.
pub fn others(body: &[u8]) -> Vec<Result<()>> {
    api::fuzzing::others(body)
}

fn tidied(mut containers: Vec<Container>) -> Vec<Container> {
    containers.iter_mut().for_each(tidy);
    containers
}
