//! `stacklift man`: the man pages, from the same texts as `--help`. They contain no date, so that each build of a version
//! writes the same.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Command;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use crate::disk::{Dir, Existing, Rights};

use super::arguments::{self, ENVIRONMENT, EXAMPLES, EXIT_CODES, SETTINGS_FILES, is_internal};

/// Writes `stacklift.1`, and `stacklift-<COMMAND>.1` for each command, into a directory.
pub(super) fn run(dir: &Path) -> Result<()> {
    let mut root = described(arguments::command())
        .disable_help_subcommand(true)
        .subcommand_help_heading("COMMANDS")
        .after_help(EXAMPLES);
    root.build();
    Dir::create(dir)
        .map_err(Into::into)
        .and_then(|to| write(&to, &root))
        .with_context(|| format!("failed to write the man pages into {}", dir.display()))
}

/// Describes in the pages what `-h` leaves out, too.
fn described(command: Command) -> Command {
    command
        .mut_args(|argument| argument.hide_short_help(false))
        .mut_subcommands(described)
}

/// Writes the page of a command, and those of its commands.
fn write(to: &Dir, command: &Command) -> Result<()> {
    let described = command.clone().version(None).long_version(None);
    let man = Man::new(described.after_help(None).after_long_help(None))
        // No date. Without the quotes, a reader takes the next argument for it.
        .date("\"\"")
        .source(concat!("stacklift ", env!("CARGO_PKG_VERSION")))
        .manual("Stacklift Manual");
    let mut page = Vec::new();
    man.render(&mut page)?;
    sections(command).to_writer(&mut page)?;
    // Lines that break twice make readers of the page warn.
    let page = String::from_utf8_lossy(&page).replace(".br\n\n.br\n", "\n");
    let (name, page) = (man.get_filename(), page.as_bytes());
    to.write(&name, page, Rights::AtMost(0o644), Existing::Replace)
        .with_context(|| name.clone())?;
    let mut shown = command
        .get_subcommands()
        .filter(|command| !is_internal(command));
    shown.try_for_each(|command| write(to, command))
}

/// The parts of a page that are not in the help of a command.
fn sections(command: &Command) -> Roff {
    let mut page = Roff::new();
    let mut flags = command.get_arguments();
    if flags.any(|flag| flag.get_id() == "stacks-root" && !flag.is_hide_set()) {
        section(&mut page, "ENVIRONMENT", ENVIRONMENT);
        section(&mut page, "FILES", SETTINGS_FILES);
    }
    section(&mut page, "EXIT STATUS", EXIT_CODES);
    if let Some(examples) = command.get_after_help() {
        section(&mut page, "EXAMPLES", &examples.to_string());
    }
    page.control("SH", ["SEE ALSO"])
        .control("BR", ["stacklift", "(1)"]);
    page
}

/// Adds a section of the help as it is, without its heading.
fn section(page: &mut Roff, name: &str, text: &str) {
    page.control("SH", [name]).control("nf", []);
    for line in text.lines().skip(1) {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}
