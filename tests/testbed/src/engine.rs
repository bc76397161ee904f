//! Engines with other API versions, and Podman.

use rehearsal::{Call, Refused, Request, Response};
use serde_json::{Value, json};

/// The API of the engine.
#[derive(Debug, Clone, Default)]
pub struct EngineApi {
    /// The oldest supported version; empty for that of the rehearsal.
    pub oldest: String,
    /// The newest version; empty for that of the rehearsal.
    pub newest: String,
    /// The version of Podman, if it is Podman's Docker-compatible API.
    pub libpod: Option<String>,
}

impl EngineApi {
    /// The response to a request, which the rehearsal responds to.
    pub(crate) fn respond(
        &self,
        request: &Request,
        respond: impl FnOnce() -> Response,
    ) -> Response {
        let refused = request.version().and_then(|version| self.refused(version));
        let mut response = match refused {
            Some(refused) => Response::json(refused.status, &refused),
            None => respond(),
        };
        if !self.newest.is_empty() {
            response.headers.retain(|(name, _)| *name != "Api-Version");
            response.headers.push(("Api-Version", self.newest.clone()));
            if request.call == Call::EngineVersion {
                let mut version: Value = serde_json::from_slice(&response.body).unwrap_or_default();
                version["ApiVersion"] = json!(self.newest);
                version["MinAPIVersion"] = json!(self.oldest);
                response.body = version.to_string().into_bytes();
            }
        }
        let libpod = self.libpod.clone();
        let libpod = libpod.map(|version| ("Libpod-Api-Version", version));
        response.headers.extend(libpod);
        response
    }

    /// The error response to a version that is not supported.
    fn refused(&self, version: &str) -> Option<Refused> {
        let number = |text: &str| -> Vec<u32> { text.split('.').flat_map(str::parse).collect() };
        let (oldest, newest) = (&self.oldest, &self.newest);
        let problem = if newest.is_empty() {
            return None;
        } else if number(version) < number(oldest) {
            format!(
                "client version {version} is too old. Minimum supported API version is {oldest}, please upgrade your \
                 client to a newer version"
            )
        } else if number(version) > number(newest) {
            format!(
                "client version {version} is too new. Maximum supported API version is {newest}"
            )
        } else {
            return None;
        };
        Some(Refused::new(400, problem))
    }
}
