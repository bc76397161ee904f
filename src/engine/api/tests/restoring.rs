use serde_json::json;

use super::*;

/// The requests to an engine of API 1.41 that always responds with `status`, without the ping.
fn requested(status: u16, body: &str, act: impl Fn(&Engine)) -> Vec<String> {
    let body = body.to_owned();
    let fake = Fake::speaking("1.41", move |_| json(status, body.clone()));
    act(&fake.engine());
    let requests = fake.requests();
    assert_eq!(requests[0], "GET /_ping");
    requests[1..].to_vec()
}

#[test]
fn a_create_request_without_a_response_is_not_repeated() {
    let fake = Fake::speaking("1.41", |_| Reply::Hang);
    let engine = fake.engine_within(Duration::from_secs(30), Duration::from_millis(150));
    let error = engine.create_container("web-1", &json!({})).unwrap_err();
    assert!(format!("{error:#}").ends_with("within 150ms"), "{error:#}");
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn an_operation_without_effect_is_not_an_error() {
    assert_eq!(
        requested(304, "", |engine| engine.start("a").unwrap()),
        ["POST /v1.41/containers/a/start"]
    );
    assert_eq!(
        requested(304, "", |engine| engine.stop_container("a", None).unwrap()),
        ["POST /v1.41/containers/a/stop"]
    );
    assert_eq!(
        requested(404, "{}", |engine| engine
            .stop_container("a", Some(3))
            .unwrap()),
        ["POST /v1.41/containers/a/stop?t=3"]
    );
    assert_eq!(
        requested(404, "{}", |engine| engine.remove_container("a").unwrap()),
        ["DELETE /v1.41/containers/a?force=1"]
    );
}

#[test]
fn a_missing_container_cannot_be_changed() {
    let fake = Fake::speaking("1.41", |_| {
        json(404, r#"{"message":"No such container: a"}"#)
    });
    let engine = fake.engine();
    let text = |done: Result<()>| format!("{:#}", done.unwrap_err());
    let why = "Docker returned 404: No such container: a";
    assert_eq!(
        text(engine.start("a")),
        format!("failed to start the container a: {why}")
    );
    assert_eq!(
        text(engine.pause("a")),
        format!("failed to pause the container a: {why}")
    );
    assert_eq!(
        text(engine.connect("n", "a", &json!({}))),
        format!("failed to connect the container a to the network n: {why}")
    );
    assert_eq!(engine.container_by_name("a").unwrap(), None);
}

#[test]
fn pausing_a_paused_container_is_not_an_error() {
    let fake = Fake::speaking("1.41", |request| match request {
        "GET /v1.41/containers/a/json" => json(200, r#"{"State":{"Running":true,"Paused":true}}"#),
        "GET /v1.41/containers/b/json" => json(200, r#"{"State":{"Running":true,"Paused":false}}"#),
        "GET /v1.41/containers/c/json" => json(200, r#"{"State":{"Running":false}}"#),
        _ => json(500, r#"{"message":"driver failed"}"#),
    });
    let engine = fake.engine();
    engine.pause("a").unwrap();
    engine.unpause("a").unwrap_err();
    engine.unpause("b").unwrap();
    engine.pause("c").unwrap_err();
    let error = engine.pause("b").unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to pause the container b: Docker returned 500: driver failed"
    );
}

#[test]
fn a_network_is_not_created_twice() {
    let fake = Fake::speaking("1.41", |_| {
        json(
            409,
            r#"{"message":"network with name web_a already exists"}"#,
        )
    });
    let engine = fake.engine();
    let error = engine
        .create_network(&json!({"Name": "web_a"}))
        .unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to create the network web_a: Docker returned 409: network with name web_a already exists"
    );
    assert_eq!(fake.bodies(), [r#"{"Name":"web_a","CheckDuplicate":true}"#]);
}

#[test]
fn a_container_is_found_by_its_full_name_only() {
    let fake = Fake::speaking("1.41", |_| json(200, r#"{"Id":"db77","Name":"/web"}"#));
    let engine = fake.engine();
    assert!(engine.container_by_name("web").unwrap().is_some());
    // The engine accepted it as the prefix of an ID.
    assert_eq!(engine.container_by_name("db").unwrap(), None);
}

#[test]
fn names_cannot_change_the_path() {
    let fake = Fake::new(|request| panic!("unexpected request: {request}"));
    let engine = fake.engine();
    for name in ["", ".", "..", "-x"] {
        engine.start(name).unwrap_err();
        engine.remove_container(name).unwrap_err();
        engine.connect(name, "a", &json!({})).unwrap_err();
        engine.container_by_name(name).unwrap_err();
    }
    let requests = requested(404, "{}", |engine| {
        engine.remove_container("a/../b?v=1").unwrap();
    });
    assert_eq!(
        requests,
        ["DELETE /v1.41/containers/a%2F..%2Fb%3Fv%3D1?force=1"]
    );
}
