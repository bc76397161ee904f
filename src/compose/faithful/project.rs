//! Which project the stack is here, and whether one text makes it.
#![deny(clippy::disallowed_methods)]

use super::{
    super::{
        document::{Document, Node},
        interpolate::interpolate,
        services,
    },
    Context, Reason, Refusal,
};

/// The project's name as compose finds it: `COMPOSE_PROJECT_NAME`, the text's `name`, the directory's.
pub(super) fn name(
    document: &Document,
    context: &Context<'_>,
    here: &dyn Fn(&str) -> Option<String>,
) -> String {
    if let Some(name) = here("COMPOSE_PROJECT_NAME").filter(|name| !name.is_empty()) {
        return name;
    }
    let written = document.get("name").and_then(Node::as_str);
    let named = written
        .and_then(|name| interpolate(name, &here).ok())
        .map(|name| normalised(&name))
        .filter(|name| !name.is_empty());
    named.unwrap_or_else(|| {
        let dir = context.stack_dir.trim_end_matches('/');
        normalised(dir.rsplit('/').next().unwrap_or_default())
    })
}

/// As compose normalises a name: lower case, nothing but `[a-z0-9_-]`, no `_` or `-` in front.
fn normalised(name: &str) -> String {
    let kept: String = name
        .to_lowercase()
        .chars()
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
        .collect();
    kept.trim_start_matches(['_', '-']).to_owned()
}

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
    let include = document.get("include");
    let is_empty = |node: Node<'_>| node.is_sequence() && node.items().next().is_none();
    if let Some(include) = include.filter(|&node| !node.is_null() && !is_empty(node)) {
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
