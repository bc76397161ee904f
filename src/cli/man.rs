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
    let to = Dir::create(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    let mut root = described(arguments::command())
        .disable_help_subcommand(true)
        .subcommand_help_heading("COMMANDS");
    root.build();
    write((dir, &to), &root, &root)
}

/// Describes in the pages what `-h` leaves out, too.
fn described(command: Command) -> Command {
    command
        .mut_args(|argument| argument.hide_short_help(false))
        .mut_subcommands(described)
}

/// Writes the page of a command, and those of its commands.
fn write(dir: (&Path, &Dir), root: &Command, command: &Command) -> Result<()> {
    let man = Man::new(command.clone());
    let name = man.get_filename();
    let page = page(&man, root, command).context("failed to write a man page")?;
    let (path, to) = dir;
    to.write(
        &name,
        page.as_bytes(),
        Rights::AtMost(0o644),
        Existing::Replace,
    )
    .with_context(|| format!("failed to write {}", path.join(&name).display()))?;
    let mut shown = command.get_subcommands().filter(|one| !is_internal(one));
    shown.try_for_each(|command| write(dir, root, command))
}

fn page(man: &Man, root: &Command, command: &Command) -> std::io::Result<String> {
    let shown = || {
        command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
    };
    let reads_settings = shown().any(|argument| {
        let help = argument.get_help().map(ToString::to_string);
        help.is_some_and(|help| help.contains("[env: "))
    });
    let mut page = Vec::new();
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if shown().next().is_some() {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut sections = Roff::new();
    if reads_settings {
        section(&mut sections, "ENVIRONMENT", ENVIRONMENT);
        section(&mut sections, "FILES", SETTINGS_FILES);
    }
    section(&mut sections, "EXIT STATUS", EXIT_CODES);
    let own = command.get_after_help().map(ToString::to_string);
    let is_root = command.get_name() == root.get_name();
    if let Some(examples) = own
        .filter(|_| !is_root)
        .or(is_root.then(|| EXAMPLES.into()))
    {
        section(&mut sections, "EXAMPLES", &examples);
    }
    see_also(&mut sections, root, command);
    sections.to_writer(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    // Each part has its own definitions, and blank lines between breaks.
    let definitions = Roff::new().render();
    let page = page.replace(&definitions, "").replace(".br\n\n.br\n", "\n");
    let title = command.get_display_name().unwrap_or(root.get_name());
    Ok(format!(
        ".TH {} 1 \"\" \"stacklift {}\" \"Stacklift Manual\"\n{definitions}{page}",
        title.to_uppercase(),
        env!("CARGO_PKG_VERSION"),
    ))
}

/// Adds a section of the help as it is, without its heading.
fn section(page: &mut Roff, name: &str, text: &str) {
    page.control("SH", [name]).control("nf", []);
    for line in text.lines().skip(1) {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

/// Refers to the other pages.
fn see_also(page: &mut Roff, root: &Command, command: &Command) {
    let own = command.get_display_name().unwrap_or_default();
    let shown = root.get_subcommands().filter(|one| !is_internal(one));
    let mut names: Vec<&str> = shown.filter_map(Command::get_display_name).collect();
    names.push(root.get_name());
    names.sort_unstable();
    names.retain(|name| *name != own && *name != command.get_name());
    page.control("SH", ["SEE ALSO"]);
    let count = names.len();
    for (at, name) in names.into_iter().enumerate() {
        let comma = if at + 1 < count { "," } else { "" };
        page.control("BR", [name, &format!("(1){comma}")]);
    }
}
