//! The list as text for people: one line per stack, the name first. On a terminal, a line is cut at its width.

use super::format::{Adoptable, List, Readiness, StackEntry, State};
use crate::{
    cli::{
        Console,
        columns::{cut, pad, width},
        report::FateKind,
        style::Meaning,
    },
    text::{printable, shell_word},
};

/// The widest column of names.
const NAMES: usize = 24;
/// The most services that a line names.
const MOST_SERVICES: usize = 3;
/// The minimum width of the last column. If less is left, a stack takes two lines.
const LEAST: usize = 24;

type Part = (Meaning, String);

/// Prints the list, and what it leaves out on standard error.
pub(super) fn show(list: &List, console: &Console) {
    let header =
        ["NAME", "STATE", "RUNNING", "ADOPT"].map(|title| (Meaning::Name, title.to_owned()));
    let rows = list.stacks.iter().map(row);
    let rows: Vec<[Part; 4]> = std::iter::once(header).chain(rows).collect();
    for line in lines(rows, Console::width()) {
        console.parts(&line);
    }
    if list.stacks.is_empty() {
        console.note(&format!("no stacks in {}", list.stacks_root));
    }
    if let Some(note) = note(list) {
        console.note(&note);
    }
}

/// The rows with aligned columns, cut at the width of the terminal. If that is too narrow, each name has its own line.
fn lines(rows: Vec<[Part; 4]>, terminal: Option<usize>) -> Vec<Vec<Part>> {
    let [names, states, counts] = [0, 1, 2].map(|at| {
        let cells = rows.iter().map(|row| width(&row[at].1));
        cells.max().unwrap_or(0)
    });
    let names = names.min(NAMES);
    let is_narrow = terminal.is_some_and(|most| names + states + counts + 6 + LEAST > most);
    let mut lines = Vec::new();
    for [name, state, count, adopt] in rows {
        let mut line = Vec::new();
        if is_narrow {
            lines.push(vec![(name.0, cut(name.1, terminal))]);
            line.push((Meaning::Plain, "  ".to_owned()));
        } else {
            line.push((name.0, format!("{}  ", pad(&name.1, names))));
        }
        line.push((state.0, format!("{}  ", pad(&state.1, states))));
        line.push((count.0, format!("{}  ", pad(&count.1, counts))));
        let taken: usize = line.iter().map(|(_, text)| width(text)).sum();
        let left = terminal.map(|most| most.saturating_sub(taken));
        line.push((adopt.0, cut(adopt.1, left)));
        lines.push(line);
    }
    lines
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

fn row(stack: &StackEntry) -> [Part; 4] {
    let (style, state) = match stack.state {
        State::ByHand => (Meaning::Plain, "by hand"),
        State::InPortainer => (Meaning::Kept, "in Portainer"),
        State::Both => (Meaning::Changed, "both"),
        State::Stopped => (Meaning::Plain, "stopped"),
        State::Orphaned => (Meaning::Changed, "orphaned"),
        State::Swarm => (Meaning::Plain, "swarm"),
        State::Kubernetes => (Meaning::Plain, "Kubernetes"),
        State::Unknown => (Meaning::Unknown, "unknown"),
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
        (Meaning::Name, printable(&stack.name).into_owned()),
        (style, state.to_owned()),
        (Meaning::Plain, running),
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
            let style = if interrupts {
                Meaning::Changed
            } else {
                Meaning::Kept
            };
            (style, format!("ready{}", changes.concat()))
        }
        Readiness::NothingToDo => (
            Meaning::Kept,
            "same text in Portainer; not compared".to_owned(),
        ),
        Readiness::Blocked => {
            let first = adopt.blockers.first();
            let first = first.map_or("", |blocker| blocker.message.as_str());
            let more = match adopt.blockers.len().saturating_sub(1) {
                0 => String::new(),
                more => format!(" (+{more} more)"),
            };
            (Meaning::Failed, format!("blocked{more}: {first}"))
        }
        Readiness::NoFile => {
            let blockers = adopt.blockers.iter();
            let blockers = blockers.map(|blocker| format!("; {}", blocker.message));
            (
                Meaning::Plain,
                format!("no Compose file{}", blockers.collect::<String>()),
            )
        }
        Readiness::Unknown => (Meaning::Unknown, "unknown".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 4]) -> [Part; 4] {
        cells.map(|cell| (Meaning::Plain, cell.to_owned()))
    }

    fn shown(terminal: Option<usize>) -> Vec<String> {
        let rows = vec![
            row(["NAME", "STATE", "RUNNING", "ADOPT"]),
            row([
                "日本語",
                "by hand",
                "1/1",
                "ready; recreates 書店, b, c and 9 more",
            ]),
            row(["🚀", "in Portainer", "2/2", "nothing to do"]),
        ];
        let lines = lines(rows, terminal).into_iter();
        lines
            .map(|line| line.into_iter().map(|(_, text)| text).collect())
            .collect()
    }

    #[test]
    fn the_columns_are_aligned_and_fit() {
        assert_eq!(
            shown(Some(55)),
            [
                "NAME    STATE         RUNNING  ADOPT",
                "日本語  by hand       1/1      ready; recreates 書店,…",
                "🚀      in Portainer  2/2      nothing to do",
            ]
        );
        assert_eq!(
            shown(None)[1],
            "日本語  by hand       1/1      ready; recreates 書店, b, c and 9 more"
        );
    }

    #[test]
    fn a_narrow_terminal_has_two_lines_for_each_stack() {
        assert_eq!(
            shown(Some(40)),
            [
                "NAME",
                "  STATE         RUNNING  ADOPT",
                "日本語",
                "  by hand       1/1      ready; recreat…",
                "🚀",
                "  in Portainer  2/2      nothing to do",
            ]
        );
        for line in shown(Some(40)) {
            assert!(width(&line) <= 40, "{line}");
        }
    }
}
