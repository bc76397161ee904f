//! `stacklift` moves a running Compose stack into Portainer. This library is the program; only the rewrites are
//! public, for the tests, the benchmark and the fuzz targets.

mod backoff;
mod cli;
mod engine;
mod failure;
mod migrate;
mod model;
mod plan;
mod portainer;
mod restore;
pub mod rewrite;
mod run;
mod snapshot;
mod stack;
mod text;
mod trace;

pub use cli::main;
