//! `stacklift schema`: the JSON schemas of the outputs.

use anyhow::Result;

use super::{
    Console, adopt as command,
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
        Described::AdoptAll => schemars::schema_for!(command::AllReport),
    };
    console.json(&schema)
}
