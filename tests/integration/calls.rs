//! C50–C59: the calls, their order, and what their answers mean.

use std::fs;

use rehearsal::{Call, Era, FaultKind, Rule};
use serde_json::json;

use crate::bench::{Bench, KEY, PLAIN, Run};

const LIST: &str = "Portainer GET /api/stacks";
const CREATE: &str = "Portainer POST /api/stacks/create/standalone/string?endpointId=1";
const REMOVE: &str = "engine DELETE /containers/<id>";

#[test]
fn c50_the_first_record_of_that_name_and_endpoint() {
    let bench = Bench::new();
    bench.rehearsal.world(|world| {
        world.add_endpoint(2, "edge");
    });
    let elsewhere = bench.record("web", 2);
    let other = bench.record("web2", 1);
    let first = bench.record("web", 1);
    let second = bench.record("web", 1);
    bench.started("web", PLAIN, None);
    bench
        .run(&["web"])
        .says(&["delete", &format!("Portainer stack {first}")]);
    let deletes = bench.calls(Call::Delete);
    assert_eq!(deletes.len(), 1);
    assert_eq!(deletes[0].path, format!("/api/stacks/{first}?endpointId=1"));
    bench.rehearsal.world(|world| {
        for id in [elsewhere, other, second] {
            assert!(world.records.contains_key(&id), "record {id} stays");
        }
    });
}

#[test]
fn c50_no_content_and_null_are_empty_lists() {
    for (status, body) in [(204, ""), (200, "null"), (200, " [] ")] {
        let bench = Bench::new();
        bench.stack("web", PLAIN, None);
        let kind = FaultKind::Body(status, body.as_bytes().to_vec());
        bench.rehearsal.faults().set(Call::List, kind);
        bench.run(&["web"]).code(0);
    }
}

#[test]
fn c50_a_list_that_is_none_stops_the_run() {
    let cases = [
        (200, "{}"),
        (200, ""),
        (200, "[{\"Id\":1,\"Name\":\"web\""),
        (200, "[] trailing"),
        (200, "<html>log in</html>"),
        (500, "{\"message\":\"broken\"}"),
        (302, ""),
    ];
    for (status, body) in cases {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        let before = bench.containers("web");
        let kind = FaultKind::Body(status, body.as_bytes().to_vec());
        bench.rehearsal.faults().set(Call::List, kind);
        bench
            .run(&["web"])
            .code(1)
            .says(&["this run changed nothing", "hint: "]);
        assert_eq!(bench.containers("web"), before, "{status} {body}");
        assert!(bench.nothing_was_changed());
    }
}

#[test]
fn c50_entries_that_lack_fields_are_no_match() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let list = json!([
        null, 7, "web", [], {},
        {"Name": "web"},
        {"Id": 3, "Name": "web"},
        {"Id": 5, "Name": 1, "EndpointId": 1},
        {"Id": 6, "Name": "web", "EndpointId": 9}
    ]);
    let kind = FaultKind::Body(200, list.to_string().into_bytes());
    bench.rehearsal.faults().set(Call::List, kind);
    bench.run(&["web"]).code(0);
    assert!(bench.calls(Call::Delete).is_empty());
}

#[test]
fn c51_the_record_is_deleted_with_its_own_endpoint() {
    let bench = Bench::new();
    let id = bench.record("web", 1);
    bench.started("web", PLAIN, None);
    bench
        .run(&["web"])
        .code(0)
        .says(&[&format!("Portainer stack {id}")]);
    assert_eq!(
        bench.calls(Call::Delete)[0].path,
        format!("/api/stacks/{id}?endpointId=1")
    );
    // `down` took the containers, so nothing was left to remove here.
    assert!(bench.calls(Call::EngineRemove).is_empty());
    assert_eq!(bench.containers("web").len(), 1);
}

#[test]
fn c51_the_body_of_the_delete_is_discarded() {
    for kind in [
        FaultKind::Garbage,
        FaultKind::Empty,
        FaultKind::Body(200, b"{\"Id\": \"<html>".to_vec()),
        FaultKind::CutOff,
    ] {
        let bench = Bench::new();
        bench.record("web", 1);
        bench.started("web", PLAIN, None);
        bench.rehearsal.faults().set(Call::Delete, kind);
        bench.run(&["web"]).code(0);
    }
}

