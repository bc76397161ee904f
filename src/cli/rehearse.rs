//! `stacklift rehearse [STACK]`: a migration or an adoption against the embedded Portainer and engine.
//!
//! Connects to nothing outside this process and its Compose program, and writes only to a temporary directory: copies of Compose
//! files and env files, never data. A signal removes the directory.

mod embedded;
mod program;
mod stage;

use std::{ffi::OsStr, path::Path, sync::Arc};

use anyhow::{Context, Result};
use rehearsal::{COMPOSE_VERSION, World, seed};

use self::{
    embedded::{Embedded, FACTS, FLAGS},
    stage::{of_examples, of_user},
};
use super::{
    Cli, Ended, adopt as adopt_command,
    arguments::{Common, RehearseArguments},
    console::Console,
    events,
    interrupt::watch_reading,
    plan,
    settings::Settings,
    table::plain,
};
use crate::{
    compose,
    failure::Failure,
    finding::Finding,
    inventory::{self, Ways},
    report::Way,
    run::{Event, Stopped},
    stack::{Location, Stack, StackName, stack_dir},
};

/// The default example. It shows each kind of loss.
const DEFAULT: &str = "books-db";

/// What a rehearsal of the user's stack leaves open.
const UNKNOWN: &str = "The rehearsal does not look at your containers and images: `stacklift plan` does, and can find more that is recreated or lost.";

pub(super) fn run(arguments: &RehearseArguments, cli: Cli) -> Result<(), Ended> {
    let Cli { common, console } = cli;
    let settings = Settings::of_rehearsal(common)?;
    let named = arguments.stack.as_deref().unwrap_or(OsStr::new(DEFAULT));
    let name = StackName::new(named)?;
    name.refuse_management_plane()?;
    // Holds every file of the rehearsal.
    let folder = compose::Folder::of_rehearsal();
    let folder = folder.context("failed to create a temporary directory for the rehearsal")?;
    watch_reading(console);
    let is_own = is_own(&name, arguments, common, &settings.location);
    let stage = if is_own {
        of_user(&name, &settings.location, folder.path(), console)?
    } else {
        let examples = seed::names();
        if !examples.contains(&name.as_str()) {
            let all = examples.join(", ");
            let hint = format!(
                "examples: {all}; for your own stacks, use --stacks-root or --dir: `stacklift plan {name}` names the directory of one that runs"
            );
            let what = format!("unknown example stack {name}");
            return Err(Failure::new(what).hint(hint).into());
        }
        of_examples(&settings.location, folder.path(), console)?
    };
    let stack = Stack::find(name, &stage.location)?;
    let what = if is_own {
        let dir = stack_dir(stack.name(), &settings.location)?;
        format!(
            "rehearsing a copy of the files in {}, as if Compose {COMPOSE_VERSION} had started every service from them",
            dir.display()
        )
    } else {
        format!("rehearsing the example stack {}", stack.name())
    };
    console.text(&what);
    let rehearsed = Rehearsed {
        arguments,
        settings: &settings,
        stack: &stack,
        is_own,
        folder: folder.path(),
        verbose: common.verbose,
        console,
    };
    let ended = match arguments.way {
        Way::Migrate => rehearsed.migrate(stage.world),
        Way::Adopt => rehearsed.adopt(stage.world),
    };
    if !matches!(ended, Ok(()) | Err(Ended::Verdict(_))) {
        return ended;
    }
    let words = ["plan", stack.name().as_str()];
    console.next(&if is_own {
        settings.typed.with(&words)
    } else {
        "stacklift list".to_owned()
    });
    ended
}

/// What a rehearsal runs on.
struct Rehearsed<'a> {
    arguments: &'a RehearseArguments,
    settings: &'a Settings,
    stack: &'a Stack,
    /// Whether it is one of the user's: the images of the examples are known.
    is_own: bool,
    folder: &'a Path,
    verbose: bool,
    console: &'a Arc<Console>,
}

