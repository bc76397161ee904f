//! Blocks on a stack with more than one file, because Portainer gets a single text. A Compose program can combine the
//! files first.

use composefile::reader::Reader;

use crate::rewrite::faithful::{Finding, Kind, ONE_FILE, findings::Findings};

/// Finds the other files that Compose reads for the stack.
pub(super) fn other_files<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    let (document, context) = (reader.document, reader.context);
    let files = reader.files();
    let include = document.get("include");
    if let Some(include) = include.filter(|include| include.items().next().is_some()) {
        let message = "Portainer cannot read the files that `include` names";
        found.block(include, Kind::SeveralFiles, message, ONE_FILE);
    }
    for service in &reader.services {
        let extended = service.extends_file().map(|_| "extends");
        let labels = (!service.label_files().is_empty()).then_some("label_file");
        for key in extended.into_iter().chain(labels) {
            let name = service.name;
            let message =
                format!("Portainer cannot read the file that `{key}` of service {name} names");
            let node = service.node.get(key).unwrap_or(service.node);
            found.block(node, Kind::SeveralFiles, message, ONE_FILE);
        }
    }
    let (message, hint) = match &files[..] {
        [one] if one == context.file => return,
        [one] => (
            format!("COMPOSE_FILE names {one}, not {}", context.file),
            &*format!("to use that file, pass --file {one}"),
        ),
        [file, other] if reader.listed_files().is_empty() => (
            format!("Compose merges {other} into {file}, but Portainer takes a single file"),
            ONE_FILE,
        ),
        several => (
            format!(
                "COMPOSE_FILE names {} files, but Portainer takes a single file",
                several.len()
            ),
            ONE_FILE,
        ),
    };
    found.blockers.push(Finding::several_files(message, hint));
}
