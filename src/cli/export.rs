//! `stacklift export`: writes Portainer stacks, or what the containers show, as files.

mod containers;
mod lost;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{
    Cli, Console, Ended, NO_STACK,
    arguments::{ExportArguments, ExportSource, Output},
    interrupt::watch_reading,
    opened::{Surroundings, only_project},
    settings::Settings,
};
use crate::{
    adopt::Prepared,
    export::Export,
    failure::Failure,
    inventory::Inventory,
    model::Record,
    plan::{AdoptFlags, InPortainer},
    portainer::{HINT_FOR_UNCLEAR, ListedRecord, PortainerReader},
    report::{ExportReport, ExportedStack, VERSION},
    snapshot::Place,
    stack::{Stack, StackName, is_same},
    text::{counted, listed, printable},
};

pub(super) fn run(arguments: &ExportArguments, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    if arguments.stack.is_none() && !arguments.all {
        return Err(Ended::Usage(NO_STACK));
    }
    let name = arguments.stack.as_deref().map(StackName::new).transpose()?;
    watch_reading(console);
    if arguments.output == Output::Json {
        console.steps_to_stderr();
    }
    let stacks = match (&name, arguments.source()) {
        (Some(name), ExportSource::Containers) => vec![containers::run(name, arguments, cli)?],
        (Some(name), ExportSource::PortainerData) => vec![lost::run(name, arguments, cli)?],
        _ => of_portainer(name.as_ref(), arguments, cli)?,
    };
    let failed = stacks.iter().filter(|stack| stack.error.is_some()).count();
    if failed > 0 {
        let all = counted(stacks.len(), "stack");
        console.warning(&format!("failed to export {failed} of {all}"));
    }
    if arguments.output == Output::Json {
        let version = VERSION;
        console.json(&ExportReport { version, stacks })?;
    }
    Ended::verdict((failed > 0).into())
}

/// Exports one stack that Portainer has, or all of them.
fn of_portainer(
    name: Option<&StackName>,
    arguments: &ExportArguments,
    cli: Cli,
) -> Result<Vec<ExportedStack>, Ended> {
    let console = cli.console;
    let (at, environment) = Surroundings::without_stack(cli)?;
    let endpoint = environment?;
    let (settings, inventory) = (&at.settings, at.inventory());
    let (portainer, engine) = at.peers.readers();
    let mut exporting = Exporting {
        export: Export {
            stacks_root: &settings.location.root,
            force: arguments.force,
            lost: None,
            file: None,
        },
        portainer,
        console,
    };
    console.waiting("reading Portainer");
    let limits = || Some(portainer.rights(endpoint)).filter(|rights| !rights.see_every_stack());
    let Some(name) = name else {
        if let Some(rights) = limits() {
            console.warning(&format!(
                "{rights}: stacks that its user may not see are not exported"
            ));
        }
        let to = arguments.to.clone().unwrap_or_else(|| PathBuf::from("."));
        let mut listed = portainer.all_records(endpoint)?;
        listed.retain(|listed| match &listed.record {
            Ok(record) => record.endpoint_id == endpoint,
            Err(_) => true,
        });
        return Ok(exporting.all(listed, &to));
    };
    let mut records = portainer.records(endpoint, name.as_str(), &name.portainer_name())?;
    records.retain(|record| record.endpoint_id == endpoint);
    // The name as it was given is preferred to the name that Portainer makes of it (M02).
    let exact = records.iter().find(|record| record.name == name.as_str());
    let Some(record) = exact.or(records.first()) else {
        let missing = format!("found no Portainer stack named {name} on environment {endpoint}");
        let hint = match limits() {
            Some(rights) => format!("{rights}: {}", rights.remedy()),
            None => {
                "run `stacklift list` to see the stacks; choose another environment with --endpoint"
                    .to_owned()
            }
        };
        return Err(Failure::new(missing).hint(hint).into());
    };
    let to = arguments.to(&record.name);
    let tool = &settings.location.tool;
    let existed = to.exists();
    let other = || only_project(engine, tool, |started| is_same(started, &to));
    let other = existed.then(other).flatten();
    if let Some(other) = other.filter(|other| *other != record.name) {
        let (dir, other) = (to.display(), printable(&other));
        let what = format!("cannot export {name}: {dir} is the directory of the stack {other}");
        let hint = "pass another directory with --to";
        return Err(Failure::new(what).hint(hint).into());
    }
    let own = existed.then(|| stack_in(&inventory, name, &to)).flatten();
    if let Some(own) = &own {
        check_files(own)?;
        exporting.export.file = Some(own.file());
    }
    let exported = exporting.one(record, &to)?;
    if existed || is_same(&to, &settings.location.root.join(name.as_str())) {
        console.waiting("comparing the files with Portainer's");
        // Without it, the next edit of the files counts as one in Portainer, and is refused.
        remember(&inventory, name, &to).ok();
        console.done();
    }
    Ok(vec![exported])
}

