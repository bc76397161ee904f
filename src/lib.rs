//! `stacklift` puts a compose stack that was started by hand under the management of Portainer, with
//! everything that ran before running the same after.
//!
//! The way of the data is observe → plan (data) → apply. Arrows between modules go one way:
//! `cli → {migrate, restore} → {manager, engine, stack, snapshot} → observed`,
//! `migrate → plan → {compose, observed}`, `stack → compose`.
//! Nothing imports [`cli`]. [`compose`] imports nothing of ours. [`rehearsal`] may import [`compose`],
//! never [`manager`] or [`engine`]: it writes its JSON from recorded exchanges, so that a wrong shape
//! in the client cannot agree with itself.

pub mod cli;
pub mod compose;
pub mod engine;
pub mod failure;
pub mod manager;
pub mod mask;
pub mod migrate;
pub mod observed;
pub mod plan;
pub mod rehearsal;
pub mod restore;
pub mod snapshot;
pub mod stack;
pub mod trace;
