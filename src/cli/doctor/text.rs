//! The checks as text for people: one line each, with the hint below it.

use super::format::{Check, Diagnosis, Status};
use crate::{
    cli::{
        Console,
        columns::{readable, wrap},
        style::Meaning,
    },
    text::counted,
};

/// The width of a status, and that of a subject.
const WIDTHS: (usize, usize) = (7, 15);
/// The minimum width of a fact. If less is left, the fact begins on the next line.
const LEAST: usize = 30;

/// Prints the checks, and what they add up to on standard error. With `--quiet`, only warnings and failures.
pub(super) fn show(diagnosis: &Diagnosis, console: &Console) {
    for check in &diagnosis.checks {
        let needs_action = matches!(check.status, Status::Warning | Status::Failed);
        if needs_action || !console.is_quiet() {
            line(check, console);
        }
    }
    console.note(&sum(diagnosis));
}

fn line(check: &Check, console: &Console) {
    let (meaning, status) = match check.status {
        Status::Ok => (Meaning::Kept, "ok"),
        Status::Warning => (Meaning::Warning, "warning"),
        Status::Failed => (Meaning::Failed, "failed"),
        Status::NotChecked => (Meaning::Plain, "-"),
    };
    let (first, second) = WIDTHS;
    let mut start = vec![
        (meaning, format!("{status:first$}  ")),
        (Meaning::Name, format!("{:second$}  ", check.subject.name())),
    ];
    let mut indent = first + second + 4;
    let most = readable(Console::width());
    if most < indent + LEAST {
        console.parts(&start);
        indent = 4;
        start = vec![(Meaning::Plain, " ".repeat(indent))];
    }
    let room = most.saturating_sub(indent);
    let hint = check.hint.as_ref().map(|hint| format!("hint: {hint}"));
    for text in std::iter::once(&check.fact).chain(&hint) {
        for line in wrap(text, room, room) {
            start.push((Meaning::Plain, line));
            console.parts(&start);
            start = vec![(Meaning::Plain, " ".repeat(indent))];
        }
    }
}

fn sum(diagnosis: &Diagnosis) -> String {
    let count = |status| {
        let checks = diagnosis.checks.iter();
        checks.filter(|check| check.status == status).count()
    };
    let parts = [
        (count(Status::Failed), "failure"),
        (count(Status::Warning), "warning"),
    ];
    let parts = parts.iter().filter(|(n, _)| *n > 0);
    let mut parts: Vec<String> = parts.map(|&(n, noun)| counted(n, noun)).collect();
    let left = count(Status::NotChecked);
    if left > 0 {
        parts.push(format!("{left} not checked"));
    }
    if parts.is_empty() {
        return "no problems found".to_owned();
    }
    parts.join(", ")
}
