//! The two rewrites of a Compose file, and what the literal one damages and loses.
//!
//! Invariant: pure, text to text.
#![deny(clippy::disallowed_methods)]

pub mod combine;
pub mod damage;
pub mod diff;
pub mod env;
mod env_files;
pub mod export;
pub mod faithful;
pub mod literal;
pub mod loss;
mod masked;
pub mod portainer;
pub mod repository;

pub use masked::masked;
