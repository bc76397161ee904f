//! Files in memory, which are lost when a container stops (B36).

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use testbed::{Call, FaultKind};

use crate::{bench::Bench, confirming::on_terminal};

/// The stack `web`, whose file was edited since it was started. Its container has two directories, of which one has a file.
struct InMemory {
    bench: Bench,
    folder: TempDir,
    /// They stand for containerd, which starts the process of a container.
    parents: Vec<(Child, u64)>,
}

impl InMemory {
    /// `mounts` is a part of the service, and `rest` follows the services.
    fn new(mounts: &str, rest: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["full", "empty"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("full/file"), "s3cr3t").unwrap();
        let mounts = mounts.replace("$DIR", folder.path().to_str().unwrap());
        let text = format!("services:\n  a:\n    image: x:1\n    ipc: host\n    {mounts}\n{rest}");
        let bench = Bench::web(&text);
        let edited = text.replace("x:1\n", "x:1\n    command: sleep 5\n");
        bench.stack("web", &edited, None);
        let mut stack = Self {
            bench,
            folder,
            parents: Vec::new(),
        };
        stack.start();
        stack
    }

    /// Gives the container a process.
    fn start(&mut self) {
        let id = self.bench.container("web-a-1").id;
        let mut parent = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait", &id])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = parent.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let process = line.trim().parse().unwrap();
        self.parents.push((parent, process));
        self.bench
            .change_container("web-a-1", |a| a.process = process);
    }

    fn full(&self) -> String {
        self.folder.path().join("full").display().to_string()
    }

    fn lost(&self) -> String {
        format!("the files in memory at {}", self.full())
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        for (parent, process) in &mut self.parents {
            let ids = [parent.id().to_string(), process.to_string()];
            Command::new("kill").args(ids).status().unwrap();
            parent.wait().unwrap();
        }
    }
}

const TMPFS: &str = "tmpfs: [$DIR/full, $DIR/empty]";

#[test]
fn b36_files_in_memory_are_lost_and_no_restore_matches_them() {
    let mut stack = InMemory::new(TMPFS, "");
    let (lost, full) = (stack.lost(), stack.full());
    let plan = stack.bench.succeeds("plan web", &*lost);
    plan.hides("/empty").hides("s3cr3t").hides("unknown");
    let adopt = "adopt web --wait 2s";
    on_terminal(&stack.bench, adopt, "n\n").fails(&*lost);
    on_terminal(&stack.bench, "migrate web", "n\n").fails(&*lost);
    stack.bench.succeeds(adopt, "adopted web");

    stack.start();
    let bench = &stack.bench;
    let lost = format!("web-a-1: the files in memory at {full} are lost");
    on_terminal(bench, "restore web", "n\n").fails(&*lost);
    let lost = format!(
        "1 container matches the snapshot, but the files in memory at {full} of web-a-1 are lost"
    );
    bench.succeeds("restore web", &*lost);
    bench.succeeds("restore web", &*lost).hides("as it was");
}

#[test]
fn b36_a_restore_after_a_failure_names_the_files_in_memory() {
    let stack = InMemory::new(TMPFS, "");
    let (bench, full) = (&stack.bench, stack.full());
    bench.once(Call::Create, FaultKind::LateFailure(Duration::ZERO));
    bench.fails(
        "adopt web --wait 2s",
        &*format!("warning: the files in memory at {full} of web-a-1 are lost"),
    );
}

#[test]
fn b36_a_volume_in_memory_is_emptied_unless_another_container_keeps_it() {
    let volumes = "volumes:\n  ram: {driver_opts: {type: tmpfs, device: tmpfs}}\n";
    let stack = InMemory::new("volumes: ['ram:$DIR/full']", volumes);
    let bench = &stack.bench;
    bench.succeeds("plan web", &*stack.lost());
    let mount = bench.container("web-a-1").mounts[0].clone();
    let other = bench.world(|world| {
        let id = world.add_container("other", "y:1");
        let other = world.containers.get_mut(&id).expect("the container");
        other.mounts.push(mount);
        id
    });
    bench.succeeds("plan web", "a ").hides("in memory");
    bench.world(|world| world.containers.get_mut(&other).expect("it").state = "exited".to_owned());
    bench.succeeds("plan web", &*stack.lost());
}

#[test]
fn b36_a_plan_names_what_kept_containers_lose_if_the_deployment_fails() {
    let stack = InMemory::new(TMPFS, "  b:\n    image: y:1\n");
    let (bench, full) = (&stack.bench, stack.full());
    let text = fs::read_to_string(bench.dir("web").join("docker-compose.yml")).unwrap();
    let text = text.replace("    command: sleep 5\n", "");
    let edited = text.replace("y:1\n", "y:1\n    command: sleep 5\n");
    bench.stack("web", &edited, None);
    let lost =
        format!("if the deployment fails, the files in memory at {full} of web-a-1 are lost");
    let plan = bench.succeeds("plan web", &["a  keeps running", &*lost]);
    assert_eq!(plan.all().matches("in memory").count(), 1);
    bench.succeeds("adopt web --wait 2s", &[&*lost, "adopted web"]);
    bench.succeeds("plan web", "up to date").hides("in memory");
}

#[test]
fn b36_what_cannot_be_looked_at_is_unknown_and_said_once() {
    let stack = InMemory::new(TMPFS, "");
    let bench = &stack.bench;
    // In other numbers, it is another process.
    bench.change_container("web-a-1", |a| a.process = std::process::id().into());
    let why = "only root on the host of Docker can look into the containers";
    let besides = format!(
        "Adopting it loses nothing besides files in memory (/dev/shm, tmpfs), which are unknown: {why}. a is down"
    );
    let plan = bench.succeeds("plan web", &*besides);
    assert_eq!(plan.all().matches("in memory").count(), 1);
    let told = format!("whether files in memory (/dev/shm, tmpfs) are lost is unknown: {why}");
    bench.succeeds("adopt web --wait 2s", &*told);
    let but = "1 container matches the snapshot, but whether files in memory of web-a-1 are lost is unknown";
    bench.succeeds("restore web", but).hides("not checked");
}

#[test]
fn b36_the_reason_why_a_mount_cannot_be_looked_at_is_its_own() {
    let stack = InMemory::new("tmpfs: [$DIR/full, $DIR/none]", "");
    let none = stack.folder.path().join("none");
    let why = format!(
        "cannot look into {} of web-a-1: No such file",
        none.display()
    );
    let plan = stack.bench.succeeds("plan web", &[&*stack.lost(), &why]);
    plan.hides("only root");
}

#[test]
fn b36_a_restart_loop_keeps_nothing_in_memory() {
    let stack = InMemory::new(TMPFS, "");
    for process in [stack.parents[0].1, 0] {
        stack.bench.change_container("web-a-1", |a| {
            a.process = process;
            a.state = "restarting".to_owned();
        });
        stack.bench.run("plan web").says("a ").hides("in memory");
    }
}
