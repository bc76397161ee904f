//! `stacklift doctor`.

use std::{
    fs,
    net::TcpListener,
    time::{Duration, Instant},
};

use testbed::{Call, Peer};

use crate::{
    bench::{Bench, PLAIN, Run, instead, key_file, set_mode},
    confirming::on_terminal,
};

/// The API key of a standard user.
const OTHER_KEY: &str = "ptr_bench-key-of-bob-77e1";

/// A bench with a Compose program, one stack, and a state directory.
fn healthy() -> Bench {
    let bench = Bench::on_disk(PLAIN);
    fs::create_dir(bench.state()).expect("a directory");
    set_mode(bench.state(), 0o700);
    bench.script("docker-compose", "echo 2.26.1\n");
    bench
}

/// Runs `doctor` with these variables.
fn doctor(bench: &Bench, args: &str, variables: &[(&str, &str)]) -> Run {
    let mut command = bench.command(&format!("doctor {args}"));
    Run::of(command.envs(variables.iter().copied()))
}

/// The same, with a report in JSON.
fn report(bench: &Bench, args: &str) -> Run {
    doctor(bench, &format!("{args} --output json"), &[])
}

/// The output without what differs between machines and runs.
fn shown(bench: &Bench, run: &Run) -> String {
    let text = bench.shown(run);
    let lines = text.lines().map(|line| match line.split_once("; ") {
        Some((start, rest)) if rest.contains("belongs to user ") => format!("{start}; OWNER\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// Status and fact of a subject in JSON, which must conform to the schema.
#[track_caller]
fn checked(run: &Run, subject: &str) -> (String, String) {
    let json = run.report("doctor");
    let checks = json["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["subject"] == subject);
    let found = found.unwrap_or_else(|| panic!("no {subject} in {json:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    let is_bad = ["warning", "failed"].contains(&text("status").as_str());
    assert_eq!(!found["hint"].is_null(), is_bad, "{found:#}");
    (text("status"), text("message"))
}

/// Asserts what the check of a subject found.
#[track_caller]
fn finds(run: &Run, subject: &str, status: &str, fact: &str) {
    let (found, text) = checked(run, subject);
    assert_eq!((&*found, &*text), (status, fact));
}

#[test]
fn everything_is_well() {
    let bench = healthy();
    let run = doctor(&bench, "", &[]).code(0);
    assert_eq!(
        shown(&bench, &run),
        "\
ok       settings         no settings file
ok       Docker           20.10.24 (API 1.41), through the Engine API on SOCKET (as requested, DOCKER_HOST)
ok       Compose          docker-compose 2.26.1
ok       Portainer        2.23.0 at URL
ok       TLS              certificates are not verified; OWNER
ok       API key          from STACKMGR_API_KEY
ok       user             admin, an administrator: only administrators can use a new stack, unless you pass --access
ok       environment      environment 1 is this host
ok       stacks root      ROOT: 1 directory with a Compose file
ok       state directory  HOME/state (mode 0700)

Next: stacklift list
"
    );
    let run = run.says("belongs to user 0 (root): --tls pin is stricter\n");
    assert_eq!(run.err, "");
    assert!(bench.nothing_was_changed());
    let left = fs::read_dir(bench.state()).expect("a directory");
    assert_eq!(left.count(), 0, "it leaves no file behind");
    let quiet = doctor(&bench, "--quiet --tls system", &[]).code(1);
    assert_eq!(quiet.out.lines().count(), 4, "only the failure: {quiet:?}");
}

#[test]
fn nothing_responds() {
    let bench = Bench::new();
    let file = bench.bin().join("docker");
    let run = Run::of(
        bench
            .command("doctor --base-url https://127.0.0.1:1")
            .env_remove("STACKMGR_API_KEY")
            .env("PATH", bench.path_without_compose(&[]))
            .env("DOCKER_HOST", "unix:///no/engine.sock")
            .env("STACKLIFT_STACKS_ROOT", "/no/stacks")
            .env("STACKLIFT_STATE_DIR", file.join("state")),
    )
    .code(1);
    assert_eq!(
        shown(&bench, &run),
        "\
ok       settings         no settings file
failed   Docker           failed to read the version and ID of Docker: cannot reach Docker on /no/engine.sock: No such file or directory
failed   Compose          this host has no Compose program
failed   Portainer        cannot reach Portainer at https://127.0.0.1:1: Connection refused
-        TLS              not checked: Portainer could not be read
failed   API key          there is none
-        user             not checked: it needs a valid API key
-        environment      not checked: it needs a valid API key
failed   stacks root      cannot read /no/stacks: No such file or directory
failed   state directory  HOME/bin/docker is not a directory

Fix this, then run stacklift doctor again:
         Docker           check that Docker is running
         Compose          install Docker Compose (package docker-compose-plugin, or docker-compose-v2 on Ubuntu), or use the container image of stacklift, which has it
         Portainer        check that Portainer is running and that --base-url is its address
         API key          run stacklift config init, or set STACKMGR_API_KEY
         stacks root      run stacklift config init, or set --stacks-root to the directory that contains the stack directories
         state directory  set STACKLIFT_STATE_DIR to a directory that you can write to
"
    );
    assert_eq!(run.err, "");
}

#[test]
fn a_key_that_portainer_rejects() {
    let bench = healthy();
    let wrong = "ptr_not-a-key-at-all-9b2c";
    let run = doctor(&bench, "--tls off", &[("STACKMGR_API_KEY", wrong)]);
    let run = run.code(1).hides(wrong);
    let out = shown(&bench, &run);
    let about_key = "OWNER
failed   API key          Portainer rejected it (401)
-        user             not checked: it needs a valid API key
-        environment      not checked: it needs a valid API key
ok       stacks root";
    assert!(out.contains(about_key), "{out}");
    assert!(out.contains(
        "
Fix this, then run stacklift doctor again:
         API key          create another one in Portainer under My account → Access tokens; then replace the key in STACKMGR_API_KEY, or unset the variable to use the key from your settings
"
    ), "{out}");
    // `config init` helps only if the key is in a file.
    let hint = "the list shows only this host; replace the key in STACKMGR_API_KEY, or unset the variable to use the key from your settings";
    for args in ["list", "list --endpoint auto"] {
        let run = bench
            .run_with(args, "STACKMGR_API_KEY", wrong)
            .succeeds(hint);
        assert_eq!(run.err.matches("warning: ").count(), 1, "{}", run.err);
    }
    let (_folder, file) = key_file();
    fs::write(&file, wrong).expect("a file");
    let hint = "the list shows only this host; run stacklift config init";
    bench.with_key_file("list", &file).succeeds(hint);
}

#[test]
fn without_a_key_portainer_is_asked_for_its_version() {
    let bench = healthy();
    let run = bench.without_key("doctor");
    run.fails("ok       Portainer        2.23.0 at ");
    let keys = bench.requests();
    let keys = keys.iter().filter(|request| request.call == Call::Status);
    assert_eq!(keys.count(), 1);
}

#[test]
fn a_portainer_that_hangs_is_not_waited_for() {
    let bench = healthy();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let started = Instant::now();
    let run = report(&bench, &format!("--base-url {url} --timeout 20m"));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    let run = run.code(1);
    assert_eq!(checked(&run, "Portainer").0, "failed");
    assert_eq!(checked(&run, "TLS").0, "ok");
    let fact = "not checked: Portainer does not answer";
    finds(&run, "environment", "not-checked", fact);
}

#[test]
fn the_key_of_another_user() {
    let bench = healthy();
    bench.world(|world| world.add_user(OTHER_KEY, "bob"));
    let run = doctor(&bench, "--output json", &[("STACKMGR_API_KEY", OTHER_KEY)]);
    let run = run.code(0).hides(OTHER_KEY);
    let fact = "bob is not an administrator: Portainer may not list every stack";
    finds(&run, "user", "warning", fact);
}

#[test]
fn an_environment_that_is_another_engine_names_the_right_one() {
    let bench = healthy();
    bench.world(|world| world.add_endpoint(3, "nas"));
    let other = "environment 3 is another host: Portainer would create the containers there";
    for (id, fact) in [("3", other), ("9", "Portainer has no environment 9")] {
        let run = report(&bench, &format!("--endpoint {id}")).code(1);
        finds(&run, "environment", "failed", fact);
        run.says("environment 1 is this host: pass --endpoint 1, or --endpoint auto");
    }
}

#[test]
fn a_certificate_that_is_not_pinned_yet() {
    let bench = healthy();
    let run = on_terminal(&bench, "doctor --tls pin", "y\n");
    let run = run.fails("stacklift list").hides("trust");
    assert!(run.out.contains("is not pinned yet"), "{run:?}");
    let requests = bench.requests();
    assert!(requests.iter().all(|one| one.peer == Peer::Engine));
    on_terminal(&bench, "list --tls pin", "y\n").code(0);
    let run = report(&bench, "--tls pin").code(0);
    let expected = "Portainer's certificate was verified (--tls pin)";
    assert_eq!(checked(&run, "TLS").1, expected);
}

#[test]
fn a_portainer_that_is_too_old_or_does_not_say() {
    for (body, status) in [
        (r#"{"Version":"2.18.4"}"#, "failed"),
        (r#"{"Version":"2.9-sts"}"#, "failed"),
        (r#"{"Version":"2.19.0"}"#, "ok"),
        (r#"{"Version":"2.39.1-rc1"}"#, "ok"),
        (r#"{"Version":"2"}"#, "warning"),
        (r#"{"Version":"develop"}"#, "warning"),
        ("{}", "warning"),
        ("<html>", "failed"),
    ] {
        let bench = healthy();
        bench.always(Call::Status, instead(200, body));
        let run = report(&bench, "");
        let (found, fact) = checked(&run, "Portainer");
        assert_eq!(found, status, "{body}: {fact}");
        assert_eq!(run.code, i32::from(status == "failed"));
    }
}

#[test]
fn tls_is_off_for_another_host() {
    let bench = healthy();
    // A reserved address: nothing responds.
    let args = "--base-url https://192.0.2.1:9 --timeout 1s --output json";
    let run = doctor(&bench, args, &[("NO_PROXY", "*")]);
    let run = run.code(1);
    assert_eq!(checked(&run, "TLS").0, "warning");
    assert_eq!(run.err, "", "the check is the warning");
    let pem = bench.root().join("portainer.pem");
    fs::write(&pem, bench.certificate_pem()).expect("a file");
    let pem = pem.to_str().expect("UTF-8");
    let run = report(&bench, &format!("--tls {pem}")).code(0);
    let fact = format!("Portainer's certificate was verified (--tls {pem})");
    finds(&run, "TLS", "ok", &fact);
    let run = report(&bench, "--tls /no/file.pem").code(1);
    assert_eq!(checked(&run, "Portainer").0, "failed");
    assert_eq!(checked(&run, "TLS").0, "not-checked");
}

#[test]
fn the_state_directory_of_others() {
    let bench = healthy();
    set_mode(bench.state(), 0o755);
    let run = report(&bench, "").code(1);
    let (status, fact) = checked(&run, "state directory");
    assert_eq!(status, "failed");
    assert!(fact.contains("its mode is 755"), "{fact}");
    fs::remove_dir(bench.state()).expect("a directory");
    let run = report(&bench, "").code(0);
    let (status, fact) = checked(&run, "state directory");
    assert_eq!(status, "ok");
    let end = "does not exist; the first run creates it";
    assert!(fact.ends_with(end), "{fact}");
    assert!(!bench.state().exists());
}

#[test]
fn an_engine_that_only_the_command_reaches() {
    let bench = healthy();
    let run = report(&bench, "--engine command");
    // The `docker` of this bench only fails.
    let run = run.code(1);
    let (status, fact) = checked(&run, "Docker");
    assert_eq!(status, "failed", "{fact}");
    let info = r#"{"ID":"A","ServerVersion":"26.1.5"}"#;
    bench.script("docker", &format!("test \"$1\" = info && echo '{info}'\n"));
    let run = report(&bench, "--engine command");
    let fact = "26.1.5, through the command `docker` (as requested)";
    finds(&run, "Docker", "warning", fact);
    let expected = "environment 1 is another host: Portainer would create the containers there";
    assert_eq!(checked(&run, "environment").1, expected);
}
