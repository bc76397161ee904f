//! `stacklift export --from portainer-data`: writes a stack of a Portainer that is gone as files. Reads the engine and that
//! Portainer's data only.

use super::{next, show};
use crate::{
    cli::{Cli, Ended, arguments::ExportArguments, peers, settings::Settings},
    export::{Export, find_lost},
    model::StackKind,
    stack::StackName,
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
    if let Some(doubt) = &lost.doubt {
        console.warning(&format!(
            "this may be the Compose file of another stack: {doubt}"
        ));
    }
    console.told(&next(&settings, name, &to));
    Ok(())
}
