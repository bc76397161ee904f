//! The command line, and everything that is printed.

use std::{process::ExitCode, sync::Arc};

use crate::{failure::Failure, process, run::Stopped};

mod adopt;
mod arguments;
mod certificate;
mod columns;
mod completions;
mod config;
mod confirm;
mod console;
mod doctor;
mod events;
mod export;
mod interrupt;
mod list;
mod man;
mod migrate;
mod opened;
mod options;
mod peers;
mod plan;
mod rehearse;
mod render;
mod restore;
mod schema;
mod settings;
mod signals;
mod spinner;
mod style;
mod table;

use arguments::{Arguments, Command, Common, MigrateArguments, RestoreArguments};
use console::Console;
use migrate::Called;

/// Runs the program with the process's arguments and environment.
pub fn main() -> ExitCode {
    process::forbid_core_dumps();
    if let Some(code) = process::become_user() {
        return code;
    }
    let arguments = match arguments::parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let is_wrong = error.use_stderr();
            // A closed pipe is not an error.
            let _ = if is_wrong {
                console::print_usage_error(&error)
            } else {
                error.print()
            };
            return ExitCode::from(if is_wrong { 2 } else { 0 });
        }
    };
    let console = Arc::new(Console::new(&arguments.common));
    interrupt::clean_up_after_panics(&console);
    let ended = dispatch(arguments, &console);
    // What failed because of the handler is no error of the run.
    signals::await_handler();
    console.done();
    match ended {
        Ok(()) if console.is_incomplete() => {
            let incomplete =
                Failure::new("failed to write to standard output: the result is incomplete")
                    .hint("check that the disk is not full");
            console.error(&incomplete.into(), None);
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Usage(message)) => {
            console.error(&anyhow::anyhow!(message), None);
            ExitCode::from(2)
        }
        Err(Ended::Verdict(code)) => ExitCode::from(code),
        Err(Ended::Failed(error)) => {
            console.error(&error, None);
            ExitCode::FAILURE
        }
        Err(Ended::Stopped(stopped)) => {
            events::show_stopped(&console, &stopped);
            ExitCode::FAILURE
        }
    }
}

/// The usage error of a command for one stack or all of them.
const NO_STACK: &str = "name a stack, or pass --all: `stacklift list` shows the stacks";

/// Why a command did not succeed.
enum Ended {
    Usage(&'static str),
    /// The command printed its result, and this exit code tells it.
    Verdict(u8),
    Failed(anyhow::Error),
    /// A run on a stack.
    Stopped(Stopped),
}

impl From<Stopped> for Ended {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Ended {
    /// The end of a command whose exit code tells its result.
    fn verdict(code: u8) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            code => Err(Self::Verdict(code)),
        }
    }
}

fn dispatch(arguments: Arguments, console: &Arc<Console>) -> Result<(), Ended> {
    let (migrate, common) = (&arguments.migrate, &arguments.common);
    let command = arguments.command;
    if command.is_some() && migrate.is_used() {
        return Err(Ended::Usage(
            "put STACK, --force, --yes and --dry-run after the command",
        ));
    }
    let only_reads = match &command {
        None => migrate.dry_run,
        Some(Command::Migrate(migrate)) => migrate.dry_run,
        Some(Command::Adopt(adopt)) => adopt.dry_run,
        Some(Command::Restore(restore)) => restore.dry_run || restore.list,
        Some(Command::Rehearse(_)) => false,
        Some(_) => true,
    };
    let cli = Cli { common, console };
    // A completion prints nothing else.
    if !matches!(command, Some(Command::Complete { .. }))
        && let Some(warning) = settings::unknown_variables()
    {
        console.warning(&warning);
    }
    let ended = match command {
        None => migrate::run(migrate, Called::Bare, cli),
        Some(Command::Migrate(migrate)) => migrate::run(&migrate, Called::Named, cli),
        Some(Command::Adopt(adopt)) => adopt::run(&adopt, cli),
        Some(Command::Plan(plan)) => plan::run(&plan, cli),
        Some(Command::Export(export)) => export::run(&export, cli),
        Some(Command::List { output }) => list::run(output, cli),
        Some(Command::Doctor { output }) => doctor::run(output, cli),
        Some(Command::Config(config)) => config::run(&config, cli),
        Some(Command::Schema) => Ok(schema::run(console)?),
        Some(Command::Completions { shell }) => {
            completions::script(shell);
            Ok(())
        }
        Some(Command::Complete { words }) => {
            completions::run(&words);
            Ok(())
        }
        Some(Command::Man { into }) => Ok(man::run(&into)?),
        Some(Command::Render(render)) => render::run(&render, cli),
        Some(Command::Restore(restore)) => restore::run(&restore, cli),
        Some(Command::Rehearse(rehearse)) => rehearse::run(&rehearse, cli),
    };
    ended.map_err(|ended| match ended {
        // It left the stack as it was: its state needs no line.
        Ended::Stopped(stopped) if only_reads => Ended::Failed(stopped.error),
        ended => ended,
    })
}

/// What every command gets.
#[derive(Clone, Copy)]
struct Cli<'a> {
    /// The flags that every command has.
    common: &'a Common,
    console: &'a Arc<Console>,
}
