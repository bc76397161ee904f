//! B01: the losses that a real Compose shows.

use std::fs;

use crate::bench::Bench;

/// What a real Compose prints differs from what the rehearsal prints: only what is lost may differ between two readings.
#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn b01_the_losses_of_a_text_are_those_that_the_real_compose_shows() {
    let program = std::env::var("STACKLIFT_TEST_COMPOSE").expect("STACKLIFT_TEST_COMPOSE");
    let losses = |text: &str, env: &str| {
        let bench = Bench::new();
        bench.stack("web", text, Some(env));
        fs::write(bench.dir("web").join("app.env"), "OWN=1\nKEPT=2\n").expect("a file");
        bench.script("docker-compose", &format!("exec {program} \"$@\"\n"));
        let run = bench.run("migrate web --dry-run --output json").code(0);
        let report = run.report("plan");
        assert_eq!(report["migrate"]["losses_known"], true, "{report:#}");
        let all = report["migrate"]["losses"].as_array().expect("losses");
        let told = all.iter().map(|loss| {
            let [subject, message] = ["subject", "message"].map(|key| loss[key].as_str());
            let message = message.unwrap_or_default();
            let message = message.replace(&bench.root().display().to_string(), "ROOT");
            let message = message.replace(&bench.home().display().to_string(), "HOME");
            format!("{}: {message}", subject.unwrap_or_default())
        });
        // Each version prints the keys in its own order.
        told.collect::<std::collections::BTreeSet<_>>()
    };
    let same = r"
x-common: &common
  restart: unless-stopped
  logging: {driver: json-file, options: {max-size: 10m}}
services:
  a:
    <<: *common
    image: busybox:${TAG}
    build: https://example.com/app.git
    env_file: []
    environment: [A=$TAG, B=$$x, BARE]
    labels: ['traefik.rule=Host(`a`)']
    ports: ['8080:80', '127.0.0.1:9000-9001:90-91/udp']
    volumes: ['./data/:/data', './/x:/x:ro', 'named:/n', '/anonymous']
    networks: {front: {aliases: [b]}}
    depends_on: {b: {condition: service_healthy}}
    deploy: {resources: {limits: {memory: 1g}}}
    secrets: [token]
  b:
    extends: {service: base}
    healthcheck: {test: [CMD, 'true'], interval: 5s}
  base: {image: busybox, command: sleep 1, tmpfs: /run, ulimits: {nofile: 5}}
  off: {image: busybox, profiles: [off], depends_on: [a]}
volumes: {named: {labels: {a: b}}}
networks: {front: {driver: bridge, ipam: {config: [{subnet: 10.0.0.0/24}]}}}
secrets: {token: {file: ./token}}
";
    assert_eq!(losses(same, "TAG=1.36\n"), [].into());
    let lossy = r"
name: mine
services:
  a:
    image: busybox
    build: .
    env_file: app.env
    environment: {KEPT: 3, DIR: ./dir, AT: '${HOSTNAME}'}
    command: [./run, '${TAG}']
    volumes: ['../up:/up', '~/x:/x', 'bare:/bare']
    secrets: [token]
volumes: {bare: {driver_opts: {o: ./o}}}
secrets: {token: {file: token}}
";
    let expected = [
        "Compose file: the project is named web instead of mine, with new volumes and networks",
        "secret token: paths that will be inside Portainer: file",
        "service a: a path inside Portainer is mounted at /up instead of ROOT/up",
        "service a: a path inside Portainer is mounted at /x instead of HOME/x",
        "service a: paths that will be inside Portainer: build.context",
        "service a: the rewrite changes what is not a path: command[0], environment.DIR",
        "service a: variables no longer set: OWN",
        "service a: variables with another value: AT",
        "volume bare: the rewrite changes what is not a path: driver_opts.o",
    ];
    assert_eq!(
        losses(lossy, "TAG='1'\n"),
        expected.map(str::to_owned).into()
    );
}