#[test]
fn c51_not_found_and_gone_goes_on() {
    let bench = Bench::new();
    let id = bench.record("web", 1);
    bench.started("web", PLAIN, None);
    // The work is done, and 404 is answered: somebody else was faster.
    let kind = FaultKind::Body(404, b"{\"message\":\"gone\",\"details\":\"gone\"}".to_vec());
    bench.rehearsal.faults().once(Call::Delete, kind);
    bench.run(&["web"]).code(0);
    assert_eq!(bench.calls(Call::List).len(), 2, "listed again");
    assert!(
        bench
            .rehearsal
            .world(|world| !world.records.contains_key(&id))
    );
}

#[test]
fn c51_not_found_and_still_there_stops() {
    let bench = Bench::new();
    let id = bench.record("web", 1);
    bench.started("web", PLAIN, None);
    let before = bench.containers("web");
    let kind = FaultKind::Status(404, "{\"message\":\"no such endpoint\"}".to_owned());
    bench.rehearsal.faults().set(Call::Delete, kind);
    bench.run(&["web"]).code(1).says(&[
        "Portainer lists it, but returned 404 for it",
        &format!("Portainer stack {id}"),
        "this run changed nothing",
    ]);
    assert_eq!(bench.containers("web"), before);
    assert!(bench.calls(Call::Create).is_empty());
}

#[test]
fn c51_a_record_that_deploys_is_waited_for() {
    let bench = Bench::of(Era::Async);
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let old = bench.rehearsal.world(|world| {
        let record = world.records.values_mut().next().expect("a record");
        let (id, text) = (record.id, record.text.clone());
        // Somebody updates the stack in Portainer.
        world.update(id, text, None).expect("an update that begins");
        id
    });
    bench.rehearsal.forget_requests();
    bench.run(&["web"]).code(0);
    let deletes = bench.calls(Call::Delete);
    let statuses: Vec<_> = deletes.iter().map(|request| request.status).collect();
    assert_eq!(statuses, [Some(409), Some(204)]);
    assert!(!bench.calls(Call::Get).is_empty());
    assert!(
        bench
            .rehearsal
            .world(|world| !world.records.contains_key(&old))
    );
}

#[test]
fn c51_any_other_status_stops_before_a_container_is_touched() {
    for status in [400, 401, 403, 409, 429, 500, 502, 302] {
        let bench = Bench::new();
        bench.record("web", 1);
        bench.started("web", PLAIN, None);
        let before = bench.containers("web");
        let kind = FaultKind::Status(status, "{\"message\":\"no\"}".to_owned());
        bench.rehearsal.faults().set(Call::Delete, kind);
        bench
            .run(&["web"])
            .code(1)
            .says(&["error: ", "hint: ", "this run changed nothing"]);
        assert_eq!(bench.containers("web"), before, "{status}");
        assert!(bench.calls(Call::EngineRemove).is_empty());
        assert!(bench.calls(Call::Create).is_empty());
    }
}

#[test]
fn c52_all_containers_of_the_project_are_removed_and_no_other() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: x\n  b:\n    image: x\n  c:\n    image: x\n";
    bench.started("web", text, None);
    bench.started("web2", PLAIN, None);
    bench.rehearsal.world(|world| {
        world.add_container("lonely", "busybox");
        let ids: Vec<String> = world.project("web").iter().map(|c| c.id.clone()).collect();
        // In any state.
        let stopped = world.containers.get_mut(&ids[0]).expect("it");
        stopped.exit(1, 0);
        stopped
            .labels
            .insert("com.docker.compose.oneoff".into(), "True".into());
    });
    let (before, others) = (bench.containers("web"), bench.containers("web2"));
    bench
        .run(&["web"])
        .code(0)
        .says(&["remove", "3 containers"]);
    let after = bench.containers("web");
    assert!(before.iter().all(|id| !after.contains(id)));
    assert_eq!(bench.containers("web2"), others);
    assert!(
        bench
            .rehearsal
            .world(|world| world.container("lonely").is_some())
    );
    // Forced, and never with their volumes.
    for request in bench.calls(Call::EngineRemove) {
        assert!(request.path.contains("force=1"), "{}", request.path);
        assert!(!request.path.contains("v="), "{}", request.path);
    }
}

#[test]
fn c52_nothing_to_remove() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    bench.run(&["web"]).code(0).hides("remove");
    assert!(bench.calls(Call::EngineRemove).is_empty());
    assert!(
        bench.calls(Call::Info).is_empty(),
        "nothing to compare engines for"
    );
}

#[test]
fn c52_a_failing_listing_is_tolerated_and_said() {
    for kind in [
        FaultKind::Status(500, "{\"message\":\"no\"}".into()),
        FaultKind::CloseBefore,
        FaultKind::Garbage,
    ] {
        let bench = Bench::new();
        bench.started("web", PLAIN, None);
        bench.rehearsal.faults().set(Call::EngineList, kind);
        bench.run(&["web"]).code(0).says(&[
            "warning: ",
            "the stack's containers are unknown: what they will lose",
            "created",
        ]);
    }
}