/// The stack whose directory this is.
fn stack_in(inventory: &Inventory, name: &StackName, dir: &Path) -> Option<Stack> {
    own_stack(inventory, name).filter(|own| is_same(own.dir(), dir))
}

/// The stack, if it has files on this host.
fn own_stack(inventory: &Inventory, name: &StackName) -> Option<Stack> {
    let containers = inventory.engine.list(name.as_str()).ok()?;
    inventory.stack(name, &containers).ok()
}

/// Refuses the directory of a stack that was started from several Compose files, or with `--env-file`: they would still be
/// what `plan` and `adopt` read.
fn check_files(own: &Stack) -> Result<()> {
    let started = own.started().into_iter();
    let files: Vec<_> = started
        .flat_map(|files| files.compose.iter().chain(&files.env))
        .collect();
    if own.is_replaceable() {
        return Ok(());
    }
    let (name, dir) = (own.name(), own.dir().display());
    let files = listed(&files);
    let what = format!(
        "cannot export into {dir}: {name} was started from {files}, and would still be read from there"
    );
    let hint = format!(
        "pass another directory with --to, and later to plan and adopt with --dir; then move {files} away: list and adopt --all read them"
    );
    Err(Failure::new(what).hint(hint).into())
}

/// If the files are now the stack's own, and Portainer has what they say, remembers that as last sent: whatever changes
/// next was edited there or here (B22).
fn remember(inventory: &Inventory, name: &StackName, to: &Path) -> Result<()> {
    let Some((stack, state)) = stack_in(inventory, name, to).zip(inventory.state) else {
        return Ok(());
    };
    let prepared = Prepared::new(&inventory.situation(&stack), AdoptFlags::default())?;
    let is_same = prepared.plan.in_portainer == InPortainer::UpToDate;
    if let Some(sent) = prepared.sent(&inventory.location.tool).filter(|_| is_same) {
        let engine = inventory.engine.id().ok();
        let store = Place::new(state, name.as_str()).open(engine.as_deref());
        store.set_last_sent(&sent)?;
    }
    Ok(())
}

/// Shows what was written and where, and what to know about it.
fn show(exported: &ExportedStack, console: &Console) {
    // In the opposite of the order in which they were written.
    let files: Vec<&String> = exported.files.iter().rev().collect();
    let variables = match exported.variables {
        0 => String::new(),
        some => format!(", {}", counted(some, "variable")),
    };
    let (name, to) = (&exported.stack, exported.dir.as_deref().unwrap_or_default());
    let what = format!("{name} to {to}: {}{variables}", listed(&files));
    console.outcome("exported", &what);
    for note in &exported.notes {
        console.step("note", note);
    }
}

/// What to do with the files that were written for a lost Compose file.
fn next(settings: &Settings, name: &StackName, to: &Path) -> String {
    let (mut words, dir) = (vec!["adopt", name.as_str()], to.to_string_lossy());
    if !is_same(to, &settings.location.root.join(name.as_str())) {
        words.extend(["--dir", &dir]);
    }
    let command = settings.typed.with(&words);
    format!("next: check the files, then run `{command}`")
}

struct Exporting<'a> {
    export: Export<'a>,
    portainer: &'a PortainerReader,
    console: &'a Console,
}

impl Exporting<'_> {
    fn one(&self, record: &Record, to: &Path) -> Result<ExportedStack> {
        let console = self.console;
        console.waiting(&format!("exporting {}", printable(&record.name)));
        let stored = || self.portainer.stored(&record.id);
        let exported = self.export.run((&record.name, record.kind), to, stored);
        console.done();
        let exported = exported?;
        show(&exported, console);
        if exported.moves_data {
            console.warning("the stack uses paths in Portainer's directory: move that data before you delete the stack or remove Portainer");
        }
        Ok(exported)
    }

    /// Exports every stack. A failure does not stop the others.
    fn all(&self, listed: Vec<ListedRecord>, to: &Path) -> Vec<ExportedStack> {
        let mut seen = BTreeSet::new();
        let mut export = |name: &str, record: Result<Record, String>| {
            let record = record.map_err(|why| Failure::new(why).hint(HINT_FOR_UNCLEAR))?;
            let own = StackName::new(OsStr::new(name))?;
            if seen.insert(name.to_owned()) {
                return self.one(&record, &to.join(name));
            }
            let id = &record.id;
            let what = format!("Portainer has another stack named {own}, with the ID {id}");
            let hint = "rename or delete one of them in Portainer";
            Err(Failure::new(what).hint(hint).into())
        };
        let each = listed.into_iter().map(|ListedRecord { name, record }| {
            export(&name, record).unwrap_or_else(|error| {
                let told = format!("{error:#}");
                let error = error.context(format!("stack {}", printable(&name)));
                self.console.error(&error, None);
                ExportedStack {
                    stack: name,
                    error: Some(told),
                    ..ExportedStack::default()
                }
            })
        });
        each.collect()
    }
}
