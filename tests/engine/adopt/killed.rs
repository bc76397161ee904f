//! SIGKILL of a run, then a second run or a restore: the stack is whole, in the new or in the old state.

use super::{Case, by_each_portainer, failing::Before};

by_each_portainer! {
    a_second_run_finishes
    a_restore_rolls_back
}

/// A stack whose adoption was killed while Portainer deployed.
fn killed(case: Case) -> Before {
    let before = Before::new(case);
    before.at_the_last_moment("sleep 2");
    before.scenario.kill_in_flight("adopt $PROJECT");
    before
}

fn a_second_run_finishes(case: Case) {
    let before = killed(case);
    before.adopt("--timeout=5m").code(0);
    before.assert_new();
}

fn a_restore_rolls_back(case: Case) {
    let before = killed(case);
    let restore = before.scenario.run("restore $PROJECT --timeout=5m");
    restore.code(0);
    before.assert_old();
}
