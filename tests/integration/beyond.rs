//! B01–B05: what the contract adds to the seed without breaking it.

use rehearsal::{Call, Era, FaultKind};
use serde_json::json;

use crate::bench::{Bench, PLAIN, Run};

/// What stands in front of the losses.
const LOSSES: &str = "the stack will lose:";

#[test]
fn b01_variables_that_no_longer_arrive() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: x\n    env_file: .env\n    environment:\n      MODE: own\n  b:\n    image: x\n";
    bench.started(
        "web",
        text,
        Some("TOKEN=s3cr3t-very-long-value\nMODE=from-file-value\n"),
    );
    let run = bench.run(&["web"]).code(0).says(&[LOSSES, "TOKEN"]);
    let line = run
        .err
        .lines()
        .find(|line| line.contains("TOKEN"))
        .expect("a line");
    assert!(line.contains('a'), "by service: {line}");
    run.hides("s3cr3t-very-long-value").hides("from-file-value");
}

#[test]
fn b01_paths_that_point_elsewhere() {
    let bench = Bench::new();
    let text =
        "services:\n  a:\n    image: x\n    volumes:\n      - ../shared:/s\n      - ./own:/o\n";
    bench.started("web", text, None);
    bench
        .run(&["web"])
        .code(0)
        .says(&[LOSSES, "a", "../shared"])
        .hides("./own");
}

#[test]
fn b01_anonymous_volumes() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: x\n    volumes:\n      - /cache\n      - named:/n\nvolumes:\n  named:\n";
    bench.started("web", text, None);
    let volume = bench.rehearsal.world(|world| {
        let container = world.container("web-a-1").expect("it");
        let mount = container.mounts.iter().find(|mount| mount.anonymous);
        mount
            .expect("an anonymous volume")
            .name
            .clone()
            .expect("a name")
    });
    bench
        .run(&["web"])
        .code(0)
        .says(&[LOSSES, "web-a-1", "/cache", &volume])
        .hides("web_named");
}

#[test]
fn b01_what_the_record_carries() {
    let bench = Bench::new();
    let id = bench.record("web", 1);
    bench.rehearsal.world(|world| {
        let record = world.records.get_mut(&id).expect("it");
        record.git =
            Some(json!({"URL": "https://git.example/stacks.git", "ReferenceName": "main"}));
        record.auto_update = Some(json!({"Interval": "5m", "Webhook": "0d0b5d5e"}));
        record.control.teams = vec![3];
        record.env = Some(vec![rehearsal::Variable {
            name: "ONLY_THERE".to_owned(),
            value: "record-secret".to_owned(),
        }]);
    });
    bench.started("web", PLAIN, None);
    bench
        .run(&["web"])
        .code(0)
        .says(&[
            LOSSES,
            "Git link to https://git.example/stacks.git",
            "automatic update",
            "webhook",
            "access rights",
            "ONLY_THERE",
        ])
        .hides("record-secret");
}

#[test]
fn b01_files_that_the_manager_must_read() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    build: ./src\n    image: own/a:1\n";
    bench.started("web", text, None);
    bench.run(&["web"]).says(&[LOSSES, "a", "./src"]);
}

#[test]
fn b01_is_said_before_the_first_destructive_act() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started(
        "web",
        "services:\n  a:\n    image: x\n    volumes: [/cache]\n",
        None,
    );
    bench
        .rehearsal
        .faults()
        .set(Call::Delete, FaultKind::CloseBefore);
    bench.run(&["web"]).code(1).says(&[LOSSES, "/cache"]);
}

#[test]
fn b01_nothing_is_said_where_nothing_is_lost() {
    let bench = Bench::new();
    bench.started("web", PLAIN, Some("A=1\n"));
    bench.run(&["web", "--grace", "1s"]).code(0).hides(LOSSES);
}

#[test]
fn b01_portainers_own_directory_is_not_another_directory() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    bench.run(&["web"]).code(0).hides("another directory");
}

/// An item that is left over from a removed `env_file` becomes one of the list before it.
const DAMAGED: &str =
    "services:\n  a:\n    image: x\n    ports:\n      - \"80\"\n    env_file:\n      - app.env\n";

#[test]
fn b02_damage_is_refused() {
    let bench = Bench::new();
    bench.stack("web", DAMAGED, None);
    let run = bench.run(&["web"]).code(1);
    let run = run.says(&[
        "refusing to migrate",
        "line ",
        "--force",
        "this run changed nothing",
    ]);
    assert!(bench.backups("web").is_empty(), "{}", run.out);
    assert!(bench.nothing_was_changed());
    for broken in [
        "services:\n  a:\n    env_file:\n      - ./app.env\n",
        "services:\n  a:\n    image: x\n    command:\n      - .env\n      - b\n",
        "x: |\n  env_file: a\n  b\n",
    ] {
        let bench = Bench::new();
        bench.stack("web", broken, None);
        bench.run(&["web"]).code(1).says(&["refusing to migrate"]);
    }
}

#[test]
fn b02_force_overrides() {
    let bench = Bench::new();
    bench.stack("web", DAMAGED, None);
    bench
        .run(&["web", "--force"])
        .says(&["continuing because of --force"]);
    assert!(bench.sent_text().contains("- \"80\"\n      - app.env\n"));
}

