//! A terminal for a program.

use std::{
    fs::{File, OpenOptions},
    io::Read,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// The outer and the inner end of a new terminal.
pub fn terminal(columns: u16, rows: u16) -> (File, File) {
    let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&outer).expect("access");
    unlockpt(&outer).expect("unlocked");
    let name = ptsname(&outer, Vec::new()).expect("a name");
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&outer, size).expect("a size");
    let inner = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().expect("UTF-8"))
        .expect("the inner end");
    (File::from(outer), inner)
}

/// All output until the last program closes the terminal, which is an error on Linux.
pub fn everything_on(mut terminal: File) -> String {
    let mut bytes = Vec::new();
    let _ = terminal.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
