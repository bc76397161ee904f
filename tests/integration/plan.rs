//! `stacklift plan` and `--dry-run`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::SystemTime,
};

use rehearsal::{Era, config_hash};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, MARKED, PLAIN, Run, Texts, copy_program, write_script},
    terminal::screen,
};

/// Two services that depend on each other, with a variable and an anonymous volume.
const TWO: &str = "\
services:
  db:
    image: busybox:1.36
    command: sleep 1000
    env_file: .env
    volumes: [/cache]
  app:
    image: busybox:1.36
    command: sleep 1000
    depends_on: [db]
    stop_grace_period: 3s
";

/// The config hash of each service of the stack `web`, as its containers have it.
pub fn labeled(bench: &Bench) -> BTreeMap<String, String> {
    bench.world(|world| {
        let label = |name: &str| format!("com.docker.compose.{name}");
        let containers = world.project("web").into_iter();
        containers
            .map(|one| {
                let of = |name: &str| one.labels[&label(name)].clone();
                (of("service"), of("config-hash"))
            })
            .collect()
    })
}

/// Runs the program with a Compose 2.26.1 that reads services of these hashes, on disk and in what is sent.
pub fn with_hashes<'a>(
    bench: &Bench,
    args: impl Texts<'a>,
    hashes: &BTreeMap<String, String>,
) -> Run {
    bench.run_with(args, "PATH", path_with_hashes(bench, hashes))
}

/// The `PATH` with such a Compose.
fn path_with_hashes(bench: &Bench, hashes: &BTreeMap<String, String>) -> OsString {
    path_with_config(bench, &printed(&json!(configs(bench, hashes))))
}

/// The `PATH` with a Compose 2.26.1 that prints this configuration.
fn path_with_config(bench: &Bench, config: &Value) -> OsString {
    path_with_version(bench, "2.26.1", config)
}

/// The `PATH` with a Compose of a version that prints this configuration.
fn path_with_version(bench: &Bench, version: &str, config: &Value) -> OsString {
    let bin = bench.programs();
    let file = bin.join("config.json");
    fs::write(&file, config.to_string()).expect("a file");
    write_script(
        &bin.join("docker-compose"),
        &format!(
            "[ \"$1\" = version ] && {{ echo {version}; exit; }}\ncat '{}'\n",
            file.display()
        ),
    );
    bench.path(&[bin])
}

/// What Compose prints of the stack `web` with these services.
pub fn printed(services: &Value) -> Value {
    json!({ "name": "web", "services": services })
}

/// What Compose prints of each service with this hash. One that no container has is another one.
pub fn configs(bench: &Bench, hashes: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let labels = labeled(bench);
    bench.world(|world| {
        let config = |hash: &String| world.configs.0.get(hash).cloned();
        let other = |service: &String, hash: &String| {
            let mut other = labels.get(service).and_then(config).unwrap_or_default();
            other["labels"] = json!({ "other": hash });
            other
        };
        let services = hashes.iter();
        let services = services.map(|(service, hash)| {
            let config = config(hash).unwrap_or_else(|| other(service, hash));
            let doubled = config.to_string().replace('$', "$$");
            let printed = serde_json::from_str(&doubled).expect("JSON");
            (service.clone(), printed)
        });
        services.collect()
    })
}

/// The JSON report of a plan with these hashes.
fn planned(bench: &Bench, hashes: &BTreeMap<String, String>) -> Value {
    let run = with_hashes(bench, "plan web --output json", hashes);
    run.code(0).report("plan")
}

/// The fates of the services in the report of a way.
fn fates(report: &Value, way: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let services = report[way]["services"].as_array().expect("services");
    let fate = |one: &Value| format!("{} {}", text(&one["service"]), text(&one["fate"]["kind"]));
    services.iter().map(fate).collect()
}

/// A service that stays, one whose anonymous volume gets a name, and another one that stays.
const THREE: &str = "\
services:
  db:
    image: busybox:1.36
    command: sleep 1000
  calibre-web:
    image: busybox:1.36
    command: sleep 1000
    volumes: [/cache, ./books:/books]
  backup:
    image: busybox:1.36
    command: sleep 1000
";

/// What `args` prints on a terminal of this width.
fn on_screen(bench: &Bench, args: &str, columns: u16) -> String {
    screen(bench.asking(args).env("TERM", "dumb"), columns)
}

