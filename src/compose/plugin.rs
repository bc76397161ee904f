//! The Compose plugin of `docker`. It is run directly: `docker compose` starts it twice, and itself.

use std::{env, fs, path::PathBuf};

use crate::process;

/// The name of the plugin, which is also that of the standalone program.
const NAME: &str = super::STANDALONE;

/// Where `docker` looks for plugins after its own configuration.
const SYSTEM: [&str; 4] = [
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
];

/// The program that this command runs, if it is `docker compose` and certainly runs a plugin.
pub(super) fn of(command: &[&str]) -> Option<PathBuf> {
    let folders = folders(command)?;
    process::find_in(env::join_paths(folders).ok().as_deref(), NAME)
}

/// Whether the command is `docker compose`, and there is no such plugin where Docker looks for it.
pub(super) fn is_missing(command: &[&str]) -> bool {
    folders(command).is_some() && of(command).is_none()
}

/// Where this command looks for its plugin, if it is `docker compose` and that is certain.
fn folders(command: &[&str]) -> Option<Vec<PathBuf>> {
    let ["docker", "compose"] = command else {
        return None;
    };
    // Otherwise, it is a wrapper.
    let docker = fs::canonicalize(process::find("docker").ok()?).ok()?;
    if !docker.ends_with("docker") || !process::is_native(&docker).ok()? {
        return None;
    }
    let config = process::docker_config()?;
    let settings = fs::read_to_string(config.join("config.json")).unwrap_or_default();
    if settings.contains("cliPluginsExtraDirs") {
        return None;
    }
    let own = config.join("cli-plugins");
    Some([own].into_iter().chain(SYSTEM.map(PathBuf::from)).collect())
}
