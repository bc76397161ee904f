//! `stacklift doctor`: checks everything that the other commands need. Reads only, and leaves no file behind.

use std::{sync::Arc, time::Duration};

use super::{
    Cli, Console, Ended,
    arguments::Output,
    peers as clients,
    settings::{Settings, Sourced},
    style::Meaning,
};
use crate::{
    compose,
    failure::Failure,
    finding::Finding,
    parallel::side_by_side,
    report::{Check, DoctorReport, Status, VERSION},
};

mod here;
mod peers;

/// The time limit for each request, so that the command ends even if nothing responds.
const LIMIT: Duration = Duration::from_secs(5);

pub(super) fn run(output: Output, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    console.waiting("checking the settings, Portainer and Docker");
    let checks = checks(cli);
    console.done();
    let report = DoctorReport {
        version: VERSION,
        checks,
    };
    console.result(output, &report, show)?;
    let mut checks = report.checks.iter();
    Ended::verdict(checks.any(|check| check.status == Status::Failed).into())
}

fn checks(Cli { common, console }: Cli) -> Vec<Check> {
    let mut common = common.clone();
    common.dir = None;
    let sourced = Sourced::load(&common);
    let mut checks = here::settings(&sourced);
    // Everything else depends on the settings.
    if let Ok(settings) = sourced.settings {
        checks.extend(with_settings(settings, console));
    }
    checks
}

/// Asks the engine, the Compose program and Portainer at the same time.
fn with_settings(mut settings: Settings, console: &Arc<Console>) -> Vec<Check> {
    let (key, api_key) = here::api_key(&settings);
    if let Some(key) = &key {
        console.hide(key);
    }
    let has_key = key.is_some();
    settings.timeout = settings.timeout.min(LIMIT);
    let compose = compose::Installation::new(&settings.location.tool, console.trace());
    let reader = &clients::engine(&settings, console);
    // Portainer's status needs no key.
    let client = clients::portainer(&settings, key.unwrap_or_default(), false, console);
    let settings = &settings;
    let of_engine = || {
        let about = reader.about();
        (peers::engine(reader, &about), about)
    };
    let of_compose = || here::compose(&compose);
    let status = || match &client {
        Ok(client) => client.reader().version(),
        Err(error) => Err(Failure::from(&Finding::of_error(error)).into()),
    };
    let (status, (compose, (engine, about))) =
        side_by_side(status, || side_by_side(of_compose, of_engine));
    let not_checked = |reason| ["user", "environment"].map(|name| Check::not_checked(name, reason));
    let without_key = || not_checked("it needs a valid API key");
    let (api_key, with_key) = match &client {
        Ok(client) if has_key && status.is_ok() => {
            match peers::with_key(
                (client.reader(), reader),
                settings,
                about.as_ref().ok().copied(),
            ) {
                Ok(checks) => (api_key, checks),
                Err(rejected) => (rejected, without_key()),
            }
        }
        _ if has_key => {
            let why = "Portainer does not answer";
            (Check::not_checked("API key", why), not_checked(why))
        }
        _ => (api_key, without_key()),
    };
    let mut checks = vec![
        engine,
        compose,
        peers::portainer(settings, &status),
        peers::tls(settings, &status),
        api_key,
    ];
    checks.extend(with_key);
    checks.extend([here::stacks_root(&settings.location), here::state_dir()]);
    checks.extend(here::runs(settings, reader));
    checks
}

/// The width of a status, and that of a subject.
const WIDTHS: (usize, usize) = (7, 15);

/// Prints the checks, and what to do. With `--quiet`, only warnings and failures.
fn show(report: &DoctorReport, console: &Console) {
    for check in &report.checks {
        let needs_action = matches!(check.status, Status::Warning | Status::Failed);
        if needs_action || !console.quiet {
            line(check, console);
        }
    }
    let with = |status| {
        report
            .checks
            .iter()
            .filter(move |check| check.status == status)
    };
    let again = "Fix this, then run stacklift doctor again:";
    hints(again, with(Status::Failed), console);
    hints("Consider this:", with(Status::Warning), console);
    if with(Status::Failed).next().is_none() && !console.quiet {
        console.next("stacklift list");
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
    let subject = format!("{:second$}  ", check.subject());
    let start = [
        (meaning, format!("{status:first$}  ")),
        (Meaning::Name, subject),
    ];
    console.item(&start, &check.finding.message);
}

/// What to do about some checks, if there are any.
fn hints<'c>(heading: &str, checks: impl Iterator<Item = &'c Check>, console: &Console) {
    let (first, second) = WIDTHS;
    let hints = checks.filter_map(|check| Some((check.subject(), check.finding.hint.as_ref()?)));
    for (at, (subject, hint)) in hints.enumerate() {
        if at == 0 {
            console.line(&format!("\n{heading}"));
        }
        let subject = format!("{:first$}  {:second$}  ", "", subject);
        console.item(&[(Meaning::Name, subject)], hint);
    }
}
