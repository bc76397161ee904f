//! SIGKILL of a run, then a second run or a restore: the stack is whole, in the new or in the old state.

use super::{Case, by_each_portainer, failing::Before};

by_each_portainer! {
    a_second_run_finishes
    a_restore_rolls_back
}

/// Kills an adoption while Portainer deploys.
fn kill_in_flight(before: &Before) {
    let scenario = &before.scenario;
    let portainer = scenario.portainer.as_ref().unwrap();
    portainer.before_deployment("sleep 2");
    scenario.kill_in_flight(&["adopt", &scenario.host.project]);
}

fn a_second_run_finishes(case: Case) {
    let before = Before::new(case);
    kill_in_flight(&before);
    before.adopt(&["--timeout=5m"]).code(0);
    before.assert_new();
}

fn a_restore_rolls_back(case: Case) {
    let before = Before::new(case);
    kill_in_flight(&before);
    let name = before.scenario.host.project.as_str();
    let restore = ["restore", name, "--timeout=5m"];
    before.scenario.run(&restore).code(0);
    before.assert_old();
}
