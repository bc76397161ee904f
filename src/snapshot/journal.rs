//! Writes the journal of unanswered requests.

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};

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
        let write = || folder::write_next(&dir, now, REQUEST, &json);
        let written = match write() {
            Err(_) if self.use_reserve() => write(),
            written => written,
        };
        let id = written.map_err(|error| self.failed_to_write("a request", error))?;
        let name = format!("{id}{REQUEST}");
        Ok(Unanswered { request, dir, name })
    }

    /// The requests that are not known to have finished, oldest first.
    pub fn unanswered(&self) -> Result<Vec<Unanswered>> {
        requests::unanswered(self.dirs())
    }
}
