//! Which project the stack is here, and whether one text makes it.
#![deny(clippy::disallowed_methods)]

use super::{
    super::{
        document::{Document, Node},
        interpolate::interpolate,
        services::Service,
    },
    Context, Reason, Refusal,
};

/// The names under which compose finds a file by itself. Only then it looks for an override, and a file of
/// another name was named.
pub const FOUND_BY_ITSELF: [&str; 4] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
];

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
    services: &[Service<'_>],
    context: &Context<'_>,
    here: &dyn Fn(&str) -> Option<String>,
) -> Vec<Refusal> {
    let is_named = !FOUND_BY_ITSELF.contains(&context.file);
    let listed = here("COMPOSE_FILE").unwrap_or_default();
    let separator = here("COMPOSE_PATH_SEPARATOR").unwrap_or_else(|| ":".into());
    let listed: Vec<_> = listed
        .split(&separator)
        .filter(|file| !file.is_empty())
        .collect();
    let is_listed = listed
        .iter()
        .any(|file| file.trim_start_matches("./") == context.file);
    // A file that was named stands for itself, unless it is one of those that are listed.
    let listed = if is_named && !is_listed {
        &[]
    } else {
        &listed[..]
    };
    let beside: Vec<&str> = context
        .overrides
        .iter()
        .take(1)
        .map(String::as_str)
        .collect();
    let files = match listed {
        [] => [&[context.file], &beside[..]].concat(),
        listed => listed.to_vec(),
    };
    let hint = one_file_of(&files, context.stack_dir);
    let refusal = |message: String| Refusal::of(Reason::SeveralFiles, message, hint.clone());
    let mut found = Vec::new();
    let include = document.get("include");
    if let Some(include) = include.filter(|include| include.items().next().is_some()) {
        let message = "`include` names files that the manager cannot read";
        found.push(Refusal::at(
            include,
            Reason::SeveralFiles,
            message,
            hint.clone(),
        ));
    }
    for service in services {
        if let Some(file) = service.extends_file() {
            let name = service.name;
            let message = format!(
                "`extends` of the service {name} names a file that the manager cannot read"
            );
            found.push(Refusal::at(
                file.node,
                Reason::SeveralFiles,
                message,
                hint.clone(),
            ));
        }
    }
    match (listed, &beside[..]) {
        ([one], _) if !is_listed => found.push(Refusal::of(
            Reason::SeveralFiles,
            format!("COMPOSE_FILE names {one}, not {}", context.file),
            format!("say which one is the stack's: --file {one}"),
        )),
        ([_, _, ..], _) => found.push(refusal(format!(
            "COMPOSE_FILE names {} files",
            listed.len()
        ))),
        ([], [file, ..]) => found.push(refusal(format!(
            "{file} stands beside {}, and compose reads both",
            context.file
        ))),
        _ => {}
    }
    found
}

/// How to make one file of several. The values are written into it: without that (`--no-interpolate`),
/// compose puts the directory in front of a path that starts with a variable, takes a mount that starts with
/// one for a volume, and forgets the `.env` of what is included.
fn one_file_of(files: &[&str], dir: &str) -> String {
    let files = files
        .iter()
        .flat_map(|file| [" -f ".to_owned(), word(file)]);
    let files: String = files.collect();
    format!(
        "make one file of them, in which the values of .env are written, and name it with --file stacklift.yml: (umask 077 && cd {} && docker compose{files} --profile '*' config --output stacklift.yml)",
        word(dir)
    )
}

/// A word of a shell.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
