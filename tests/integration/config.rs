//! `stacklift config` and `stacklift config init`.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;
use testbed::Call;

use crate::{
    bench::{Bench, KEY, PLAIN, Run, key_file, mode, refusal, set_mode},
    confirming::on_terminal,
};

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
    let json = run.report("config");
    let source = json!({"kind": "file", "name": bench.settings().to_str(), "line": 2});
    let tool = json!({"name": "tool", "value": "podman", "source": source, "error": null});
    assert_eq!(json["settings"][4], tool);
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
        "timeout | 9s | --timeout\nAPI key | - | not set\n",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    let endpoint = "error: invalid STACKLIFT_ENDPOINT: expected a number or `auto`\nhint: see --endpoint in `stacklift --help` for valid values\nerror: invalid tls in ";
    run.says(&["error: invalid STACKLIFT_BASE_URL: ", endpoint]);
    bench.set("base-ulr = \"x\"\n");
    let run = bench.run("config --output json").code(1);
    let json = run.report("config");
    let error = json["files"][0]["error"]["message"].to_string();
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
    run("plan web", &[("STACKMGR_API_KEY_FILE", "/no/key")]).fails("/no/key");
    let flag = format!("plan web --api-key-file {}", key.display());
    run(&flag, &[("STACKMGR_API_KEY_FILE", "/no/key")]).code(0);
    // STACKMGR_API_KEY precedes all of them, even if it is empty.
    run(&flag, &[("STACKMGR_API_KEY", "")]).fails("STACKMGR_API_KEY is required");
    let other = "plan web --api-key-file /no/key";
    run(other, &[("STACKMGR_API_KEY", KEY)]).code(0);
}

