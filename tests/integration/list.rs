//! `stacklift list`.

use std::{fs, net::TcpListener, os::unix::fs::symlink};

use rehearsal::{Call, Status};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, PLAIN, Run, done},
    terminal::screen,
};

/// A service with an anonymous volume, whose container an adoption recreates, and one without.
const CACHED: &str = "\
services:
  db:
    image: busybox:1.36
    command: sleep 1000
    volumes: [/cache]
  app:
    image: busybox:1.36
    command: sleep 1000
";

/// Two reasons that prevent an adoption.
const BLOCKED: &str = "\
services:
  a:
    image: busybox:1.36
    command: sleep 1000
    volumes:
      - {type: bind, source: ./missing, target: /data}
networks:
  default:
    external: true
    name: missing
";

/// Names the command that says more than the rows.
const NOTE: &str = "`stacklift plan STACK` shows what adopting it does, or what prevents it\n";

/// Asserts what `list` prints, with the stacks root replaced.
#[track_caller]
fn prints(bench: &Bench, run: &Run, expected: &str) {
    assert_eq!(bench.shown(run), expected, "{}", run.err);
}

/// Starts a stack by hand in Portainer's way: from a folder of Portainer's container.
fn started_by_portainer(bench: &Bench, name: &str, text: &str) {
    let id = bench.create_in_portainer(name, text, &[]);
    bench.world(|world| world.finish_deployment(id));
}

/// What `list` prints with these flags as JSON.
fn list_of(bench: &Bench, flags: &str) -> Value {
    let run = bench.run(&format!("list --output json {flags}"));
    run.code(0).report("list")
}

/// The entry of a stack.
fn entry<'j>(list: &'j Value, name: &str) -> &'j Value {
    let stacks = list["stacks"].as_array().expect("stacks");
    let found = stacks.iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

