use serde_json::{Value, json};

use super::{super::AT_ONCE, *};
use crate::model::{Change, ChangeKind, MOST_CHANGES};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn names(found: &[Value]) -> Vec<&str> {
    found
        .iter()
        .map(|object| object["Name"].as_str().unwrap())
        .collect()
}

const NOT_THERE: &str = r#"{"message":"it is not there"}"#;

#[test]
fn each_kind_is_asked_for_where_the_engine_tells_of_it() {
    let fake = Fake::speaking("1.41", |_| json(404, NOT_THERE));
    let engine = fake.engine();
    let none: [Value; 0] = [];
    assert_eq!(
        engine.inspect_containers(&strings(&["5a1c"])).unwrap(),
        none
    );
    assert_eq!(
        engine.inspect_networks(&strings(&["web_a b"])).unwrap(),
        none
    );
    assert_eq!(
        engine.inspect_volumes(&strings(&["a/../b?c"])).unwrap(),
        none
    );
    assert_eq!(
        engine.inspect_images(&strings(&["sha256:77"])).unwrap(),
        none
    );
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
fn what_is_gone_is_left_out_and_the_others_come_once_and_in_order() {
    let fake = Fake::speaking("1.41", |request| {
        match request.rsplit_once('/').map(|(_, name)| name) {
            Some("gone") => json(404, NOT_THERE),
            Some(name) => json(
                200,
                format!(r#"{{"Name":"{name}","z":18446744073709551615,"a":null}}"#),
            ),
            None => unreachable!(),
        }
    });
    let asked = strings(&["b", "gone", "a", "b", "c"]);
    let found = fake.engine().inspect_volumes(&asked).unwrap();
    assert_eq!(names(&found), ["b", "a", "c"]);
    // Nothing is added, dropped, rounded or moved.
    assert_eq!(
        found[0].to_string(),
        r#"{"Name":"b","z":18446744073709551615,"a":null}"#
    );
    assert_eq!(fake.requests().len(), 5);
}

#[test]
fn what_only_begins_like_the_name_is_another() {
    let id = "0123456789abcdef";
    let fake = Fake::speaking("1.41", move |_| {
        json(200, format!(r#"{{"Id":"{id}","Name":"/web"}}"#))
    });
    let engine = fake.engine();
    let count = |name: &str| engine.inspect_containers(&strings(&[name])).unwrap().len();
    assert_eq!(count(id), 1);
    assert_eq!(count("0123456789ab"), 1);
    assert_eq!(count("web"), 1);
    assert_eq!(count("0123"), 0);
    assert_eq!(count("we"), 0);
}

#[test]
fn questions_are_asked_at_the_same_time() {
    let going = Arc::new(std::sync::Barrier::new(AT_ONCE));
    let fake = Fake::speaking("1.41", move |request| {
        // Passed only once as many requests are under way as may be.
        going.wait();
        let name = request.rsplit_once('/').map(|(_, name)| name);
        json(200, json!({ "Name": name }).to_string())
    });
    let asked: Vec<_> = (0..AT_ONCE * 2).map(|at| at.to_string()).collect();
    let found = fake.engine().inspect_volumes(&asked).unwrap();
    assert_eq!(names(&found), asked);
    assert!(*lock(&fake.connections) <= AT_ONCE + 1);
}

#[test]
fn a_failure_is_no_absence() {
    let fake = Fake::speaking("1.41", |request| match request {
        "GET /v1.41/volumes/b" => json(500, r#"{"message":"driver\u001b is away"}"#),
        _ => json(200, r#"{"Name":"a"}"#),
    });
    let error = fake
        .engine()
        .inspect_volumes(&strings(&["a", "b"]))
        .unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to inspect the volumes: volume b: the engine answers 500: driver\\u{1b} is away"
    );
}

#[test]
fn after_a_failure_no_more_is_asked() {
    let fake = Fake::speaking("1.41", |_| json(500, "{}"));
    let asked: Vec<_> = (0..1000).map(|at| at.to_string()).collect();
    fake.engine().inspect_volumes(&asked).unwrap_err();
    assert!(fake.requests().len() <= 2 * AT_ONCE + 1);
}

#[test]
fn what_is_no_name_is_not_asked_for() {
    let fake = Fake::new(|request| panic!("asked for {request}"));
    let engine = fake.engine();
    for name in ["", ".", "..", "-f"] {
        let error = engine.inspect_networks(&strings(&[name])).unwrap_err();
        let text = format!("failed to inspect the networks: `{name}` is no name");
        assert_eq!(format!("{error:#}"), text);
        engine.changes(name).unwrap_err();
    }
    assert_eq!(
        fake.engine().inspect_networks(&[]).unwrap(),
        [Value::Null; 0]
    );
}

#[test]
fn a_project_has_the_networks_with_its_label() {
    let fake = Fake::speaking("1.41", |request| match request {
        "GET /v1.41/networks/n1" => json(
            200,
            r#"{"Id":"n1","Name":"web_b","Labels":{"com.docker.compose.project":"web"},"IPAM":{}}"#,
        ),
        "GET /v1.41/networks/n2" => json(
            200,
            r#"{"Id":"n2","Name":"web_a","Labels":{"com.docker.compose.project":"web"}}"#,
        ),
        "GET /v1.41/networks/n3" => json(404, NOT_THERE),
        "GET /v1.41/networks/n4" => json(200, r#"{"Id":"n4","Name":"other","Labels":null}"#),
        list => {
            assert_eq!(list, format!("GET /v1.41/networks?{FILTER}"));
            json(200, r#"[{"Id":"n1"},{"Id":"n2"},{"Id":"n3"},{"Id":"n4"}]"#)
        }
    });
    let found = fake.engine().networks("web").unwrap();
    assert_eq!(names(&found), ["web_a", "web_b"]);
    assert_eq!(found[1]["IPAM"], json!({}));
    let fake = Fake::speaking("1.41", |_| json(200, "null"));
    assert_eq!(fake.engine().networks("web").unwrap(), [Value::Null; 0]);
}

#[test]
fn a_project_has_the_volumes_with_its_label() {
    let fake = Fake::speaking("1.41", |request| {
        if request == format!("GET /v1.41/volumes?{FILTER}") {
            return json(200, r#"{"Volumes":[{"Name":"web_data"}],"Warnings":null}"#);
        }
        assert_eq!(request, "GET /v1.41/volumes/web_data");
        json(
            200,
            r#"{"Name":"web_data","Labels":{"com.docker.compose.project":"web"}}"#,
        )
    });
    assert_eq!(names(&fake.engine().volumes("web").unwrap()), ["web_data"]);
    let fake = Fake::speaking("1.41", |_| json(200, r#"{"Volumes":null}"#));
    assert_eq!(fake.engine().volumes("web").unwrap(), [Value::Null; 0]);
}

#[test]
fn a_list_of_volumes_that_is_not_whole_is_none() {
    let fake = Fake::speaking("1.41", |_| {
        json(200, r#"{"Volumes":[],"Warnings":["driver nfs\n is away"]}"#)
    });
    let error = fake.engine().volumes("web").unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to list the volumes of web: the engine does not see all: driver nfs\\n is away"
    );
}

fn change(kind: ChangeKind, path: &str) -> Change {
    Change {
        path: path.to_owned(),
        kind,
    }
}

#[test]
fn changed_files_are_told_by_kind() {
    let fake = Fake::speaking("1.41", |request| {
        assert_eq!(request, "GET /v1.41/containers/5a1c/changes");
        json(
            200,
            r#"[{"Path":"/etc","Kind":0},{"Path":"/etc/a b\n","Kind":1},{"Path":"/bin/sh","Kind":2}]"#,
        )
    });
    let changes = fake.engine().changes("5a1c").unwrap();
    assert_eq!(
        changes.listed,
        [
            change(ChangeKind::Modified, "/etc"),
            change(ChangeKind::Added, "/etc/a b\n"),
            change(ChangeKind::Deleted, "/bin/sh"),
        ]
    );
    assert_eq!(changes.total, 3);
}

#[test]
fn no_changes_are_none_and_a_failure_is_not() {
    let fake = Fake::speaking("1.41", |_| json(200, "null"));
    assert_eq!(fake.engine().changes("a").unwrap().total, 0);
    let fake = Fake::speaking("1.41", |_| json(404, NOT_THERE));
    assert_eq!(
        format!("{:#}", fake.engine().changes("a").unwrap_err()),
        "failed to ask which files of the container a have changed: \
         the engine answers 404: it is not there"
    );
    let fake = Fake::speaking("1.41", |_| json(200, r#"[{"Path":"/a","Kind":3}]"#));
    let text = format!("{:#}", fake.engine().changes("a").unwrap_err());
    assert!(text.contains("3 is no kind of change"), "{text}");
}

#[test]
fn of_very_many_changes_the_first_are_kept_and_all_counted() {
    let all = MOST_CHANGES + 5;
    let listed: Vec<_> = (0..all)
        .map(|at| format!(r#"{{"Path":"/{at}","Kind":1}}"#))
        .collect();
    let body = format!("[{}]", listed.join(","));
    let fake = Fake::speaking("1.41", move |_| json(200, body.clone()));
    let changes = fake.engine().changes("a").unwrap();
    assert_eq!(changes.total, all);
    assert_eq!(changes.listed.len(), MOST_CHANGES);
    assert_eq!(changes.listed.last().unwrap().path, "/9999");
}
