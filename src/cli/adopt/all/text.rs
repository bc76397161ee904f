//! The table of several stacks before the run, and the one after it.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    iter,
};

use crate::{
    cli::{
        Console,
        adopt::text::{show_next, show_next_steps},
        arguments::AdoptArguments,
        list::text::{HEADER, readiness, row},
        style::Meaning,
        table::{Part, TableRow},
    },
    failure::Failure,
    finding::Finding,
    plan::Readiness,
    report::{AdoptReport, AllEntry, AllReport, StackResult},
    run::RestoreCommand,
    text::{bulleted, counted, listed, said},
};

/// Shows what would be done with each stack that would be adopted or was named, and what each would lose.
pub(super) fn show_plan(report: &AllReport, arguments: &AdoptArguments, console: &Console) {
    use StackResult as R;
    let is_shown =
        |one: &&AllEntry| !arguments.all || matches!(one.result, R::Planned | R::Unfinished);
    let (shown, rest): (Vec<_>, Vec<_>) = report.stacks.iter().partition(is_shown);
    if !shown.is_empty() && (report.dry_run || !console.quiet) {
        console.table(&HEADER, shown.iter().map(|stack| planned(stack)));
    }
    if !rest.is_empty() {
        let noun = if shown.is_empty() { "stack" } else { "other" };
        let (others, kinds) = (counted(rest.len(), noun), kinds(&rest, &arguments.exclude));
        console.note(&format!("{others}: {kinds}; see stacklift list"));
    }
    for stack in report.to_adopt() {
        let losses = &stack.before.adopt.losses;
        if !losses.is_empty() {
            let verb = if report.dry_run { "would" } else { "will" };
            let losses = bulleted(losses.iter().map(Finding::to_string));
            console.warning(&format!("{} {verb} lose:\n{losses}", stack.name()));
        }
    }
    // Otherwise, they follow the run: nothing comes between the table and the question but losses.
    if report.dry_run {
        show_notices(report.to_adopt(), console);
    }
}

/// What to know before a later change. What holds for several stacks is said once.
fn show_notices<'r>(stacks: impl Iterator<Item = &'r AllEntry>, console: &Console) {
    let mut notices: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for stack in stacks {
        for notice in &stack.before.adopt.notices {
            let of = notices.entry(&notice.message).or_default();
            let details = notice.details.iter();
            of.extend(details.map(|detail| format!("{}: {detail}", stack.name())));
            if notice.details.is_empty() {
                of.push(stack.name().to_owned());
            }
        }
    }
    for (notice, of) in notices {
        console.remark(&format!("{notice}\n{}", bulleted(of)));
    }
}

/// Why the other stacks are not adopted: `2 up to date, 1 blocked`.
fn kinds(rest: &[&AllEntry], excluded: &[OsString]) -> String {
    let kind = |stack: &&AllEntry| match stack.result {
        StackResult::NothingToDo => "up to date",
        StackResult::NoFile => "with no file found",
        StackResult::Edited => "edited in Portainer",
        StackResult::Refused => "never adopted",
        StackResult::LeftOut if excluded.iter().any(|own| own == OsStr::new(stack.name())) => {
            "excluded"
        }
        StackResult::LeftOut if stack.before.adopt.readiness == Readiness::Ready => {
            if stack.before.adopt.runs_nothing() {
                "not running (name it to start it)"
            } else {
                "would be interrupted"
            }
        }
        StackResult::LeftOut => "outside the stacks root (--everywhere)",
        StackResult::Blocked if stack.before.adopt.failed_before() => {
            "failed last time (name it to try again)"
        }
        _ => "blocked",
    };
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in rest.iter().map(kind) {
        *kinds.entry(kind).or_default() += 1;
    }
    let kinds = kinds.iter().map(|(kind, count)| format!("{count} {kind}"));
    kinds.collect::<Vec<_>>().join(", ")
}

/// The names of the stacks with one of these results.
fn names(report: &AllReport, is: impl Fn(StackResult) -> bool) -> Vec<&str> {
    let stacks = report.stacks.iter().filter(|stack| is(stack.result));
    stacks.map(AllEntry::name).collect()
}

