//! The command line: commands, flags and their help.

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Arg, ArgAction, ArgMatches, Args, ColorChoice, CommandFactory, FromArgMatches, Parser,
    Subcommand, ValueHint,
    builder::NonEmptyStringValueParser,
    error::{ContextKind, ContextValue, ErrorKind},
};

pub(super) use adopting::{AccessArguments, AdoptArguments, AdoptionArguments};
use color::{color_of, use_color};
pub(super) use git::GitArguments;
pub(super) use planning::{Output, PlanArguments};
pub(super) use reading::{
    ConfigAction, ConfigArguments, ExportArguments, ExportSource, InitArguments, RehearseArguments,
    Shell,
};

use super::options;
use crate::{
    report::Way,
    run::RestoreCommand,
    text::{near, without_credentials},
};

mod adopting;
mod color;
mod git;
mod planning;
mod reading;

const USAGE: &str = "\
stacklift [OPTIONS] <COMMAND>
       stacklift [OPTIONS] <STACK>   the same as `stacklift migrate <STACK>`";

const MORE_HELP: &str = "\
stacklift <COMMAND> -h   the flags of a command
stacklift --help         examples, settings files, variables and exit codes";

pub(super) const EXAMPLES: &str = "\
Examples:
  stacklift config init        Ask for the settings, and write them to a file
  stacklift plan books-db      Show what adopting a stack would do
  stacklift adopt books-db     Move the running stack into Portainer
  stacklift adopt --all        Adopt every stack in the stacks root
  stacklift restore books-db   Roll the stack back

  `stacklift render` and `stacklift schema` are for scripts.";

pub(super) const ENVIRONMENT: &str = "\
Environment variables:
  STACKMGR_API_KEY     Portainer API key; there is no flag for it
  STACKLIFT_STATE_DIR  Directory for snapshots [default: /var/lib/stacklift for
                       root, ~/.local/state/stacklift for other users]
  STACKLIFT_SYSTEM_SETTINGS
                       System settings file [default: /etc/stacklift.toml]
  NO_COLOR             Disable colored output
  CLICOLOR_FORCE       Color the output even if it is not a terminal";

pub(super) const SETTINGS_FILES: &str = "\
Settings files:
  ~/.config/stacklift.toml  User settings
  /etc/stacklift.toml       System settings

  Each key is the name of a flag: base-url = \"https://localhost:9443\"
  `stacklift config init` writes this file; `stacklift config` shows the values.
  Precedence: flags, environment variables, user settings, system settings";

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    Success; after a migration, the stack is deployed in Portainer
  1    The run was refused or failed; the output reports the state of the stack
  2    Wrong usage
  3    With --exit-code: something would be lost, or that is unknown
  130  Interrupted by Ctrl-C (143: by SIGTERM); the output reports the state";

/// The flags that a command accepts and ignores. Its help does not list them.
fn ignored(command: &str) -> &'static [&'static str] {
    match command {
        "export" => &["dir", "file", "engine"],
        "list" => &["dir"],
        "doctor" => &["dir", "file"],
        "config" => &["dir", "file", "verbose"],
        "schema" | "completions" | "man" | COMPLETE => EVERY,
        "render" => &["quiet"],
        "restore" => &["file"],
        "rehearse" => &["base-url", "api-key-file", "engine", "tls", "header-file"],
        _ => &[],
    }
}

/// The heading of the flags of settings.
const SETTINGS: &str = "Settings";

/// The place of the flags that every command has: after its own.
const LAST: usize = 900;

/// Every flag.
const EVERY: &[&str] = &["*"];

/// The command that the completion scripts run. No stack has this name (C11).
const COMPLETE: &str = ".complete";

/// The commands that are not for users. Those for scripts are only hidden in the list of commands.
pub(super) fn is_internal(command: &clap::Command) -> bool {
    [COMPLETE, "man"].contains(&command.get_name())
}

/// What `--version` prints after the name.
const DETAILED_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("STACKLIFT_COMMIT"),
    "\ncommit date: ",
    env!("STACKLIFT_COMMIT_DATE"),
    "\ntarget: ",
    env!("STACKLIFT_TARGET"),
    "\nrust: ",
    env!("STACKLIFT_RUSTC"),
);

