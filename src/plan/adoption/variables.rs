//! The variables that only running containers have: from another shell, or from the Docker configuration (N34).

use std::collections::BTreeMap;

use composefile::{interpolate::occurrences, reader::DEFAULT_FILES, services::services};

use crate::{
    compose::Service,
    finding::Finding,
    plan::Facts,
    text::{listed, said, sha256, shell_word},
};

/// Whether the only Compose file gives a variable the same value in every shell. An env file may take it from the shell, and what
/// Compose combines from several files has the values of env files, too.
pub(super) fn is_literal(facts: &Facts, service: &str, variable: &str) -> bool {
    let written = written(facts, service, variable).into_iter().flatten();
    written.into_iter().any(|value| !value.contains('$'))
}

/// The digests of what the text says of these variables.
pub(super) fn instead_of<'n>(
    service: &Service,
    names: impl Iterator<Item = &'n String>,
) -> BTreeMap<String, String> {
    let digest = |name: &String| sha256(&format!("{:?}", service.environment.get(name)));
    names.map(|name| (name.clone(), digest(name))).collect()
}

/// The refusal of a service whose container has the variables `names` otherwise than the files. `starts_again` is whether
/// Compose recreates it from the files.
pub(super) fn other_variables(
    facts: &Facts,
    service: &Service,
    names: &[String],
    starts_again: bool,
) -> Finding {
    let (mut other, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        let unset = unset(facts, &service.name, name);
        if !unset.is_empty() {
            missing.extend(unset);
        } else if service.environment.contains_key(name) {
            other.push(name.clone());
        } else {
            missing.push(name.clone());
        }
    }
    missing.sort();
    missing.dedup();
    let differs = said(&other, "has another value in the files");
    let absent = said(&missing, "is not in the files");
    let how: Vec<String> = differs.into_iter().chain(absent).collect();
    let (name, how) = (&service.name, how.join(", and "));
    let what = format!("{name} does not run with the variables of its files: {how}");
    let add = match missing.as_slice() {
        [] => String::new(),
        missing => format!(
            ", or add {} to .env, and to `environment` of the service if it is not there",
            listed(missing)
        ),
    };
    let up = up(facts.files);
    let drop = if starts_again {
        format!(
            "to use those of the files, which recreates the container, go to the stack's directory and run `{up}`"
        )
    } else {
        // N34
        format!(
            "to drop them, remove `proxies` from the Docker configuration if they are from there, go to the stack's directory and run `{up} --force-recreate`"
        )
    };
    let hint = format!("pass --keep-variables to keep the values of the containers{add}; {drop}");
    Finding::new(what, hint).short("variables differ")
}

/// The variables that the only Compose file takes the value of a variable from, and that `.env` does not have.
fn unset(facts: &Facts, service: &str, variable: &str) -> Vec<String> {
    let env = facts.sent.env;
    let values = written(facts, service, variable).into_iter().flatten();
    let names = values.flat_map(|value| {
        occurrences(value)
            .into_iter()
            .map(|occurrence| occurrence.name.to_owned())
    });
    names
        .filter(|name| env.iter().all(|variable| variable.name != *name))
        .collect()
}

/// What the only Compose file writes for a variable of a service.
fn written<'a>(facts: &Facts<'a>, service: &str, variable: &str) -> Option<Vec<&'a str>> {
    let document = facts.source.document.as_ref()?;
    let mut services = services(document).into_iter();
    let found = services.find(|other| other.name == service)?;
    let variables = found.environment().into_iter();
    let of = variables.filter(|(name, _)| *name == variable);
    (facts.files.len() == 1).then(|| of.filter_map(|(_, value)| value).collect())
}

/// The command that starts the files of a stack by hand.
pub fn up(files: &[String]) -> String {
    let files = match files {
        [one] if DEFAULT_FILES.contains(&one.as_str()) => &[],
        files => files,
    };
    let flags = files.iter().map(|file| format!(" -f {}", shell_word(file)));
    format!("docker compose{} up -d", flags.collect::<String>())
}
