//! The table of `adopt --all` before the run, and the one after it.

use super::format::{AllReport, StackReport, StackResult};
use crate::{
    cli::{
        Console,
        list::{Readiness, text::services},
        report::FateKind,
    },
    text::counted,
};

type Row = Vec<String>;

/// Shows what would be done with each stack, and what each would lose.
pub(super) fn show_plan(report: &AllReport, console: &Console) {
    let header = ["STACK", "KEPT", "RECREATED", "ADOPT"].map(str::to_owned);
    let rows = report.stacks.iter().map(planned);
    console.table(std::iter::once(header.to_vec()).chain(rows).collect());
    for stack in to_adopt(report).filter(|stack| !stack.losses.is_empty()) {
        let lines: Vec<String> = stack
            .losses
            .iter()
            .map(|one| format!("  - {one}"))
            .collect();
        let verb = if report.dry_run { "would" } else { "will" };
        console.warning(&format!(
            "{} {verb} lose:\n{}",
            stack.stack,
            lines.join("\n")
        ));
    }
}

/// Shows what became of each stack.
pub(super) fn show_end(report: &AllReport, console: &Console) {
    console.heading("Report");
    let header = ["STACK", "RESULT"].map(str::to_owned).to_vec();
    let rows = report
        .stacks
        .iter()
        .map(|stack| vec![stack.stack.clone(), ended(stack)]);
    console.table(std::iter::once(header).chain(rows).collect());
}

/// The stacks that are adopted.
pub(super) fn to_adopt(report: &AllReport) -> impl Iterator<Item = &StackReport> {
    let stacks = report.stacks.iter();
    stacks.filter(|stack| stack.result == StackResult::Planned)
}

fn planned(stack: &StackReport) -> Row {
    let is_planned = stack.result == StackResult::Planned;
    let number = |kinds: &[FateKind]| {
        if !is_planned {
            return "-".to_owned();
        }
        let services = stack.plan.services.iter();
        let these = services.filter(|one| kinds.contains(&one.fate.kind));
        these.count().to_string()
    };
    vec![
        stack.stack.clone(),
        number(&[FateKind::Unchanged, FateKind::LeftBehind]),
        number(&[FateKind::Recreated]),
        if is_planned {
            ready(stack)
        } else {
            not_planned(stack)
        },
    ]
}

/// What would happen to a stack that is adopted.
fn ready(stack: &StackReport) -> String {
    let fates = [
        (FateKind::Recreated, "recreates"),
        (FateKind::Restarted, "restarts"),
        (FateKind::Started, "starts"),
        (FateKind::Unknown, "may recreate"),
    ];
    let mut parts = match stack.plan.readiness {
        Readiness::NothingToDo => vec!["waits for an earlier request".to_owned()],
        _ => vec!["ready".to_owned()],
    };
    parts.extend(
        fates
            .into_iter()
            .filter_map(|(kind, verb)| Some(format!("{verb} {}", services(&stack.plan, kind)?))),
    );
    if !stack.pulls.is_empty() {
        parts.push(format!("pulls {}", counted(stack.pulls.len(), "image")));
    }
    if !stack.losses.is_empty() {
        let losses = match stack.losses.len() {
            1 => "1 loss".to_owned(),
            many => format!("{many} losses"),
        };
        parts.push(losses);
    }
    parts.join("; ")
}

/// Why a stack is not adopted.
fn not_planned(stack: &StackReport) -> String {
    let first = stack.plan.blockers.first();
    let first = first.map_or("", |blocker| blocker.message.as_str());
    match stack.result {
        StackResult::Blocked | StackResult::Refused => {
            let more = match stack.plan.blockers.len().saturating_sub(1) {
                0 => String::new(),
                more => format!(" (+{more} more)"),
            };
            let word = if stack.result == StackResult::Blocked {
                "blocked"
            } else {
                "refused"
            };
            format!("{word}{more}: {first}")
        }
        StackResult::NoFile => "no Compose file".to_owned(),
        _ => "nothing to do".to_owned(),
    }
}

/// What became of a stack, with the reason if it was not adopted.
fn ended(stack: &StackReport) -> String {
    let with = |word: &str, why: Option<&String>| match why {
        Some(why) => format!("{word}: {}", why.lines().next().unwrap_or_default()),
        None => word.to_owned(),
    };
    match stack.result {
        StackResult::Planned => "not adopted: the run ended before this stack".to_owned(),
        StackResult::Adopted => "adopted".to_owned(),
        StackResult::Failed => with("failed", stack.error.as_ref()),
        StackResult::Interrupted => with("interrupted", stack.state.as_ref()),
        _ => not_planned(stack),
    }
}
