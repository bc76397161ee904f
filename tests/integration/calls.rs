//! C50–C59: the calls, their order, and what their answers mean.

use std::fs;

use serde_json::json;
use testbed::{Call, Era, FaultKind, Rule};

use crate::bench::{Bench, KEY, PLAIN, done, instead, refusal};

const LIST: &str = "Portainer GET /api/stacks";
const CREATE: &str = "Portainer POST /api/stacks/create/standalone/string?endpointId=1";
const REMOVE: &str = "engine DELETE /containers/<id>";

/// A text whose image cannot be pulled.
const ABSENT: &str = "services:\n  a:\n    image: nowhere/absent:1\n";

/// The stack `web`, started by hand, of which Portainer has a stack, too.
fn recorded() -> (Bench, u64) {
    let bench = Bench::web(PLAIN);
    let id = bench.record("web", 1);
    (bench, id)
}

fn unpullable(bench: &Bench) {
    bench.world(|world| world.unpullable.insert("nowhere/absent:1".to_owned()));
}

fn exists(bench: &Bench, id: u64) -> bool {
    bench.world(|world| world.records.contains_key(&id))
}

#[test]
fn c50_the_first_record_of_that_name_and_endpoint() {
    let bench = Bench::web(PLAIN);
    bench.world(|world| world.add_endpoint(2, "edge"));
    let others = [bench.record("web", 2), bench.record("web2", 1)];
    let first = bench.record("web", 1);
    let second = bench.record("web", 1);
    let run = bench.run("web");
    run.says(&["delete", &format!("Portainer stack {first}")]);
    let deletes = bench.calls(Call::Delete);
    assert_eq!(deletes.len(), 1);
    assert_eq!(deletes[0].path, format!("/api/stacks/{first}?endpointId=1"));
    for id in [others[0], others[1], second] {
        assert!(exists(&bench, id), "Portainer stack {id} stays");
    }
    // `down` took the containers, so nothing was left to remove here.
    assert!(bench.calls(Call::EngineRemove).is_empty());
}

#[test]
fn c50_no_content_and_null_are_empty_lists() {
    let bench = Bench::on_disk(PLAIN);
    for (status, body) in [(204, ""), (200, "null"), (200, " [] ")] {
        bench.world(|world| world.records.clear());
        bench.always(Call::List, done(status, body));
        bench.run("web").code(0);
    }
}

#[test]
fn c50_a_list_that_is_none_stops_the_run() {
    let bench = Bench::web(PLAIN);
    let web = "[{\"Id\":1,\"Name\":\"web\",\"EndpointId\":1}";
    let not_utf8 = FaultKind::Body(200, b"\xff\xfe[".to_vec());
    for kind in [
        done(200, "{}"),
        done(200, "{\"Stacks\":[]}"),
        done(200, "\"\""),
        done(200, ""),
        done(200, web),
        done(200, &web[..20]),
        done(200, "[] trailing"),
        done(200, "[1,]"),
        done(200, "<html>log in</html>"),
        not_utf8,
        done(500, "{\"message\":\"broken\"}"),
        done(302, ""),
        FaultKind::CutOff,
        FaultKind::Garbage,
        FaultKind::Empty,
        FaultKind::CloseAfter,
    ] {
        bench.always(Call::List, kind);
        bench.stops("web", "stacks");
    }
}

#[test]
fn c50_entries_that_lack_fields_are_no_match() {
    let bench = Bench::on_disk(PLAIN);
    let list = json!([
        null, 7, "web", [], {},
        {"Name": "web"},
        {"Id": 3, "Name": "web"},
        {"Id": 5, "Name": 1, "EndpointId": 1},
        {"Id": 6, "Name": "web", "EndpointId": 9},
        {"Id": 7, "name": "web", "EndpointId": 1},
        {"Id": 8, "Name": "WEB", "EndpointId": 1}
    ]);
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    for list in [list.to_string(), deep] {
        bench.world(|world| world.records.clear());
        bench.always(Call::List, done(200, &list));
        bench.run("web").code(0);
        assert!(bench.calls(Call::Delete).is_empty());
    }
}

#[test]
fn c51_the_body_of_the_delete_is_discarded() {
    let html = done(200, "{\"Id\": \"<html>");
    for kind in [FaultKind::Garbage, FaultKind::Empty, html] {
        let (bench, _) = recorded();
        bench.always(Call::Delete, kind);
        bench.run("web").code(0);
    }
}

