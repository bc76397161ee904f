//! Faults: what a run leaves and says, whatever goes wrong with whatever call; a file a kind of disturbance.

#[path = "integration/bench.rs"]
#[allow(
    dead_code,
    reason = "the integration tests need more of the bench than these"
)]
mod bench;
#[path = "matrix/ends.rs"]
mod ends;
#[path = "matrix/faults.rs"]
mod faults;
#[path = "matrix/judge.rs"]
mod judge;
#[path = "matrix/late.rs"]
mod late;
#[path = "matrix/stage.rs"]
mod stage;
