//! The Compose plugin of `docker`. It is run directly: `docker compose` starts it twice, and itself.

use std::{env, fs, path::PathBuf};

use super::docker_config;
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
    let ["docker", "compose"] = command else {
        return None;
    };
    // Otherwise, it is a wrapper.
    let docker = fs::canonicalize(process::find("docker").ok()?).ok()?;
    if !docker.ends_with("docker") || !process::is_native(&docker).ok()? {
        return None;
    }
    let config = PathBuf::from(docker_config()?);
    let settings = fs::read_to_string(config.join("config.json")).unwrap_or_default();
    if settings.contains("cliPluginsExtraDirs") {
        return None;
    }
    let own = config.join("cli-plugins");
    let dirs = [own].into_iter().chain(SYSTEM.map(PathBuf::from));
    process::find_in(env::join_paths(dirs).ok().as_deref(), NAME)
}