#[test]
fn c52_a_failing_removal_stops_the_run() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let kind = FaultKind::Status(500, "{\"message\":\"device is busy\"}".to_owned());
    bench.rehearsal.faults().set(Call::EngineRemove, kind);
    bench.run(&["web"]).code(1).says(&[
        "failed to remove the containers",
        "device is busy",
        "web-a-1",
        "state: ",
    ]);
    assert!(bench.calls(Call::Create).is_empty());
}

#[test]
fn c52_a_container_that_is_gone_already_is_no_failure() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let kind = FaultKind::Body(404, b"{\"message\":\"No such container\"}".to_vec());
    bench.rehearsal.faults().set(Call::EngineRemove, kind);
    bench.run(&["web"]).code(0);
}

#[test]
fn c52_another_tool_is_reached_by_its_command() {
    let bench = Bench::new();
    let dir = bench.stack("web", PLAIN, None);
    fs::rename(dir.join("docker-compose.yml"), dir.join("boat-compose.yml")).expect("renamed");
    let log = bench.root().join("log");
    let bin = bench.script(
        "boat",
        &format!(
            "echo \"$@\" >> {}\ncase \"$1\" in ps) [ -e {}.done ] || echo 0123456789ab;; inspect) echo '[{{\"Id\":\"0123456789ab\",\"Name\":\"/web-a-1\",\"Config\":{{\"Image\":\"x\",\"Labels\":{{\"com.boat.compose.project\":\"web\"}}}}}}]';; rm) touch {}.done;; image) echo '[{{\"Id\":\"sha256:0\"}}]';; esac\n",
            log.display(), log.display(), log.display()
        ),
    );
    let mut command = bench.command(&["web", "--tool", "boat", "--engine", "auto"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    Run::of(&mut command).code(0).says(&["1 container"]);
    let log = fs::read_to_string(log).expect("a log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines[0],
        "ps -aq --filter label=com.boat.compose.project=web"
    );
    assert!(lines.contains(&"rm -f 0123456789ab"), "{log}");
}

#[test]
fn c53_what_the_create_sends_and_when() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", PLAIN, Some("A=1\nB='x y'\nA=2\n"));
    bench.started("mail", PLAIN, None);
    bench.run(&["web"]).code(0);
    let create = &bench.calls(Call::Create)[0];
    assert_eq!(create.method, "POST");
    assert_eq!(
        create.path,
        "/api/stacks/create/standalone/string?endpointId=1"
    );
    assert_eq!(create.header("Content-Type"), Some("application/json"));
    assert_eq!(create.header("X-API-Key"), Some(KEY));
    let expected = json!({
        "name": "web",
        "stackFileContent": PLAIN,
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "value": "'x y'"},
            {"name": "A", "value": "2"}
        ],
        "fromAppTemplate": false
    });
    assert_eq!(bench.sent(), expected);
    bench.rehearsal.forget_requests();
    bench.run(&["mail"]).code(0);
    let journal = bench.journal();
    let at = |line: &str| journal.iter().position(|entry| entry == line).expect(line);
    assert!(
        at(LIST) < at(REMOVE) && at(REMOVE) < at(CREATE),
        "{journal:#?}"
    );
    let requests = bench.rehearsal.requests();
    let to_manager = requests.iter().filter(|request| request.port != 0);
    for request in to_manager {
        assert_eq!(request.header("X-API-Key"), Some(KEY), "{request}");
    }
}

#[test]
fn c53_one_connection_is_kept() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", PLAIN, None);
    bench.run(&["web"]).code(0);
    let mut ports: Vec<u16> = bench.rehearsal.requests().iter().map(|r| r.port).collect();
    ports.retain(|port| *port != 0);
    assert!(ports.len() >= 3);
    ports.dedup();
    assert_eq!(ports.len(), 1, "one TLS connection a run");
}

#[test]
fn c54_an_id_then_the_table() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let run = bench.run(&["web"]).code(0).says(&["stack web with Id 1"]);
    let lines: Vec<&str> = run.out.lines().map(str::trim).collect();
    let header = lines.len() - 2;
    let words: Vec<&str> = lines[header].split_whitespace().collect();
    assert_eq!(words, ["Names", "Image", "Status"]);
    assert!(lines[header + 1].starts_with("web-a-1"), "{}", run.out);
    assert!(lines[header + 1].contains("busybox:1.36"));
    assert!(lines[header + 1].contains("Up "));
}

