//! Pauses between polls that double up to a cap. Pure: the caller sleeps.
#![deny(clippy::disallowed_methods)]

use std::time::Duration;

/// An endless iterator of pauses: the first, then twice as long each time, never above the cap.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    cap: Duration,
}

impl Backoff {
    /// Starts with `first`; no pause is longer than `cap`.
    pub fn new(first: Duration, cap: Duration) -> Self {
        Self {
            next: first.min(cap),
            cap,
        }
    }

    /// The next pause. Unlike `next`, without an `Option`: there always is one.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.cap);
        pause
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.pause())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap() {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
        let pauses: Vec<_> = backoff.take(5).map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 500, 500]);
    }
}
