//! Stacks that are adopted while they run. Each states which services have other containers afterwards.

use std::{fmt::Write as _, fs, os::unix::fs::symlink};

use super::cases;
use crate::{
    bench::{Case, Stack},
    state::Happened,
};

cases! { [by_old by_newer by_old_from_five by_newer_from_five]
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
cases! { [by_old by_newer_too]
    kept_anonymous
    started_anonymous
    renamed
    b28_restart_loops_go_on
}
cases! { [by_old]
    thirty
    b28_a_link_to_the_directory
}
cases! { [by_newer]
    b28_a_setting_that_a_recreated_container_lost
}
cases! { [by_newer_from_five]
    b26_an_edited_network_is_refused
    b26_an_edited_network_in_portainer
    b26_an_edited_volume_is_refused
}
cases! { [by_old_from_five]
    b26_an_edited_network_is_warned_of
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
/// Values of these files that no output shows.
const SECRET_VALUES: [&str; 4] = ["MIIBVg", "password-", "quoted", "of $WORD"];
const PROFILE_FILES: &[(&str, &str)] = &[(".env", "COMPOSE_PROFILES=extra\n")];

fn plain(case: Case) {
    let stack = Stack::by(case).running(PLAIN, PLAIN_FILES);
    stack.adopts(&[]).stays();
}

fn health(case: Case) {
    let stack = Stack::by(case).running(HEALTH, &[]);
    // Compose 2.26 includes `depends_on` in the hash, later versions do not (N05).
    let recreated = case.by_another_version(&["side", "web"]);
    stack.adopts(recreated).stays();
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
    let stack = Stack::by(case).running(&text, &[]);
    let recreated = case.by_another_version(&["side", "web"]);
    stack.adopts(recreated).stays();
}

/// The plan names it.
fn b28_a_setting_that_a_recreated_container_lost(case: Case) {
    let stack = Stack::by(case).running(HEALTH, &[]);
    stack.docker("update --cpuset-mems=0 $PROJECT-web-1");
    stack.run("adopt $PROJECT").succeeds(&[
        "settings reset to those of the Compose file: memory nodes",
        "has changed: the memory nodes",
    ]);
}

const NETWORK: &str = "services:
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

const EDITED_NETWORK: &str = "default: {labels: {edited: 'yes'}, ipam";

/// A stack that is refused for this reason after its file was edited.
fn refused(case: Case, from: &str, to: &str, why: &str) -> Stack {
    let stack = Stack::by(case).running(NETWORK, &[]);
    stack.edit(from, to);
    let before = stack.containers();
    stack.run("plan $PROJECT").fails(why);
    stack.run("adopt $PROJECT").fails(why);
    assert_eq!(stack.containers().0, before.0);
    stack
}

/// Portainer would recreate the network, and no container could be reached by the name of its service.
fn b26_an_edited_network_is_refused(case: Case) {
    let why = "network $PROJECT_default differs from the Compose file: Portainer would recreate it";
    let stack = refused(case, "default: {ipam", EDITED_NETWORK, why);
    let fates = stack.plan("");
    assert_eq!(fates["alone"], "unchanged");
    assert_eq!([&*fates["db"], &*fates["web"]], ["restarted"; 2]);
}

/// A volume cannot change without its data.
fn b26_an_edited_volume_is_refused(case: Case) {
    let why = "volume $PROJECT_data differs from the Compose file";
    refused(case, "data: {}", "data: {labels: {edited: 'yes'}}", why);
}

/// What the plan says would happen, does, and why it is refused.
fn b26_an_edited_network_in_portainer(case: Case) {
    let stack = Stack::by(case).running(NETWORK, &[]);
    let adopted = stack.adopts(&[]);
    let text = stack.text_in_portainer();
    stack.update(&text.replace("default: {ipam", EDITED_NETWORK));
    let after = stack.containers();
    let happened = adopted.after.containers.happened(&after);
    assert_eq!(happened["alone"], Happened::Untouched);
    assert_eq!([happened["db"], happened["web"]], [Happened::Started; 2]);
    let network = &after["db"]["NetworkSettings"]["Networks"]["$PROJECT_default"];
    let aliases = network["Aliases"].as_array().expect("aliases");
    assert!(!aliases.contains(&"db".into()), "{network}");
}

/// Compose 2.26 does not look at it.
fn b26_an_edited_network_is_warned_of(case: Case) {
    let stack = Stack::by(case).running(NETWORK, &[]);
    stack.edit("default: {ipam", EDITED_NETWORK);
    let plan = stack.run("plan $PROJECT");
    plan.succeeds("_default differs from the Compose file in labels, and");
    stack.adopts(&[]);
}

fn variables(case: Case) {
    let stack = Stack::by(case).running(VARIABLES, VARIABLE_FILES);
    let adopted = stack.adopts(&[]);
    adopted.stays();
    adopted.run.hides(&SECRET_VALUES);
}

fn several(case: Case) {
    let stack = Stack::by(case).running(SEVERAL, SEVERAL_FILES);
    let adopted = stack.adopts(&[]);
    let text = stack.text_in_portainer();
    for secret in ["MIIBVg", "password-", "of $WORD"] {
        assert!(!text.contains(secret), "{text}");
    }
    adopted.stays();
    adopted.run.hides(&SECRET_VALUES);
}

fn anonymous(case: Case) {
    let stack = Stack::by(case).running(ANONYMOUS, &[]);
    // The anonymous volumes get names, which recreates the service once.
    let adopted = stack.adopts(&["db"]);
    assert_eq!(stack.sh("db", "cat /imgvol/kept | wc -l"), "1");
    adopted.stays();
}

fn kept_anonymous(case: Case) {
    let stack = Stack::by(case).running(ANONYMOUS, &[]);
    let adopted = stack.adopts_with(&[], "--keep-anonymous");
    assert_eq!(adopted.happened["db"], Happened::Untouched);
    adopted.stays();
}

/// The data of a service that the adoption started stays with it, even if its container is removed.
fn started_anonymous(case: Case) {
    let stack = Stack::by(case).stopped(ANONYMOUS, &[]);
    stack.run("adopt $PROJECT").code(0);
    stack.write_data();
    let before = stack.state();
    stack.docker("rm --force --volumes $PROJECT-db-1");
    let run = stack.run("adopt $PROJECT");
    run.succeeds("started, with the existing volume ");
    before.assert_kept(&stack.state());
}

/// Compose 1 named containers with underscores, and `docker rename` gives any name. A successor gets the name of today.
fn renamed(case: Case) {
    let stack = Stack::by(case).running(ANONYMOUS, &[]);
    let before = stack.state();
    stack.docker("rename $PROJECT-db-1 $PROJECT_db_1");
    let run = stack.run("adopt $PROJECT");
    run.succeeds(&["adopted ", "renamed to $PROJECT-db-1"]);
    before.assert_kept(&stack.state());
}

fn secrets(case: Case) {
    let stack = Stack::by(case).running(SECRETS, SECRET_FILES);
    // The hash of 2.40 differs from that of 2.26 for a `mode` (N05).
    stack.adopts(case.by_another_version(&["long"])).stays();
}

fn profiles(case: Case) {
    let stack = Stack::by(case).running(PROFILES, PROFILE_FILES);
    stack.adopts(case.by_another_version(&["extra"])).stays();
}

fn build(case: Case) {
    let files = [("Dockerfile", "FROM scratch\nCOPY nothing /\n")];
    let stack = Stack::by(case).stopped(BUILD, &files);
    // The images exist, so that nothing is built.
    stack.docker("tag $IMAGE $PROJECT:built");
    stack.docker("tag $IMAGE $PROJECT-without");
    stack.start();
    // A newer Portainer always builds, so `image` replaces `build`.
    stack.adopts(&["without"]).stays();
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
    let stack = Stack::by(case).running(&text, &[(".env", "NUMBER=30\n")]);
    assert_eq!(fs::read_dir(stack.dir()).unwrap().count(), 32);
    stack.adopts(&[]).stays();
}

/// `never` pauses in its restart loop for longer than `--wait`, and `long` runs for a while each time. `recreated` does what
/// `never` does. Another service can depend on such a container.
fn b28_restart_loops_go_on(case: Case) {
    let text = "services:
  never: {image: $IMAGE, command: /bin/false, restart: always}
  long: {image: $IMAGE, command: /bin/sleep 2, restart: always}
  recreated: {image: $IMAGE, command: /bin/false, restart: always, labels: {changed: 'no'}}
  web:
    $SLEEP
    depends_on: [never, long]
";
    let stack = Stack::by(case).running(text, &[]);
    stack.wait_for_restarts(&["never", "recreated"], 7);
    let before = stack.containers();
    stack.edit("changed: 'no'", "changed: 'yes'");
    stack.run("adopt $PROJECT --wait=2s").succeeds("adopted ");
    let after = stack.containers();
    for service in ["never", "long", "recreated"] {
        let is_kept = before[service]["Id"] == after[service]["Id"];
        assert_eq!(is_kept, service != "recreated", "{service}");
    }
    stack.run("adopt $PROJECT").succeeds("up to date");
}

/// The stack was started by one path of its directory, and is adopted by the other one.
fn b28_a_link_to_the_directory(case: Case) {
    let links = tempfile::tempdir().unwrap();
    let link_to = |stack: &Stack| {
        let link = links.path().join(&stack.host.project);
        symlink(stack.dir(), &link).unwrap();
        link
    };
    let stack = Stack::by(case).running(PLAIN, PLAIN_FILES);
    link_to(&stack);
    let root = format!("--stacks-root {}", links.path().display());
    let adopted = stack.adopts_with(&[], &root);
    assert!(!adopted.run.all().contains("will lose"));
    adopted.stays();

    let stack = Stack::by(case).stopped(PLAIN, PLAIN_FILES);
    let link = link_to(&stack);
    case.origin.run(&link, &stack.host.project, &["up", "-d"]);
    stack.adopts(&[]).stays();
}
