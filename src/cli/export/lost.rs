//! `stacklift export --from portainer-data`: writes a stack of a Portainer that is gone as files. Reads the engine and that
//! Portainer's data only.

use std::collections::BTreeMap;

use super::{next, show};
use crate::{
    cli::{Cli, Ended, arguments::ExportArguments, peers, settings::Settings},
    compose::{self, Profiles, Project, Values},
    export::{Export, find_lost},
    model::StackKind,
    stack::StackName,
    text::Mask,
};

pub(super) fn run(name: &StackName, arguments: &ExportArguments, cli: Cli) -> Result<(), Ended> {
    let Cli { common, console } = cli;
    let settings = Settings::load(common)?;
    let engine = peers::engine(&settings, console);
    let to = arguments.to(name.as_str());
    Export::check(&to, arguments.force)?;
    console.waiting("looking for Portainer's data");
    let tool = &settings.location.tool;
    let data = arguments.portainer_data.as_deref();
    let (stored, lost) = find_lost(&engine, tool, name.as_str(), data)?;
    let export = Export {
        stacks_root: &settings.location.root,
        force: arguments.force,
        lost: Some(&lost),
        file: None,
    };
    let stack = (name.as_str(), StackKind::Compose);
    let exported = export.run(stack, &to, || Ok(stored));
    console.done();
    let exported = exported?;
    console.step("found", &lost.file.display().to_string());
    show(name.as_str(), &to, &exported, console);
    let doubt = lost.doubt.or_else(|| {
        let host = compose::Host::new(tool, console.trace());
        let input = compose::Input::OnDisk {
            project: Some(name.as_str()),
            dir: &to,
            files: &[],
            env_files: &[],
        };
        let program = host.compose().ok()?;
        let (profiles, values) = (Profiles::Active, Values::Resolved);
        let config = program.config(&input, profiles, values, &Mask::default());
        let version = program.version().release;
        let of_file = Project::new(&config.ok()?, version, &BTreeMap::new(), None);
        let containers = engine.list(name.as_str()).ok()?;
        let mut of_containers = containers
            .iter()
            .filter_map(|one| one.compose_label(tool, "config-hash"));
        let is_any = of_containers.any(|hash| {
            of_file
                .services()
                .any(|service| of_file.is_of(service, hash))
        });
        (!is_any).then(|| format!("no container of {name} has its configuration"))
    });
    if let Some(doubt) = doubt {
        console.warning(&format!(
            "this may be the Compose file of another stack: {doubt}"
        ));
    }
    console.told(&next(&settings, name, &to));
    Ok(())
}
