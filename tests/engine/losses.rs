//! B01: a migration of an unedited file names no loss of a setting, whatever the engine calls it.

use std::fs;

use super::bench::{OLD, Stack};

/// A service of its own for each group of settings, so that a loss is found by its container.
const RICH: &str = include_str!("../fixtures/stacks/losses.yml");

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b01_no_mount_port_or_setting_of_an_unedited_file_is_named() {
    let stack = Stack::new();
    for file in ["token", "site", "files/x", "static/x", "long/x"] {
        stack.file(file, "content");
    }
    stack.write(RICH);
    // Not every host may start a privileged container.
    stack.compose(&["create"]);
    let services = RICH
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    let services = services.filter(|name| !name.contains([' ', '&']) && *name != "privileged");
    let arguments = ["up", "-d", "--no-deps"].into_iter().chain(services);
    stack.compose(&arguments.collect::<Vec<_>>());
    let said = stack.run("migrate $PROJECT").all();
    let (known, others): (Vec<&str>, Vec<&str>) = said
        .lines()
        .filter(|line| line.starts_with("  - "))
        .partition(|line| line.contains("SIGKILL") || line.contains("anonymous volume at"));
    assert!(known.len() > 2, "{said}");
    let is_unexpected = |line: &&str| !line.contains("privileged: it is stopped");
    assert_eq!(others.into_iter().find(is_unexpected), None);
}

/// A link of a user of the container does not lead to the `/etc/apt` of the host.
#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b36_files_in_memory_are_lost_with_their_container() {
    let text = "services:
  a:
    $SLEEP
    volumes: ['ram:/r', /cache, /mnt/in/below]
    tmpfs: [/empty, /mnt, /var/apt]
  b:
    $SLEEP
    volumes: ['kept:/k']
volumes:
  ram: {driver_opts: {type: tmpfs, device: tmpfs}}
  kept: {driver_opts: {type: tmpfs, device: tmpfs}}
";
    let stack = Stack::by(OLD).stopped(text, &[]);
    stack.up();
    let link = "mv /var /old; ln -s ../../../../../etc /var";
    stack.sh("a", &format!("echo x > /r/file; {link}"));
    stack.sh("b", "echo x > /k/file; echo x > /dev/shm/file");
    let run = stack.run("migrate --dry-run $PROJECT").all();
    let rows = run
        .lines()
        .filter_map(|line| line.split_once("the files in memory at "));
    let rows: Vec<_> = rows.map(|(of, path)| (of.trim(), path)).collect();
    let expected = [("a", "/r"), ("b", "/dev/shm"), ("b", "/k")];
    assert_eq!(rows, expected, "{run}");
    let unknown = "is unknown: cannot look into /var/apt of";
    assert_eq!(run.matches(unknown).count(), 1, "{run}");

    stack.edit("  a:\n", "  a:\n    labels: {changed: 'yes'}\n");
    let kept = "if the deployment fails, the files in memory at /dev/shm of $PROJECT-b-1 and /k of $PROJECT-b-1 are lost";
    let lost = "the files in memory at /r";
    stack.run("plan $PROJECT").succeeds(&[lost, kept]);
    stack.run("adopt $PROJECT").succeeds(lost);
    let emptied = "but the files in memory at /r of $PROJECT-a-1";
    let restored = stack.run("restore $PROJECT");
    restored.succeeds(&[emptied, "/k of $PROJECT-b-1"]);
    assert_eq!(stack.sh("a", "ls /r"), "");
    let again = stack.run("restore $PROJECT");
    again.succeeds(emptied).hides("as it was");
}

/// A container keeps the file that was mounted when it started.
#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn b36_a_mounted_file_that_was_replaced_is_lost_with_its_container() {
    let text = "services:
  a:
    $SLEEP
    volumes: ['./replaced:/r', './same:/s', './read-only:/o:ro', './dir:/d', /cache]
";
    let files = [
        ("replaced", "x"),
        ("same", "x"),
        ("read-only", "x"),
        ("dir/x", "x"),
    ];
    let stack = Stack::by(OLD).stopped(text, &files);
    stack.up();
    let lost = "the container still uses: another one has taken its place";
    let said = stack.run("plan $PROJECT").all();
    assert!(!said.contains(lost), "{said}");
    for name in ["replaced", "read-only", "dir"] {
        let path = stack.dir().join(name);
        fs::rename(&path, stack.dir().join(format!("{name}.old"))).expect("renamed");
    }
    stack.file("replaced", "y");
    stack.file("read-only", "y");
    stack.file("dir/x", "y");
    let said = stack.run("plan $PROJECT").all();
    assert_eq!(said.matches(lost).count(), 2, "{said}");
    assert!(said.contains("the earlier ./replaced, which"), "{said}");
    assert!(said.contains("the earlier ./dir, which"), "{said}");
}
