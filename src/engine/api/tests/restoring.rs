use serde_json::json;

use super::*;
use crate::engine::Version;

/// What is asked of an engine of 1.41 that answers everything with `status`, after the ping.
fn asked(status: u16, body: &str, act: impl Fn(&Engine)) -> Vec<String> {
    let body = body.to_owned();
    let fake = Fake::speaking("1.41", move |_| json(status, body.clone()));
    act(&fake.engine());
    let requests = fake.requests();
    assert_eq!(requests[0], "GET /_ping");
    requests[1..].to_vec()
}

#[test]
fn a_container_is_created_with_the_body_as_it_is() {
    let fake = Fake::speaking("1.41", |_| {
        json(201, r#"{"Id":"5a1c","Warnings":["slow"]}"#)
    });
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    let body = json!({"Image": "sha256:77", "Cmd": null, "HostConfig": {"Memory": 0}});
    let id = restoring.create_container("web-1", None, &body).unwrap();
    assert_eq!(id, "5a1c");
    restoring
        .create_container("a b", Some("linux/arm64"), &body)
        .unwrap();
    assert_eq!(
        fake.requests()[1..],
        [
            "POST /v1.41/containers/create?name=web-1",
            "POST /v1.41/containers/create?name=a%20b&platform=linux%2Farm64",
        ]
    );
    assert_eq!(fake.bodies()[0], body.to_string());
    assert_eq!(restoring.version().unwrap(), Version(1, 41));
}

#[test]
fn a_refusal_names_the_container_and_the_reason() {
    let fake = Fake::speaking("1.41", |_| {
        json(404, r#"{"message":"No such image:\u001b x"}"#)
    });
    let engine = fake.engine();
    let error = engine
        .restoring()
        .unwrap()
        .create_container("web-1", None, &json!({}))
        .unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to create the container web-1: the engine answers 404: No such image:\\u{1b} x"
    );
}

#[test]
fn a_creation_whose_answer_is_lost_is_sent_once() {
    let fake = Fake::speaking("1.41", |_| Reply::Hang);
    let engine = fake.engine_within(Duration::from_secs(30), Duration::from_millis(150));
    let error = engine
        .restoring()
        .unwrap()
        .create_container("web-1", None, &json!({}))
        .unwrap_err();
    assert!(format!("{error:#}").ends_with("within 150ms"), "{error:#}");
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn what_is_so_already_is_done() {
    let restoring = |act: fn(&Restoring<'_>) -> Result<()>| {
        move |engine: &Engine| act(&engine.restoring().unwrap()).unwrap()
    };
    assert_eq!(
        asked(304, "", restoring(|engine| engine.start("a"))),
        ["POST /v1.41/containers/a/start"]
    );
    assert_eq!(
        asked(304, "", restoring(|engine| engine.stop("a", None))),
        ["POST /v1.41/containers/a/stop"]
    );
    assert_eq!(
        asked(404, "{}", restoring(|engine| engine.stop("a", Some(3)))),
        ["POST /v1.41/containers/a/stop?t=3"]
    );
    assert_eq!(
        asked(404, "{}", restoring(|engine| engine.remove_container("a"))),
        ["DELETE /v1.41/containers/a?force=1"]
    );
    assert_eq!(
        asked(404, "{}", restoring(|engine| engine.disconnect("n", "a"))),
        [
            "POST /v1.41/networks/n/disconnect",
            "GET /v1.41/containers/a/json"
        ]
    );
}

#[test]
fn what_is_not_there_cannot_be_started() {
    let fake = Fake::speaking("1.41", |_| {
        json(404, r#"{"message":"No such container: a"}"#)
    });
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    let text = |done: Result<()>| format!("{:#}", done.unwrap_err());
    let why = "the engine answers 404: No such container: a";
    assert_eq!(
        text(restoring.start("a")),
        format!("failed to start the container a: {why}")
    );
    assert_eq!(
        text(restoring.pause("a")),
        format!("failed to pause the container a: {why}")
    );
    assert_eq!(
        text(restoring.rename("a", "b")),
        format!("failed to rename the container a to b: {why}")
    );
    assert_eq!(
        text(restoring.connect("n", "a", &json!({}))),
        format!("failed to connect the container a to the network n: {why}")
    );
    assert_eq!(restoring.container_by_name("a").unwrap(), None);
}

#[test]
fn a_paused_container_need_not_be_paused() {
    let fake = Fake::speaking("1.41", |request| match request {
        "GET /v1.41/containers/a/json" => json(200, r#"{"State":{"Running":true,"Paused":true}}"#),
        "GET /v1.41/containers/b/json" => json(200, r#"{"State":{"Running":true,"Paused":false}}"#),
        "GET /v1.41/containers/c/json" => json(200, r#"{"State":{"Running":false}}"#),
        _ => json(500, r#"{"message":"it will not"}"#),
    });
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    restoring.pause("a").unwrap();
    restoring.unpause("a").unwrap_err();
    restoring.unpause("b").unwrap();
    restoring.pause("c").unwrap_err();
    let error = restoring.pause("b").unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to pause the container b: the engine answers 500: it will not"
    );
}

#[test]
fn a_connection_carries_the_settings_in_the_network() {
    let fake = Fake::speaking("1.41", |_| json(200, ""));
    let engine = fake.engine();
    let endpoint = json!({"Aliases": ["db"], "IPAMConfig": {"IPv4Address": "10.0.0.9"}});
    engine
        .restoring()
        .unwrap()
        .connect("web_a", "5a1c", &endpoint)
        .unwrap();
    assert_eq!(fake.requests()[1], "POST /v1.41/networks/web_a/connect");
    assert_eq!(
        fake.bodies(),
        [json!({"Container": "5a1c", "EndpointConfig": endpoint}).to_string()]
    );
}

#[test]
fn a_connection_that_stays_is_a_failure_to_disconnect() {
    let fake = Fake::speaking("1.41", |request| match request {
        "GET /v1.41/containers/a/json" => json(
            200,
            r#"{"NetworkSettings":{"Networks":{"net":{"NetworkID":"77"}}}}"#,
        ),
        _ => json(500, r#"{"message":"it will not"}"#),
    });
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    restoring.disconnect("net", "a").unwrap_err();
    restoring.disconnect("77", "a").unwrap_err();
    restoring.disconnect("other", "a").unwrap();
}

#[test]
fn a_network_is_not_made_a_second_time() {
    let fake = Fake::speaking("1.41", |_| {
        json(
            409,
            r#"{"message":"network with name web_a already exists"}"#,
        )
    });
    let engine = fake.engine();
    let error = engine
        .restoring()
        .unwrap()
        .create_network(&json!({"Name": "web_a"}))
        .unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to create the network web_a: the engine answers 409: network with name web_a already exists"
    );
    assert_eq!(fake.bodies(), [r#"{"Name":"web_a","CheckDuplicate":true}"#]);
}

#[test]
fn networks_and_volumes_are_created() {
    let fake = Fake::speaking("1.41", |_| json(201, r#"{"Id":"77","Warning":""}"#));
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    let id = restoring.create_network(&json!({"Name": "web_a"})).unwrap();
    assert_eq!(id, "77");
    restoring.create_volume(&json!({"Name": "data"})).unwrap();
    assert_eq!(fake.requests()[2], "POST /v1.41/volumes/create");
    assert_eq!(fake.bodies()[1], r#"{"Name":"data"}"#);
}

#[test]
fn a_container_is_found_by_its_whole_name_only() {
    let fake = Fake::speaking("1.41", |_| json(200, r#"{"Id":"db77","Name":"/web"}"#));
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    assert!(restoring.container_by_name("web").unwrap().is_some());
    // The engine took it for the beginning of an id.
    assert_eq!(restoring.container_by_name("db").unwrap(), None);
}

#[test]
fn names_cannot_reach_another_path() {
    let fake = Fake::new(|request| panic!("asked for {request}"));
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    for name in ["", ".", "..", "-x"] {
        restoring.start(name).unwrap_err();
        restoring.remove_container(name).unwrap_err();
        restoring.connect(name, "a", &json!({})).unwrap_err();
        restoring.disconnect(name, "a").unwrap_err();
        restoring.container_by_name(name).unwrap_err();
    }
    let requests = asked(404, "{}", |engine| {
        engine
            .restoring()
            .unwrap()
            .remove_container("a/../b?v=1")
            .unwrap();
    });
    assert_eq!(
        requests,
        ["DELETE /v1.41/containers/a%2F..%2Fb%3Fv%3D1?force=1"]
    );
}
