//! Stacks that are adopted while they run. Each states which services have other containers afterwards.

use std::{fmt::Write as _, fs, os::unix::fs::symlink};

use testbed::Status;

use super::{
    Case, by_each_portainer_and_origin, by_old_portainer, by_old_portainer_first,
    scenario::{Happened, Scenario, happened},
};
use crate::host::{IMAGE, docker};

by_each_portainer_and_origin! {
    plain
    health
    b28_every_setting
    variables
    anonymous
    secrets
    profiles
    build
    several
}
by_old_portainer_first! {
    kept_anonymous
    started_anonymous
    renamed
    b28_restart_loops_go_on
}
by_old_portainer! {
    thirty
    b28_a_link_to_the_directory
}

pub const PLAIN: &str = "services:
  db:
    $SLEEP
    restart: unless-stopped
    ports: ['127.0.0.1:$PORT:80']
    volumes: [data:/data, ./conf:/conf, './one.conf:/etc/one.conf:ro']
  web:
    $SLEEP
    labels: {kept: 'yes'}
    volumes: [{type: bind, source: ./conf, target: /conf}, data:/shared:ro]
    networks: {default: {aliases: [www]}}
volumes: {data: {}}
";

const HEALTH: &str = "services:
  db:
    $SLEEP
    volumes: [data:/data]
    healthcheck: {test: [CMD, /bin/true], interval: 1s}
  web:
    $SLEEP
    volumes: [web:/data]
    depends_on: {db: {condition: service_healthy}}
  side:
    $SLEEP
    network_mode: service:db
  alone:
    $SLEEP
volumes: {data: {}, web: {}}
";

const VARIABLES: &str = "services:
  one:
    $SLEEP
    env_file: [.env, ./more/extra.env]
    environment:
      FROM: ${WORD}
      DEFAULT: ${MISSING:-none}
      LITERAL: pa$$word
  two:
    $SLEEP
    environment: [WORD, 'MIXED=${DOLLAR} and ${WORD}']
    volumes: ['data:/${WORD}']
volumes: {data: {}}
";

const ENV: &str = r#"WORD=word
DOLLAR='pa$$word-$HOME'
BOTH="it's \"quoted\" \$HOME"
SINGLE=it's
COMMENT='x # y'
BACKSLASH='C:\new\table'
EMPTY=
PEM="-----BEGIN KEY-----
MIIBVgIBADANBgkqhkiG9w0BAQEF+/==
-----END KEY-----
"
"#;

const EXTRA: &str = r#"WORD_OF_EXTRA='of $WORD'
JSON='{"a": "b $c", "d": [1, 2]}'
LINES='first
second # not a comment
'
"#;

const ANONYMOUS: &str = "services:
  db:
    $OWN_SLEEP
    volumes: [/anonymous, data:/data]
  web:
    $SLEEP
    volumes: [data:/data]
volumes: {data: {}}
";

const SECRETS: &str = "services:
  short:
    $SLEEP
    secrets: [token]
    configs: [settings]
    volumes: [data:/data]
  long:
    $SLEEP
    secrets: [{source: token, target: named, mode: 0440}]
    configs: [{source: settings, target: /etc/settings}]
secrets: {token: {file: ./token.txt}}
configs: {settings: {file: conf/settings.ini}}
volumes: {data: {}}
";

const PROFILES: &str = "services:
  always:
    $SLEEP
    volumes: [data:/data]
  extra:
    $SLEEP
    profiles: [extra]
    volumes: [data:/data]
  never:
    $SLEEP
    profiles: [never]
volumes: {data: {}}
";

/// An included file with its own `.env`, an extended file, an override file, and env files.
const SEVERAL: &str = "include: [app/compose.yaml]
services:
  web:
    extends: {file: lib/base.yaml, service: base}
    image: $IMAGE
    environment: {WORD: '${WORD}', DOLLAR: '${DOLLAR}'}
    volumes: [data:/data, ./conf:/conf]
  side:
    $SLEEP
    env_file: .env
volumes: {data: {}}
";

const SEVERAL_FILES: &[(&str, &str)] = &[
    (".env", ENV),
    (
        "docker-compose.override.yml",
        "services:\n  web:\n    labels: {word: '${WORD}'}\n    mem_limit: ${MEMORY:-64m}\n  app: {environment: [MORE=1]}\n",
    ),
    (
        "lib/base.yaml",
        "services:\n  base:\n    command: /bin/sleep 600\n    init: true\n    env_file: base.env\n    volumes: ['./files:/files']\n",
    ),
    ("lib/base.env", EXTRA),
    ("lib/files/kept", "kept\n"),
    ("conf/one", "1\n"),
    (
        "app/compose.yaml",
        "services:\n  app:\n    image: ${NAME}\n    command: /bin/sleep 600\n    init: true\n    environment: {PASSWORD: '${PASSWORD}', WORD: '${WORD}'}\n    volumes: ['./data:/data']\n",
    ),
    (
        "app/.env",
        "NAME=stacklift-test-busybox\nPASSWORD='password-of-app'\nWORD=other\n",
    ),
    ("app/data/one", "1\n"),
];

