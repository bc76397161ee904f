//! The arguments of `completions`, of the command that its scripts run, and of `man`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum, ValueHint};

pub(super) const EXAMPLES: &str = "\
Examples:
  source <(stacklift completions bash)   In ~/.bashrc
  source <(stacklift completions zsh)    In ~/.zshrc, after compinit
  stacklift completions fish | source    In ~/.config/fish/config.fish

  Once, in Nushell:
  stacklift completions nushell
  | save -f ($nu.data-dir | path join vendor autoload stacklift.nu)";

#[derive(Debug, Args)]
pub(in crate::cli) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// The shells with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Shell {
    Bash,
    Zsh,
    Fish,
    Nushell,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CompleteArguments {
    /// The words after the program's name, the last of which may be empty
    #[arg(value_name = "WORD", last = true)]
    pub words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ManArguments {
    /// Directory for the man pages; created if it does not exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub into: PathBuf,
}
