//! The output: streams, colors, quiet and verbose, escaping and help.

use std::fs;

use testbed::Call;

use crate::bench::{Bench, PLAIN, refusal};

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let bench = Bench::web(PLAIN);
    // The last run itself succeeds.
    for (args, code) in [
        ("list", 1),
        ("render web", 1),
        ("plan web --output json", 1),
        ("web", 0),
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = bench.command(args);
        let output = command.stdout(full.expect("a device")).output();
        let output = output.expect("the binary runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?} {err}");
        let said = err.contains("the result is incomplete");
        assert_eq!(said, code == 1, "{args:?} {err}");
    }
}

#[test]
fn steps_on_standard_output_warnings_and_errors_on_standard_error() {
    let bench = Bench::with_env(PLAIN, "ODD\n");
    bench.once(Call::Create, refusal());
    let run = bench.run("web").code(1);
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
        ["warning", "warning", "error", "state", "hint", "hint"],
        "{}",
        run.err
    );
}

#[test]
fn quiet_prints_warnings_and_errors_only() {
    let bench = Bench::with_env(PLAIN, "ODD\n");
    let run = bench.run("web -q").code(0);
    run.prints("");
    assert!(run.err.starts_with("warning: "), "{}", run.err);
}

#[test]
fn verbose_shows_each_request_without_header_or_body() {
    let bench = Bench::with_env(PLAIN, "TOKEN=s3cr3t-very-long-value\n");
    let run = bench.run("web -v").code(0);
    for request in [
        "portainer: GET /api/stacks -> 200 in ",
        "engine: GET /v1.41/containers/json",
        "portainer: POST /api/stacks/create/standalone/string?endpointId=1 -> 200 in ",
    ] {
        assert!(run.err.contains(request), "{}", run.err);
    }
    run.hides(&["s3cr3t-very-long-value", "X-API-Key"]);
}

#[test]
fn a_closed_pipe_ends_the_output_and_not_the_run() {
    let bench = Bench::web(PLAIN);
    let mut child = bench.spawn("web");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(err.starts_with("warning: "), "{err}");
    assert!(!err.contains("error: "), "{err}");
    assert_eq!(bench.calls(Call::Create).len(), 1);
}

#[test]
fn the_long_version_names_the_commit_the_target_and_rust() {
    let bench = Bench::new();
    let run = bench.run("--version").code(0);
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
            &["--as", "--file", "--engine", "--keep-variables"],
            &["--quiet", "--rerun-jobs"],
        ),
        ("restore", &["--to", "--base-url"], &["--file"]),
        ("rehearse", &["--era", "--endpoint"], &["--tls", "[env: "]),
    ] {
        let run = bench.succeeds(&["help", command], used);
        assert_eq!(bench.run(&[command, "--help"]).code(0).out, run.out);
        for text in ignored {
            assert!(!run.out.contains(text), "{command}: {text}\n{}", run.out);
        }
    }
}

#[test]
fn the_help_shows_no_value_of_a_variable() {
    let bench = Bench::new();
    let run = bench.run_with("--help", "STACKLIFT_BASE_URL", "https://secret.example");
    run.code(0).hides("secret.example");
}

#[test]
fn verbose_shows_how_the_engine_is_reached_and_why() {
    let bench = Bench::web(PLAIN);
    let socket = bench.socket().display().to_string();
    let api = format!("engine: the Engine API on {socket} (as requested, DOCKER_HOST)");
    let run = bench.run("web -v").code(0);
    assert!(run.err.starts_with(&api), "{run:?}");
    bench.run("restore web --list -v").says(&api);
    let bin = bench.script("docker", "exit 1\n");
    let reason = format!("({}/docker is not a native binary)", bin.display());
    let run = bench.run("web -v --engine auto");
    run.says(&["engine: the command `docker` ", &reason]);
    bench.run("web").hides("engine: ");
}

#[test]
fn a_usage_error_shows_no_password_of_a_url() {
    let bench = Bench::new();
    let url = "https://me:pa55-word@host";
    for flag in ["--base-url ", "--base-url=", "", "--base-ulr="] {
        let run = bench.run(&format!("web {flag}{url}"));
        run.code(2).hides("pa55-word");
    }
    let run = bench.run("web --base-url=me:pa55-word@host");
    run.code(2).hides("pa55-word");
    let run = bench.run_with("web", "STACKLIFT_BASE_URL", url);
    run.code(1).hides("pa55-word");
}
