//! The list as text for people: one line per stack, the name first.

use crate::{
    cli::{
        Console,
        style::Meaning,
        table::{Part, TableRow},
    },
    finding::Finding,
    plan::{Fate, InPortainer, Plan, Readiness, ServicePlan},
    report::{Containers, InterruptedRun, ListEntry, ListReport, StackState},
    text::listed,
};

/// The columns that `list` and `adopt --all` share.
pub(in crate::cli) const HEADER: [&str; 4] = ["STACK", "CONTAINERS", "STATE", "ADOPT"];

/// Prints the list, and what it leaves out on standard error.
pub(super) fn show(list: &ListReport, console: &Console) {
    console.result_table(&HEADER, list.stacks.iter().map(row));
    if list.stacks.is_empty() {
        console.note(&format!("no stacks in {}", list.stacks_root));
    }
    if list.stacks.iter().any(has_plan) {
        console.note("`stacklift plan STACK` shows what adopting it does, or what prevents it");
    }
    let is_outside = |stack: &&ListEntry| stack.outside_stacks_root;
    let mut outside = list.stacks.iter().filter(is_outside).peekable();
    if outside.peek().is_some() {
        let is_taken = outside.all(|stack| stack.adopt.readiness == Readiness::NothingToDo);
        let how = if is_taken {
            ""
        } else {
            ": `adopt --all` adopts it only with --everywhere"
        };
        console.note(&format!("* not in {}{how}", list.stacks_root));
    }
}

pub(in crate::cli) fn row(stack: &ListEntry) -> TableRow {
    let mark = if stack.outside_stacks_root { " *" } else { "" };
    let (last, tail) = last(stack);
    TableRow {
        cells: vec![
            (Meaning::Name, format!("{}{mark}", stack.stack.name)),
            (Meaning::Plain, running(stack.stack.containers.as_ref())),
            state(stack.state),
            last,
        ],
        tail: tail.map(|tail| [stack.stack.name.clone(), tail.to_owned()]),
    }
}

/// What adopting the stack would do, and what follows it: the command to run next, if only that helps.
fn last(stack: &ListEntry) -> (Part, Option<&str>) {
    use Readiness as R;
    let first = stack.adopt.blockers.first();
    let hint = first.map_or("", Finding::advice);
    let next = stack.next_command.as_deref();
    let found = readiness(&stack.adopt);
    let told = |meaning, text: &str| ((meaning, text.to_owned()), None);
    let only = |meaning| ((meaning, String::new()), next);
    let runs = !stack.stack.is_stopped();
    match (stack.adopt.readiness, next) {
        _ if let Some(run @ InterruptedRun::InProgress) = &stack.stack.interrupted_run => {
            told(Meaning::Plain, &run.to_string())
        }
        (_, Some(_)) if stack.stack.interrupted_run.is_some() => only(Meaning::Plain),
        (R::NothingToDo, None)
            if stack.adopt.git.is_some() && (!runs || !stack.adopt.by_hand.is_empty()) =>
        {
            let how = if runs {
                "restored from another commit"
            } else {
                "redeploy it in Portainer"
            };
            told(Meaning::Changed, how)
        }
        (R::Ready, _) if stack.state == StackState::Unknown => told(Meaning::Unknown, "unknown"),
        (R::Edited, _) if !runs => told(Meaning::Plain, "start it in Portainer"),
        (_, Some(_)) if is_to_be_planned(stack) => only(Meaning::Changed),
        (R::NoFile, Some(_)) => ((found.0, format!("{}: ", found.1)), next),
        (R::NoFile, None) if stack.state == StackState::Kubernetes => {
            told(Meaning::Plain, "no Compose project")
        }
        (R::NoFile | R::Blocked, None) if first.is_some_and(|blocker| blocker.short.is_none()) => {
            told(found.0, &format!("{}; {hint}", found.1))
        }
        _ => (found, None),
    }
}

/// Whether the plan says more than the row of a stack.
fn has_plan(stack: &ListEntry) -> bool {
    use Readiness as R;
    let is_planned = matches!(stack.adopt.readiness, R::Ready | R::Blocked | R::Edited);
    is_planned && stack.next_command.is_some() && stack.stack.interrupted_run.is_none()
}

/// Whether the plan is needed to choose between Portainer's copy and the files.
fn is_to_be_planned(stack: &ListEntry) -> bool {
    stack.adopt.readiness == Readiness::Edited
        && (stack.state != StackState::Edited || stack.adopt.files_differ)
}

/// How many containers run, how many there are, and how many of them are paused.
fn running(containers: Option<&Containers>) -> String {
    let count = |own: &Containers| match own.paused {
        0 => format!("{}/{}", own.running, own.all),
        paused => format!("{}/{}, {paused} paused", own.running, own.all),
    };
    containers.map_or_else(|| "?".to_owned(), count)
}

