//! Faults: what a run leaves and says, whatever goes wrong with whatever call; a file a kind of disturbance.

mod answers;
#[path = "../integration/bench.rs"]
#[allow(
    dead_code,
    reason = "the integration tests need more of the bench than these"
)]
mod bench;
mod ends;
mod faults;
mod judge;
mod late;
mod stage;
