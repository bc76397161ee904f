//! Text for people: escaping for terminals, masking of secrets, counted nouns.
#![deny(clippy::disallowed_methods)]

mod count;
mod escape;
mod mask;

pub use count::counted;
pub use escape::{printable, steers};
pub use mask::Mask;
