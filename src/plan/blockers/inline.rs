//! Configs and secrets whose content Compose puts into containers, and the versions of Portainer that lose it (N17).

use std::collections::BTreeSet;

use crate::{
    compose::ComposeVersion,
    finding::Finding,
    plan::{
        Facts,
        facts::services::{SentService, SentStack},
    },
};

/// The blocker if this version of Portainer loses the content that the text gives to a service.
pub fn lost_files(facts: &Facts, stack: &SentStack) -> Option<Finding> {
    let portainer = facts.portainer_version.as_ref()?;
    let fixed = match ComposeVersion::parse(portainer)?.release() {
        (2, 33, 3..=5) => "2.33.6",
        (2, 36, 0) => "2.37.0",
        _ => return None,
    };
    let what = format!(
        "Portainer {portainer} does not put the content of configs and secrets into containers"
    );
    let hint = format!("upgrade Portainer to {fixed} or later, or mount these as files");
    Finding::about(files(stack), what, hint)
}

/// What the active services use of both sections, if the text or a variable has its content.
pub fn files(stack: &SentStack) -> Vec<String> {
    let services = stack.active();
    let used: BTreeSet<String> = ["configs", "secrets"]
        .into_iter()
        .flat_map(|section| services.iter().flat_map(move |one| given(one, section)))
        .collect();
    used.into_iter().collect()
}

/// What a service uses of a section, if the text or a variable has its content.
fn given(service: &SentService, section: &str) -> Vec<String> {
    let stack = service.stack;
    let names = service.items(section).filter_map(|item| {
        let source = item.get("source").unwrap_or(item);
        stack.read(source).known()
    });
    let has_content = |name: &String| {
        let of = stack.reader.document.get(section);
        let one = of.and_then(|of| of.get(name));
        one.is_some_and(|one| one.get("content").or(one.get("environment")).is_some())
    };
    names
        .filter(has_content)
        .map(|name| format!("{section}.{name}"))
        .collect()
}
