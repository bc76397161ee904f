//! The same values, asked of this program and of the real Compose program.

use std::{env, fs, process::Command};

use crate::plan::{Refusal, tests::world};

/// Lines of a service that every Compose version rejects.
const REJECTED: &[&str] = &[
    "mem_limit: lots",
    "mem_limit: 1q",
    "mem_limit: ''",
    "mem_limit: ${UNSET}",
    "mem_limit: 1,5g",
    "memswap_limit: g",
    "mem_reservation: lots",
    "shm_size: 1ö",
    "deploy: {resources: {limits: {memory: lots}}}",
    "deploy: {resources: {reservations: {memory: 1 zz9x}}}",
    "stop_grace_period: soon",
    "stop_grace_period: 5x",
    "stop_grace_period: 5sec",
    "stop_grace_period: 1mo",
    "healthcheck: {test: a, interval: soon}",
    "healthcheck: {test: a, timeout: 1y}",
    "healthcheck: {test: a, start_period: inf}",
    "healthcheck: {test: a, retries: x}",
    "deploy: {restart_policy: {delay: soon}}",
    "deploy: {restart_policy: {window: soon}}",
    "cpus: lots",
    "cpu_count: lots",
    "cpu_shares: lots",
    "pids_limit: lots",
    "oom_score_adj: x",
    "scale: x",
    "deploy: {replicas: x}",
    "deploy: {resources: {limits: {cpus: lots}}}",
    "init: x",
    "privileged: maybe",
    "read_only: yess",
    "ports: [{target: x}]",
    "ports: [{target: '-x'}]",
    "ports: ['x']",
    "ports: ['80:x']",
    "ports: ['x:80']",
    "ports: ['99999:1']",
    "ports: ['1:99999']",
    "ports: ['2-1:1']",
    "ports: ['90-80']",
    "ports: ['1:80/foo']",
    "ports: ['-1:80']",
    "ports: ['+80:80']",
    "ports: ['80-:80']",
    "ports: ['1.5:80']",
];

/// Lines that Compose accepts and the engine rejects.
const REJECTED_BY_ENGINES: &[&str] = &[
    "ports: [{target: 80, published: x}]",
    "volumes: ['x:/x']",
    "volumes: ['x:/x:ro']",
    "volumes: ['x:/x:/y']",
    "volumes: ['C:\\a:/b']",
    "volumes: ['data:b']",
    "volumes: ['relative']",
];

/// Lines that at least one Compose version and an engine accept.
const ACCEPTED: &[&str] = &[
    "mem_limit: 512m",
    "mem_limit: 1.5",
    "mem_limit: 1.5 GiB",
    "mem_limit: 1e3",
    "mem_limit: 0x10",
    "memswap_limit: -1",
    "shm_size: 1p",
    "stop_grace_period: 1h30m",
    "stop_grace_period: .5s",
    "stop_grace_period: 1µs",
    "stop_grace_period: -1s",
    "healthcheck: {test: a, interval: 1m0.5s}",
    "cpus: '0.5'",
    "cpus: .5",
    "pids_limit: -1",
    "deploy: {replicas: '2'}",
    "init: yes",
    "init: 'yes'",
    "privileged: 'on'",
    "tty: 'N'",
    "read_only: 'TRUE'",
    "ports: ['80', '80:81', '127.0.0.1:82:80', '127.0.0.1::80', '[::1]:83:80', '1-2:1', '84:80/UDP', ':80']",
    "ports: [{target: '80', published: 8-9}, {target: 80, published: ''}, 90]",
    "volumes: [/a, 'data:/x', 'd2:/x:ro', './a:/b', '1:/x', {type: volume, source: x, target: /x}]",
];

fn text(line: &str) -> String {
    format!(
        "services:\n  web:\n    image: x\n    {line}\nvolumes: {{x: {{}}, data: {{}}, d2: {{}}, '1': {{}}}}\n"
    )
}

fn lines_refused(line: &str) -> Vec<String> {
    let plan = world(&text(line)).plan();
    let refusals = plan.refusals.into_iter();
    let lines = refusals.filter_map(|refusal| match refusal {
        Refusal::Rejected(lines) => Some(lines),
        _ => None,
    });
    lines.flatten().collect()
}

#[test]
fn b06_values_that_compose_or_the_engine_rejects_are_refused() {
    let is_refused = |line: &str| match lines_refused(line).as_slice() {
        [] => false,
        [refused] => refused.starts_with("line 4: service web: "),
        several => panic!("{line}: {several:?}"),
    };
    let rejected = [REJECTED, REJECTED_BY_ENGINES].concat();
    let accepted: Vec<_> = rejected.iter().filter(|line| !is_refused(line)).collect();
    assert!(accepted.is_empty(), "not refused: {accepted:?}");
    let refused: Vec<_> = ACCEPTED.iter().filter(|line| is_refused(line)).collect();
    assert!(refused.is_empty(), "refused: {refused:?}");
}

#[test]
fn b06_a_refused_value_is_shown_as_it_is_written() {
    let mut world = world(&text("mem_limit: ${SECRET}"));
    world.env = Some("SECRET=s3cr3t-7d1e55a0\n".to_owned());
    let plan = format!("{:?}", world.plan().refusals);
    assert!(
        plan.contains("`mem_limit: ${SECRET}` is not a size"),
        "{plan}"
    );
    assert!(!plan.contains("s3cr3t"), "{plan}");
}

#[test]
#[ignore = "needs a compose program: run scripts/test"]
#[allow(clippy::disallowed_methods, reason = "asks a program")]
fn b06_the_real_compose_rejects_the_same_values() {
    let program = env::var("STACKLIFT_TEST_COMPOSE").expect("STACKLIFT_TEST_COMPOSE is not set");
    let accepts = |line: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("docker-compose.yml"), text(line)).expect("written");
        let mut command = Command::new(&program);
        command.args(["-p", "web", "config", "--quiet"]);
        let output = command
            .current_dir(folder.path())
            .output()
            .expect("it runs");
        output.status.success()
    };
    for line in REJECTED {
        assert!(!accepts(line), "{line}");
    }
    for line in [REJECTED_BY_ENGINES, ACCEPTED].concat() {
        assert!(accepts(line), "{line}");
    }
}
