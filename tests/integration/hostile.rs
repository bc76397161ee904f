//! Texts that are large or could control a terminal. Transcripts show other broken stacks.

use testbed::Call;

use crate::bench::{Bench, MARKED, PLAIN, Run, done, instead};

#[test]
fn a_compose_file_of_15_mb_and_a_variable_of_1_mb_are_sent() {
    let bench = Bench::new();
    let line = format!("# {}\n", "x".repeat(1021));
    let text = format!("{PLAIN}{}", line.repeat(15 * 1024));
    let value = format!("{MARKED}{}", "x".repeat(1 << 20));
    bench.stack("web", &text, Some(&format!("LONG={value}\n")));
    bench.run("web --timeout 60s").code(0);
    assert!(bench.sent_text() == text, "every byte");
    assert!(bench.sent()["env"][0]["value"] == value, "every byte");
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
            let bench = Bench::with_env(PLAIN, &format!("TOKEN={MARKED}\n"));
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
