//! `stacklift rehearse`.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use rehearsal::{Options, Rehearsal, World, seed};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    bench::{Bench, KEY, PLAIN, Run, Texts, set_mode, words},
    reading::USER,
};

/// The binary without a home, settings, an engine and a key.
fn bare<'a>(args: impl Texts<'a>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stacklift"));
    command.args(words(args)).env_clear().stdin(Stdio::null());
    command.env("STACKLIFT_SYSTEM_SETTINGS", "/nonexistent");
    command
}

/// Runs a rehearsal with these arguments.
fn rehearse(args: &str) -> Run {
    Run::of(&mut bare(&format!("rehearse {args}")))
}

#[test]
fn each_example_rehearses_in_each_era() {
    for (name, _) in seed::EXAMPLES {
        for era in ["2.23", "2.24", "2.41"] {
            let create = "Portainer POST /api/stacks/create/standalone/string?endpointId=1";
            let created = format!("created stack {name} with Id ");
            rehearse(&format!("-v --as migrate {name} --era {era}")).succeeds(&[
                &created,
                "API requests",
                create,
            ]);
            let start = format!("rehearsing the example stack {name}\n");
            let adopted = format!("\nadopted {name}: ");
            let run = rehearse(&format!("{name} --era {era}"))
                .succeeds(&[&start, &adopted, "\nBoth ways compared\n"])
                .hides(&["Next: stacklift adopt", "API requests", create]);
            // The embedded Compose knows each hash, and what the other versions do to dependents is known (N05).
            run.hides("  ?  ");
        }
    }
}

#[test]
fn a_signal_deletes_the_copies() {
    let bench = Bench::new();
    let dir = bench.stack("mine", PLAIN, Some("TOKEN=s3cr3t-value\n"));
    let root = dir.parent().expect("a root").to_owned();
    // It waits for this program when the signal arrives.
    let compose = bench.script("docker-compose", "exec sleep 600");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let folder = bench.root().join("tmp");
        fs::create_dir(&folder).expect("a folder");
        let mut command = bare("rehearse mine --as=migrate --stacks-root");
        command.arg(&root).env("TMPDIR", &folder);
        command.env("PATH", bench.path(&[&compose]));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut lines = lines.map(|line| line.expect("a line"));
        let is_begun = lines.any(|line| line.contains("rehearsing "));
        assert!(is_begun, "it ended");
        assert_eq!(fs::read_dir(&folder).expect("read").count(), 1);
        kill_process(Pid::from_child(&child), signal).expect("sent");
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        assert_eq!(fs::read_dir(&folder).expect("read").count(), 0);
        fs::remove_dir(&folder).expect("empty");
    }
}

/// Other users of the host do not reach it, even if they know the key (B45).
#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b45_a_rehearsal_serves_only_its_own_user() {
    let options = Options {
        is_private: true,
        ..Options::default()
    };
    let rehearsal = Rehearsal::start(World::new(KEY), &options).expect("a rehearsal");
    let url = rehearsal.base_url();
    let (_, port) = url.rsplit_once(':').expect("a port");
    // What is no TLS is answered with an alert.
    let script =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo no TLS >&3; head -c 1 <&3 | wc -c");
    let answered = |user| {
        let mut shell = Command::new("/bin/bash");
        let output = shell.args(["-c", &script]).uid(user).output();
        String::from_utf8(output.expect("it runs").stdout).expect("UTF-8")
    };
    assert_eq!(answered(0).trim(), "1");
    assert_eq!(answered(54_321).trim(), "0");
}

/// A user who is not root needs no right of root for a rehearsal.
#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_a_rehearsal_of_another_user() {
    let bench = Bench::new();
    set_mode(bench.root(), 0o755);
    let mut command = bench.as_user("rehearse minio", USER);
    command
        .env_clear()
        .env("STACKLIFT_SYSTEM_SETTINGS", "/nonexistent");
    Run::of(&mut command).succeeds("adopted minio");
}