#[test]
fn every_kind_of_stack() {
    let bench = Bench::web(PLAIN);
    bench.started("cached", CACHED, None);
    bench.started("mongo", PLAIN, None);
    bench.stack("idle", PLAIN, None);
    bench.stack("same", PLAIN, None);
    started_by_portainer(&bench, "same", PLAIN);
    bench.started("both", PLAIN, None);
    let both = bench.record("both", 1);
    bench.world(|world| world.records.get_mut(&both).expect("it").text = CACHED.to_owned());
    started_by_portainer(&bench, "theirs", PLAIN);
    bench.record("ghost", 1);
    bench.record("elsewhere", 2);
    let stopped = bench.record("stopped", 1);
    bench.world(|world| world.records.get_mut(&stopped).expect("it").status = Status::Inactive);
    let gone = bench.started("gone", PLAIN, None);
    fs::remove_dir_all(gone).expect("a directory");
    bench.started("portainer", PLAIN, None);
    let text = PLAIN.replace("busybox:1.36", "portainer/portainer-ce:2.23.0");
    let own = bench.started("own", &text, None);
    fs::remove_dir_all(own).expect("a directory");
    let run = bench.run("list").code(0);
    prints(&bench, &run, "\
STACK      CONTAINERS  STATE                        ADOPT
both       1/1         in Portainer, file differs   stacklift plan both
cached     2/2         by hand                      interrupts db
ghost      0/0         in Portainer, no containers  no Compose file: stacklift export ghost
gone       1/1         orphaned                     no Compose file: stacklift export gone --to ROOT/gone --from containers
idle       0/0         not started                  starts a
mongo      1/1         by hand                      keeps running
own        1/1         orphaned                     blocked: the stack runs Portainer itself: container own-a-1 runs portainer/portainer-ce:2.23.0; manage this stack by hand
portainer  1/1         by hand                      blocked: refusing to move portainer: recreating it would cut you off from Portainer; manage this stack by hand
same       1/1         in Portainer                 up to date
stopped    0/0         in Portainer, stopped        no Compose file: stacklift export stopped
theirs     1/1         in Portainer                 no Compose file: stacklift export theirs
web        1/1         by hand                      keeps running
");
    assert_eq!(run.err, NOTE);
    let list = list_of(&bench, "");
    let gone = bench.dir("gone");
    let export = format!(
        "stacklift export gone --to {} --from containers",
        gone.display()
    );
    for (name, next) in [
        ("both", "stacklift plan both".into()),
        ("cached", "stacklift plan cached".into()),
        ("ghost", "stacklift export ghost".into()),
        ("gone", export.into()),
        ("own", Value::Null),
        ("portainer", Value::Null),
        ("same", Value::Null),
    ] {
        assert_eq!(entry(&list, name)["next_command"], next, "{name}");
    }
}

#[test]
fn names_and_directories() {
    let bench = Bench::new();
    // Compose starts the stack under the normalized name.
    bench.start_as("advbig", bench.stack("AdvBig", PLAIN, None));
    // Nothing has been started from this one.
    bench.stack("Idle", PLAIN, None);
    // The project is not named after its directory, which is not in the stacks root.
    let other = tempfile::tempdir().expect("a directory");
    let elsewhere = other.path().join("compose");
    fs::create_dir(&elsewhere).expect("a directory");
    fs::write(elsewhere.join("docker-compose.yml"), PLAIN).expect("a file");
    let folder = elsewhere.to_str().expect("UTF-8");
    bench.world(|world| world.add_stack(folder, [("docker-compose.yml", PLAIN)]));
    bench.start_as("project", folder);
    bench.started("web", PLAIN, None);
    // The same stack again (B28).
    symlink("web", bench.dir("current")).expect("a link");
    symlink("nowhere", bench.dir("dangling")).expect("a link");
    fs::create_dir(bench.dir("empty")).expect("a directory");
    for name in ["-x", "a\u{1b}[31mb", "latin"] {
        fs::create_dir(bench.dir(name)).expect("a directory");
        fs::write(bench.dir(name).join("compose.yaml"), b"# \xe9\n").expect("a file");
    }
    let run = bench.run("list").code(0);
    let out = bench
        .shown(&run)
        .replace(other.path().to_str().expect("UTF-8"), "/other");
    assert_eq!(
        out,
        r#"STACK         CONTAINERS  STATE        ADOPT
-x            0/0         not started  blocked: "-x" is not a stack name: it starts with a hyphen; rename the directory
a\u{1b}[31mb  0/0         not started  blocked: "a\u{1b}[31mb" is not a stack name: it contains a control character; rename the directory
advbig        1/1         by hand      keeps running
Idle          0/0         not started  blocked: the stack cannot have the name Idle in Portainer: the name of its project would be "idle"
latin         0/0         not started  blocked: the Compose file ROOT/latin/compose.yaml is not UTF-8 at byte 2 (line 1): it cannot be sent as JSON
project *     1/1         by hand      keeps running
web           1/1         by hand      keeps running
"#
    );
    let root = bench.root().display();
    let legend = format!("* not in {root}: `adopt --all` adopts it only with --everywhere\n");
    assert_eq!(run.err, format!("{NOTE}{legend}"));
    // The printed command plans that stack.
    let list = list_of(&bench, "");
    let command = entry(&list, "advbig")["next_command"].as_str();
    let words = shlex::split(command.expect("a command")).expect("words");
    let at = words.iter().position(|word| word == "stacklift");
    bench.succeeds(&words[at.expect("the program") + 1..], "Next: ");
    assert_eq!(entry(&list, "-x")["next_command"], Value::Null);
}

#[test]
fn a_stack_that_was_started_from_elsewhere_is_found_by_what_was_last_sent() {
    for command in ["adopt", "migrate"] {
        let bench = Bench::new();
        bench.world(|world| world.add_image("busybox:1.36"));
        let far = bench.home().join("web");
        fs::create_dir(&far).expect("a directory");
        fs::write(far.join("compose.yaml"), PLAIN).expect("a file");
        let far = far.to_str().expect("UTF-8");
        bench.run(&[command, "web", "--dir", far]).code(0);
        let list = list_of(&bench, "");
        assert_eq!(entry(&list, "web")["dir"], far);
        bench.run("plan web").code(0);
        if command == "adopt" {
            bench.succeeds("list", "web *  1/1         in Portainer  up to date\n");
            bench.succeeds("plan web", "web is up to date in Portainer\n");
        }
        // Also while it is stopped in Portainer.
        bench.world(|world| {
            world.containers.clear();
            for record in world.records.values_mut() {
                record.status = Status::Inactive;
            }
        });
        let says = "web *  0/0         in Portainer, stopped  starts a\n";
        bench.succeeds("list", says);
    }
}

#[test]
fn stacks_of_a_swarm_and_of_kubernetes() {
    let bench = Bench::new();
    bench.stack("swarmed", PLAIN, None);
    let record = |id, name, kind| json!({"Id": id, "Name": name, "EndpointId": 1, "Type": kind, "Status": 1});
    let list = json!([
        record(1, "swarmed", 1),
        record(2, "cluster", 3),
        record(3, "one\u{202e}two", 2),
        {"Name": "unclear", "EndpointId": 1},
        {"Id": 9, "Name": "theirs", "EndpointId": 7},
    ]);
    bench.always(Call::List, done(200, &list.to_string()));
    let run = bench.run("list").code(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 4, "{run:#?}");
    for (line, start) in lines[1..].iter().zip([
        "cluster         0/0         Kubernetes                   no Compose project",
        "one\\u{202e}two  0/0         in Portainer, no containers  no Compose file",
        "swarmed         0/0         swarm                        blocked",
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
    run.says("warning: Portainer's list has an entry named unclear, but its Id is missing");
}

#[test]
fn without_portainer() {
    let bench = Bench::web(PLAIN);
    bench.stack("idle", PLAIN, None);
    started_by_portainer(&bench, "theirs", PLAIN);
    let expected = "\
STACK   CONTAINERS  STATE        ADOPT
idle    0/0         not started  unknown: Portainer was not read
theirs  1/1         unknown      no Compose file: stacklift doctor
web     1/1         unknown      unknown: Portainer was not read
";
    let run = bench.without_key("list").code(0);
    run.prints(expected);
    assert!(bench.calls(Call::List).is_empty());
    let warnings = "warning: no API key (STACKMGR_API_KEY is required): run `stacklift config init`; the list shows only this host\n";
    assert_eq!(run.err, warnings);

    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("an address").port();
    drop(closed);
    let url = format!("https://127.0.0.1:{port}");
    let run = bench.run(&["list", "--base-url", &url]).code(0);
    let doctor = format!("stacklift doctor --base-url {url}");
    run.prints(expected.replace("stacklift doctor", &doctor));
    run.says(&["Connection refused", "; the list shows only this host\n"]);
    let list = list_of(&bench, &format!("--base-url {url}"));
    assert_eq!(list["portainer"], Value::Null);
    assert_eq!(entry(&list, "web")["adopt"]["readiness"], "unknown");
}

#[test]
fn without_the_engine() {
    let bench = Bench::on_disk(PLAIN);
    bench.record("ghost", 1);
    let run = bench.without_engine("list").code(0);
    let rows = "\nghost  ?           unknown  no Compose file: stacklift doctor\nweb    ?           unknown  unknown: Docker was not read\n";
    let warning = "warning: failed to list all containers";
    run.says(&[rows, warning, "the containers are unknown"]);
}

#[test]
fn a_stacks_root_that_cannot_be_read_is_an_error() {
    let bench = Bench::new();
    let run = bench.run("list --stacks-root /nowhere").code(1);
    run.prints("");
    let hint = "hint: pass the directory that contains the stack directories with --stacks-root";
    run.says(&["error: failed to read the stacks root /nowhere: ", hint]);
    let run = bench.run("list").code(0);
    run.prints("STACK  CONTAINERS  STATE  ADOPT\n");
    run.says("no stacks in ");
}

#[test]
fn list_and_plan_agree() {
    let bench = Bench::web(PLAIN);
    bench.started("cached", CACHED, None);
    bench.stack("blocked", BLOCKED, None);
    bench.stack("Idle", PLAIN, None);
    bench.stack("same", PLAIN, None);
    started_by_portainer(&bench, "same", PLAIN);
    bench.started("both", PLAIN, None);
    bench.record("both", 1);
    bench.started("far", PLAIN, None);
    bench.record("far", 2);
    bench.stack("broken", "services: [", None);
    let port = format!("{PLAIN}    ports: ['127.0.0.1:1:80']\n");
    bench.stack("port", &port, None);
    let list = list_of(&bench, "");
    let stacks = list["stacks"].as_array().expect("stacks");
    assert_eq!(stacks.len(), 9);
    for stack in stacks {
        let name = stack["name"].as_str().expect("a name");
        let run = bench.run(&["plan", name, "--output", "json"]);
        let plan = run.json();
        let mut adopt = plan["adopt"].clone();
        adopt["diff_command"] = Value::Null;
        assert_eq!(stack["adopt"], adopt, "{name}");
        for key in ["name", "dir", "file", "containers", "portainer_stack"] {
            assert_eq!(stack[key], plan["stack"][key], "{name}");
        }
    }
    let blocked = entry(&list, "blocked");
    assert_eq!(blocked["adopt"]["readiness"], "blocked");
    assert!(blocked["adopt"]["blockers"][1].is_object(), "{blocked}");
}

#[test]
fn a_list_changes_nothing() {
    let bench = Bench::new();
    for number in 0..3 {
        let name = format!("web{number}");
        bench.started(&name, PLAIN, None);
    }
    let look = || {
        let mut world = bench.world(|world| world.clone());
        // The time.
        world.now = 0;
        world
    };
    let before = look();
    bench.run("list").code(0);
    assert!(look() == before, "the world changed");
    assert!(bench.nothing_was_changed());
    assert!(!bench.state().exists());
}

#[test]
fn a_stack_has_one_line_at_any_width() {
    let bench = Bench::new();
    bench.started("cached", CACHED, None);
    bench.stack("blocked", BLOCKED, None);
    bench.started("traefik", PLAIN, None);
    let shown = |columns| screen(bench.command("list").env("NO_COLOR", "1"), columns);
    let without_blocked = |columns| {
        let shown = shown(columns);
        let rows = shown.lines().take_while(|line| !line.starts_with('`'));
        let lines = rows.filter(|line| !line.starts_with("blocked"));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        without_blocked(80),
        "\
STACK    CONTAINERS  STATE        ADOPT
cached   2/2         by hand      interrupts db
traefik  1/1         by hand      blocked: refusing to move traefik: recreating…"
    );
    assert_eq!(
        without_blocked(60),
        "\
STACK    CONTAINERS  STATE        ADOPT
cached   2/2         by hand      interrupts db
traefik  1/1         by hand      blocked: refusing to move…"
    );
    let full = bench.run("list").code(0);
    assert_eq!(shown(1000), format!("{}{NOTE}", full.out));
    assert!(full.out.lines().any(|line| line.ends_with(" (+1)")));
}
