//! The embedded manager and engine, from outside: raw HTTP, `curl`, the `docker` command.

#[path = "rehearsal/again.rs"]
mod again;
#[path = "rehearsal/client.rs"]
mod client;
#[path = "rehearsal/commands.rs"]
mod commands;
#[path = "rehearsal/engine.rs"]
mod engine;
#[path = "rehearsal/fronts.rs"]
mod fronts;
