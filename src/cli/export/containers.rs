//! `stacklift export --from containers`: writes a Compose project as files. Reads the engine only.

use super::{exported, next};
use crate::{
    cli::{
        Cli, Ended, arguments::ExportArguments, columns::width, peers, settings::Settings,
        style::Meaning,
    },
    compose,
    export::{Export, write},
    reconstruct::{Sameness, reconstruct},
    stack::StackName,
};

pub(super) fn run(name: &StackName, arguments: &ExportArguments, cli: Cli) -> Result<(), Ended> {
    let Cli { common, console } = cli;
    let settings = Settings::load(common)?;
    let engine = peers::engine(&settings, console);
    let (to, force) = (arguments.to(name.as_str()), arguments.force);
    Export::check(&to, force)?;
    console.waiting("reading the containers");
    let tool = &settings.location.tool;
    let host = compose::Host::new(tool, console.trace());
    let program = host.compose();
    engine.refuse_podman()?;
    let reconstructed = reconstruct(&engine, tool, name.as_str(), program.ok())?;
    let (files, notes) = write((&to, None), &reconstructed.files, force)?;
    console.done();
    let variables = reconstructed.variables;
    console.outcome("exported", &exported(name.as_str(), &to, &files, variables));
    for note in notes {
        console.step("note", &note);
    }
    let services = &reconstructed.services;
    let longest = services.iter().map(|(service, _)| width(service)).max();
    for (service, sameness) in services {
        let (meaning, sign) = match sameness {
            Sameness::Equal => (Meaning::Kept, '='),
            Sameness::Different(_) => (Meaning::Changed, '~'),
            Sameness::Depends(_) | Sameness::Unknown => (Meaning::Unknown, '?'),
        };
        let text = match sameness {
            Sameness::Equal => "an adoption keeps its container",
            Sameness::Different(why) => &format!("would be recreated: {why}"),
            Sameness::Depends(other) => {
                &format!("may be recreated: it depends on {other}, which would not be kept")
            }
            Sameness::Unknown => "unknown whether an adoption keeps it",
        };
        let room = " ".repeat(longest.unwrap_or_default() - width(service));
        console.row(&(meaning, format!("  {sign}  {service}{room}  ")), text);
    }
    if let Some(problem) = &reconstructed.problem {
        console.warning(&format!("{problem:#}"));
    }
    if let Err(why) = program {
        console.warning(&format!(
            "{why}: it is unknown which containers an adoption keeps"
        ));
    }
    console.told_whole(&next(name, &to));
    Ok(())
}