#[test]
fn c54_what_is_an_id() {
    for (body, id) in [
        ("{\"Id\":0}", "0"),
        ("{\"Id\":\"x-7\"}", "x-7"),
        ("{\"Id\":-3,\"Status\":1}", "-3"),
        ("{\"Id\":18446744073709551615}", "18446744073709551615"),
    ] {
        let bench = Bench::new();
        bench.stack("web", PLAIN, None);
        let kind = FaultKind::Body(200, body.as_bytes().to_vec());
        bench.rehearsal.faults().set(Call::Create, kind);
        bench.run(&["web"]).code(0).says(&[&format!("Id {id}")]);
    }
    for body in [
        "{}",
        "{\"Id\":null}",
        "{\"Id\":\"\"}",
        "[{\"Id\":1}]",
        "1",
        "",
        "{\"Id\":1",
    ] {
        let bench = Bench::new();
        bench.stack("web", PLAIN, None);
        let kind = FaultKind::Body(200, body.as_bytes().to_vec());
        bench.rehearsal.faults().set(Call::Create, kind);
        bench
            .run(&["web"])
            .code(1)
            .says(&["unexpected response to the create"]);
        assert_eq!(bench.calls(Call::Create).len(), 1);
    }
}

#[test]
fn c54_a_deployment_that_goes_on_is_waited_for() {
    let bench = Bench::of(Era::Async);
    bench.started("web", PLAIN, None);
    bench
        .run(&["web"])
        .code(0)
        .says(&["stack web with Id 1", "web-a-1"]);
    assert!(
        bench.calls(Call::Get).len() >= 2,
        "polled until it was over"
    );
}

#[test]
fn c54_a_deployment_that_ends_in_error_is_a_failure() {
    let bench = Bench::of(Era::Async);
    let text = "services:\n  a:\n    image: nowhere/absent:1\n";
    bench.stack("web", text, Some("PASSWORD=nowhere/absent:1\n"));
    bench.rehearsal.world(|world| {
        world.unpullable.insert("nowhere/absent:1".to_owned());
    });
    bench
        .run(&["web"])
        .code(1)
        .says(&["failed to create the stack web", "Portainer stack 1", "***"])
        .hides("nowhere/absent:1");
    assert_eq!(bench.calls(Call::Create).len(), 1);
}

#[test]
fn c54_a_table_that_cannot_be_had_does_not_undo_the_success() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let rule = Rule::new(Call::EngineList, FaultKind::Status(500, "{}".to_owned())).after(1);
    bench.rehearsal.faults().add(rule);
    bench.run(&["web"]).code(0).says(&["created", "warning: "]);
}

#[test]
fn c55_the_body_as_formatted_json() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: nowhere/absent:1\n";
    bench.started("web", PLAIN, None);
    fs::write(bench.dir("web").join("docker-compose.yml"), text).expect("the file");
    bench.rehearsal.world(|world| {
        world.unpullable.insert("nowhere/absent:1".to_owned());
    });
    bench.run(&["web", "--force"]).code(1).says(&[
        "failed to create the stack web",
        "\n{\n  \"message\": \"failed to deploy a stack",
        "\n  \"details\": \"Failed to deploy",
        "the stack is down",
        "run the command again",
    ]);
    assert!(bench.containers("web").is_empty());
}

#[test]
fn c55_a_body_that_is_not_json_is_shown_as_it_came() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    let body = b"upstream is \x1b[31mdown\nsecond line".to_vec();
    bench
        .rehearsal
        .faults()
        .set(Call::Create, FaultKind::Body(502, body));
    bench
        .run(&["web"])
        .code(1)
        .says(&["upstream is \\u{1b}[31mdown\nsecond line"])
        .hides("\x1b[31m");
}

#[test]
fn c55_values_of_eight_characters_or_more_are_masked() {
    let bench = Bench::new();
    bench.stack(
        "web",
        PLAIN,
        Some("A=longsecret\nB=\"quoted secret\"\nC=short\nD='multi word'\n"),
    );
    let body = json!({"message": "longsecret and quoted secret and short", "longsecret": ["\"quoted secret\""], "details": "multi word"});
    let kind = FaultKind::Body(500, body.to_string().into_bytes());
    bench.rehearsal.faults().set(Call::Create, kind);
    bench
        .run(&["web"])
        .code(1)
        .says(&["*** and *** and short"])
        .hides("longsecret")
        .hides("quoted secret")
        .hides("multi word");
}