#[test]
fn b02_what_does_not_parse_before_either_is_sent_as_it_is() {
    let bench = Bench::new();
    let text = "services:\n  a: [\n";
    bench.stack("web", text, None);
    bench.run(&["web"]).code(1).hides("refusing");
    assert_eq!(bench.sent_text(), text);
}

#[test]
fn b03_another_engine_is_refused() {
    let bench = Bench::new();
    bench.rehearsal.world(|world| world.add_endpoint(2, "edge"));
    bench.started("web", PLAIN, None);
    let before = bench.containers("web");
    bench.run(&["web", "--endpoint", "2"]).code(1).says(&[
        "not this host's engine",
        "environment 2",
        "--force",
    ]);
    assert_eq!(bench.containers("web"), before);
    assert!(bench.nothing_was_changed());
    bench
        .run(&["web", "--endpoint", "2", "--force"])
        .code(0)
        .says(&["continuing because of --force"]);
}

#[test]
fn b03_an_environment_whose_socket_compose_does_not_use_is_refused() {
    let started = |socket: &str| {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        let body = format!("{{\"Id\":1,\"URL\":\"unix://{socket}\"}}");
        let body = FaultKind::Body(200, body.into_bytes());
        bench.rehearsal.faults().set(Call::Endpoints, body);
        bench
    };
    let bench = started("/run/user/1000/docker.sock");
    let before = bench.containers("web");
    for args in [&["web"][..], &["adopt", "web", "--yes"]] {
        bench.run(args).code(1).says(&[
            "the environment is the socket unix:///run/user/1000/docker.sock, but Portainer's Compose uses /var/run/docker.sock",
            "mount this engine's socket at /var/run/docker.sock",
        ]);
        assert_eq!(bench.containers("web"), before);
        assert!(bench.nothing_was_changed());
    }
    let checked = bench.run(&["doctor"]).code(1);
    drop(checked.says(&["the environment is the socket unix:///run/user/1000/docker.sock"]));
    let planned = bench.run(&["plan", "web"]).code(0);
    drop(planned.says(&["blocked by 1 problem"]));
    let adopted = started("/run/docker.sock").run(&["adopt", "web"]);
    drop(adopted.code(0).says(&["verified"]));
}

#[test]
fn b03_is_asked_only_when_there_is_something_to_remove() {
    let bench = Bench::new();
    bench.rehearsal.world(|world| world.add_endpoint(2, "edge"));
    bench.stack("web", PLAIN, None);
    bench.run(&["web", "--endpoint", "2"]).code(0);
    assert!(bench.calls(Call::Info).is_empty());
}

#[test]
fn b03_not_knowable_goes_on() {
    for call in [Call::Info, Call::EngineInfo] {
        for kind in [
            FaultKind::Status(403, "{}".to_owned()),
            FaultKind::Garbage,
            FaultKind::CloseBefore,
        ] {
            let bench = Bench::new();
            bench.started("web", PLAIN, None);
            bench.rehearsal.faults().set(call, kind);
            bench
                .run(&["web"])
                .code(0)
                .says(&["warning: ", "environment 1"]);
        }
    }
}

#[test]
fn b03_an_environment_without_an_engine_id_is_said() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let kind = FaultKind::Body(200, b"{}".to_vec());
    bench.rehearsal.faults().set(Call::Info, kind);
    bench
        .run(&["web"])
        .code(0)
        .says(&["environment 1", "contains no engine ID"]);
}

#[test]
fn b04_the_managers_own_stack_is_refused() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: portainer/portainer-ce:2.23.0\n";
    bench.started("tools", text, None);
    bench.run(&["tools"]).code(1).says(&[
        "runs Portainer itself",
        "tools-a-1",
        "portainer/portainer-ce",
    ]);
    assert_eq!(bench.containers("tools").len(), 1);
    assert!(bench.nothing_was_changed());
    bench.run(&["tools", "--force"]).code(0);
}

#[test]
fn b04_so_is_one_that_publishes_the_managers_port() {
    let bench = Bench::new();
    let url = bench.rehearsal.base_url();
    let port = url.rsplit(':').next().expect("a port");
    let text = format!("services:\n  front:\n    image: nginx\n    ports: [\"{port}:443\"]\n");
    bench.started("edge", &text, None);
    bench
        .run(&["edge"])
        .code(1)
        .says(&["runs Portainer itself", "edge-front-1", port]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn b05_a_create_is_sent_once() {
    for era in [Era::Sync, Era::Async] {
        for (kind, there) in [
            (FaultKind::CloseBefore, false),
            (FaultKind::CloseAfter, true),
            (FaultKind::CutOff, true),
        ] {
            let bench = Bench::of(era);
            bench.started("web", PLAIN, None);
            bench.rehearsal.faults().once(Call::Create, kind.clone());
            let run = bench.run(&["web"]).code(1).says(&["state: "]);
            assert_eq!(bench.calls(Call::Create).len(), 1, "{kind:?}");
            if there {
                run.says(&["the stack exists as Portainer stack 1"]);
            } else {
                run.says(&["Portainer does not list the stack"]);
            }
        }
    }
}

#[test]
fn b05_an_answer_that_does_not_come_is_not_asked_for_twice() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    bench
        .rehearsal
        .faults()
        .once(Call::Create, FaultKind::HangAfter);
    let mut command = bench.command(&["web", "--timeout", "1s"]);
    Run::of(&mut command)
        .code(1)
        .says(&["the stack exists as Portainer stack 1", "state: "]);
    assert_eq!(bench.calls(Call::Create).len(), 1);
}
