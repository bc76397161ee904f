//! `stacklift` moves a running Compose stack into Portainer.
//!
//! This library is the program. Only [`main`] and the rewrites of Compose files are public; the tests, the
//! benchmark and the fuzz targets use the rewrites.

mod adopt;
mod after;
mod backoff;
mod cli;
mod compose;
mod disk;
mod engine;
mod export;
mod failure;
mod finding;
mod inventory;
mod memory;
mod migrate;
mod model;
mod observe;
mod parallel;
mod plan;
mod portainer;
mod process;
mod reconstruct;
mod report;
mod restore;
pub mod rewrite;
mod run;
mod snapshot;
mod stack;
mod text;
mod trace;

pub use cli::main;
/// For the tests against real Compose programs.
pub use compose::{ComposeVersion, Dialect, Project, Read};
