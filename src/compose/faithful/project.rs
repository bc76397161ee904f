//! Whether one text makes the stack.
#![deny(clippy::disallowed_methods)]

use super::{
    super::{document::Document, services},
    Context, Reason, Refusal,
};

/// What makes the stack out of more than one file.
pub(super) fn other_files(
    document: &Document,
    context: &Context<'_>,
    here: &dyn Fn(&str) -> Option<String>,
) -> Vec<Refusal> {
    let hint = |files: &[&str]| {
        let files: String = files.iter().flat_map(|file| [" -f ", file]).collect();
        format!(
            "make one file of them, look at it, and name it with --file: (cd {} && docker compose{files} config --no-interpolate --output stacklift.yml)",
            context.stack_dir
        )
    };
    let mut found = Vec::new();
    if let Some(include) = document.get("include").filter(|include| !include.is_null()) {
        let message = "`include` names files that the manager cannot read";
        let hint = hint(&[context.file]);
        found.push(Refusal::at(include, Reason::SeveralFiles, message, hint));
    }
    for service in services::services(document) {
        if let Some(file) = service.extends_file() {
            let message = format!(
                "`extends` of the service {} names a file that the manager cannot read",
                service.name
            );
            let hint = hint(&[context.file]);
            found.push(Refusal::at(file.node, Reason::SeveralFiles, message, hint));
        }
    }
    let named = here("COMPOSE_FILE").filter(|files| !files.is_empty());
    if let Some(files) = named {
        let separator = here("COMPOSE_PATH_SEPARATOR").unwrap_or_else(|| ":".into());
        let files: Vec<_> = files.split(&separator).collect();
        if let [one] = files[..] {
            if one.trim_start_matches("./") != context.file {
                found.push(Refusal::of(
                    Reason::SeveralFiles,
                    format!("COMPOSE_FILE names {one}, not {}", context.file),
                    format!("say which one is the stack's: --file {one}"),
                ));
            }
        } else {
            let message = format!("COMPOSE_FILE names {} files", files.len());
            found.push(Refusal::of(Reason::SeveralFiles, message, hint(&files)));
        }
    } else if let Some(file) = context.overrides.first() {
        let message = format!(
            "{file} stands beside {}, and compose reads both",
            context.file
        );
        let hint = hint(&[context.file, file]);
        found.push(Refusal::of(Reason::SeveralFiles, message, hint));
    }
    found
}
