//! Measures `stacklift` against what does the same, in turn in one run, and prints medians and ratios.
//!
//! usage: `scripts/bench [PART…]`, parts being `run`, `list`, `removal`, `rewrite`, `faithful`; all where none is named.

mod faithful;
mod list;
mod place;
mod removal;
mod rewrite;
mod run;
mod timing;

use anyhow::{Result, bail};

/// A part's name, and what measures it.
type Part = (&'static str, fn() -> Result<()>);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        // Processes of their own, started from below.
        ["--remove", socket, project] => return removal::remove(socket, project),
        ["--rewrite-once"] => return rewrite::once(),
        ["--faithful-once", bytes] => return faithful::once(bytes),
        _ => {}
    }
    let parts: [Part; 5] = [
        ("run", run::measure),
        ("list", list::measure),
        ("removal", removal::measure),
        ("rewrite", rewrite::measure),
        ("faithful", faithful::measure),
    ];
    if let Some(unknown) = arguments
        .iter()
        .find(|name| !parts.iter().any(|(part, _)| part == *name))
    {
        bail!("there is no part {unknown}");
    }
    for (name, measure) in parts {
        if arguments.is_empty() || arguments.contains(&name) {
            measure()?;
        }
    }
    Ok(())
}
