//! Restores a stack of thirty containers.

use std::fmt::Write as _;

use super::{
    bench::Stack,
    sameness::{assert_same, ids},
};

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn thirty_containers_are_restored() {
    let stack = Stack::new();
    let mut text = "services:\n".to_owned();
    for number in 0..30 {
        write!(
            text,
            "  s{number:02}:\n    image: $IMAGE\n    command: /bin/sleep 600\n    init: true\n    volumes: [/anonymous]\n"
        )
        .unwrap();
        if number % 10 != 0 {
            writeln!(text, "    depends_on: [s{:02}]", number - 1).unwrap();
        }
    }
    text.push_str("networks: {default: {ipam: {config: [{subnet: $SUBNET.0/24}]}}}\n");
    stack.write(&text);
    stack.up();
    let before = stack.containers();
    assert_eq!(before.len(), 30);

    stack.migrate();
    stack.restore().says(&["30 containers match the snapshot"]);

    let after = stack.containers();
    assert_same(&before, &after);
    let output = stack.up();
    assert_eq!(output.matches("  Running").count(), 30, "{output}");
    assert_eq!(ids(&stack.containers()), ids(&after));
}
