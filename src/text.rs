//! Text for people: escaping for terminals and masking of secrets.
#![deny(clippy::disallowed_methods)]

mod escape;
mod mask;

pub use escape::{printable, steers};
pub use mask::Mask;
