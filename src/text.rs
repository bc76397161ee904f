//! Text for people: escaping for terminals, masking of secrets, counted nouns.
#![deny(clippy::disallowed_methods)]

mod count;
mod encodings;
mod escape;
mod mask;

pub use count::counted;
pub use escape::{excerpt, needs_escaping, printable};
pub use mask::Mask;
