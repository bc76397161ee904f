//! B06, B13 and B46: the Compose program of the host, asked about the text before anything is destroyed.

use std::{
    fs,
    os::unix::fs::chown,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Bench, MARKED, PLAIN, Run};

/// Starts PLAIN by hand, and puts `compose` and `env` on disk.
fn changed(compose: &str, env: Option<&str>) -> Bench {
    let bench = Bench::web(PLAIN);
    bench.stack("web", compose, env);
    bench
}

/// Accepts the text without a service of a test: the program is asked whether it accepts anything.
const VALID: &str = "grep -q busybox docker-compose.yml || exit 0\n";

/// The binary with the Compose plugin of a `docker` that is this script: `$1` is the first argument after `compose`.
fn with_plugin(bench: &Bench, args: &str, script: &str) -> Command {
    let text = format!(
        "[ \"$1\" = compose ] || exit 1\nshift\n[ \"$1\" = version ] && {{ echo v2.40.3; exit; }}\n{VALID}{script}"
    );
    bench.script("docker", &text);
    bench.command(args)
}

const SERVICE: &str = "services:\n  a:\n    image: busybox:1.36\n";

#[test]
fn b13_an_interrupt_removes_the_folder() {
    let bench = changed(SERVICE, Some(&format!("TOKEN={MARKED}\n")));
    let seen = bench.root().join("folder");
    let script = format!(
        "pwd > {0}.new; mv {0}.new {0}; exec sleep 600\n",
        seen.display()
    );
    let mut command = with_plugin(&bench, "web", &script);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    while !seen.exists() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended");
        thread::sleep(Duration::from_millis(10));
    }
    let folder = fs::read_to_string(&seen).expect("it ran");
    let folder = Path::new(folder.trim());
    assert!(folder.join("stack.env").exists());
    kill_process(Pid::from_child(&child), Signal::INT).expect("sent");
    assert_eq!(child.wait().expect("an end").code(), Some(130));
    assert!(!folder.exists(), "{} is left", folder.display());
    assert!(bench.nothing_was_changed());
}

/// Values that only Compose checks.
const BAD: [&str; 12] = [
    "ports: [{target: x}]",
    "ports: ['1:x']",
    "ports: ['99999:1']",
    "ports: ['2-1:1']",
    "mem_limit: lots",
    "shm_size: 1q",
    "stop_grace_period: soon",
    "healthcheck: {test: a, interval: 5}",
    "ulimits: {nofile: {soft: x, hard: 1}}",
    "volumes: [{type: volume, source: x, target: /x}]",
    "depends_on: [b]",
    "cpus: many",
];

#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn b06_the_real_compose_is_asked() {
    let program = std::env::var("STACKLIFT_TEST_COMPOSE").expect("STACKLIFT_TEST_COMPOSE");
    for line in BAD {
        let bench = changed(&format!("{SERVICE}    {line}\n"), None);
        bench.script("docker-compose", &format!("exec {program} \"$@\"\n"));
        bench.fails("web", "refusing to migrate: Compose would reject");
        assert!(bench.nothing_was_changed(), "{line}");
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_no_temporary_directory_of_another_user_is_used() {
    let bench = changed(SERVICE, Some(&format!("TOKEN={MARKED}\n")));
    let theirs = bench.root().join("theirs");
    fs::create_dir(&theirs).expect("a folder");
    chown(&theirs, Some(65_534), None).expect("root");
    let mut command = with_plugin(&bench, "web", "exit 15\n");
    command.env("TMPDIR", &theirs);
    Run::of(&mut command).succeeds(&[
        "failed to create a temporary directory",
        "theirs belongs to another user",
    ]);
    assert_eq!(fs::read_dir(&theirs).expect("it").count(), 0);
}
