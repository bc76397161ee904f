//! `stacklift config` and `stacklift config init`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use rehearsal::Call;
use serde_json::json;

use crate::{
    bench::{Bench, KEY, PLAIN, Run, key_file, refusal},
    confirming::{on_terminal, on_terminal_after},
    plan::conforms,
};

pub const SCHEMA: &str = include_str!("../../docs/schemas/config-v1.json");

/// The user's settings.
fn settings(bench: &Bench) -> String {
    fs::read_to_string(bench.settings()).expect("a file")
}

/// The output without what differs between runs, with one blank between columns.
fn shown(bench: &Bench, run: &Run) -> String {
    let text = bench.shown(run);
    let lines = text.lines().map(|line| {
        let columns = line
            .split("  ")
            .map(str::trim)
            .filter(|part| !part.is_empty());
        columns.collect::<Vec<_>>().join(" | ") + "\n"
    });
    lines.collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn every_setting_and_where_it_comes_from() {
    let bench = Bench::new();
    bench.set("# mine\ntool = \"podman\"\n\ntls = \"system\"\ntimeout = \"5m\"\n");
    let run = bench.run("config --endpoint 7").code(0);
    assert_eq!(
        shown(&bench, &run),
        "\
SETTING | VALUE | SOURCE
base-url | URL | STACKLIFT_BASE_URL
api-key-file | - | default
stacks-root | ROOT | STACKLIFT_STACKS_ROOT
endpoint | 7 | --endpoint
tool | podman | HOME/.config/stacklift.toml, line 2
engine | api | STACKLIFT_ENGINE
tls | system | HOME/.config/stacklift.toml, line 4
header-file | - | default
timeout | 4s | STACKLIFT_TIMEOUT
API key | set | STACKMGR_API_KEY
state directory | HOME/state | STACKLIFT_STATE_DIR
settings file | HOME/.config/stacklift.toml | read
settings file | HOME/system.toml | not found
"
    );
    assert_eq!(run.err, "");
    assert!(bench.requests().is_empty());
    let run = bench.run("config --output json").code(0);
    let json = run.json();
    conforms(SCHEMA, &json);
    assert_eq!(
        json["settings"][4],
        json!({
            "name": "tool",
            "value": "podman",
            "source": {"kind": "file", "name": bench.settings().to_str(), "line": 2},
            "error": null,
        })
    );
    assert_eq!(json["api_key"]["is_set"], true);
}

#[test]
fn invalid_settings_are_shown_with_the_others() {
    let bench = Bench::new();
    bench.set("tls = \"\"\n");
    bench.run("config --timeout 9s").code(1);
    let run = Run::of(
        bench
            .command("config --timeout 9s")
            .env("STACKLIFT_ENDPOINT", "one")
            .env("STACKLIFT_BASE_URL", "https://me:pa55-word@host")
            .env_remove("STACKMGR_API_KEY"),
    );
    let run = run.code(1).hides("pa55-word");
    let text = shown(&bench, &run);
    for line in [
        "endpoint | - | STACKLIFT_ENDPOINT (invalid)\n",
        "tls | - | HOME/.config/stacklift.toml, line 1 (invalid)\n",
        "timeout | 9s | --timeout\n",
        "API key | - | not set\n",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    run.says(&[
        "error: invalid STACKLIFT_BASE_URL: ",
        "error: invalid STACKLIFT_ENDPOINT: expected a number or `auto`",
        "hint: see --endpoint in `stacklift --help` for valid values",
        "error: invalid tls in ",
    ]);
    bench.set("base-ulr = \"x\"\n");
    let run = bench.run("config --output json").code(1);
    let json = run.json();
    conforms(SCHEMA, &json);
    let error = json["files"][0]["error"]["message"]
        .as_str()
        .expect("an error");
    assert!(error.contains("line 1: unknown key `base-ulr`"), "{error}");
    run.says("did you mean `base-url`?");
}

#[test]
fn c02_a_settings_file_names_the_file_with_the_key() {
    let bench = Bench::web(PLAIN);
    let (_folder, key) = key_file();
    bench.set(&format!("api-key-file = {key:?}\n"));
    let run = |args: &str, variables: &[(&str, &str)]| {
        Run::of(
            bench
                .command(args)
                .env_remove("STACKMGR_API_KEY")
                .envs(variables.iter().copied()),
        )
    };
    run("list", &[]).code(0).hides("STACKMGR_API_KEY");
    let shows = "API key | set | HOME/.config/stacklift.toml, line 1\n";
    let config = run("config", &[]).code(0);
    assert!(shown(&bench, &config).contains(shows), "{config:?}");
    // The flag precedes the variable, and the variable the settings file.
    run("plan web", &[("STACKMGR_API_KEY_FILE", "/no/key")])
        .code(1)
        .says("/no/key");
    let flag = format!("plan web --api-key-file {}", key.display());
    run(&flag, &[("STACKMGR_API_KEY_FILE", "/no/key")]).code(0);
    // STACKMGR_API_KEY precedes all of them, even if it is empty.
    run(&flag, &[("STACKMGR_API_KEY", "")])
        .code(1)
        .says("STACKMGR_API_KEY is required");
    let other = "plan web --api-key-file /no/key";
    run(other, &[("STACKMGR_API_KEY", KEY)]).code(0);
}

#[test]
fn c56_a_key_in_the_place_of_its_file_is_not_shown() {
    let bench = Bench::new();
    for words in ["list", "plan web", "config", "doctor"] {
        let mut command = bench.command(&format!("{words} --api-key-file {KEY}"));
        Run::of(command.env_remove("STACKMGR_API_KEY"))
            .says("--api-key-file: it contains an API key");
    }
    for setting in ["api-key-file", "endpoint", "engine"] {
        let mut command = bench.command("config");
        command
            .env_remove("STACKMGR_API_KEY")
            .env_remove("STACKLIFT_ENGINE");
        bench.set(&format!("{setting} = {KEY:?}\n"));
        Run::of(&mut command).code(1).says("(invalid)");
    }
    fs::remove_file(bench.settings()).expect("the file contains the key");
}

#[test]
fn b14_a_printed_restore_command_names_the_key_file() {
    let bench = Bench::web(PLAIN);
    let (folder, _) = key_file();
    bench.always(Call::Create, refusal());
    let mut command = bench.command("web --api-key-file key");
    command
        .env_remove("STACKMGR_API_KEY")
        .current_dir(folder.path());
    let path = fs::canonicalize(folder.path()).expect("a path").join("key");
    let flag = format!("--api-key-file {} ", path.display());
    Run::of(&mut command)
        .code(1)
        .says(&["stacklift restore web ", &flag]);
    // The variable with the key is used, so the file is not needed.
    bench.started("two", PLAIN, None);
    bench
        .fails("two --api-key-file /no/key", "stacklift restore two")
        .hides("/no/key");
}

#[test]
fn init_writes_every_setting_as_a_comment() {
    let bench = Bench::new();
    let run = bench.run("config init --user").code(0);
    let file = bench.settings();
    assert_eq!(run.out, format!("  written {}\n", file.display()));
    assert_eq!(
        run.err,
        "hint: to check the settings, run: stacklift doctor\n"
    );
    let text = settings(&bench);
    assert!(
        text.contains("\n# URL of Portainer\n#base-url = \"https://localhost:9443\"\n"),
        "{text}"
    );
    assert_eq!(mode(&file), 0o644);
    let printed = bench.run("config init --print").code(0);
    assert_eq!(printed.out, text);
    bench.succeeds("config", "stacklift.toml");
    // A file of which nothing was changed is replaced.
    bench.run("config init --user --endpoint 7").code(0);
    // Another file is kept.
    fs::write(&file, "endpoint = 5\n").expect("a file");
    bench.fails("config init --user", &["already exists", "--force"]);
    assert_eq!(settings(&bench), "endpoint = 5\n");
    bench.run("config init --user --force --endpoint 8").code(0);
    let forced = settings(&bench);
    assert!(forced.contains("\nendpoint = 8\n"), "{forced}");
    let files = fs::read_dir(file.parent().expect("a parent")).expect("a directory");
    assert_eq!(files.count(), 1, "no temporary file is left");
    assert!(bench.requests().is_empty());
}

#[test]
fn init_writes_absolute_paths() {
    let bench = Bench::new();
    let run = bench.run(&[
        "config",
        "init",
        "--print",
        "--stacks-root=my stacks",
        "--tls=ca.pem",
        "--api-key-file=key",
        "--timeout=2h",
    ]);
    let home = fs::canonicalize(bench.home()).expect("a path");
    for (key, value) in [
        ("stacks-root", "my stacks"),
        ("tls", "ca.pem"),
        ("api-key-file", "key"),
    ] {
        let line = format!("\n{key} = {:?}\n", home.join(value).display().to_string());
        assert!(run.out.contains(&line), "no {line} in {}", run.out);
    }
    assert!(run.out.contains("\ntimeout = \"2h\"\n"), "{}", run.out);
}

#[test]
fn init_asks_on_a_terminal() {
    let bench = Bench::new();
    let run = on_terminal(
        &bench,
        "config init --user",
        "ftp://x\nhttps://nas.example:9443\n\n",
    );
    let run = run.code(0).says(&[
        "Address of Portainer [https://localhost:9443]: ",
        "warning: expected a URL such as https://localhost:9443",
        "My account > Access tokens",
        "File with the API key [none: use STACKMGR_API_KEY]: ",
    ]);
    assert!(run.out.contains("written"), "{run:?}");
    let text = settings(&bench);
    assert!(
        text.contains("\nbase-url = \"https://nas.example:9443\"\n"),
        "{text}"
    );
    assert!(text.contains("\n#api-key-file = "), "{text}");
}

#[test]
fn init_writes_a_key_file_that_only_the_user_can_read() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    let file = path.display().to_string();
    let args = format!("config init --user --base-url https://nas:9443 --api-key-file {file}");
    let run = on_terminal_after(
        &bench,
        &args,
        "create the file yourself): ",
        || {},
        &format!("{KEY}\n"),
    );
    // The terminal does not show what is typed.
    let run = run.code(0).hides(KEY);
    assert!(run.out.contains("(mode 0600)"), "{run:?}");
    assert_eq!(
        fs::read_to_string(&path).expect("a file"),
        format!("{KEY}\n")
    );
    assert_eq!(mode(&path), 0o600);
    let text = settings(&bench);
    assert!(
        text.contains(&format!("\napi-key-file = {file:?}\n")),
        "{text}"
    );
    // An existing key file is kept, and the key is not asked for.
    let again = format!("{args} --force");
    on_terminal(&bench, &again, "").code(0).hides("API key (");
}

#[test]
fn init_can_be_canceled() {
    let bench = Bench::new();
    for (shown, typed) in [("9443]: ", "\u{4}"), ("STACKMGR_API_KEY]: ", "\u{4}")] {
        let answer = if shown.starts_with('9') { "" } else { "\n" };
        let typed = format!("{answer}{typed}");
        let run = on_terminal(&bench, "config init --user", &typed);
        run.code(1)
            .says(&[shown, "canceled: no settings file was written"]);
        assert!(!bench.settings().exists());
    }
}
