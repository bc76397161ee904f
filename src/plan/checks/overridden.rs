//! Variables of Portainer's container: Compose runs there, and they override those of a stack (M12).

use std::collections::BTreeSet;

use composefile::{
    document::{Document, Node},
    interpolate::occurrences,
    services::services,
};

use crate::{finding::Finding, plan::Facts, rewrite::portainer::SET_BY_PORTAINER, text::listed};

/// The blocker if the text would have other values in Portainer.
pub fn overridden(facts: &Facts, document: &Document) -> Option<Finding> {
    let set = facts.host.portainer_env.as_ref()?;
    let variables = facts.sent.variables();
    let mut names = used(document);
    names.retain(|&name| {
        let own = variables.get(name);
        let other = set.get(name).filter(|value| own != Some(*value));
        other.is_some() && !SET_BY_PORTAINER.contains(&name)
    });
    if names.is_empty() {
        return None;
    }
    let what = format!(
        "variables of Portainer's container would override those of the stack: {}",
        listed(&Vec::from_iter(names))
    );
    let hint = "write the value into the Compose file in place of the variable, or remove the variable from Portainer's container";
    Some(Finding::new(what, hint).short("other values in Portainer"))
}

/// The notice that variables of the stack may be overridden, if those of Portainer's container are unknown.
pub fn may_be_overridden(facts: &Facts, document: &Document) -> Option<Finding> {
    let is_unknown = facts.host.portainer_env.is_none();
    let variables = facts.sent.variables();
    let is_used = || {
        used(document)
            .iter()
            .any(|&name| variables.contains_key(name))
    };
    (is_unknown && is_used()).then(|| Finding::of_stack("the variables of Portainer's own container are unknown: they override those of the stack"))
}

/// The names of the variables that the text takes from its surroundings.
fn used<'d>(document: &'d Document) -> BTreeSet<&'d str> {
    let scalars = document.nodes().filter_map(Node::as_str);
    let mut names: BTreeSet<&str> = scalars
        .flat_map(occurrences)
        .map(|occurrence| occurrence.name)
        .collect();
    let services = services(document).into_iter();
    let entries = services.flat_map(|service| service.environment());
    let unset = entries.filter(|(_, value)| value.is_none());
    names.extend(unset.map(|(name, _)| name));
    names
}
