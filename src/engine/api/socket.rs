//! HTTP over a unix socket for `ureq`.
//!
//! Rests on `ureq::unversioned`, hence the exact version in Cargo.toml; nothing else touches it.

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

/// Connects to one socket, whatever the URI says.
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
        let stream = connect(&self.path, limit).map_err(|error| in_time(error, details.timeout))?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

/// As `UnixStream::connect`, but a listener that accepts nobody does not hold it for ever.
fn connect(path: &Path, limit: Option<Duration>) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // On Linux the limit for sending bounds connecting too.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, limit)?;
    net::connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

/// One connection.
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
            .map_err(|error| in_time(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = remaining(timeout.for_read())?;
        self.stream
            .set_read_timeout(timeout.not_zero().map(|limit| *limit))?;
        let amount = loop {
            match self.stream.read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|error| in_time(error, timeout))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // Nothing is due on an idle connection: bytes or an end mean that it is of no more use.
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

fn in_time(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}

/// Resolves nothing: the socket's path is the address.
#[derive(Debug)]
pub(super) struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        // `ureq` wants at least one.
        let mut addresses = self.empty();
        addresses.push(([0, 0, 0, 0], 0).into());
        Ok(addresses)
    }
}
