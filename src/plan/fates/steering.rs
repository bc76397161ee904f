//! The variables of a stack that steer Compose in Portainer (N14).

use std::collections::BTreeMap;

use crate::{
    compose::Project,
    finding::Finding,
    plan::{Facts, PortainerCompose, Sent, ServicePlan, fates::Fate},
    text::listed,
};

const PROFILES: &str = "COMPOSE_PROFILES";
const REMOVE_ORPHANS: &str = "COMPOSE_REMOVE_ORPHANS";
const IGNORE_ORPHANS: &str = "COMPOSE_IGNORE_ORPHANS";

/// Such variables of a stack, as far as Portainer's Compose follows them.
pub struct Steering<'a> {
    project: &'a Project,
    /// The variables that are sent.
    variables: BTreeMap<String, String>,
    /// `None` if its version is unknown: it may follow all of them.
    portainer: Option<PortainerCompose>,
    /// Whether the Portainer stack has the option to prune services (N19).
    prune: bool,
}

impl<'a> Steering<'a> {
    pub fn new(facts: &Facts<'a>, project: &'a Project) -> Self {
        // A migration deletes the Portainer stack.
        let record = facts.record.filter(|_| facts.is_adoption());
        Self {
            project,
            variables: facts.sent.variables(),
            portainer: facts.portainer,
            prune: record.is_some_and(|facts| facts.record.prune),
        }
    }

    /// What happens to the containers of a service that the Compose file does not define (N09, N14).
    pub fn orphan(&self) -> Fate {
        match self.removes_orphans() {
            Some(why) => Fate::Removed(why),
            None => Fate::LeftBehind("not in the Compose file".to_owned()),
        }
    }

    /// Why Portainer removes orphans, if it does, or may.
    fn removes_orphans(&self) -> Option<String> {
        let follows = self.portainer.and_then(|compose| compose.follows.orphans);
        let given = self.variables.contains_key(REMOVE_ORPHANS) && follows != Some(false);
        if self.is_true(IGNORE_ORPHANS) {
            None
        } else if given && self.is_true(REMOVE_ORPHANS) {
            let doubt = match follows {
                Some(_) => "",
                None => ", and this version of Portainer may follow it",
            };
            Some(format!(".env sets {REMOVE_ORPHANS}{doubt}"))
        } else {
            // The variable outranks the option.
            (self.prune && !(given && follows == Some(true)))
                .then(|| "the Portainer stack has the option to prune services".to_owned())
        }
    }

    /// The blocker if Portainer would remove containers, where `services` are planned.
    pub fn orphans(&self, services: &[ServicePlan]) -> Option<Finding> {
        let why = self.removes_orphans()?;
        let orphan = self.orphan();
        let is_removed = |one: &&ServicePlan| one.fate == orphan;
        let services = services.iter().filter(is_removed);
        let removed = services.flat_map(|service| service.containers.clone());
        let what = format!(
            "Portainer would remove containers that the Compose file does not define, because {why}"
        );
        let cure = if self.is_true(REMOVE_ORPHANS) {
            format!("remove {REMOVE_ORPHANS} from .env")
        } else {
            "turn that option off in Portainer".to_owned()
        };
        let hint = format!("{cure}, or add these services to the Compose file");
        Finding::about(removed.collect(), what, hint)
    }

    /// The variables that make every deployment fail.
    pub fn rejected(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        // A program fails then, a library ignores the orphans.
        let is_program = self
            .portainer
            .is_none_or(|compose| !compose.is_library && compose.follows.orphans != Some(false));
        if is_program && self.is_true(REMOVE_ORPHANS) && self.is_true(IGNORE_ORPHANS) {
            let what = format!(
                ".env sets both {REMOVE_ORPHANS} and {IGNORE_ORPHANS}: Compose rejects that"
            );
            found.push(Finding::new(what, "remove one of them from .env"));
        }
        found
    }

    /// The blocker if Portainer does not start services that should run.
    pub fn not_started(&self) -> Option<Finding> {
        let services = self.by_profile_if(Some(false))?;
        Some(Finding::new(
            format!("this version of Portainer ignores {PROFILES}, and would not start {services}"),
            "upgrade Portainer, or remove `profiles` from these services",
        ))
    }

    /// What could not be checked.
    pub fn doubt(&self) -> Option<String> {
        let services = self.by_profile_if(None)?;
        Some(format!(
            "this version of Portainer may ignore {PROFILES}: {services} may not be started"
        ))
    }

    /// The services that only an active profile starts, if Portainer's Compose is known to follow profiles so.
    fn by_profile_if(&self, follows: Option<bool>) -> Option<String> {
        let services = self.project.services.iter();
        let started = services.filter(|service| service.get("profiles").is_some());
        let names: Vec<&str> = started.map(|service| service.name.as_str()).collect();
        let is_it = self.portainer.and_then(|compose| compose.follows.profiles) == follows;
        (is_it && !names.is_empty()).then(|| listed(&names))
    }

    fn is_true(&self, name: &str) -> bool {
        let value = self.variables.get(name).map_or("", String::as_str);
        matches!(
            value.trim().to_lowercase().as_str(),
            "1" | "t" | "true" | "y"
        )
    }
}

/// Whether Portainer's version decides what one of these variables does.
pub fn is_given(sent: Sent) -> bool {
    let mut names = sent.env.iter().map(|variable| variable.name.as_str());
    names.any(|name| [PROFILES, REMOVE_ORPHANS].contains(&name))
}
