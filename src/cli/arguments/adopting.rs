//! The flags of `stacklift adopt`.

use std::{ffi::OsString, time::Duration};

use clap::Args;

use super::{super::options, GitArguments, Output};
use crate::{adopt::OnFailure, model::Grant, plan::AdoptFlags};

/// clap would show the names beside `--all`.
const USAGE: &str = "\
stacklift adopt [OPTIONS] <STACK>...
       stacklift adopt [OPTIONS] --all";

#[derive(Debug, Args)]
#[command(override_usage = USAGE)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(in crate::cli) struct AdoptArguments {
    /// Names of one or more stacks
    #[arg(value_name = "STACK")]
    pub stacks: Vec<OsString>,
    /// Adopt every stack in the stacks root
    ///
    /// Leaves out stacks that cannot be adopted. Shows the stacks that will be adopted, and asks once if one of them is
    /// interrupted or loses something. Adopts one after the other, in the order of `stacklift list`. Stops at the first
    /// failure. Run it again to continue: a stack that is already adopted is not touched.
    #[arg(long, conflicts_with_all = ["stacks", "overwrite"])]
    pub all: bool,
    /// With --all, leave out these stacks
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        conflicts_with = "stacks"
    )]
    pub exclude: Vec<OsString>,
    /// With --all, also adopt stacks outside the stacks root
    #[arg(long, conflicts_with = "stacks", hide_short_help = true)]
    pub everywhere: bool,
    /// With --all, leave out what would be interrupted
    ///
    /// Also leaves out stacks that would lose something. It asks nothing, and needs no terminal.
    #[arg(long, conflicts_with = "stacks")]
    pub uninterrupted: bool,
    /// Continue with the next stack after a failure
    #[arg(long, hide_short_help = true)]
    pub keep_going: bool,
    /// Do not ask for confirmation
    ///
    /// stacklift asks if a container will or may be recreated or removed, if something will be lost, or if the whole stack is
    /// stopped. Without a terminal, the adoption is refused instead.
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub adoption: AdoptionArguments,
    /// How long to wait for healthy containers
    #[arg(long, value_name = "DURATION", value_parser = options::duration, default_value = "60s")]
    #[arg(hide_short_help = true)]
    pub wait: Duration,
    /// What to do with containers that a failed adoption changed
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnFailure::Restore)]
    #[arg(hide_short_help = true)]
    pub on_failure: OnFailure,
    /// Show what would be done, without doing it
    ///
    /// Like `stacklift plan`, but only for this command.
    #[arg(long)]
    pub dry_run: bool,
    /// Format of the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
    #[arg(hide_default_value = true)]
    pub output: Output,
    /// Exit with 3 if something would be lost, and with 1 if the run would be refused
    #[arg(long, requires = "dry_run", hide_short_help = true)]
    pub exit_code: bool,
}

/// What an adoption does, and with it a plan.
#[derive(Debug, Args)]
pub(in crate::cli) struct AdoptionArguments {
    #[command(flatten)]
    pub flags: AdoptFlags,
    #[command(flatten)]
    pub access: AccessArguments,
    #[command(flatten)]
    pub git: GitArguments,
}

/// Who may use the stack in Portainer.
#[derive(Debug, Args)]
pub(in crate::cli) struct AccessArguments {
    /// Who else may use the stack, such as team:NAME
    ///
    /// public, admins, user:NAME or team:NAME. Administrators can always use it. Can be repeated. Set for the stack and its containers after the deployment. By default, a new
    /// stack is for administrators only, and an update keeps what the stack has. Needs an administrator's API key.
    #[arg(long = "access", value_name = "WHO")]
    pub grants: Vec<Grant>,
}
