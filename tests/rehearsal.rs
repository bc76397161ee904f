//! Portainer and the engine of the rehearsal, called with raw HTTP, `curl` and the `docker` command.

#[path = "rehearsal/again.rs"]
mod again;
#[path = "rehearsal/apis.rs"]
mod apis;
#[path = "rehearsal/client.rs"]
mod client;
#[path = "rehearsal/commands.rs"]
mod commands;
#[path = "rehearsal/engine.rs"]
mod engine;
#[path = "rehearsal/late.rs"]
mod late;
#[path = "rehearsal/standing.rs"]
mod standing;
