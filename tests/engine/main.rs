//! Snapshot and restore by the real binary, of stacks that real compose started on a real engine.

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