#[test]
fn c51_not_found_and_gone_goes_on() {
    let (bench, id) = recorded();
    // The work is done, and 404 is answered: somebody else was faster.
    bench.once(Call::Delete, FaultKind::Repeated);
    bench.run("web").code(0);
    assert_eq!(bench.calls(Call::List).len(), 2, "listed again");
    assert!(!exists(&bench, id));
}

#[test]
fn c51_any_other_status_stops_before_a_container_is_touched() {
    let (bench, id) = recorded();
    for status in [400, 401, 403, 404, 409, 429, 500, 502, 302] {
        let before = bench.containers("web");
        bench.always(
            Call::Delete,
            instead(status, r#"{"message":"no","details":"no"}"#),
        );
        let run = bench.fails("web", &format!("Portainer stack {id}"));
        let run = run.says(&["error: ", "hint: "]);
        // The others are not Portainer's (B35).
        let is_own = !matches!(status, 502 | 302);
        assert_eq!(run.err.contains("Nothing was changed"), is_own, "{run:?}");
        if status == 404 {
            run.says("Portainer lists it, but returned 404 for it");
        }
        assert_eq!(bench.containers("web"), before, "{status}");
        assert!(bench.calls(Call::EngineRemove).is_empty());
        assert!(bench.calls(Call::Create).is_empty());
    }
}

#[test]
fn c51_a_record_that_deploys_is_waited_for() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    bench.run("web").code(0);
    let record = bench.first_record();
    let old = record.id;
    bench.update_in_portainer(&record);
    bench.forget_requests();
    bench.run("web").code(0);
    let deletes = bench.calls(Call::Delete);
    let statuses: Vec<_> = deletes.iter().map(|request| request.status).collect();
    assert_eq!(statuses, [Some(409), Some(204)]);
    assert!(!bench.calls(Call::Get).is_empty());
    assert!(!exists(&bench, old));
}

#[test]
fn c52_all_containers_of_the_project_are_removed_and_no_other() {
    let text = "services:\n  a:\n    image: x\n  b:\n    image: x\n  c:\n    image: x\n";
    let bench = Bench::web(text);
    bench.started("web2", PLAIN, None);
    let before = bench.containers("web");
    bench.world(|world| {
        world.add_container("lonely", "busybox");
        // In any state.
        let stopped = world.containers.get_mut(&before[0]).expect("it");
        stopped.exit(1, 0);
        let label = "com.docker.compose.oneoff".to_owned();
        stopped.labels.insert(label, "True".to_owned());
    });
    let others = bench.containers("web2");
    bench.succeeds("web", &["remove", "3 containers"]);
    let after = bench.containers("web");
    assert!(before.iter().all(|id| !after.contains(id)));
    assert_eq!(bench.containers("web2"), others);
    assert!(bench.world(|world| world.container("lonely").is_some()));
    // Forced, and never with their volumes.
    for request in bench.calls(Call::EngineRemove) {
        assert!(request.path.contains("force=1"), "{}", request.path);
        assert!(!request.path.contains("v="), "{}", request.path);
    }
}

#[test]
fn c52_nothing_to_remove() {
    let bench = Bench::on_disk(PLAIN);
    bench.run("web").code(0).hides("remove");
    for call in [Call::EngineRemove, Call::Info] {
        assert!(bench.calls(call).is_empty(), "{call:?}: there is no need");
    }
}

#[test]
fn c52_a_failing_removal_stops_the_run_and_a_container_that_is_gone_does_not() {
    let bench = Bench::web(PLAIN);
    let busy = instead(500, "{\"message\":\"device is busy\"}");
    bench.always(Call::EngineRemove, busy);
    bench.fails("web", "error: failed to remove the containers: not removed: web-a-1 (1 of 1)\nweb-a-1: Docker returned 500: device is busy\nstate: 0 of 1 container was removed; the stack was not sent to Portainer\n");
    assert!(bench.calls(Call::Create).is_empty());
    let gone = done(404, "{\"message\":\"No such container\"}");
    bench.always(Call::EngineRemove, gone);
    bench.run("web").code(0);
}

