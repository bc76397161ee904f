//! Writes the journal of unanswered requests.

use std::io::ErrorKind;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Request, Store, Unanswered,
    folder::{self, id_of},
    requests::{self, REQUEST},
};

/// A request that is not sent yet. No list shows it.
const PREPARED: &str = ".prepared";

impl Store {
    /// Writes a request next to the journal, so that [`Self::remember`] needs less time. Returns whether that succeeded.
    pub fn prepare(&self, request: &Request) -> bool {
        let json = serde_json::to_vec_pretty(request);
        json.is_ok_and(|json| folder::replace(self.own(), PREPARED, &json).is_ok())
    }

    /// Writes a request to the journal, synced to disk, or renames the prepared one. If the disk is full, uses the reserve.
    pub fn remember(
        &self,
        request: Request,
        is_prepared: bool,
        now: DateTime<Utc>,
    ) -> Result<Unanswered> {
        let dir = self.own().to_owned();
        let name = format!("{}{REQUEST}", id_of(now));
        if is_prepared && !dir.join(&name).exists() && folder::rename(&dir, PREPARED, &name).is_ok()
        {
            return Ok(Unanswered { request, dir, name });
        }
        let json = serde_json::to_vec_pretty(&request).context("failed to serialize a request")?;
        let mut now = now;
        loop {
            let name = format!("{}{REQUEST}", id_of(now));
            match folder::write_new(&dir, &name, &json) {
                Ok(()) => return Ok(Unanswered { request, dir, name }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    now += TimeDelta::milliseconds(1);
                }
                Err(_) if self.use_reserve() => {}
                Err(error) => return Err(self.failed_to_write("a request", error).into()),
            }
        }
    }

    /// The requests that are not known to have finished, oldest first.
    pub fn unanswered(&self) -> Result<Vec<Unanswered>> {
        requests::unanswered(self.dirs())
    }
}
