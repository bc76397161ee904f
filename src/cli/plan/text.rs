//! A plan as text for people, in the width of the terminal. The words for fates and downtime are
//! those of [`plan_rows`] and [`crate::plan::downtime`].

use crate::{
    cli::{
        Console,
        render::print_patch,
        style::Meaning,
        table::{column, line, plan_rows},
    },
    finding::{Finding, Kind},
    model::{Deployment, Grant, Pull},
    plan::{Fate, InPortainer, Plan, Readiness, Request, ServicePlan, downtime},
    portainer::Repository,
    report::{InterruptedRun, PlanReport, StackReport, Way},
    text::{command, counted, listed, numbered, plural, said},
};

/// Prints the report, and its warnings on standard error.
pub(in crate::cli) fn show(report: &PlanReport, console: &Console) {
    show_without_next(report, console);
    show_next(report, console);
}

/// The same, without the command to run next.
pub(in crate::cli) fn show_without_next(report: &PlanReport, console: &Console) {
    let stack = &report.stack;
    let is_up_to_date = report.has_nothing_to_do() && !report.is_comparison();
    let (gap, is) = if is_up_to_date && stack.interrupted_run.is_none() {
        let git = report.adopt.as_ref().and_then(|way| way.git.as_ref());
        (" ", up_to_date(git))
    } else {
        ("  ", state(report))
    };
    console.item(&[(Meaning::Name, format!("{}{gap}", stack.name))], &is);
    let adopt = report.adopt.as_ref();
    let is_from_git = adopt.is_some_and(|way| way.in_portainer == InPortainer::FromGit);
    if let Some(run) = &stack.interrupted_run {
        let what = match run {
            InterruptedRun::InProgress => "A run is in progress: wait until it has ended.",
            InterruptedRun::RunAgain if is_from_git => {
                "The last run failed, or did not finish: once the repository is right, run `adopt` with --git again."
            }
            InterruptedRun::RunAgain => "The last run failed, or did not finish.",
            InterruptedRun::Restore(_) => {
                "The last run failed, or did not finish: restore what ran before, then plan again."
            }
            InterruptedRun::Continue(_) => &format!(
                "The last run did not finish. To undo it, run `{}`",
                command(&["restore", &stack.name])
            ),
            InterruptedRun::NotDeployed(command) => &format!(
                "The last adoption failed: the earlier containers run, but Portainer has what was sent. To undo that: `{command}`"
            ),
        };
        console.text(what);
        if *run == InterruptedRun::InProgress {
            return;
        }
    }
    if let Some(restore) = &report.restore_command {
        let what = format!("To restore its last snapshot instead, run `{restore}`");
        console.text(&what);
    }
    for request in &report.unanswered {
        let text = format!(
            "A run ended before Portainer had answered {request}. The next run first waits for Portainer to finish."
        );
        console.text(&text);
    }
    let mut warned: Vec<&Finding> = Vec::new();
    for (way, of) in report.shown() {
        if !is_up_to_date {
            console.parts(&[]);
            if report.is_comparison() {
                let name = if way == Way::Adopt {
                    "adopt"
                } else {
                    "migrate"
                };
                console.parts(&[(Meaning::Name, name.to_owned())]);
            }
            show_way(way, of, console);
        }
        let pulls: Vec<String> = of.pulls.iter().map(Pull::to_string).collect();
        let pulls = said(&pulls, "is pulled first: `adopt` then plans again");
        let notices = of.notices.iter();
        let notices = notices.filter(|notice| notice.kind != Kind::StillAnonymous);
        for notice in pulls.into_iter().chain(notices.map(Finding::to_string)) {
            console.item(&[(Meaning::Label, "note: ".to_owned())], &notice);
        }
        let is_told = unseen_memory(of).is_some();
        for warning in &of.warnings {
            let is_told = is_told && matches!(warning.kind, Kind::UnseenMemory(_));
            if !is_told && !warned.contains(&warning) {
                console.warning(&warning.to_string());
                warned.push(warning);
            }
        }
    }
}

/// That nothing has to be sent, and where to edit a Git stack.
pub(in crate::cli) fn up_to_date(git: Option<&Repository>) -> String {
    match git {
        Some(git) if !git.flags.is_empty() => {
            "is up to date in Portainer: the repository has nothing new to deploy".to_owned()
        }
        Some(git) if git.auto_update.is_some() => {
            format!("is deployed from Git: edit {git} in the repository")
        }
        Some(git) => format!(
            "is deployed from Git: edit {git} in the repository, then pull and redeploy it in Portainer"
        ),
        None => "is up to date in Portainer".to_owned(),
    }
}