#[test]
fn c52_another_tool_is_reached_by_its_command() {
    let bench = Bench::new();
    let dir = bench.stack("web", PLAIN, None);
    fs::rename(dir.join("docker-compose.yml"), dir.join("boat-compose.yml")).expect("renamed");
    let log = bench.root().join("log");
    bench.script(
        "boat",
        &format!(
            "echo \"$@\" >> {}\ncase \"$1\" in ps) [ -e {}.done ] || echo 0123456789ab;; inspect) echo '[{{\"Id\":\"0123456789ab\",\"Name\":\"/web-a-1\",\"Config\":{{\"Image\":\"x\",\"Labels\":{{\"com.boat.compose.project\":\"web\"}}}}}}]';; rm) touch {}.done;; image) echo '[{{\"Id\":\"sha256:0\"}}]';; esac\n",
            log.display(), log.display(), log.display()
        ),
    );
    bench.succeeds("web --tool boat --engine auto", "1 container");
    let log = fs::read_to_string(log).expect("a log");
    let lines: Vec<&str> = log.lines().collect();
    let expected = "ps -aq --filter label=com.boat.compose.project=web";
    assert_eq!(lines[0], expected);
    assert!(lines.contains(&"rm -f 0123456789ab"), "{log}");
}

#[test]
fn c53_what_the_create_sends_and_when() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", PLAIN, Some("A=1\nB='x y'\nA=2\n"));
    bench.started("mail", PLAIN, None);
    bench.run("web").code(0);
    let create = &bench.calls(Call::Create)[0];
    assert_eq!(
        format!("Portainer {} {}", create.method, create.path),
        CREATE
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
    bench.forget_requests();
    bench.run("mail").code(0);
    let journal = bench.journal();
    let at = |line: &str| journal.iter().position(|entry| entry == line).expect(line);
    let order = [at(LIST), at(REMOVE), at(CREATE)];
    assert!(order.is_sorted(), "{journal:#?}");
    for request in bench.requests().iter().filter(|request| request.port != 0) {
        assert_eq!(request.header("X-API-Key"), Some(KEY), "{request}");
    }
}

#[test]
fn c54_an_id_then_the_table() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    let run = bench.succeeds("web", "stack web with Id 1");
    let gets = bench.calls(Call::Get).len();
    assert!(gets >= 2, "the deployment is waited for");
    let (_, table) = run.out.split_once("\nNames ").expect("a table");
    assert!(
        table.starts_with("   Image         Status\nweb-a-1  busybox:1.36  Up "),
        "{run:?}"
    );
    assert!(
        run.out.ends_with("; to undo: stacklift restore web\n"),
        "{run:?}"
    );
}

#[test]
fn c54_what_is_an_id() {
    let bench = Bench::on_disk(PLAIN);
    for (body, says) in [
        ("{\"Id\":0}", "Id 0"),
        ("{\"Id\":\"x-7\"}", "Id x-7"),
        ("{\"Id\":-3,\"Status\":1}", "Id -3"),
        ("{\"Id\":18446744073709551615}", "Id 18446744073709551615"),
        ("{}", ""),
        ("{\"Id\":null}", ""),
        ("{\"Id\":\"\"}", ""),
        ("[{\"Id\":1}]", ""),
        ("1", ""),
        ("", ""),
        ("{\"Id\":1", ""),
    ] {
        bench.world(|world| {
            world.records.clear();
            world.containers.clear();
        });
        bench.forget_requests();
        bench.always(Call::Create, done(200, body));
        let run = bench.run("web");
        if says.is_empty() {
            let other =
                "something other than Portainer responded with status 200, but the stack exists as";
            run.fails(other);
        } else {
            run.succeeds(says);
        }
        assert_eq!(bench.calls(Call::Create).len(), 1);
    }
}

#[test]
fn c54_a_deployment_that_ends_in_error_is_a_failure() {
    let bench = Bench::of(Era::Async);
    bench.stack("web", ABSENT, Some("PASSWORD=nowhere/absent:1\n"));
    unpullable(&bench);
    let says = ["failed to create the stack web", "Portainer stack 1", "***"];
    bench.fails("web", &says).hides("nowhere/absent:1");
    assert_eq!(bench.calls(Call::Create).len(), 1);
}

#[test]
fn c54_a_table_that_cannot_be_had_does_not_undo_the_success() {
    let bench = Bench::on_disk(PLAIN);
    let rule = Rule::new(Call::EngineList, refusal()).after(1);
    bench.faults().add(rule);
    bench.succeeds("web", &["created", "warning: "]);
}

#[test]
fn c55_the_body_as_formatted_json() {
    let bench = Bench::web(PLAIN);
    bench.write("web", "docker-compose.yml", ABSENT);
    unpullable(&bench);
    bench.fails(
        "web --force",
        &[
            "failed to create the stack web",
            "\n{\n  \"message\": \"failed to deploy a stack",
            "\n  \"details\": \"Failed to deploy",
            "the stack is down",
            "run the command again",
        ],
    );
    assert!(bench.containers("web").is_empty());
}

