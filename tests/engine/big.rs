//! Restores a stack that uses most settings of a Compose file.

use super::{
    bench::Stack,
    sameness::{assert_same, assert_same_networks, ids},
};

/// A stack that `up` does not change after the restore.
const BIG: &str = include_str!("../fixtures/stacks/big.yml");

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn a_big_stack_is_restored_unchanged() {
    let files = [
        (".env", "FROM_FILE=of-the-file # no comment\n"),
        ("bound/file", "bound\n"),
    ];
    let stack = Stack::new().running(BIG, &files);
    let db = stack.host.name("the-db");
    let write = "for v in named anonymous long imgvol; do echo $v-data > /$v/file; done";
    crate::host::docker(&["exec", &db, "/bin/sh", "-c", write]);
    let (before, networks) = (stack.containers(), stack.networks());

    stack.migrate();
    stack.remove_networks();
    stack.restore().says("5 containers match the snapshot");

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
