//! Arguments, settings and everything that is printed.

use std::{ffi::OsString, path::PathBuf, process::ExitCode, sync::Arc};

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::{
    engine,
    failure::Failure,
    portainer::{BaseUrl, Tls},
    run::Stopped,
    stack::EXAMPLES,
};
use rehearsal::Rule;

mod console;
mod events;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod interrupt;
mod migrate;
mod peers;
mod rehearse;
mod render;
mod restore;
mod settings;

use console::Console;

const AFTER_HELP: &str = "\
Environment:
  STACKMGR_API_KEY       the manager's API key (required; never an argument)
  STACKMGR_API_KEY_FILE  a file whose first line is the key, where the variable is unset
  STACKLIFT_BASE_URL, STACKLIFT_STACKS_ROOT, STACKLIFT_ENDPOINT, STACKLIFT_TOOL,
  STACKLIFT_ENGINE, STACKLIFT_TLS, STACKLIFT_TIMEOUT
                         the settings of the flags of that name
  NO_COLOR               no colour; there is none either where the output is no terminal

Settings files: the user's (~/.config/stacklift.toml), then /etc/stacklift.toml; a flag counts
more than the environment, the environment more than the files.

Exit codes:
  0  the stack is at the manager and its deployment has ended well
  1  refused, missing, or failed; the message says what state the stack is in
  2  wrong usage
  130  interrupted; the message says how far the run came

A stack that is called like a command: stacklift migrate <STACK>.
Try it without risk first: stacklift rehearse";

/// Puts a compose stack that was started by hand under the management of Portainer
///
/// Reads the stack's compose file and .env, deletes a record of that name at the manager, removes the
/// stack's containers and has the manager create the stack anew. Before the first destructive act it
/// says what the stack will lose. The compose file on disk is never changed, and is backed up first.
#[derive(Debug, Parser)]
#[command(name = "stacklift", version, max_term_width = 100, after_help = AFTER_HELP)]
#[command(subcommand_value_name = "COMMAND", disable_help_subcommand = true)]
struct Arguments {
    #[command(flatten)]
    migrate: MigrateArguments,
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Migrate a stack: the same as `stacklift <STACK>`
    Migrate(MigrateArguments),
    /// Print what the manager would be sent, as JSON; reads the disk and touches nothing
    Render(RenderArguments),
    /// Bring back what ran before a run, from the snapshot it took
    Restore(RestoreArguments),
    /// Run a migration against an embedded manager and engine; nothing real is called or written
    Rehearse(RehearseArguments),
}

#[derive(Debug, Args)]
struct MigrateArguments {
    /// The stack's name: its directory under the stacks root
    #[arg(value_name = "STACK", allow_hyphen_values = false)]
    stack: Option<OsString>,
    /// Go on where the run would be refused: damaged text, another engine, the manager's own stack
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct RenderArguments {
    /// The stack's name
    #[arg(value_name = "STACK")]
    stack: OsString,
    /// Which rewrite: the contract's, or the one that keeps the meaning
    #[arg(long = "as", value_name = "WAY", value_enum, default_value_t = render::Way::Literal)]
    way: render::Way,
    /// Print the bytes that would be sent, with the values of .env
    #[arg(long, conflicts_with_all = ["diff", "explain"])]
    reveal: bool,
    /// Print what changes in the compose text, as a unified diff; values are masked
    #[arg(long)]
    diff: bool,
    /// Print each change of `--as adopt` with its line and its reason, and what else to know
    #[arg(long)]
    explain: bool,
}

#[derive(Debug, Args)]
struct RestoreArguments {
    /// The stack's name
    #[arg(value_name = "STACK")]
    stack: OsString,
    /// The snapshot [default: the newest]
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    to: Option<String>,
    /// List the snapshots and do nothing
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Args)]
struct RehearseArguments {
    /// An example stack, or with --stacks-root one of yours
    #[arg(value_name = "STACK")]
    stack: Option<OsString>,
    /// Keep the manager and the engine up until Ctrl-C, and print what to export to use them
    #[arg(long)]
    serve: bool,
    /// How the manager answers: sync (Portainer up to 2.40) or async (2.41 and later)
    #[arg(long, value_name = "ERA", default_value = "sync")]
    era: rehearse::EraArgument,
    /// Go on where the run would be refused
    #[arg(long)]
    force: bool,
    /// Make a call go wrong, each time or so many times: create=close-after, list=503*1; an unknown
    /// name lists those that there are. Repeatable
    #[arg(long = "fault", value_name = "CALL=KIND[*TIMES]")]
    faults: Vec<Rule>,
}

