//! What the faithful rewrite asks of the disk and the shell, and how its refusals are shown.

use std::fmt::Write;

use anyhow::Result;

use crate::{
    failure::Failure,
    rewrite::faithful::{self, Blocker, Faithful, Notice},
    stack::{Source, Stack, Surroundings},
};

/// How much of a line is shown on either side of the place that is meant.
const AROUND: usize = 60;

/// Rewrites the stack; the error shows every refusal with its line.
pub(super) fn rewrite(stack: &Stack, source: &Source) -> Result<Faithful> {
    let surroundings = Surroundings::of(stack, source);
    if let Some(error) = surroundings.unreadable {
        return Err(error);
    }
    let (text, env) = (source.compose.as_str(), source.env.as_deref());
    faithful::rewrite(text, env, &surroundings.context())
        .map_err(|refusals| refused(stack, &source.compose, &refusals).into())
}

/// A notice with its place.
pub(super) fn notice(stack: &Stack, notice: &Notice) -> String {
    match notice.line {
        Some(line) => format!("{}:{line}: {}", stack.file(), notice.message),
        None => notice.message.clone(),
    }
}

fn refused(stack: &Stack, text: &str, refusals: &[Blocker]) -> Failure {
    let mut details = String::new();
    for refusal in refusals {
        picture(stack.file(), text, refusal, &mut details);
    }
    let message = match refusals.len() {
        1 => format!("the stack {} cannot be carried over as it is", stack.name()),
        many => format!(
            "the stack {} cannot be carried over as it is, for {many} reasons",
            stack.name()
        ),
    };
    Failure::new(message)
        .details(details)
        .hint("nothing was touched; `stacklift render <STACK>` shows the literal rewrite")
}

/// The place, the line with a mark below it, and what to do.
fn picture(file: &str, text: &str, refusal: &Blocker, out: &mut String) {
    // Writing to a string does not fail.
    let Some(place) = refusal.position else {
        let _ = writeln!(out, "{}\n  = {}", refusal.message, refusal.hint);
        return;
    };
    let (number, column) = (place.line, place.column);
    let _ = writeln!(out, "{file}:{number}:{column}: {}", refusal.message);
    let line = text.split('\n').nth(number - 1).unwrap_or_default();
    let skipped = column.saturating_sub(AROUND);
    let part: String = line
        .trim_start_matches('\u{feff}')
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .skip(skipped)
        .take(2 * AROUND)
        .collect();
    let margin = " ".repeat(number.to_string().len());
    let mark = " ".repeat(column.saturating_sub(skipped + 1));
    let _ = writeln!(out, "{number} | {}", part.trim_end());
    let _ = writeln!(out, "{margin} | {mark}^\n{margin} = {}", refusal.hint);
}
