//! The question before a run interrupts or loses something (B08).

use anyhow::Result;

use crate::failure::Failure;

/// Whether the user agrees that a run interrupts or loses something.
#[derive(Clone, Copy)]
pub enum Consent<'a> {
    /// Yes: with `--yes`. A migration continues without a terminal too.
    Given,
    /// Ask this question; the answer is whether to continue.
    Ask(&'a dyn Fn(&str) -> bool),
    /// There is no terminal to ask on: the run is refused.
    Impossible,
}

/// The user answered no.
#[derive(Debug, thiserror::Error)]
#[error("canceled")]
pub struct Declined;

impl Consent<'_> {
    /// Requires consent to `act`, such as `adopt web`, before its first change. `effect` says in one line what is
    /// interrupted or lost, unless that was just shown. Returns whether it asked: what was read before may then be out of
    /// date.
    pub fn require(self, act: &str, effect: Option<&str>) -> Result<bool> {
        let told = |start: &str, end: &str| {
            effect.map_or_else(String::new, |effect| format!("{start}{effect}{end}"))
        };
        let ask = match self {
            Self::Given => return Ok(false),
            Self::Ask(ask) => ask,
            Self::Impossible => {
                return Err(Failure::new(format!(
                    "refusing to {act} without confirmation{}",
                    told(": ", "")
                ))
                .hint("run the command on a terminal, or pass --yes")
                .into());
            }
        };
        let (first, rest) = act.split_at(1);
        if ask(&format!(
            "{}{rest}?{}",
            first.to_uppercase(),
            told(" ", ".")
        )) {
            return Ok(true);
        }
        Err(Declined.into())
    }
}
