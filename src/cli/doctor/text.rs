//! The checks as text for people: one line each, with the hint below it.

use super::format::{Check, Diagnosis, Status};
use crate::{
    cli::{
        Console,
        style::{BAD, BOLD, CAREFUL, GOOD, PLAIN},
    },
    text::counted,
};

/// The width of a status, and that of a subject.
const WIDTHS: (usize, usize) = (7, 15);

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
    let (style, status) = match check.status {
        Status::Ok => (GOOD, "ok"),
        Status::Warning => (CAREFUL, "warning"),
        Status::Failed => (BAD, "failed"),
        Status::NotChecked => (PLAIN, "-"),
    };
    let (first, second) = WIDTHS;
    console.parts(&[
        (style, format!("{status:first$}  ")),
        (BOLD, format!("{:second$}  ", check.subject.name())),
        (PLAIN, check.fact.clone()),
    ]);
    if let Some(hint) = &check.hint {
        let indent = " ".repeat(first + second + 4);
        console.parts(&[
            (PLAIN, indent),
            (BOLD, "hint: ".to_owned()),
            (PLAIN, hint.clone()),
        ]);
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
