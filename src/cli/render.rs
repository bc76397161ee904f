//! `stacklift render <STACK>`: the body of the create request (C53), from the stack's files alone.

use std::io::{IsTerminal, Write, stdout};

use anstream::{AutoStream, ColorChoice};
use anyhow::{Result, bail};
use serde_json::Value;

use super::{
    Cli, Ended, arguments::RenderArguments, console::Console, interrupt::watch_reading,
    settings::Settings, style::Meaning,
};
use crate::{
    adopt::Prepared,
    finding::Kind,
    migrate::Rewrite,
    model::{Variable, values},
    observe::mask,
    plan::{Keep, Request},
    portainer::Payload,
    report::Way,
    rewrite::{
        diff::{self, Shown},
        faithful::Faithful,
        masked,
    },
    stack::{Stack, StackName},
    text::{HIDDEN, Mask, printable},
};

mod adopt;

pub(super) fn run(arguments: &RenderArguments, Cli { common, console }: Cli) -> Result<(), Ended> {
    watch_reading(console);
    let name = StackName::new(&arguments.stack)?;
    let settings = Settings::load(common)?;
    if arguments.way == Way::Migrate {
        let stack = Stack::find(name, &settings.location)?;
        return Ok(literal(arguments, &stack, console)?);
    }
    let keep = Keep {
        variables: arguments.keep_variables,
        ..Keep::default()
    };
    console.waiting("inspecting the containers");
    let prepared = adopt::prepared(&name, &settings, keep, console);
    console.done();
    let (stack, prepared) = prepared?;
    if prepared.before.last_sent.commit.is_some() {
        console
            .note("the last adoption deployed it from Git: this is about the files on this host");
    }
    if arguments.diff {
        show_diff(&prepared, &stack, arguments.reveal, console)
    } else {
        show_request(&prepared, &stack, arguments.reveal, console)
    }
}

fn literal(arguments: &RenderArguments, stack: &Stack, console: &Console) -> Result<()> {
    if arguments.keep_variables {
        bail!("`--keep-variables` cannot be used with `--as migrate`");
    }
    let source = stack.read()?;
    let rewrite = Rewrite::literal(&source, stack.dir_text());
    let mask = mask(&source, &rewrite.env.variables);
    let mask = Some(&mask).filter(|_| !arguments.reveal);
    for warning in &rewrite.env.warnings {
        console.warning(&format!("{}/.env: {warning}", stack.dir().display()));
    }
    if arguments.diff {
        let file = stack.file();
        let names = [file.to_owned(), format!("{file}\t(in Portainer)")];
        let is_masked = print_diff(names, &source.compose, Shown::all(&rewrite.text), mask);
        note_masked([is_masked], console);
        return Ok(());
    }
    let body = rewrite.payload(stack.name().as_str()).body();
    print_body(&body, mask.map(|mask| masked(&rewrite.text, mask)), console)
}

/// Prints how what would be sent differs from what Portainer has, or else from the Compose file.
pub(super) fn show_diff(
    prepared: &Prepared,
    stack: &Stack,
    reveal: bool,
    console: &Console,
) -> Result<(), Ended> {
    let rewrite = rewrite(prepared, stack, console)?;
    if let Some(git) = &prepared.git {
        if let Some(patch) = &git.patch {
            print_patch(patch);
            return Ok(());
        }
        let mask = (!reveal).then(|| mask_of(prepared, rewrite));
        let names =
            ["in Portainer", "in Git"].map(|which| format!("{}\t({which})", git.repository.path));
        let differs = prepared
            .deployed()
            .and_then(|now| print_diff(names, now, Shown::all(git.text()), mask.as_ref()));
        note_masked([differs], console);
        return Ok(());
    }
    let file = stack.file();
    let names = match prepared.deployed() {
        Some(_) => ["in Portainer", "to be sent"].map(|which| format!("{file}\t({which})")),
        None => [file.to_owned(), format!("{file}\t(in Portainer)")],
    };
    let mask = (!reveal).then(|| mask_of(prepared, rewrite));
    let after = Shown {
        text: &rewrite.text,
        shown: &rewrite.shown(),
    };
    let text_differs = print_diff(names, prepared.compared(), after, mask.as_ref());
    let env_differs = prepared
        .before
        .remote
        .contents
        .as_ref()
        .and_then(|(now, _)| {
            let head = ["in Portainer", "to be sent"].map(|which| format!("variables\t({which})"));
            print_variables(head, &now.env, &rewrite.env, reveal)
        });
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
    let record = prepared.before.remote.record.as_ref();
    let prune = record.is_some_and(|record| record.prune);
    let payload = match &prepared.git {
        Some(git) => git.payload(stack.name().as_str()),
        None => Payload::new(&rewrite.project, &rewrite.text, &rewrite.env),
    };
    let body = match &prepared.plan.request {
        Some(Request::Redeploy(_) | Request::Update(_)) => payload.update_body(prune),
        _ => payload.body(),
    };
    let shown = || masked(&rewrite.shown(), &mask_of(prepared, rewrite));
    Ok(print_body(&body, (!reveal).then(shown), console)?)
}

