//! Servers beside the rehearsal. A shell script serves each connection, as with inetd.

use std::{
    fs::File,
    io,
    net::TcpListener,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{fs::fchown, net::UnixListener},
    },
    path::Path,
    process::{Command, Stdio},
    thread,
};

use rustix::net::{SocketFlags, accept_with};

/// A listener, and the port that it got.
pub struct Listener {
    socket: File,
    pub port: Option<u16>,
}

impl Listener {
    /// Listens on an address, such as `[::1]:0`, or on a path.
    pub fn at(address: &str) -> io::Result<Self> {
        if address.starts_with('/') {
            let socket = OwnedFd::from(UnixListener::bind(address)?).into();
            return Ok(Self { socket, port: None });
        }
        let listener = TcpListener::bind(address)?;
        let port = Some(listener.local_addr()?.port());
        let socket = OwnedFd::from(listener).into();
        Ok(Self { socket, port })
    }

    /// Gives it to another user.
    pub fn give_to(&self, user: u32) -> io::Result<()> {
        fchown(&self.socket, Some(user), None)
    }

    /// Lets a script in this directory serve each connection, until this process ends: its standard input and output are the
    /// connection, and `$LISTENER` is a path of the listener.
    pub fn serve(self, script: String, folder: &Path) {
        let folder = folder.to_owned();
        thread::spawn(move || {
            let own = self.socket.as_raw_fd();
            let listener = format!("/proc/{}/fd/{own}", std::process::id());
            while let Ok(connection) = accept_with(&self.socket, SocketFlags::CLOEXEC) {
                let (input, output) = (connection.try_clone()?, connection);
                // On a socket, bash would read the user's files, as for a remote shell.
                let mut command = Command::new("bash");
                command
                    .args(["--norc", "-c", &script])
                    .env("LISTENER", &listener)
                    .current_dir(&folder)
                    .stdin(input)
                    .stdout(output)
                    .stderr(Stdio::null());
                let mut child = command.spawn()?;
                thread::spawn(move || child.wait());
            }
            io::Result::Ok(())
        });
    }
}
