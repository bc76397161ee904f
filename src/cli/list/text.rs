//! The list as text for people: one line per stack, the name first.

use crate::{
    cli::{Console, style::Meaning, table::Part},
    plan::Fate,
    report::{ListEntry, ListReport, Readiness, StackState, WayReport},
    text::shell_word,
};

/// The most services that a line names.
const MOST_SERVICES: usize = 3;

/// Prints the list, and what it leaves out on standard error.
pub(super) fn show(list: &ListReport, console: &Console) {
    let header = ["NAME", "STATE", "RUNNING", "ADOPT"];
    console.result_table(&header, list.stacks.iter().map(row).collect());
    if list.stacks.is_empty() {
        console.note(&format!("no stacks in {}", list.stacks_root));
    }
    if list.stacks.iter().any(|stack| stack.plan_command.is_some()) {
        console.note("to compare configurations and show hints, run: stacklift plan <STACK>");
    }
}

fn row(stack: &ListEntry) -> Vec<Part> {
    let (style, state) = match stack.state {
        StackState::ByHand => (Meaning::Plain, "by hand"),
        StackState::InPortainer => (Meaning::Kept, "in Portainer"),
        StackState::Both => (Meaning::Changed, "both"),
        StackState::Stopped => (Meaning::Plain, "stopped"),
        StackState::Orphaned => (Meaning::Changed, "orphaned"),
        StackState::Swarm => (Meaning::Plain, "swarm"),
        StackState::Kubernetes => (Meaning::Plain, "Kubernetes"),
        StackState::Unknown => (Meaning::Unknown, "unknown"),
    };
    let running = match &stack.containers {
        Some(containers) => format!("{}/{}", containers.running, containers.all),
        None => "?".to_owned(),
    };
    let (color, adopt) = readiness(&stack.adopt);
    let adopt = match stack.dir.as_ref().filter(|_| stack.needs_dir) {
        Some(dir) => format!("{adopt} (--dir {})", shell_word(dir)),
        None => adopt,
    };
    vec![
        (Meaning::Name, stack.name.clone()),
        (style, state.to_owned()),
        (Meaning::Plain, running),
        (color, adopt),
    ]
}

/// Whether a stack can be adopted, and what would happen then.
pub(in crate::cli) fn readiness(way: &WayReport) -> Part {
    match way.readiness {
        Readiness::Ready => ready(way),
        Readiness::NothingToDo => (
            Meaning::Kept,
            "same text in Portainer; not compared".to_owned(),
        ),
        Readiness::Blocked => (Meaning::Failed, way.told("blocked")),
        Readiness::NoFile if way.blockers.is_empty() => {
            (Meaning::Plain, "no Compose file".to_owned())
        }
        Readiness::NoFile => (Meaning::Plain, way.told("no Compose file")),
        Readiness::Unknown => (Meaning::Unknown, "unknown".to_owned()),
    }
}

fn ready(way: &WayReport) -> Part {
    let with = |verb: &str, is: fn(&Fate) -> bool| {
        let services = way.services_with(is);
        (!services.is_empty()).then(|| format!("; {verb} {}", some(&services)))
    };
    let recreated = with("recreates", |fate| matches!(fate, Fate::Recreated(_)));
    let restarted = with("restarts", |fate| matches!(fate, Fate::Restarted(_)));
    let started = with("starts", |fate| matches!(fate, Fate::Started(_)));
    let meaning = if recreated.is_some() || restarted.is_some() {
        Meaning::Changed
    } else {
        Meaning::Kept
    };
    let changes = [recreated, restarted, started].into_iter().flatten();
    (meaning, format!("ready{}", changes.collect::<String>()))
}

/// The first names, and how many others there are.
pub(in crate::cli) fn some(names: &[&str]) -> String {
    let shown = names[..names.len().min(MOST_SERVICES)].join(", ");
    match names.len().saturating_sub(MOST_SERVICES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