impl Rehearsed<'_> {
    fn migrate(&self, world: World) -> Result<(), Ended> {
        let console = self.console;
        let embedded = Embedded::new(self, world, "migrate")?;
        let ended = embedded.migrate(self.arguments.force, &mut |event| {
            // Nobody can undo it.
            if !matches!(event, Event::Line(_)) {
                events::show(console, &event.in_full());
            }
        });
        console.done();
        if ended.is_ok() {
            self.say_what_is_unknown();
        }
        self.show_requests(&embedded);
        ended.map_err(without_snapshot)
    }

    /// Plans and adopts. Then migrates the same stack in an equal world, to compare.
    fn adopt(&self, world: World) -> Result<(), Ended> {
        let console = self.console;
        let embedded = Embedded::new(self, world.clone(), "adopt")?;
        console.waiting("planning");
        let ways = Ways {
            adopt: Some(FLAGS),
            migrate: Some(self.arguments.force),
            ..Ways::default()
        };
        let planned = inventory::plan(&embedded.opened.situation(), ways);
        console.done();
        // The migration is compared at the end.
        let mut planned = planned.map_err(Stopped::untouched)?;
        let migration = planned.migrate.take();
        // A rehearsal has no --diff to show them with.
        if let Some(adoption) = &mut planned.adopt {
            adoption.changed_lines = None;
        }
        plan::show_without_next(&planned, console);
        let adoption = planned.adopt.as_ref();
        if adoption.is_some_and(|one| !one.blockers.is_empty()) {
            return Ended::verdict(1);
        }
        self.say_what_is_unknown();
        console.heading("Adopting it in the rehearsal");
        let before = embedded.world();
        let told = adoption.into_iter().flat_map(|way| &way.warnings);
        let told: Vec<String> = told.map(Finding::to_string).collect();
        let (mut report, ended) = embedded.adopt(&mut |event| {
            // The plan has just shown them.
            let is_told = match &event {
                Event::Services(_) | Event::Note(_) => true,
                Event::Warning(warning) => told.contains(warning),
                _ => false,
            };
            if !is_told {
                events::show(console, &event);
            }
        });
        console.done();
        // Where the stack is in the embedded Portainer, and how long its embedded containers were down, means nothing.
        (report.url, report.undo) = (None, None);
        let services = report.services.iter_mut();
        for container in services.flat_map(|service| &mut service.containers) {
            container.away = None;
        }
        adopt_command::show(&report, console);
        self.show_requests(&embedded);
        let adopted = embedded.outcome(&before, planned.adopt.as_ref(), ended.is_ok());
        let embedded = Embedded::new(self, world, "migrate")?;
        let before = embedded.world();
        console.waiting("migrating the same stack, to compare");
        let migrated = embedded.migrate(self.arguments.force, &mut |_| ());
        console.done();
        let migrated = embedded.outcome(&before, migration.as_ref(), migrated.is_ok());
        console.heading("Both ways compared");
        let rows = FACTS.into_iter().zip(adopted.into_iter().zip(migrated));
        let rows = rows.filter(|(_, (adopted, migrated))| *adopted != "0" || *migrated != "0");
        let rows =
            rows.map(|(fact, (adopted, migrated))| plain([fact.to_owned(), adopted, migrated]));
        console.table(&["", "adopt", "migrate"], rows);
        // The plan has shown those of the adoption.
        if let Some(way) = migration.filter(|way| !way.losses.is_empty()) {
            console.heading("Migrating it loses");
            plan::show_list(&way.losses, &way.services, console);
        }
        ended.map_err(without_snapshot)
    }

    fn say_what_is_unknown(&self) {
        if self.is_own {
            self.console.text(UNKNOWN);
        }
    }

    fn show_requests(&self, embedded: &Embedded) {
        if self.verbose {
            self.console.heading("API requests");
            for request in embedded.rehearsal.requests() {
                self.console.line(&request.to_string());
            }
        }
    }
}

/// A rehearsal's snapshot is deleted with it.
fn without_snapshot(stopped: Stopped) -> Ended {
    Ended::Stopped(Stopped {
        state: stopped.state.without_snapshot(),
        ..stopped
    })
}

/// Whether the stack is one of the user's: a flag says where it is, or it is named and in the stacks root.
fn is_own(name: &StackName, arguments: &RehearseArguments, common: &Common, at: &Location) -> bool {
    let has_directory = || stack_dir(name, at).is_ok_and(|dir| dir.is_dir());
    common.value("stacks-root").is_some()
        || common.dir.is_some()
        || (arguments.stack.is_some() && has_directory())
}
