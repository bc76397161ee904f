//! Hashes.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

/// The SHA-256 hash of a text, hexadecimal.
pub fn sha256(text: &str) -> String {
    let mut hex = String::new();
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        // Writing to a String does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
