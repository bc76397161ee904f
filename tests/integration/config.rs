//! `stacklift config` and `stacklift config init`.

use std::{fs, os::unix::fs::symlink};

use crate::{
    bench::{Bench, KEY, PLAIN, Run, mode, set_mode},
    confirming::on_terminal,
};

/// The user's settings.
fn settings(bench: &Bench) -> String {
    fs::read_to_string(bench.settings()).expect("a file")
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
fn init_can_be_canceled() {
    let bench = Bench::new();
    for typed in ["\u{4}", "\n\u{4}", "\n\n\u{4}"] {
        on_terminal(&bench, "config init --user", typed).fails("canceled: nothing was written");
        assert!(!bench.settings().exists());
    }
}
