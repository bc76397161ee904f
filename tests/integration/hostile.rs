//! Broken stacks: each has the outcome that its rule gives, or an error that names the file, the cause, the state
//! of the stack and what to do. Nothing is removed or half-written.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    process::Command,
};

use testbed::Call;

use crate::bench::{Bench, MARKED, PLAIN, Run, done, fifo, instead};

/// Runs the command and asserts that it failed, changed nothing and printed `words`.
#[track_caller]
fn refused(bench: &Bench, command: &mut Command, words: &[&str]) {
    let files = tree(bench.root());
    Run::of(command)
        .fails(&["error: ", "Nothing was changed", "hint: "])
        .says(words);
    assert!(bench.nothing_was_changed());
    assert_eq!(tree(bench.root()), files, "files have come or gone");
}

fn tree(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        all.push(entry.path().display().to_string());
        if entry.file_type().expect("a type").is_dir() {
            all.extend(tree(&entry.path()));
        }
    }
    all.sort();
    all
}

/// A bench with a running stack, and its directory.
fn started() -> (Bench, std::path::PathBuf) {
    let bench = Bench::new();
    let env = format!("TOKEN={MARKED}\n");
    let dir = bench.started("web", PLAIN, Some(&env));
    (bench, dir)
}

/// Replaces a file with something else.
fn in_place_of(path: &Path, what: &str) {
    fs::remove_file(path).expect("removed");
    match what {
        "a directory" => fs::create_dir(path).expect("it"),
        "a fifo" => fifo(path),
        "a socket" => drop(UnixListener::bind(path).expect("it")),
        "a dangling link" => symlink("/no/such/file", path).expect("it"),
        "a link to itself" => symlink(path, path).expect("it"),
        // Its owner can open it, but reading fails with an input/output error.
        "a file that cannot be read" => symlink("/proc/self/mem", path).expect("it"),
        "not UTF-8" => fs::write(path, b"A=\xff\n").expect("it"),
        _ => unreachable!("{what}"),
    }
}

#[test]
fn a_compose_file_or_env_file_that_cannot_be_read() {
    let (unreadable, not_utf8) = ("Input/output error", "is not UTF-8 at byte 2");
    for (what, compose, env) in [
        ("a directory", "is not a file", "is not a regular file"),
        ("a fifo", "is not a file", "is not a regular file"),
        ("a socket", "is not a file", "is not a regular file"),
        ("a dangling link", "is not a file", "No such file"),
        ("a link to itself", "failed to access", "symbolic links"),
        ("a file that cannot be read", unreadable, unreadable),
        ("not UTF-8", not_utf8, not_utf8),
    ] {
        for (name, words) in [("docker-compose.yml", compose), (".env", env)] {
            let (bench, dir) = started();
            let file = dir.join(name);
            in_place_of(&file, what);
            let named = file.to_str().expect("UTF-8").to_owned();
            refused(&bench, &mut bench.command("web"), &[words, &named]);
            assert!(bench.requests().is_empty(), "{what}");
        }
    }
}

#[test]
fn unusual_variables_are_sent_verbatim() {
    let long = format!("LONG={MARKED}{}", "x".repeat(1 << 20));
    let env = format!(
        "\u{feff}A={MARKED}\nB=a\0b\n{long}\nno equals sign {MARKED}\nC=\u{202e}{MARKED}\n"
    );
    let bench = Bench::new();
    bench.stack("web", PLAIN, Some(&env));
    bench.run("web").says(&["warning:", "line 4"]);
    let sent = bench.sent_env();
    let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["\u{feff}A", "B", "LONG", "C"]);
    assert_eq!(sent[1].1, "a\0b");
    assert_eq!(sent[2].1.len(), long.len() - "LONG=".len());
}

#[test]
fn a_compose_file_of_15_mb_is_sent() {
    let bench = Bench::new();
    let line = format!("# {}\n", "x".repeat(1021));
    let text = format!("{PLAIN}{}", line.repeat(15 * 1024));
    let dir = bench.stack("web", PLAIN, None);
    fs::write(dir.join("docker-compose.yml"), &text).expect("the file");
    bench.run("web --timeout 60s").code(0);
    assert!(bench.sent_text() == text, "every byte");
}

/// Characters that steer a terminal.
const STEERING: [char; 7] = [
    '\u{1b}', '\0', '\u{9b}', '\u{202e}', '\u{7}', '\r', '\u{2066}',
];

#[track_caller]
fn steers_nothing(run: &Run, what: &str) {
    let all = run.all();
    assert!(!all.contains(STEERING), "{what}: {run:#?}");
}

#[test]
fn control_characters_in_the_compose_file_are_sent_and_shown_escaped() {
    let bench = Bench::web(PLAIN);
    let broken = format!("{PLAIN}# \0 \u{1b}[31m \u{9b} \u{202e}\n\"\u{1b}[2J\0\u{7}: [\n");
    let escaped = "services:\n  \"a\\e[31m\\u202E\":\n    image: \"x\\e[2J\"\n    env_file: [\"e\\e[1m.env\"]\n    volumes: [\"../\\u009b:/s\"]\n";
    bench.write("web", "docker-compose.yml", &broken);
    steers_nothing(&bench.run("web --force"), "a broken text");
    assert_eq!(bench.sent_text(), broken);
    bench.write("web", "docker-compose.yml", escaped);
    steers_nothing(&bench.run("web --force -v"), "an escaped text");
}

#[test]
fn text_from_outside_cannot_control_the_terminal() {
    const EVIL: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r\u{2066}";
    let json = serde_json::json!({"message": EVIL, "details": EVIL}).to_string();
    let kinds = [
        instead(500, &json),
        instead(500, EVIL),
        done(200, &json),
        done(200, EVIL),
        done(200, &format!("<html>{EVIL}</html>")),
    ];
    let calls = [
        Call::List,
        Call::Create,
        Call::Delete,
        Call::File,
        Call::Info,
        Call::EngineList,
        Call::EnginePing,
        Call::EngineInspect,
        Call::EngineRemove,
        Call::EngineVolumes,
    ];
    for call in calls {
        for kind in &kinds {
            let (bench, _) = started();
            if matches!(call, Call::Delete | Call::File) {
                bench.record("web", 1);
            }
            bench.change_container("web-a-1", |one| {
                one.image = format!("x{EVIL}");
                one.name = format!("web{EVIL}");
            });
            bench.always(call, kind.clone());
            let run = bench.run("web -v");
            steers_nothing(&run, &format!("{call:?}"));
        }
    }
}
