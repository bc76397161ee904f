//! B01–B04: what the contract adds to the seed without breaking it.

use std::fs;

use serde_json::json;
use testbed::{Call, FaultKind};

use crate::bench::{Bench, MARKED, PLAIN, done, instead, refusal};

/// What stands in front of the losses.
const LOSSES: &str = "the stack will lose:";
const KILLED: &str = "- 1 running container will be stopped with SIGKILL, without time to shut down (to avoid this, run `docker compose stop` first)";

#[test]
fn b01_every_kind_of_loss_is_said_before_the_first_destructive_act() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: own/a:1\n    build: ./src\n    env_file: .env\n    environment:\n      MODE: own\n    volumes: [../shared:/s, ./own:/o, /cache, 'named:/n']\n  b:\n    image: x\nvolumes:\n  named:\n";
    let env = format!("TOKEN={MARKED}\nMODE={MARKED}\n");
    bench.started("web", text, Some(&env));
    bench.record("web", 1);
    bench.change_record(|record| {
        record.git = Some(json!({"URL": "https://git.example/stacks.git"}));
        record.auto_update = Some(json!({"Interval": "5m", "Webhook": "0d0b5d5e"}));
        record.control.teams = vec![3];
        record.env = Some(vec![testbed::Variable {
            name: "ONLY_THERE".to_owned(),
            value: MARKED.to_owned(),
        }]);
    });
    let volume = bench.container("web-a-1").own_volumes.remove(0);
    bench.always(Call::Delete, refusal());
    let losses = format!(
        "{LOSSES}
  - web-a-1: the anonymous volume at /cache is replaced with an empty one; its data stays in volume {volume}
  - service a: a path inside Portainer is mounted at /s instead of {}/shared
  - service a: variables no longer set: TOKEN
  - service a: Portainer may be unable to read the build directory ./src
  - the access of team 3
  - the Portainer stack's Git link to https://git.example/stacks.git
  - the Portainer stack's automatic update
  - the Portainer stack's webhook
  - variables that exist only in Portainer: ONLY_THERE
error: ",
        bench.root().display()
    );
    let run = bench.fails("web", &losses);
    run.hides(&["./own", "web_named"]);
}

#[test]
fn b01_nothing_is_said_where_nothing_is_lost() {
    let bench = Bench::with_env(PLAIN, "A=1\n");
    let run = bench.run("web").code(0);
    let (_, losses) = run.err.split_once(LOSSES).expect("losses");
    let mut losses = losses.trim_start_matches('\n').lines();
    assert_eq!(losses.next().map(str::trim), Some(KILLED));
    assert!(!losses.next().unwrap_or_default().starts_with("  "));
    // Portainer's own directory is not another directory.
    bench.run("web").code(0).hides("another directory");
}

#[test]
fn b01_what_compose_merges_or_takes_from_the_shell_is_said() {
    let bench = Bench::web(PLAIN);
    let text = format!("{PLAIN}  jobs:\n    image: x\n    profiles: [jobs]\n");
    let dir = bench.stack("web", &text, None);
    let more = "services:\n  a:\n    labels: {owner: ops}\n";
    fs::write(dir.join("docker-compose.override.yml"), more).expect("a file");
    let losses = format!(
        "{LOSSES}
  {KILLED}
  - service a: settings no longer set: labels.owner
  - service jobs: will not start: no profile of it is active in Portainer
  - Compose file: docker-compose.override.yml is ignored
"
    );
    let run = bench.run_with("web", "COMPOSE_PROFILES", "jobs");
    run.succeeds(&*losses);
}

#[test]
fn b01_what_compose_does_not_read_on_disk_is_unknown() {
    let bench = Bench::web(PLAIN);
    bench.stack("web", &format!("{PLAIN}    env_file: gone.env\n"), None);
    let unknown =
        "what the rewritten Compose file loses is unknown: Compose cannot read the files on disk: ";
    for args in ["migrate web --dry-run", "web"] {
        let run = bench.run(args).code(0);
        assert_eq!(run.all().matches(unknown).count(), 1, "{run:#?}");
    }
}

