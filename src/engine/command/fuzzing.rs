//! What the fuzz targets call of this module that is private otherwise.

use anyhow::Result;

use super::wire;
use crate::model::Container;

pub(in crate::engine) fn inspected(output: &[u8]) -> Result<Vec<Container>> {
    let inspected: Vec<wire::Container> = serde_json::from_slice(output)?;
    Ok(inspected.into_iter().map(Container::from).collect())
}
