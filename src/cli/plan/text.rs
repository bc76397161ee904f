//! A plan as text for people, in the width of the terminal. Commands are never broken.

use crate::{
    cli::{
        Console,
        columns::{pad, width},
        style::Meaning,
    },
    plan::{Fate, Request, ServicePlan},
    report::{EnvironmentEngine, InterruptedRun, Loss, PlanReport, StackReport, Way, WayReport},
    text::{counted, shell_word},
};

/// The widest column of names.
const NAMES: usize = 20;

/// Prints the report, and its warnings on standard error.
pub(in crate::cli) fn show(report: &PlanReport, console: &Console) {
    head(report, console);
    let ways = [(Way::Adopt, &report.adopt), (Way::Migrate, &report.migrate)];
    for (way, of) in ways {
        if let Some(of) = of {
            console.parts(&[]);
            show_way(way, of, &report.stack, console);
        }
    }
    console.parts(&[]);
    match &report.recommended {
        Some(recommended) => console.parts(&[
            (Meaning::Name, "Recommended: ".to_owned()),
            (Meaning::Command, recommended.command.clone()),
        ]),
        None if report.has_nothing_to_do() => console.line("There is nothing to do."),
        None if report.is_edited() => console.line(&format!(
            "Next: stacklift export {}",
            shell_word(&report.stack.name)
        )),
        None => console.text(
            Meaning::Plain,
            "No command is recommended: follow the hints above, then run the command again.",
        ),
    }
    let mut shown: Vec<&String> = Vec::new();
    for warning in ways
        .iter()
        .filter_map(|(_, of)| of.as_ref())
        .flat_map(|of| &of.warnings)
    {
        if !shown.contains(&warning) {
            console.warning(warning);
            shown.push(warning);
        }
    }
}

fn head(report: &PlanReport, console: &Console) {
    let stack = &report.stack;
    let name = (Meaning::Name, format!("{}  ", stack.name));
    let edited = if report.is_edited() {
        ", edited in Portainer since the last adoption"
    } else {
        ""
    };
    console.item(&[name], &format!("{}  {}{edited}", stack.dir, state(stack)));
    let portainer = &report.portainer;
    let engine = match portainer.engine {
        EnvironmentEngine::ThisHost => "is this engine",
        EnvironmentEngine::Another => "is another engine",
        EnvironmentEngine::NoEnvironment => "does not exist",
        EnvironmentEngine::Forbidden => "is not allowed for this API key",
        EnvironmentEngine::OtherSocket => "is a socket that Portainer's Compose does not use",
        EnvironmentEngine::Unknown => "may be another engine",
    };
    let version = portainer.version.as_deref().unwrap_or("of unknown version");
    console.text(
        Meaning::Plain,
        &format!(
            "Portainer {version} at {}, environment {} {engine}",
            portainer.url, portainer.environment
        ),
    );
    if let Some(run) = &stack.interrupted_run {
        let what = match run {
            InterruptedRun::InProgress => "a run is in progress",
            _ => "a run was interrupted",
        };
        console.text(Meaning::Plain, &format!("{what}: {run}"));
    }
    for request in &stack.unanswered {
        console.text(
            Meaning::Plain,
            &format!(
                "the outcome of {request}, is unknown: each command first waits until Portainer has finished, and this plan may then be out of date"
            ),
        );
    }
}

fn show_way(way: Way, of: &WayReport, stack: &StackReport, console: &Console) {
    let item = |meaning, start: &str, text: &str| {
        console.item(&[(meaning, start.to_owned())], text);
    };
    let verb = match way {
        Way::Adopt => "adopt   ",
        Way::Migrate => "migrate ",
    };
    item(Meaning::Name, verb, &about(way, of, stack));
    for blocker in &of.blockers {
        item(Meaning::Failed, "  !  ", &blocker.message);
        for detail in &blocker.details {
            item(Meaning::Plain, "       ", detail);
        }
        item(Meaning::Plain, "     ", &format!("hint: {}", blocker.hint));
    }
    let names = column(of.services.iter().map(|one| one.service.as_str()));
    for service in &of.services {
        let (meaning, symbol, words) = words(way, &service.fate);
        let start = format!("  {symbol}  {}  ", pad(&service.service, names));
        item(meaning, &start, &words);
    }
    if of.services.is_empty() && !of.blockers.is_empty() {
        return;
    }
    item(Meaning::Plain, "  ", &summary(of));
    let owner = |loss: &Loss| {
        let owner = loss.service.as_ref().or(loss.subject.as_ref());
        owner.map_or("stack", String::as_str).to_owned()
    };
    let owners: Vec<String> = of.losses.iter().map(owner).collect();
    let names = column(owners.iter().map(String::as_str));
    for (owner, loss) in owners.iter().zip(&of.losses) {
        let start = format!("     {}  ", pad(owner, names));
        item(Meaning::Plain, &start, &loss.message);
    }
    let changes = of.changed_lines.is_some_and(|lines| lines > 0) || !of.combined_files.is_empty();
    if let Some(command) = of.diff_command.as_ref().filter(|_| changes) {
        let command = (Meaning::Command, command.clone());
        console.parts(&[(Meaning::Plain, "  diff: ".to_owned()), command]);
    }
    if of.losses_known {
        for interruption in interruptions(&of.services) {
            item(
                Meaning::Plain,
                "  ",
                &format!("interruption: {interruption}"),
            );
        }
    }
    for notice in &of.notices {
        item(Meaning::Plain, "  ", &format!("note: {notice}"));
    }
}

