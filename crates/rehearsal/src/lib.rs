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

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use tempfile::TempDir;

use self::{apis::lock, server::Server};
pub use self::{
    apis::{Apis, Exchange},
    calls::{Call, Peer},
    http::Response,
    request::Request,
    server::respond,
    world::{
        COMPOSE_VERSION, ComposeFiles, Container, Era, Files, Health, Kind, Record, Refused,
        ResourceControl, Status, Variable, Work, World, config_hash, config_of_files,
    },
};

/// A running rehearsal. Dropping it ends its threads and removes its directory.
pub struct Rehearsal {
    server: Server,
    key: String,
    // Declared after the server, so that the socket is removed last.
    _folder: TempDir,
}

/// Options of a rehearsal.
#[derive(Clone, Default)]
pub struct Options {
    /// The generation of Portainer to simulate.
    pub era: Era,
    /// Where to create the directory of the engine's socket; the default is the system's temporary directory.
    pub folder: Option<PathBuf>,
    /// The port of Portainer; 0 is any free one.
    pub port: u16,
    /// Whether Portainer only serves the user of this process.
    pub is_private: bool,
    /// How requests are answered, if not as the real ones do.
    pub exchange: Option<Exchange>,
}

impl Rehearsal {
    /// Starts both APIs over `world`.
    ///
    /// # Errors
    /// If the directory, the certificate or a listener cannot be created.
    pub fn start(mut world: World, options: &Options) -> anyhow::Result<Self> {
        world.era = options.era;
        let mut builder = tempfile::Builder::new();
        builder.prefix("stacklift-rehearsal-");
        let folder = match &options.folder {
            Some(parent) => builder.tempdir_in(parent),
            None => builder.tempdir(),
        }
        .context("failed to create a directory for the rehearsal")?;
        let socket = folder.path().join("engine.sock");
        let certificate = tls::Certificate::new()?;
        let key = world.admin_key().to_owned();
        let exchange = options.exchange.clone();
        let exchange = exchange.unwrap_or_else(|| Arc::new(server::answer));
        let apis = Apis::new(world, certificate, options.is_private, exchange);
        let server = Server::start(apis, options.port, socket)
            .context("failed to listen on 127.0.0.1 and on the socket of the engine")?;
        Ok(Self {
            server,
            key,
            _folder: folder,
        })
    }

    /// Portainer's base URL: `https://127.0.0.1:<port>`.
    pub fn base_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.server.port)
    }

    /// The path of the engine's unix socket.
    pub fn socket(&self) -> &Path {
        &self.server.socket
    }

    /// The API key of Portainer's administrator.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Portainer's certificate in PEM.
    pub fn certificate_pem(&self) -> String {
        lock(&self.server.apis.certificate).pem.clone()
    }

    /// Replaces Portainer's certificate for new connections.
    ///
    /// # Errors
    /// If the certificate cannot be created.
    pub fn renew_certificate(&self) -> anyhow::Result<()> {
        *lock(&self.server.apis.certificate) = tls::Certificate::new()?;
        Ok(())
    }

    /// Both APIs.
    pub fn apis(&self) -> &Arc<Apis> {
        &self.server.apis
    }

    /// Reads or changes the world. Requests wait until `access` returns.
    pub fn world<R>(&self, access: impl FnOnce(&mut World) -> R) -> R {
        access(&mut self.server.apis.world())
    }

    /// The requests so far, in the order of their responses.
    pub fn requests(&self) -> Vec<Request> {
        self.server.apis.log().clone()
    }

    /// Restarts an API that [`Apis::die`] ended, on the same address.
    ///
    /// # Errors
    /// If the address cannot be bound again.
    pub fn revive(&self) -> anyhow::Result<()> {
        self.server
            .revive()
            .context("failed to listen on the same addresses again")
    }
}
