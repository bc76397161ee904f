//! Containers, hosts and Portainers with different versions of Compose (B47).

use testbed::{Call, FaultKind};

use super::cases;
use crate::{
    bench::{Case, Stack},
    host::Compose,
};

cases! { [by_newer by_newer_with_5 from_two_on_five_with_5 from_five_on_two_with_5]
    b47_no_fate_is_unknown
}

/// What versions hash in different ways, but for what no text keeps in another version.
const TEXT: &str = "services:
  binds:
    $SLEEP
    volumes: ['./conf:/conf:ro', './conf:/z:z', {type: bind, source: ./conf, target: /long}]
  settings:
    $SLEEP
    environment: {A: 'b<c>&$$d'}
    ports: ['127.0.0.1:$PORT:80']
    secrets: [one]
    extra_hosts: ['b:192.0.2.2', 'a:192.0.2.1']
    deploy: {resources: {limits: {cpus: '0.50'}}, replicas: 1}
secrets: {one: {file: ./conf/a}}
";

/// What no text keeps in a version before 2.32, if a later one created it, or Debian's 2.26.1.
const LATER: &str = "  later:
    $SLEEP
    devices: [/dev/null, '/dev/zero:/dev/z:r']
    develop: {watch: [{path: ./conf, action: rebuild}]}
";

/// What no text keeps between 2.26 and 2.34.
const DEPENDENT: &str = "  dependent:
    $SLEEP
    depends_on: [binds]
    secrets: [{source: one, mode: 0440}]
";

/// Says what happens to each service, whichever version created it, is on the host, and is in Portainer.
fn b47_no_fate_is_unknown(case: Case) {
    let text = TEXT.replace("\nsecrets:", &["\n", DEPENDENT, LATER, "secrets:"].concat());
    let stack = Stack::by(case).running(&text, &[("conf/a", "a\n")]);
    let status = br#"{"Version":"2.45.0","InstanceID":"1"}"#.to_vec();
    let faults = stack.rehearsal.faults();
    faults.set(Call::Status, FaultKind::Body(200, status));
    let dependent = match case.origin {
        Compose::Two => "recreated",
        Compose::Five => "unchanged",
    };
    let expected = [
        ("binds", "unchanged"),
        ("dependent", dependent),
        ("later", "unchanged"),
        ("settings", "unchanged"),
    ];
    let fates = stack.plan("");
    let fates = fates.iter().map(|(service, fate)| (&**service, &**fate));
    assert_eq!(fates.collect::<Vec<_>>(), expected);
}
