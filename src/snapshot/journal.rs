//! Writes the journal of unanswered requests, and what was last sent.

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;

use super::{
    LastSent, SentRequest, Store, Unanswered,
    folder::{self, id_of},
    requests::{self, REQUEST},
};

/// A request that is not sent yet. No list shows it.
const PREPARED: &str = ".prepared";
/// The file that says what was last sent (B22).
const LAST_SENT: &str = "last-sent";
/// The file that says what the last adoption sent that failed, and how in a sentence.
const FAILURE: &str = "failure";

impl Store {
    /// Writes a request next to the journal, so that [`Self::remember`] needs less time. Returns whether that succeeded.
    pub fn prepare(&self, request: &SentRequest) -> bool {
        let json = serde_json::to_vec_pretty(request);
        json.is_ok_and(|json| folder::replace(self.own(), PREPARED, &json).is_ok())
    }

    /// Writes a request to the journal, synced to disk, or renames the prepared one. If the disk is full, uses the reserve.
    pub fn remember(
        &self,
        request: SentRequest,
        is_prepared: bool,
        now: DateTime<Utc>,
    ) -> Result<Unanswered> {
        let dir = self.own().to_owned();
        let name = format!("{}{REQUEST}", id_of(now));
        if is_prepared && !dir.join(&name).exists() && folder::rename(&dir, PREPARED, &name).is_ok()
        {
            let request = request.sent_at(&name);
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
        let request = request.sent_at(&name);
        Ok(Unanswered { request, dir, name })
    }

    /// The requests that are not known to have finished, oldest first.
    pub fn unanswered(&self) -> Result<Vec<Unanswered>> {
        requests::unanswered(&self.dirs)
    }

    /// What was last sent, or may have been: a request without a known end may still have its effect. Empty if nothing is
    /// known of it.
    pub fn last_sent(&self) -> LastSent {
        let unanswered = self.unanswered().unwrap_or_default().into_iter();
        let sent = unanswered.filter_map(|one| one.request.last_sent);
        sent.fold(self.read::<LastSent>(LAST_SENT), |all, one| all.and(&one))
    }

    /// Writes what was last sent, synced to disk.
    pub fn set_last_sent(&self, sent: &LastSent) -> Result<()> {
        if *sent == self.read::<LastSent>(LAST_SENT) {
            return Ok(());
        }
        let json = serde_json::to_vec(sent)?;
        let written = folder::replace(self.own(), LAST_SENT, &json);
        Ok(written.map_err(|error| self.failed_to_write("what was sent", error))?)
    }

    /// Removes a request from the journal: it has finished. What it sent may be what was last sent.
    pub fn forget(&self, one: &Unanswered) -> Result<()> {
        let kept = match &one.request.last_sent {
            Some(sent) => self.set_last_sent(&self.read::<LastSent>(LAST_SENT).and(sent)),
            None => Ok(()),
        };
        one.forget().and(kept)
    }

    /// Notes in a sentence how the adoption of this failed. It is only shown: a failure to write it is not an error.
    pub fn set_failure(&self, sent: &LastSent, told: &str) {
        let json = serde_json::to_vec(&(sent, told)).unwrap_or_default();
        let _ = folder::replace(self.own(), FAILURE, &json);
    }

    /// What the last adoption sent, and how it failed, if none has succeeded since. Otherwise empty.
    pub fn failure(&self) -> (LastSent, String) {
        self.read(FAILURE)
    }

    /// Forgets it: an adoption has succeeded.
    pub fn forget_failure(&self) {
        let _ = folder::remove(self.own(), FAILURE);
    }

    /// A file that cannot be read tells nothing.
    fn read<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        let mut paths = self.dirs.iter().map(|dir| dir.join(name));
        let json = paths.find_map(|path| folder::read(&path).ok());
        serde_json::from_str(&json.unwrap_or_default()).unwrap_or_default()
    }
}
