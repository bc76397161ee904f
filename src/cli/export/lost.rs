//! `stacklift export --from portainer-data`: writes a stack of a Portainer that is gone as files. Reads the engine and that
//! Portainer's data only.

use std::{path::Path, sync::Arc};

use anyhow::Result;

use super::{next, show};
use crate::{
    cli::{
        Cli, Console, Ended,
        arguments::ExportArguments,
        opened::Surroundings,
        peers,
        settings::{KeySource, Settings},
    },
    compose::{self, Folder, Profiles, Project, Values},
    export::{Export, find_lost},
    failure::Failure,
    inventory::Inventory,
    model::{self, Container, StackKind},
    report::ExportedStack,
    stack::StackName,
    text::{Mask, printable},
};

pub(super) fn run(
    name: &StackName,
    arguments: &ExportArguments,
    cli: Cli,
) -> Result<ExportedStack, Ended> {
    let Cli { common, console } = cli;
    let settings = Settings::load(common)?;
    let at = Surroundings::of_host(&settings, console)?;
    let inventory = at.inventory();
    let engine = inventory.engine;
    let to = arguments.to(name.as_str());
    Export::check(&to, arguments.force)?;
    console.waiting("looking for Portainer's data");
    let tool = &settings.location.tool;
    let data = arguments.portainer_data.as_deref();
    let (stored, lost) = find_lost(engine, tool, name.as_str(), data)?;
    let export = Export {
        stacks_root: &settings.location.root,
        force: arguments.force,
        lost: Some(&lost),
        file: None,
    };
    if data.is_none()
        && let Some(other) = successor(&settings, name, &stored.folder, console)
    {
        let (folder, other) = (printable(&stored.folder), printable(&other));
        let what = format!(
            "{folder} is now the directory of the Portainer stack {other}, and not of {name}"
        );
        let hint = "pass an older copy of Portainer's data with --portainer-data, or run the command with --from containers";
        return Err(Failure::new(what).hint(hint).into());
    }
    let stack = (name.as_str(), StackKind::Compose);
    let hashed = || {
        let folder = Folder::of_rehearsal()?;
        export.run(stack, folder.path(), || Ok(stored.clone()))?;
        doubt(&inventory, name, folder.path())
    };
    // What cannot be compared is no reason for a doubt.
    let doubt = lost.doubt.clone().or_else(|| hashed().ok().flatten());
    let doubt = doubt.map(|doubt| {
        let file = lost.file.display();
        format!("{file} may be the Compose file of another stack: {doubt}")
    });
    if let Some(doubt) = doubt.as_ref().filter(|_| settings.location.has_file(&to)) {
        let hint = "pass an empty directory with --to, and compare the files";
        return Err(Failure::new(doubt).hint(hint).into());
    }
    let exported = export.run(stack, &to, || Ok(stored));
    console.done();
    let exported = exported?;
    console.step("found", &lost.file.display().to_string());
    show(&exported, console);
    if let Some(doubt) = doubt {
        console.warning(&doubt);
    }
    console.told(&next(&settings, name, &to));
    Ok(exported)
}

/// The other stack to which a Portainer that responds has given the directory of the lost one.
fn successor(
    settings: &Settings,
    name: &StackName,
    folder: &str,
    console: &Arc<Console>,
) -> Option<String> {
    let key = KeySource::of(settings.api_key_file.as_deref())
        .and_then(KeySource::read)
        .ok()?;
    console.hide(&key);
    let portainer = peers::portainer(settings, key, false, console).ok()?;
    let endpoint = settings.endpoint.unwrap_or_default();
    let listed = portainer.reader().all_records(endpoint).ok()?;
    let records = listed
        .iter()
        .filter_map(|listed| listed.record.as_ref().ok());
    model::successor(records, name.as_str(), folder).map(str::to_owned)
}

/// A container that certainly has another configuration than the files in `dir`.
fn doubt(at: &Inventory, name: &StackName, dir: &Path) -> Result<Option<String>> {
    let (engine, tool) = (at.engine, &at.location.tool);
    let input = compose::Input::OnDisk {
        project: Some(name.as_str()),
        dir,
        files: &[],
        env_files: &[],
    };
    let program = at.compose.compose()?;
    let (profiles, values) = (Profiles::Active, Values::Resolved);
    let read = program.read(&input, profiles, values, &Mask::default())?;
    let containers = engine.list(name.as_str())?;
    let service = |one: &Container| one.compose_label(tool, "service").map(str::to_owned);
    let ids = containers
        .iter()
        .filter_map(|container| Some((service(container)?, container.id().to_owned())));
    let project = Project::new(&read, &ids.collect(), None);
    let other = containers
        .iter()
        .find(|one| project.differs_from(one, tool));
    Ok(other.and_then(service).map(|service| {
        format!(
            "{} of {name} has another configuration",
            printable(&service)
        )
    }))
}
