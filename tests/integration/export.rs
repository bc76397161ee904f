//! `stacklift export`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;
use testbed::Variable;

use crate::bench::{Bench, MARKED, PLAIN, Run, mode};

/// What an adoption sends for a stack with an env file.
const TEXT: &str = "\
# A web server
services:
  a:
    image: busybox:1.36
    env_file: stack.env
    volumes:
      - /srv/web:/data
";

/// A Portainer stack with this text and these variables. Returns its ID.
fn record(bench: &Bench, name: &str, text: &str, env: &[(&str, &str)]) -> u64 {
    let id = bench.record(name, 1);
    bench.world(|world| {
        let record = world.records.get_mut(&id).expect("it");
        text.clone_into(&mut record.text);
        let env = env.iter().map(|(name, value)| Variable {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        });
        record.env = Some(env.collect());
    });
    id
}

/// Exports into a directory of the bench. Returns the directory as well.
fn export(bench: &Bench, more: &str) -> (Run, PathBuf) {
    let to = bench.root().join("out/web");
    let args = format!("export web --to {} {more}", to.display());
    (bench.run(&args), to)
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).expect("a file")
}

#[test]
fn a_stack_becomes_two_files() {
    let bench = Bench::new();
    let env = [("TOKEN", MARKED), ("B", "'x # y'")];
    record(&bench, "web", TEXT, &env);
    let (run, dir) = export(&bench, "");
    let run = run.code(0);
    let shown = dir.display().to_string();
    let expected = format!("exported web to {shown}: compose.yaml and .env, 2 variables\n");
    run.prints(expected);
    assert_eq!(run.err, "");
    assert_eq!(
        read(&dir, "compose.yaml"),
        format!("# A web server\nname: \"web\"\n{}", &TEXT[15..]).replace("stack.env", ".env")
    );
    assert_eq!(read(&dir, ".env"), format!("TOKEN={MARKED}\nB='x # y'\n"));
    let modes = ["compose.yaml", ".env"].map(|name| mode(dir.join(name)));
    assert_eq!(modes, [0o600, 0o600]);
    // Only these requests: the engine and the containers are not asked.
    assert_eq!(
        bench.journal(),
        [
            "Portainer GET /api/stacks",
            "Portainer GET /api/stacks/1",
            "Portainer GET /api/stacks/1/file"
        ]
    );
    assert_eq!(fs::read_dir(&dir).expect("it").count(), 2);
    assert!(!bench.state().exists());
}

const USER: &str = "ptr_user-key-99d2";

#[test]
fn a_user_who_may_not_see_every_stack_is_told() {
    let bench = Bench::new();
    record(&bench, "web", PLAIN, &[]);
    bench.world(|world| world.add_user(USER, "somebody"));
    let as_user = |args: &str| bench.run_with(args, "STACKMGR_API_KEY", USER);
    as_user("export web").fails("found no Portainer stack named web on environment 1\nhint: the API key does not belong to an administrator, so Portainer may not list every stack:");
    let to = bench.root().join("out");
    as_user(&format!("export --all --to {}", to.display()))
        .succeeds("stacks that its user may not see are not exported");
}

#[test]
fn other_files_are_replaced_only_with_force() {
    let bench = Bench::new();
    record(&bench, "web", PLAIN, &[]);
    let (_, dir) = export(&bench, "");
    let (run, _) = export(&bench, "");
    run.fails(&["the directory is not empty", "--force"]);
    // The directory of the stack itself may be the default.
    bench.rejects("export web --force", "--to <DIR>");
    fs::write(dir.join("notes.txt"), "mine").expect("a file");
    fs::write(dir.join("compose.yaml"), "old").expect("a file");
    let earlier = "the earlier compose.yaml is now compose.yaml.old";
    export(&bench, "--force").0.succeeds(earlier);
    assert!(read(&dir, "compose.yaml").starts_with("name: \"web\"\n"));
    assert_eq!(read(&dir, "compose.yaml.old"), "old");
    export(&bench, "--force").0.code(0).hides(earlier);
    fs::write(dir.join("compose.yaml"), "new").expect("a file");
    export(&bench, "--force").0.succeeds(&format!("{earlier}2"));
    assert_eq!(read(&dir, "compose.yaml.old"), "old");
    assert_eq!(read(&dir, "notes.txt"), "mine");
    fs::write(dir.join("compose.override.yaml"), "services: {}").expect("a file");
    let (run, _) = export(&bench, "--force");
    run.fails("Compose would merge its compose.override.yaml");
}

#[test]
fn the_stacks_root_has_one_directory_for_a_stack() {
    let bench = Bench::new();
    record(&bench, "web", PLAIN, &[]);
    let root = bench.root();
    let to = |name: &str| format!("export web --to {}", root.join(name).display());
    let run = bench.run(&to("copy")).code(1);
    let shown = root.display();
    assert_eq!(
        run.err,
        format!(
            "error: cannot export into {shown}/copy: in the stacks root, the directory of web must have its name
hint: pass --to {shown}/web, or a directory outside {shown}\n"
        )
    );
    assert!(!root.join("copy").exists());
    bench.run(&to("web")).code(0);
    // Compose reads only one of two Compose files.
    let file = root.join("web/compose.yaml");
    fs::rename(&file, root.join("web/docker-compose.yml")).expect("it");
    bench.run(&(to("web") + " --force")).code(0);
    assert!(!file.exists());
}

