//! `stacklift export --from containers`.

use std::fs;

use crate::bench::{Bench, MARKED, PLAIN, mode};

const TEXT: &str = "services:
  a:
    image: busybox:1.36
    environment:
      API_TOKEN: ${TOKEN}
      PRICE: 5$$
    ports: ['8080:80']
    volumes: [data:/data]
volumes:
  data: {}
";

#[test]
fn containers_become_two_files() {
    let bench = Bench::new();
    let dir = bench.started("web", TEXT, Some(&format!("TOKEN={MARKED}\n")));
    fs::remove_dir_all(dir).expect("the directory");
    let to = bench.root().join("out/web");
    let shown = to.display();
    let args = format!("export web --from containers --to {shown}");
    let run = bench.run(&args).code(0).hides(MARKED);
    let expected = format!(
        "exported web to {shown}: compose.yaml and .env, 1 variable
  =  a  an adoption keeps its container
next: check the files, then run: stacklift adopt web --dir {shown}
"
    );
    run.prints(expected);
    let text = fs::read_to_string(to.join("compose.yaml")).expect("a file");
    let expected = "name: web
x-stacklift: \"from containers\"
services:
  a:
    image: \"busybox:1.36\"
    environment:
      API_TOKEN: \"${API_TOKEN}\"
      PRICE: \"5$$\"
    ports:
      - \"8080:80\"
    volumes:
      - \"data:/data\"
volumes:
  data: {}
";
    assert_eq!(text, expected);
    let env = fs::read_to_string(to.join(".env")).expect("a file");
    assert_eq!(env, format!("API_TOKEN={MARKED}\n"));
    for name in ["compose.yaml", ".env"] {
        assert_eq!(mode(to.join(name)), 0o600, "{name}");
    }
    assert!(bench.nothing_was_changed());
    bench.fails(&args, &["cannot export into", "the directory is not empty"]);
}

/// A stack whose Compose file is lost is adopted from the written file, although its containers were started elsewhere.
#[test]
fn a_written_file_replaces_a_lost_one() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    let to = bench.root().join("out/web");
    let shown = to.display();
    let export = format!("export web --from containers --to {shown}");
    let own = dir.display();
    let over = format!("export web --to {own} --force --from containers");
    bench.run(&export).succeeds(&format!(
        "next: check the files, then write them over your Compose file, of which a copy stays: stacklift {over}\n"
    ));
    let elsewhere = "containers of project web were started in";
    let plan = format!("plan web --dir {shown}");
    bench.run(&plan).says(elsewhere);
    // The commands work as printed.
    bench.run(&over).succeeds(&[
        "docker-compose.yml is now docker-compose.yml.old",
        "next: check the files, then run: stacklift adopt web\n",
    ]);
    bench.run("adopt web").code(0);
    bench.world(|world| world.records.clear());
    fs::remove_dir_all(dir).expect("the directory");
    let run = bench.run(&plan).code(0);
    run.hides(&[elsewhere, "another directory"]);
}

#[test]
fn what_cannot_be_written_is_refused() {
    let bench = Bench::web(PLAIN);
    let gone =
        "nope has no containers on this host: without them, its Compose file cannot be written";
    bench.fails("export nope --from containers", gone);
    let mut two = bench.container("web-a-1");
    two.id = "f".repeat(64);
    two.name = "web-a-2".to_owned();
    let hash = "com.docker.compose.config-hash".to_owned();
    two.labels.insert(hash, "other".to_owned());
    bench.world(|world| world.containers.insert(two.id.clone(), two));
    let differ = "the containers of service a have different settings";
    bench.fails("export web --from containers", differ);
    assert!(!bench.home().join("web").exists());
}

#[test]
fn commands_without_a_compose_file_name_the_export() {
    let bench = Bench::new();
    let dir = bench.started("web", PLAIN, None);
    let export = format!(
        "stacklift export web --to {} --from containers",
        dir.display()
    );
    fs::remove_file(dir.join("docker-compose.yml")).expect("the file");
    let file = dir.join("docker-compose.yml");
    let missing = format!(
        "error: web was started from {}, which does not exist\n",
        file.display()
    );
    let fails = || {
        for args in ["plan web", "adopt web"] {
            bench.fails(args, &[&missing, &export]);
        }
    };
    fails();
    fs::remove_dir_all(dir).expect("the directory");
    fails();
    let row = format!("web    1/1         orphaned  no Compose file: {export}\n");
    bench.succeeds("list", &row);
    // Not into the stacks root itself.
    let root = bench.root().to_str().expect("UTF-8");
    bench.label("project.working_dir", root);
    fails();
    let files = format!("{root}/a.yml,{root}/b.yml");
    bench.label("project.config_files", &files);
    let are_missing = format!("from {root}/a.yml and {root}/b.yml, which do not exist\n");
    bench.fails("plan web", &[&are_missing, &export]);
}

/// The files are worth having without a hash, and what Compose says of them shows no value.
#[test]
fn b13_a_compose_program_that_fails_does_not_prevent_the_files() {
    let bench = Bench::with_env(TEXT, &format!("TOKEN={MARKED}\n"));
    let fails = "[ \"$1\" = version ] && { echo 2.26.1; exit; }
        echo \"invalid: $(sed -n 's/ *API_TOKEN: *//p' docker-compose.yml)\" >&2
        exit 15\n";
    bench.script("docker-compose", fails);
    let run = bench.run("export web --from containers").code(0);
    run.says(&[
        "?  a  unknown whether an adoption keeps it",
        "warning: `docker-compose config` rejects every file (exit status: 15): invalid: ",
    ])
    .hides(MARKED);
    assert!(bench.home().join("web/compose.yaml").exists());
}
