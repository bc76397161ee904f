//! Bind mounts, which Compose 5 hashes in another way than earlier versions (B39, N28).

use std::{fs, os::unix::net::UnixListener};

use testbed::Status;

use super::{Case, by, scenario::Scenario};
use crate::host::docker;

by! { b39_bind_mounts_of_every_form:
    by_newer NEWER "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test"
    by_newer_with_5 NEWER_FROM_FIVE "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"
    by_old_with_5 OLD_FROM_FIVE "needs a container engine and STACKLIFT_TEST_COMPOSE_5: run scripts/test"
    from_two_on_five_with_5 NEWER_ON_FIVE "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"
    from_five_on_two_with_5 NEWER_FROM_FIVE_ON_TWO "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"
}

const TEXT: &str = "services:
  short:
    $SLEEP
    volumes: # the list
      - ./conf:/conf          # a comment
      - ./one.conf:/one.conf:ro
      - ./conf:/rw:rw
      - ./conf:/z:z
      - ./conf:/Z:ro,Z
      - ./conf:/cached:cached
      - ./conf:/consistent:consistent
      - data:/data
      - ./conf:/private:rprivate
      - ${DATA:-./data}:/default
      - ${GIVEN}:/given:${MODE}
      - /dev/null:/device
      - ./socket:/socket
      - &anchored ./conf:/anchored
  long:
    $SLEEP
    volumes:
      - {type: bind, source: ./conf, target: /true, bind: {create_host_path: true}}
      - type: bind
        source: ./conf
        target: /both
        bind:
          create_host_path: true # a comment
          propagation: rprivate
      - {type: bind, source: ./conf, target: /none}
      - {type: bind, source: ./conf, target: /slash/, bind: {create_host_path: true}}
  flow:
    $SLEEP
    volumes: [./conf:/conf, './one.conf:/one.conf', *anchored]
  other:
    $SLEEP
volumes: {data: {}}
";

const FILES: &[(&str, &str)] = &[
    (".env", "GIVEN=./given\nMODE=ro\n"),
    ("conf/a", "a\n"),
    ("data/a", "a\n"),
    ("given/a", "a\n"),
    ("one.conf", "one\n"),
];

/// Each form stays, also if another service of the stack changes later, and again if nothing does.
fn b39_bind_mounts_of_every_form(case: Case) {
    let scenario = Scenario::stopped(case, TEXT, FILES);
    let _socket = UnixListener::bind(scenario.dir().join("socket")).unwrap();
    scenario.start();
    scenario.adopts(&[]).stays();
    scenario.edit("  other:\n", "  other:\n    labels: {changed: 'yes'}\n");
    scenario.adopts(&["other"]).stays();
    let list = scenario.run("list").code(0).out;
    let is_own = |row: &&str| row.split(' ').next() == Some(&scenario.host.project);
    let row = list.lines().find(is_own).expect("a row");
    assert!(row.ends_with("in Portainer  up to date"), "{list}");
}

/// What Portainer recreates from the long syntax keeps it: the same files send nothing.
#[test]
#[ignore = "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
fn b39_a_recreated_container_with_5() {
    let scenario = Scenario::new(super::NEWER_FROM_FIVE, TEXT, FILES);
    scenario.adopts(&[]);
    let text = scenario.text_in_portainer();
    docker(&["rm", "-f", &scenario.name("flow"), &scenario.name("long")]);
    assert_eq!(scenario.update(&text), (200, Status::Active));
    scenario.run("adopt $PROJECT").succeeds("up to date");
    scenario.edit("  other:\n", "  other:\n    labels: {changed: 'yes'}\n");
    scenario.adopts(&["other"]);
    assert_eq!(
        scenario.text_in_portainer(),
        // As Compose resolves it: the text has anchors.
        text.replace(
            "      - \"600\"\n  short:\n",
            "      - \"600\"\n    labels:\n      changed: \"yes\"\n  short:\n"
        )
    );
}

/// A source that is gone would make the deployment fail in the long syntax, and would be empty in the short one.
#[test]
#[ignore = "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
fn b39_a_missing_source_with_5() {
    let scenario = Scenario::new(super::NEWER_FROM_FIVE, TEXT, FILES);
    let (given, gone) = (scenario.dir().join("given"), scenario.dir().join("gone"));
    fs::rename(&given, &gone).unwrap();
    scenario
        .run("adopt $PROJECT")
        .fails("short mounts ./given, which does not exist");
    fs::rename(&gone, &given).unwrap();
    scenario.adopts(&[]);
}