#[test]
fn a_plan_of_three_services_has_at_most_ten_lines() {
    let bench = Bench::web(THREE);
    let wide = "\
web  3 containers on this host, not in Portainer yet

  =  db, backup   keep running
  ~  calibre-web  recreated: the anonymous volume at /cache gets a name; its
                  data stays

Adopting it loses nothing. calibre-web is down for up to 10 s, plus its start.
Portainer's copy differs from your file in 3 lines: add --diff to see them.

Next: stacklift adopt web
";
    assert_eq!(on_screen(&bench, "plan web", 80), wide);
    let narrow = "\
web  3 containers on this host, not in Portainer yet

  =  db, backup   keep running
  ~  calibre-web  recreated: the anonymous volume at /cache
                  gets a name; its data stays

Adopting it loses nothing. calibre-web is down for up to
  10 s, plus its start.
Portainer's copy differs from your file in 3 lines: add
  --diff to see them.

Next: stacklift adopt web
";
    assert_eq!(on_screen(&bench, "plan web", 60), narrow);
    let piped = bench.run("plan web").code(0);
    let one_line = "gets a name; its data stays\n";
    assert!(piped.out.contains(one_line), "{piped:?}");
    assert_eq!((piped.out.lines().count(), piped.err.as_str()), (9, ""));
}

#[test]
fn a_stack_that_does_not_run_is_started() {
    let bench = Bench::on_disk(PLAIN);
    bench.world(|world| world.add_image("busybox:1.36"));
    let run = bench.run("plan web").code(0);
    let expected = "\
web  no containers on this host, not in Portainer yet

  +  a  has no container yet and will be started

Adopting it loses nothing, and starts a.

Next: stacklift adopt web
";
    run.prints(expected);
}

#[test]
fn a_comparison_shows_both_ways() {
    let bench = Bench::web(PLAIN);
    let run = bench.run("plan web --compare").code(0);
    let expected = "\
web  1 container on this host, not in Portainer yet

adopt
  =  a  keeps running

Adopting it loses nothing and interrupts nothing.

migrate
  ~  a  recreated: every container of the stack is removed first

Migrating it loses:
  stack  1 running container will be stopped with SIGKILL, without time to shut down (to avoid this, run `docker compose stop` first)
a is down for its start.

Next: stacklift adopt web
";
    run.prints(expected);
    let run = bench.run("plan web --compare --output json");
    assert_eq!(
        fates(&run.code(0).report("plan"), "migrate"),
        ["a recreated"]
    );
}

