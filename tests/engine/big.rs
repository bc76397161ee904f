//! Restores a stack that uses most settings of a Compose file.

use super::{
    bench::Stack,
    sameness::{assert_same, assert_same_networks, ids},
};

/// A stack that `up` does not change after the restore.
const BIG: &str = r#"services:
  db:
    image: $PROJECT
    command: /bin/sleep 600
    stop_grace_period: 1s
    container_name: $PROJECT-the-db
    volumes:
      - ./bound:/bound
      - data:/named
      - /anonymous
      - type: volume
        target: /long
      - type: tmpfs
        target: /tmp/long
        tmpfs: {size: 1048576}
    networks:
      front: {ipv4_address: $SUBNET.77, aliases: [database, sql]}
      back: {aliases: [store]}
    healthcheck:
      test: [CMD, /bin/true]
      interval: 1s
      retries: 2
      start_period: 1s
  web:
    image: $IMAGE
    command: ["/bin/sh", "-c", "sleep 600 # $$HOME 'x'"]
    entrypoint: [/bin/busybox, env]
    init: true
    stop_grace_period: 1s
    stop_signal: SIGQUIT
    depends_on:
      db: {condition: service_healthy}
    environment:
      EQUALS: a=b=c
      SPACES: " two  words "
      DOLLAR: pri$$ce
      EMPTY: ""
    env_file: .env
    labels:
      some.label: "a b=c $$d"
    hostname: the-web
    domainname: example.test
    user: "1000:1000"
    working_dir: /tmp
    cap_add: [NET_ADMIN, SYS_TIME]
    cap_drop: [MKNOD]
    security_opt: ["no-new-privileges:true"]
    ulimits:
      nproc: 500
      nofile: {soft: 1000, hard: 2000}
    devices: ["/dev/null:/dev/nothing"]
    ports: ["127.0.0.1:$PORT:80", "8081"]
    expose: ["9000"]
    restart: unless-stopped
    extra_hosts: ["somewhere:10.1.2.3", "host.docker.internal:host-gateway"]
    dns: [10.1.2.4]
    dns_search: [example.test]
    dns_opt: ["ndots:2"]
    tmpfs: ["/run:size=1m", /var/run]
    read_only: true
    shm_size: 32m
    sysctls: {net.core.somaxconn: 512}
    logging: {driver: json-file, options: {max-size: 1m, max-file: "2"}}
    group_add: ["2000"]
    oom_score_adj: 100
    mem_limit: 64m
    cpus: 0.5
    pids_limit: 200
    tty: true
    stdin_open: true
    networks:
      back: {}
      front: {aliases: [www]}
      default: {}
  last:
    $SLEEP
    stop_grace_period: 1s
    depends_on: [web]
    ipc: host
    uts: host
    volumes: ["data:/other:ro", "./bound/file:/one-file:ro"]
  host:
    $SLEEP
    network_mode: host
    hostname: not-the-hosts
    volumes: [/anonymous]
  alone:
    $SLEEP
    network_mode: none
    pid: host
networks:
  front:
    ipam: {config: [{subnet: $SUBNET.0/24, gateway: $SUBNET.1}]}
    labels: {of.the.front: "1"}
  back:
    internal: true
    driver_opts: {com.docker.network.bridge.enable_ip_masquerade: "false"}
volumes:
  data:
    labels: {of.the.data: "1"}
"#;

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_big_stack_is_restored_unchanged() {
    let stack = Stack::new();
    stack.image();
    stack.write(BIG);
    stack.file(".env", "FROM_FILE=of-the-file # no comment\n");
    stack.file("bound/file", "bound\n");
    stack.up();
    let db = stack.host.name("the-db");
    let write = "for v in named anonymous long imgvol; do echo $v-data > /$v/file; done";
    crate::host::docker(&["exec", &db, "/bin/sh", "-c", write]);
    let (before, networks) = (stack.containers(), stack.networks());

    stack.migrate();
    stack.remove_networks();
    stack.restore().says(&["5 containers match the snapshot"]);

    let after = stack.containers();
    assert_same(&before, &after);
    assert_same_networks(&networks, &stack.networks());
    let read = "cat /bound/file /named/file /anonymous/file /long/file /imgvol/file";
    assert_eq!(
        crate::host::docker(&["exec", &db, "/bin/sh", "-c", read]),
        "bound\nnamed-data\nanonymous-data\nlong-data\nimgvol-data"
    );

    let output = stack.up();
    for name in after.keys() {
        assert!(output.contains(&format!("{name}  Running")), "{output}");
    }
    assert!(
        !output.contains("Started") && !output.contains("Created"),
        "{output}"
    );
    assert_eq!(ids(&stack.containers()), ids(&after));
}
