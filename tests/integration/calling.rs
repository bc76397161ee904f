//! C01–C11: how the program is called.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use crate::{
    bench::{Bench, KEY, PLAIN, Run, write_private},
    screen::screen,
};

/// C01: the recommended order, lowest impact first.
const EXAMPLES: &str = "proxy-chain imgproxy minio mongo books-db elasticsearch";

#[test]
fn c01_the_stack_name_is_required() {
    let bench = Bench::new();
    let run = bench.fails("", "the stack name is required");
    let places = EXAMPLES
        .split(' ')
        .map(|name| run.err.find(name).expect(name));
    assert!(places.is_sorted(), "lowest impact first: {}", run.err);
    // The help comes first.
    let help = bench.run("-h").code(0).out;
    assert!(run.err.starts_with(&help), "{}", run.err);
}

#[test]
fn c02_the_key_is_required() {
    let bench = Bench::on_disk(PLAIN);
    let empty = bench.run_with("web", "STACKMGR_API_KEY", "");
    for run in [empty, bench.without_key("web")] {
        run.fails("STACKMGR_API_KEY is required");
    }
    assert!(bench.backups("web").is_empty());
    assert!(bench.requests().is_empty());
}

#[test]
fn c02_the_key_can_be_in_a_file() {
    let bench = Bench::web(PLAIN);
    let file = bench.root().join("key");
    write_private(&file, &format!("{KEY}\nsecond line\n"));
    let mut command = bench.command("web");
    command
        .env_remove("STACKMGR_API_KEY")
        .env("STACKMGR_API_KEY_FILE", &file);
    Run::of(&mut command).code(0);
    // An empty variable is an error: the file replaces only an unset one.
    command.env("STACKMGR_API_KEY", "");
    Run::of(&mut command).fails("STACKMGR_API_KEY is required");
    fs::write(&file, "\n").expect("a key file");
    command.env_remove("STACKMGR_API_KEY");
    Run::of(&mut command).fails("is empty");
}

#[test]
fn c03_exit_codes() {
    let bench = Bench::web(PLAIN);
    for (args, code) in [
        ("web", 0),
        ("absent", 1),
        ("web --no-such-flag", 2),
        ("web --endpoint one", 2),
        ("web mail", 2),
        ("--version", 0),
        ("--help", 0),
        ("help", 0),
        ("help render", 0),
        ("help no-such-command", 2),
    ] {
        bench.run(args).code(code);
    }
}

#[test]
fn c04_checks_in_the_seeds_order() {
    let bench = Bench::new();
    for (args, says) in [
        ("", "the stack name is required"),
        ("traefik", "STACKMGR_API_KEY is required"),
    ] {
        bench.without_key(args).fails(says);
    }
    bench.fails("traefik", "refusing");
    let dir = bench.dir("web");
    let missing = format!("no stack named web: {} does not exist\n", dir.display());
    bench.fails("web", &missing);
    fs::create_dir(&dir).expect("a directory");
    let says = ["the Compose file", "docker-compose.yml is not a file"];
    bench.fails("web", &says);
    assert!(bench.requests().is_empty());
    assert_eq!(fs::read_dir(&dir).expect("read").count(), 0);
}

#[test]
fn c05_the_management_plane_is_refused() {
    let bench = Bench::new();
    for name in ["traefik", "portainer", "Traefik", "PORTAINER", "Port.ainer"] {
        bench.started(name, PLAIN, None);
        for command in ["", "migrate ", "--force ", "adopt ", "plan "] {
            let says = format!("refusing to move {name}");
            bench.fails(&format!("{command}{name}"), &says);
        }
        assert!(bench.backups(name).is_empty());
    }
    // Neither the key file nor the settings are read.
    let mut command = bench.command("traefik");
    command
        .env_remove("STACKMGR_API_KEY")
        .env("STACKMGR_API_KEY_FILE", "/no/such/file")
        .env("STACKLIFT_ENDPOINT", "not a number");
    Run::of(&mut command).fails("refusing to move traefik");
    assert!(bench.requests().is_empty());
}

#[test]
fn c06_the_directory_must_exist() {
    let bench = Bench::new();
    let dir = bench.dir("web");
    let shown = dir.to_str().expect("UTF-8");
    let root = bench.root().display();
    let expected = format!(
        "error: there is no stack named web: {root}/web does not exist\nhint: looked in {root}; pass --stacks-root, or --dir for this stack only\n"
    );
    assert_eq!(bench.run("web").code(1).err, expected);
    fs::write(&dir, "a file").expect("a file");
    bench.fails("web", &["is not a directory", shown]);
    assert!(bench.requests().is_empty());
    bench.run("plan web --output json").code(1).prints("");
}

#[test]
fn c07_the_compose_file_must_exist() {
    let bench = Bench::new();
    fs::create_dir_all(bench.dir("web").join("docker-compose.yml")).expect("a directory");
    let file = bench.dir("web").join("docker-compose.yml");
    bench.fails("web", &["is not a file", file.to_str().expect("UTF-8")]);
    bench.fails("web --file x.yml", "x.yml is not a file");
    assert!(bench.requests().is_empty());
}

