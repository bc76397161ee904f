//! B08: the question on a terminal before something is lost.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
};

use rehearsal::{Call, FaultKind};

use crate::{
    bench::{Bench, PLAIN, Run},
    terminal::{everything_on, terminal},
};

/// A Compose file of one service with an anonymous volume, which a migration loses.
const LOSES: &str = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n";

const QUESTION: &str = "migrate web? [y/N]";

/// Runs the binary with standard input and error on a terminal on which `typed` is typed.
pub fn on_terminal(bench: &Bench, args: &[&str], typed: &str) -> Run {
    on_terminal_after(bench, args, "", || {}, typed)
}

/// The same, but types only after the terminal has shown `shown` and `act` was done.
pub fn on_terminal_after(
    bench: &Bench,
    args: &[&str],
    shown: &str,
    act: impl FnOnce(),
    typed: &str,
) -> Run {
    let (terminal, inner) = terminal(80, 24);
    let mut command: Command = bench.command(args);
    command
        .env("TERM", "dumb")
        .stdin(inner.try_clone().expect("a copy"))
        .stderr(inner)
        .stdout(Stdio::piped());
    let child = command.spawn().expect("the binary runs");
    // Closes this process's copies of the inner end, so that the output ends with the child.
    drop(command);
    let mut keyboard = terminal.try_clone().expect("a copy");
    let mut beginning = String::new();
    while !beginning.contains(shown) {
        let mut bytes = [0; 4096];
        let read = keyboard.read(&mut bytes).expect("the screen");
        beginning.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    act();
    keyboard.write_all(typed.as_bytes()).expect("typed");
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
fn b08_no_is_the_default_and_touches_nothing() {
    for answer in ["\n", "n\n", "no\n", "maybe\n", "\u{4}"] {
        let bench = Bench::new();
        bench.started("web", LOSES, None);
        let before = bench.containers("web");
        on_terminal(&bench, &["web"], answer).code(1).says(&[
            "the stack will lose:",
            QUESTION,
            "canceled",
            "this run changed nothing; only the backup ",
            "--yes",
        ]);
        assert!(bench.nothing_was_changed());
        assert_eq!(bench.containers("web"), before);
        assert_eq!(bench.backups("web").len(), 1, "only the backup was written");
        assert!(!bench.state().exists(), "no snapshot");
    }
}

#[test]
fn b08_the_end_of_the_input_is_a_no_on_its_own_line() {
    let bench = Bench::new();
    bench.started("web", LOSES, None);
    let run = on_terminal(&bench, &["web"], "\x04");
    run.code(1)
        .says(&["migrate web? [y/N] \r\nerror: canceled"]);
}

#[test]
fn b08_yes_continues() {
    for answer in ["y\n", "YES\n"] {
        let bench = Bench::new();
        bench.started("web", LOSES, None);
        on_terminal(&bench, &["web"], answer).code(0).says(&[
            "the stack will lose:",
            QUESTION,
            "created",
        ]);
    }
}

#[test]
fn b08_yes_as_a_flag_and_no_terminal_ask_nothing() {
    for args in [["web", "--yes"], ["web", "-y"]] {
        let bench = Bench::new();
        bench.started("web", LOSES, None);
        on_terminal(&bench, &args, "").code(0).hides("[y/N]");
    }
    let bench = Bench::new();
    bench.started("web", LOSES, None);
    bench
        .run(&["web"])
        .code(0)
        .says(&["the stack will lose:"])
        .hides("[y/N]");
}

#[test]
fn b08_what_the_plan_read_is_read_again_only_after_a_question() {
    for (args, typed, reads) in [(&["web", "--yes"][..], "", 1), (&["web"], "y\n", 2)] {
        let bench = Bench::new();
        bench.record("web", 1);
        bench.started("web", LOSES, None);
        on_terminal(&bench, args, typed).code(0);
        let before_delete = |call| {
            let requests = bench.rehearsal.requests().into_iter();
            let before = requests.take_while(|request| request.call != Call::Delete);
            before.filter(|request| request.call == call).count()
        };
        for call in [Call::Get, Call::File, Call::EngineChanges] {
            assert_eq!(before_delete(call), reads, "{call:?} {args:?}");
        }
        let inspects = before_delete(Call::EngineInspect);
        assert_eq!(inspects, reads, "{args:?}");
    }
}

#[test]
fn b08_nothing_to_destroy_is_not_asked_about() {
    let bench = Bench::new();
    bench.stack("web", LOSES, None);
    on_terminal(&bench, &["web"], "").code(0).hides("[y/N]");
}

#[test]
fn b08_unknown_containers_are_asked_about() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench
        .rehearsal
        .faults()
        .set(Call::EngineList, FaultKind::Garbage);
    on_terminal(&bench, &["web"], "n\n").code(1).says(&[
        "what they will lose cannot be listed",
        QUESTION,
        "canceled",
    ]);
    assert!(bench.nothing_was_changed());
}
