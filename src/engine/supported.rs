//! Engines that cannot be used: no API version is shared with them, or they are not Docker Engine.

use std::error::Error;

use crate::failure::Failure;

/// The engine and its client share no API version. Unlike other failures of a listing, this one lasts, so it never
/// counts as "no containers" (C52, B06).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoSharedVersion(String);

impl NoSharedVersion {
    /// Whether `error` has this cause.
    pub fn caused(error: &anyhow::Error) -> bool {
        error.chain().any(<dyn Error>::is::<Self>)
    }

    /// The failure with this cause. `both` names the client and the engine.
    pub(super) fn failure(both: &str, why: String, hint: impl Into<String>) -> anyhow::Error {
        Failure::new(format!("no API version is shared by {both}"))
            .source(Self(why))
            .hint(hint)
            .into()
    }
}

/// Whether a message refuses the API version of a client or of an engine, in the words of Docker Engine and of Docker's
/// clients.
pub(super) fn refuses_version(message: &str) -> bool {
    let has = |words: &str| message.contains(words);
    has("is not supported by this client")
        || (has("client version") && (has("is too old") || has("is too new")))
}

/// The name of Podman in what a container command prints about its version, or about the engine that it reaches.
const PODMAN: &str = "Podman Engine";

/// Whether a container command, or the engine that it reaches, is Podman.
pub(super) fn is_podman(version: &str) -> bool {
    version.contains(PODMAN)
}

/// The refusal of Podman, which `client` reaches.
pub(super) fn podman(client: &str) -> anyhow::Error {
    Failure::new(format!("{client} is Podman, which is not supported"))
        .details(
            "Podman reports another engine ID in each response: stacklift cannot tell whether Portainer uses the same engine\n\
             Podman rejects settings that it reports itself: stacklift cannot recreate its containers after a failure\n\
             Podman refuses to remove containers that others depend on: a migration would stop halfway",
        )
        .hint("use Docker Engine; if Docker Engine runs on this host as well, set DOCKER_HOST to its socket and pass --tool docker")
        .into()
}
