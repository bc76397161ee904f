//! Portainer and the engine of the rehearsal, called with raw HTTP, `curl` and the `docker` command.

#[path = "rehearsal/apis.rs"]
mod apis;
#[path = "rehearsal/client.rs"]
#[allow(dead_code, reason = "the replay needs more of the client")]
mod client;
#[path = "rehearsal/commands.rs"]
mod commands;
