//! The arguments of `plan` and of `schema`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::{GitArguments, adopting::AccessArguments};
use crate::plan::Keep;

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
    /// Name of the stack
    #[arg(value_name = "STACK")]
    pub stack: OsString,
    /// Print how Portainer's copy differs from your file instead, with --reveal also the values of variables
    ///
    /// For a stack in Portainer: how it would change.
    #[arg(long, group = "values", conflicts_with_all = ["compare", "request", "output"])]
    pub diff: bool,
    /// Also show what `stacklift migrate` would do
    #[arg(long, conflicts_with = "request")]
    pub compare: bool,
    /// Print the request to Portainer instead, with --reveal also the values of variables
    #[arg(long, group = "values", conflicts_with = "output")]
    pub request: bool,
    #[command(flatten)]
    pub keep: Keep,
    #[command(flatten)]
    pub access: AccessArguments,
    #[command(flatten)]
    pub git: GitArguments,
    /// Format of the plan
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Exit with 3 if something would be lost, and with 1 if the stack cannot be adopted
    ///
    /// Exits with 0 if nothing is lost, or if there is nothing to do. Without this flag, the exit code is also 0 if something
    /// would be lost, and if the stack was edited in Portainer.
    #[arg(long)]
    pub exit_code: bool,
}

/// The outputs with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Described {
    /// The output of `stacklift plan --output json`
    Plan,
    /// The output of `stacklift list --output json`
    List,
    /// The output of `stacklift adopt --output json`
    Adopt,
    /// The output of `stacklift doctor --output json`
    Doctor,
    /// The output of `stacklift config --output json`
    Config,
    /// The output of `stacklift adopt --all --output json`
    AdoptAll,
}
