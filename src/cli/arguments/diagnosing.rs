//! The arguments of `doctor` and `config`.

use clap::{Args, Subcommand};

use super::Output;

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
    /// Write a settings file with every setting and its default, commented out
    ///
    /// Settings that you pass as flags are not commented out. On a terminal, stacklift asks for the address of
    /// Portainer and for the file with the API key, which it creates if it does not exist. Contacts neither
    /// Portainer nor the engine.
    Init(InitArguments),
}

#[derive(Debug, Clone, Copy, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(in crate::cli) struct InitArguments {
    /// Write the system settings, /etc/stacklift.toml [default for root]
    #[arg(long, conflicts_with = "user")]
    pub system: bool,
    /// Write the user settings, ~/.config/stacklift.toml [default for other users]
    #[arg(long)]
    pub user: bool,
    /// Replace an existing settings file
    #[arg(long)]
    pub force: bool,
    /// Print the settings file instead of writing it; asks nothing
    #[arg(long, conflicts_with_all = ["system", "user", "force"])]
    pub print: bool,
}
