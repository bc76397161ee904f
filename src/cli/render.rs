//! `stacklift render <STACK>`: the body of the create request (C53), from the stack's files alone.

use std::io::{IsTerminal, Write, stdout};

use anstream::{AutoStream, ColorChoice};
use anyhow::{Result, bail};
use serde_json::Value;

use super::{
    Cli,
    arguments::{RenderArguments, Way},
    console::Console,
    interrupt::watch_reading,
    settings::Settings,
    style::Meaning,
};
use crate::{
    migrate::Rewrite,
    model::{Variable, values},
    observe::mask,
    plan::Keep,
    portainer::Payload,
    rewrite::{
        diff::{self, Shown},
        masked,
    },
    stack::{Stack, StackName},
    text::{Mask, printable},
};

mod adopt;

pub(super) use adopt::blocked;

pub(super) fn run(arguments: &RenderArguments, Cli { common, console }: Cli) -> Result<()> {
    watch_reading(console);
    let name = StackName::new(&arguments.stack)?;
    let settings = Settings::load(common)?;
    match arguments.way {
        Way::Literal => literal(arguments, &Stack::find(name, &settings.location)?, console),
        Way::Adopt => {
            let keep = Keep {
                variables: arguments.keep_variables,
                ..Keep::default()
            };
            console.waiting("inspecting the containers");
            let adopted = adopt::adopted(&name, &settings, keep, console);
            console.done();
            let adopted = adopted?;
            faithful(arguments, &adopted, console)
        }
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
        let after = Shown::all(&rewrite.text);
        print_diff(names(stack), &source.compose, after, mask);
        return Ok(());
    }
    let payload = rewrite.payload(stack.name().as_str());
    print(payload, &rewrite.text, mask, console)
}

fn faithful(
    arguments: &RenderArguments,
    adopt::Adopted {
        stack,
        source,
        rewrite,
    }: &adopt::Adopted,
    console: &Console,
) -> Result<()> {
    for notice in &rewrite.notices {
        console.warning(&notice.in_file(stack.file()));
    }
    let mask = mask(source, &rewrite.env);
    let mask = Some(&mask).filter(|_| !arguments.reveal);
    if arguments.diff {
        let hidden = rewrite.shown();
        let after = if arguments.reveal {
            Shown::all(&rewrite.text)
        } else {
            Shown {
                text: &rewrite.text,
                shown: &hidden,
            }
        };
        print_diff(names(stack), &source.compose, after, mask);
        return Ok(());
    }
    let payload = Payload {
        name: &rewrite.project,
        text: &rewrite.text,
        env: &rewrite.env,
        git: None,
    };
    print(payload, &rewrite.shown(), mask, console)
}

/// Prints `payload` as bytes without a `mask`, else with `text` in place of its own and without the values of variables
/// (B34).
fn print(payload: Payload, text: &str, mask: Option<&Mask>, console: &Console) -> Result<()> {
    let Some(mask) = mask else {
        write(payload.body().to_string().as_bytes());
        return Ok(());
    };
    let text = &masked(text, mask);
    print_masked(Payload { text, ..payload }.body(), console)
}

/// Prints the body of a request without the values of its variables (B34).
pub(super) fn print_masked(mut body: Value, console: &Console) -> Result<()> {
    let variables = body.get_mut("env").and_then(Value::as_array_mut);
    for variable in variables.into_iter().flatten() {
        variable["value"] = Value::from("***");
    }
    console.json(&body)
}

/// What the two sides of a difference are.
fn names(stack: &Stack) -> [String; 2] {
    let file = stack.file();
    [file.to_owned(), format!("{file}\t(in Portainer)")]
}

/// Prints the changes as a patch, and returns whether there are any. With a `mask`, the values of variables are masked
/// in what is shown (B34). Control characters are escaped on a terminal and in a colored patch only: a patch in a file must be exact.
pub(super) fn print_diff(
    [old, new]: [String; 2],
    before: &str,
    after: Shown,
    mask: Option<&Mask>,
) -> bool {
    let shown = |text: &str| mask.map_or_else(|| text.to_owned(), |mask| masked(text, mask));
    let of = |text, shown| Shown { text, shown };
    let (of_before, of_after) = (shown(before), shown(after.shown));
    print_hunks(
        [old, new],
        of(before, &of_before),
        of(after.text, &of_after),
    )
}

/// Prints how the variables differ, without their values, and returns whether they do.
pub(super) fn print_variables(head: [String; 2], before: &[Variable], after: &[Variable]) -> bool {
    let lines = |env: &[Variable], value: &dyn Fn(&str) -> String| -> String {
        let lines: Vec<String> = values(env)
            .into_iter()
            .map(|(name, of)| format!("{}={}\n", printable(name), value(of)))
            .collect();
        lines.concat()
    };
    let texts = |env| {
        (
            lines(env, &|value| format!("{value:?}")),
            lines(env, &|_| "***".to_owned()),
        )
    };
    let (before, after) = (texts(before), texts(after));
    let of = |(text, shown)| Shown { text, shown };
    print_hunks(head, of((&before.0, &before.1)), of((&after.0, &after.1)))
}

/// Prints the changed lines as a patch, and returns whether there are any.
fn print_hunks([old, new]: [String; 2], before: Shown, after: Shown) -> bool {
    let hunks = diff::hunks(before, after);
    if hunks.is_empty() {
        return false;
    }
    print_patch(&format!("--- {old}\n+++ {new}\n{hunks}"));
    true
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
