//! B06 and B13: the Compose program of the host, asked about the text before anything is destroyed.

use std::{
    fs,
    os::unix::fs::chown,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::bench::{Bench, KEY, MARKED, PLAIN, Run};

/// Starts PLAIN by hand, and puts `compose` and `env` on disk.
fn changed(compose: &str, env: Option<&str>) -> Bench {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.stack("web", compose, env);
    bench
}

/// Accepts the text without a service of a test: the program is asked whether it accepts anything.
const VALID: &str = "grep -q busybox docker-compose.yml || exit 0\n";

/// The binary with the Compose plugin of a `docker` that is this script: `$1` is the first argument after `compose`.
fn with_plugin(bench: &Bench, args: &[&str], script: &str) -> Command {
    let text = format!(
        "[ \"$1\" = compose ] || exit 1\nshift\n[ \"$1\" = version ] && {{ echo v2.40.3; exit; }}\n{VALID}{script}"
    );
    let bin = bench.script("docker", &text);
    let mut command = bench.command(args);
    command.env("PATH", bench.path(&[&bin]));
    command
}

const SERVICE: &str = "services:\n  a:\n    image: busybox:1.36\n";

#[test]
fn b06_what_compose_rejects_is_refused() {
    let bench = changed(SERVICE, Some(&format!("TOKEN={MARKED}\n")));
    let script = "value=$(sed -n s/^TOKEN=//p stack.env)\n\
        echo 'time=\"2026-01-01\" level=warning msg=\"obsolete\"' >&2\n\
        echo \"invalid size: '$value'\" >&2\nexit 15\n";
    Run::of(&mut with_plugin(&bench, &["web"], script))
        .code(1)
        .says(&[
            "refusing to migrate: Compose would reject the Compose file",
            "docker compose 2.40.3: invalid size: '***'",
            "--force",
            "this run changed nothing",
        ])
        .hides("obsolete");
    assert!(bench.nothing_was_changed());
    Run::of(&mut with_plugin(&bench, &["web", "--force"], script))
        .code(0)
        .says(&["continuing because of --force", "invalid size"]);
}

#[test]
fn b06_compose_sees_what_portainer_stores_and_nothing_else() {
    let text = format!("{SERVICE}    volumes: [./data:/data]\n");
    let bench = changed(&text, Some("A=1\n"));
    let seen = bench.root().join("seen");
    let script = format!(
        "{{ echo \"$@\"; ls -a; stat -c '%a %n' . *; env; cat docker-compose.yml stack.env; }} > {0}\npwd > {0}.folder\n",
        seen.display()
    );
    let mut command = with_plugin(&bench, &["web"], &script);
    command.env("SHELL_VARIABLE", "of the shell");
    drop(Run::of(&mut command).code(0));
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
    assert!(!shown.contains("of the shell"), "{shown}");
    let folder = fs::read_to_string(seen.with_extension("folder")).expect("a folder");
    assert!(!Path::new(folder.trim()).exists(), "{folder} is left");
}

#[test]
fn b06_without_variables_there_is_no_stack_env() {
    let bench = changed(SERVICE, None);
    let script = "echo \"$@\" $(ls) >&2\nexit 15\n";
    Run::of(&mut with_plugin(&bench, &["web"], script))
        .code(1)
        .says(&["2.40.3: -p web -f docker-compose.yml config --format json docker-compose.yml"]);
}

#[test]
fn b06_the_standalone_program_is_asked_if_there_is_no_plugin() {
    let bench = changed(SERVICE, None);
    let bin = bench.script(
        "docker-compose",
        "[ \"$1\" = version ] && { echo 2.26.1-4; exit; }\ngrep -q busybox docker-compose.yml || exit 0\necho bad >&2\nexit 15\n",
    );
    let mut command = bench.command(&["web", "-v"]);
    command.env("PATH", bench.path(&[&bin]));
    Run::of(&mut command).code(1).says(&[
        "compose: run docker compose version --short -> no Compose program (exit 1)",
        "compose: run docker-compose version --short -> found version 2.26.1-4",
        "docker-compose 2.26.1-4: bad",
    ]);
}

#[test]
fn b06_a_key_that_only_this_compose_rejects_is_a_warning() {
    let bench = changed(&format!("{SERVICE}    deploy: {{later: 1}}\n"), None);
    let script = "echo 'validating x: services.a.deploy Additional property later is not allowed' >&2\nexit 15\n";
    Run::of(&mut with_plugin(&bench, &["web"], script))
        .code(0)
        .says(&["the create fails if Portainer's Compose does not accept the key `later`"]);
}

#[test]
fn b06_an_old_compose_refuses_nothing() {
    let bench = changed(SERVICE, None);
    let bin = bench.script(
        "docker-compose",
        "[ \"$1\" = version ] && { echo 1.29.2; exit; }\ngrep -q busybox docker-compose.yml || exit 0\necho unsupported >&2\nexit 1\n",
    );
    let mut command = bench.command(&["web"]);
    command.env("PATH", bench.path(&[&bin]));
    Run::of(&mut command)
        .code(0)
        .says(&["docker-compose 1.29.2 rejects", "unsupported"]);
}

#[test]
fn b06_a_compose_that_gives_no_answer_is_a_warning() {
    let bench = changed(SERVICE, None);
    let bin = bench.script(
        "docker-compose",
        "[ $1 = version ] && exec echo 2.40.3\necho broken >&2\nexit 1\n",
    );
    let mut command = bench.command(&["web"]);
    command.env("PATH", bench.path(&[&bin]));
    Run::of(&mut command)
        .code(0)
        .says(&["`docker-compose config` rejects every file", "broken"]);
    fs::remove_file(bin.join("docker-compose")).expect("removed");
    for (script, reason) in [
        (
            "kill -9 $$\n",
            "`docker compose config` failed (signal: 9 (SIGKILL))",
        ),
        (
            "exec yes\n",
            "`docker compose config` printed more than 16 MiB",
        ),
    ] {
        bench.started("web", SERVICE, None);
        Run::of(&mut with_plugin(&bench, &["web"], script))
            .code(0)
            .says(&[reason]);
    }
}

#[test]
fn b06_compose_is_not_asked_if_there_is_nothing_to_destroy() {
    let bench = Bench::new();
    bench.stack("web", SERVICE, None);
    Run::of(&mut with_plugin(&bench, &["web", "-v"], "exit 15\n"))
        .code(0)
        .hides("compose: run");
}

#[test]
fn b06_a_rehearsal_asks_compose_too() {
    let bench = Bench::new();
    bench.stack("web", SERVICE, None);
    Run::of(&mut with_plugin(
        &bench,
        &["rehearse", "web"],
        "echo bad >&2\nexit 15\n",
    ))
    .code(1)
    .says(&["docker compose 2.40.3: bad"]);
}

#[test]
fn b13_compose_does_not_get_the_key() {
    let bench = changed(SERVICE, None);
    let seen = bench.root().join("seen");
    let bin = bench.script(
        "docker",
        &format!(
            "env >> {}\n[ \"$2\" = version ] && echo 2.40.3\n",
            seen.display()
        ),
    );
    let mut command = bench.command(&["web"]);
    command.env("PATH", bench.path(&[&bin]));
    drop(Run::of(&mut command).code(0));
    let shown = fs::read_to_string(&seen).expect("it ran");
    assert!(shown.contains("HOSTNAME=portainer"), "{shown}");
    for hidden in [KEY, "STACKMGR_", "STACKLIFT_"] {
        assert!(!shown.contains(hidden), "{shown}");
    }
}

#[test]
fn b13_an_interrupt_removes_the_folder() {
    let bench = changed(SERVICE, Some(&format!("TOKEN={MARKED}\n")));
    let seen = bench.root().join("folder");
    let script = format!(
        "pwd > {0}.new; mv {0}.new {0}; exec sleep 600\n",
        seen.display()
    );
    let mut command = with_plugin(&bench, &["web"], &script);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let until = Instant::now() + Duration::from_mins(5);
    while !seen.exists() && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    let folder = fs::read_to_string(&seen).expect("it ran");
    let folder = Path::new(folder.trim());
    assert!(folder.join("stack.env").exists());
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill").success());
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
        let bin = bench.script("docker-compose", &format!("exec {program} \"$@\"\n"));
        let mut command = bench.command(&["web"]);
        command.env("PATH", bench.path(&[&bin]));
        Run::of(&mut command)
            .code(1)
            .says(&["refusing to migrate: Compose would reject"]);
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
    let mut command = with_plugin(&bench, &["web"], "exit 15\n");
    command.env("TMPDIR", &theirs);
    Run::of(&mut command).code(0).says(&[
        "failed to create a temporary folder",
        "theirs belongs to another user",
    ]);
    assert_eq!(fs::read_dir(&theirs).expect("it").count(), 0);
}
