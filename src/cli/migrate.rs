//! `stacklift <STACK>`: the contract's checks in the contract's order (C04), then the migration.

use rehearsal::seed;

use super::{
    Cli, Console, Ended, MigrateArguments,
    arguments::{command, near_command},
    confirm::{consent, is_on_terminal},
    interrupt::Interrupt,
    opened::{Opened, Surroundings, settings_and_key},
    peers, plan,
};
use crate::{
    failure::Failure,
    inventory::Ways,
    migrate::{self, Migration},
    run::Stopped,
    stack::{Stack, StackName, started_elsewhere},
};

/// How a migration is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// `stacklift <STACK>`: asks nobody before its checks (C04).
    Bare,
    /// `stacklift migrate <STACK>`
    Named,
}

pub(super) fn run(arguments: &MigrateArguments, called: Called, cli: Cli) -> Result<(), Ended> {
    let Cli { common, console } = cli;
    let Some(name) = &arguments.stack else {
        if called == Called::Bare {
            console.details(&command().render_help().to_string());
        }
        // C01
        let required = Failure::new("the stack name is required").hint(format!(
            "to begin, run `stacklift config init`, then `stacklift list`; examples for `stacklift rehearse`, lowest impact first: {}",
            seed::names().join(", ")
        ));
        return Err(required.into());
    };
    let name = StackName::new(name)?;
    let (settings, key) =
        settings_and_key(common, Some(&name), console).map_err(|ended| match ended {
            Ended::Failed(error) if Failure::hint_of(&error).is_none() => {
                Ended::Failed(suggest_command(&name, error, ""))
            }
            ended => ended,
        })?;
    let otherwise = " otherwise, pass the stack's directory with --dir";
    let stack = Stack::find(name.clone(), &settings.location)
        .map_err(|error| suggest_command(&name, error, otherwise))
        .map_err(|error| match called {
            Called::Named if settings.location.dir.is_none() && Failure::is_mistyped(&error) => {
                let containers = peers::engine(&settings, console).list(name.as_str());
                let containers = containers.unwrap_or_default();
                started_elsewhere(error, &containers, &settings.location.tool)
            }
            Called::Bare | Called::Named => error,
        })
        .map_err(Stopped::untouched)?;
    peers::warn_about_tls(&settings, console);
    let interrupt = Interrupt::watch(console);
    let opened = Surroundings::with(settings, Some(key), console)
        .and_then(|at| Opened::of(stack, at, console));
    let mut opened = opened.map_err(Stopped::untouched)?;
    opened.access = opened.at.wanted(&arguments.access)?;
    if arguments.dry_run {
        let ways = Ways {
            migrate: Some(arguments.force),
            ..Ways::default()
        };
        let wanted = (arguments.output, arguments.exit_code);
        plan::report(&opened, ways, wanted, console)?;
        note_the_plan(&name, console);
        return Ok(());
    }
    let setup = opened.setup()?;
    let question = |question: &str| {
        note_the_plan(&name, console);
        console.ask(question)
    };
    let migration = Migration {
        situation: opened.situation(),
        peers: &opened.at.peers,
        today: chrono::Local::now().date_naive(),
        force: arguments.force,
        consent: consent(arguments.yes || !is_on_terminal(), &question),
        setup: &setup,
    };
    Ok(migrate::run(&migration, &mut |event| {
        interrupt.show(&event.in_full());
    })?)
}

fn note_the_plan(name: &StackName, console: &Console) {
    console.note(&format!(
        "`stacklift adopt {name}` may keep these containers running: `stacklift plan {name}` shows that"
    ));
}

/// Suggests a command instead of a stack whose name is close to one, such as `migrat`.
fn suggest_command(name: &StackName, error: anyhow::Error, otherwise: &str) -> anyhow::Error {
    let Some(command) = near_command(name.as_str()) else {
        return error;
    };
    let hint = format!("did you mean `stacklift {command}`?{otherwise}");
    match error.downcast::<Failure>() {
        Ok(failure) => failure.hint(hint).into(),
        Err(error) => error,
    }
}