/// What a real Compose prints differs from what the rehearsal prints: only what is lost may differ between two readings.
#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn b01_the_losses_of_a_text_are_those_that_the_real_compose_shows() {
    let program = std::env::var("STACKLIFT_TEST_COMPOSE").expect("STACKLIFT_TEST_COMPOSE");
    let losses = |text: &str, env: &str| {
        let bench = Bench::new();
        bench.stack("web", text, Some(env));
        fs::write(bench.dir("web").join("app.env"), "OWN=1\nKEPT=2\n").expect("a file");
        bench.script("docker-compose", &format!("exec {program} \"$@\"\n"));
        let run = bench.run("migrate web --dry-run --output json").code(0);
        let report = run.report("plan");
        assert_eq!(report["migrate"]["losses_known"], true, "{report:#}");
        let all = report["migrate"]["losses"].as_array().expect("losses");
        let told = all.iter().map(|loss| {
            let [subject, message] = ["subject", "message"].map(|key| loss[key].as_str());
            let message = message.unwrap_or_default();
            let message = message.replace(&bench.root().display().to_string(), "ROOT");
            let message = message.replace(&bench.home().display().to_string(), "HOME");
            format!("{}: {message}", subject.unwrap_or_default())
        });
        // Each version prints the keys in its own order.
        told.collect::<std::collections::BTreeSet<_>>()
    };
    let same = r"
x-common: &common
  restart: unless-stopped
  logging: {driver: json-file, options: {max-size: 10m}}
services:
  a:
    <<: *common
    image: busybox:${TAG}
    build: https://example.com/app.git
    env_file: []
    environment: [A=$TAG, B=$$x, BARE]
    labels: ['traefik.rule=Host(`a`)']
    ports: ['8080:80', '127.0.0.1:9000-9001:90-91/udp']
    volumes: ['./data/:/data', './/x:/x:ro', 'named:/n', '/anonymous']
    networks: {front: {aliases: [b]}}
    depends_on: {b: {condition: service_healthy}}
    deploy: {resources: {limits: {memory: 1g}}}
    secrets: [token]
  b:
    extends: {service: base}
    healthcheck: {test: [CMD, 'true'], interval: 5s}
  base: {image: busybox, command: sleep 1, tmpfs: /run, ulimits: {nofile: 5}}
  off: {image: busybox, profiles: [off], depends_on: [a]}
volumes: {named: {labels: {a: b}}}
networks: {front: {driver: bridge, ipam: {config: [{subnet: 10.0.0.0/24}]}}}
secrets: {token: {file: ./token}}
";
    assert_eq!(losses(same, "TAG=1.36\n"), [].into());
    let lossy = r"
name: mine
services:
  a:
    image: busybox
    build: .
    env_file: app.env
    environment: {KEPT: 3, DIR: ./dir, AT: '${HOSTNAME}'}
    command: [./run, '${TAG}']
    volumes: ['../up:/up', '~/x:/x', 'bare:/bare']
    secrets: [token]
volumes: {bare: {driver_opts: {o: ./o}}}
secrets: {token: {file: token}}
";
    let expected = [
        "Compose file: the project is named web instead of mine, with new volumes and networks",
        "secret token: paths that will be inside Portainer: file",
        "service a: a path inside Portainer is mounted at /up instead of ROOT/up",
        "service a: a path inside Portainer is mounted at /x instead of HOME/x",
        "service a: paths that will be inside Portainer: build.context",
        "service a: the rewrite changes what is not a path: command[0], environment.DIR",
        "service a: variables no longer set: OWN",
        "service a: variables with another value: AT",
        "volume bare: the rewrite changes what is not a path: driver_opts.o",
    ];
    assert_eq!(
        losses(lossy, "TAG='1'\n"),
        expected.map(str::to_owned).into()
    );
}

