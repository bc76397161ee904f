//! `rehearse --serve`.

use std::{fs, path::Path, thread};

use anyhow::{Context as _, Result};
use rehearsal::{Rehearsal, World};

use super::stage::path_text;
use crate::{cli::Console, stack::StackName};

/// Keeps Portainer and the engine running until the process is interrupted.
pub(super) fn serve(
    rehearsal: &Rehearsal,
    root: &Path,
    name: &StackName,
    console: &Console,
) -> Result<()> {
    // The Compose program of the host computes other hashes.
    rehearsal.world(World::label_as_rehearsal);
    rehearsal.create_mounted(root)?;
    let certificate = root.join("certificate.pem");
    fs::write(&certificate, rehearsal.certificate_pem())
        .with_context(|| format!("failed to write {}", certificate.display()))?;
    for (name, value) in [
        ("STACKMGR_API_KEY", rehearsal.key().to_owned()),
        ("STACKLIFT_BASE_URL", rehearsal.base_url()),
        ("STACKLIFT_STACKS_ROOT", path_text(root)?.to_owned()),
        ("STACKLIFT_TLS", path_text(&certificate)?.to_owned()),
        (
            "STACKLIFT_STATE_DIR",
            path_text(&root.join("state"))?.to_owned(),
        ),
        (
            "DOCKER_HOST",
            format!("unix://{}", rehearsal.socket().display()),
        ),
    ] {
        console.line(&format!("export {name}={value}"));
    }
    console.line(&format!(
        "# Running until Ctrl-C. Paste these lines into another shell, then run: stacklift {name}"
    ));
    // The handler of the signal ends the process.
    loop {
        thread::park();
    }
}