#[test]
fn b34_the_difference_and_the_request_are_shown_without_values() {
    let bench = Bench::new();
    let env = format!("TOKEN={MARKED}\n");
    let text = format!("{PLAIN}    environment: {{PASS: hunter2}}\n    env_file: .env\n");
    bench.started("web", &text, Some(&env));
    let hidden = [MARKED, "hunter2"];
    let diff = bench.run("plan web --diff").code(0).hides(&hidden);
    let expected = "\
--- docker-compose.yml
+++ docker-compose.yml\t(in Portainer)
@@ -1,6 +1,6 @@
 services:
   a:
     image: busybox:1.36
     command: sleep 1000
     environment: {PASS: \"***\"}
-    env_file: .env
+    env_file: stack.env
";
    diff.prints(expected);
    diff.prints(bench.run("render web --diff").code(0).out);
    let request = bench.run("plan web --request").code(0).hides(&hidden);
    let masked = json!([{"name": "TOKEN", "value": "***"}]);
    assert_eq!(request.json()["env"], masked);
    request.prints(bench.run("render web").code(0).out);
    // For a stack in Portainer: from what Portainer has.
    bench.run("adopt web --yes --wait 2s").code(0);
    bench.succeeds("plan web --diff", "no differences");
    bench.stack("web", &format!("{text}    init: true\n"), Some(&env));
    let diff = bench.run("plan web --diff").code(0).hides(&hidden);
    let title = "--- docker-compose.yml\t(in Portainer)\n+++ docker-compose.yml\t(to be sent)\n";
    assert!(diff.out.starts_with(title), "{diff:?}");
    let changed = diff.out.lines().filter(|line| line.starts_with(['+', '-']));
    assert_eq!(changed.skip(2).collect::<Vec<_>>(), ["+    init: true"]);
    let request = bench.run("plan web --request").code(0).json();
    assert_eq!(request["prune"], false);
    // What cannot be sent is shown, and why it cannot.
    let missing = "networks: {default: {external: true, name: missing}}\n";
    let text = format!("{text}    init: true\n{missing}");
    bench.stack("web", &text, Some(&env));
    for option in ["--diff", "--request"] {
        let run = bench.fails(&["plan", "web", option], "    init: true");
        run.says("error: cannot adopt web\n  1. network missing does not exist\n");
    }
    bench.run("plan web --diff --request").code(2);
    bench.run("plan web --diff --output json").code(2);
}

#[test]
fn b14_a_printed_command_repeats_what_was_typed_and_nothing_else() {
    let bench = Bench::web(PLAIN);
    let root = bench.root().to_str().expect("UTF-8").to_owned();
    let url = bench.base_url();
    let hashes = labeled(&bench);
    let adopt = "stacklift adopt web";
    let diff = "stacklift plan web --diff";
    let plan = "stacklift plan web";
    let (recommended, to_diff) = ("/next_command", "/adopt/diff_command");
    let to_plan = "/stacks/0/next_command";
    for (args, place, printed) in [
        ("plan web", recommended, adopt.to_owned()),
        ("plan web", to_diff, diff.to_owned()),
        ("list", to_plan, plan.to_owned()),
        // As they were typed: a relative path, a unit of time, and `=`. The order is that of the help.
        (
            &format!("plan web --dir ./web --timeout=2m --base-url {url} -v --color never"),
            recommended,
            format!("{adopt} --base-url {url} --timeout 2m --dir ./web"),
        ),
        // The flags stand before the command, too.
        (
            "--stacks-root . plan web",
            to_diff,
            format!("{diff} --stacks-root ."),
        ),
        ("list --endpoint 1", to_plan, format!("{plan} --endpoint 1")),
    ] {
        let mut command = bench.asking(&format!("{args} --output json"));
        command
            .env("PATH", path_with_hashes(&bench, &hashes))
            .env("STACKMGR_API_KEY_FILE", "/a/key")
            .env("STACKLIFT_ENDPOINT", "auto")
            .current_dir(&root);
        let report = Run::of(&mut command).code(0).json();
        let command = report.pointer(place).and_then(Value::as_str);
        assert_eq!(command, Some(&*printed), "{args}");
    }
}

#[test]
fn a_service_that_is_recreated_and_one_that_depends_on_it() {
    let bench = Bench::with_env(TWO, &format!("TOKEN={MARKED}\n"));
    let mut hashes = labeled(&bench);
    hashes.insert("db".to_owned(), "0".repeat(64));
    let report = planned(&bench, &hashes);
    // Portainer 2.23 has Compose 2.29.2.
    assert_eq!(fates(&report, "adopt"), ["db recreated", "app recreated"]);
    let services = &report["adopt"]["services"];
    assert_eq!(services[0]["stop_seconds"], 10);
    assert_eq!(services[1]["stop_seconds"], 3);
    assert_eq!(report["next_command"], "stacklift adopt web");
    with_hashes(&bench, "plan web", &hashes).succeeds("  ~  db   recreated: the Compose file or .env has changed since the container started, and the anonymous volume at /cache gets a name; its data stays\n  ~  app  recreated: it depends on db, which is recreated\n");
}

#[test]
fn b26_an_edited_network_or_volume_that_stays_as_it_is_is_named() {
    let bench = Bench::web(&format!("{PLAIN}volumes: {{data: }}\n"));
    let path = path_with_config(
        &bench,
        &json!({
            "name": "web",
            "services": configs(&bench, &labeled(&bench)),
            "networks": {"default": {"name": "web_default", "internal": true, "ipam": {"config": [{"subnet": "10.9.0.0/24"}]}}},
            "volumes": {"data": {"name": "web_data", "driver_opts": {"o": "x"}}},
        }),
    );
    for args in ["plan web", "adopt web", "plan web"] {
        bench.run_with(args, "PATH", &path).succeeds("warning: network web_default differs from the Compose file in internal and ipam, and a deployment does not change it: undo the change, or run `docker compose down`, which interrupts every service and loses files inside the containers and anonymous volumes, and then adopt the stack\nwarning: volume web_data differs from the Compose file in driver_opts, and a deployment does not change it: undo the change, or copy the data to a volume with another name\n");
    }
}

#[test]
fn a_service_that_is_only_built_is_recreated() {
    let bench = Bench::web("services:\n  a:\n    build: .\n");
    bench.succeeds("list", "web    1/1         by hand  interrupts a\n");
    let reason = "  ~  a  recreated: Portainer's copy names the image that `build` made\n";
    bench.succeeds("plan web", reason);
}

#[test]
fn what_to_know_before_a_later_change_is_told() {
    // An env file that is left out only explains the text.
    let text = "services:\n  a:\n    build: .\n    image: x:1\n    env_file: [{path: none.env, required: false}]\n    volumes: [/cache]\n";
    let bench = Bench::web(text);
    let report = bench.run("plan web --output json").code(0).report("plan");
    let notices = report["adopt"]["notices"].as_array().expect("notices");
    let notices: Vec<&str> = notices
        .iter()
        .filter_map(|one| one["message"].as_str())
        .collect();
    let [volume, notice] = notices[..] else {
        panic!("{notices:?}");
    };
    let start = "`docker volume prune` still deletes these volumes when no container uses them: /cache of a (volume ";
    assert!(volume.starts_with(start), "{volume}");
    assert!(notice.contains("run `docker compose build a`"), "{notice}");
    for args in ["plan web", "plan web --diff"] {
        let run = bench.succeeds(args, &format!("note: {notice}\n"));
        assert!(!format!("{run:?}").contains(start), "{run:?}");
    }
    // Before the question, and not again after it.
    let run = bench.run("adopt web --wait 2s --output json").code(0);
    assert_eq!(run.json()["plan"]["notices"], report["adopt"]["notices"]);
    let place = |what: &str| run.err.find(what).expect("it is told");
    assert!(place(start) < place("adopted web"), "{run:?}");
    assert_eq!(run.err.matches(start).count(), 1, "{run:?}");
    // Not at an update: the first adoption has said it.
    let up_to_date = format!("web is up to date in Portainer\nnote: {notice}\n");
    bench.run("plan web").code(0).prints(&up_to_date);
    bench.stack("web", &format!("{text}    init: true\n"), None);
    let run = bench.run("adopt web --yes --wait 2s").code(0);
    assert!(!run.err.contains(start), "{run:?}");
    run.says("  to undo: stacklift restore web\n");
}

#[test]
fn n05_a_newer_portainer_recreates_what_depends_on_another_service() {
    let bench = Bench::of(Era::Async);
    bench.started("web", TWO, Some(&format!("TOKEN={MARKED}\n")));
    let args = ["plan", "web", "--keep-anonymous"];
    let run = bench
        .run(&args)
        .succeeds("stacklift adopt web --keep-anonymous");
    // The volume of the one that stays is not lost.
    run.says("  =  db   keeps running\n  ~  app  recreated: Compose 2.26.1 started it, and Compose in Portainer treats `depends_on` differently\n\nAdopting it loses nothing.");
}

#[test]
fn m06_an_image_that_portainer_pulls_is_warned_of() {
    let bench = Bench::new();
    for (policy, is_pulled) in [("always", true), ("missing", false)] {
        let text = format!("{PLAIN}    pull_policy: {policy}\n");
        bench.started("web", &text, None);
        let report = bench.run("plan web --output json").code(0).report("plan");
        let warnings = report["adopt"]["warnings"].to_string();
        let said = warnings.contains("Portainer pulls its image");
        assert_eq!(said, is_pulled, "{warnings}");
    }
}

#[test]
fn n05_hashes_that_depend_on_other_containers_are_unknown() {
    let bench = Bench::new();
    let old = "services:\n  a:\n    image: x:1\n    container_name: old\n";
    bench.started("other", old, None);
    let text = format!(
        "{PLAIN}  b:\n    image: busybox:1.36\n    network_mode: service:a\n  c:\n    image: x:1\n    volumes_from: ['container:old']\n"
    );
    bench.started("web", &text, None);
    let mut hashes = labeled(&bench);
    for service in ["b", "c"] {
        hashes.insert(service.to_owned(), "0".repeat(64));
    }
    let report = planned(&bench, &hashes);
    let expected = ["a unchanged", "b unknown", "c unknown"];
    assert_eq!(fates(&report, "adopt"), expected);
    let why = report["adopt"]["services"][2].to_string();
    let shares = "a namespace or volumes are shared with another container";
    assert!(why.contains(shares), "{why}");
    // The container that it shares with is replaced.
    hashes.insert("a".to_owned(), "1".repeat(64));
    let report = planned(&bench, &hashes);
    assert_eq!(fates(&report, "adopt")[..2], ["a recreated", "b recreated"]);
}

/// That a program fails does not show that there is none.
#[test]
fn a_compose_program_that_fails_is_not_missing() {
    let bench = Bench::web(PLAIN);
    bench.script("docker", "echo 'pipe: too many open files' >&2\nexit 1\n");
    bench.script("docker-compose", "exit 1\n");
    let failed = "no Compose program of this host could be run";
    let why = format!("{failed} (`docker compose`: exit 1 pipe: too many open files)");
    let run = bench.fails("plan web", &why);
    run.hides(&["has no Compose program", "install Docker Compose"]);
    bench.run("doctor").says(failed);
}

/// A `docker` without the plugin takes its arguments for its own.
#[test]
fn a_docker_without_the_compose_plugin_is_named() {
    let bench = Bench::web(PLAIN);
    let bin = tempfile::tempdir().expect("a folder");
    // A native program that rejects `--short`.
    copy_program(Path::new("/bin/ls"), &bin.path().join("docker"));
    symlink("/bin/false", bin.path().join("docker-compose")).expect("a link");
    let run = bench.run_with("plan web", "PATH", bench.path(&[bin.path()]));
    let run = run.hides(&["--short", "could be run"]);
    let folders = ["local/lib", "local/libexec", "lib", "libexec"];
    let plugin = |folder: &str| format!("/usr/{folder}/docker/cli-plugins/docker-compose");
    let mut plugins = folders.iter().map(|folder| fs::exists(plugin(folder)));
    let has_plugin = plugins.any(|found| found.expect("a look"));
    let missing = "this host has no Compose program (Docker has no compose plugin)";
    assert_eq!(run.all().contains(missing), !has_plugin, "{run:#?}");
}

#[test]
fn a_plan_fails_if_only_a_migration_is_possible() {
    let bench = Bench::web(PLAIN);
    bench.change_container("web-a-1", |one| "paused".clone_into(&mut one.state));
    for args in ["plan web", "plan web --compare", "adopt web --dry-run"] {
        bench.fails(args, "Cannot be adopted yet:");
    }
    let report = bench.run("plan web --output json").code(1).report("plan");
    assert_eq!(report["migrate"]["readiness"], "ready");
    bench.run("migrate web --dry-run").code(0);
}

#[test]
fn containers_that_cannot_be_read_are_unknown() {
    let bench = Bench::web(PLAIN);
    bench.without_engine("plan web").fails("web  containers unknown, not in Portainer yet\n\nCannot be adopted yet:\n  1. failed to list the containers of web: cannot reach Docker on /absent/engine.sock: No such file or directory\n     check that Docker is running\n");
    let run = bench.without_engine("migrate web --dry-run --exit-code");
    run.code(3);
    for args in ["plan web", "adopt web", "web --dry-run"] {
        let all = bench.without_engine(args).all();
        let told = all.matches("cannot reach Docker").count();
        assert_eq!(told, 1, "{args:?} {all}");
    }
}

#[test]
fn the_hashes_are_those_of_the_file_of_the_stack() {
    let bench = Bench::web(PLAIN);
    // Compose would choose the first, and merge the second into it.
    for other in ["compose.yaml", "docker-compose.override.yml"] {
        bench.write("web", other, "services: {}\n");
    }
    let services = printed(&json!(configs(&bench, &labeled(&bench))));
    bench.script(
        "docker-compose",
        &format!(
            "[ \"$1\" = version ] && {{ echo 2.26.1; exit; }}\n\
             case \"$*\" in *'-f docker-compose.yml'*) echo '{services}' ;; *) echo '{{}}' ;; esac\n"
        ),
    );
    for args in ["plan web", "plan web --file docker-compose.yml"] {
        bench.succeeds(args, "  =  a  keeps running");
    }
}

/// The host was updated since it started the stack.
#[test]
fn b47_another_version_on_the_host_compares_too() {
    let bench = Bench::web(PLAIN);
    let services = printed(&json!(configs(&bench, &labeled(&bench))));
    for version in ["2.26.1", "2.40.3", "5.6.1"] {
        let path = path_with_version(&bench, version, &services);
        let run = bench.run_with("plan web", "PATH", &path);
        run.succeeds("  =  a  keeps running\n");
    }
    bench.label("version", "9.0.0");
    bench.label("config-hash", "0");
    let path = path_with_version(&bench, "5.6.1", &services);
    let unknown =
        "  ?  a  may be recreated: Compose 9.0.0 started it, which stacklift does not know\n";
    bench.run_with("plan web", "PATH", &path).succeeds(unknown);
}

/// Compose 5 prints and hashes a short bind mount without `create_host_path` (N28).
#[test]
fn b39_bind_mounts_of_compose_5_are_sent_in_the_long_syntax() {
    let bench = Bench::web_of(Era::Async, &format!("{PLAIN}    volumes: ['./a:/a']\n"));
    let source = bench.dir("web").join("a");
    let service = json!({
        "image": "busybox:1.36",
        "volumes": [{"type": "bind", "source": source, "target": "/a", "bind": {}}],
    });
    let path = path_with_version(&bench, "5.6.1", &printed(&json!({"a": service})));
    // SHA-256 of the service, as Compose 5 and the long syntax give it.
    let hash = config_hash(&service);
    let plan = |args: &str| bench.run_with(args, "PATH", &path);
    let line = format!(
        "+    volumes: [{{type: bind, source: {}, target: /a, bind: {{}}}}]\n",
        source.display()
    );
    // Of an earlier version, the same hash is that of another file.
    bench.label("config-hash", &hash);
    plan("plan web").succeeds("  ~  a  recreated: ");
    plan("plan web --diff").code(0).hides(&line);
    bench.label("version", "5.6.1");
    plan("plan web").succeeds("  =  a  keeps running\n");
    plan("plan web --diff").succeeds(&line);
}

/// Compose 5 hashes the clean path, and that of this Portainer the path as it is written (N36).
#[test]
fn b39_the_path_in_the_container_is_sent_as_compose_5_hashes_it() {
    let volumes = "    volumes: [{type: bind, source: ./a, target: /a/, bind: {}}]\n";
    let bench = Bench::web(&format!("{PLAIN}{volumes}"));
    let service = json!({
        "image": "busybox:1.36",
        "volumes": [{"type": "bind", "source": bench.dir("web").join("a"), "target": "/a", "bind": {}}],
    });
    let path = path_with_version(&bench, "5.6.1", &printed(&json!({"a": service})));
    let plan = |args: &str| bench.run_with(args, "PATH", &path);
    bench.label("config-hash", &config_hash(&service));
    bench.label("version", "5.6.1");
    plan("plan web").succeeds("  =  a  keeps running\n");
    plan("plan web --diff").succeeds(", target: /a, bind: {}}]\n");
}

/// Watchtower and *Recreate* in Portainer copy the label of the container that they replace.
#[test]
fn n05_a_container_whose_image_another_tool_changed_may_be_recreated() {
    let bench = Bench::web(PLAIN);
    let hashes = labeled(&bench);
    bench.label("image", "sha256:0");
    let run = with_hashes(&bench, "plan web", &hashes).code(0);
    run.says("  ?  a  may be recreated: it runs another image than Compose started it with\n");
}

#[test]
fn other_replicas_are_said() {
    let replicas = |count: u8| format!("{PLAIN}    deploy: {{replicas: {count}}}\n");
    let bench = Bench::web(&replicas(2));
    for (count, expected) in [
        (0, &["web-a-1 removed", "web-a-2 removed"][..]),
        (1, &["a unchanged", "web-a-2 removed"]),
        (2, &["a unchanged"]),
        (3, &["a started"]),
    ] {
        bench.stack("web", &replicas(count), None);
        let report = bench.run("plan web --output json").code(0).report("plan");
        assert_eq!(fates(&report, "adopt"), expected);
    }
    // Also if it depends on one that is recreated.
    let depends = |seconds: u16| {
        format!(
            "    depends_on: [b]\n  b:\n    image: busybox:1.36\n    command: sleep {seconds}\n"
        )
    };
    let other = Bench::web(&format!("{PLAIN}{}", depends(1000)));
    let none = format!("{PLAIN}    scale: 0\n{}", depends(2000));
    other.stack("web", &none, None);
    let report = other.run("plan web --output json").code(0).report("plan");
    assert_eq!(fates(&report, "adopt"), ["web-a-1 removed", "b recreated"]);
    bench.stack("web", &replicas(1), None);
    let run = bench.run("plan web").code(0);
    run.says("  =  a        keeps running\n  -  web-a-2  removed: the Compose file asks for 1 container of a\n\nAdopting it loses nothing. web-a-2 is removed.\n");
    let asked = Run::of(&mut bench.asking("adopt web"));
    asked.fails("without confirmation: web-a-2 is removed\n");
}

#[test]
fn everything_that_blocks_is_shown_with_its_way_out() {
    let text = format!("{PLAIN}    volumes: [{{type: bind, source: /missing/x, target: /x}}]\n");
    let bench = Bench::web(PLAIN);
    bench.stack("web", &text, None);
    let expected = "\
web  1 container on this host, not in Portainer yet

Cannot be adopted yet:
  1. a mounts /missing/x, which does not exist
     create it, or correct the path in docker-compose.yml
";
    for args in ["plan web", "plan web --exit-code"] {
        let run = bench.run(args).code(1);
        assert_eq!((run.out.as_str(), run.err.as_str()), (expected, ""));
    }
    bench.run("adopt web --dry-run").code(1);
    let forced = bench.run("migrate web --dry-run --exit-code --force");
    forced.code(3).says("Next: stacklift migrate web --force\n");
}

#[test]
fn of_a_file_that_cannot_be_adopted_or_parsed_nothing_is_promised() {
    let twice = format!("{PLAIN}    image: busybox:1.36\n");
    let bench = Bench::on_disk(&twice);
    // A migration is not recommended in its place.
    let run = bench.fails("plan web --exit-code", "Cannot be adopted yet:");
    run.hides("migrate");
    bench.stack("web", "services:\n\ta: {}\n", None);
    let run = bench.run("migrate web --dry-run --exit-code").code(3);
    run.says(&[
        "What migrating it loses is unknown.",
        "warning: what the rewritten Compose file loses is unknown: docker-compose ",
    ]);
    let run = bench.without_compose("migrate web --dry-run").code(0);
    let why = "warning: what the rewritten Compose file loses is unknown: this host has no Compose";
    run.says(why);
}

#[test]
fn the_exit_code_tells_what_is_lost() {
    let bench = Bench::on_disk(PLAIN);
    bench.world(|world| world.add_image("busybox:1.36"));
    bench.run("plan web --exit-code").code(0);
    for command in ["adopt ", "migrate ", ""] {
        bench
            .run(&format!("{command}web --dry-run --exit-code"))
            .code(0);
    }
    bench.started("web", PLAIN, None);
    let hashes = labeled(&bench);
    let run = |args: &str, code| with_hashes(&bench, args, &hashes).code(code);
    // The migration kills the container.
    run("web --dry-run --exit-code", 3).hides("adopt");
    run("web --dry-run", 0);
    run("plan web --exit-code", 0);
    run("adopt web --dry-run --exit-code", 0).hides("migrate");
    run("plan absent --exit-code", 1);
    run("plan web --output xml", 2);
    run("migrate web --output json", 2);
    assert!(bench.nothing_was_changed());
}

#[test]
fn a_stack_that_portainer_has_needs_nothing() {
    let bench = Bench::on_disk(PLAIN);
    bench.world(|world| world.add_image("busybox:1.36"));
    bench.run("adopt web").code(0);
    let run = bench.run("plan web --exit-code").code(0);
    // Without hashes, it is unknown what a deployment would do. None is asked for.
    for run in [run, bench.run("plan web --exit-code").code(0)] {
        run.prints("web is up to date in Portainer\n");
    }
}

#[test]
fn b11_a_request_without_an_answer_is_told() {
    let bench = Bench::web(PLAIN);
    let unanswered = || {
        let run = bench.run("plan web --output json").code(0);
        run.report("plan")["unanswered"].to_string()
    };
    assert_eq!(unanswered(), "[]");
    bench.once(rehearsal::Call::Create, rehearsal::FaultKind::DieAfter);
    bench.run("adopt web --wait 2s").code(1);
    bench.revive().expect("alive again");
    let locked = File::open(bench.dir("web")).expect("the directory");
    locked.lock().expect("locked");
    let told = unanswered();
    let create = "the creation of the stack web, sent 2";
    assert!(told.starts_with(&format!("[\"{create}")), "{told}");
    let says = format!("A run ended before Portainer had answered {create}");
    bench.succeeds("plan web", &says);
    // A child that another test is starting may have a copy of the open directory.
    locked.unlock().expect("unlocked");
    bench.run("adopt web --wait 2s").code(0);
    assert_eq!(unanswered(), "[]");
}

#[test]
fn a_compose_file_that_the_migration_does_not_choose_is_named() {
    let bench = Bench::new();
    let dir = bench.stack("web", PLAIN, None);
    fs::rename(dir.join("docker-compose.yml"), dir.join("compose.yaml")).expect("renamed");
    let report = bench.run("plan web --compare --output json").report("plan");
    let diff = report["migrate"]["diff_command"].to_string();
    assert!(!diff.contains("--file"), "{diff}");
    assert_eq!(report["stack"]["file"], "compose.yaml");
    fs::rename(dir.join("compose.yaml"), dir.join("own.yml")).expect("renamed");
    let run = bench.run("plan web --compare --file own.yml --output json");
    let report = run.report("plan");
    let diff = report["migrate"]["diff_command"].to_string();
    assert_eq!(diff.matches("--file own.yml").count(), 1, "{diff}");
}

/// The path, the content and the modification time of every file.
fn tree(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>, SystemTime)>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            tree(&path, found);
        } else {
            let modified = path.metadata().expect("metadata").modified();
            let bytes = fs::read(&path).expect("a file");
            found.push((path, bytes, modified.expect("a time")));
        }
    }
    found.sort();
}

