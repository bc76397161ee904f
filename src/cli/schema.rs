//! `stacklift schema`: the JSON schemas of the outputs.

use anyhow::Result;

use super::{
    Console,
    arguments::{Described, SchemaArguments},
    config::Config,
    doctor::Diagnosis,
    list::List,
    report::Report,
};
use crate::adopt;

pub(super) fn run(arguments: &SchemaArguments, console: &Console) -> Result<()> {
    let schema = match arguments.output {
        Described::Plan => schemars::schema_for!(Report),
        Described::List => schemars::schema_for!(List),
        Described::Doctor => schemars::schema_for!(Diagnosis),
        Described::Config => schemars::schema_for!(Config),
        Described::Adopt => schemars::schema_for!(adopt::Report),
    };
    console.json(&schema)
}
