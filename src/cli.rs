//! The command line, and everything that is printed.

use std::{process::ExitCode, sync::Arc};

use crate::{failure::Failure, stack::EXAMPLES};

mod arguments;
mod console;
mod interrupt;
mod migrate;
mod options;
mod peers;
mod rehearse;
mod render;
mod restore;
mod settings;

use arguments::{Arguments, Command, Common, MigrateArguments, RestoreArguments};
use console::Console;

/// Runs the program with the process's arguments and environment.
pub fn main() -> ExitCode {
    let arguments = match arguments::parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            // A closed pipe is not an error.
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
        Err(Ended::Untouched(error)) => {
            console.error(&error, Some("the stack is as it was: nothing was touched"));
            ExitCode::FAILURE
        }
        Err(Ended::Migrate(stopped, stack)) => {
            console.error(&stopped.error, Some(&stopped.progress.to_string()));
            if let Some(id) = stopped.progress.way_back() {
                console.way_back(&stack, id);
            }
            ExitCode::FAILURE
        }
        Err(Ended::Rehearse(stopped)) => {
            // No way back: its snapshot goes with the rehearsal.
            console.error(&stopped.error, Some(&stopped.progress.to_string()));
            ExitCode::FAILURE
        }
        Err(Ended::Restore(stopped)) => {
            console.error(&stopped.error, Some(&stopped.state));
            ExitCode::FAILURE
        }
    }
}

/// Why a command did not succeed.
enum Ended {
    Usage(&'static str),
    Failed(anyhow::Error),
    /// Before anything of the stack was read or asked for.
    Untouched(anyhow::Error),
    /// A migration of this stack.
    Migrate(crate::migrate::Stopped, String),
    Rehearse(crate::migrate::Stopped),
    Restore(crate::restore::Stopped),
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
        return Err(Ended::Usage(
            "a stack name or --force stands before the command; put it behind",
        ));
    }
    match command {
        None => migrate::run(&migrate, &common, console),
        Some(Command::Migrate(migrate)) => migrate::run(&migrate, &common, console),
        Some(Command::Render(render)) => Ok(render::run(&render, &common, console)?),
        Some(Command::Restore(restore)) => restore::run(&restore, &common, console),
        Some(Command::Rehearse(rehearse)) => rehearse::run(&rehearse, &common, console),
    }
}

/// The error of C01.
fn stack_required() -> anyhow::Error {
    Failure::new("the stack name is required")
        .hint(format!(
            "run: stacklift <STACK>; the example stacks, lowest impact first: {}",
            EXAMPLES.join(", ")
        ))
        .into()
}
