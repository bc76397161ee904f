//! The files of a stack that the program, or Compose on its behalf, opens (B25, B29).

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, chown, lchown, symlink},
        process::CommandExt as _,
    },
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use testbed::{Call, FaultKind};

use crate::bench::{Bench, PLAIN, Run, fifo, set_mode};

/// A user who is not root, and has no name here.
pub const USER: u32 = 54_321;

/// A directory of [`USER`].
fn given_away(dir: &Path) {
    fs::create_dir_all(dir).expect("a folder");
    set_mode(dir, 0o755);
    chown(dir, Some(USER), Some(USER)).expect("root");
}

/// Runs the binary, which must end soon.
#[track_caller]
fn ended(bench: &Bench, args: &str) -> Run {
    let started = Instant::now();
    let run = bench.run(args);
    let took = started.elapsed();
    assert!(took < Duration::from_mins(1), "{args:?} took {took:?}");
    run
}

const BUSYBOX: &str = "services: {a: {image: busybox}}\n";

/// Stacks with a pipe that Compose would open: the name, what is in the Compose file besides [`BUSYBOX`], `.env` and the
/// name of the pipe.
const PIPES: &[(&str, &str, &str, &str)] = &[
    ("including", "include: [b.yml]\n", "", "b.yml"),
    ("nested", "include: [c.yml]\n", "", "b.yml"),
    ("included-env", INCLUDED_ENV, "", "b.env"),
    ("project-dir", PROJECT_DIR, "", "sub/.env"),
    ("extending", EXTENDING, "FILE=b.yml\n", "b.yml"),
    ("listed", "", LISTED, "b.yml"),
    ("overridden", "", "", "docker-compose.override.yml"),
    ("second-document", SECOND_DOCUMENT, "", "b.yml"),
    ("of-service", OF_SERVICE, "", "b.env"),
    ("labels", LABELS, "", "b.labels"),
    ("own-env", "", "", ".env"),
];
const INCLUDED_ENV: &str = "include: [{path: c.env.yml, env_file: b.env}]\n";
const PROJECT_DIR: &str = "include: [{path: c.env.yml, project_directory: sub}]\n";
const EXTENDING: &str = "services: {a: {extends: {file: $FILE, service: a}}}\n";
const LISTED: &str = "COMPOSE_FILE=docker-compose.yml:b.yml\n";
const SECOND_DOCUMENT: &str = "x-a: 1\n---\ninclude: [b.yml]\n";
const OF_SERVICE: &str = "services: {a: {image: busybox, env_file: b.env}}\n";
const LABELS: &str = "services: {a: {image: busybox, label_file: ./b.labels}}\n";

/// Creates the stack of a line of [`PIPES`].
fn with_pipe(bench: &Bench, (name, compose, env, pipe): (&str, &str, &str, &str)) {
    let compose = if compose.contains("services:") {
        compose.to_owned()
    } else {
        format!("{compose}{BUSYBOX}")
    };
    let dir = bench.stack(name, &compose, Some(env).filter(|env| !env.is_empty()));
    fs::write(dir.join("c.yml"), "include: [b.yml]\n").expect("a file");
    fs::write(dir.join("c.env.yml"), "services: {c: {image: busybox}}\n").expect("a file");
    fs::create_dir(dir.join("sub")).expect("a folder");
    fifo(&dir.join(pipe));
}

#[test]
fn b25_a_pipe_that_compose_would_open_is_refused_by_its_name() {
    for &line in PIPES {
        let (name, .., pipe) = line;
        let bench = Bench::new();
        with_pipe(&bench, line);
        let path = bench.dir(name).join(pipe).display().to_string();
        for (args, code) in [
            // `migrate` may be possible: it does not send the other files.
            (format!("plan {name}"), None),
            (format!("adopt {name} --yes"), Some(1)),
            (format!("render {name} --as adopt"), Some(1)),
        ] {
            let run = ended(&bench, &args);
            let run = run.says(&[&path, "it is not a regular file", "hint: "]);
            assert!(code.is_none_or(|code| run.code == code), "{run:?}");
        }
        assert!(bench.nothing_was_changed());
    }
}