#[test]
fn m12_paths_in_portainers_folder_are_named() {
    let bench = Bench::new();
    let text = format!("{PLAIN}    volumes: [\"./data:/data\"]\n");
    record(&bench, "web", &text, &[("COMPOSE_FILE", "x.yml")]);
    let (run, dir) = export(&bench, "");
    let run = run.succeeds("     note line 5 differs from the file in Portainer, where it depends on /data/compose/1 or Portainer's container\n     note COMPOSE_FILE is left out of .env: it has no effect in Portainer\n");
    run.says("warning: the stack uses paths in Portainer's directory: move that data");
    assert!(read(&dir, "compose.yaml").contains("\"/data/compose/1/data:/data\""));
    assert!(!dir.join(".env").exists(), "it has no variables");
}

#[test]
fn what_cannot_mean_the_same_is_refused() {
    let bench = Bench::new();
    let text = format!("include: [other.yml]\n{PLAIN}");
    record(&bench, "web", &text, &[]);
    let (run, dir) = export(&bench, "");
    run.fails("error: cannot export web: its Compose file would mean something else outside Portainer\n  - line 1: ");
    assert!(!dir.exists());
    let says = "found no Portainer stack named other on environment 1";
    bench.fails("export other", says);
}

#[test]
fn all_stacks_are_exported_and_one_failure_does_not_stop_the_others() {
    let bench = Bench::new();
    record(&bench, "one", PLAIN, &[]);
    record(&bench, "../two", PLAIN, &[]);
    record(&bench, "web", "services: [", &[]);
    record(&bench, "zoo", PLAIN, &[("TOKEN", MARKED)]);
    bench.record("elsewhere", 2);
    let to = bench.root().join("out");
    let all = format!("export --all --to {}", to.display());
    bench.fails(
        &all,
        &[
            "exported one to ",
            "error: stack ../two: \"../two\" is not a stack name",
            "error: stack web: cannot export web",
            "exported zoo to ",
            "warning: failed to export 2 of 4 stacks",
        ],
    );
    assert!(to.join("one").is_dir() && to.join("zoo").is_dir());
    assert_eq!(fs::read_dir(&to).expect("it").count(), 2);
    // The report says both.
    let json = format!(
        "export --all --to {} --output json",
        to.with_file_name("json").display()
    );
    let report = bench.run(&json).code(1).report("export");
    let dir = to.with_file_name("json").join("zoo");
    let zoo = json!({"stack": "zoo", "dir": dir, "files": [".env", "compose.yaml"], "variables": 1, "notes": [], "error": null});
    assert_eq!(report["stacks"][3], zoo);
    let why = report["stacks"][1]["error"].as_str().expect("an error");
    assert!(why.starts_with("\"../two\" is not a stack name"), "{why}");
    assert!(bench.nothing_was_changed());
}

/// Labels the containers of `web` as started from these files of its directory.
fn start_from(bench: &Bench, files: &[&str]) -> PathBuf {
    let dir = bench.started("web", PLAIN, None);
    for name in [
        "compose.yaml",
        "compose.yml",
        "docker-compose.yaml",
        "docker-compose.yml",
    ] {
        fs::remove_file(dir.join(name)).ok();
    }
    let paths: Vec<String> = files
        .iter()
        .map(|file| {
            fs::write(dir.join(file), PLAIN).expect("a file");
            format!("{}/{file}", dir.display())
        })
        .collect();
    bench.label("project.config_files", &paths.join(","));
    dir
}

#[test]
fn the_file_that_a_stack_was_started_from_is_replaced() {
    let bench = Bench::new();
    let dir = start_from(&bench, &["prod.yml"]);
    bench.run("adopt web --wait 2s").code(0);
    let args = format!("export web --to {} --force", dir.display());
    bench.succeeds(&args, "prod.yml");
    assert_eq!(read(&dir, "prod.yml"), format!("name: \"web\"\n{PLAIN}"));
    assert!(!dir.join("compose.yaml").exists());
    bench.succeeds("plan web", "up to date");
}

#[test]
fn several_files_that_a_stack_was_started_from_are_not_replaced() {
    let bench = Bench::new();
    let dir = start_from(&bench, &["base.yml", "prod.yml"]);
    bench.record("web", 1);
    let args = format!("export web --to {} --force", dir.display());
    let says = "web was started from base.yml and prod.yml, and would still be read from there\n";
    bench.fails(&args, says);
    assert_eq!(read(&dir, "base.yml"), PLAIN);
}

#[test]
fn the_directory_of_another_stack_is_not_overwritten() {
    let bench = Bench::new();
    let other = bench.started("zoo", PLAIN, Some("A=1\n"));
    bench.record("web", 1);
    let args = format!("export web --to {} --force", other.display());
    bench.fails(&args, "is the directory of the stack zoo");
    assert_eq!(read(&other, ".env"), "A=1\n");
}