/// Moves a running Compose stack into Portainer
///
/// `plan` shows what adopting a stack would do, and `adopt` does it. Containers whose configuration does not change keep
/// running. `restore` brings back what ran before.
#[derive(Debug, Parser)]
#[command(name = "stacklift", version, max_term_width = 100)]
#[command(override_usage = USAGE, after_help = MORE_HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub migrate: MigrateArguments,
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show what adopting a stack would do
    ///
    /// Shows what would happen to each service, what would be lost, and which command to run next. Only reads:
    /// takes no lock, and leaves no file behind, except a certificate that you accept with --tls pin.
    Plan(PlanArguments),
    /// Move a running stack into Portainer
    ///
    /// Sends a rewrite of the Compose file that keeps its meaning. Containers whose configuration does not
    /// change keep running; the others are recreated. Lists what the stack will lose, and takes a snapshot, before
    /// it changes anything. If the deployment fails, stacklift restores the containers from the snapshot.
    Adopt(AdoptArguments),
    /// Roll back a stack to a snapshot
    ///
    /// Restores the containers and the Portainer stack that existed before a run. Containers that
    /// still match the snapshot keep running. Volumes are never removed.
    Restore(RestoreArguments),
    /// List every stack, and what adopting it would interrupt
    ///
    /// Lists the directories in the stacks root, the Compose projects of this host, and the Portainer stacks of
    /// the environment. Only reads.
    List {
        /// Format of the list
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Check everything that the other commands need
    ///
    /// Checks the settings, Docker, the Compose program, Portainer, the API key, the environment, the stacks root and
    /// the directory for snapshots. Only reads, and leaves no file behind. Exits with 1 if a check fails.
    Doctor {
        /// Format of the checks
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Show the settings; `config init` writes them
    ///
    /// Shows every setting, and where its value comes from. Contacts neither Portainer nor Docker, and never shows the
    /// API key. Exits with 1 if a setting is invalid.
    Config(ConfigArguments),
    /// Export a Portainer stack as compose.yaml and .env
    ///
    /// Writes the stack's Compose file to compose.yaml and its variables to .env, so that `docker compose up -d` in that
    /// directory does what Portainer does. If the Compose file of a stack is lost, --from containers writes it from the
    /// containers, and says which of them an adoption keeps running. If the Portainer that started the stack is gone,
    /// --from portainer-data writes the files from its data. Changes nothing in Portainer, and no container.
    Export(ExportArguments),
    /// Try it with a simulated Portainer and Docker
    ///
    /// Plans and adopts a stack, then migrates it, and compares both. Runs the same code as these commands, but contacts
    /// no real Portainer or Docker. Works on copies of the stack's Compose file and env files in a temporary directory.
    /// Ignores all settings except the stacks root.
    Rehearse(RehearseArguments),
    /// Stop a stack and recreate it in Portainer
    ///
    /// Reads the stack's Compose file and .env, deletes any existing Portainer stack of the same name,
    /// removes the stack's containers, and creates the stack in Portainer. The stack is down meanwhile.
    /// `stacklift <STACK>` does the same.
    ///
    /// Before anything is deleted or removed, stacklift reports what the stack will lose and takes a
    /// snapshot that `stacklift restore` can roll back to. It backs up the Compose file and never changes
    /// the original.
    Migrate(MigrateArguments),
    /// Print a completion script for a shell
    ///
    /// The script completes commands, flags, stacks and snapshots. It runs stacklift, which reads the settings, the
    /// stacks root and the names of the snapshots, and contacts neither Portainer nor Docker.
    #[command(after_help = reading::EXAMPLES)]
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
    /// Show the request that would create the stack in Portainer
    ///
    /// Prints the JSON body of the request, with the values of .env masked. Reads the stack's files and,
    /// with --as adopt, its containers.
    #[command(hide = true)]
    Render(RenderArguments),
    /// Print the JSON schema of the outputs
    #[command(hide = true)]
    Schema,
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man {
        /// Directory for the man pages; created if it does not exist
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        into: PathBuf,
    },
    /// Print the completions of the last word
    #[command(name = COMPLETE, hide = true)]
    Complete {
        /// The words after the program's name, the last of which may be empty
        #[arg(value_name = "WORD", last = true)]
        words: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct MigrateArguments {
    /// Name of the stack
    #[arg(value_name = "STACK")]
    pub stack: Option<OsString>,
    /// Override the safety checks
    ///
    /// Without this flag, stacklift refuses to migrate a stack if the rewrite would damage the Compose file, if the
    /// Portainer environment is not this host, if the stack runs Portainer itself, or if containers would be removed
    /// although Portainer is known to be unable to create the stack.
    #[arg(long)]
    pub force: bool,
    /// Do not ask for confirmation
    ///
    /// On a terminal, stacklift asks before it removes containers or deletes a Portainer stack. Without a terminal,
    /// it continues without asking.
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub access: AccessArguments,
    /// Show what would be done, without doing it
    ///
    /// Like `stacklift plan`, but only for this command.
    #[arg(long)]
    pub dry_run: bool,
    /// Format of the plan
    #[arg(long, value_name = "FORMAT", value_enum, requires = "dry_run")]
    #[arg(default_value_t = Output::Text, hide_default_value = true)]
    pub output: Output,
    /// Exit with 3 if something would be lost, and with 1 if the run would be refused
    #[arg(long, requires = "dry_run", hide_short_help = true)]
    pub exit_code: bool,
}

impl MigrateArguments {
    /// Whether any of them is given.
    pub(super) fn is_used(&self) -> bool {
        self.stack.is_some()
            || self.force
            || self.yes
            || !self.access.grants.is_empty()
            || self.dry_run
    }
}

#[derive(Debug, Args)]
pub(super) struct RenderArguments {
    /// Name of the stack
    #[arg(value_name = "STACK")]
    pub stack: OsString,
    /// Which rewrite of the Compose file to show
    #[arg(long = "as", value_name = "REWRITE", value_enum, default_value_t = Way::Adopt)]
    pub way: Way,
    /// Print the exact request body or diff, including the values of variables
    #[arg(long)]
    pub reveal: bool,
    /// Print a diff of the Compose file instead
    #[arg(long)]
    pub diff: bool,
    /// Keep variables that exist only in the running containers; not with --as migrate
    #[arg(long)]
    pub keep_variables: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct RestoreArguments {
    /// Name of the stack
    #[arg(value_name = "STACK")]
    pub stack: OsString,
    /// Snapshot to restore, or the beginning of its ID [default: the newest of the complete stack]
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "list")]
    pub to: Option<String>,
    /// Restore what is possible, even if something that the snapshot needs is missing
    ///
    /// Without this flag, nothing is changed if an image, volume or network no longer exists, if a port or
    /// container name is in use, or if Portainer cannot read the repository of a Git stack that was deleted
    /// (`STACKLIFT_GIT_PASSWORD` gives its password). All problems are listed.
    #[arg(long, conflicts_with = "list")]
    pub force: bool,
    /// Do not ask for confirmation
    ///
    /// stacklift asks before it stops or removes a container, or deletes, updates or stops the Portainer stack. Without a
    /// terminal, the restore is refused instead.
    #[arg(short, long, conflicts_with = "list")]
    pub yes: bool,
    /// Restore only the containers, without contacting Portainer
    ///
    /// Use it if Portainer does not respond. It needs no API key, and reports what is left to do in Portainer.
    #[arg(long, conflicts_with = "list")]
    pub engine_only: bool,
    /// Show what would be restored, and change nothing
    #[arg(long, conflicts_with = "list")]
    pub dry_run: bool,
    /// List the snapshots, newest first
    #[arg(long)]
    pub list: bool,
    /// Format of the list
    #[arg(long, value_name = "FORMAT", value_enum, requires = "list")]
    #[arg(default_value_t = Output::Text, hide_default_value = true)]
    pub output: Output,
    /// Remove all snapshots except the newest, the first and the last complete one, and those of restores
    #[arg(long, conflicts_with_all = ["list", "to", "force", "engine_only", "dry_run"])]
    pub prune: bool,
}

/// The flags that every command takes. [`command`] adds those of the settings.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = SETTINGS)]
pub(super) struct Common {
    /// Stack directory, if it is not in the stacks root
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(hide_short_help = true)]
    pub dir: Option<PathBuf>,
    /// Name of the Compose file in the stack directory [default: the usual names]
    #[arg(long, global = true, value_name = "NAME", value_parser = options::plain_name)]
    #[arg(hide_short_help = true)]
    pub file: Option<String>,
    /// Print each request, and errors in full
    ///
    /// Prints how Docker is reached, and the method, path, status and time of each request.
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "quiet")]
    #[arg(help_heading = None::<&'static str>, display_order = LAST)]
    pub verbose: bool,
    /// Print only warnings and errors
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    #[arg(help_heading = None::<&'static str>, display_order = LAST)]
    pub quiet: bool,
    /// When to color the output [default: auto]
    ///
    /// `auto` colors the output on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`. This flag takes precedence
    /// over all environment variables.
    #[arg(long, global = true, value_name = "WHEN", hide_short_help = true)]
    #[arg(help_heading = None::<&'static str>, display_order = LAST)]
    pub color: Option<ColorChoice>,
    /// The flags of settings as they were typed: the name of each with its value (B14).
    #[arg(skip)]
    pub typed: Vec<(String, OsString)>,
}

