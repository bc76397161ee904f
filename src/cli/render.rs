//! `stacklift render <STACK>`: the payload of call C, from the disk alone.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write, stdout},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Common, Console, RenderArguments, settings::Settings};
use crate::{
    migrate::Rewrite,
    observed::steers,
    stack::{Stack, StackName},
};

pub(super) fn run(arguments: &RenderArguments, common: &Common, console: &Console) -> Result<()> {
    let name = StackName::new(&arguments.stack)?;
    let settings = Settings::load(common)?;
    let stack = Stack::find(name, &settings.location)?;
    let rewrite = Rewrite::literal(&stack.read()?, stack.dir_text());
    for warning in &rewrite.env.warnings {
        console.warning(&format!("{}/.env: {warning}", stack.dir().display()));
    }
    let payload = rewrite.payload(stack.name().as_str());
    if arguments.reveal {
        let bytes = serde_json::to_vec(&payload).context("failed to write JSON")?;
        write(&bytes);
        return Ok(());
    }
    let mut json = serde_json::to_value(payload).context("failed to write JSON")?;
    mask_values(&mut json);
    let text = serde_json::to_string_pretty(&json).context("failed to write JSON")?;
    console.line(&plain(&text));
    Ok(())
}

/// JSON in which what would steer a terminal is escaped as JSON does it: it stays the same JSON.
fn plain(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !steers(c) {
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

/// The bytes as they would be sent: past every filter, with a line end for a terminal only.
fn write(bytes: &[u8]) {
    let mut out = stdout().lock();
    // A closed pipe is no reason to complain.
    let _ = out.write_all(bytes).and_then(|()| {
        if out.is_terminal() {
            out.write_all(b"\n")?;
        }
        out.flush()
    });
}
