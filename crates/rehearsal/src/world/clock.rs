//! The clock.

use std::time::Duration;

use super::state::World;

impl World {
    /// Shifts every time stamp so that the current time is `now`: ages stay the same.
    pub(crate) fn rebase(&mut self, now: i64) {
        let by = (now - self.now) / 1000;
        self.now = now;
        let shift = |time: &mut i64| {
            if *time != 0 {
                *time += by;
            }
        };
        for container in self.containers.values_mut() {
            shift(&mut container.created);
            shift(&mut container.started);
            shift(&mut container.finished);
            if let Some(at) = container.healthy_at.as_mut().filter(|at| **at != 0) {
                *at += by * 1000;
            }
        }
        for record in self.records.values_mut() {
            shift(&mut record.created);
            shift(&mut record.updated);
            record
                .deployments
                .iter_mut()
                .for_each(|note| shift(&mut note.time));
            record.shift_due(by * 1000);
        }
        for event in &mut self.events {
            event.at += by * 1000;
        }
        for request in &mut self.in_flight {
            request.until = request.until.saturating_add(by * 1000);
        }
        self.images
            .values_mut()
            .for_each(|image| shift(&mut image.created));
        self.volumes
            .iter_mut()
            .for_each(|volume| shift(&mut volume.created));
        self.networks
            .iter_mut()
            .for_each(|network| shift(&mut network.created));
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.advance(self.now.saturating_add(millis));
    }

    /// Sets the clock, which never goes backward, and finishes the requests and deployments that are due.
    pub(crate) fn advance(&mut self, now: i64) {
        self.advance_requests(now);
        self.now = self.now.max(now);
        self.finish_due_deployments();
    }
}
