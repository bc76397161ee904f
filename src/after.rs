//! What became of the containers of a stack: what differs in each, what happened to it, and the wait until it runs.
//!
//! An adoption, a restore and the dependencies of a deployment ask the same questions. They are answered here.

mod compare;
mod difference;
mod wait;

pub use compare::{Compared, Ran, changes, end, is_temporary, told, told_down};
pub use difference::{Creator, Difference};
pub use wait::{Limits, wait_for, wait_until_steady};
