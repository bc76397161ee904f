//! Compose files and `.env` files, text to text.
//!
//! Invariant: pure; nothing here reads, writes or calls, and nothing of ours outside is imported.
//! Whatever has to be known about the disk is asked of the caller.
#![deny(clippy::disallowed_methods)]

pub mod damage;
pub mod document;
pub mod dotenv;
mod env_files;
pub mod interpolate;
pub mod literal;
pub mod loss;
pub mod services;

/// Bytes that were to be sent as text but are none (C34).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not UTF-8 at byte {offset}")]
pub struct NotUtf8 {
    /// The first byte that belongs to no character, counted from 0.
    pub offset: usize,
}

/// A file's bytes as text, BOM and all.
pub fn utf8(bytes: &[u8]) -> Result<&str, NotUtf8> {
    std::str::from_utf8(bytes).map_err(|error| NotUtf8 {
        offset: error.valid_up_to(),
    })
}
