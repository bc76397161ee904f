//! B24: an API key that does not see or may not change every Portainer stack.

use std::time::Duration;

use testbed::{Call, FaultKind};

use crate::bench::{Bench, PLAIN, Run};
use crate::requests::printed;

/// The API key of a standard user.
const USER: &str = "ptr_user-key-99d2";

/// A stack that was started by hand, and a standard user.
fn started() -> Bench {
    let bench = Bench::new();
    bench.world(|world| world.add_user(USER, "somebody"));
    bench.started("web", PLAIN, None);
    bench
}

/// Runs the binary with the key of the user.
fn as_user(bench: &Bench, args: &str) -> Run {
    bench.run_with(args, "STACKMGR_API_KEY", USER).hides(USER)
}

/// Runs the roll-back command of a failed run, as it was printed.
fn roll_back(bench: &Bench, failed: &Run) {
    let command = printed(failed);
    let (_, args) = command.split_once("stacklift ").expect("a command");
    as_user(bench, &format!("{args} --yes")).code(0);
    assert_eq!(bench.containers("web").len(), 1);
}

/// A create that fails and removes every container (M06), once.
fn fails(bench: &Bench) {
    let late = FaultKind::LateFailure(Duration::ZERO);
    bench.once(Call::Create, late);
}

#[test]
fn b14_the_command_of_a_key_that_sees_no_stack_restores_the_containers_alone() {
    for args in ["migrate web --force", "adopt web --yes --on-failure leave"] {
        let bench = started();
        fails(&bench);
        let failed = as_user(&bench, args).fails("--engine-only");
        assert!(bench.containers("web").is_empty());
        roll_back(&bench, &failed);
    }
    // The same with a stack of the user, which is gone.
    let bench = started();
    as_user(&bench, "migrate web --force").code(0);
    fails(&bench);
    let failed = as_user(&bench, "migrate web").code(1);
    roll_back(&bench, &failed.says("--engine-only"));
    // An administrator sees that there is none.
    fails(&bench);
    let run = bench.fails("migrate web", "to roll back");
    run.hides("--engine-only");
}
