//! The two rewrites of a Compose file, and what the literal one damages.
//!
//! Invariant: pure, text to text.
#![deny(clippy::disallowed_methods)]

pub mod combine;
pub mod damage;
pub mod diff;
pub mod env;
mod env_files;
pub mod export;
pub mod faithful;
pub mod literal;
mod masked;
pub mod portainer;
pub mod repository;

use std::ops::Range;

pub use masked::masked;

/// The text with another text in place of each range, in the order of the text. A range that begins within the one before
/// it is left out.
fn replaced(
    text: &str,
    changes: impl IntoIterator<Item = (Range<usize>, impl AsRef<str>)>,
) -> String {
    let mut new = String::with_capacity(text.len() + text.len() / 8);
    let mut done = 0;
    for (span, instead) in changes {
        if span.start >= done {
            new.push_str(&text[done..span.start]);
            new.push_str(instead.as_ref());
            done = span.end;
        }
    }
    new + &text[done..]
}
