//! The arguments of `list`.

use clap::Args;

use super::Output;

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Format of the list
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
    pub output: Output,
}