fn show_next(report: &PlanReport, console: &Console) {
    if let Some(command) = &report.next_command {
        let failed = report.shown().any(|(_, way)| way.failed_before());
        let failed = failed && report.heals().is_none();
        let first = failed.then_some("fix what failed, then ");
        console.next(&(first.unwrap_or_default().to_owned() + command));
    } else if report.is_edited() {
        show_choice(report, console);
    }
}

/// Shows how to keep what was edited in Portainer, or else the files.
fn show_choice(report: &PlanReport, console: &Console) {
    let tell = |text: &str| console.text(text);
    let run = |command: &str| console.parts(&[(Meaning::Command, format!("  {command}"))]);
    console.parts(&[]);
    let edit = if report.stack.is_stopped() {
        "start it"
    } else {
        "keep editing it"
    };
    if let Some(export) = &report.export_command {
        tell(&format!(
            "Portainer is right: {edit} there. To write that version over your files:"
        ));
        run(export);
    } else {
        tell(&format!("Portainer is right: {edit} there."));
    }
    tell("Your files are right: to see what overwriting the edit would do, run:");
    run(&report.overwrite_command);
}

/// How many containers there are, and whether Portainer has the stack.
fn state(report: &PlanReport) -> String {
    let stack = &report.stack;
    let containers = match &stack.containers {
        None => "containers unknown".to_owned(),
        Some(own) if own.all == 0 => "no containers on this host".to_owned(),
        Some(own) => {
            let stopped = own.all - own.running - own.paused;
            let others = [(stopped, "stopped"), (own.paused, "paused")];
            let others = others.map(|(count, are)| (count > 0).then(|| format!("{count} {are}")));
            let others: Vec<String> = others.into_iter().flatten().collect();
            let others = match others.as_slice() {
                [] => String::new(),
                others => format!(" ({})", others.join(", ")),
            };
            format!("{} on this host{others}", counted(own.all, "container"))
        }
    };
    format!("{containers}, {}", in_portainer(report, stack))
}

fn in_portainer(report: &PlanReport, stack: &StackReport) -> String {
    let Some(record) = &stack.portainer_stack else {
        let what = match report.was_in_portainer {
            _ if report.may_be_unseen => "it is unknown whether Portainer has it",
            Some(true) => "no longer in Portainer",
            Some(false) => "not in Portainer yet",
            None => "not in Portainer",
        };
        return what.to_owned();
    };
    let adopt = report.adopt.as_ref();
    let differs = adopt.is_some_and(|way| {
        way.readiness != Readiness::Blocked
            && matches!(way.request, Some(Request::Update(_)))
            && (way.changed_lines.is_some_and(|lines| lines > 0)
                || !way.changed_variables.is_empty())
    });
    let git = adopt.and_then(|way| way.git.as_ref());
    let from_git = git.map(|git| match stack.interrupted_run {
        // It may be that of the earlier deployment.
        Some(_) => "in Portainer from Git".to_owned(),
        None => format!("in Portainer from Git, commit {}", git.short_commit()),
    });
    let what = match (adopt.map(|way| way.in_portainer), &record.state) {
        (Some(InPortainer::Edited), _) => "edited in Portainer since the last adoption",
        (Some(InPortainer::Differs), _) => "in Portainer, which differs from the files",
        (Some(InPortainer::Redeployed), _) => {
            "in Portainer, but containers were started outside of it since"
        }
        (Some(InPortainer::OtherForm), Deployment::Active) => {
            "in Portainer; an adoption sends it in another form"
        }
        (_, Deployment::Active) if differs => "in Portainer; your files differ from it",
        (_, Deployment::Active) => from_git.as_deref().unwrap_or("in Portainer"),
        (_, Deployment::Inactive) => "in Portainer, where it is stopped",
        (_, state) => &format!("in Portainer, where it is {state}"),
    };
    what.to_owned()
}

