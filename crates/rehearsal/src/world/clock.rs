//! The clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time of the real clock, in milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "a new world begins now, and the time of a rehearsal passes as everywhere"
)]
pub(crate) fn clock() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}
