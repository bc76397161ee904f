//! `stacklift render`.

use std::{fs, process::Command};

use testbed::{Call, Peer};

use crate::{
    bench::{Bench, KEY, MARKED, PLAIN, Run},
    screen::screen,
};

#[test]
fn reveal_gives_the_bytes_that_a_migration_sends() {
    let bench = Bench::new();
    let text =
        "services:\n  a:\n    image: x # \u{e4}\n    env_file: .env\n    volumes: [./d:/d]\n";
    bench.stack("web", text, Some("TOKEN=\"very secret\"\nB=2\n"));
    let rendered = bench.run("render web --as migrate --reveal").code(0);
    bench.run("web").code(0);
    let sent = &bench.calls(Call::Create)[0].body;
    assert_eq!(rendered.out.as_bytes(), sent);
}

#[test]
fn it_needs_no_key_and_touches_nothing() {
    let bench = Bench::new();
    let dir = bench.stack("web", PLAIN, None);
    bench.without_key("render web --as migrate").code(0);
    assert!(bench.requests().is_empty());
    assert_eq!(fs::read_dir(dir).expect("read").count(), 1);
    bench.fails("render absent", "there is no stack named absent: ");
    bench.run("render").code(2);
}

const RICH: &str = "services:\n  a:\n    image: x\n    env_file:\n      - .env\n      - app.env\n    volumes: [./d:/d]\n";

/// A stack with a second env file.
fn rich(bench: &Bench) {
    let dir = bench.stack("web", RICH, Some("TOKEN=very-secret-value\n"));
    fs::write(dir.join("app.env"), "PASS=other-secret-value\n").expect("write");
}

#[test]
fn adopt_keeps_the_meaning() {
    let bench = Bench::new();
    rich(&bench);
    let run = bench.run("render web --as adopt --reveal").code(0);
    let json = run.json();
    let dir = bench.dir("web");
    assert_eq!(
        json["stackFileContent"],
        format!(
            "services:\n  a:\n    environment:\n      PASS: \"other-secret-value\"\n    image: x\n    env_file:\n      - stack.env\n    volumes: [{}/d:/d]\n",
            dir.display()
        )
    );
    let env = serde_json::json!([{"name": "TOKEN", "value": "very-secret-value"}]);
    assert_eq!(json["env"], env);
    assert_eq!(json["name"], "web");
}

#[test]
fn adopt_hides_the_values_of_every_env_file() {
    let bench = Bench::new();
    rich(&bench);
    for flags in ["", "--diff"] {
        let run = bench.run(&format!("render web --as adopt {flags}")).code(0);
        run.hides(&["very-secret-value", "other-secret-value"]);
    }
}

/// The arguments of a shell command in a hint.
fn command_in(run: &Run) -> String {
    let (_, command) = run.err.split_once("Latin-1: `").expect("a command");
    command.split_once('`').expect("its end").0.to_owned()
}

#[test]
fn adopt_says_how_to_convert_an_env_file_that_is_not_utf8() {
    let bench = Bench::new();
    rich(&bench);
    let dir = bench.dir("web");
    let render = "render web --as adopt --reveal";
    for file in [".env", "app.env"] {
        let text = fs::read(dir.join(file)).expect("read");
        fs::write(dir.join(file), b"# caf\xe9\nNAME='caf\xe9 au lait'\n").expect("write");
        let run = bench.fails(render, &["is not UTF-8 at byte", "line 1", file]);
        let run = run.hides("au lait");
        let convert = command_in(&run);
        let done = Command::new("/bin/sh").args(["-c", &convert]).status();
        assert!(done.expect("a shell").success(), "{convert}");
        let converted = fs::read_to_string(dir.join(file)).expect("UTF-8");
        assert_eq!(converted, "# caf\u{e9}\nNAME='caf\u{e9} au lait'\n");
        bench.succeeds(render, "caf\u{e9} au lait");
        fs::write(dir.join(file), text).expect("write");
    }
}