#[test]
fn c07_every_usual_name_is_found_after_that_of_the_tool() {
    let bench = Bench::new();
    // From the last one that is found to the first.
    let names = "docker-compose.yaml compose.yml compose.yaml docker-compose.yml";
    for name in names.split(' ') {
        let text = format!("{PLAIN}# {name}\n");
        fs::create_dir_all(bench.dir("web")).expect("a directory");
        fs::write(bench.dir("web").join(name), &text).expect("a file");
        for command in ["", "migrate "] {
            bench.forget_requests();
            bench.run(&format!("{command}web")).code(0);
            assert_eq!(bench.sent_text(), text, "{command}");
        }
    }
}

#[test]
fn c07_file_names_the_compose_file_everywhere() {
    let bench = Bench::new();
    let dir = bench.stack("web", "services: {}\n", None);
    fs::write(dir.join("compose.yaml"), PLAIN).expect("a file");
    bench.run("web --file compose.yaml").code(0);
    assert_eq!(bench.sent_text(), PLAIN);
    let backups = bench.backups("web");
    let name = backups[0].file_name().expect("a name").to_string_lossy();
    assert!(name.starts_with("compose.yaml.bak-pre-stackmgr-migration-"));
    for bad in ["../x.yml", "/etc/passwd", "a/b", "", ".."] {
        bench.run(&["web", "--file", bad]).code(2);
    }
}

#[test]
fn c08_the_banner() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    let run = bench.run("web").code(0);
    let banner = run.out.lines().next().expect("a line");
    for word in ["web", dir.to_str().expect("UTF-8"), "environment 1"] {
        assert!(banner.contains(word), "{banner}");
    }
}

#[test]
fn c09_flag_before_environment_before_file() {
    let bench = Bench::new();
    bench.world(|world| {
        for id in 2..=4 {
            // Environments of this host's engine, which B03 allows.
            world.add_endpoint(id, "more");
            let engine = world.engine.clone();
            world.endpoints.get_mut(&id).expect("it").engine = engine;
        }
    });
    bench.stack("web", PLAIN, None);
    let config = bench.root().join("config");
    fs::create_dir(&config).expect("a folder");
    let file = config.join("stacklift.toml");
    fs::write(&file, "endpoint = 2\n").expect("settings");
    for (args, variable, expected) in [
        ("web --endpoint 4", Some("3"), 4),
        ("--endpoint 4 migrate web", Some("3"), 4),
        ("web", Some("3"), 3),
        ("web", None, 2),
        ("web", None, 1),
    ] {
        bench.forget_requests();
        if expected == 1 {
            fs::remove_file(&file).expect("removed");
        }
        let mut command = bench.command(args);
        command
            .env("XDG_CONFIG_HOME", &config)
            .envs(variable.map(|endpoint| ("STACKLIFT_ENDPOINT", endpoint)));
        Run::of(&mut command).code(0);
        let path = format!("/api/stacks/create/standalone/string?endpointId={expected}");
        assert_eq!(bench.calls(testbed::Call::Create)[0].path, path);
        bench.world(|world| world.records.clear());
    }
}

/// Its ID is needed next, and takes a real engine 5 ms.
#[test]
fn the_engine_is_asked_for_its_id_while_portainer_lists_the_stacks() {
    let bench = Bench::on_disk(PLAIN);
    let base = format!("{}/not/it", bench.base_url());
    bench.run(&["web", "--base-url", &base]).code(1);
    let ids = |bench: &Bench| {
        let requests = bench.requests();
        let all = requests.iter().filter(|one| one.path.ends_with("/info"));
        all.count()
    };
    assert_eq!(ids(&bench), 1);
    bench.forget_requests();
    bench.run("web").code(0);
    assert_eq!(ids(&bench), 1);
}

#[test]
fn c09_the_base_url_keeps_its_path_and_needs_a_scheme() {
    let bench = Bench::on_disk(PLAIN);
    for end in ["", "/", "//"] {
        bench.forget_requests();
        let base = format!("{}/under/it{end}", bench.base_url());
        bench.run(&["web", "--base-url", &base]).code(1);
        let requests = bench.requests();
        let mut paths = requests.iter().map(|one| one.path.as_str());
        assert!(paths.any(|path| path == "/under/it/api/stacks"));
    }
    let bad = "localhost:9443 http://manager.example ftp://x https://u:p@h //localhost https:///x https://h:70000 \
        https://[::1 https://h/?x file:///etc/passwd";
    for bad in bad.split(' ').chain([""]) {
        bench.run(&["web", "--base-url", bad]).code(2);
    }
}

#[test]
fn c09_dir_is_the_stacks_directory() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: x\n    volumes: [./d:/d]\n";
    let dir = bench.stack("elsewhere", text, None);
    let shown = dir.to_str().expect("UTF-8");
    bench.run(&["web", "--dir", shown]).code(0);
    assert_eq!(bench.sent()["name"], "web");
    assert!(bench.sent_text().contains(&format!("[{shown}/d:/d]")));
}

