//! Compose files and `.env` files, text to text.
//!
//! Invariant: pure; nothing here reads, writes or calls, and nothing of ours outside is imported.
//! Whatever has to be known about the disk is asked of the caller.
#![deny(clippy::disallowed_methods)]

pub mod damage;
pub mod document;
pub mod dotenv;
mod env_files;
pub mod faithful;
pub mod interpolate;
pub mod literal;
pub mod loss;
mod path;
mod places;
mod reader;
pub mod services;
