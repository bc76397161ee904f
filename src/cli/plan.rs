//! `stacklift plan <STACK>`, and the same of a command with `--dry-run`: what it would do. Reads only.

use anyhow::Result;

use super::{
    Cli, Console, Ended,
    arguments::{PlanArguments, Reporting},
    interrupt::watch_reading,
    opened::Opened,
    render::{blocked, note_masked, print_body, print_diff, print_patch, print_variables},
};
use crate::{
    adopt::Prepared,
    inventory::{Commands, Ways, plan},
    observe::mask,
    plan::Request,
    portainer::{Contents, Payload},
    report::PlanReport,
    rewrite::{diff::Shown, faithful::Faithful, masked},
    run::Stopped,
    stack::Stack,
    text::Mask,
};

mod text;

pub(super) use text::{show, show_without_next};

pub(super) fn run(arguments: &PlanArguments, cli: Cli) -> Result<(), Ended> {
    let console = cli.console;
    watch_reading(console);
    let opened = Opened::new(&arguments.stack, cli)?
        .shared_with(&arguments.access.grants)?
        .with_git(&arguments.git, console)?;
    let keep = arguments.keep;
    if arguments.diff || arguments.request {
        console.waiting("inspecting what exists");
        let prepared = Prepared::new(&opened.situation(), keep);
        console.done();
        let prepared = prepared.map_err(Stopped::untouched)?;
        return if arguments.diff {
            show_diff(&prepared, &opened.stack, arguments.git.reveal, console)
        } else {
            show_request(&prepared, &opened.stack, arguments.git.reveal, console)
        };
    }
    let ways = Ways {
        adopt: Some(keep),
        migrate: arguments.compare.then_some(false),
        or_migrate: opened.git.is_none(),
        ..Ways::default()
    };
    report(&opened, ways, arguments.reporting, console)
}

/// Prints how what would be sent differs from what Portainer has, or else from the Compose file.
pub(super) fn show_diff(
    prepared: &Prepared,
    stack: &Stack,
    reveal: bool,
    console: &Console,
) -> Result<(), Ended> {
    let rewrite = rewrite(prepared, stack, console)?;
    if prepared.plan.is_left_to_git() {
        console.note("nothing would be sent: Portainer deploys the stack from Git");
        return Ok(());
    }
    if let Some(git) = &prepared.git {
        match &git.patch {
            Some(patch) => print_patch(patch),
            None => console.note("no differences"),
        }
        return Ok(());
    }
    let file = stack.file();
    let (old, new) = match prepared.deployed() {
        Some(_) => (
            format!("{file}\t(in Portainer)"),
            format!("{file}\t(to be sent)"),
        ),
        None => (file.to_owned(), format!("{file}\t(in Portainer)")),
    };
    let mask = (!reveal).then(|| mask_of(prepared, rewrite));
    let after = Shown {
        text: &rewrite.text,
        shown: &rewrite.shown(),
    };
    let text_differs = print_diff([old, new], prepared.compared(), after, mask.as_ref());
    let env_differs = prepared.before.contents.as_ref().and_then(|(now, _)| {
        let head = ["in Portainer", "to be sent"].map(|which| format!("variables\t({which})"));
        print_variables(head, &now.env, &rewrite.env, reveal)
    });
    if text_differs.or(env_differs).is_none() {
        console.note("no differences");
    }
    note_masked([text_differs, env_differs], console);
    Ok(())
}

/// Prints the body of the request.
pub(super) fn show_request(
    prepared: &Prepared,
    stack: &Stack,
    reveal: bool,
    console: &Console,
) -> Result<(), Ended> {
    let rewrite = rewrite(prepared, stack, console)?;
    let body = match (&prepared.plan.request, &prepared.git) {
        (Request::Nothing(_), _) => {
            console.note("no request: Portainer is up to date");
            return Ok(());
        }
        (Request::Redeploy(_), Some(git)) => {
            let record = prepared.before.record.as_ref();
            git.redeploy_body(record.is_some_and(|record| record.prune))
        }
        (_, Some(git)) => git.payload(stack.name().as_str()).body(),
        (Request::Update(_), None) => {
            let record = prepared.before.record.as_ref();
            let (text, env) = (rewrite.text.clone(), rewrite.env.clone());
            Contents { text, env }.body(record.is_some_and(|record| record.prune))
        }
        (_, None) => Payload {
            name: &rewrite.project,
            text: &rewrite.text,
            env: &rewrite.env,
            git: None,
        }
        .body(),
    };
    let shown = || masked(&rewrite.shown(), &mask_of(prepared, rewrite));
    Ok(print_body(&body, (!reveal).then(shown), console)?)
}

/// Hides the values of `.env`, of what would be sent, and of what Portainer has.
fn mask_of(prepared: &Prepared, rewrite: &Faithful) -> Mask {
    let now = prepared.before.contents.as_ref();
    let now = now.map_or(&[][..], |(contents, _)| &contents.env);
    mask(&prepared.source, &[&rewrite.env, now].concat())
}

/// The rewrite. Prints what to know about it.
fn rewrite<'p>(
    prepared: &'p Prepared,
    stack: &Stack,
    console: &Console,
) -> Result<&'p Faithful, Ended> {
    let rewrite = prepared.rewrite.as_ref();
    let rewrite =
        rewrite.map_err(|blockers| Stopped::untouched(blocked(stack, blockers).into()))?;
    for notice in &rewrite.notices {
        console.remark(&notice.in_file(stack.file()));
    }
    Ok(rewrite)
}

/// Plans and prints the report. Ends with its exit code if that was asked for, and with 1 if nothing is possible.
pub(super) fn report(
    opened: &Opened,
    ways: Ways,
    reporting: Reporting,
    console: &Console,
) -> Result<(), Ended> {
    console.waiting("inspecting what exists");
    let report = planned(opened, ways);
    console.done();
    let report = report.map_err(Stopped::untouched)?;
    console.result(reporting.output, &report, show)?;
    match report.exit_code() {
        code @ 1.. if reporting.exit_code => Err(Ended::Verdict(code)),
        _ if report.is_impossible() => Err(Ended::Verdict(1)),
        _ => Ok(()),
    }
}

/// Plans each way. Fails if none can be planned.
pub(super) fn planned(opened: &Opened, ways: Ways) -> Result<PlanReport> {
    let commands = Commands {
        typed: &opened.settings.typed,
        has_file: opened.settings.location.file.is_some(),
    };
    plan(&opened.situation(), ways, &commands)
}
