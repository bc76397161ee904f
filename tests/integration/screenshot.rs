//! The picture in README.md shows what the program prints. `scripts/screenshot` makes it again.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use anstyle_svg::{Term, WIN10_CONSOLE};

use crate::screen::{everything_on, terminal};

const PICTURE: &str = "docs/assets/rehearse.svg";
const COMMAND: &[&str] = &["rehearse"];

/// What the program prints on a terminal, with its escape sequences.
fn printed() -> String {
    let (outer, inner) = terminal(80, 40);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stacklift"));
    command
        .args(COMMAND)
        .env_clear()
        .env("TERM", "xterm")
        .env("STACKLIFT_SYSTEM_SETTINGS", "/nonexistent")
        .stdin(Stdio::null())
        .stdout(inner)
        // Without a terminal, it has no spinner.
        .stderr(Stdio::piped());
    let child = command.spawn().expect("the binary runs");
    // Closes the inner end of this process, so that the output ends with the child.
    drop(command);
    let screen = everything_on(outer);
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    screen.replace("\r\n", "\n")
}

/// The command and the lines.
fn shown(printed: &str) -> String {
    let command = format!("$ stacklift {}", COMMAND.join(" "));
    let lines = std::iter::once(command).chain(printed.lines().map(str::to_owned));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_picture_shows_what_the_program_prints() {
    let text = shown(&printed());
    let term = Term::new().palette(WIN10_CONSOLE);
    let picture = term.render_svg(&text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
    if env::var_os("STACKLIFT_BLESS").is_some() {
        fs::write(&path, &picture).expect("written");
    }
    let stored = fs::read_to_string(&path).expect("the picture");
    assert!(
        stored == picture,
        "{PICTURE} is out of date: run scripts/screenshot\n{text}"
    );
}
