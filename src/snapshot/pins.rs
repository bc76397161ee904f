//! The pinned certificates, beside the snapshots: one line per server, `nas.example:9443 AB:CD:…`.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use anyhow::Result;

use super::folder::{self, check_state_dir, replace};
use crate::{disk, failure::Failure};

const FILE: &str = "pinned-certificates";

/// The fingerprint that is pinned for a server; `None` if there is none. Fails if the file cannot be read: the certificate
/// of a server that was pinned must not be accepted as a new one.
pub fn pin_of(state: &Path, server: &str) -> Result<Option<String>> {
    Ok(read(state)?.remove(server))
}

/// Pins a fingerprint for a server, in place of the one before.
pub fn set_pin(state: &Path, server: &str, fingerprint: &str) -> Result<()> {
    let mut pins = read(state)?;
    pins.insert(server.to_owned(), fingerprint.to_owned());
    let mut text = String::new();
    for (server, fingerprint) in pins {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{server} {fingerprint}");
    }
    replace(state, FILE, text.as_bytes()).map_err(|error| {
        Failure::new(format!(
            "failed to write the pinned certificates to {}",
            state.join(FILE).display()
        ))
        .source(error)
        .hint("make the state directory writable, or set STACKLIFT_STATE_DIR to another directory")
        .into()
    })
}

fn read(state: &Path) -> Result<BTreeMap<String, String>> {
    check_state_dir(state)?;
    let path = state.join(FILE);
    let text = match folder::read(&path) {
        Err(error) if disk::is_absent(&error) => String::new(),
        read => read.map_err(|error| {
            let path = path.display();
            Failure::new(format!("failed to read the pinned certificates in {path}")).source(error)
        })?,
    };
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| match line.split_once(' ') {
            Some((server, fingerprint)) => Ok((server.to_owned(), fingerprint.to_owned())),
            None => Err(Failure::new(format!(
                "cannot parse the pinned certificates in {}: line {}",
                path.display(),
                at + 1
            ))
            .hint(
                "each line contains a server and a SHA-256 fingerprint; fix the line or remove it",
            )
            .into()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_pin_is_kept_for_each_server_in_a_private_file() {
        let home = tempfile::tempdir().expect("a directory");
        let state = home.path().join("state");
        assert_eq!(pin_of(&state, "a:1").expect("none"), None);
        assert!(!state.exists());
        set_pin(&state, "a:1", "AA").expect("written");
        set_pin(&state, "b:1", "BB").expect("written");
        set_pin(&state, "a:1", "CC").expect("written");
        for (server, pin) in [("a:1", Some("CC")), ("b:1", Some("BB")), ("c:1", None)] {
            assert_eq!(pin_of(&state, server).expect("read").as_deref(), pin);
        }
        let mode = |path: &Path| fs::metadata(path).expect("it").permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o700);
        assert_eq!(mode(&state.join(FILE)), 0o600);
        assert_eq!(fs::read_dir(&state).expect("it").count(), 1);
    }
}
