//! The arguments of `plan`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::adopting::AdoptionArguments;

/// The formats of a plan and of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Output {
    /// Text for people
    Text,
    /// JSON; `stacklift schema` prints its schema
    Json,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(in crate::cli) struct PlanArguments {
    /// Names of one or more stacks; `*` stands for any characters
    #[arg(value_name = "STACK", required = true)]
    pub stacks: Vec<OsString>,
    /// Print only how Portainer's copy differs from your file
    ///
    /// For a stack in Portainer: how it would change. With --reveal, also the values of variables.
    #[arg(long, group = "values", conflicts_with_all = ["compare", "request", "output"])]
    pub diff: bool,
    /// Also show what `stacklift migrate` would do
    #[arg(long, conflicts_with = "request")]
    pub compare: bool,
    /// Print only the request to Portainer
    ///
    /// With --reveal, also the values of variables.
    #[arg(long, group = "values", conflicts_with = "output")]
    pub request: bool,
    /// Format of the plan
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Exit with 3 if something would be lost
    ///
    /// Exits with 0 if the stack can be adopted without a loss, or if there is nothing to do, and otherwise with 1. Without
    /// this flag, the exit code is also 0 if something would be lost, or if the stack was edited in Portainer.
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten, next_help_heading = "Flags of `stacklift adopt`")]
    pub adoption: AdoptionArguments,
}
