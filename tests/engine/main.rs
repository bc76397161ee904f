//! Snapshot and restore with the real binary, of stacks that the real Compose started on a real engine.
//!
//! The tests are ignored by default. `scripts/test` runs them, and starts an engine if none is running.

mod adopt;
mod again;
mod bench;
#[path = "../rehearsal/client.rs"]
#[allow(dead_code, reason = "the replay also compares the body")]
mod client;
mod files;
mod foreign;
mod host;
mod image;
mod images;
mod in_flight;
mod kills;
mod losses;
mod lost;
mod portainer;
mod registry;
#[path = "../rehearsal/run.rs"]
#[allow(dead_code, reason = "the other tests need more of it")]
mod run;
mod sameness;
mod saved;
mod settings;
mod state;
mod states;