/// Parses the arguments of the process.
pub(super) fn parse() -> Result<Arguments, clap::Error> {
    let mut command = command();
    let mut matches = command
        .try_get_matches_from_mut(std::env::args_os())
        .map_err(suggest_command)
        .map_err(hide_credentials)
        // The help and an error end the parsing, perhaps before it reaches the flag.
        .inspect_err(|_| use_color(color_of(std::env::args_os())))?;
    let common = Common::of(&matches);
    let mut arguments = Arguments::from_arg_matches_mut(&mut matches)
        .map_err(|error| error.format(&mut command))?;
    arguments.common = common?;
    use_color(arguments.common.color);
    Ok(arguments)
}

impl Common {
    /// The flags in the matches of a command.
    pub(super) fn of(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let settings = options::ALL.iter().map(|setting| setting.key);
        let typed = settings.chain(["dir", "file"]).filter_map(|flag| {
            let value = matches.try_get_raw(flag).ok().flatten()?.next()?;
            Some((flag.to_owned(), value.to_owned()))
        });
        Ok(Self {
            typed: typed.collect(),
            ..Self::from_arg_matches(matches)?
        })
    }

    /// The value of the flag of a setting, if it is given.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        let typed = self.typed.iter().find(|(flag, _)| flag == key);
        typed.and_then(|(_, value)| value.to_str())
    }

    /// The flags of a command that is printed. A value that may be a misplaced API key is left out (C56).
    pub(super) fn repeatable(&self) -> RestoreCommand {
        let is_key = |value: &OsString| value.to_str().is_some_and(options::is_api_key);
        let typed = self.typed.iter().filter(|(_, value)| !is_key(value));
        let words = typed.flat_map(|(flag, value)| [format!("--{flag}").into(), value.clone()]);
        RestoreCommand {
            flags: words.collect(),
            ..RestoreCommand::default()
        }
    }
}

