//! The checks as text for people: one line each, with the hint below it.

use crate::{
    cli::{Console, style::Meaning},
    report::{Check, DoctorReport, Status},
    text::counted,
};

/// The width of a status, and that of a subject.
const WIDTHS: (usize, usize) = (7, 15);

/// Prints the checks, and what they add up to on standard error. With `--quiet`, only warnings and failures.
pub(super) fn show(report: &DoctorReport, console: &Console) {
    for check in &report.checks {
        let needs_action = matches!(check.status, Status::Warning | Status::Failed);
        if needs_action || !console.is_quiet() {
            line(check, console);
        }
    }
    console.note(&sum(report));
}

fn line(check: &Check, console: &Console) {
    let (meaning, status) = match check.status {
        Status::Ok => (Meaning::Kept, "ok"),
        Status::Warning => (Meaning::Warning, "warning"),
        Status::Failed => (Meaning::Failed, "failed"),
        Status::NotChecked => (Meaning::Plain, "-"),
    };
    let (first, second) = WIDTHS;
    let subject = format!("{:second$}  ", check.subject.name());
    let start = [
        (meaning, format!("{status:first$}  ")),
        (Meaning::Name, subject),
    ];
    console.item(&start, &check.fact);
    if let Some(hint) = &check.hint {
        let start = (Meaning::Plain, " ".repeat(first + second + 4));
        console.item(&[start], &format!("hint: {hint}"));
    }
}

fn sum(report: &DoctorReport) -> String {
    let count = |status| {
        let checks = report.checks.iter();
        checks.filter(|check| check.status == status).count()
    };
    let some = |n: usize, text: String| (n > 0).then_some(text);
    let (failed, warned) = (count(Status::Failed), count(Status::Warning));
    let left = count(Status::NotChecked);
    let parts = [
        some(failed, counted(failed, "failure")),
        some(warned, counted(warned, "warning")),
        some(left, format!("{left} not checked")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return "no problems found".to_owned();
    }
    parts.join(", ")
}
