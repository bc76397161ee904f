use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::model::MOST_CHANGES;

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn names(found: &[Value]) -> Vec<&str> {
    found
        .iter()
        .map(|object| object["Name"].as_str().unwrap())
        .collect()
}

const NOT_FOUND: &str = r#"{"message":"not found"}"#;

#[test]
fn each_kind_is_inspected_by_its_own_path() {
    let fake = Fake::speaking("1.41", |_| response(404, NOT_FOUND));
    let engine = fake.engine();
    assert_eq!(engine.inspect_containers(["5a1c"]).unwrap(), []);
    let found = [
        engine.inspect_networks(["web_a b"]),
        engine.inspect_volumes(["a/../b?c"]),
        engine.inspect_images(["sha256:77"]),
    ];
    assert_eq!(found.map(|found| found.unwrap().len()), [0; 3]);
    assert_eq!(
        fake.requests(),
        [
            "GET /_ping",
            "GET /v1.41/containers/5a1c/json",
            "GET /v1.41/networks/web_a%20b",
            "GET /v1.41/volumes/a%2F..%2Fb%3Fc",
            "GET /v1.41/images/sha256%3A77/json",
        ]
    );
}

#[test]
fn missing_objects_are_left_out_and_the_others_are_returned_once_and_in_order() {
    let fake = Fake::speaking("1.41", |request| {
        match request.rsplit_once('/').map(|(_, name)| name) {
            Some("missing") => response(404, NOT_FOUND),
            Some(name) => response(
                200,
                format!(r#"{{"Name":"{name}","z":18446744073709551615,"a":null}}"#),
            ),
            None => unreachable!(),
        }
    });
    let asked = strings(&["b", "missing", "a", "b", "c"]);
    let found = fake.engine().inspect_volumes(&asked).unwrap();
    assert_eq!(names(&found), ["b", "a", "c"]);
    // The JSON is unchanged: same order, same numbers.
    let expected = r#"{"Name":"b","z":18446744073709551615,"a":null}"#;
    assert_eq!(found[0].to_string(), expected);
    assert_eq!(fake.requests().len(), 5);
}

#[test]
fn a_prefix_of_the_name_or_a_short_prefix_of_the_id_does_not_match() {
    let id = "0123456789abcdef";
    let fake = Fake::speaking("1.41", move |_| {
        response(200, format!(r#"{{"Id":"{id}","Name":"/web"}}"#))
    });
    let engine = fake.engine();
    let count = |name: &str| engine.inspect_containers([name]).unwrap().len();
    assert_eq!(count(id), 1);
    assert_eq!(count("0123456789ab"), 1);
    assert_eq!(count("web"), 1);
    assert_eq!(count("0123"), 0);
    assert_eq!(count("we"), 0);
}

#[test]
fn a_failure_is_not_absence() {
    let fake = Fake::speaking("1.41", |request| match request {
        "GET /v1.41/volumes/b" => response(500, r#"{"message":"driver\u001b is away"}"#),
        _ => response(200, r#"{"Name":"a"}"#),
    });
    let error = fake.engine().inspect_volumes(["a", "b"]).unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to inspect the volumes: volume b: Docker returned 500: driver\\u{1b} is away"
    );
}

#[test]
fn invalid_names_are_not_requested() {
    let fake = Fake::new(|request| panic!("unexpected request: {request}"));
    let engine = fake.engine();
    for name in ["", ".", "..", "-f"] {
        let error = engine.inspect_networks([name]).unwrap_err();
        let text = format!("failed to inspect the networks: `{name}` is not a valid name");
        assert_eq!(format!("{error:#}"), text);
        engine.changes(name).unwrap_err();
    }
    let expected = [Value::Null; 0];
    assert_eq!(fake.engine().inspect_networks([""; 0]).unwrap(), expected);
}

#[test]
fn an_incomplete_list_of_volumes_is_an_error() {
    let fake = Fake::speaking("1.41", |_| {
        response(200, r#"{"Volumes":[],"Warnings":["driver nfs\n is away"]}"#)
    });
    let error = fake.engine().volumes("web").unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to list the volumes of web: Docker's list is incomplete: driver nfs\\n is away"
    );
}

#[test]
fn the_first_changes_are_kept_and_all_are_counted() {
    let all = MOST_CHANGES + 5;
    let listed: Vec<_> = (0..all)
        .map(|at| format!(r#"{{"Path":"/{at}","Kind":1}}"#))
        .collect();
    let body = format!("[{}]", listed.join(","));
    let fake = Fake::speaking("1.41", move |_| response(200, body.clone()));
    let changes = fake.engine().changes("a").unwrap();
    assert_eq!(changes.total, all);
    assert_eq!(changes.listed.len(), MOST_CHANGES);
    assert_eq!(changes.listed.last().unwrap().path, "/9999");
}

proptest! {
    #[test]
    fn any_body_is_read_or_an_error_that_cannot_control_a_terminal(
        body in prop_oneof![any::<Vec<u8>>(), "[\\[{}\\],:\"a0\u{1b}\u{9b}]{0,20}".prop_map(String::into_bytes)],
    ) {
        let options = Options::new("docker", Choice::Api, ClientConfig::default(), Duration::MAX, Trace::off());
        let api = Api::new(PathBuf::from("engine.sock"), options);
        let response = |status| ApiResponse {
            request: "GET /".to_owned(),
            status,
            api_version: None,
            is_podman: false,
            body: body.clone(),
        };
        let errors = [
            api.parse::<Value>(&response(200)).and_then(|value| Ok(wire::listed(&value)?)).err(),
            Some(api.refused(&response(500))),
        ];
        for error in errors.iter().flatten() {
            let shown = format!("{error:#}");
            prop_assert!(!shown.contains(char::is_control), "{shown:?}");
        }
    }
}
