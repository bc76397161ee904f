#![doc = include_str!("../README.md")]
//!
//! # Layers
//!
//! Imports point in one direction: `lib → server → portainer → engine → world`,
//! `server, portainer → apis → request → http`, and `apis → world`. The [`World`] is pure and knows nothing of HTTP;
//! `world.rs` describes its layers.
//!
//! Invariant: the JSON is written from recorded exchanges with a real Portainer and a real engine. The crate shares no
//! type with the client of `stacklift`, so a wrong shape in one of them cannot match a wrong shape in the other.

mod apis;
mod calls;
mod engine;
mod http;
mod peer;
pub mod portainer;
mod request;
pub mod seed;
mod server;
mod tls;
mod world;

pub use self::{
    apis::{Apis, Exchange},
    calls::{Call, Peer},
    http::Response,
    request::Request,
    server::{Options, Rehearsal, respond},
    world::{
        ADMIN, COMPOSE_VERSION, ComposeFiles, Container, Era, Files, Kind, Record, Refused,
        ResourceControl, Status, Variable, Work, World, config_hash, config_of_files,
    },
};