#[test]
fn it_writes_nothing_and_takes_no_lock() {
    let bench = Bench::with_env(TWO, &format!("TOKEN={MARKED}\n"));
    bench.record("web", 1);
    let look = || {
        let mut files = Vec::new();
        tree(bench.root(), &mut files);
        tree(bench.home(), &mut files);
        let mut world = bench.world(|world| world.clone());
        // The time.
        world.now = 0;
        (files, world)
    };
    let before = look();
    let locked = File::open(bench.dir("web")).expect("the directory");
    locked.lock().expect("locked");
    for args in [
        "plan web",
        "plan web --output json",
        "plan web --diff",
        "plan web --request",
        "plan web --compare",
        "adopt web --dry-run",
        "migrate web --dry-run",
    ] {
        bench.run(args);
    }
    let after = look();
    assert_eq!(before.0, after.0);
    assert!(before.1 == after.1, "the world changed");
    assert!(bench.nothing_was_changed());
    assert!(!bench.state().exists());
}

#[test]
fn the_stored_schema_is_the_printed_one() {
    let run = Bench::new().run("schema").code(0);
    assert!(run.out == stored(), "run: stacklift schema > {SCHEMA}");
}

const SCHEMA: &str = "docs/schemas/v1.json";

fn stored() -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    fs::read_to_string(format!("{root}/{SCHEMA}")).expect("a schema")
}

