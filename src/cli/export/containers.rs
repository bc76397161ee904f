//! `stacklift export --from containers`: writes a Compose project as files. Reads the engine only.

use super::{check_files, next, own_stack, show};
use crate::{
    cli::{
        Cli, Ended, arguments::ExportArguments, opened::Surroundings, settings::Settings,
        table::plan_rows,
    },
    export::{Export, write},
    reconstruct::reconstruct,
    report::ExportedStack,
    stack::{Stack, StackName, is_same},
};

pub(super) fn run(
    name: &StackName,
    arguments: &ExportArguments,
    cli: Cli,
) -> Result<ExportedStack, Ended> {
    let Cli { common, console } = cli;
    let at = Surroundings::of_host(&Settings::load(common)?, console)?;
    let (settings, inventory) = (&at.settings, at.inventory());
    let (to, force) = (arguments.to(name.as_str()), arguments.force);
    Export::check(&to, force)?;
    console.waiting("reading the containers");
    // A new directory in the stacks root would be the stack's own.
    let own = own_stack(&inventory, name);
    let replaced = own.as_ref().filter(|own| is_same(own.dir(), &to));
    replaced.map_or(Ok(()), check_files)?;
    let program = inventory.compose.compose()?;
    let (engine, tool) = (inventory.engine, &settings.location.tool);
    engine.refuse_podman()?;
    let reconstructed = reconstruct(engine, tool, name.as_str(), program)?;
    let file = replaced.map(Stack::file);
    let mut exported = write((&to, file), &reconstructed.files, force)?;
    name.as_str().clone_into(&mut exported.stack);
    exported.variables = reconstructed.variables;
    console.done();
    show(&exported, console);
    console.told("adopting these files:");
    for (start, text) in plan_rows(&reconstructed.services) {
        console.row(&start, &text);
    }
    if let Some(problem) = &reconstructed.problem {
        console.warning(&format!("{problem:#}"));
    }
    // As long as the stack has a Compose file, no other one is adopted.
    let own = own.filter(|own| own.is_found() && !is_same(own.dir(), &to));
    console.told(&match own.and_then(|own| own.export_command()) {
        Some(export) => format!(
            "next: check the files, then write them over your Compose file, of which a copy stays: `{export} --from containers`"
        ),
        None => next(settings, name, &to),
    });
    Ok(exported)
}
