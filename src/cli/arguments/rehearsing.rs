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
    /// API version of the simulated Portainer
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
    /// Portainer 2.40 and earlier: a create returns after the deployment
    Sync,
    /// Portainer 2.41 and later: a create returns before the deployment
    Async,
}

impl From<EraArgument> for Era {
    fn from(era: EraArgument) -> Self {
        match era {
            EraArgument::Sync => Self::Sync,
            EraArgument::Async => Self::Async,
        }
    }
}
