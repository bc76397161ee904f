//! Stacks whose files are lost: `export` writes them, and an adoption of these keeps every container.

use std::fs;

use super::cases;
use crate::{
    bench::{Case, Stack},
    run::Run,
};

cases! { [by_old by_newer_from_five] keeps_what_runs }
cases! { [by_old by_newer_too] keeps_what_a_portainer_that_is_gone_started }

const RICH: &str = "services:
  db:
    $OWN_SLEEP
    restart: unless-stopped
    environment: {DB_PASSWORD: 'a$$b # c', DB_USER: shop, EMPTY: ''}
    volumes: [data:/data, cache:/imgvol]
    healthcheck: {test: 'true', interval: 1500ms, retries: 3}
    stop_grace_period: 1s
    ipc: shareable
    logging: {driver: none}
  web:
    $SLEEP
    container_name: $PROJECT-front
    depends_on: {db: {condition: service_healthy}}
    ports: ['127.0.0.1:$PORT:80', '8443', '53/udp']
    expose: ['9000']
    networks: {back: {aliases: [www]}, default: {}}
    labels: {rule: 'Host(`a`) && x<y', price: '$$5'}
    ulimits: {core: {soft: 0, hard: 0}, nofile: {soft: 100, hard: 200}, nproc: 50}
    deploy: {resources: {limits: {memory: 64m}, reservations: {cpus: '0.25'}}}
    cap_add: [SYS_TIME, NET_ADMIN]
    extra_hosts: ['host.docker.internal:host-gateway']
    tmpfs: [/run, '/tmp:size=1m']
    stop_grace_period: 1s
networks:
  default: {}
  back: {driver: bridge, internal: true}
volumes: {data: {}, cache: {}}
";

/// The name of the second service keeps other tests apart, whose Portainer is on the same engine.
const TWO: &str = "services:
  db:
    $SLEEP
    volumes: [data:/data]
    stop_grace_period: 1s
  $PROJECT:
    $SLEEP
    environment: {FROM: \"${FROM}\"}
    stop_grace_period: 1s
volumes: {data: {}}
";

/// `list` names the command that writes the files, which then writes them to another directory. Returns what it said.
fn exported(stack: &Stack, from: &str) -> Run {
    let dir = stack.root().join("$PROJECT");
    let export = format!(
        "stacklift export $PROJECT --to {} --from {from}",
        dir.display()
    );
    stack.run("list").succeeds(&export);
    export_again(stack, from, "")
}

fn export_again(stack: &Stack, from: &str, options: &str) -> Run {
    let to = written(stack);
    let export = stack.run(&format!(
        "export $PROJECT --from {from} --to {to} {options}"
    ));
    export.code(0)
}

fn written(stack: &Stack) -> String {
    let written = stack.state_dir().with_file_name("written");
    written.display().to_string()
}

/// Every container is the same one afterwards.
#[track_caller]
fn adopts_what_is_written(stack: &Stack) {
    let ids = stack.ids();
    let adopted = stack.run(&format!("adopt $PROJECT --dir {}", written(stack)));
    adopted.succeeds("adopted $PROJECT: 2 containers kept running");
    assert_eq!(stack.ids(), ids);
}

/// The Compose file is lost, and is written from the containers.
fn keeps_what_runs(case: Case) {
    let stack = Stack::by(case).running(RICH, &[]);
    fs::remove_file(stack.dir().join("docker-compose.yml")).expect("the Compose file");
    let plan = stack.run("plan $PROJECT");
    plan.fails("stacklift export $PROJECT --to ")
        .says(" --from containers");
    let run = exported(&stack, "containers");
    let to = written(&stack);
    let expected = format!(
        "exported $PROJECT to {to}: compose.yaml and .env, 1 variable
adopting these files:
  =  db, web  keep running
next: check the files, then run `stacklift adopt $PROJECT --dir {to}`
"
    );
    assert_eq!(run.all(), expected);
    let text = fs::read_to_string(format!("{to}/compose.yaml")).expect("a file");
    assert!(!text.contains("a$$b"), "{text}");
    adopts_what_is_written(&stack);

    stack.docker("update --restart always $PROJECT-front");
    export_again(&stack, "containers", "--force").says(
        "~  web  recreated: its file had a setting that a container does not show, or `docker update` has changed one since\n",
    );
}

/// Portainer is gone: the file is in its data, and another Portainer adopts it.
fn keeps_what_a_portainer_that_is_gone_started(case: Case) {
    let stack = Stack::by(case).running(TWO, &[(".env", "FROM=hand\n")]);
    stack.adopts(&[]);
    // Afterwards, Portainer has started the second service, and kept `db`.
    let text = stack.text_in_portainer();
    stack.update(&text.replace("${FROM}", "${FROM} # b"));
    stack.rehearsal.world(|world| world.records.clear());
    fs::remove_dir_all(stack.dir()).expect("the directory");
    stack.run("list").says("not in this Portainer");
    let run = exported(&stack, "portainer-data");
    run.says("compose.yaml and .env, 1 variable");
    adopts_what_is_written(&stack);
}
