//! `--endpoint auto`: the environment whose engine is the engine of this host (M17, M22).

use std::fs;

use rehearsal::{Call, FaultKind, Rule};
use serde_json::Value;

use crate::{
    bench::{Bench, PLAIN, Run},
    requests,
};

const AUTO: [&str; 2] = ["--endpoint", "auto"];
const HINT: &str = "environment 3 is this engine: pass --endpoint 3, or --endpoint auto";

/// Environment 3 (nas) is this engine; 1 (local) and 2 (edge) are others.
fn third() -> Bench {
    let bench = Bench::new();
    bench.rehearsal.world(|world| {
        world.add_endpoint(2, "edge");
        let other = world.add_endpoint(3, "nas");
        let mut engine = |id, engine| {
            let endpoint = world.endpoints.get_mut(&id).expect("an environment");
            std::mem::replace(&mut endpoint.engine, engine)
        };
        let this = engine(1, other);
        engine(3, this);
    });
    bench.started("web", PLAIN, None);
    bench
}

fn auto(bench: &Bench, args: &[&str]) -> Run {
    bench.run(&[args, &AUTO].concat())
}

fn unreadable(bench: &Bench, id: u64) {
    let path = format!("/api/endpoints/{id}/docker");
    let rule = Rule::new(Call::Info, FaultKind::Status(502, String::new()));
    bench.rehearsal.faults().add(rule.path(&path));
}

#[test]
fn each_command_finds_the_environment_and_says_which() {
    let found = "environment 3 (nas) is this engine";
    for args in [
        ["plan", "web"].as_slice(),
        &["list"],
        &["adopt", "web", "--dry-run"],
        &["migrate", "web", "--dry-run"],
        &["render", "web", "--as", "adopt", "--keep-anonymous"],
    ] {
        let bench = third();
        auto(&bench, args).code(0).says(&[found]);
        assert!(bench.nothing_was_changed());
    }
    for args in [["adopt", "web"], ["migrate", "web"]] {
        let bench = third();
        auto(&bench, &args).code(0).says(&[found]);
        let creates = bench.calls(Call::Create);
        assert_eq!(creates.len(), 1);
        assert!(creates[0].path.ends_with("endpointId=3"), "{creates:?}");
        auto(&bench, &["restore", "web"]).code(0);
    }
}

#[test]
fn b14_a_printed_command_names_the_environment_that_was_found() {
    let bench = third();
    let kind = FaultKind::Status(500, "{\"message\":\"no\"}".to_owned());
    bench.rehearsal.faults().once(Call::Create, kind);
    let run = auto(&bench, &["web"]).code(1);
    let command = requests::printed(&run);
    assert!(command.contains(" --endpoint 3 "), "{command}");
}

#[test]
fn json_shows_the_environment_that_was_found() {
    let bench = third();
    for args in [["plan", "web"].as_slice(), &["list"]] {
        let run = auto(&bench, &[args, &["--output", "json"]].concat()).code(0);
        let json: Value = serde_json::from_str(&run.out).expect("JSON");
        assert_eq!(json["portainer"]["environment"], 3);
        assert_eq!(json["portainer"]["engine"], "this-host");
    }
}

#[test]
fn it_can_be_set_in_the_environment_and_in_a_file() {
    let bench = third();
    let mut command = bench.command(&["plan", "web"]);
    command.env("STACKLIFT_ENDPOINT", "auto");
    Run::of(&mut command).code(0).says(&["environment 3 (nas)"]);
    let config = bench.state().parent().expect("home").join(".config");
    fs::create_dir(&config).expect("a directory");
    fs::write(config.join("stacklift.toml"), "endpoint = \"auto\"\n").expect("settings");
    bench
        .run(&["plan", "web"])
        .code(0)
        .says(&["environment 3 (nas)"]);
    bench
        .run(&["plan", "web", "--endpoint", "nas"])
        .code(2)
        .says(&["expected a number or `auto`"]);
}