#[test]
fn c55_a_body_that_is_not_json_is_shown_as_it_came() {
    let bench = Bench::on_disk(PLAIN);
    let body = "upstream is \u{1b}[31mdown\nsecond line";
    bench.always(Call::Create, done(502, body));
    bench.fails("web", "upstream is \\u{1b}[31mdown\nsecond line");
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
    let kind = done(500, &body.to_string());
    bench.always(Call::Create, kind);
    let run = bench.fails("web", "*** and *** and short");
    run.hides(&["longsecret", "quoted secret", "multi word"]);
}

#[test]
fn c56_the_key_is_nowhere_but_in_the_header() {
    let bench = Bench::with_env(PLAIN, "A=1\n");
    // Every run of the bench asserts that neither stream shows the key.
    bench.run("web -v").code(0);
    for request in bench.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains(KEY));
        assert!(!request.path.contains(KEY));
    }
    let echo = json!({"message": format!("key {KEY} is odd")}).to_string();
    bench.always(Call::Create, done(500, &echo.clone()));
    bench.fails("web -v", "key *** is odd");
    bench.always(Call::List, instead(403, &echo));
    bench.fails("web -v", "key *** is odd");
    // Nor is it an argument.
    bench.run("web --api-key x").code(2);
    for entry in fs::read_dir(bench.dir("web")).expect("read") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("text");
        assert!(!text.contains(KEY));
    }
}

#[test]
fn c57_a_rerun_converges() {
    let bench = Bench::with_env(PLAIN, "A=1\n");
    let state = || {
        bench.world(|world| {
            let records = world.records.values();
            let records: Vec<_> = records.map(|r| (r.name.clone(), r.text.clone())).collect();
            let containers = world.project("web").into_iter();
            let containers: Vec<_> = containers
                .map(|c| (c.name.clone(), c.state.clone()))
                .collect();
            (records, containers)
        })
    };
    bench.run("web").code(0);
    let first = state();
    assert_eq!((first.0.len(), first.1.len()), (1, 1));
    bench.run("web").code(0);
    assert_eq!(state(), first);
    // After a create that failed, and after one whose answer was lost.
    for kind in [refusal(), FaultKind::CloseAfter, FaultKind::CloseBefore] {
        bench.once(Call::Create, kind);
        bench.run("web").code(1);
        bench.run("web").code(0);
        assert_eq!(state(), first);
    }
}

#[test]
fn c58_a_failing_step_stops_the_run() {
    for (call, state) in [
        (Call::List, "\nNothing was changed.\n"),
        (Call::Delete, "state: "),
        (Call::EngineRemove, "state: "),
    ] {
        let bench = Bench::web(PLAIN);
        if call == Call::Delete {
            bench.record("web", 1);
        }
        bench.always(call, FaultKind::CloseBefore);
        bench.fails("web", &["error: ", state, "hint: "]);
        assert!(bench.calls(Call::Create).is_empty(), "{call:?}");
    }
}

#[test]
fn c59_the_name_that_the_manager_will_use_is_said() {
    let bench = Bench::new();
    bench.stack("My.Web", PLAIN, None);
    let run = bench.succeeds("My.Web", "Portainer will call it myweb");
    run.says(&["stack My.Web with Id 1", "\nmyweb-a-1 "]);
    assert_eq!(bench.sent()["name"], "My.Web");
    bench.stack("web", PLAIN, None);
    bench.run("web").code(0).hides("will call it");
}

#[test]
fn c59_a_record_of_the_normalised_name_may_be_another_stacks() {
    let bench = Bench::new();
    let id = bench.record("myweb", 1);
    let dir = bench.started("My.Web", PLAIN, None).display().to_string();
    let of = format!("Portainer stack {id}");
    bench.stops("My.Web --force", &["myweb", &of, "--dir", &dir]);
    assert!(bench.backups("My.Web").is_empty(), "nothing is touched");
}

#[test]
fn c59_a_name_of_which_nothing_is_left() {
    let bench = Bench::new();
    bench.started("\u{4f60}\u{597d}", PLAIN, None);
    let says = "has no character that Portainer allows";
    bench.fails(&["\u{4f60}\u{597d}"], says);
    assert!(bench.requests().is_empty());
}

#[test]
fn c53_one_connection_is_kept() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", PLAIN, None);
    bench.run("web").code(0);
    let mut ports: Vec<u16> = bench.requests().iter().map(|r| r.port).collect();
    ports.retain(|port| *port != 0);
    assert!(ports.len() >= 3);
    ports.dedup();
    assert_eq!(ports.len(), 1, "one TLS connection a run");
}
