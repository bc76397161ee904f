//! The flags of `stacklift export`.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArguments {
    /// Name of the Portainer stack
    #[arg(value_name = "STACK", required_unless_present = "all")]
    pub stack: Option<OsString>,
    /// Export every stack of the environment, each into a directory with its name
    #[arg(long, conflicts_with = "stack")]
    pub all: bool,
    /// Directory to write to [default: ./STACK]
    ///
    /// The directory must be empty or not exist. With --all, this is the parent directory of the stacks'
    /// directories [default: .].
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Replace compose.yaml and .env in a directory that is not empty
    #[arg(long)]
    pub force: bool,
}