#[test]
fn a_diff_on_a_terminal_has_no_escape_sequences() {
    let bench = Bench::new();
    let title = ("\x1b]0;title\x07\u{9b}", r"\u{1b}]0;title\u{7}\u{9b}");
    // The faithful rewrite rejects control characters.
    let direction = ("\u{202e}", r"\u{202e}");
    for (way, (evil, escaped)) in [("literal", title), ("adopt", direction)] {
        let text = format!("services:\n  a:\n    image: x # {evil}\n    volumes: [./d:/d]\n");
        bench.stack("web", &text, None);
        let arguments = ["render", "web", "--diff", "--reveal", "--as", way];
        // A patch is exact.
        let patch = bench.run(&arguments).code(0);
        assert!(patch.out.contains(evil), "{patch:?}");
        let mut inner = bench.command(&arguments);
        let shown = screen(inner.env("TERM", "dumb"), 80);
        assert!(shown.contains(escaped) && !shown.contains(evil), "{shown}");
    }
}

/// A text with a secret in each form of a variable, and a line that each rewrite changes.
const INLINE: &str = "services:
  a:
    image: x
    environment: {PASS: hunter2-a, DIR: ./hunter2-b}
    volumes: [./d:/d]
    env_file: .env
  b:
    image: x
    environment:
      - PASS=hunter2-c
      - URL=x
    build: {context: /b, args: {TOKEN: hunter2-d}}
    command: psql postgres://u:hunter2-e@db/a
    env_file: .env
";

#[test]
fn b34_values_in_the_compose_file_are_masked() {
    let bench = Bench::new();
    bench.stack("web", INLINE, Some("A=1\n"));
    for flags in ["", "--diff", "--diff --color always"] {
        for way in ["literal", "adopt"] {
            let args = format!("render web --as {way} {flags}");
            bench.run(&args).code(0).hides("hunter2");
        }
    }
    let environment = "    environment: {PASS: \"***\", DIR: \"***\"}";
    let old = format!("-{environment}\n-    volumes: [./d:/d]\n");
    let new = format!("+{environment} (value changed)\n");
    bench.succeeds("render web --as migrate --diff", &[old, new]);
    let says = ["PASS=***", "postgres://***@db/a"];
    bench.succeeds("render web --as migrate", &says);
}

/// The `.env` of a stack whose user, password and directory also occur in other words and references of its Compose file.
#[test]
fn b34_what_is_no_value_stays_readable_and_reveal_shows_the_rest() {
    let bench = Bench::new();
    let text = "services:
  postgres:
    image: postgres:16
    container_name: web_postgres
    command: postgres -c dir=/var/lib/postgresql/data --url db://postgres:${PASSWORD}@h
    environment: {POSTGRES_PASSWORD: '${PASSWORD}', TZ: Europe/Berlin}
    volumes: ['${FILES}:/data', ./postgres:/var/lib/postgresql/data]
";
    let env = format!("USER_NAME=postgres\nPASSWORD={MARKED}\nFILES=./library\n");
    let dir = bench.started("web", text, Some(&env));
    let dir = dir.display();
    let note = "*** hides the values of variables: add --reveal to see them\n";
    let shown = [
        "     image: postgres:16\n".to_owned(),
        "     container_name: web_postgres\n".to_owned(),
        "     command: *** -c dir=/var/lib/postgresql/data --url db://***${PASSWORD}@h\n"
            .to_owned(),
        "     environment: {POSTGRES_PASSWORD: '${PASSWORD}', TZ: \"***\"}\n".to_owned(),
        format!("+    volumes: ['{dir}/library:/data', {dir}/postgres:/var/lib/postgresql/data]\n"),
    ];
    for args in ["plan web --diff", "render web --diff"] {
        let run = bench.succeeds(args, note).hides(&[MARKED, "Berlin"]);
        run.says(&shown);
        let run = bench.run(&format!("{args} --reveal")).code(0).hides(note);
        run.says("TZ: Europe/Berlin");
    }
    for flags in ["", "--diff"] {
        let args = format!("render web --as migrate {flags}");
        bench.run(&args).code(0).hides(&[MARKED, "Berlin"]);
    }
    for args in ["plan web --request", "render web"] {
        let run = bench.run(args).code(0).hides(&[MARKED, "Berlin"]);
        run.says(note).says("{POSTGRES_PASSWORD: '${PASSWORD}'");
        let exact = bench.run(&format!("{args} --reveal")).code(0).hides(note);
        let values = exact.json()["env"].to_string();
        assert!(values.contains(MARKED), "{values}");
    }
    fs::remove_dir_all(bench.dir("web")).expect("its text has the value");
}