fn show_way(way: Way, of: &Plan, console: &Console) {
    if of.readiness == Readiness::NothingToDo {
        let text = "Nothing to do: it is up to date in Portainer.";
        return console.text(text);
    }
    if of.readiness == Readiness::Edited {
        console.text(&overwritten(of));
        if let Some(by_hand) = said(&of.by_hand, "was created outside of Portainer since then") {
            let text = format!(
                "{by_hand}, and may differ from what Portainer has: \"Update the stack\" in Portainer deploys its version again."
            );
            console.text(&text);
        }
        return;
    }
    if !of.blockers.is_empty() {
        return show_blockers(way, of, console);
    }
    for (start, text) in plan_rows(&of.services) {
        console.item(&[start], &text);
    }
    if !of.services.is_empty() {
        console.parts(&[]);
    }
    let verb = if way == Way::Adopt {
        "Adopting it"
    } else {
        "Migrating it"
    };
    let down = downtime(&of.services);
    let started = of.services_with(|service| match service.fate {
        Fate::Started(_) => true,
        Fate::Recreated(_) | Fate::Unknown(_) => way == Way::Adopt && of.is_stopped,
        _ => false,
    });
    let lost = match () {
        () if !of.losses_known => format!("What {} loses is unknown.", verb.to_lowercase()),
        () if !of.losses.is_empty() => format!("{verb} loses:"),
        () if let Some(why) = unseen_memory(of) => format!(
            "{verb} loses nothing besides files in memory (/dev/shm, tmpfs), which are unknown: {why}."
        ),
        () if down.is_empty() && started.is_empty() => {
            format!("{verb} loses nothing and interrupts nothing.")
        }
        () if down.is_empty() => format!("{verb} loses nothing, and starts {}.", listed(&started)),
        () => format!("{verb} loses nothing."),
    };
    let mut sentences: Vec<String> = down.iter().map(|part| format!("{part}.")).collect();
    if of.losses.is_empty() {
        sentences.insert(0, lost);
    } else {
        console.text(&lost);
        show_list(&of.losses, &of.services, console);
    }
    if !sentences.is_empty() {
        console.text(&sentences.join(" "));
    }
    let changes = of.untold_changes();
    if !changes.is_empty() {
        console.text("What changes (not every setting is compared):");
        show_list(&changes, &of.services, console);
    }
    if let Some(access) = &of.access {
        let access = format!("Access afterwards: {}.", Grant::list(access));
        console.text(&access);
    }
    if let Some(difference) = difference(way, of) {
        console.text(&difference);
    }
}

/// Why files in memory are unknown, if that is said together with everything else that is lost: nothing.
fn unseen_memory(of: &Plan) -> Option<&str> {
    let unseen = of.warnings.iter().find_map(|warning| match &warning.kind {
        Kind::UnseenMemory(why) => Some(why.as_str()),
        _ => None,
    });
    unseen.filter(|_| of.readiness == Readiness::Ready && !of.loses())
}

/// What an adoption would do to what somebody may have edited in Portainer (B22).
fn overwritten(of: &Plan) -> String {
    let start = "Adopting it again would overwrite what was edited in Portainer";
    match (of.in_portainer, of.edited.as_slice()) {
        (InPortainer::Edited, []) => format!("{start}."),
        (InPortainer::Edited, edited) => format!("{start}: {}.", listed(edited)),
        _ => "It is unknown whether Portainer's copy or your files were changed. Adopting it would overwrite what Portainer has."
            .to_owned(),
    }
}

/// Every reason, with what to do about it on the next line.
fn show_blockers(way: Way, of: &Plan, console: &Console) {
    let verb = match way {
        Way::Adopt if matches!(of.request, Some(Request::Update(_))) => "updated",
        Way::Adopt => "adopted",
        Way::Migrate => "migrated",
    };
    console.parts(&[(Meaning::Failed, format!("Cannot be {verb} yet:"))]);
    console.text(&numbered(&of.blockers));
    if let Some(patch) = &of.patch {
        console.parts(&[]);
        print_patch(patch);
    }
}

/// The losses or changes, with the service of each, or the container if the service has several.
pub(in crate::cli) fn show_list<'l>(
    list: &'l [Finding],
    services: &'l [ServicePlan],
    console: &Console,
) {
    let owner = |loss: &'l Finding| loss.owner(services).unwrap_or("stack");
    let column = column(list.iter().map(owner));
    for loss in list {
        let (start, text) = line((Meaning::Plain, "  "), (owner(loss), column), &loss.message);
        console.item(&[start], &text);
    }
}

/// How much of the text changes, and how to see it.
fn difference(way: Way, of: &Plan) -> Option<String> {
    if way == Way::Migrate {
        return None;
    }
    if !of.combined_files.is_empty() && of.changed_lines.is_none() {
        return Some("Add --diff to see Portainer's copy.".to_owned());
    }
    let (lines, variables) = (of.changed_lines.unwrap_or_default(), &of.changed_variables);
    let is_one = lines + variables.len() == 1;
    let them = if is_one { "it" } else { "them" };
    let lines = (lines > 0).then(|| counted(lines, "line"));
    let what = match &of.request {
        Some(Request::Update(_)) => {
            let noun = plural(variables.len(), "variable");
            let names = listed(variables);
            let variables = (!variables.is_empty()).then(|| format!("the {noun} {names}"));
            let all: Vec<String> = lines.into_iter().chain(variables).collect();
            Some(format!("changes in {}", listed(&all))).filter(|_| !all.is_empty())
        }
        Some(Request::Redeploy(_)) => lines.map(|lines| format!("differs from Git in {lines}")),
        _ => lines.map(|lines| format!("differs from your file in {lines}")),
    };
    what.map(|what| format!("Portainer's copy {what}: add --diff to see {them}."))
}