#[test]
fn none_and_several_are_errors_that_name_the_environments() {
    let bench = third();
    bench.rehearsal.world(|world| {
        world.endpoints.remove(&3);
    });
    for args in [
        ["web"].as_slice(),
        &["adopt", "web"],
        &["plan", "web"],
        &["list"],
    ] {
        auto(&bench, args).code(1).says(&[
            "no environment of Portainer at https://127.0.0.1:",
            " is this engine",
            "environment 1 (local) is another engine",
            "environment 2 (edge) is another engine",
            "add this engine to Portainer",
        ]);
    }
    let bench = third();
    bench.rehearsal.world(|world| {
        let this = world.endpoints[&3].clone();
        world.endpoints.insert(5, this);
    });
    auto(&bench, &["web"]).code(1).says(&[
        "2 environments of Portainer",
        "environment 3 (nas) is this engine",
        "environment 5 (nas) is this engine",
        "pass the ID of one of them with --endpoint",
        "this run changed nothing",
    ]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn an_environment_that_cannot_be_read_is_not_absent() {
    let bench = third();
    unreadable(&bench, 2);
    auto(&bench, &["plan", "web"]).code(0).says(&[
        "environment 3 (nas) is this engine",
        "environment 2 (edge) could not be read: ",
        "502",
    ]);
    unreadable(&bench, 3);
    auto(&bench, &["web"]).code(1).says(&[
        " is known to be this engine",
        "environment 1 (local) is another engine",
        "environment 3 (nas) could not be read: ",
        "an environment that could not be read may be this engine",
    ]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn a_key_that_does_not_see_every_environment_is_said() {
    const USER: &str = "ptr_user-key-99d2";
    let bench = third();
    bench.rehearsal.world(|world| {
        world.add_user(USER, "somebody");
        world.endpoints.get_mut(&3).expect("nas").restricted = true;
    });
    let mut command = bench.command(&["plan", "web", AUTO[0], AUTO[1]]);
    Run::of(command.env("STACKMGR_API_KEY", USER))
        .code(1)
        .says(&["does not belong to an administrator and may not see every environment"])
        .hides("nas");
}

#[test]
fn a_portainer_or_engine_that_does_not_respond_is_an_error_except_for_the_list() {
    let bench = third();
    let kind = FaultKind::Status(503, String::new());
    bench.rehearsal.faults().set(Call::Endpoints, kind);
    let error = "failed to list Portainer's environments: status 503";
    auto(&bench, &["web"])
        .code(1)
        .says(&[error, "this run changed nothing"]);
    auto(&bench, &["list"]).code(0).says(&[error, "web"]);
    bench.rehearsal.faults().clear();
    let mut command = bench.command(&["web", AUTO[0], AUTO[1]]);
    command.env("DOCKER_HOST", "unix:///absent/engine.sock");
    Run::of(&mut command).code(1).says(&["absent/engine.sock"]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn b03_a_refusal_names_the_environment_of_this_host() {
    let bench = third();
    for args in [["web"].as_slice(), &["adopt", "web"], &["plan", "web"]] {
        bench.run(args).says(&[HINT]);
        bench
            .run(&[args, &["--endpoint", "99"]].concat())
            .says(&["environment 99", HINT]);
    }
    bench.run(&["web"]).code(1);
    bench.run(&["adopt", "web"]).code(1);
    assert!(bench.nothing_was_changed());
    bench.rehearsal.world(|world| {
        let this = world.endpoints[&3].clone();
        world.endpoints.insert(5, this);
    });
    bench
        .run(&["web"])
        .code(1)
        .hides("is this engine")
        .says(&["pass the ID of this host's environment with --endpoint"]);
}

#[test]
fn c09_without_auto_the_environments_are_not_listed() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    bench.run(&["adopt", "web"]).code(0);
    bench.run(&["list"]).code(0);
    // Only the environment itself is read (B03).
    let read = bench.calls(Call::Endpoints).into_iter();
    assert!(
        read.map(|one| one.path)
            .all(|path| path == "/api/endpoints/1")
    );
}