/// `stacklift migrat web`: the first word was taken for the stack, so `web` is unexpected. Names that word, and suggests the
/// command. A flag that the command does not have may be the mistake.
fn suggest_command(mut error: clap::Error) -> clap::Error {
    let found = || {
        let lenient = command().ignore_errors(true);
        let mut matches = lenient.try_get_matches_from(std::env::args_os()).ok()?;
        let stack = matches.remove_one::<OsString>("stack")?;
        let word = stack.into_string().ok()?;
        Some((near_command(&word)?, word))
    };
    let Some((near, word)) = found() else {
        let argument = error.get(ContextKind::InvalidArg).map(ToString::to_string);
        let usage = error.get(ContextKind::Usage).map(ToString::to_string);
        let is_of_list = usage.is_some_and(|usage| usage.contains("stacklift list"));
        let tip = match argument.as_deref() {
            Some(missing) if missing.starts_with("<STACK>") => "`stacklift list` shows the stacks",
            Some(name) if is_of_list && !name.starts_with('-') => {
                "`stacklift plan STACK` shows one stack"
            }
            _ => return error,
        };
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
        return error;
    };
    let is_of_near = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) => {
            let command = command();
            let flags = command.find_subcommand(&near).into_iter();
            let flags = flags.flat_map(clap::Command::get_arguments);
            !argument.starts_with('-')
                || flags
                    .filter_map(Arg::get_long)
                    .any(|flag| argument == &format!("--{flag}"))
        }
        (ErrorKind::MissingRequiredArgument, _) => true,
        (ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand, _) => false,
        _ => return error,
    };
    if is_of_near {
        let usage = error.get(ContextKind::Usage).cloned();
        error = clap::Error::new(ErrorKind::InvalidSubcommand).with_cmd(&command());
        error.insert(ContextKind::InvalidSubcommand, ContextValue::String(word));
        usage.map(|usage| error.insert(ContextKind::Usage, usage));
    }
    let tip = format!("did you mean `stacklift {near}`?");
    let tips = ContextValue::StyledStrs(vec![tip.into()]);
    error.insert(ContextKind::Suggested, tips);
    error
}