#[test]
fn c10_one_stack_a_run() {
    let bench = Bench::web(PLAIN);
    bench.started("mail", PLAIN, None);
    bench.run("web mail").code(2);
    assert!(bench.requests().is_empty());
}

#[test]
fn c11_invalid_names() {
    let bench = Bench::new();
    for name in [
        "",
        ".",
        "..",
        ".hidden",
        "../web",
        "a/b",
        "/etc",
        "a\\b",
        "a..b",
        "a\nb",
        "a\u{7f}",
        "a\u{9b}31m",
    ] {
        bench.fails(&["migrate", name], "is not a stack name");
    }
    bench.fails("-- -web", "starts with a hyphen");
    Run::of(bench.command("").arg(OsStr::from_bytes(b"a\xff"))).fails("it is not UTF-8");
    assert!(bench.requests().is_empty());
}

/// The short help on a terminal of this width.
fn short_help(bench: &Bench, command: &str, columns: u16) -> String {
    let args = format!("{command} -h");
    screen(bench.command(args.trim()).env("NO_COLOR", "1"), columns)
}

#[test]
fn the_short_help_is_one_screen() {
    let bench = Bench::new();
    assert_eq!(
        short_help(&bench, "", 80),
        "\
Moves a running Compose stack into Portainer

Usage: stacklift [OPTIONS] <COMMAND>
       stacklift [OPTIONS] <STACK>   the same as `stacklift migrate <STACK>`

Commands:
  plan         Show what adopting a stack would do
  adopt        Move a running stack into Portainer
  restore      Roll back a stack to a snapshot
  list         List every stack, and what adopting it would interrupt
  doctor       Check everything that the other commands need
  config       Show the settings; `config init` writes them
  export       Export a Portainer stack as compose.yaml and .env
  rehearse     Try it with a simulated Portainer and Docker
  migrate      Stop a stack and recreate it in Portainer
  completions  Print a completion script for a shell
  help         Print this message or the help of the given subcommand(s)

Options:
  -q, --quiet    Print only warnings and errors
  -v, --verbose  Print each request, and errors in full
  -h, --help     Print help (see more with '--help')
  -V, --version  Print version

stacklift <COMMAND> -h   the flags of a command
stacklift --help         examples, settings files, variables and exit codes
"
    );
    for flag in ["--dry-run", "--git <URL>", "--access <WHO>"] {
        assert!(short_help(&bench, "adopt", 80).contains(flag), "{flag}");
    }
    let help = short_help(&bench, "", 80);
    for line in help.lines().filter_map(|line| line.strip_prefix("  ")) {
        let command = line.split(' ').next().unwrap_or_default();
        if !command.is_empty() && !command.starts_with('-') && command != "help" {
            let lines = short_help(&bench, command, 80).lines().count();
            assert!(lines <= 26, "{command}: {lines} lines");
        }
    }
}

#[test]
fn near_names_are_suggested() {
    let bench = Bench::new();
    for name in ["books-db", "mail", "Web"] {
        bench.stack(name, PLAIN, None);
    }
    for (typed, word, near) in [
        ("migrat web", "migrat", "migrate"),
        ("adpot web --yes", "adpot", "adopt"),
        ("adpot --all", "adpot", "adopt"),
        ("lst --output json", "lst", "list"),
    ] {
        let error = format!("error: unrecognized subcommand '{word}'\n");
        let tip = format!("tip: a similar subcommand exists: '{near}'\n");
        bench.rejects(typed, &[error, tip]);
    }
    let says = [
        "error: no API key ",
        "hint: did you mean `stacklift list`?\n",
    ];
    bench.without_key("lst").fails(&says);
    // What other programs call it.
    bench.without_key("status").fails(&says);
    bench.fails("version", "hint: did you mean `stacklift --version`?");
    bench.rejects("plan", "tip: `stacklift list` shows the stacks");
    let unknown = "unexpected argument '--everything' found";
    bench.rejects("plans --everything", unknown);
    bench.fails("migrat", "did you mean `stacklift migrate`?");
    for (typed, meant) in [("book-db", "books-db"), ("web", "Web"), ("mial", "mail")] {
        bench.fails(&[typed], &format!("did you mean {meant}?"));
    }
    bench.run("zzz").code(1).hides("did you mean");
    for path in [".", "./", "../Web", "/opt/stacks/Web/"] {
        let mut plan = bench.command(&["plan", path]);
        Run::of(plan.current_dir(bench.dir("Web"))).fails("hint: did you mean Web?\n");
    }
    bench.rejects("--yes render mail", "after the command");
    assert!(bench.requests().is_empty());
}

#[test]
fn a_variable_that_is_not_utf8_is_not_replaced_by_the_default() {
    let bench = Bench::new();
    let not_utf8 = OsStr::from_bytes(b"/\xff.pem");
    for variable in ["STACKLIFT_TLS", "STACKLIFT_STACKS_ROOT"] {
        let run = bench.run_with("web", variable, not_utf8);
        run.fails(&format!("{variable} is not valid UTF-8"));
    }
    assert!(bench.requests().is_empty());
}
