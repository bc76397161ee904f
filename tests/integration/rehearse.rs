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
    writing::USER,
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
fn an_adoption_is_compared_with_a_migration_of_the_same_stack() {
    for era in ["2.23", "2.24", "2.41"] {
        let run = rehearse(&format!("--era {era}")).succeeds("\n  =  db           keeps running\n  ~  calibre-web  recreated: the anonymous volume at /cache gets a name; its data stays\n\nAdopting it loses nothing.");
        let expected = "
adopted books-db: db kept running, calibre-web was recreated

Both ways compared
              adopt      migrate
kept running  1          0
recreated     1          2
losses        0          5
result        succeeded  succeeded

Next: stacklift list
";
        assert!(run.out.ends_with(expected), "{run:#?}");
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

#[test]
fn env_files_outside_the_directory_and_override_files_are_copied() {
    let bench = Bench::new();
    let outside = bench.root().join("elsewhere.env");
    let text = format!(
        "services:\n  a:\n    image: x\n    env_file: [./app.env, ../shared/more.env, {}, ~/home.env]\n",
        outside.display()
    );
    let dir = bench.stack("mine", &text, None);
    fs::create_dir(bench.root().join("shared")).expect("a folder");
    fs::write(dir.join("app.env"), "INSIDE=1\n").expect("a file");
    fs::write(bench.root().join("shared/more.env"), "SHARED=1\n").expect("a file");
    fs::write(&outside, "OUTSIDE=1\n").expect("a file");
    fs::write(bench.root().join("home.env"), "AT_HOME=1\n").expect("a file");
    let over = "services:\n  a:\n    ports: ['80:80']\n";
    fs::write(dir.join("docker-compose.override.yml"), over).expect("a file");
    let variables = ["INSIDE", "SHARED", "OUTSIDE", "AT_HOME"];
    let root = bench.root();
    let mut flag = bare("rehearse mine --as migrate --stacks-root");
    flag.arg(root);
    let mut dir_flag = bare("rehearse other --as migrate --dir");
    dir_flag.arg(&dir);
    let mut variable = bare("rehearse mine --as migrate");
    variable.env("STACKLIFT_STACKS_ROOT", root);
    for mut command in [flag, dir_flag, variable] {
        command.env("HOME", root);
        let run = Run::of(&mut command).succeeds(&variables);
        run.says("docker-compose.override.yml");
    }
    // A file of `extends` is copied: only Portainer does not find it.
    let text = "services: {a: {image: x, extends: {file: ./base.yml, service: b}}}\n";
    let dir = bench.stack("extends", text, None);
    fs::write(dir.join("base.yml"), "services: {b: {image: x}}\n").expect("a file");
    let mut command = bare("rehearse extends --as migrate --stacks-root");
    Run::of(command.arg(root)).fails(&["Portainer cannot read", "extends/base.yml"]);
    // The examples stay available.
    for args in ["rehearse minio", "rehearse"] {
        Run::of(bare(args).env("STACKLIFT_STACKS_ROOT", root)).code(0);
    }
    assert!(bench.backups("mine").is_empty());
}

#[test]
fn a_stack_of_the_user_is_copied_and_rehearsed() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: x\n    env_file: [config/app.env, .env]\n    volumes: [./data:/data]\n";
    let dir = bench.stack("mine", text, Some("TOKEN=s3cr3t-very-long-value\n"));
    fs::create_dir(dir.join("config")).expect("a folder");
    fs::write(dir.join("config/app.env"), "MODE=1\n").expect("an env file");
    fs::create_dir(dir.join("data")).expect("a folder");
    fs::write(dir.join("data/photo"), "data").expect("data");
    let root = bench.root().to_str().expect("UTF-8").to_owned();
    rehearse(&format!("--as migrate mine --stacks-root {root}"))
        .succeeds(&["created stack mine", "TOKEN", "MODE"])
        .hides("s3cr3t-very-long-value");
    let next = format!("\nNext: stacklift plan mine --stacks-root {root}\n");
    rehearse(&format!("mine --stacks-root {root}"))
        .succeeds(&[
            "  =  a  keeps running",
            "\nadopted mine: 1 container kept running\n",
            &next,
        ])
        .hides("s3cr3t-very-long-value");
    // Its directory is not written to, and nothing outside the process is called.
    assert!(bench.backups("mine").is_empty());
    assert!(bench.requests().is_empty());
    rehearse(&format!("absent --stacks-root {root}")).fails("there is no stack named absent: ");
    rehearse("absent").fails(&["unknown example stack absent", "books-db"]);
}

#[test]
fn what_a_stack_of_the_user_needs_from_the_host_is_there() {
    let bench = Bench::new();
    let outside = bench.root().join("token.txt");
    let text = format!(
        "services:
  a:
    image: own/a:1
    build: ./src
    networks: [proxy]
    secrets: [near, far]
    volumes:
      - media:/media
      - {{type: bind, source: ./html, target: /html}}
      - {{type: bind, source: ./app.conf, target: /app.conf}}
networks: {{proxy: {{external: true}}}}
volumes: {{media: {{external: true, name: big-data}}}}
secrets: {{near: {{file: ./near.txt}}, far: {{file: {}}}}}
",
        outside.display()
    );
    let dir = bench.stack("mine", &text, None);
    fs::create_dir(dir.join("html")).expect("a folder");
    for path in [&outside, &dir.join("near.txt"), &dir.join("app.conf")] {
        fs::write(path, "data").expect("a file");
    }
    let rehearse = || Run::of(bare("rehearse mine --as migrate --stacks-root").arg(bench.root()));
    rehearse().succeeds("created stack mine");
    // A source that is missing on this host is missing in the rehearsal.
    fs::remove_file(dir.join("near.txt")).expect("removed");
    rehearse().fails("does not exist");
}

#[test]
fn a_rehearsal_fails_only_where_the_adoption_would_or_says_so() {
    let bench = Bench::new();
    let text = "services:\n  job:\n    image: x\n  app:\n    image: x\n    depends_on: {job: {condition: service_completed_successfully}}\n";
    bench.stack("mine", text, None);
    let rehearse = || Run::of(bare("rehearse mine --stacks-root").arg(bench.root()));
    rehearse().succeeds("adopted mine").hides("--wait");
    let missing =
        "services:\n  a:\n    image: x\n    volumes: [{type: bind, source: ./no, target: /x}]\n";
    bench.stack("mine", missing, None);
    rehearse()
        .fails("a mounts ./no, which does not exist")
        .hides("/stacklift-");
    bench.stack("mine", text, None);
    // It combines several files as plan and adopt do.
    let over = "services:\n  app:\n    labels: {tier: '${TIER:-front}'}\n";
    bench.write("mine", "docker-compose.override.yml", over);
    rehearse().succeeds("adopted mine");
}

/// A rehearsal names the files of the user, and not its copies.
#[test]
fn a_rehearsal_names_a_missing_env_file_by_the_path_of_the_user() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: x\n    env_file: [app.env]\n";
    let missing = bench.stack("mine", text, None).join("app.env");
    let says = format!("env file {} not found", missing.display());
    Run::of(bare("rehearse mine --stacks-root").arg(bench.root()))
        .fails(&says)
        .hides("/stacklift-");
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
