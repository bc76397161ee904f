//! Bind mounts, which Compose 5 hashes in another way than earlier versions (B39, N28).

use std::{fs, os::unix::net::UnixListener};

use super::cases;
use crate::bench::{Case, Stack};

cases! { [by_newer by_newer_with_5 by_old_with_5 from_two_on_five_with_5 from_five_on_two_with_5]
    b39_bind_mounts_of_every_form
}
cases! { [by_newer_with_5]
    b39_a_recreated_container
    b39_a_missing_source
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
    let stack = Stack::by(case).stopped(TEXT, FILES);
    let _socket = UnixListener::bind(stack.dir().join("socket")).unwrap();
    stack.start();
    stack.adopts(&[]).stays();
    stack.edit("  other:\n", "  other:\n    labels: {changed: 'yes'}\n");
    stack.adopts(&["other"]).stays();
    let list = stack.run("list").code(0).out;
    let mut rows = list.lines();
    let row = rows.find(|row| row.starts_with("$PROJECT ")).unwrap();
    // The stacks of the tests that run at the same time set the widths of the columns.
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(
        words,
        ["$PROJECT", "4/4", "in", "Portainer", "up", "to", "date"],
        "{list}"
    );
}

/// What Portainer recreates from the long syntax keeps it: the same files send nothing.
fn b39_a_recreated_container(case: Case) {
    let stack = Stack::by(case).running(TEXT, FILES);
    stack.adopts(&[]);
    let text = stack.text_in_portainer();
    stack.docker("rm -f $PROJECT-flow-1 $PROJECT-long-1");
    stack.update(&text);
    stack.run("adopt $PROJECT").succeeds("up to date");
    stack.edit("  other:\n", "  other:\n    labels: {changed: 'yes'}\n");
    stack.adopts(&["other"]);
    // As Compose resolves it: the text has anchors.
    let end = "      - \"600\"\n  short:\n";
    let edited = "      - \"600\"\n    labels:\n      changed: \"yes\"\n  short:\n";
    assert_eq!(stack.text_in_portainer(), text.replace(end, edited));
}

/// A source that is gone would make the deployment fail in the long syntax, and would be empty in the short one.
fn b39_a_missing_source(case: Case) {
    let stack = Stack::by(case).running(TEXT, FILES);
    let (given, gone) = (stack.dir().join("given"), stack.dir().join("gone"));
    fs::rename(&given, &gone).unwrap();
    let run = stack.run("adopt $PROJECT");
    run.fails("short mounts ./given, which does not exist");
    fs::rename(&gone, &given).unwrap();
    stack.adopts(&[]);
}
