//! Kills a run at each request. The next restore must finish its work.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    bench::{RECORD, Stack, kill_after},
    host::lines,
    sameness::{assert_same, assert_same_networks},
};

/// Two networks, a volume of the image, an anonymous volume, a shared network and a job.
const STACK: &str = "services:
  db:
    $OWN_SLEEP
    networks: {one: {aliases: [sql]}, two: {ipv4_address: $SUBNET.9}}
    volumes: [/anonymous]
  side:
    $OWN_SLEEP
    network_mode: service:db
  job:
    image: $IMAGE
    command: /bin/true
    network_mode: none
networks:
  one: {}
  two: {ipam: {config: [{subnet: $SUBNET.0/24}]}}
";

/// The stack, and its state before the run, which must be its state after the restore.
struct Killed {
    stack: Stack,
    containers: BTreeMap<String, Value>,
    networks: Vec<Value>,
    volumes: Vec<String>,
}

impl Killed {
    fn new() -> Self {
        let stack = Stack::new().running(STACK, &[]);
        stack.sh(
            "db",
            "echo imgvol > /imgvol/file; echo anonymous > /anonymous/file",
        );
        Self {
            containers: stack.containers(),
            networks: stack.networks(),
            volumes: stack.created_volumes(),
            stack,
        }
    }

    fn assert_restored(&self, record: Option<&str>) {
        let stack = &self.stack;
        assert_same(&self.containers, &stack.containers());
        assert_same_networks(&self.networks, &stack.networks());
        let expected = "imgvol\nanonymous";
        assert_eq!(stack.sh("db", "cat /imgvol/file /anonymous/file"), expected);
        assert_eq!(stack.created_volumes(), self.volumes);
        let records = stack.rehearsal.world(|world| world.records.clone());
        let texts: Vec<_> = records.values().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, Vec::from_iter(record));
        // No other container exists, whatever its name.
        let image = format!("ancestor={}", stack.host.project);
        assert_eq!(lines(&["ps", "-aq", "--filter", &image]).len(), 2);
    }
}

/// The numbers of requests to kill a run after: before and after each request that changes something.
fn kill_points(requests: &[String]) -> Vec<usize> {
    let writes = |index: usize| {
        let request = requests.get(index).map_or("", String::as_str);
        ["POST ", "PUT ", "DELETE "]
            .iter()
            .any(|method| request.contains(method))
    };
    let points: Vec<_> = (1..requests.len())
        .filter(|&after| writes(after - 1) || writes(after))
        .collect();
    assert!(points.len() > 4, "{requests:#?}");
    points
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_restore_that_is_killed_repeatedly_finishes() {
    let killed = Killed::new();
    let stack = &killed.stack;
    stack.migrate();
    stack.remove_networks();
    // The first requests only read.
    for after in 8.. {
        let seen = kill_after(stack.command("restore $PROJECT"), after);
        if seen.len() < after {
            break;
        }
        assert!(after < 500, "the restore does not finish: {seen:#?}");
    }
    killed.assert_restored(None);
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_killed_migration_is_rolled_back_by_a_restore() {
    let killed = Killed::new();
    let stack = &killed.stack;
    // The restore must recreate the deleted Portainer stack, too.
    stack.record();
    let all = kill_after(stack.command("migrate $PROJECT"), usize::MAX);
    assert!(stack.ids().is_empty(), "{all:#?}");
    stack.restore();
    killed.assert_restored(Some(RECORD));
    for after in kill_points(&all) {
        let snapshots = stack.snapshots();
        let ids = stack.ids();
        kill_after(stack.command("migrate $PROJECT"), after);
        if stack.snapshots() == snapshots {
            assert_eq!(stack.ids(), ids, "killed after {after}: {all:#?}");
        } else {
            stack.restore();
        }
        killed.assert_restored(Some(RECORD));
    }
}
