#![doc = include_str!("../README.md")]
//!
//! # Layers
//!
//! Imports point in one direction: `lib → server → portainer → engine → world`,
//! `server, portainer → shared → faults → request → http`, and `shared → deployer → world`. The [`World`] is
//! pure and knows nothing of HTTP; `world.rs` describes its layers.
//!
//! Invariant: the JSON is written from recorded exchanges with a real Portainer and a real engine. The crate shares no
//! type with the client of `stacklift`, so a wrong shape in one of them cannot match a wrong shape in the other.

mod deployer;
mod engine;
mod faults;
mod http;
mod peer;
mod portainer;
mod request;
pub mod seed;
mod server;
mod shared;
mod tls;
mod world;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Context as _;
use tempfile::TempDir;

pub use self::deployer::Deploy;
use self::{
    deployer::Deployer,
    server::Server,
    shared::{Shared, lock},
};
pub use self::{
    faults::{Call, FaultKind, Faults, Peer, Rule},
    request::Request,
    world::{
        COMPOSE_VERSION, CloneError, ComposeFiles, Container, Era, Fetch, Files, GitClone,
        GitRepository, GitSettings, Health, Record, ResourceControl, Status, Variable, World,
        config_hash, config_of_files,
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
    /// Deploys onto a real engine instead of the world.
    pub compose: Option<Arc<dyn Deploy>>,
    /// Whether Portainer only serves the user of this process.
    pub is_private: bool,
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
        let deployer = options.compose.clone().map(|compose| {
            let deploying = Mutex::default();
            Arc::new(Deployer { compose, deploying })
        });
        let mut shared = Shared::new(world, certificate, deployer);
        shared.is_private = options.is_private;
        let server = Server::start(shared, socket)
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
        lock(&self.server.shared.certificate).pem.clone()
    }

    /// Replaces Portainer's certificate for new connections.
    ///
    /// # Errors
    /// If the certificate cannot be created.
    pub fn renew_certificate(&self) -> anyhow::Result<()> {
        *lock(&self.server.shared.certificate) = tls::Certificate::new()?;
        Ok(())
    }

    /// Reads or changes the world. Requests wait until `access` returns.
    pub fn world<R>(&self, access: impl FnOnce(&mut World) -> R) -> R {
        access(&mut self.server.shared.world())
    }

    /// Changes the world during the next request of `call`: after the request has taken effect, and before its response.
    pub fn world_with(&self, call: Call, change: impl FnOnce(&mut World) + Send + 'static) {
        self.server.shared.change_with(call, Box::new(change));
    }

    /// Moves the clock of the world forward, so that late requests and deployments end.
    pub fn skip(&self, time: Duration) {
        self.server.shared.skip(time);
    }

    /// The requests so far, in the order of their responses.
    pub fn requests(&self) -> Vec<Request> {
        self.server.shared.log().clone()
    }

    /// Clears the list of requests.
    pub fn forget_requests(&self) {
        self.server.shared.log().clear();
    }

    /// The faults to inject.
    pub fn faults(&self) -> &Faults {
        &self.server.shared.faults
    }

    /// Restarts an API that [`FaultKind::Die`] or [`FaultKind::DieAfter`] ended, on the same address.
    ///
    /// # Errors
    /// If the address cannot be bound again.
    pub fn revive(&self) -> anyhow::Result<()> {
        self.server
            .revive()
            .context("failed to listen on the same addresses again")
    }
}

/// A new certificate like Portainer's, and its private key in PKCS #8, both in DER.
///
/// # Errors
/// If they cannot be created.
pub fn self_signed() -> anyhow::Result<(Vec<u8>, Vec<u8>)> {
    let (certificate, pair) = tls::self_signed()?;
    Ok((certificate.der().to_vec(), pair.serialize_der()))
}
