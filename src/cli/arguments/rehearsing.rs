//! The flags of `stacklift rehearse`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use rehearsal::Era;

#[derive(Debug, Args)]
pub(in crate::cli) struct RehearseArguments {
    /// Example stack, or one of your stacks with --stacks-root, --dir or `STACKLIFT_STACKS_ROOT`
    /// [default: books-db]
    #[arg(value_name = "STACK")]
    pub stack: Option<OsString>,
    /// What to rehearse
    #[arg(long = "as", value_name = "WAY", value_enum, default_value_t = RehearsedWay::Adopt)]
    pub way: RehearsedWay,
    /// First version of Portainer that behaves like the simulated one
    #[arg(long, value_name = "ERA", value_enum, default_value_t = EraArgument::Sync)]
    pub era: EraArgument,
    /// Override the safety checks
    #[arg(long)]
    pub force: bool,
}

/// `--as`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum RehearsedWay {
    /// The plan and an adoption; then a migration of the same stack, to compare
    Adopt,
    /// A migration
    Migrate,
}

/// `--era`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum EraArgument {
    /// Portainer up to 2.23: runs a Compose program
    #[value(name = "2.23", alias = "sync")]
    Sync,
    /// Portainer 2.24 to 2.40: has Compose built in
    #[value(name = "2.24")]
    Library,
    /// Portainer 2.41 and later: also responds before the deployment
    #[value(name = "2.41", alias = "async")]
    Async,
}

impl From<EraArgument> for Era {
    fn from(era: EraArgument) -> Self {
        match era {
            EraArgument::Sync => Self::Sync,
            EraArgument::Library => Self::Library,
            EraArgument::Async => Self::Async,
        }
    }
}