/// Hides the user name, password and query of a URL that the error quotes: none is accepted, but somebody may try.
fn hide_credentials(mut error: clap::Error) -> clap::Error {
    let quoted = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, text.clone())),
        _ => None,
    });
    for (kind, text) in quoted.collect::<Vec<_>>() {
        let query = text.find("://").and_then(|_| text.find(['?', '#']));
        let shown = match text.rsplit_once('@') {
            // Without a scheme, it is not a URL.
            Some((_, host)) if !text.contains("://") => format!("***@{host}"),
            _ => without_credentials(&text[..query.unwrap_or(text.len())]),
        };
        if shown != text {
            error.insert(kind, ContextValue::String(shown));
        }
    }
    error
}

/// What other programs call a command.
const MEANT: [(&str, &str); 5] = [
    ("status", "list"),
    ("ps", "list"),
    ("version", "--version"),
    ("undo", "restore"),
    ("rollback", "restore"),
];

/// The command that `name` probably misspells, or that it is called elsewhere.
pub(super) fn near_command(name: &str) -> Option<String> {
    if let Some((_, meant)) = MEANT.iter().find(|(word, _)| *word == name) {
        return Some((*meant).to_owned());
    }
    let command = command();
    let shown = command.get_subcommands().filter(|near| !is_internal(near));
    let near = near(name, shown.map(clap::Command::get_name));
    near.first().map(|near| (*near).to_owned())
}

/// The command line.
pub(super) fn command() -> clap::Command {
    let mut command =
        Arguments::command().args(options::ALL.iter().map(|setting| setting.flag(true)));
    // Those of the bare `stacklift <STACK>`: the help shows them with `migrate`.
    command = command.mut_args(|flag| {
        let is_bare = !flag.is_global_set();
        flag.hide(is_bare)
    });
    let mut flags: Vec<Arg> = command.get_arguments().cloned().collect();
    flags.retain(Arg::is_global_set);
    command
        .mut_subcommands(|subcommand| {
            let name = subcommand.get_name().to_owned();
            let (ignored, mut settings) = (ignored(&name), Vec::new());
            let flags = flags.iter().map(|flag| {
                let setting = options::ALL
                    .iter()
                    .find(|option| flag.get_id() == option.key);
                let flag = match setting.filter(|_| name == "rehearse") {
                    Some(setting) => setting.flag(false),
                    None => flag.clone(),
                };
                let id = flag.get_id().as_str();
                let hidden = ignored.contains(&id) || (ignored == EVERY && id != "color");
                let is_setting = flag.get_help_heading() == Some(SETTINGS);
                if hidden || !is_setting || name == "rehearse" {
                    return flag.hide(hidden);
                }
                settings.push(format!("--{id}"));
                flag.hide_long_help(true)
            });
            let subcommand = subcommand.args(flags.collect::<Vec<_>>());
            if settings.is_empty() {
                return subcommand;
            }
            let settings = settings.join(", ");
            subcommand.after_long_help(format!(
                "Settings, which `stacklift --help` explains:\n  {settings}"
            ))
        })
        .long_version(DETAILED_VERSION)
        .mut_subcommand("rehearse", |rehearse| {
            rehearse.mut_arg("stacks-root", |flag| {
                flag.help("Directory that contains your stack directories [default: the examples]")
                    .long_help(None::<&'static str>)
            })
        })
        .after_long_help(format!(
            "{EXAMPLES}\n\n{ENVIRONMENT}\n\n{SETTINGS_FILES}\n\n{EXIT_CODES}"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_flags_that_a_command_ignores_are_flags() {
        for subcommand in command().get_subcommands() {
            let name = subcommand.get_name();
            for id in ignored(name).iter().filter(|id| **id != "*") {
                let flag = subcommand.get_arguments().find(|flag| flag.get_id() == id);
                assert!(flag.is_some_and(Arg::is_hide_set), "{name} {id}");
            }
        }
    }
}
