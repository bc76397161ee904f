//! The embedded manager and engine over one in-memory world.
//!
//! The manager answers HTTPS on a free port of 127.0.0.1, the engine the Engine API on a unix socket in
//! a private folder; both are fronts of one [`World`]. Nothing here reads the real engine, the real
//! file system (but for that folder) or the settings of the program.
//!
//! Invariant: the JSON is written from recorded exchanges with a real manager, never from the
//! program's own client, so that a wrong shape in one cannot agree with the other.

mod doors;
mod engine;
pub mod faults;
mod http;
mod manager;
pub mod seed;
mod server;
mod tls;
pub mod world;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use tempfile::TempDir;

use self::server::Server;
pub use self::{
    faults::{Call, Faults, Kind, Rule},
    world::{Era, World},
};

/// A running rehearsal; dropping it ends its threads and removes its folder.
pub struct Rehearsal {
    server: Server,
    certificate: String,
    key: String,
    socket: PathBuf,
    // After the server: the socket lies in it.
    _folder: TempDir,
}

/// How a rehearsal is set up; what is in the world is [`World`]'s affair.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which manager is played.
    pub era: Era,
    /// Where the engine's socket folder is made; `None` is the system's folder for temporary files.
    pub folder: Option<PathBuf>,
}

/// Who was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The embedded manager.
    Manager,
    /// The embedded engine.
    Engine,
}

/// A request that was made.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Who was asked.
    pub peer: Peer,
    /// Which call it is.
    pub call: Call,
    /// `GET`, `POST`, …
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The status that was answered; `None` where no answer was given.
    pub status: Option<u16>,
    /// The headers as they came, the key included.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Vec<u8>,
    /// The client's port: the same for all requests of one connection; 0 for the engine.
    pub port: u16,
}

impl Request {
    /// The value of a header, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        http::find_header(&self.headers, name)
    }
}

impl fmt::Display for Request {
    /// `manager DELETE /api/stacks/3?endpointId=1 → 204`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = match self.peer {
            Peer::Manager => "manager",
            Peer::Engine => "engine",
        };
        write!(f, "{peer} {} {} → ", self.method, self.path)?;
        match self.status {
            Some(status) => write!(f, "{status}"),
            None => f.write_str("no answer"),
        }
    }
}

impl fmt::Debug for Request {
    // Without headers and body: they hold the key and values of `.env`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Request({self}, port {}, {} body bytes)",
            self.port,
            self.body.len()
        )
    }
}

impl Rehearsal {
    /// Starts both fronts over `world`.
    pub fn start(mut world: World, options: &Options) -> anyhow::Result<Self> {
        world.era = options.era;
        let mut builder = tempfile::Builder::new();
        builder.prefix("stacklift-rehearsal-");
        let folder = match &options.folder {
            Some(parent) => builder.tempdir_in(parent),
            None => builder.tempdir(),
        }
        .context("failed to make a folder for the rehearsal")?;
        let socket = folder.path().join("engine.sock");
        let (tls, certificate) = tls::self_signed()?;
        let key = world.admin_key().to_owned();
        let server = Server::start(world, tls, &socket)
            .with_context(|| format!("failed to listen on 127.0.0.1 and {}", socket.display()))?;
        Ok(Self {
            server,
            certificate,
            key,
            socket,
            _folder: folder,
        })
    }

    /// The manager's base URL: `https://127.0.0.1:<port>`.
    pub fn base_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.server.port())
    }

    /// The engine's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The key of the manager's administrator.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The manager's certificate, as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate
    }

    /// Looks at the world or changes it; the fronts wait meanwhile.
    pub fn world<R>(&self, look: impl FnOnce(&mut World) -> R) -> R {
        look(&mut self.server.shared.world())
    }

    /// The requests so far, in the order they were answered.
    pub fn requests(&self) -> Vec<Request> {
        self.server.shared.log().clone()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.server.shared.log().clear();
    }

    /// What goes wrong on purpose.
    pub fn faults(&self) -> &Faults {
        &self.server.shared.faults
    }

    /// Brings back who died by [`Kind::Die`] or [`Kind::DieAfter`], on the same address.
    pub fn revive(&self) -> anyhow::Result<()> {
        self.server
            .revive()
            .context("failed to listen on the addresses of before")
    }
}

impl fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rehearsal")
            .field("base_url", &self.base_url())
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}
