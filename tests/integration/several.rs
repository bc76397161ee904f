//! A directory below that of the stack. Transcripts show all other stacks of several files, and the oracle compares what they mean.

use std::{fs, process::Command};

use crate::bench::{Bench, Run};

/// The binary with a `docker-compose` that is this script.
fn with_compose(bench: &Bench, args: &str, script: &str) -> Command {
    let bin = bench.script("docker-compose", script);
    let mut command = bench.command(args);
    command.env("PATH", bench.path(&[&bin]));
    command
}

/// The binary with the real program.
fn with_real_compose(bench: &Bench, args: &str) -> Command {
    let program = std::env::var("STACKLIFT_TEST_COMPOSE").expect("STACKLIFT_TEST_COMPOSE");
    with_compose(bench, args, &format!("exec {program} \"$@\"\n"))
}

/// The text below `docker` in the directory of `web`, and the variables that it needs.
const BELOW: &str = "services:\n  a:\n    image: busybox:1.36\n    labels: {host: 'is ${DOMAIN}'}\n    volumes: ['${DATA:-./data}:/data']\n";
const VARIABLES: &str = "COMPOSE_FILE=docker/compose.yaml\nDOMAIN=example.test\nDATA=./important\n";

/// The stack `web`, whose Compose file is in `docker`, and which was started in this directory below its own.
fn started_below(below: &str) -> Bench {
    let bench = Bench::new();
    let (dir, file) = (
        bench.dir("web"),
        bench.dir("web").join("docker/compose.yaml"),
    );
    let from = dir.join(below);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(&file, BELOW).expect("a file");
    fs::write(dir.join(".env"), VARIABLES).expect("a file");
    fs::create_dir(from.join("important")).expect("a folder");
    let [from, file] =
        [&from, &file].map(|path| path.to_str().expect("UTF-8").trim_end_matches('/'));
    let (_, name) = file.split_at(from.len() + 1);
    bench.world(|world| {
        world.add_stack(from, [(name, BELOW), (".env", VARIABLES)]);
        world
            .start_by_hand("web", from, &[file])
            .expect("a stack that starts");
    });
    bench
}

/// Compose reads the `.env` of a parent directory that names the files, and then calls the directory of the first one the
/// project's.
#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn the_env_file_of_a_parent_directory_that_names_the_files_is_read() {
    for own in [None, Some("DOMAIN=other.test\nDATA=./other\n")] {
        let bench = started_below("docker");
        if let Some(own) = own {
            fs::write(bench.dir("web").join("docker/.env"), own).expect("a file");
        }
        let program = std::env::var("STACKLIFT_TEST_COMPOSE").expect("STACKLIFT_TEST_COMPOSE");
        let mut compose = Command::new("sh");
        compose.args(["-c", &format!("exec {program} -p web config --hash a")]);
        let printed = compose
            .current_dir(bench.dir("web"))
            .output()
            .expect("hashes");
        let printed = String::from_utf8(printed.stdout).expect("UTF-8");
        let hash = printed.trim().strip_prefix("a ").expect("a hash");
        bench.label("config-hash", hash);
        let plan = Run::of(&mut with_real_compose(&bench, "plan web")).code(0);
        plan.says("Adopting it loses nothing and interrupts nothing.");
        let sent = Run::of(&mut with_real_compose(&bench, "render web --as adopt"));
        sent.code(0).says("/docker/important").hides("/docker/data");
    }
}