/// Hides the values of `.env`, of what would be sent, and of what Portainer has.
fn mask_of(prepared: &Prepared, rewrite: &Faithful) -> Mask {
    let now = prepared.before.remote.contents.as_ref();
    let now = now.map_or(&[][..], |(contents, _)| &contents.env);
    mask(&prepared.source, &[&rewrite.env, now].concat())
}

/// The rewrite. Prints what to know about it.
fn rewrite<'p>(prepared: &'p Prepared, stack: &Stack, console: &Console) -> Result<&'p Faithful> {
    let rewrite = prepared.rewrite.as_ref();
    let rewrite = rewrite.map_err(|blockers| adopt::blocked(stack, blockers))?;
    let notices = rewrite.notices.iter();
    for notice in notices.filter(|notice| notice.kind != Kind::StillAnonymous) {
        console.remark(&notice.clone().in_file(stack.file()).message);
    }
    Ok(rewrite)
}

/// Prints the body of a request: with the `shown` text and without the values of its variables (B34), or as exact bytes.
fn print_body(body: &Value, shown: Option<String>, console: &Console) -> Result<()> {
    let Some(shown) = shown else {
        write(body.to_string().as_bytes());
        return Ok(());
    };
    let mut masked = body.clone();
    if let Some(text) = masked.get_mut("stackFileContent") {
        *text = Value::from(shown);
    }
    let variables = masked.get_mut("env").and_then(Value::as_array_mut);
    for variable in variables.into_iter().flatten() {
        variable["value"] = Value::from(HIDDEN);
    }
    console.json(&masked)?;
    note_masked([Some(masked != *body)], console);
    Ok(())
}

/// Says what hides values, if any of the parts that were printed has one, or that nothing differs.
fn note_masked<const N: usize>(are_masked: [Option<bool>; N], console: &Console) {
    if are_masked.contains(&Some(true)) {
        console.note("*** hides the values of variables: add --reveal to see them");
    } else if are_masked == [None; N] {
        console.note("no differences");
    }
}

/// Prints the changes as a patch, and returns whether a value is hidden in it; `None` without changes. With a `mask`, the values
/// of variables are hidden (B34). Control characters are escaped on a terminal and in a colored patch only: a patch in a file must be exact.
fn print_diff(names: [String; 2], before: &str, after: Shown, mask: Option<&Mask>) -> Option<bool> {
    let (old, new) = match mask {
        Some(mask) => (masked(before, mask), masked(after.shown, mask)),
        None => (before.to_owned(), after.text.to_owned()),
    };
    print_hunks(names, (before, old), (after.text, new))
}

/// The same for variables.
fn print_variables(
    head: [String; 2],
    before: &[Variable],
    after: &[Variable],
    reveal: bool,
) -> Option<bool> {
    let lines = |env: &[Variable], reveal: bool| -> String {
        let line = |(name, value)| {
            let shown = if reveal {
                printable(value)
            } else {
                HIDDEN.into()
            };
            format!("{}={shown}\n", printable(name))
        };
        values(env).into_iter().map(line).collect()
    };
    let (old, new) = (lines(before, reveal), lines(after, reveal));
    print_hunks(
        head,
        (&lines(before, true), old),
        (&lines(after, true), new),
    )
}

/// The same for two texts with what is shown of each.
fn print_hunks(
    [old, new]: [String; 2],
    (before, old_shown): (&str, String),
    (after, new_shown): (&str, String),
) -> Option<bool> {
    let of = |text, shown| Shown { text, shown };
    let hunks = diff::hunks(of(before, &old_shown), of(after, &new_shown));
    if hunks.is_empty() {
        return None;
    }
    print_patch(&format!("--- {old}\n+++ {new}\n{hunks}"));
    Some(hunks != diff::hunks(Shown::all(before), Shown::all(after)))
}

/// Prints a patch of one file: exact bytes, unless the output is a terminal or colored.
pub(super) fn print_patch(patch: &str) {
    let is_colored = AutoStream::choice(&stdout()) != ColorChoice::Never;
    if !is_colored && !stdout().is_terminal() {
        write(patch.as_bytes());
        return;
    }
    for (at, line) in patch.lines().enumerate() {
        let meaning = match at {
            0 | 1 => Meaning::Name,
            _ => Meaning::of_diff(line),
        };
        // Tabs are harmless.
        let parts: Vec<_> = line.split('\t').map(printable).collect();
        let line = meaning.paint(&parts.join("\t"));
        // A closed pipe is not an error.
        let _ = writeln!(anstream::stdout().lock(), "{line}");
    }
}

/// Writes bytes without the filters of [`Console`], and ends the last line on a terminal only.
fn write(bytes: &[u8]) {
    let mut out = stdout().lock();
    // A closed pipe is not an error.
    let _ = out.write_all(bytes).and_then(|()| {
        if out.is_terminal() && !bytes.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
        out.flush()
    });
}
