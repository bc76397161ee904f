//! Containers, hosts and Portainers with different versions of Compose (B47).

use std::collections::BTreeMap;

use testbed::{Call, Era, FaultKind};

use super::{Case, Origin, scenario::Scenario};

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
fn planned(origin: Origin, host: Origin) {
    let text = TEXT.replace("\nsecrets:", &["\n", DEPENDENT, LATER, "secrets:"].concat());
    let case = Case::new(origin, host, Era::Async);
    let scenario = Scenario::new(case, &text, &[("conf/a", "a\n")]);
    let status = br#"{"Version":"2.45.0","InstanceID":"1"}"#.to_vec();
    let faults = scenario.rehearsal.faults();
    faults.set(Call::Status, FaultKind::Body(200, status));
    let dependent = match origin {
        Origin::Two => "recreated",
        Origin::Five => "unchanged",
    };
    let expected = [
        ("binds", "unchanged"),
        ("dependent", dependent),
        ("later", "unchanged"),
        ("settings", "unchanged"),
    ];
    let expected = BTreeMap::from(expected.map(|(name, fate)| (name.to_owned(), fate.to_owned())));
    let fates = scenario.plan(&expected.keys().cloned().collect(), "");
    assert_eq!(fates, expected, "{origin:?} on {host:?}");
}

macro_rules! planned {
    ($($name:ident $origin:ident $host:ident)*) => { $(
        #[test]
        #[ignore = "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
        fn $name() {
            planned(Origin::$origin, Origin::$host);
        }
    )* };
}
planned! {
    b47_no_fate_is_unknown_from_2_on_2_with_5 Two Two
    b47_no_fate_is_unknown_from_2_on_5_with_5 Two Five
    b47_no_fate_is_unknown_from_5_on_2_with_5 Five Two
    b47_no_fate_is_unknown_from_5_on_5_with_5 Five Five
}
