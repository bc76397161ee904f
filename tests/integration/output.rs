//! The output: streams, colors, quiet and verbose, escaping and help.

use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
};

use rehearsal::{Call, FaultKind};

use crate::bench::{Bench, PLAIN, Run};

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    for args in [
        &["list"][..],
        &["render", "web"],
        &["plan", "web", "--output", "json"],
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("a device");
        let mut command = bench.command(args);
        let output = command.stdout(full).output().expect("the binary runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?} {err}");
        assert!(err.contains("the result is incomplete"), "{args:?} {err}");
    }
    // The run itself succeeded.
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let output = bench.command(&["web"]).stdout(full).output();
    assert_eq!(output.expect("the binary runs").status.code(), Some(0));
}

#[test]
fn steps_on_standard_output_warnings_and_errors_on_standard_error() {
    let bench = Bench::new();
    bench.started("web", PLAIN, Some("ODD\n"));
    bench
        .rehearsal
        .faults()
        .once(Call::Create, FaultKind::Status(500, "{}".to_owned()));
    let run = bench.run(&["web"]).code(1);
    for line in run.out.lines() {
        let verb = line.split_whitespace().next();
        assert!(
            matches!(verb, Some("migrate" | "backup" | "snapshot" | "remove")),
            "{line}"
        );
    }
    let starts: Vec<&str> = run
        .err
        .lines()
        .filter_map(|line| line.split_once(": ").map(|(start, _)| start))
        .filter(|start| !start.starts_with(' '))
        .collect();
    assert_eq!(
        starts,
        [
            "warning", "warning", "warning", "error", "state", "hint", "hint"
        ],
        "{}",
        run.err
    );
}

#[test]
fn color_on_a_terminal_only_and_not_with_no_color() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    bench.run(&["web"]).code(0).hides("\x1b[");
    // `script` of util-linux runs a command in a terminal.
    let on_a_terminal = |no_color: Option<&str>| {
        let inner = bench.command(&["web"]);
        let program = inner.get_program().to_owned();
        let mut command = Command::new("script");
        command
            .args(["-qec"])
            .arg(format!("{} web --yes", program.display()))
            .arg("/dev/null");
        command.env_clear().stdin(Stdio::null());
        for (name, value) in inner.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("TERM", "xterm");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        Run::of(&mut command).code(0)
    };
    on_a_terminal(None).says(&["\x1b["]);
    let plain = on_a_terminal(Some("1"));
    assert!(!plain.out.contains("\x1b[3"), "{plain:?}");
}

#[test]
fn quiet_prints_warnings_and_errors_only() {
    let bench = Bench::new();
    bench.started("web", PLAIN, Some("ODD\n"));
    let run = bench.run(&["web", "-q"]).code(0);
    assert_eq!(run.out, "");
    assert!(run.err.starts_with("warning: "), "{}", run.err);
}

#[test]
fn verbose_shows_each_request_without_header_or_body() {
    let bench = Bench::new();
    bench.started("web", PLAIN, Some("TOKEN=s3cr3t-very-long-value\n"));
    let run = bench.run(&["web", "-v"]).code(0);
    for request in [
        "portainer: GET /api/stacks -> 200 in ",
        "engine: GET /v1.41/containers/json",
        "portainer: POST /api/stacks/create/standalone/string?endpointId=1 -> 200 in ",
    ] {
        assert!(run.err.contains(request), "{}", run.err);
    }
    run.hides("s3cr3t-very-long-value").hides("X-API-Key");
}

#[test]
fn a_closed_pipe_ends_the_output_and_not_the_run() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let mut child = bench
        .command(&["web"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let mut err = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut err).expect("text");
    assert!(child.wait().expect("it ends").success(), "{err}");
    assert!(err.starts_with("warning: "), "{err}");
    assert!(!err.contains("error: "), "{err}");
    assert_eq!(bench.calls(Call::Create).len(), 1);
}

#[test]
fn control_characters_from_outside_are_escaped() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.rehearsal.world(|world| {
        let id = world.project("web")[0].id.clone();
        let container = world.containers.get_mut(&id).expect("it");
        container.image = "evil\x1b]0;title\x07".to_owned();
        container.name = "a\rb".to_owned();
    });
    let kind = FaultKind::Status(500, "{\"message\":\"\\u001b[2Jgone\"}".to_owned());
    bench.rehearsal.faults().set(Call::EngineRemove, kind);
    bench
        .run(&["web"])
        .code(1)
        .says(&["a\\rb"])
        .hides("\x1b")
        .hides("\r");
}

