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
    let error = engine
        .restoring()
        .unwrap()
        .create_container("web-1", &json!({}))
        .unwrap_err();
    assert!(format!("{error:#}").ends_with("within 150ms"), "{error:#}");
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn an_operation_without_effect_is_not_an_error() {
    let restoring = |act: fn(&Restoring<'_>) -> Result<()>| {
        move |engine: &Engine| act(&engine.restoring().unwrap()).unwrap()
    };
    assert_eq!(
        requested(304, "", restoring(|engine| engine.start("a"))),
        ["POST /v1.41/containers/a/start"]
    );
    assert_eq!(
        requested(304, "", restoring(|engine| engine.stop("a", None))),
        ["POST /v1.41/containers/a/stop"]
    );
    assert_eq!(
        requested(404, "{}", restoring(|engine| engine.stop("a", Some(3)))),
        ["POST /v1.41/containers/a/stop?t=3"]
    );
    assert_eq!(
        requested(404, "{}", restoring(|engine| engine.remove_container("a"))),
        ["DELETE /v1.41/containers/a?force=1"]
    );
}

#[test]
fn a_missing_container_cannot_be_changed() {
    let fake = Fake::speaking("1.41", |_| {
        json(404, r#"{"message":"No such container: a"}"#)
    });
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    let text = |done: Result<()>| format!("{:#}", done.unwrap_err());
    let why = "the engine returned 404: No such container: a";
    assert_eq!(
        text(restoring.start("a")),
        format!("failed to start the container a: {why}")
    );
    assert_eq!(
        text(restoring.pause("a")),
        format!("failed to pause the container a: {why}")
    );
    assert_eq!(
        text(restoring.connect("n", "a", &json!({}))),
        format!("failed to connect the container a to the network n: {why}")
    );
    assert_eq!(restoring.container_by_name("a").unwrap(), None);
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
    let restoring = engine.restoring().unwrap();
    restoring.pause("a").unwrap();
    restoring.unpause("a").unwrap_err();
    restoring.unpause("b").unwrap();
    restoring.pause("c").unwrap_err();
    let error = restoring.pause("b").unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to pause the container b: the engine returned 500: driver failed"
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
        .restoring()
        .unwrap()
        .create_network(&json!({"Name": "web_a"}))
        .unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to create the network web_a: the engine returned 409: network with name web_a already exists"
    );
    assert_eq!(fake.bodies(), [r#"{"Name":"web_a","CheckDuplicate":true}"#]);
}

#[test]
fn a_container_is_found_by_its_full_name_only() {
    let fake = Fake::speaking("1.41", |_| json(200, r#"{"Id":"db77","Name":"/web"}"#));
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    assert!(restoring.container_by_name("web").unwrap().is_some());
    // The engine accepted it as the prefix of an ID.
    assert_eq!(restoring.container_by_name("db").unwrap(), None);
}

#[test]
fn names_cannot_change_the_path() {
    let fake = Fake::new(|request| panic!("unexpected request: {request}"));
    let engine = fake.engine();
    let restoring = engine.restoring().unwrap();
    for name in ["", ".", "..", "-x"] {
        restoring.start(name).unwrap_err();
        restoring.remove_container(name).unwrap_err();
        restoring.connect(name, "a", &json!({})).unwrap_err();
        restoring.container_by_name(name).unwrap_err();
    }
    let requests = requested(404, "{}", |engine| {
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
