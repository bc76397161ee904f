//! Whether one text makes the stack.
#![deny(clippy::disallowed_methods)]

use super::{super::reader::Reader, Reason, Refusal};

/// What makes the stack out of more than one file.
pub(super) fn other_files(reader: &Reader<'_, '_>) -> Vec<Refusal> {
    let (document, context) = (reader.document, reader.context);
    let hint = |files: &[String]| {
        let files: String = files
            .iter()
            .flat_map(|file| [" -f ", file.as_str()])
            .collect();
        format!(
            "make one file of them, look at it, and name it with --file: (cd {} && docker compose{files} config --no-interpolate --output stacklift.yml)",
            context.stack_dir
        )
    };
    let mut found = Vec::new();
    if let Some(include) = document.get("include").filter(|include| !include.is_null()) {
        let message = "`include` names files that the manager cannot read";
        let hint = hint(&[context.file.to_owned()]);
        found.push(Refusal::at(include, Reason::SeveralFiles, message, hint));
    }
    for service in &reader.services {
        if let Some(file) = service.extends_file() {
            let message = format!(
                "`extends` of the service {} names a file that the manager cannot read",
                service.name
            );
            let hint = hint(&[context.file.to_owned()]);
            found.push(Refusal::at(file.node, Reason::SeveralFiles, message, hint));
        }
    }
    let files = reader.files();
    match &files[..] {
        [one] if one == context.file => {}
        [one] => found.push(Refusal::of(
            Reason::SeveralFiles,
            format!("COMPOSE_FILE names {one}, not {}", context.file),
            format!("say which one is the stack's: --file {one}"),
        )),
        several => {
            let is_named = reader
                .here("COMPOSE_FILE")
                .is_some_and(|files| !files.is_empty());
            let message = match several {
                [file, beside] if !is_named => {
                    format!("{beside} stands beside {file}, and compose reads both")
                }
                _ => format!("COMPOSE_FILE names {} files", several.len()),
            };
            found.push(Refusal::of(Reason::SeveralFiles, message, hint(several)));
        }
    }
    found
}
