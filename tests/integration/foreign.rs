//! Containers outside the stack that use one of its containers (B21).

use serde_json::json;
use testbed::{Call, Rule};

use crate::{
    bench::{Bench, instead},
    confirming::on_terminal,
};

const OLD: &str = "services:\n  a:\n    image: x:1\n";
const NEW: &str = "services:\n  a:\n    image: x:1\n    command: sleep 5\n";

/// The stack `web`, whose file was edited since it was started, and `vpn`, which shares the network of `a`. Returns the
/// ID of `vpn`.
fn shared() -> (Bench, String) {
    let bench = Bench::web(OLD);
    bench.stack("web", NEW, None);
    let vpn = bench.world(|world| {
        let a = world.project("web")[0].id.clone();
        let vpn = world.add_container("vpn", "y:1");
        let container = world.containers.get_mut(&vpn).expect("the container");
        container.host_config["NetworkMode"] = json!(format!("container:{a}"));
        vpn
    });
    (bench, vpn)
}

/// The engine fails to inspect `vpn`.
fn break_inspect(bench: &Bench, vpn: &str) {
    let broken = instead(500, "{\"message\":\"broken\"}");
    let rule = Rule::new(Call::EngineInspect, broken).path(vpn);
    bench.faults().add(rule);
}

#[test]
fn b21_a_restore_that_cannot_tell_whom_it_harms_says_no_more() {
    let (bench, vpn) = shared();
    bench.run("adopt web --wait 2s").code(0);
    break_inspect(&bench, &vpn);
    let unknown = "it is unknown which containers outside the stack";
    on_terminal(&bench, "restore web", "n\n").fails(&[unknown, "Roll back web? [y/N]"]);
}

#[test]
fn b21_what_cannot_be_inspected_is_unknown_and_blocks_nothing() {
    let (bench, vpn) = shared();
    break_inspect(&bench, &vpn);
    let unknown = "it is unknown whether other containers share";
    bench.succeeds("adopt web --wait 2s", &[unknown, "adopted web"]);
}
