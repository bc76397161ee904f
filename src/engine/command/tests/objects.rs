use serde_json::Value;

use super::*;
use crate::model::{ChangeKind, MOST_CHANGES};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn each_kind_is_inspected_by_its_own_verb() {
    let fake = Fake::new("echo '[]'");
    let engine = &fake.engine;
    engine.inspect_containers(&[id(1), id(1)]).unwrap();
    engine.inspect_networks(&strings(&["web_a", "b"])).unwrap();
    engine.inspect_volumes(&strings(&["data"])).unwrap();
    engine.inspect_images(&strings(&["sha256:77"])).unwrap();
    assert_eq!(
        fake.runs(),
        [
            format!("docker inspect --type container {} → exit 0", id(1)),
            "docker network inspect web_a b → exit 0".to_owned(),
            "docker volume inspect data → exit 0".to_owned(),
            "docker image inspect sha256:77 → exit 0".to_owned(),
        ]
    );
}

#[test]
fn what_is_gone_is_left_out() {
    let fake = Fake::new(
        r#"
case "$1 $2 $#" in
    "network inspect 4") echo '[]'; echo "network b not found" >&2; exit 1 ;;
    "network ls 5") printf '%s\n' 1234567890abcdef web_a ;;
    "network inspect 3") echo '[{"Name":"web_a","Id":"1234567890abcdef"}]' ;;
esac"#,
    );
    let found = fake
        .engine
        .inspect_networks(&strings(&["web_a", "b"]))
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["Name"], "web_a");
    assert_eq!(fake.runs().len(), 3);
}

#[test]
fn where_all_are_gone_nothing_more_is_asked() {
    let fake = Fake::new(r#"[ "$2" = ls ] || { echo "no such volume" >&2; exit 1; }"#);
    let found = fake.engine.inspect_volumes(&strings(&["data"])).unwrap();
    assert_eq!(found, [Value::Null; 0]);
    assert_eq!(
        fake.runs(),
        [
            "docker volume inspect data → exit 1",
            "docker volume ls -q → exit 0"
        ]
    );
}

#[test]
fn a_failure_is_no_absence() {
    let fake = Fake::new(
        r#"if [ "$2" = ls ]; then echo sha256:7700000000001111; else echo broken >&2; exit 1; fi"#,
    );
    let error = fake
        .engine
        .inspect_images(&strings(&["sha256:770000000000"]))
        .unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to inspect the images: `docker image` failed (exit status: 1): broken"
    );
    let fake = Fake::new("echo away >&2; exit 1");
    let error = fake.engine.inspect_volumes(&strings(&["a"])).unwrap_err();
    assert!(format!("{error:#}").ends_with("failed (exit status: 1): away"));
}

#[test]
fn what_could_be_an_option_is_not_passed_on() {
    let fake = Fake::new("exit 1");
    fake.engine.inspect_volumes(&strings(&["-f"])).unwrap_err();
    fake.engine.changes("--help").unwrap_err();
    assert_eq!(fake.runs(), Vec::<String>::new());
}

#[test]
fn a_project_has_what_carries_its_label() {
    let fake = Fake::new(
        r#"
case "$1 $2" in
    "network ls") echo 1234567890ab 1234567890ac ;;
    "network inspect") cat <<'END'
[{"name":"web_a","id":"1234567890ab","labels":{"com.docker.compose.project":"web"}},
 {"Name":"web2_a","Id":"1234567890ac","Labels":{"com.docker.compose.project":"web2"}}]
END
    ;;
    "volume ls") echo data ;;
    "volume inspect") echo '[{"Name":"data","Labels":{"com.docker.compose.project":"web"}}]' ;;
esac"#,
    );
    // Podman writes the keys of a network small.
    assert_eq!(fake.engine.networks("web").unwrap()[0]["name"], "web_a");
    assert_eq!(fake.engine.networks("web").unwrap().len(), 1);
    assert_eq!(fake.engine.volumes("web").unwrap()[0]["Name"], "data");
    assert_eq!(
        fake.runs()[0],
        "docker network ls -q --no-trunc --filter label=com.docker.compose.project=web → exit 0"
    );
}

#[test]
fn changed_files_are_told_by_kind() {
    let fake = Fake::new(r"printf 'C /etc\nA /etc/a b\nand more\nD /bin/sh\n'");
    let changes = fake.engine.changes(&id(1)).unwrap();
    let told: Vec<_> = changes
        .listed
        .iter()
        .map(|change| (change.kind, change.path.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (ChangeKind::Modified, "/etc"),
            (ChangeKind::Added, "/etc/a b\nand more"),
            (ChangeKind::Deleted, "/bin/sh"),
        ]
    );
    assert_eq!(fake.runs(), [format!("docker diff {} → exit 0", id(1))]);
}

#[test]
fn of_very_many_changes_the_first_are_kept_and_all_counted() {
    let all = MOST_CHANGES + 2;
    let fake = Fake::new(&format!(
        "i=0; while [ $i -lt {all} ]; do echo \"A /$i\"; i=$((i+1)); done; echo more"
    ));
    let changes = fake.engine.changes(&id(1)).unwrap();
    assert_eq!(changes.total, all);
    assert_eq!(changes.listed.len(), MOST_CHANGES);
    assert_eq!(changes.listed.last().unwrap().path, "/9999");
}

#[test]
fn nothing_is_restored_by_the_command() {
    let fake = Fake::new("exit 1");
    let error = fake.engine.restoring().unwrap_err();
    assert_eq!(
        error.to_string(),
        "this needs the Engine API, and the engine is reached by the `docker` command: as asked for"
    );
    assert!(Failure::hint_of(&error).is_some_and(|hint| hint.contains("--engine api")));
}
