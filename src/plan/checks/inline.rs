//! Configs and secrets whose content Compose puts into containers, and the versions of Portainer that lose it (N17).

use std::collections::BTreeSet;

use crate::{
    compose::{ComposeVersion, Project},
    finding::Finding,
    plan::Facts,
};

/// The blocker if this version of Portainer loses the content that the text gives to a service.
pub fn lost_files(facts: &Facts, project: &Project) -> Option<Finding> {
    let portainer = facts.remote.version.as_ref()?;
    let fixed = match ComposeVersion::parse(portainer)?.release() {
        (2, 33, 3..=5) => "2.33.6",
        (2, 36, 0) => "2.37.0",
        _ => return None,
    };
    let what = format!(
        "Portainer {portainer} does not put the content of configs and secrets into containers"
    );
    let hint = format!("upgrade Portainer to {fixed} or later, or mount these as files");
    Finding::about(files(project), what, hint)
}

/// What the services use of both sections, if the text or a variable has its content.
pub fn files(project: &Project) -> Vec<String> {
    let files = project.services.iter().flat_map(|service| &service.files);
    let given = files.filter(|file| file.content.is_copied());
    let used: BTreeSet<String> = given
        .map(|file| format!("{}.{}", file.section, file.key))
        .collect();
    used.into_iter().collect()
}
