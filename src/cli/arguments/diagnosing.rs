//! The arguments of `list`, `doctor` and `config`.

use clap::{Args, Subcommand};

use super::Output;

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Format of the list
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DoctorArguments {
    /// Format of the checks
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct ConfigArguments {
    /// Format of the settings
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
    pub output: Output,
    #[command(subcommand)]
    pub action: Option<ConfigAction>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ConfigAction {
    /// Ask for the settings of this host, and write a settings file
    ///
    /// Asks for Portainer's address, an API key and the directory of your stacks, unless flags give them. Writes the key
    /// to a file of its own. Can run again: what is in the settings file already stays, with its comments.
    Init(InitArguments),
}

#[derive(Debug, Clone, Copy, Args)]
pub(in crate::cli) struct InitArguments {
    /// Write the system settings, /etc/stacklift.toml [default for root]
    #[arg(long, conflicts_with = "user")]
    pub system: bool,
    /// Write the user settings, ~/.config/stacklift.toml [default for other users]
    #[arg(long)]
    pub user: bool,
    /// Print a new settings file with every setting instead; asks nothing
    #[arg(long, conflicts_with_all = ["system", "user"])]
    pub print: bool,
}
