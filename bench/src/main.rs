//! Compares `stacklift` with other ways to do the same, in alternation within one run. Prints medians and ratios.
//!
//! usage: `scripts/bench [PART…]`. The parts are `run`, `list`, `plan` and `stacks`; the default is all.

mod list;
mod place;
mod plan;
mod run;
mod stacks;
mod timing;

use anyhow::{Result, bail};

/// The name of a part, and the function that measures it.
type Part = (&'static str, fn() -> Result<()>);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let parts: [Part; 4] = [
        ("run", run::measure),
        ("list", list::measure),
        ("plan", plan::measure),
        ("stacks", stacks::measure),
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
