//! B08: the question before something is interrupted or lost, and what happens without a terminal.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
};

use testbed::{Call, FaultKind};

use crate::{
    bench::{Bench, CHANGED, PLAIN, Run, Texts, refusal},
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

#[test]
fn b08_no_is_the_default_and_touches_nothing() {
    let bench = Bench::web(LOSES);
    for answer in ["\n", "n\n", "no\n", "maybe\n", "\u{4}"] {
        let run = on_terminal(&bench, "web", answer).code(1).hides("error:");
        run.says(&["the stack will lose:", QUESTION, CANCELED]);
        assert!(bench.nothing_was_changed());
        assert!(bench.backups("web").is_empty(), "no backup");
        assert!(!bench.state().exists(), "no snapshot");
    }
    // The end of the input has a line of its own.
    let end = on_terminal(&bench, "web", "\u{4}");
    end.says(&format!("[y/N] \r\n{CANCELED}\r\n"));
    for answer in ["y\n", "YES\n"] {
        let bench = Bench::web(LOSES);
        on_terminal(&bench, "web", answer).succeeds(&[QUESTION, "created"]);
    }
}

#[test]
fn b08_yes_as_a_flag_no_terminal_and_nothing_to_destroy_ask_nothing() {
    for args in ["web --yes", "web -y"] {
        let bench = Bench::web(LOSES);
        on_terminal(&bench, args, "").code(0).hides("[y/N]");
    }
    let bench = Bench::web(LOSES);
    bench.succeeds("web", "the stack will lose:").hides("[y/N]");
    bench.stack("new", LOSES, None);
    on_terminal(&bench, "new", "").code(0).hides("[y/N]");
}

#[test]
fn b08_what_the_plan_read_is_read_again_only_after_a_question() {
    for (args, typed, reads) in [(&["web", "--yes"][..], "", 1), (&["web"], "y\n", 2)] {
        let bench = Bench::new();
        bench.record("web", 1);
        bench.started("web", LOSES, None);
        on_terminal(&bench, args, typed).code(0);
        let before_delete = |call| {
            let requests = bench.requests().into_iter();
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
fn b08_unknown_containers_are_asked_about() {
    let bench = Bench::web(PLAIN);
    bench.always(Call::EngineList, FaultKind::Garbage);
    let question = format!("Migrate web? web's containers are unknown. [y/N] n\r\n{CANCELED}");
    on_terminal(&bench, "web", "n\n").fails(&["what they will lose cannot be listed", &question]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn b08_what_is_only_interrupted_is_asked_about() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", PLAIN, None);
    let question = "Migrate web? Portainer stack 1 is deleted; web-a-1 is down until Portainer has recreated it. [y/N]";
    on_terminal(&bench, "web", "n\n").fails(&[question, CANCELED]);
    assert!(bench.nothing_was_changed());
    // Without a terminal, a migration continues as the contract says.
    Run::of(&mut bench.asking("web")).code(0);
    let told = "a is removed and recreated (down for up to 10 s, plus its start)";
    let question = "Roll back web? [y/N]";
    bench.forget_requests();
    let ids = bench.containers("web");
    on_terminal(&bench, "restore web", "n\n").fails(&[question, CANCELED]);
    assert!(bench.nothing_was_changed());
    assert_eq!(bench.containers("web"), ids);
    let restored = "restored web: 1 container matches the snapshot; a was down for ";
    on_terminal(&bench, "restore web", "y\n").succeeds(&[told, question, restored]);
    // Everything matches the snapshot.
    let run = on_terminal(&bench, "restore web", "").code(0);
    run.hides("[y/N]");
}

#[test]
fn b08_without_a_terminal_an_adoption_and_a_restore_need_yes() {
    let bench = Bench::web(PLAIN);
    bench.stack("web", CHANGED, None);
    let refused = |args: &str, what: &str| {
        bench.forget_requests();
        Run::of(&mut bench.asking(args)).fails(&format!("error: refusing to {what}Nothing was changed.\nhint: run the command on a terminal, or pass --yes\n"));
        assert!(bench.nothing_was_changed(), "{args:?}");
    };
    let adopt = "adopt web without confirmation: ";
    let effect = "a is down for up to 10 s, plus its start\n";
    refused("adopt web", &format!("{adopt}{effect}"));
    refused("adopt --all", &format!("{adopt}{effect}"));
    assert!(!bench.state().join("snapshots").exists(), "no snapshot");
    Run::of(&mut bench.asking("adopt web --yes --wait 2s")).code(0);
    refused("restore web", "roll back web without confirmation\n");
    Run::of(&mut bench.asking("restore web -y")).code(0);
}

#[test]
fn b08_an_adoption_that_keeps_every_container_asks_nothing() {
    for args in [&["adopt", "web", "--wait", "2s"][..], &["adopt", "--all"]] {
        let bench = Bench::web(PLAIN);
        let run = Run::of(&mut bench.asking(args)).code(0);
        run.says("  =  a  keeps running").hides("[y/N]");
    }
}

#[test]
fn a_stopped_stack_is_no_job_before_and_after_its_restore() {
    let bench = Bench::web(PLAIN);
    bench.world(|world| world.stop_by_hand("web-a-1"));
    bench.run("adopt web").code(0);
    bench.succeeds("restore web", "  web was not running then, and will not run after the restore\n  the Portainer stack is deleted; a is removed and recreated, and stays stopped\n");
    assert_eq!(bench.container("web-a-1").state, "created");
    let run = bench.succeeds("adopt web", "adopted web: a was started\n");
    assert_eq!(run.err, "");
    bench.run("restore web").code(0);
    bench.world(|world| world.containers.clear());
    on_terminal(&bench, "restore web", "n\n").fails("Roll back web? [y/N]");
    on_terminal(&bench, "restore web", "y\n")
        .succeeds("restored web: 1 container matches the snapshot; nothing runs");
}

#[test]
fn b08_what_an_earlier_run_left_is_restored_after_a_question() {
    let bench = Bench::web(PLAIN);
    bench.once(Call::Create, refusal());
    bench.run("web").code(1);
    assert!(bench.containers("web").is_empty());
    bench.stack("web", CHANGED, None);
    bench.forget_requests();
    let question = "Roll back web first? [y/N]";
    on_terminal(&bench, "adopt web", "n\n").fails(&[question, CANCELED]);
    Run::of(&mut bench.asking("adopt web"))
        .fails("refusing to roll back web first without confirmation");
    assert!(bench.nothing_was_changed());
    // The stack was restored: the second answer is not that of nothing.
    let canceled = "Canceled.\r\nstate: this run restored what";
    on_terminal(&bench, "adopt web", "y\nn\n")
        .fails(&[question, "Adopt web? ", canceled])
        .hides("Nothing was changed");
    assert_eq!(bench.containers("web").len(), 1);
}