/// How much of the file changes, and how much is lost.
fn summary(of: &WayReport) -> String {
    let lost = match of.losses.len() {
        _ if !of.losses_known => "what the stack loses is unknown".to_owned(),
        0 => "no losses found".to_owned(),
        count => counted(count, "loss"),
    };
    let changed = match (of.changed_lines, of.combined_files.len()) {
        (None, 0) => return lost,
        (None, 1) => "Compose resolves the file".to_owned(),
        (None, files) => format!("{files} files are combined into one text"),
        (Some(0), _) => "the file does not change".to_owned(),
        (Some(1), _) => "1 line of the file changes".to_owned(),
        (Some(count), _) => format!("{count} lines of the file change"),
    };
    format!("{changed}; {lost}")
}

/// The containers, who started them, and the Portainer stack.
fn state(stack: &StackReport) -> String {
    let containers = match &stack.containers {
        None => "containers unknown".to_owned(),
        Some(containers) if containers.all == 0 => "no containers".to_owned(),
        Some(containers) => {
            let stopped = match containers.all - containers.running {
                0 => String::new(),
                stopped => format!(" ({stopped} not running)"),
            };
            // With a Portainer stack, the labels do not tell: Portainer may store its stacks in another folder.
            let started = match containers.started_by_portainer {
                by if by == containers.all => ", started by Portainer".to_owned(),
                _ if stack.portainer_stack.is_some() => String::new(),
                0 => ", started by hand".to_owned(),
                by => format!(", {by} started by Portainer, the others by hand"),
            };
            let all = counted(containers.all, "container");
            format!("{all}{stopped}{started}")
        }
    };
    match &stack.portainer_stack {
        None if stack.may_be_unseen => {
            format!("{containers}; whether it is in Portainer is unknown")
        }
        None => format!("{containers}, not in Portainer"),
        Some(one) => format!("{containers}, Portainer stack {} is {}", one.id, one.state),
    }
}

fn about(way: Way, of: &WayReport, stack: &StackReport) -> String {
    if !of.blockers.is_empty() {
        return format!("blocked by {}", counted(of.blockers.len(), "problem"));
    }
    let containers = stack.containers.as_ref();
    let has_containers = containers.is_none_or(|containers| containers.all > 0);
    match (&of.request, way, has_containers) {
        (Some(Request::Nothing(id)), ..) => {
            format!("Portainer stack {id} already has this text and these variables")
        }
        (Some(Request::Update(id)), ..) => format!("Portainer updates Portainer stack {id}"),
        (Some(Request::Replace(id)), ..) => {
            format!("deletes Portainer stack {id}, then Portainer creates the literal rewrite")
        }
        (_, Way::Adopt, true) => "Portainer adopts the running stack".to_owned(),
        (_, Way::Adopt, false) => "Portainer starts the stack".to_owned(),
        (_, Way::Migrate, true) => {
            "removes the stack, then Portainer creates it from the literal rewrite".to_owned()
        }
        (_, Way::Migrate, false) => "Portainer starts the literal rewrite".to_owned(),
    }
}

/// A fate as a color, a symbol and words.
fn words(way: Way, fate: &Fate) -> (Meaning, char, String) {
    let (meaning, symbol, what) = match fate {
        Fate::Recreated(_) if way == Way::Migrate => {
            return (Meaning::Changed, '-', "removed and recreated".to_owned());
        }
        Fate::Unchanged => (Meaning::Kept, '=', "unchanged, keeps running"),
        Fate::Recreated(_) => (Meaning::Changed, '~', "recreated once"),
        Fate::Restarted(_) => (Meaning::Changed, '~', "restarted once"),
        Fate::Started(_) => (Meaning::Added, '+', "started"),
        Fate::Removed(_) => (Meaning::Removed, '-', "removed"),
        Fate::LeftBehind(_) => (Meaning::Plain, '>', "left as it is"),
        Fate::Unknown(_) => (Meaning::Unknown, '?', "unknown"),
    };
    let reason = fate.reason().map(|reason| format!(": {reason}"));
    (
        meaning,
        symbol,
        what.to_owned() + &reason.unwrap_or_default(),
    )
}

/// Which services are interrupted, and how long their containers may take to stop.
fn interruptions(services: &[ServicePlan]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for service in services {
        let stop = match service.stop_grace {
            None | Some(0) => String::new(),
            Some(seconds) => format!("up to {seconds} s to stop, then "),
        };
        let how = match (&service.fate, service.stop_grace) {
            (_, None) => "none".to_owned(),
            (Fate::Removed(_), _) => "does not run again".to_owned(),
            (Fate::Unknown(_), _) => format!("none, or {stop}until started again"),
            _ => format!("{stop}until started again"),
        };
        match groups.iter_mut().find(|(known, _)| *known == how) {
            Some((_, names)) => names.push(&service.service),
            None => groups.push((how, vec![&service.service])),
        }
    }
    match groups.as_slice() {
        [] => vec!["none".to_owned()],
        [(how, _)] => vec![how.clone()],
        groups => groups
            .iter()
            .map(|(how, names)| format!("{} {how}", names.join(", ")))
            .collect(),
    }
}

/// The width of a column of names.
fn column<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(width).max().unwrap_or(0).min(NAMES)
}