#[test]
fn c56_the_key_is_nowhere_but_in_the_header() {
    let bench = Bench::new();
    bench.started("web", PLAIN, Some("A=1\n"));
    // Every run of the bench asserts that neither stream shows the key.
    bench.run(&["web", "-v"]).code(0);
    for request in bench.rehearsal.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains(KEY));
        assert!(!request.path.contains(KEY));
    }
    let echo = json!({"message": format!("key {KEY} is odd")}).to_string();
    bench.rehearsal.faults().set(
        Call::Create,
        FaultKind::Body(500, echo.clone().into_bytes()),
    );
    bench.run(&["web", "-v"]).code(1).says(&["key *** is odd"]);
    bench
        .rehearsal
        .faults()
        .set(Call::List, FaultKind::Status(403, echo));
    bench.run(&["web", "-v"]).code(1).says(&["key *** is odd"]);
    // Nor is it an argument.
    bench.run(&["web", "--api-key", "x"]).code(2);
    for entry in fs::read_dir(bench.dir("web")).expect("read") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("text");
        assert!(!text.contains(KEY));
    }
}

#[test]
fn c57_a_rerun_converges() {
    let bench = Bench::new();
    bench.started("web", PLAIN, Some("A=1\n"));
    let state = || {
        bench.rehearsal.world(|world| {
            let records: Vec<_> = world
                .records
                .values()
                .map(|r| (r.name.clone(), r.text.clone()))
                .collect();
            let names: Vec<_> = world
                .project("web")
                .iter()
                .map(|c| (c.name.clone(), c.state.clone()))
                .collect();
            (records, names)
        })
    };
    bench.run(&["web"]).code(0);
    let first = state();
    assert_eq!((first.0.len(), first.1.len()), (1, 1));
    bench.run(&["web"]).code(0);
    assert_eq!(state(), first);
    // After a create that failed, and after one whose answer was lost.
    for kind in [
        FaultKind::Status(500, "{}".to_owned()),
        FaultKind::CloseAfter,
        FaultKind::CloseBefore,
    ] {
        bench.rehearsal.faults().once(Call::Create, kind);
        bench.run(&["web"]).code(1);
        bench.run(&["web"]).code(0);
        assert_eq!(state(), first);
    }
}

#[test]
fn c58_a_failing_step_stops_the_run() {
    for call in [Call::List, Call::Delete, Call::EngineRemove] {
        let bench = Bench::new();
        if call == Call::Delete {
            bench.record("web", 1);
        }
        bench.started("web", PLAIN, None);
        bench.rehearsal.faults().set(call, FaultKind::CloseBefore);
        bench
            .run(&["web"])
            .code(1)
            .says(&["error: ", "state: ", "hint: "]);
        assert!(bench.calls(Call::Create).is_empty(), "{call:?}");
    }
}

#[test]
fn c58_an_unreachable_manager_stops_the_run() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let before = bench.containers("web");
    // A port that nobody listens on.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    drop(listener);
    bench.run(&["web", "--base-url", &url]).code(1).says(&[
        "failed to list Portainer's stacks",
        &url,
        "this run changed nothing",
        "hint: ",
    ]);
    assert_eq!(bench.containers("web"), before);
}

#[test]
fn c59_the_name_that_the_manager_will_use_is_said() {
    let bench = Bench::new();
    bench.stack("My.Web", PLAIN, None);
    bench.run(&["My.Web"]).code(0).says(&[
        "Portainer will call it myweb",
        "stack My.Web with Id 1",
        "myweb-a-1",
    ]);
    assert_eq!(bench.sent()["name"], "My.Web");
    bench.stack("web", PLAIN, None);
    bench.run(&["web"]).code(0).hides("will call it");
}

#[test]
fn c59_a_record_of_the_normalised_name_may_be_another_stacks() {
    let bench = Bench::new();
    let id = bench.record("myweb", 1);
    let dir = bench.started("My.Web", PLAIN, None);
    bench.run(&["My.Web", "--force"]).code(1).says(&[
        "myweb",
        &format!("Portainer stack {id}"),
        "--dir",
        dir.to_str().expect("UTF-8"),
    ]);
    assert!(bench.nothing_was_changed());
    assert!(bench.backups("My.Web").is_empty(), "nothing is touched");
}

#[test]
fn c59_a_name_of_which_nothing_is_left() {
    let bench = Bench::new();
    bench.started("\u{4f60}\u{597d}", PLAIN, None);
    bench
        .run(&["\u{4f60}\u{597d}"])
        .code(1)
        .says(&["has no character that Portainer allows"]);
    assert!(bench.rehearsal.requests().is_empty());
}
