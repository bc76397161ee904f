//! What a Compose file means: YAML with the byte span of every node, services, `.env` files, interpolation and
//! paths, read as `docker compose` reads them.
//!
//! Invariant: pure. Nothing in this crate touches the file system, the environment, processes, the network or the
//! clock; the caller supplies the texts of files and the variables of the shell.
#![deny(clippy::disallowed_methods)]

pub mod document;
pub mod dotenv;
pub mod interpolate;
pub mod path;
pub mod places;
pub mod reader;
pub mod schema;
pub mod services;
