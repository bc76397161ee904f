//! The checks as text for people: one line each, then what to do.

use crate::{
    cli::{Console, style::Meaning},
    report::{Check, DoctorReport, Status},
};

/// The width of a status, and that of a subject.
const WIDTHS: (usize, usize) = (7, 15);

/// Prints the checks, and what to do. With `--quiet`, only warnings and failures.
pub(super) fn show(report: &DoctorReport, console: &Console) {
    for check in &report.checks {
        let needs_action = matches!(check.status, Status::Warning | Status::Failed);
        if needs_action || !console.is_quiet() {
            line(check, console);
        }
    }
    let with = |status| {
        let checks = report.checks.iter();
        checks.filter(move |check| check.status == status)
    };
    let has_failed = with(Status::Failed).next().is_some();
    let again = "Fix this, then run stacklift doctor again:";
    hints(again, with(Status::Failed), console);
    hints("Consider this:", with(Status::Warning), console);
    if !has_failed && !console.is_quiet() {
        console.line("\nNext: stacklift list");
    }
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
}

/// What to do about some checks, if there are any.
fn hints<'c>(heading: &str, checks: impl Iterator<Item = &'c Check>, console: &Console) {
    let (first, second) = WIDTHS;
    let mut heading = Some(heading);
    for check in checks {
        let Some(hint) = &check.hint else { continue };
        if let Some(heading) = heading.take() {
            console.line(&format!("\n{heading}"));
        }
        let subject = format!("{:first$}  {:second$}  ", "", check.subject.name());
        console.item(&[(Meaning::Name, subject)], hint);
    }
}
