//! Snapshot and restore with the real binary, of stacks that the real Compose started on a real engine.
//!
//! The tests are ignored by default. `scripts/test` runs them, and starts an engine if none is running.

mod again;
mod bench;
mod big;
mod host;
mod kills;
mod lost;
mod many;
mod sameness;
mod saved;
mod states;