#[test]
fn c56_a_key_in_the_place_of_its_file_is_not_shown() {
    let bench = Bench::new();
    for words in ["list", "plan web", "config", "doctor"] {
        let run = bench.without_key(&format!("{words} --api-key-file {KEY}"));
        run.says("--api-key-file: it contains an API key");
    }
    for setting in ["api-key-file", "endpoint", "engine"] {
        let mut command = bench.command("config");
        command
            .env_remove("STACKMGR_API_KEY")
            .env_remove("STACKLIFT_ENGINE");
        bench.set(&format!("{setting} = {KEY:?}\n"));
        Run::of(&mut command).fails("(invalid)");
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
    Run::of(&mut command).fails(&["stacklift restore web ", &flag]);
    // The variable with the key is used, so the file is not needed.
    bench.started("two", PLAIN, None);
    let run = bench.fails("two --api-key-file /no/key", "stacklift restore two");
    run.hides("/no/key");
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

/// The questions on a terminal and what was printed, with the stacks root and the home replaced. Line feeds are echoed when
/// they are typed, which may be before the question.
fn on_screen(bench: &Bench, run: &Run) -> String {
    let text = format!("{}\n{}", run.err.replace("\r\n", "").trim_end(), run.out);
    text.replace(bench.root().to_str().expect("UTF-8"), "ROOT")
        .replace(bench.home().to_str().expect("UTF-8"), "HOME")
}

#[test]
fn init_asks_for_what_a_host_needs() {
    let bench = Bench::web(PLAIN);
    bench.started("mail", PLAIN, None);
    let args = "config init --user";
    let run = on_terminal(&bench, args, "\n\n\n").code(0);
    assert_eq!(
        on_screen(&bench, &run),
        "\
Portainer's address [https://localhost:9443]: \
API key (hidden; My account → Access tokens): \
Directory of your stacks [ROOT: 2 projects run from there]:
written HOME/.config/stacklift.toml
Next: stacklift doctor
"
    );
    let root = format!("\nstacks-root = {:?}\n", bench.root());
    let text = settings(&bench);
    assert!(text.contains(&root), "{text}");
    assert!(text.contains("\n#api-key-file = "), "{text}");
    assert_eq!(mode(bench.settings()), 0o644);
    // It runs again, and edits what is there.
    bench.set(&format!("# mine\ntls = \"pin\" # why{root}"));
    let typed = "ftp://x\nhttps://nas.example:9443\n\n/no/directory\n\n";
    let url = "warning: expected a URL such as https://localhost:9443";
    let directory = "warning: /no/directory does not exist";
    let run = on_terminal(&bench, args, typed).succeeds(&[url, directory]);
    let run = run.says("Directory of your stacks [");
    assert!(!run.err.contains("run from there"), "{run:?}");
    assert_eq!(
        settings(&bench),
        format!("# mine\ntls = \"pin\" # why{root}base-url = \"https://nas.example:9443\"\n")
    );
    bench.set("other = 1\n");
    on_terminal(&bench, args, "").fails("unknown key `other`");
}

#[test]
fn init_writes_a_key_file_that_only_the_user_can_read() {
    let bench = Bench::new();
    let ask = |key: &str| {
        let args = "config init --user --base-url https://nas:9443";
        on_terminal(&bench, args, &format!("{key}\n\n")).code(0)
    };
    // The terminal does not show what is typed.
    let run = ask(KEY).hides(KEY);
    assert_eq!(
        on_screen(&bench, &run),
        "\
API key (hidden; My account → Access tokens): \
Directory of your stacks [/opt/stacks]: warning: STACKMGR_API_KEY, STACKLIFT_BASE_URL and STACKLIFT_STACKS_ROOT are set: variables take precedence over this file
written HOME/.config/stacklift.toml and HOME/.config/stacklift.key (0600)
Next: stacklift doctor
"
    );
    let file = bench.settings().with_extension("key");
    let key = || fs::read_to_string(&file).expect("a file");
    assert_eq!((key(), mode(&file)), (format!("{KEY}\n"), 0o600));
    let named = format!("\napi-key-file = {:?}\n", file.display().to_string());
    assert!(settings(&bench).contains(&named), "{}", settings(&bench));
    // The key is kept, or replaced in its file.
    ask("").says("hidden; empty keeps ");
    assert_eq!(key(), format!("{KEY}\n"));
    ask("ptr_another");
    assert_eq!(key(), "ptr_another\n");
    let files = fs::read_dir(file.parent().expect("a parent")).expect("a directory");
    assert_eq!(files.count(), 2, "no temporary file is left");
}

#[test]
fn b32_init_writes_both_files_or_neither() {
    let bench = Bench::new();
    let (file, elsewhere) = (bench.settings(), bench.home().join("elsewhere"));
    let dir = file.parent().expect("a parent").to_owned();
    let init = |typed: &str| {
        let args = "config init --user --base-url https://nas:9443";
        on_terminal(&bench, args, typed)
    };
    bench.set("");
    fs::rename(&file, &elsewhere).expect("moved");
    symlink(&elsewhere, &file).expect("a link");
    let refused = format!(
        "refusing to write {}: it is not a regular file",
        file.display()
    );
    init(&format!("{KEY}\n\n")).fails(&refused);
    fs::remove_file(&file).expect("removed");
    set_mode(&dir, 0o777);
    let writable = format!("{} is writable by other users", dir.display());
    init(&format!("{KEY}\n\n")).fails(&writable);
    assert_eq!(fs::read_dir(&dir).expect("a directory").count(), 0);
    set_mode(&dir, 0o755);
    // Rights that are stricter stay.
    bench.set("");
    set_mode(&file, 0o600);
    init("\n\n").code(0);
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn init_without_a_terminal_names_the_flags() {
    let bench = Bench::new();
    let run = bench.run("config init --user --base-url https://nas");
    let expected = "error: cannot ask for the settings without a terminal\nhint: pass --api-key-file, --stacks-root\n";
    assert_eq!(run.code(1).err, expected);
    assert!(!bench.settings().exists());
    let args = "config init --user --base-url https://nas --api-key-file /k --stacks-root /s";
    let run = bench.run(args).code(0);
    let expected = "written HOME/.config/stacklift.toml\nNext: stacklift doctor\n";
    assert_eq!(bench.shown(&run), expected);
    let printed = bench.run(&args.replace("--user", "--print")).code(0);
    printed.prints(settings(&bench));
    bench.run("config init --user --base-url x").code(2);
    // What the file has is not missing.
    bench.succeeds("config init --user --timeout 2m", "written");
    assert!(bench.requests().is_empty());
}

#[test]
fn init_can_be_canceled() {
    let bench = Bench::new();
    for typed in ["\u{4}", "\n\u{4}", "\n\n\u{4}"] {
        on_terminal(&bench, "config init --user", typed).fails("canceled: nothing was written");
        assert!(!bench.settings().exists());
    }
}
