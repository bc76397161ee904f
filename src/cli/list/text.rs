//! The list as text for people: one line per stack, the name first. On a terminal, a line is cut at its width.

use std::io::{IsTerminal as _, stdout};

use anstyle::Style;

use super::format::{Adoptable, List, Readiness, StackEntry, State};
use crate::{
    cli::{
        Console,
        report::FateKind,
        style::{BAD, BOLD, CAREFUL, GOOD, PLAIN},
    },
    text::{printable, shell_word},
};

/// The least width of a terminal.
const WIDTH: usize = 80;
/// The widest column of names.
const NAMES: usize = 24;
/// The most services that a line names.
const MOST_SERVICES: usize = 3;

type Part = (Style, String);

/// Prints the list, and what it leaves out on standard error.
pub(super) fn show(list: &List, console: &Console) {
    let width = width_of_terminal();
    let header = ["NAME", "STATE", "RUNNING", "ADOPT"].map(|title| (BOLD, title.to_owned()));
    let rows = list.stacks.iter().map(row);
    let rows: Vec<[Part; 4]> = std::iter::once(header).chain(rows).collect();
    let columns = [0, 1, 2].map(|at| {
        let cells = rows.iter().map(|row| row[at].1.chars().count());
        cells.max().unwrap_or(0).min(NAMES)
    });
    for row in rows {
        let mut left = width;
        let [name, state, running, adopt] = row;
        let mut parts = Vec::new();
        for ((style, text), column) in [name, state, running].into_iter().zip(columns) {
            let text = format!("{text:column$}");
            left = left.map(|left| left.saturating_sub(text.chars().count() + 2));
            parts.extend([(style, text), (PLAIN, "  ".to_owned())]);
        }
        let (style, text) = adopt;
        parts.push((style, cut(text, left)));
        console.parts(&parts);
    }
    if list.stacks.is_empty() {
        console.note(&format!("no stacks in {}", list.stacks_root));
    }
    if let Some(note) = note(list) {
        console.note(&note);
    }
}

/// What the list does not say.
fn note(list: &List) -> Option<String> {
    let is = |readiness| {
        let mut stacks = list.stacks.iter();
        stacks.any(|stack| stack.adopt.readiness == readiness)
    };
    let open = is(Readiness::Ready) || is(Readiness::NothingToDo);
    let note = match (open, is(Readiness::Blocked)) {
        (true, true) => "to compare configurations and show hints",
        (true, false) => "to compare configurations",
        (false, true) => "to show hints",
        (false, false) => return None,
    };
    Some(format!("{note}, run: stacklift plan <STACK>"))
}

/// The width of the terminal; `None` if the output is not one.
fn width_of_terminal() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stdout());
    let columns = size.map_or(WIDTH, |size| size.ws_col.into());
    Some(columns.max(WIDTH))
}

fn row(stack: &StackEntry) -> [Part; 4] {
    let (style, state) = match stack.state {
        State::ByHand => (PLAIN, "by hand"),
        State::InPortainer => (PLAIN, "in Portainer"),
        State::Both => (CAREFUL, "both"),
        State::Stopped => (PLAIN, "stopped"),
        State::Orphaned => (CAREFUL, "orphaned"),
        State::Swarm => (PLAIN, "swarm"),
        State::Kubernetes => (PLAIN, "Kubernetes"),
        State::Unknown => (CAREFUL, "unknown"),
    };
    let running = match &stack.containers {
        Some(containers) => format!("{}/{}", containers.running, containers.all),
        None => "?".to_owned(),
    };
    let (color, adopt) = adopt(stack);
    let adopt = match stack.dir.as_ref().filter(|_| stack.needs_dir) {
        Some(dir) => format!("{adopt} (--dir {})", shell_word(dir)),
        None => adopt,
    };
    [
        (BOLD, printable(&stack.name).into_owned()),
        (style, state.to_owned()),
        (PLAIN, running),
        (color, printable(&adopt).into_owned()),
    ]
}

/// Whether the stack can be adopted, and what would happen then.
fn adopt(stack: &StackEntry) -> Part {
    let adopt = &stack.adopt;
    match adopt.readiness {
        Readiness::Ready => {
            let fates = [
                (FateKind::Recreated, "recreates"),
                (FateKind::Restarted, "restarts"),
                (FateKind::Started, "starts"),
            ];
            let changes: Vec<String> = fates
                .into_iter()
                .filter_map(|(kind, verb)| Some(format!("; {verb} {}", services(adopt, kind)?)))
                .collect();
            let interrupts = adopt
                .services
                .iter()
                .any(|one| matches!(one.fate.kind, FateKind::Recreated | FateKind::Restarted));
            let style = if interrupts { CAREFUL } else { GOOD };
            (style, format!("ready{}", changes.concat()))
        }
        Readiness::NothingToDo => (PLAIN, "nothing to do".to_owned()),
        Readiness::Blocked => {
            let first = adopt.blockers.first();
            let first = first.map_or("", |blocker| blocker.message.as_str());
            let more = match adopt.blockers.len().saturating_sub(1) {
                0 => String::new(),
                more => format!(" (+{more} more)"),
            };
            (BAD, format!("blocked{more}: {first}"))
        }
        Readiness::NoFile => {
            let blockers = adopt.blockers.iter();
            let blockers = blockers.map(|blocker| format!("; {}", blocker.message));
            (
                PLAIN,
                format!("no Compose file{}", blockers.collect::<String>()),
            )
        }
        Readiness::Unknown => (CAREFUL, "unknown".to_owned()),
    }
}

/// The services with this fate; `None` if there are none.
pub(in crate::cli) fn services(adopt: &Adoptable, kind: FateKind) -> Option<String> {
    let services = adopt.services.iter();
    let mut names: Vec<&str> = services
        .filter(|one| one.fate.kind == kind)
        .map(|one| one.service.as_str())
        .collect();
    let count = names.len();
    names.truncate(MOST_SERVICES);
    match count {
        0 => None,
        _ if count > names.len() => {
            let more = count - names.len();
            Some(format!("{} and {more} more", names.join(", ")))
        }
        _ => Some(names.join(", ")),
    }
}

/// The text in at most so many characters.
fn cut(text: String, most: Option<usize>) -> String {
    match most {
        Some(most) if text.chars().count() > most => {
            let kept: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_the_width() {
        assert_eq!(cut("ready; x".to_owned(), None), "ready; x");
        assert_eq!(cut("ready; x".to_owned(), Some(8)), "ready; x");
        assert_eq!(cut("ready; x".to_owned(), Some(7)), "ready;…");
        assert_eq!(cut("ready; x".to_owned(), Some(0)), "…");
    }
}
