//! `stacklift schema`: the JSON schemas of the outputs.

use anyhow::{Context as _, Result};

use super::{
    Console,
    arguments::{Described, SchemaArguments},
    list::List,
    report::Report,
};
use crate::adopt;

pub(super) fn run(arguments: &SchemaArguments, console: &Console) -> Result<()> {
    let schema = match arguments.output {
        Described::Plan => schemars::schema_for!(Report),
        Described::List => schemars::schema_for!(List),
        Described::Adopt => schemars::schema_for!(adopt::Report),
    };
    let json = serde_json::to_string_pretty(&schema).context("failed to write JSON")?;
    console.line(&json);
    Ok(())
}