const BUILD: &str = "services:
  with:
    build: .
    image: $PROJECT:built
    command: /bin/sleep 600
    init: true
    volumes: [data:/data]
  without:
    build: {context: .}
    command: /bin/sleep 600
    init: true
    volumes: [data:/data]
volumes: {data: {}}
";

pub const PLAIN_FILES: &[(&str, &str)] = &[("conf/a", "a\n"), ("one.conf", "one\n")];
const VARIABLE_FILES: &[(&str, &str)] = &[(".env", ENV), ("more/extra.env", EXTRA)];
const SECRET_FILES: &[(&str, &str)] = &[("token.txt", "s3cret\n"), ("conf/settings.ini", "[a]\n")];
const PROFILE_FILES: &[(&str, &str)] = &[(".env", "COMPOSE_PROFILES=extra\n")];

fn plain(case: Case) {
    let scenario = Scenario::new(case, PLAIN, PLAIN_FILES);
    scenario.adopts(&[]).stays();
}

fn health(case: Case) {
    let scenario = Scenario::new(case, HEALTH, &[]);
    // Compose 2.26 includes `depends_on` in the hash, later versions do not (N05).
    scenario
        .adopts(case.by_another_version(&["side", "web"]))
        .stays();
}

/// Versions of Compose write the capabilities and the exposed ports differently.
fn b28_every_setting(case: Case) {
    let settings = "    mem_limit: 64m
    cap_add: [SYS_TIME, NET_ADMIN]
    cap_drop: [MKNOD, CHOWN]
    ulimits: {nproc: 500, nofile: {soft: 100, hard: 200}}
    extra_hosts: ['b:192.0.2.2', 'a:192.0.2.1']
    dns: [192.0.2.1, 192.0.2.2]
    sysctls: {net.core.somaxconn: 1024, net.ipv4.ip_forward: 1}
    expose: ['9000', 9001/udp]
    tmpfs: [/run, '/tmp:size=1m']
    group_add: ['5', '4']
    logging: {driver: json-file, options: {max-size: 1m}}
    read_only: true
    tty: true
    restart: on-failure
";
    let text = HEALTH.replace("  side:\n", &format!("{settings}  side:\n"));
    let scenario = Scenario::new(case, &text, &[]);
    scenario
        .adopts(case.by_another_version(&["side", "web"]))
        .stays();
}

mod b28_a_setting_that_a_recreated_container_lost {
    use super::*;

    /// The plan names it.
    #[test]
    #[ignore = "needs a container engine and STACKLIFT_TEST_NEWER: run scripts/test"]
    fn by_newer() {
        let scenario = Scenario::new(crate::adopt::NEWER, HEALTH, &[]);
        docker(&["update", "--cpuset-mems=0", &scenario.name("web")]);
        scenario.run("adopt $PROJECT").succeeds(&[
            "settings reset to those of the Compose file: memory nodes",
            "has changed: the memory nodes",
        ]);
    }
}

mod b26_an_edited_network {
    use super::*;

    const TEXT: &str = "services:
  db:
    $SLEEP
    volumes: [data:/data]
    networks: {default: {ipv4_address: $SUBNET.10}}
  web:
    $SLEEP
  alone:
    $SLEEP
    network_mode: none
networks: {default: {ipam: {config: [{subnet: $SUBNET.0/24}]}}}
volumes: {data: {}}
";

    const EDITED: &str = "default: {labels: {edited: 'yes'}, ipam";

    /// A stack that Compose 5 started, whose file was edited since.
    fn edited(case: Case, from: &str, to: &str) -> Scenario {
        let scenario = Scenario::new(case, TEXT, &[]);
        scenario.edit(from, to);
        scenario
    }