#[test]
fn b25_one_bad_directory_never_stops_the_list() {
    let bench = Bench::new();
    bench.started("good", PLAIN, None);
    for &line in PIPES {
        with_pipe(&bench, line);
    }
    let pipe = |name: &str, file: &str| {
        fs::create_dir(bench.dir(name)).expect("a folder");
        fifo(&bench.dir(name).join(file));
    };
    pipe("only-env", ".env");
    pipe("only-pipe", "docker-compose.yml");
    fs::create_dir(bench.dir("only-zero")).expect("a folder");
    symlink("/dev/zero", bench.dir("only-zero").join(".env")).expect("a link");
    let run = ended(&bench, "list --output json").code(0);
    let list = run.json();
    let stacks = list["stacks"].as_array().expect("stacks");
    let why = |name: &str| {
        let stack = stacks.iter().find(|stack| stack["name"] == name);
        stack.expect(name)["adopt"]["blockers"].to_string()
    };
    assert_eq!(why("good"), "[]");
    for &(name, .., pipe) in PIPES {
        assert!(why(name).contains(pipe), "{name}: {}", why(name));
    }
    for (name, file) in [
        ("only-env", ".env: it is not a regular file"),
        ("only-zero", ".env: it is not a regular file"),
        ("only-pipe", "docker-compose.yml is not a file"),
    ] {
        assert!(why(name).contains(file), "{name}: {}", why(name));
    }
    // Completions look for the stacks, too.
    let run = bench.run(&[".complete", "--", "plan", ""]).code(0);
    assert!(run.out.contains("good"), "{run:?}");
    assert!(!run.out.contains("only-env"), "{run:?}");
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b29_a_file_that_the_owner_of_the_directory_cannot_read_is_refused() {
    const EXCERPT: &str = "excerpt-of-a-file-of-root";
    let using = |line: &str| format!("services: {{a: {{image: busybox, {line}}}}}\n");
    for (name, text) in [
        ("docker-compose.yml", PLAIN.to_owned()),
        (".env", PLAIN.to_owned()),
        ("b", using("env_file: [b]")),
        ("b", using("label_file: [b]")),
        ("b", using("extends: {file: b, service: a}")),
        ("b", format!("include: [b]\n{PLAIN}")),
        ("b", format!("{PLAIN}---\ninclude: [b]\n")),
    ] {
        for is_reachable in [true, false] {
            let bench = Bench::new();
            let dir = bench.stack("web", &text, None);
            given_away(&dir);
            let private = tempfile::tempdir().expect("a folder");
            let secret = private.path().join("secret");
            fs::write(&secret, format!("{EXCERPT}:*:1:\n  : [\n")).expect("a file");
            set_mode(private.path(), if is_reachable { 0o755 } else { 0o700 });
            set_mode(&secret, if is_reachable { 0o600 } else { 0o644 });
            fs::remove_file(dir.join(name)).ok();
            symlink(&secret, dir.join(name)).expect("a link");
            for args in ["plan web", "render web", "web", "list"] {
                let run = ended(&bench, args).hides(EXCERPT);
                if args != "list" {
                    let path = dir.join(name).display().to_string();
                    run.fails(&[path, format!("(user {USER}) cannot read it")]);
                }
            }
            assert!(bench.nothing_was_changed());
        }
    }
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_no_core_dump_contains_the_key() {
    let bench = Bench::on_disk(PLAIN);
    for call in [Call::Status, Call::Endpoints, Call::List] {
        bench.once(call, FaultKind::Hang);
    }
    set_mode(bench.root(), 0o755);
    // It waits for Portainer.
    let mut waiting = bench.as_user("doctor", USER);
    let mut other = Command::new("sleep");
    other.arg("600").uid(USER);
    // The kernel gives the files of a process that it must not dump to root, and those of others to their user.
    for (command, expected) in [(&mut waiting, 0), (&mut other, USER)] {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it runs");
        let path = format!("/proc/{}/environ", child.id());
        let owner = || fs::metadata(&path).expect("a process").uid();
        let deadline = Instant::now() + Duration::from_mins(1);
        while owner() != expected && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let found = owner();
        child.kill().expect("killed");
        child.wait().expect("it ends");
        assert_eq!(found, expected, "{command:?}");
    }
}

/// The contents of a file that a user puts in place of one that was checked must not be read as root (B29).
#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b29_compose_reads_with_the_rights_of_the_directorys_owner() {
    const EXCERPT: &str = "excerpt-of-a-file-of-root";
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    bench.stack("web", &format!("include: [more.yaml]\n{PLAIN}"), None);
    fs::write(dir.join("more.yaml"), "services: {}\n").expect("a file");
    given_away(&dir);
    set_mode(bench.root(), 0o755);
    let secret = bench.root().join("secret");
    fs::write(&secret, EXCERPT).expect("a file");
    set_mode(&secret, 0o600);
    let bin = tempfile::tempdir().expect("a folder");
    let program = bin.path().join("docker-compose");
    let script = format!(
        "#!/bin/bash\n[ \"$1\" = version ] && {{ echo 2.26.1; exit; }}\n\
        ls >/dev/null || exit 1\n[ -e docker-compose.yml ] && {{ cat docker-compose.yml >/dev/null || exit 1; }}\n\
        grep -q 'image: valid' docker-compose.yml && exit 0\n\
        echo \"asked in $PWD with $(grep ^Uid: /proc/$$/status | tr -s '\\t' ' '), $(ulimit -d) KiB, $(env | grep -c '^PATH=\\|^FROM_ROOT') variables, as $EUID: $(cat {} 2>&1)\" >&2\nexit 15\n",
        secret.display()
    );
    fs::write(&program, script).expect("a script");
    for path in [bin.path(), &program] {
        set_mode(path, 0o755);
    }
    let run = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("PATH", bench.path(&[bin.path()]));
        Run::of(command.env("FROM_ROOT", EXCERPT)).hides(EXCERPT)
    };
    let root = bench.root().to_str().expect("UTF-8");
    let rehearsal = ["rehearse", "web", "--as", "migrate", "--stacks-root", root];
    for args in [&["plan", "web"][..], &["web"], &rehearsal] {
        // B44: it cannot become root again.
        let ids = format!("Uid: {USER} {USER} {USER} {USER}");
        // B43: it inherits its limit.
        let limit = "1572864 KiB, 0 variables, ";
        run(args).says(&[
            &ids,
            limit,
            &format!("as {USER}: cat: "),
            "Permission denied",
        ]);
    }
    // The user hides the directory from everybody, and could still replace the files from inside it.
    chown(bench.root(), Some(USER), None).expect("root");
    set_mode(bench.root(), 0o000);
    let hidden = run(&["plan", "web"]);
    set_mode(bench.root(), 0o755);
    hidden.says(&format!("config` as the user {USER}: Permission denied"));
}

