//! Compares `stacklift` with other ways to do the same, in alternation within one run. Prints medians and ratios.
//!
//! usage: `scripts/bench [PART…]`. The parts are `run`, `list`, `plan`, `stacks`, `removal`, `rewrite` and `faithful`; the
//! default is all.

mod faithful;
mod list;
mod place;
mod plan;
mod removal;
mod rewrite;
mod run;
mod stacks;
mod timing;

use anyhow::{Result, bail};

/// The name of a part, and the function that measures it.
type Part = (&'static str, fn() -> Result<()>);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        // Child processes of the parts.
        ["--rewrite-once"] => return rewrite::once(),
        ["--faithful-once", bytes] => return faithful::once(bytes),
        _ => {}
    }
    let parts: [Part; 7] = [
        ("run", run::measure),
        ("list", list::measure),
        ("plan", plan::measure),
        ("stacks", stacks::measure),
        ("removal", removal::measure),
        ("rewrite", rewrite::measure),
        ("faithful", faithful::measure),
    ];
    if let Some(unknown) = arguments
        .iter()
        .find(|name| !parts.iter().any(|(part, _)| part == *name))
    {
        bail!(
            "unknown part {unknown}; expected one of {}",
            parts.map(|(part, _)| part).join(", ")
        );
    }
    for (name, measure) in parts {
        if arguments.is_empty() || arguments.contains(&name) {
            measure()?;
        }
    }
    Ok(())
}