    /// Portainer would recreate the network, and no container could be reached by the name of its service.
    #[test]
    #[ignore = "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
    fn by_newer_from_five() {
        let scenario = edited(crate::adopt::NEWER_FROM_FIVE, "default: {ipam", EDITED);
        let name = scenario.stack.host.project.as_str();
        let before = scenario.state();
        let said = format!(
            "network {name}_default differs from the Compose file: Portainer would recreate it"
        );
        scenario.run("plan $PROJECT").fails(&said);
        scenario.run("adopt $PROJECT").fails(&said);
        assert_eq!(scenario.state().containers, before.containers);
        let fates = scenario.plan(&["alone", "db", "web"].map(str::to_owned).into(), "");
        assert_eq!(fates["alone"], "unchanged");
        assert_eq!([&*fates["db"], &*fates["web"]], ["restarted"; 2]);
    }

    /// What the plan says would happen, does, and why it is refused.
    #[test]
    #[ignore = "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
    fn in_portainer_by_newer_from_five() {
        let scenario = Scenario::new(crate::adopt::NEWER_FROM_FIVE, TEXT, &[]);
        let adopted = scenario.adopts(&[]);
        let text = scenario.text_in_portainer();
        let edited = text.replace("default: {ipam", EDITED);
        assert_eq!(scenario.update(&edited), (200, Status::Active));
        let after = scenario.state();
        let happened = happened(&adopted.after.containers, &after.containers);
        assert_eq!(happened["alone"], Happened::Untouched);
        assert_eq!([happened["db"], happened["web"]], [Happened::Started; 2]);
        let name = scenario.stack.host.project.as_str();
        let db = &after.containers[&scenario.stack.name("db")]["NetworkSettings"]["Networks"];
        let aliases = db[format!("{name}_default")]["Aliases"].as_array();
        assert!(!aliases.expect("aliases").contains(&"db".into()), "{db}");
    }

    /// Compose 2.26 does not look at it.
    #[test]
    #[ignore = "needs a container engine and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
    fn by_old_from_five() {
        let scenario = edited(crate::adopt::OLD_FROM_FIVE, "default: {ipam", EDITED);
        scenario
            .run("plan $PROJECT")
            .succeeds("_default differs from the Compose file in labels, and");
        scenario.adopts(&[]);
    }

    /// A volume cannot change without its data.
    #[test]
    #[ignore = "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"]
    fn of_a_volume_by_newer_from_five() {
        let case = crate::adopt::NEWER_FROM_FIVE;
        let scenario = edited(case, "data: {}", "data: {labels: {edited: 'yes'}}");
        let name = scenario.stack.host.project.as_str();
        let before = scenario.state();
        let said = format!("volume {name}_data differs from the Compose file");
        scenario.run("adopt $PROJECT").fails(&said);
        assert_eq!(scenario.state().containers, before.containers);
    }
}

fn variables(case: Case) {
    let scenario = Scenario::new(case, VARIABLES, VARIABLE_FILES);
    let adopted = scenario.adopts(&[]);
    adopted.hides_secrets();
    adopted.stays();
}

fn several(case: Case) {
    let scenario = Scenario::new(case, SEVERAL, SEVERAL_FILES);
    let adopted = scenario.adopts(&[]);
    adopted.hides_secrets();
    let text = scenario.text_in_portainer();
    for secret in ["MIIBVg", "password-", "of $WORD"] {
        assert!(!text.contains(secret), "{text}");
    }
    adopted.stays();
}

fn anonymous(case: Case) {
    let scenario = Scenario::new(case, ANONYMOUS, &[]);
    let volumes = scenario.created_volumes();
    // The anonymous volumes get names, which recreates the service once.
    let adopted = scenario.adopts(&["db"]);
    assert_eq!(scenario.sh("db", "cat /imgvol/kept | wc -l"), "1");
    assert_eq!(scenario.created_volumes(), volumes);
    adopted.stays();
    assert_eq!(scenario.created_volumes(), volumes);
}

fn kept_anonymous(case: Case) {
    let scenario = Scenario::new(case, ANONYMOUS, &[]);
    let volumes = scenario.created_volumes();
    let adopted = scenario.adopts_with(&[], "--keep-anonymous");
    assert_eq!(adopted.happened("db"), Happened::Untouched);
    let after = scenario.containers();
    assert_eq!(scenario.created_volumes(), volumes);
    assert_eq!(after.len(), 2);
    adopted.stays();
}

/// The data of a service that the adoption started stays with it, even if its container is removed.
fn started_anonymous(case: Case) {
    let scenario = Scenario::stopped(case, ANONYMOUS, &[]);
    scenario.run("adopt $PROJECT").code(0);
    scenario.sh("db", "echo one > /anonymous/new; echo two > /imgvol/new");
    let volumes = scenario.created_volumes();
    docker(&["rm", "--force", "--volumes", &scenario.name("db")]);
    let run = scenario.run("adopt $PROJECT");
    run.succeeds("started, with the existing volume ");
    let kept = scenario.sh("db", "cat /anonymous/new /imgvol/new");
    assert_eq!(kept, "one\ntwo");
    assert_eq!(scenario.created_volumes(), volumes);
}

