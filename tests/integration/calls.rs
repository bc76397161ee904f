//! C50–C59: the calls, their order, and what their answers mean.

use std::fs;

use serde_json::json;
use testbed::{Call, FaultKind};

use crate::bench::{Bench, KEY, PLAIN, done, instead};

/// The stack `web`, started by hand, of which Portainer has a stack, too.
fn recorded() -> (Bench, u64) {
    let bench = Bench::web(PLAIN);
    let id = bench.record("web", 1);
    (bench, id)
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
fn c55_a_body_that_is_not_json_is_shown_as_it_came() {
    let bench = Bench::on_disk(PLAIN);
    let body = "upstream is \u{1b}[31mdown\nsecond line";
    bench.always(Call::Create, done(502, body));
    bench.fails("web", "upstream is \\u{1b}[31mdown\nsecond line");
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
fn c53_one_connection_is_kept() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", PLAIN, None);
    bench.run("web").code(0);
    for request in bench.requests().iter().filter(|request| request.port != 0) {
        assert_eq!(request.header("X-API-Key"), Some(KEY), "{request}");
    }
    let mut ports: Vec<u16> = bench.requests().iter().map(|r| r.port).collect();
    ports.retain(|port| *port != 0);
    assert!(ports.len() >= 3);
    ports.dedup();
    assert_eq!(ports.len(), 1, "one TLS connection a run");
}
