//! The arguments of the commands that change no stack.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{
    Args, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use rehearsal::Era;

use super::Output;
use crate::report::Way;

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
    /// to a separate file. If you run it again, it keeps what the settings file contains, with the comments.
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

/// clap would show the name beside `--all`.
const EXPORT_USAGE: &str = "\
stacklift export [OPTIONS] <STACK>
       stacklift export [OPTIONS] --all";

#[derive(Debug, Args)]
#[command(override_usage = EXPORT_USAGE)]
pub(in crate::cli) struct ExportArguments {
    /// Name of the stack
    #[arg(value_name = "STACK")]
    pub stack: Option<OsString>,
    /// Export every stack of the environment, each into a directory with its name
    #[arg(long, conflicts_with_all = ["stack", "from"])]
    pub all: bool,
    /// What to write the files from
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = ExportSource::Portainer)]
    pub from: ExportSource,
    /// Directory to write to [default: ./STACK]
    ///
    /// The directory must be empty or not exist. With --all, this is the parent directory of the stacks'
    /// directories [default: .].
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Directory that a lost Portainer had mounted at /data; implies --from portainer-data
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    pub portainer_data: Option<PathBuf>,
    /// Replace compose.yaml and .env in the directory of --to, and keep copies: compose.yaml.old, .env.old
    #[arg(long, requires = "to")]
    pub force: bool,
    /// Format of the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
    #[arg(hide_default_value = true)]
    pub output: Output,
}

impl ExportArguments {
    pub fn source(&self) -> ExportSource {
        match self.portainer_data {
            Some(_) => ExportSource::PortainerData,
            None => self.from,
        }
    }

    /// The directory to write the stack `name` to.
    pub fn to(&self, name: &str) -> PathBuf {
        let own = || Path::new(".").join(name);
        self.to.clone().unwrap_or_else(own)
    }
}

/// `--from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ExportSource {
    /// The Portainer stack
    Portainer,
    /// The containers of the Compose project, if its Compose file is lost
    Containers,
    /// The data of the Portainer that started the containers, if it is gone
    PortainerData,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RehearseArguments {
    /// Example stack, or one of your own in the stacks root or in --dir [default: books-db]
    #[arg(value_name = "STACK")]
    pub stack: Option<OsString>,
    /// What to rehearse; after an adoption, also a migration of the same stack, to compare
    #[arg(long = "as", value_name = "WAY", value_enum, default_value_t = Way::Adopt)]
    pub way: Way,
    /// Version of Portainer to simulate
    #[arg(long, value_name = "ERA", value_parser = eras(), default_value = "2.23")]
    pub era: Era,
    /// Override the safety checks
    #[arg(long)]
    pub force: bool,
}

/// The values of `--era`.
fn eras() -> impl TypedValueParser<Value = Era> {
    let era = |name, help| PossibleValue::new(name).help(help);
    PossibleValuesParser::new([
        era("2.23", "Portainer up to 2.23: runs a Compose program").alias("sync"),
        era("2.24", "Portainer 2.24 to 2.40: has Compose built in"),
        era(
            "2.41",
            "Portainer 2.41 and later: also responds before it has deployed",
        )
        .alias("async"),
    ])
    .map(|era| match era.as_str() {
        "2.23" | "sync" => Era::Sync,
        "2.24" => Era::Library,
        _ => Era::Async,
    })
}

/// Of `completions`.
pub(super) const EXAMPLES: &str = "\
Examples:
  source <(stacklift completions bash)   In ~/.bashrc
  source <(stacklift completions zsh)    In ~/.zshrc, after compinit
  stacklift completions fish | source    In ~/.config/fish/config.fish

  Once, in Nushell:
  stacklift completions nushell
  | save -f ($nu.data-dir | path join vendor autoload stacklift.nu)";

/// The shells with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Shell {
    Bash,
    Zsh,
    Fish,
    Nushell,
}