/// The schema of everything, and of an output, such as `plan`.
fn schema(output: &str) -> (Value, Value) {
    let all: Value = serde_json::from_str(&stored()).expect("JSON");
    let own = all["properties"][output].clone();
    (all, own)
}

impl Run {
    /// What was printed as JSON, which must conform to the schema of this output, such as `plan`.
    #[track_caller]
    pub fn report(&self, output: &str) -> Value {
        let report = self.json();
        conforms(output, &report);
        report
    }
}

/// Checks a value against the schema of an output, with the keywords that a derived one uses. Others fail the test.
#[track_caller]
pub fn conforms(output: &str, value: &Value) {
    let (all, schema) = schema(output);
    if let Err(problem) = check(&all, &schema, value) {
        panic!("{problem}: {value:#}");
    }
}

fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    for (keyword, rule) in schema.as_object().ok_or("a schema that is no object")? {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => {}
            "$ref" => {
                let path = rule.as_str().unwrap_or_default().trim_start_matches('#');
                let target = root.pointer(path).ok_or(format!("no {path}"))?;
                check(root, target, value)?;
            }
            "type" => {
                let is = |name: &Value| match name.as_str() {
                    Some("object") => value.is_object(),
                    Some("array") => value.is_array(),
                    Some("string") => value.is_string(),
                    Some("integer") => value.is_i64() || value.is_u64(),
                    Some("number") => value.is_number(),
                    Some("null") => value.is_null(),
                    Some("boolean") => value.is_boolean(),
                    _ => false,
                };
                if !is(rule) && !list(rule).iter().any(is) {
                    return Err(format!("not {rule}"));
                }
            }
            // Every unknown property is refused.
            "additionalProperties" if *rule == json!(false) => {}
            "minimum" if value.is_null() => {}
            "minimum" if value.as_f64() >= rule.as_f64() => {}
            "const" if value == rule => {}
            "enum" if list(rule).contains(value) => {}
            "anyOf" | "oneOf" => {
                let fits = |one: &Value| check(root, one, value).is_ok();
                if !list(rule).iter().any(fits) {
                    return Err(format!("none of {rule}"));
                }
            }
            "required" => {
                let is_there =
                    |key: &Value| key.as_str().is_some_and(|key| value.get(key).is_some());
                if let Some(key) = list(rule).iter().find(|key| !is_there(key)) {
                    return Err(format!("no {key}"));
                }
            }
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let schema = rule.get(key).ok_or(format!("unknown {key}"))?;
                    check(root, schema, value).map_err(|error| format!("{key}: {error}"))?;
                }
            }
            "items" => {
                for value in value.as_array().into_iter().flatten() {
                    check(root, rule, value)?;
                }
            }
            other => return Err(format!("{other} does not hold")),
        }
    }
    Ok(())
}

