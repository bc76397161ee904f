//! `stacklift render <STACK>`: the payload of call C, from the disk alone.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write, stdout},
};

use anyhow::{Context, Result};
use clap::ValueEnum;
use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};
use serde_json::Value;

use super::{Common, Console, RenderArguments, settings::Settings};
use crate::{
    failure::Failure,
    migrate::Rewrite,
    portainer::Payload,
    rewrite::faithful::Faithful,
    stack::{Stack, StackName},
    text::needs_escaping,
};

mod adopt;

/// The two rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Way {
    /// The contract's: what `migrate` sends
    Literal,
    /// Faithful: the text means the same to the manager as it does here
    Adopt,
}

pub(super) fn run(arguments: &RenderArguments, common: &Common, console: &Console) -> Result<()> {
    let name = StackName::new(&arguments.stack)?;
    let settings = Settings::load(common)?;
    let stack = Stack::find(name, &settings.location)?;
    match arguments.way {
        Way::Literal => literal(arguments, &stack, console),
        Way::Adopt => faithful(arguments, &stack, console),
    }
}

fn literal(arguments: &RenderArguments, stack: &Stack, console: &Console) -> Result<()> {
    if arguments.explain {
        return Err(
            Failure::new("the literal rewrite understands nothing that it could explain")
                .hint("say --as adopt for the one that does")
                .into(),
        );
    }
    let source = stack.read()?;
    let rewrite = Rewrite::literal(&source, stack.dir_text());
    for warning in &rewrite.env.warnings {
        console.warning(&format!("{}/.env: {warning}", stack.dir().display()));
    }
    if arguments.diff {
        diff(stack, &source.compose, &rewrite.text);
        return Ok(());
    }
    let payload = rewrite.payload(stack.name().as_str());
    print(payload, payload, arguments.reveal, console)
}

fn faithful(arguments: &RenderArguments, stack: &Stack, console: &Console) -> Result<()> {
    let source = stack.read()?;
    let rewrite = adopt::rewrite(stack, &source)?;
    if !arguments.explain {
        for notice in &rewrite.notices {
            console.warning(&adopt::notice(stack, notice));
        }
    }
    if rewrite.project != stack.name().as_str() {
        console.warning(&format!(
            "the project is called {} here, so its record has to have that name, not {}",
            rewrite.project,
            stack.name()
        ));
    }
    if arguments.diff {
        diff(stack, &source.compose, &rewrite.shown());
    }
    if arguments.explain {
        explain(stack, &rewrite, console);
    }
    if arguments.diff || arguments.explain {
        return Ok(());
    }
    let payload = Payload {
        name: &rewrite.project,
        text: &rewrite.text,
        env: &rewrite.env,
    };
    let shown = Payload {
        text: &rewrite.shown(),
        ..payload
    };
    print(payload, shown, arguments.reveal, console)
}

/// The payload: as it is with `reveal`, else `shown` without the values of `.env`.
fn print(payload: Payload, shown: Payload, reveal: bool, console: &Console) -> Result<()> {
    if reveal {
        let bytes = serde_json::to_vec(&payload).context("failed to write JSON")?;
        write(&bytes);
        return Ok(());
    }
    let mut json = serde_json::to_value(shown).context("failed to write JSON")?;
    mask_values(&mut json);
    let text = serde_json::to_string_pretty(&json).context("failed to write JSON")?;
    console.line(&plain(&text));
    Ok(())
}

/// JSON in which what would steer a terminal is escaped as JSON does it: it stays the same JSON.
fn plain(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !needs_escaping(c) {
            plain.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String does not fail.
                let _ = write!(plain, "\\u{unit:04x}");
            }
        }
    }
    plain
}

fn mask_values(payload: &mut Value) {
    let variables = payload.get_mut("env").and_then(Value::as_array_mut);
    for variable in variables.into_iter().flatten() {
        variable["value"] = Value::from("***");
    }
}

/// What changes in the text, as a patch; nothing where nothing does.
fn diff(stack: &Stack, before: &str, after: &str) {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    let hunks = diff
        .unified_diff(&printer, UnifiedDiffConfig::default(), &input)
        .to_string();
    if !hunks.is_empty() {
        let file = stack.file();
        write(format!("--- {file}\n+++ {file} at the manager\n{hunks}").as_bytes());
    }
}

fn explain(stack: &Stack, rewrite: &Faithful, console: &Console) {
    for edit in &rewrite.edits {
        console.line(&format!(
            "{}:{}: {}: {}",
            stack.file(),
            edit.line,
            crate::text::printable(&edit.what),
            edit.why
        ));
    }
    for notice in &rewrite.notices {
        let notice = adopt::notice(stack, notice);
        console.line(&format!("note: {}", crate::text::printable(&notice)));
    }
    if rewrite.edits.is_empty() {
        console.line("the text stays as it is");
    }
}

/// The bytes as they are: past every filter, with a line end for a terminal only.
fn write(bytes: &[u8]) {
    let mut out = stdout().lock();
    // A closed pipe is no reason to complain.
    let _ = out.write_all(bytes).and_then(|()| {
        if out.is_terminal() && !bytes.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
        out.flush()
    });
}