/// Compose 1 named containers with underscores, and `docker rename` gives any name. A successor gets the name of today.
fn renamed(case: Case) {
    let scenario = Scenario::new(case, ANONYMOUS, &[]);
    let names = ["db", "web"].map(|service| scenario.name(service));
    let old = format!("{}_db_1", scenario.host.project);
    docker(&["rename", &names[0], &old]);
    let before = scenario.state();
    let run = scenario.run("adopt $PROJECT");
    run.succeeds(&["adopted ", &format!("renamed to {}", names[0])]);
    let after = scenario.state();
    assert_eq!(before.data, after.data);
    assert_eq!(after.containers.into_keys().collect::<Vec<_>>(), names);
}

fn secrets(case: Case) {
    let scenario = Scenario::new(case, SECRETS, SECRET_FILES);
    // The hash of 2.40 differs from that of 2.26 for a `mode` (N05).
    scenario.adopts(case.by_another_version(&["long"])).stays();
}

fn profiles(case: Case) {
    let scenario = Scenario::new(case, PROFILES, PROFILE_FILES);
    scenario.adopts(case.by_another_version(&["extra"])).stays();
}

fn build(case: Case) {
    let files = [("Dockerfile", "FROM scratch\nCOPY nothing /\n")];
    let scenario = Scenario::stopped(case, BUILD, &files);
    // The images exist, so that nothing is built.
    let image = scenario.host.project.clone();
    docker(&["tag", IMAGE, &format!("{image}:built")]);
    docker(&["tag", IMAGE, &format!("{image}-without")]);
    scenario.start();
    // A newer Portainer always builds, so `image` replaces `build`.
    scenario.adopts(&["without"]).stays();
}

fn thirty(case: Case) {
    let mut text = "services:\n".to_owned();
    for number in 0..30 {
        write!(
            text,
            "  s{number:02}:\n    $SLEEP\n    \
             env_file: .env\n    volumes: [data:/data, './s{number:02}:/own']\n"
        )
        .unwrap();
    }
    text.push_str("volumes: {data: {}}\n");
    let scenario = Scenario::new(case, &text, &[(".env", "NUMBER=30\n")]);
    assert_eq!(fs::read_dir(scenario.dir()).unwrap().count(), 32);
    scenario.adopts(&[]).stays();
}

/// `never` pauses in its restart loop for longer than `--wait`, and `long` runs for a while each time. `recreated` does what
/// `never` does. Another service can depend on such a container.
fn b28_restart_loops_go_on(case: Case) {
    let scenario = Scenario::new(
        case,
        "services:
  never: {image: $IMAGE, command: /bin/false, restart: always}
  long: {image: $IMAGE, command: /bin/sleep 2, restart: always}
  recreated: {image: $IMAGE, command: /bin/false, restart: always, labels: {changed: 'no'}}
  web:
    $SLEEP
    depends_on: [never, long]
",
        &[],
    );
    let names = ["never", "recreated"].map(|service| scenario.name(service));
    scenario.wait_for_restarts(&names, 7);
    let before = scenario.containers();
    scenario.edit("changed: 'no'", "changed: 'yes'");
    let run = scenario.run("adopt $PROJECT --wait=2s");
    run.succeeds("adopted ");
    let after = scenario.containers();
    for service in ["never", "long", "recreated"] {
        let name = scenario.name(service);
        let is_kept = before[&name]["Id"] == after[&name]["Id"];
        assert_eq!(is_kept, service != "recreated", "{service}");
    }
    scenario.run("adopt $PROJECT").succeeds("up to date");
}

/// The stack was started by one path of its directory, and is adopted by the other one.
fn b28_a_link_to_the_directory(case: Case) {
    let links = tempfile::tempdir().unwrap();
    let link_to = |scenario: &Scenario| {
        let link = links.path().join(&scenario.host.project);
        symlink(scenario.dir(), &link).unwrap();
        link
    };
    let scenario = Scenario::new(case, PLAIN, PLAIN_FILES);
    link_to(&scenario);
    let root = format!("--stacks-root {}", links.path().display());
    let adopted = scenario.adopts_with(&[], &root);
    assert!(!adopted.run.all().contains("will lose"));
    adopted.stays();

    let scenario = Scenario::stopped(case, PLAIN, PLAIN_FILES);
    let link = link_to(&scenario);
    let project = scenario.host.project.as_str();
    scenario.compose.run(&link, project, &["up", "-d"]);
    scenario.adopts(&[]).stays();
}
