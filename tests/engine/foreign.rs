//! Containers outside the stack that use one of its containers (B21).

use std::{env, fs, process::Command};

use crate::{
    bench::Stack,
    host::{Compose, IMAGE, attempt, docker},
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

/// A stack that runs. The project `…-vpn` shares the network of `a`, and `last` that of the project.
struct Shared {
    stack: Stack,
    vpn: String,
    last: String,
}

impl Shared {
    fn new(stack: Stack) -> Self {
        let stack = stack.running(TEXT, &[]);
        let project = format!("{}-vpn", stack.host.project);
        let dir = stack.state().parent().unwrap().join("vpn");
        fs::create_dir(&dir).unwrap();
        let (mark, a) = (stack.host.mark(), stack.name("a"));
        let (label, value) = mark.split_once('=').unwrap();
        let text = format!(
            "services:\n  dl:\n    image: {IMAGE}\n    command: /bin/sleep 600\n    init: true\n    stop_signal: SIGKILL\n    network_mode: 'container:{a}'\n    labels: {{{label}: {value}}}\n"
        );
        fs::write(dir.join("compose.yaml"), text).unwrap();
        Compose::new().run(&dir, &project, &["up", "-d"]);
        let shared = Self {
            vpn: format!("{project}-dl-1"),
            last: stack.host.name("last"),
            stack,
        };
        let network = format!("container:{}", shared.vpn);
        shared.run(&shared.last, &["--network", &network]);
        shared
    }

    fn run(&self, name: &str, options: &[&str]) {
        self.stack.host.run(name, options, IMAGE);
    }

    fn change(&self) {
        self.stack.edit("changed: 'no'", "changed: 'yes'");
    }

    /// A run said before and after it that both containers lose the network, the nearer one first. What it says repairs
    /// them.
    #[track_caller]
    fn says_and_repairs(&self, run: Run) {
        let (vpn, last, a) = (&self.vpn, &self.last, self.stack.name("a"));
        for name in [vpn, last] {
            assert!(!has_network(name), "{name}");
        }
        let run = run.says("these containers must be restarted or recreated by hand:");
        let all = run.all();
        let (before, after) = all.rsplit_once("recreated by hand:").unwrap();
        for said in [before, after] {
            let at = |name: &str, of: &str| {
                let line = format!(
                    "{name}: it does not belong to the stack, shares the network of {of}, and loses it"
                );
                said.find(&line)
                    .unwrap_or_else(|| panic!("no {line:?} in {all}"))
            };
            assert!(at(vpn, &a) < at(last, vpn), "{all}");
        }
        // A restart would end it for good.
        assert!(!attempt(&["restart", "-t0", vpn]).unwrap().status.success());
        let line = after.lines().find(|line| line.contains(vpn.as_str()));
        let (_, command) = line.unwrap().split_once("recreate it then: ").unwrap();
        let compose = env::var("STACKLIFT_TEST_COMPOSE").unwrap_or_default();
        let command = match compose.as_str() {
            "" => command.to_owned(),
            compose => command.replace("docker compose", compose),
        };
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        docker(&["rm", "-f", last]);
        self.run(last, &["--network", &format!("container:{vpn}")]);
        for name in [vpn, last] {
            assert!(has_network(name), "{name}");
        }
    }
}

fn has_network(container: &str) -> bool {
    let read = ["exec", container, "/bin/busybox", "cat", "/proc/net/dev"];
    docker(&read).contains("eth0")
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b21_an_adoption_names_whom_it_harms() {
    let shared = Shared::new(Stack::with_portainer());
    let stopped = shared.stack.host.name("stopped");
    let a = shared.stack.name("a");
    shared.run(&stopped, &["--pid", &format!("container:{a}")]);
    docker(&["kill", &stopped]);
    let volumes = shared.stack.host.name("volumes");
    shared.run(&volumes, &["--volumes-from", &a]);
    let plan = || shared.stack.run("plan $PROJECT");
    plan().succeeds("Adopting it loses nothing");
    shared.change();
    plan().succeeds(&[
        &*shared.vpn,
        &shared.last,
        "shares the PID namespace of",
        "cannot start again",
        "mounts the volumes of",
    ]);
    let run = shared.stack.run("adopt $PROJECT").code(0);
    shared.says_and_repairs(run.says("cannot start again"));
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b21_a_restore_names_whom_it_harms() {
    let shared = Shared::new(Stack::with_portainer());
    let run = shared.stack.run("adopt $PROJECT").code(0);
    run.says("2 containers kept running")
        .hides("does not belong");
    assert!(has_network(&shared.last));
    let run = shared.stack.restore();
    shared.says_and_repairs(run);
    // Nothing is lost by a restore that changes nothing, and the others do not refer to what is gone.
    shared.stack.restore().hides("does not belong");
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b21_a_migration_names_whom_it_harms() {
    let shared = Shared::new(Stack::new());
    for engine in ["command", "api"] {
        let plan = format!("plan $PROJECT --compare --engine {engine}");
        shared.stack.run(&plan).says(&[&shared.vpn, &shared.last]);
    }
    let run = shared.stack.migrate();
    run.says(&[
        &*format!("{}: it does not belong to the stack", shared.vpn),
        "these containers must be restarted or recreated by hand:",
    ]);
    let run = shared.stack.restore();
    run.says("since that container was recreated or removed");
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b21_a_failed_adoption_names_whom_it_harmed() {
    let shared = Shared::new(Stack::with_portainer());
    shared.change();
    let name = shared.stack.host.project.clone();
    shared.stack.record();
    // The new container of `a` cannot start.
    let (host, broken) = (&shared.stack.host, format!("{name}:broken"));
    host.commit(&name, "rm /bin/sleep", &[], &broken);
    let portainer = shared.stack.portainer();
    portainer.before_deployment(&format!("docker tag {broken} {name}"));
    let adopt = "adopt $PROJECT --leave-orphans --overwrite";
    shared.says_and_repairs(shared.stack.run(adopt).fails(&[
        "restored",
        "these containers are not recreated with the stack:",
    ]));
}
