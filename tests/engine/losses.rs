//! B01: a migration of an unedited file names no loss of a setting, whatever the engine calls it.

use super::bench::Stack;

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
    let is_unexpected = |line: &&str| !line.contains("privileged-1: it is stopped");
    assert_eq!(others.into_iter().find(is_unexpected), None);
}
