//! The question before a run interrupts or loses something (B08).

use anyhow::Result;

use crate::{failure::Failure, text::bulleted};

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

/// The refusal if a plan is no longer what was shown before the answer: what it now says in addition, and what it said.
pub fn changed_before_answer(what: &str, new: Vec<String>, gone: Vec<String>) -> Failure {
    let gone = gone.into_iter().map(|told| format!("no longer: {told}"));
    let told = new.into_iter().chain(gone);
    Failure::new(format!("{what} changed before you answered"))
        .lines(&told.map(|one| bulleted([one])).collect::<Vec<_>>())
        .hint("run the command again: it makes a new plan")
}

impl Consent<'_> {
    /// Requires consent to `act`, such as `adopt web`, before its first change. `effect` says in one line what is
    /// interrupted or lost, unless that was just shown. Returns whether it asked: what was read before may then be out of
    /// date.
    pub fn require(self, act: &str, effect: Option<&str>) -> Result<bool> {
        let ask = match self {
            Self::Given => return Ok(false),
            Self::Ask(ask) => ask,
            Self::Impossible => {
                let why = effect.map_or_else(String::new, |effect| format!(": {effect}"));
                let what = format!("refusing to {act} without confirmation{why}");
                let hint = "run the command on a terminal, or pass --yes";
                return Err(Failure::new(what).hint(hint).into());
            }
        };
        let (first, rest) = act.split_at(1);
        let effect = effect.map_or_else(String::new, |effect| format!(" {effect}."));
        if !ask(&format!("{}{rest}?{effect}", first.to_uppercase())) {
            return Err(Declined.into());
        }
        Ok(true)
    }
}