/// The state of a stack in words.
fn state(state: StackState) -> Part {
    let (meaning, words) = match state {
        StackState::ByHand => (Meaning::Plain, "by hand"),
        StackState::InPortainer => (Meaning::Kept, "in Portainer"),
        StackState::FromGit => (Meaning::Kept, "in Portainer, from Git"),
        StackState::Both => (Meaning::Changed, "in Portainer, file differs"),
        StackState::Redeployed => (Meaning::Changed, "in Portainer, containers differ"),
        StackState::EditedRedeployed => (Meaning::Changed, "edited, containers differ"),
        StackState::Edited => (Meaning::Changed, "edited in Portainer"),
        StackState::Interrupted => (Meaning::Failed, "interrupted run"),
        StackState::Failed => (Meaning::Failed, "failed run"),
        StackState::InProgress => (Meaning::Changed, "a run is in progress"),
        StackState::Stopped => (Meaning::Plain, "stopped"),
        StackState::StoppedInPortainer => (Meaning::Plain, "in Portainer, stopped"),
        StackState::NotStarted => (Meaning::Plain, "not started"),
        StackState::NoLongerInPortainer => (Meaning::Changed, "no longer in Portainer"),
        StackState::WithoutContainers => (Meaning::Changed, "in Portainer, no containers"),
        StackState::Orphaned => (Meaning::Changed, "orphaned"),
        StackState::PortainerGone => (Meaning::Changed, "not in this Portainer"),
        StackState::Swarm => (Meaning::Plain, "swarm"),
        StackState::Kubernetes => (Meaning::Plain, "Kubernetes"),
        StackState::Unknown => (Meaning::Unknown, "unknown"),
    };
    (meaning, words.to_owned())
}

/// Whether a stack can be adopted, and what would happen then.
pub(in crate::cli) fn readiness(way: &Plan) -> Part {
    let (meaning, words) = match way.readiness {
        Readiness::Ready if way.failed_before() => (Meaning::Failed, "its last adoption failed"),
        Readiness::Ready => return ready(way),
        // The repository was not read.
        Readiness::NothingToDo if way.git.is_some() => (Meaning::Kept, "edit it in Git"),
        Readiness::NothingToDo => (Meaning::Kept, "up to date"),
        Readiness::Edited if way.files_differ => (Meaning::Changed, "the files were edited, too"),
        Readiness::Edited => (Meaning::Plain, "keep editing it there"),
        Readiness::NoFile if way.blockers.is_empty() => (Meaning::Plain, "no file found"),
        Readiness::Blocked | Readiness::NoFile => return (Meaning::Failed, way.told("blocked")),
        Readiness::Unknown => {
            let why = way.warnings.first();
            let why = why.map_or_else(String::new, |why| format!(": {}", why.message));
            return (Meaning::Unknown, format!("unknown{why}"));
        }
    };
    (meaning, words.to_owned())
}

/// Whether its containers are replaced, or stopped and started again.
fn is_replaced(service: &ServicePlan) -> bool {
    matches!(service.fate, Fate::Recreated(_) | Fate::Restarted(_))
}

/// What adopting a stack that can be adopted would do.
fn ready(way: &Plan) -> Part {
    let with = |verb: &str, is: fn(&ServicePlan) -> bool| {
        let services = way.services_with(is);
        (!services.is_empty()).then(|| format!("{verb} {}", listed(&services)))
    };
    let interrupted = with("interrupts", |service| {
        is_replaced(service) && service.stop_grace.is_some()
    });
    let recreated = with("recreates", |service| {
        is_replaced(service) && service.stop_grace.is_none()
    });
    let removed = with("removes", |service| {
        matches!(service.fate, Fate::Removed(_))
    });
    let started = with("starts", |service| matches!(service.fate, Fate::Started(_)));
    let unknown = with("may interrupt", |service| {
        matches!(service.fate, Fate::Unknown(_))
    });
    let is_touched = interrupted.is_some() || recreated.is_some() || removed.is_some();
    let meaning = match &unknown {
        _ if is_touched => Meaning::Changed,
        Some(_) => Meaning::Unknown,
        None => Meaning::Kept,
    };
    let changes = [interrupted, recreated, removed, unknown, started];
    let changes: Vec<String> = changes.into_iter().flatten().collect();
    let may_not_run = |one: &ServicePlan| one.restarting || !one.fate.is_unchanged();
    let text = match changes.as_slice() {
        [] if way.services.iter().any(may_not_run) => "interrupts nothing".to_owned(),
        [] => "keeps running".to_owned(),
        changes => changes.join("; "),
    };
    if way.in_portainer == InPortainer::OtherForm {
        return (meaning, format!("another form; {text}"));
    }
    (meaning, text)
}
