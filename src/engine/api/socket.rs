//! HTTP over a unix socket for `ureq`.
//!
//! Uses `ureq::unversioned`, so Cargo.toml pins the exact version of `ureq`.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use ureq::{
    Error,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver},
        transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport},
    },
};

/// Connects to one socket and ignores the URI.
#[derive(Debug)]
pub(super) struct UnixConnector {
    pub(super) path: PathBuf,
}

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<Self::Out>, Error> {
        let limit = details.timeout.not_zero().map(|limit| *limit);
        let stream =
            connect(&self.path, limit).map_err(|error| io_error(error, details.timeout))?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

/// Like `UnixStream::connect`, but with a time limit: a listener that accepts nobody would block it.
fn connect(path: &Path, limit: Option<Duration>) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // On Linux the send timeout also limits connecting.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, limit)?;
    net::connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

/// A connection to the socket.
#[derive(Debug)]
pub(super) struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = remaining(timeout.for_write())?;
        self.stream
            .set_write_timeout(timeout.not_zero().map(|limit| *limit))?;
        let output = &self.buffers.output()[..amount];
        self.stream
            .write_all(output)
            .map_err(|error| io_error(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = remaining(timeout.for_read())?;
        self.stream
            .set_read_timeout(timeout.not_zero().map(|limit| *limit))?;
        let amount = loop {
            match self.stream.read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|error| io_error(error, timeout))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // The engine sends nothing on an idle connection: bytes or an end of file mean that it cannot be reused.
        let idle = self.stream.set_nonblocking(true).is_ok()
            && matches!(self.stream.read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        idle && self.stream.set_nonblocking(false).is_ok()
    }
}

fn remaining(timeout: NextTimeout) -> Result<NextTimeout, Error> {
    if timeout.after.is_zero() {
        return Err(Error::Timeout(timeout.reason));
    }
    Ok(timeout)
}

fn io_error(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}

/// Resolves nothing: the path of the socket is the address.
#[derive(Debug)]
pub(super) struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        // `ureq` requires at least one address.
        let mut addresses = self.empty();
        addresses.push(([0, 0, 0, 0], 0).into());
        Ok(addresses)
    }
}