#[test]
fn the_help_names_every_command_and_setting() {
    let bench = Bench::new();
    bench.run(&["--help"]).code(0).says(&[
        "migrate",
        "render",
        "rehearse",
        "--base-url",
        "--stacks-root",
        "--endpoint",
        "--tool",
        "--engine",
        "--tls",
        "--timeout",
        "--dir",
        "--file",
        "--force",
        "STACKMGR_API_KEY",
        "STACKMGR_API_KEY_FILE",
        "STACKLIFT_STATE_DIR",
        "NO_COLOR",
        "[env: STACKLIFT_BASE_URL]",
        "[default: https://localhost:9443]",
        "Exit codes",
    ]);
    let long = bench.run(&["--help"]).out;
    assert_eq!(bench.run(&["help"]).code(0).out, long);
    let version = bench.run(&["-V"]).code(0);
    assert_eq!(
        version.out,
        format!("stacklift {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn the_long_version_names_the_commit_the_target_and_rust() {
    let bench = Bench::new();
    let run = bench.run(&["--version"]).code(0);
    let lines: Vec<&str> = run.out.lines().collect();
    let [version, commit, date, target, rust] = lines[..] else {
        panic!("{lines:#?}");
    };
    assert_eq!(version, format!("stacklift {}", env!("CARGO_PKG_VERSION")));
    let commit = commit.strip_prefix("commit: ").expect(commit);
    let hash = commit.trim_end_matches("-dirty");
    let is_hash = hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_hash || commit == "unknown", "{commit}");
    let date = date.strip_prefix("commit date: ").expect(date);
    assert!(date.len() == 10 || date == "unknown", "{date}");
    assert!(target.starts_with(&format!("target: {}-", std::env::consts::ARCH)));
    assert!(rust.starts_with("rust: rustc 1."), "{rust}");
}

#[test]
fn the_help_of_a_command_shows_the_flags_that_it_uses() {
    let bench = Bench::new();
    for (command, used, ignored) in [
        ("migrate", &["--base-url", "--file", "--tls"][..], &[][..]),
        (
            "render",
            &["--as", "--file", "--engine", "--keep-anonymous"],
            &["--quiet", "--rerun-jobs"],
        ),
        ("restore", &["--to", "--base-url"], &["--file"]),
        ("rehearse", &["--fault", "--endpoint"], &["--tls", "[env: "]),
    ] {
        let run = bench.run(&["help", command]).code(0).says(used);
        assert_eq!(bench.run(&[command, "--help"]).code(0).out, run.out);
        for text in ignored {
            assert!(!run.out.contains(text), "{command}: {text}\n{}", run.out);
        }
    }
}

#[test]
fn the_help_shows_no_value_of_a_variable() {
    let bench = Bench::new();
    let mut command = bench.command(&["--help"]);
    command.env("STACKLIFT_BASE_URL", "https://secret.example");
    Run::of(&mut command).code(0).hides("secret.example");
}

#[test]
fn verbose_shows_how_the_engine_is_reached_and_why() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let socket = bench.rehearsal.socket().display().to_string();
    let api = format!("engine: the Engine API on {socket} (as requested, DOCKER_HOST)");
    let run = bench.run(&["web", "-v"]).code(0);
    assert!(run.err.starts_with(&api), "{run:?}");
    drop(bench.run(&["restore", "web", "--list", "-v"]).says(&[&api]));
    let bin = bench.script("docker", "exit 1\n");
    let mut command = bench.command(&["web", "-v", "--engine", "auto"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let reason = format!("({}/docker is not a native binary)", bin.display());
    drop(Run::of(&mut command).says(&["engine: the command `docker` ", &reason]));
    bench.run(&["web"]).hides("engine: ");
}

#[test]
fn a_usage_error_shows_no_password_of_a_url() {
    let bench = Bench::new();
    for args in [
        &["web", "--base-url", "https://me:pa55-word@host"][..],
        &["web", "--base-url=me:pa55-word@host"],
        &["web", "https://me:pa55-word@host"],
        &["web", "--base-ulr=https://me:pa55-word@host"],
    ] {
        let run = bench.run(args).code(2);
        drop(run.hides("pa55-word"));
    }
    let mut command = bench.command(&["web"]);
    command.env("STACKLIFT_BASE_URL", "https://me:pa55-word@host");
    drop(Run::of(&mut command).code(1).hides("pa55-word"));
}
