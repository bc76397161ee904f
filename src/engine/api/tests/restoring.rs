use serde_json::json;

use super::*;

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
    type Act = fn(&Engine) -> Result<()>;
    let start: Act = |engine| engine.start("a");
    let stop: Act = |engine| engine.stop_container("a", None);
    let stop_in_time: Act = |engine| engine.stop_container("a", Some(3));
    let remove: Act = |engine| engine.remove_container("a");
    for (status, body, act, request) in [
        (304, "", start, "POST a/start"),
        (304, "", stop, "POST a/stop"),
        (404, "{}", stop_in_time, "POST a/stop?t=3"),
        (404, "{}", remove, "DELETE a?force=1"),
    ] {
        let fake = Fake::speaking("1.41", move |_| response(status, body));
        act(&fake.engine()).unwrap();
        let request = request.replace(' ', " /v1.41/containers/");
        assert_eq!(fake.requests()[1..], [request]);
    }
}

#[test]
fn pausing_a_paused_container_is_not_an_error() {
    let fake = Fake::speaking("1.41", |request| match request {
        "GET /v1.41/containers/a/json" => {
            response(200, r#"{"State":{"Running":true,"Paused":true}}"#)
        }
        "GET /v1.41/containers/b/json" => {
            response(200, r#"{"State":{"Running":true,"Paused":false}}"#)
        }
        "GET /v1.41/containers/c/json" => response(200, r#"{"State":{"Running":false}}"#),
        _ => response(500, r#"{"message":"driver failed"}"#),
    });
    let engine = fake.engine();
    engine.pause("a").unwrap();
    engine.unpause("a").unwrap_err();
    engine.unpause("b").unwrap();
    engine.pause("c").unwrap_err();
    let error = engine.pause("b").unwrap_err();
    let expected = "failed to pause the container b: Docker returned 500: driver failed";
    assert_eq!(format!("{error:#}"), expected);
}
