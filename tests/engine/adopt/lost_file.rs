//! A stack whose Compose file is lost: it is written from the containers, and adopted.

use std::fs;

use super::{Case, scenario::Scenario};
use crate::{host::docker, run::Run};

const TEXT: &str = "services:
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

/// Every container is the same one afterwards.
fn keeps_what_runs(case: Case) {
    let scenario = Scenario::new(case, TEXT, &[]);
    let stack = &scenario.stack;
    let project = stack.host.project.as_str();
    fs::remove_file(stack.dir().join("docker-compose.yml")).expect("the Compose file");
    let dir = stack.dir();
    let dir = dir.display();
    let export = format!("stacklift export {project} --to {dir} --from containers");
    stack.run("list").succeeds(&export);
    stack.run("plan $PROJECT").fails(&export);

    let to = stack.state().with_file_name("written");
    let to = to.to_str().expect("UTF-8");
    // The Compose program of this host is the one that started the stack.
    let config = stack.state().with_file_name("docker");
    fs::create_dir_all(config.join("cli-plugins")).expect("a folder");
    stack.compose.install(&config.join("cli-plugins"));
    let export = |flag: &str| {
        let line = format!("export $PROJECT --from containers --to {to} {flag}");
        let mut export = stack.command(&line);
        if config.join("cli-plugins/docker-compose").exists() {
            export.env("DOCKER_CONFIG", &config);
        }
        Run::of(&mut export).code(0)
    };
    let run = export("");
    let expected = format!(
        "exported {project} to {to}: compose.yaml and .env, 1 variable
  =  db   an adoption keeps its container
  =  web  an adoption keeps its container
next: check the files, then run: stacklift adopt {project} --dir {to}
"
    );
    assert_eq!(run.all(), expected);
    let text = fs::read_to_string(format!("{to}/compose.yaml")).expect("a file");
    assert!(!text.contains("a$$b"), "{text}");

    let ids = stack.ids();
    let adopted = stack.run(&format!("adopt $PROJECT --dir {to}"));
    adopted.succeeds(&format!("adopted {project}: 2 containers kept running"));
    assert_eq!(stack.ids(), ids);

    docker(&["update", "--restart", "always", &format!("{project}-front")]);
    export("--force").says(
        "~  web  would be recreated: its file had a setting that a container does not show, or `docker update` has changed one since\n",
    );
}
super::by! { keeps_what_runs:
    by_old OLD "needs a container engine: run scripts/test"
    by_newer_from_five NEWER_FROM_FIVE "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"
}
