//! Services that need another one, and what happens to them if it is recreated (N05).

use crate::{
    compose::{Dependency, Project},
    model::Container,
    plan::{
        Fate, PortainerCompose,
        fates::{Deciding, versions::Dependents},
    },
};

/// Changes the fates of services that follow those that they need, transitively.
pub fn follow(found: &mut [(String, Vec<&Container>, Fate)], deciding: &Deciding) {
    let portainer = deciding.portainer;
    let dependents = portainer.map_or(Dependents::Unknown, PortainerCompose::dependents);
    // Each round changes a fate to one of a higher rank, so this ends.
    while let Some((at, fate)) = next(found, deciding.sent, dependents) {
        found[at].2 = fate;
    }
}

fn next(
    found: &[(String, Vec<&Container>, Fate)],
    project: &Project,
    dependents: Dependents,
) -> Option<(usize, Fate)> {
    let mut all = found.iter().enumerate();
    all.find_map(|(at, (name, own, fate))| {
        if own.is_empty() || matches!(fate, Fate::LeftBehind(_)) {
            return None;
        }
        let needed = project.service(name)?.depends_on.iter();
        let fates = needed.filter_map(|(service, dependency)| {
            let of = found.iter().find(|(name, ..)| name == service)?;
            followed(dependency, of, dependents)
        });
        let followed = fates.max_by_key(Fate::rank)?;
        (followed.rank() > fate.rank()).then_some((at, followed))
    })
}

/// The fate of a dependent, because of what happens to the service that it needs.
fn followed(
    dependency: &Dependency,
    (name, own, fate): &(String, Vec<&Container>, Fate),
    dependents: Dependents,
) -> Option<Fate> {
    let is_new = matches!(fate, Fate::Recreated(_))
        || (matches!(fate, Fate::Started(_)) && own.is_empty() && dependency.shares);
    if is_new && dependency.shares {
        return Some(Fate::Recreated(format!(
            "a namespace or volumes are shared with {name}, which is recreated"
        )));
    }
    let why = format!("it depends on {name}, which is recreated");
    let (restarts, shares) = (dependency.restarts, dependency.shares);
    match (fate, dependents) {
        (Fate::Recreated(_), Dependents::Recreated) => Some(Fate::Recreated(why)),
        (Fate::Recreated(_), Dependents::RestartedIfAsked) if restarts => {
            Some(Fate::Restarted(why))
        }
        (Fate::Recreated(_), Dependents::Unknown) => Some(Fate::Unknown(why)),
        (Fate::Unknown(_), Dependents::RestartedIfAsked) if !restarts && !shares => None,
        (Fate::Unknown(_), _) => Some(Fate::Unknown(format!(
            "it depends on {name}, which may be recreated"
        ))),
        _ => None,
    }
}