/// The settings that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Settings")]
struct Common {
    /// The manager's address [default: <https://localhost:9443>]
    #[arg(long, global = true, value_name = "URL")]
    base_url: Option<BaseUrl>,
    /// The directory that holds the stacks' directories [default: /opt/stacks]
    #[arg(long, global = true, value_name = "DIR")]
    stacks_root: Option<PathBuf>,
    /// The stack's directory, where it is not <stacks root>/<STACK>
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The compose file's name in the stack's directory [default: <tool>-compose.yml]
    #[arg(long, global = true, value_name = "NAME", value_parser = settings::plain_name)]
    file: Option<String>,
    /// The manager's number for this host's engine [default: 1]
    #[arg(long, global = true, value_name = "ID")]
    endpoint: Option<i64>,
    /// The container tool: names the compose file, the label and the command [default: docker]
    #[arg(long, global = true, value_name = "NAME", value_parser = settings::tool_name)]
    tool: Option<String>,
    /// How the engine is reached: auto, api (its socket) or command (the tool) [default: auto]
    #[arg(long, global = true, value_name = "WAY")]
    engine: Option<engine::Choice>,
    /// How the manager's certificate is checked: off, system, or a PEM file [default: off]
    #[arg(long, global = true, value_name = "CHECK")]
    tls: Option<Tls>,
    /// How long a create or delete may take, and the settling after it: 90s, 20m; nothing takes longer
    /// [default: 20m]
    #[arg(long, global = true, value_name = "TIME", value_parser = settings::duration)]
    timeout: Option<std::time::Duration>,
    /// Show each request: method, path, status and time
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "quiet")]
    verbose: bool,
    /// Print warnings and errors only
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    quiet: bool,
}

/// Runs the program with the process's arguments and environment.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            // A closed pipe is no reason to complain.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let console = Arc::new(Console::new(
        arguments.common.quiet,
        arguments.common.verbose,
    ));
    match dispatch(arguments, &console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Usage(message)) => {
            console.error(&anyhow::anyhow!(message), None);
            ExitCode::from(2)
        }
        Err(Ended::Failed(error)) => {
            console.error(&error, None);
            ExitCode::FAILURE
        }
        Err(Ended::Stopped(stopped)) => {
            console.error(&stopped.error, Some(&stopped.state.to_string()));
            events::show_roll_back(&console, &stopped.state);
            ExitCode::FAILURE
        }
    }
}

/// Why a command did not succeed.
enum Ended {
    Usage(&'static str),
    Failed(anyhow::Error),
    /// A run on a stack.
    Stopped(Stopped),
}

impl From<Stopped> for Ended {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<anyhow::Error> for Ended {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

fn dispatch(arguments: Arguments, console: &Arc<Console>) -> Result<(), Ended> {
    let Arguments {
        migrate,
        common,
        command,
    } = arguments;
    if command.is_some() && (migrate.stack.is_some() || migrate.force) {
        return Err(Ended::Usage("put STACK and --force after the command"));
    }
    match command {
        None => migrate::run(&migrate, &common, console),
        Some(Command::Migrate(migrate)) => migrate::run(&migrate, &common, console),
        Some(Command::Render(render)) => Ok(render::run(&render, &common, console)?),
        Some(Command::Restore(restore)) => restore::run(&restore, &common, console),
        Some(Command::Rehearse(rehearse)) => rehearse::run(&rehearse, &common, console),
    }
}

/// C01.
fn stack_required() -> anyhow::Error {
    Failure::new("the stack name is required")
        .hint(format!(
            "stacklift <STACK>; lowest impact first, for example: {}",
            EXAMPLES.join(", ")
        ))
        .into()
}
