//! B06, B13 and B46: the Compose program of the host, asked about the text before anything is destroyed.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::chown,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testbed::{Era, config_hash};

use crate::{
    bench::{Bench, KEY, MARKED, PLAIN, Run},
    plan::{configs, labeled, printed},
};

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

/// The host's Compose, which prints `config` and fails with `script` for what is sent.
fn with_compose(bench: &Bench, version: &str, config: &Value, script: &str) -> OsString {
    let text = format!(
        "[ \"$1\" = version ] && {{ echo {version}; exit; }}\n{VALID}\
         [ \"$PWD\" = '{}' ] || {{ {script}; }}\ncat <<'END'\n{config}\nEND\n",
        bench.dir("web").display()
    );
    bench.script("docker-compose", &text);
    bench.path(&[])
}

#[test]
fn b06_an_adoption_sends_no_text_that_compose_rejects_if_it_accepts_the_files() {
    let bench = Bench::web(PLAIN);
    let config = printed(&json!(configs(&bench, &labeled(&bench))));
    // Without the files that it accepts, each may be a doubt about its version.
    for reason in [
        "invalid size: lots",
        "validating docker-compose.yml: services.a.cgroup must be one of host",
        "services.a Additional property later is not allowed",
    ] {
        let script = format!("echo '{reason}' >&2; exit 15");
        let path = with_compose(&bench, "2.26.1", &config, &script);
        let blocked = format!(
            "Compose would reject the file that is sent\n     - docker-compose 2.26.1: {reason}\n"
        );
        for args in ["plan web", "adopt web"] {
            bench.run_with(args, "PATH", &path).says(&blocked);
        }
        assert!(bench.nothing_was_changed(), "{reason}");
    }
    // It gave no answer.
    let path = with_compose(&bench, "2.26.1", &config, "kill -9 $$");
    let unknown = "Compose cannot read the file that is sent: `docker-compose config` failed (signal: 9 (SIGKILL))";
    bench
        .run_with("plan web", "PATH", &path)
        .code(1)
        .says(unknown);
}

#[test]
fn b06_compose_is_asked_about_the_bind_mounts_that_an_adoption_writes() {
    let bench = Bench::web_of(Era::Async, &format!("{PLAIN}    volumes: ['./a:/a']\n"));
    let source = bench.dir("web").join("a");
    let service = json!({
        "image": "busybox:1.36",
        "volumes": [{"type": "bind", "source": source, "target": "/a", "bind": {}}],
    });
    bench.label("config-hash", &config_hash(&service));
    bench.label("version", "5.6.1");
    let config = printed(&json!({"a": service}));
    let script = "grep -q 'type: bind' docker-compose.yml && { echo bad >&2; exit 15; }";
    let path = with_compose(&bench, "5.6.1", &config, script);
    let run = bench.run_with("adopt web", "PATH", &path).code(1);
    run.says("the file that is sent\n     - docker-compose 5.6.1: bad\n");
    assert!(bench.nothing_was_changed());
}

#[test]
fn b13_compose_sees_what_portainer_stores_and_nothing_else() {
    let text = format!("{SERVICE}    volumes: [./data:/data]\n");
    let bench = changed(&text, Some("A=1\n"));
    let seen = bench.root().join("seen");
    let script = format!(
        "{{ echo \"$@\"; ls -a; stat -c '%a %n' . *; env; cat docker-compose.yml stack.env; }} > {0}\npwd > {0}.folder\n",
        seen.display()
    );
    let mut command = with_plugin(&bench, "web", &script);
    command.env("SHELL_VARIABLE", "of the shell");
    Run::of(&mut command).code(0);
    let shown = fs::read_to_string(&seen).expect("it ran");
    for line in [
        "-p web --env-file stack.env -f docker-compose.yml config --format json",
        "700 .",
        "600 docker-compose.yml",
        "600 stack.env",
        &format!("    volumes: [{}/data:/data]", bench.dir("web").display()),
        "A=1",
        "COMPOSE_EXPERIMENTAL_GIT_REMOTE=false",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    // B13: not even the key, or another setting of this program.
    for hidden in ["of the shell", KEY, "STACKMGR_", "STACKLIFT_"] {
        assert!(!shown.contains(hidden), "{shown}");
    }
    let folder = fs::read_to_string(seen.with_extension("folder")).expect("a folder");
    assert!(!Path::new(folder.trim()).exists(), "{folder} is left");
}

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