/// Shows what became of each stack that was to be adopted, unless all of them are adopted: each run has said so.
pub(super) fn show_end(report: &AllReport, console: &Console) {
    use StackResult as R;
    let is_tried = |one: R| matches!(one, R::Planned | R::Adopted | R::Failed | R::Interrupted);
    let tried = report.stacks.iter().filter(|stack| is_tried(stack.result));
    show_notices(
        tried.clone().filter(|stack| stack.result == R::Adopted),
        console,
    );
    let all = names(report, is_tried).len();
    let adopted = names(report, |result| result == R::Adopted);
    if adopted.len() == all {
        if all > 1 {
            console.heading(&format!("adopted {}", adopted.join(", ")));
        }
    } else {
        console.heading("Report");
        let row = |stack: &AllEntry| vec![(Meaning::Name, stack.name().to_owned()), ended(stack)];
        console.table(&["STACK", "RESULT"], tried.clone().map(row));
    }
    let runs = tried.filter(|stack| stack.result == R::Adopted);
    let runs: Vec<&AdoptReport> = runs.filter_map(|stack| stack.report.as_ref()).collect();
    // A stack that had no container and was not in Portainer has nothing to go back to.
    let undo = report.undo.as_ref();
    let undo = undo.filter(|_| runs.iter().all(|run| run.undo.is_some()));
    match runs.as_slice() {
        [] => {}
        [one] if all == 1 => show_next(one, console),
        _ => {
            let new = runs.iter().filter(|run| run.creates());
            let new: Vec<&str> = new.map(|run| run.stack.as_str()).collect();
            let some = listed(&new);
            let which = if new.len() == all { "them" } else { &some };
            let edit = format!("edit {which} in Portainer from now on");
            let edit = (!new.is_empty()).then_some(edit);
            let undo = undo.map(|undo| format!("to undo one: {undo}"));
            show_next_steps(edit, undo, console);
        }
    }
}

/// Shows which stacks are not adopted, why, and what to do about it.
pub(super) fn show_rest(
    report: &AllReport,
    is_all: bool,
    command: &RestoreCommand,
    console: &Console,
) {
    use StackResult as R;
    let error = |what: String, hint: String| {
        console.error(&Failure::new(what).hint(hint).into(), None);
    };
    if is_all {
        // Which is no failure (B22).
        let edited = names(report, |result| result == R::Edited);
        if let Some(what) = said(&edited, "was left out: edited in Portainer") {
            let name = if let [one] = edited[..] { one } else { "STACK" };
            let plan = command.with(&["plan", name]);
            console.note(&format!("{what}; to see what to do, run `{plan}`"));
        }
        let is_blocked = |result| matches!(result, R::Blocked | R::Unfinished);
        if let Some(what) = said(&names(report, is_blocked), "was not adopted") {
            let hint = "`stacklift list` shows why; --exclude leaves a stack out";
            error(what, hint.to_owned());
        }
    }
    let untried = names(report, |result| result == R::Planned);
    let failed = names(report, |result| result == R::Failed);
    if let (Some(what), Some(failed)) = (said(&untried, "was not tried"), failed.first()) {
        error(
            format!("{what}: {failed} failed"),
            format!(
                "fix {failed}, adopt it by name, then run the command again; or pass --keep-going"
            ),
        );
    }
    let left = report.stacks.iter().filter(|stack| stack.is_left());
    for stack in left.filter(|_| !is_all) {
        let why = match (stack.result, stack.before.adopt.blockers.first()) {
            (R::Edited, _) => "it was edited in Portainer",
            (_, Some(blocker)) => &blocker.message,
            _ => "no Compose file was found",
        };
        let what = format!("{} was not adopted: {why}", stack.name());
        error(what, command.with(&["plan", stack.name()]));
    }
}

/// The row of `list`, with what this run does to the stack.
fn planned(stack: &AllEntry) -> TableRow {
    let (mut row, way) = (row(&stack.before), &stack.before.adopt);
    stack.name().clone_into(&mut row.cells[0].1);
    let does = match (stack.result, way.readiness) {
        _ if stack.restored_first => (Meaning::Changed, "restored first".to_owned()),
        (StackResult::Planned, Readiness::NothingToDo) => (
            Meaning::Kept,
            "checked again: the last run did not finish".to_owned(),
        ),
        (StackResult::Planned, _) => {
            let (meaning, first) = readiness(way);
            let pulls = way.pulls.len();
            let pulls = (pulls > 0).then(|| format!("pulls {}", counted(pulls, "image")));
            let losses = way.losses.len();
            let losses = (losses > 0).then(|| counted(losses, "loss"));
            let told: Vec<String> = iter::once(first).chain(pulls).chain(losses).collect();
            (meaning, told.join("; "))
        }
        _ => return row,
    };
    row.tail = None;
    row.cells.truncate(HEADER.len() - 1);
    row.cells.push(does);
    row
}

/// What became of a stack, with the reason if it was not adopted.
fn ended(stack: &AllEntry) -> Part {
    let report = stack.report.as_ref();
    let (meaning, what, why) = match stack.result {
        StackResult::Adopted => (Meaning::Kept, "adopted", None),
        StackResult::Failed => (
            Meaning::Failed,
            "failed",
            report.and_then(|one| one.error.as_ref()),
        ),
        StackResult::Interrupted => {
            let state = report.and_then(|one| one.state.as_ref());
            (Meaning::Failed, "interrupted", state)
        }
        _ => (
            Meaning::Plain,
            "not adopted: the run ended before this stack",
            None,
        ),
    };
    let why = why.and_then(|why| why.lines().next());
    let told = why.map_or_else(|| what.to_owned(), |why| format!("{what}: {why}"));
    (meaning, told)
}