/// Nobody gets a file of root by a link in a directory of root (B44).
#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b44_a_link_below_a_directory_of_root_has_the_rights_of_its_owner() {
    const EXCERPT: &str = "excerpt-of-a-file-of-root";
    const REFUSED: &str = "(user 54321) cannot read it";
    let text = "services: {a: {image: busybox, env_file: [data/app.env]}}\n";
    for link in ["data/app.env", ".env", "data/deep"] {
        let bench = Bench::new();
        let dir = bench.stack("web", text, None);
        let private = tempfile::tempdir().expect("a folder");
        let secret = private.path().join("app.env");
        fs::write(&secret, format!("A={EXCERPT}\n")).expect("a file");
        set_mode(&secret, 0o600);
        fs::create_dir(dir.join("data")).expect("a folder");
        fs::write(dir.join("data/app.env"), "A=1\n").expect("a file");
        chown(dir.join("data/app.env"), Some(USER), None).expect("root");
        set_mode(dir.join("data/app.env"), 0o644);
        // A container's user owns the folder, and a group may write to the stack's directory.
        chown(dir.join("data"), Some(USER), None).expect("root");
        set_mode(&dir, 0o2775);
        ended(&bench, "plan web").hides(REFUSED);
        let target = if link == "data/deep" {
            let text = text.replace("app.env", "deep/app.env");
            bench.stack("web", &text, None);
            private.path()
        } else {
            &secret
        };
        fs::remove_file(dir.join(link)).ok();
        symlink(target, dir.join(link)).expect("a link");
        lchown(dir.join(link), Some(USER), None).expect("root");
        for args in ["plan web", "adopt web --yes", "list"] {
            let run = ended(&bench, args).hides(EXCERPT);
            run.says(REFUSED);
        }
        assert!(bench.nothing_was_changed());
    }
}
