//! The result of an adoption, for people.

use std::collections::BTreeMap;

use crate::{
    cli::{Console, plan::up_to_date, style::Meaning},
    model::Grant,
    plan::Request,
    report::{AdoptReport, AdoptedContainer, Change, Outcome},
    text::{counted, down, listed, said},
};

/// Shows what was done, and where the stack is now. A failure is shown by itself.
pub(in crate::cli) fn show(report: &AdoptReport, console: &Console) {
    let name = &report.stack;
    let containers = containers(report);
    let mut access = report.access.as_ref().map(Grant::list);
    let request = report.plan.as_ref().and_then(|plan| plan.request.as_ref());
    let verb = match (report.outcome, request) {
        (Outcome::NothingToDo, _) => {
            let is = up_to_date(report.git.as_ref());
            // An earlier run had not looked.
            let mut told = format!("{name} {is}");
            if !containers.is_empty() {
                told = format!("{told}; {}", happened(&containers));
            }
            console.told(&told);
            None
        }
        (Outcome::Adopted, Some(Request::Nothing(_))) => {
            let access = access.take().unwrap_or_default();
            console.outcome("updated", &format!("{name}: access is now {access}"));
            None
        }
        (Outcome::Adopted, Some(Request::Update(_) | Request::Redeploy(_))) => Some("updated"),
        (Outcome::Adopted, _) => Some("adopted"),
        _ => return,
    };
    if let Some(verb) = verb {
        console.outcome(verb, &format!("{name}: {}", happened(&containers)));
    }
    for (of, container) in &containers {
        if !container.differences.is_empty() {
            let differences = listed(&container.differences);
            let told = format!("{of} has changed: {differences}");
            console.row(&(Meaning::Plain, "  ".to_owned()), &told);
        }
    }
    if let Some(access) = &access {
        console.told(&format!("  access     {access}"));
    }
    if let Some(git) = report.git.as_ref().filter(|_| verb.is_some()) {
        let commit = git.short_commit();
        console.told(&format!("  Git        {git}, commit {commit}"));
    }
    if let Some(url) = &report.url {
        console.row(&(Meaning::Plain, "  Portainer  ".to_owned()), url);
    }
}

/// Shows where to edit a stack that was adopted, and how to undo that.
pub(super) fn show_next(report: &AdoptReport, console: &Console) {
    if report.url.is_some() && report.error.is_none() {
        let place = report.git.as_ref().map_or("there", |_| "in the repository");
        let edit = format!("edit it {place} from now on");
        // Whoever updates it knows that.
        let edit = report.creates().then_some(edit);
        let undo = report.undo.as_ref();
        show_next_steps(edit, undo.map(|undo| format!("to undo: {undo}")), console);
    }
}

/// Shows where to edit what was adopted, and how to undo that, if there is something to say.
pub(super) fn show_next_steps(edit: Option<String>, undo: Option<String>, console: &Console) {
    let next: Vec<String> = edit.into_iter().chain(undo).collect();
    if !next.is_empty() {
        console.told(&format!("  {}", next.join("; ")));
    }
}

/// The containers, by the names of their services if each has only one: a sentence has either names of services, or of
/// containers.
fn containers(report: &AdoptReport) -> Vec<(&str, &AdoptedContainer)> {
    let services = report.services.iter();
    let are_single = services.clone().all(|one| one.containers.len() < 2);
    let named = services.flat_map(|service| {
        let own = service.containers.iter();
        own.map(move |one| {
            let name = if are_single {
                &service.service
            } else {
                &one.name
            };
            (name.as_str(), one)
        })
    });
    named.collect()
}

/// `db kept running, calibre-web was down for 0.4 s`.
fn happened(containers: &[(&str, &AdoptedContainer)]) -> String {
    let is_kept = |one| matches!(verb(one), Some((0, _)));
    if !containers.is_empty() && containers.iter().all(|(_, one)| is_kept(one)) {
        return format!("{} kept running", counted(containers.len(), "container"));
    }
    let downs = containers.iter().filter_map(|(name, one)| {
        let was_down = matches!(one.change, Change::Recreated | Change::Restarted);
        Some((*name, one.away.filter(|_| was_down)?))
    });
    let downs: Vec<(&str, f64)> = downs.collect();
    let mut others: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for (name, one) in containers {
        if let Some(verb) = verb(one) {
            others.entry(verb).or_default().push(name);
        }
    }
    let others = others.into_iter();
    let others = others.filter_map(|((order, verb), names)| Some((order, said(&names, verb)?)));
    let parts: BTreeMap<u8, String> = others.chain(down(&downs).map(|down| (1, down))).collect();
    parts.into_values().collect::<Vec<_>>().join(", ")
}

/// What happened to a container, and when it is told. Where it is known how long it was down, that is
/// told instead.
fn verb(container: &AdoptedContainer) -> Option<(u8, &'static str)> {
    Some(match container.change {
        Change::Kept if container.restarting => (4, "kept restarting"),
        Change::Kept if container.running => (0, "kept running"),
        Change::Recreated | Change::Restarted if container.away.is_some() => return None,
        Change::Recreated => (2, "was recreated"),
        Change::Restarted => (3, "was restarted"),
        Change::RestartedByPolicy => (5, "was restarted by Docker"),
        Change::Started | Change::New => (6, "was started"),
        Change::Kept => (7, "was left stopped"),
        Change::Ended => (8, "has ended"),
        Change::Missing => (9, "was removed"),
        Change::Stray => return None,
    })
}
