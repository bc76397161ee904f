//! Containers outside the stack that use one of its containers (B21).

use std::{fs, process::Command};

use crate::{
    bench::{OLD, Stack},
    host::Compose,
    run::Run,
};

const TEXT: &str = "services:
  a:
    $OWN_SLEEP
    stop_signal: SIGKILL
    labels: {changed: 'no'}
    volumes: [data:/imgvol]
  b:
    $SLEEP
    stop_signal: SIGKILL
volumes: {data: {}}
";

/// The project that shares the network of `a`.
const VPN: &str = "services:
  dl:
    image: $IMAGE
    command: /bin/sleep 600
    init: true
    stop_signal: SIGKILL
    network_mode: 'container:$PROJECT-a-1'
    labels: ['$MARK']
";

/// The container of that project, and one that shares its network.
const OTHERS: [&str; 2] = ["$PROJECT-vpn-dl-1", "$PROJECT-last"];

/// Starts the stack and the others.
fn shared(stack: Stack) -> Stack {
    let stack = stack.running(TEXT, &[]);
    let dir = stack.state_dir().with_file_name("vpn");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("compose.yaml"), stack.host.filled(VPN)).unwrap();
    let project = stack.host.filled("$PROJECT-vpn");
    Compose::Two.run(&dir, &project, &["up", "-d"]);
    run_last(&stack);
    stack
}

fn run_last(stack: &Stack) {
    let [vpn, last] = OTHERS;
    stack.sleep(&format!("--name {last} --network container:{vpn}"));
}

#[track_caller]
fn assert_network(stack: &Stack, has_network: bool) {
    for name in OTHERS {
        let devices = stack.docker(&format!("exec {name} /bin/busybox cat /proc/net/dev"));
        assert_eq!(devices.contains("eth0"), has_network, "{name}");
    }
}

/// A run said before and after it that both containers lose the network, the nearer one first. What it says repairs them.
#[track_caller]
fn says_and_repairs(stack: &Stack, run: &Run) {
    assert_network(stack, false);
    let all = run.all();
    let (before, after) = all
        .rsplit_once("these containers must be restarted or recreated by hand:")
        .unwrap();
    let [vpn, last] = OTHERS;
    let [first, second] = [(vpn, "$PROJECT-a-1"), (last, vpn)].map(|(name, of)| {
        format!("{name}: it does not belong to the stack, shares the network of {of}, and loses it")
    });
    for said in [before, after] {
        let (_, rest) = said.split_once(&first).expect("the nearer one");
        assert!(rest.contains(&second), "{all}");
    }
    // A restart would end it for good.
    assert!(stack.lines(&format!("restart -t0 {vpn}")).is_empty());
    let line = after.lines().find(|line| line.contains(vpn));
    let (_, command) = line.unwrap().split_once("recreate it then: `").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let command = command.replace("docker compose", &Compose::Two.program());
    let command = stack.host.filled(&command);
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    stack.docker(&format!("rm -f {last}"));
    run_last(stack);
    assert_network(stack, true);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b21_an_adoption_names_whom_it_harms() {
    let stack = shared(Stack::by(OLD));
    stack.sleep("--name $PROJECT-stopped --pid container:$PROJECT-a-1");
    stack.docker("kill $PROJECT-stopped");
    stack.sleep("--volumes-from $PROJECT-a-1");
    let plan = stack.run("plan $PROJECT");
    plan.succeeds("Adopting it loses nothing");
    stack.edit("changed: 'no'", "changed: 'yes'");
    stack.run("plan $PROJECT").succeeds(&[
        OTHERS[0],
        OTHERS[1],
        "shares the PID namespace of",
        "cannot start again",
        "mounts the volumes of",
    ]);
    let run = stack.run("adopt $PROJECT");
    says_and_repairs(&stack, &run.succeeds("cannot start again"));
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b21_a_restore_names_whom_it_harms() {
    let stack = shared(Stack::by(OLD));
    let run = stack.run("adopt $PROJECT");
    run.succeeds("2 containers kept running")
        .hides("does not belong");
    assert_network(&stack, true);
    says_and_repairs(&stack, &stack.restore());
    // Nothing is lost by a restore that changes nothing, and the others do not refer to what is gone.
    stack.restore().hides("does not belong");
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b21_a_migration_names_whom_it_harms() {
    let stack = shared(Stack::new());
    for engine in ["command", "api"] {
        let plan = format!("plan $PROJECT --compare --engine {engine}");
        stack.run(&plan).says(&OTHERS);
    }
    stack.migrate().says(&[
        "$PROJECT-vpn-dl-1: it does not belong to the stack",
        "these containers must be restarted or recreated by hand:",
    ]);
    let run = stack.restore();
    run.says("since that container was recreated or removed");
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b21_a_failed_adoption_names_whom_it_harmed() {
    let stack = shared(Stack::by(OLD));
    stack.edit("changed: 'no'", "changed: 'yes'");
    stack.record();
    // The new container of `a` cannot start.
    stack.commit("$PROJECT", "rm /bin/sleep", "", "$PROJECT:broken");
    stack.before_deployment("docker tag $PROJECT:broken $PROJECT");
    let run = stack.run("adopt $PROJECT --leave-orphans --overwrite");
    says_and_repairs(
        &stack,
        &run.fails(&[
            "restored",
            "these containers are not recreated with the stack:",
        ]),
    );
}