#[test]
fn b34_reveal_makes_an_exact_patch() {
    let bench = Bench::new();
    let text = INLINE.replace("    build: {context: /b, args: {TOKEN: hunter2-d}}\n", "");
    for way in ["literal", "adopt"] {
        let dir = bench.stack("web", &text, Some("A=hunter2-f\n"));
        let args = ["render", "web", "--as", way, "--reveal"];
        let patch = bench.run(&[&args[..], &["--diff"]].concat()).code(0);
        fs::write(dir.join("patch"), patch.out).expect("a file");
        let sent = bench.run(&args).code(0).json();
        let mut command = Command::new("patch");
        command.args(["-s", "-i", "patch"]).current_dir(&dir);
        assert!(command.status().expect("patch").success());
        let patched = fs::read_to_string(dir.join("docker-compose.yml")).expect("a file");
        assert_eq!(sent["stackFileContent"], patched);
    }
}

#[test]
fn a_refusal_shows_every_place() {
    let text = "services:\n  a:\n    image: x\n    env_file: none.env\n  b:\n    image: x\n    env_file: gone.env\n";
    let bench = Bench::on_disk(text);
    let first = "cannot adopt web: 2 problems\n  1. docker-compose.yml:4: ";
    let second = "\n  2. docker-compose.yml:7: ";
    bench.fails("render web --as adopt", &[first, second]);
    bench.stack("web", "services:\n  a: [x\n", None);
    bench.fails("render web --as adopt", "cannot parse the Compose file");
}

#[test]
fn the_key_is_written_into_no_text() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: x\n    command: \"$STACKMGR_API_KEY\"\n";
    bench.stack("web", text, None);
    let run = bench.run("render web --as adopt --reveal").code(0);
    run.hides(KEY);
}

/// A service with an anonymous volume.
const ANONYMOUS: &str = "services:\n  a:\n    image: x:1\n    volumes: [/cache]\n";

#[test]
fn adopt_shows_what_adopt_sends_because_of_what_runs() {
    for flags in ["", "--keep-variables"] {
        let bench = Bench::web(&format!("{ANONYMOUS}    environment: [B]\n"));
        bench.change_container("web-a-1", |one| {
            let variables = one.config["Env"].as_array_mut();
            variables.expect("a list").push("B=other-shell".into());
        });
        let render = format!("render web --as adopt --reveal {flags}");
        let rendered = bench.without_key(&render).code(0);
        assert!(bench.nothing_was_changed());
        assert_eq!(rendered.out.contains("other-shell"), !flags.is_empty());
        assert!(rendered.out.contains("external"), "{rendered:?}");
        if flags.is_empty() {
            bench.fails("adopt web", "--keep-variables");
            continue;
        }
        let adopt = format!("adopt web --wait 2s {flags}");
        bench.run(&adopt).code(0);
        let sent = &bench.calls(Call::Create)[0].body;
        assert_eq!(rendered.out.as_bytes(), sent);
    }
}

#[test]
fn adopt_needs_no_portainer_and_says_what_it_could_not_read() {
    let bench = Bench::web(ANONYMOUS);
    let args = "render web --as adopt --diff";
    let run = bench.without_key(args).code(0);
    assert!(run.out.contains("external"), "{run:?}");
    run.hides("cannot read");
    let requests = bench.requests();
    assert!(requests.iter().all(|one| one.peer == Peer::Engine));
    let warning = "cannot read the containers of web, so this does not show what `adopt` adds because of them: names for anonymous volumes";
    let run = bench
        .without_engine(args)
        .succeeds(&[warning, "/absent/engine.sock"]);
    assert_eq!(run.err.matches("warning").count(), 1);
    run.prints("");
    let says = "`--keep-variables` cannot be used with `--as migrate`";
    bench.fails("render web --as migrate --keep-variables", says);
}