#[test]
fn a_report_that_does_not_conform_is_detected() {
    let (all, schema) = schema("plan");
    for wrong in [json!({}), json!({"version": "1"}), json!([])] {
        assert!(check(&all, &schema, &wrong).is_err(), "{wrong}");
    }
}

#[test]
fn n17_a_container_that_stays_keeps_the_old_content_of_a_secret() {
    let of = |content| {
        format!(
            "services:\n  a:\n    image: busybox:1.36\n    secrets: [s]\n    configs: [{{source: c, target: /c}}]\nsecrets:\n  s: {{environment: TOKEN}}\nconfigs:\n  c: {{content: {content}}}\n"
        )
    };
    let bench = Bench::with_env(&of("one"), "TOKEN=first-value\n");
    bench.run("adopt web --yes").code(0);
    let keeps = |at| {
        format!(
            "warning: a gets the new content of {at} only when it is recreated, for example because one of its labels changes\n"
        )
    };
    bench.write("web", ".env", "TOKEN=second-value\n");
    let run = bench.succeeds("plan web", &keeps("/run/secrets/s"));
    run.hides(&["/c:", "first-value", "second-value"]);
    bench.write("web", "docker-compose.yml", &of("two"));
    bench.succeeds(
        "adopt web --yes",
        &[keeps("/run/secrets/s").as_str(), &keeps("/c")],
    );
}
