//! B08: the question before something is interrupted or lost, and what happens without a terminal.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
};

use crate::{
    bench::{Bench, Run, Texts},
    screen::{everything_on, terminal},
};

/// A Compose file of one service with an anonymous volume, which a migration loses.
const LOSES: &str = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n";

const QUESTION: &str = "Migrate web? web-a-1 is down until Portainer has recreated it; 2 losses are listed above. [y/N]";

const CANCELED: &str = "Canceled. Nothing was changed.";

/// Runs the binary with standard input and error on a terminal on which each line of `typed` is typed after a question.
pub fn on_terminal<'a>(bench: &Bench, args: impl Texts<'a>, typed: &str) -> Run {
    on_terminal_after(bench, args, || {}, typed)
}

/// The same, but types the first line only after `act` was done.
pub fn on_terminal_after<'a>(
    bench: &Bench,
    args: impl Texts<'a>,
    act: impl FnOnce(),
    typed: &str,
) -> Run {
    on_terminal_with(bench, args, "", act, typed)
}

/// The same, and types `early` before the binary runs.
fn on_terminal_with<'a>(
    bench: &Bench,
    args: impl Texts<'a>,
    early: &str,
    act: impl FnOnce(),
    typed: &str,
) -> Run {
    let (terminal, inner) = terminal(80, 24);
    let mut keyboard = terminal.try_clone().expect("a copy");
    keyboard.write_all(early.as_bytes()).expect("typed");
    let mut command: Command = bench.asking(args);
    command
        .env("TERM", "dumb")
        .stdin(inner.try_clone().expect("a copy"))
        .stderr(inner)
        .stdout(Stdio::piped());
    let child = command.spawn().expect("the binary runs");
    // Closes this process's copies of the inner end, so that the output ends with the child.
    drop(command);
    let (mut beginning, mut act) = (String::new(), Some(act));
    for line in typed.split_inclusive('\n') {
        let answered = beginning.len();
        let is_asked = |screen: &str| [": ", "] "].iter().any(|end| screen.ends_with(end));
        while !is_asked(&beginning[answered..]) {
            let mut bytes = [0; 4096];
            match keyboard.read(&mut bytes) {
                Ok(read) if read > 0 => {
                    beginning.push_str(&String::from_utf8_lossy(&bytes[..read]));
                }
                // It has ended without a question.
                _ => break,
            }
        }
        if let Some(act) = act.take() {
            act();
        }
        keyboard.write_all(line.as_bytes()).expect("typed");
    }
    let screen = thread::spawn(move || everything_on(terminal));
    let output = child.wait_with_output().expect("it ends");
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        // A line that was broken is one line again.
        err: (beginning + &screen.join().expect("the screen")).replace("\r\n  ", " "),
    }
}

#[test]
fn b41_what_was_typed_before_a_question_is_no_answer() {
    let bench = Bench::web(LOSES);
    let run = on_terminal_with(&bench, "web", "y\n", || {}, "n\n");
    run.fails(&[&*format!("{QUESTION} n\r\n"), CANCELED]);
    assert!(bench.nothing_was_changed());
}