/// An item that is left over from a removed `env_file` becomes one of the list before it.
const DAMAGED: &str =
    "services:\n  a:\n    image: x\n    ports:\n      - \"80\"\n    env_file:\n      - app.env\n";

#[test]
fn b02_damage_is_refused() {
    let bench = Bench::new();
    for broken in [
        DAMAGED,
        "services:\n  a:\n    env_file:\n      - ./app.env\n",
        "services:\n  a:\n    image: x\n    command:\n      - .env\n      - b\n",
        "x: |\n  env_file: a\n  b\n",
    ] {
        bench.stack("web", broken, None);
        bench.stops("web", &["refusing to migrate", "line ", "--force"]);
        assert!(bench.backups("web").is_empty());
    }
    bench.stack("web", DAMAGED, None);
    let run = bench.run("web --force");
    run.says("continuing because of --force");
    assert!(bench.sent_text().contains("- \"80\"\n      - app.env\n"));
}

#[test]
fn b02_what_does_not_parse_before_either_is_sent_as_it_is() {
    let text = "services:\n  a: [\n";
    let bench = Bench::on_disk(text);
    bench.run("web").code(1).hides("refusing");
    assert_eq!(bench.sent_text(), text);
}

#[test]
fn b03_another_engine_is_refused() {
    let bench = Bench::new();
    bench.world(|world| world.add_endpoint(2, "edge"));
    bench.stack("new", PLAIN, None);
    bench.run("new --endpoint 2").code(0);
    assert!(bench.calls(Call::Info).is_empty(), "nothing to remove");
    bench.forget_requests();
    bench.started("web", PLAIN, None);
    let words = ["environment 2 is another host", "--force"];
    bench.stops("web --endpoint 2", &words);
    bench.succeeds("web --endpoint 2 --force", "continuing because of --force");
}

#[test]
fn b03_an_environment_whose_socket_compose_does_not_use_is_refused() {
    let bench = Bench::web(PLAIN);
    let at = |socket: &str| {
        let environment = json!({"Id": 1, "URL": format!("unix://{socket}")});
        bench.always(Call::Endpoints, done(200, &environment.to_string()));
    };
    at("/run/user/1000/docker.sock");
    let said = "the environment is the socket unix:///run/user/1000/docker.sock";
    for args in ["web", "adopt web"] {
        let uses = format!("{said}, but Compose in Portainer uses /var/run/docker.sock");
        let hint = "mount the socket of this host at /var/run/docker.sock";
        bench.stops(args, &[&uses, hint]);
    }
    bench.fails("doctor", said);
    bench.fails("plan web", said);
    at("/run/docker.sock");
    bench.succeeds("adopt web", "adopted web");
}

#[test]
fn b03_not_knowable_goes_on() {
    for call in [Call::Info, Call::EngineInfo] {
        let (refused, empty) = (instead(403, "{}"), done(200, "{}"));
        for kind in [refused, empty, FaultKind::Garbage, FaultKind::CloseBefore] {
            let bench = Bench::web(PLAIN);
            bench.always(call, kind);
            bench.succeeds("web", &["warning: ", "environment 1"]);
        }
    }
}

#[test]
fn b04_the_managers_own_stack_and_one_that_publishes_its_port_are_refused() {
    let bench = Bench::new();
    let url = bench.base_url();
    let port = url.rsplit(':').next().expect("a port");
    let own = "services:\n  a:\n    image: portainer/portainer-ce:2.23.0\n";
    let front = format!("services:\n  a:\n    image: nginx\n    ports: [\"{port}:443\"]\n");
    for (name, text, why) in [
        ("tools", own, "portainer/portainer-ce"),
        ("Tools2", own, "portainer/portainer-ce"),
        ("edge", &front, port),
    ] {
        let project = name.to_lowercase();
        bench.start_as(&project, bench.stack(name, text, None));
        let container = format!("{project}-a-1");
        bench.stops(name, &["runs Portainer itself", &container, why]);
    }
    bench.run("tools --force").code(0);
}
