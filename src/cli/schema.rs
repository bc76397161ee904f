//! `stacklift schema`: the JSON schemas of the outputs.

use anyhow::Result;

use super::{Console, arguments::Described, config::Config};
use crate::report::{AdoptReport, AllReport, DoctorReport, ListReport, PlanReport};

pub(super) fn run(output: Described, console: &Console) -> Result<()> {
    let schema = match output {
        Described::Plan => schemars::schema_for!(PlanReport),
        Described::List => schemars::schema_for!(ListReport),
        Described::Doctor => schemars::schema_for!(DoctorReport),
        Described::Config => schemars::schema_for!(Config),
        Described::Adopt => schemars::schema_for!(AdoptReport),
        Described::AdoptAll => schemars::schema_for!(AllReport),
    };
    console.json(&schema)
}
