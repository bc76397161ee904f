//! Colors, widths and the spinner on a terminal, and plain lines without one.

use std::{io::Read, process::Command, thread, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use testbed::{Call, FaultKind};

use crate::{
    bench::{Bench, Run},
    screen::{everything_on, screen, terminal},
};

/// A service that stays, one that is recreated, and losses of a migration.
const MIXED: &str = "\
services:
  kept:
    image: busybox:1.36
    command: sleep 1000
  cached:
    image: busybox:1.36
    command: sleep 1000
    volumes: [/cache]
";

/// The Compose file cannot be moved.
const BLOCKED: &str = "\
services:
  a:
    image: busybox:1.36
    volumes:
      - {type: bind, source: ./missing, target: /data}
";

/// The bench with a stack that stays, one that changes and one that cannot be moved.
fn stacks() -> Bench {
    let bench = Bench::web(MIXED);
    bench.stack("blocked", BLOCKED, None);
    bench
}

#[test]
fn the_flag_has_precedence_over_the_environment() {
    let bench = stacks();
    for args in [
        "list",
        "plan web",
        "render web --diff --as adopt",
        "--help",
        "help plan",
        "web --absent-flag",
    ] {
        for (flag, variables, is_colored) in [
            ("", &[][..], false),
            ("--color always", &[], true),
            ("--color=always", &["NO_COLOR"], true),
            ("", &["CLICOLOR_FORCE"], true),
            ("--color auto", &["CLICOLOR_FORCE"], true),
            ("--color never", &["CLICOLOR_FORCE"], false),
            ("", &["CLICOLOR_FORCE", "NO_COLOR"], false),
        ] {
            let mut command = bench.command(&format!("{flag} {args}"));
            command.envs(variables.iter().map(|name| (name, "1")));
            let has_color = Run::of(&mut command).all().contains("\x1b[");
            assert_eq!(has_color, is_colored, "{flag} {args} {variables:?}");
        }
    }
    bench.run("list --color sometimes").code(2);
}

#[test]
fn the_environment_decides_on_a_terminal() {
    let bench = stacks();
    for (variables, is_colored) in [
        (&[("TERM", "xterm")][..], true),
        (&[("TERM", "dumb")], false),
        (&[("TERM", "xterm"), ("NO_COLOR", "1")], false),
        (&[("TERM", "xterm"), ("CLICOLOR", "0")], false),
        (&[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")], true),
    ] {
        let mut command = bench.command("list");
        command.envs(variables.iter().copied());
        let screen = screen(&mut command, 80);
        let colors = ["\x1b[1m", "\x1b[3"];
        let has_color = colors.iter().any(|color| screen.contains(color));
        assert_eq!(has_color, is_colored, "{variables:?} {screen:?}");
    }
}

/// A line that is too wide may only contain a command, or one word that is too long.
fn fits(line: &str, columns: usize) -> bool {
    let words = line.split_whitespace().count();
    line.chars().count() <= columns || line.contains("stacklift ") || words < 3
}

#[test]
fn every_line_fits_a_narrow_and_a_wide_terminal() {
    let bench = stacks();
    bench.run("adopt web --wait 2s").code(0);
    for columns in [40, 80, 120] {
        for args in [
            "list",
            "plan web",
            "plan blocked",
            "adopt blocked --yes",
            "adopt web --yes --rerun-jobs",
            "restore web --list",
            "rehearse",
            "web --yes --dry-run",
            "plan web --endpoint somewhere",
        ] {
            let screen = screen(bench.command(args).env("TERM", "dumb"), columns);
            assert!(!screen.is_empty(), "{args:?}");
            for line in screen.lines() {
                assert!(fits(line, columns.into()), "{columns} {args:?}: {line}");
            }
        }
    }
    // Each width is used.
    let lines = |columns| {
        let screen = screen(bench.command("plan blocked").env("TERM", "dumb"), columns);
        screen.lines().count()
    };
    assert!(lines(40) > lines(120));
}

#[test]
fn without_a_terminal_each_line_is_complete_and_plain() {
    let bench = stacks();
    let mut outputs = Vec::new();
    for args in [
        "list",
        "plan web",
        "plan blocked",
        "adopt blocked",
        "render web --as adopt --diff",
        "adopt web --wait 2s",
        "restore web --list",
        "restore web",
        "rehearse",
        "--help",
        "web --absent-flag",
    ] {
        let run = Run::of(bench.command(args).env("TERM", "xterm"));
        for line in run.all().lines() {
            let is_control = |c: char| c.is_control() && c != '\t';
            assert!(!line.chars().any(is_control), "{args:?}: {line:?}");
            // A line that is cut ends so.
            assert!(!line.ends_with('…'), "{args:?}: {line:?}");
        }
        outputs.push(run.out);
    }
    let plan = &outputs[1];
    // One fact in each line, which names what it is about.
    let about = |start: &str| plan.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(about("  ~  cached  "), 1, "{plan}");
    assert_eq!(about("Adopting it "), 1, "{plan}");
}

/// The spinner's line, when it says `text`.
fn shows(screen: &str, text: &str) -> bool {
    screen
        .rsplit('\r')
        .any(|line| line.contains(text) && line.contains("s "))
}

/// Runs the binary on a terminal until `is_there` for the screen, then sends the signal. Its code, and the screen.
fn interrupted(
    mut command: Command,
    is_there: impl Fn(&str) -> bool,
    signal: Signal,
) -> (Option<i32>, String) {
    let (mut outer, inner) = terminal(80, 24);
    command
        .stdin(inner.try_clone().expect("a copy"))
        .stdout(inner.try_clone().expect("a copy"))
        .stderr(inner);
    let mut child = command.env("TERM", "xterm").spawn().expect("it runs");
    drop(command);
    let mut screen = String::new();
    while !is_there(&screen) {
        let mut bytes = [0; 4096];
        let read = outer.read(&mut bytes).expect("the screen");
        screen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    kill_process(Pid::from_child(&child), signal).expect("sent");
    let rest = thread::spawn(move || everything_on(outer));
    let status = child.wait().expect("it ends");
    screen.push_str(&rest.join().expect("the screen"));
    (status.code(), screen)
}

/// What the line that the cursor was on shows, for each line of the screen, if only `\r` and the erasure of a line
/// change it.
fn left(screen: &str) -> Vec<String> {
    let lines = screen.replace("\r\n", "\n");
    let left = lines.split('\n').map(|line| {
        let after = line.rsplit("\x1b[2K").next().unwrap_or_default();
        after.trim_start_matches('\r').to_owned()
    });
    left.collect()
}

#[test]
fn a_signal_removes_the_spinner() {
    let bench = stacks();
    bench.always(Call::List, FaultKind::Hang);
    for (args, text, signal) in [
        (&["plan", "web"][..], "inspecting what exists", Signal::INT),
        (&["list"], "reading Portainer and Docker", Signal::TERM),
        (&["adopt", "web"], "inspecting what exists", Signal::INT),
    ] {
        let command = bench.command(&[&["--color", "never", "--timeout", "10m"], args].concat());
        let (code, screen) = interrupted(command, |screen| shows(screen, text), signal);
        assert_eq!(code, Some(128 + signal.as_raw()), "{screen:?}");
        let left = left(&screen);
        assert!(left.iter().all(|line| !line.contains(text)), "{left:#?}");
        let warning = left.iter().position(|line| line == "warning: interrupted");
        assert!(warning.is_some(), "{left:#?}");
        // The cursor was never hidden.
        assert!(!screen.contains("\x1b[?25l"), "{screen:?}");
    }
    assert!(bench.nothing_was_changed());
}

#[test]
fn the_end_of_a_command_removes_the_spinner() {
    let bench = stacks();
    bench.run("adopt web --yes").code(0);
    let slow = FaultKind::LateSuccess(Duration::from_secs(1));
    bench.always(Call::File, slow);
    let mut command = bench.command("restore web --dry-run --color never");
    let screen = screen(command.env("TERM", "xterm"), 80);
    let text = "reading what will be replaced";
    assert!(shows(&screen, text), "{screen:?}");
    let left = left(&screen).join("\n");
    assert!(!left.contains(text), "{left}");
}

#[test]
fn b08_a_signal_ends_a_question() {
    for args in [&["adopt", "--all"][..], &["adopt", "web"], &["web"]] {
        let bench = stacks();
        let asks = |screen: &str| screen.contains("[y/N] ");
        let (code, screen) = interrupted(bench.asking(args), asks, Signal::INT);
        assert_eq!(code, Some(130), "{screen}");
        assert!(screen.contains(" interrupted"), "{screen}");
        assert!(bench.backups("web").is_empty() && !bench.state().join("snapshots").exists());
        assert!(bench.nothing_was_changed());
    }
}

#[test]
fn an_error_removes_the_spinner_and_a_long_text_does_not_wrap() {
    let bench = stacks();
    let slow = FaultKind::LateFailure(Duration::from_secs(2));
    bench.always(Call::Create, slow);
    let command = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("TERM", "xterm").env("STACKLIFT_TIMEOUT", "1m");
        command
    };
    let screen = screen(&mut command(&["adopt", "web", "--color", "never"]), 30);
    assert!(shows(&screen, "Portainer is deploy…"), "{screen:?}");
    for line in screen.split(['\r', '\n']) {
        let line = line.trim_start_matches("\x1b[2K");
        let is_short = line.trim_end().chars().count() < 28;
        assert!(is_short || !line.contains("deploy…"), "{line:?}");
    }
    let left = left(&screen).join("\n");
    assert!(left.contains("\nerror: "), "{left}");
    assert!(!left.contains("deploy…"), "{left}");
}

#[test]
fn no_spinner_with_quiet_on_a_dumb_terminal_or_without_one() {
    for (quiet, term) in [(true, "xterm"), (false, "dumb")] {
        let bench = stacks();
        let slow = FaultKind::LateSuccess(Duration::from_secs(1));
        bench.always(Call::Create, slow);
        let mut command = bench.command("adopt web --wait 2s");
        command.env("TERM", term).args(quiet.then_some("-q"));
        let screen = screen(&mut command, 80);
        let is_plain = !screen.contains("\x1b[2K") && !screen.contains('\r');
        assert!(is_plain, "{screen:?}");
    }
}
