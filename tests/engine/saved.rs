//! Snapshots on disk: permissions, content, and both adapters.

use std::{fs, path::Path};

use serde_json::Value;
use testbed::{Call, FaultKind};

use super::bench::Stack;

const ONE: &str = "services:
  a:
    $SLEEP
    env_file: .env
    volumes: [/anonymous]
";

fn read(snapshot: &Path) -> Value {
    serde_json::from_slice(&fs::read(snapshot).unwrap()).unwrap()
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn the_command_adapter_sees_the_same_containers_and_nothing_that_needs_the_api() {
    let stack = Stack::new().running(ONE, &[(".env", "SECRET=hunter2-of-this-test\n")]);
    let before = stack.state();
    // A failed deletion stops each run right after its snapshot, so both snapshots show the same container.
    stack.record();
    let faults = stack.rehearsal.faults();
    for adapter in ["api", "command"] {
        faults.once(Call::Delete, FaultKind::CloseBefore);
        stack.run(&format!("$PROJECT --engine {adapter}")).code(1);
    }
    before.containers.assert_untouched(&stack.containers());
    let [by_api, by_command] = [0, 1].map(|which| read(&stack.snapshots()[which]));
    assert_eq!(by_api["containers"], by_command["containers"]);
    for part in ["networks", "volumes"] {
        assert!(by_api[part]["known"].is_array());
        let reason = by_command[part]["unknown"].as_str().unwrap();
        assert!(reason.contains("this needs the Engine API"), "{reason}");
    }

    let run = stack.run("$PROJECT --engine command").code(0);
    run.says(&["the snapshot is incomplete: the networks", "--engine api"]);
    assert!(stack.ids().is_empty());
    stack.run("restore $PROJECT --engine command").fails(&[
        "this needs the Engine API",
        "--engine api",
        "Nothing was changed",
    ]);
    assert!(stack.ids().is_empty());
    stack.restore();
    stack.assert_has_objects(&before);
}
