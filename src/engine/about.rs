//! What the engine says about itself, and how it is reached.

use std::time::SystemTime;

use chrono::DateTime;
use serde::Deserialize;

use super::{
    EngineReader,
    choice::{Adapter, Route},
};
use crate::text::without_credentials;

/// What the engine says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The ID that Portainer reports for its environment (M17).
    pub id: String,
    /// The version of the engine, such as `26.1.5`.
    pub version: Option<String>,
    /// The API version that requests use; `None` if the container command chooses it.
    pub api: Option<String>,
    /// The clock of the engine's host.
    pub time: Option<SystemTime>,
}

/// The fields of `GET /info`, and of what `info` prints as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Info {
    #[serde(rename = "ID")]
    id: Option<String>,
    server_version: Option<String>,
    system_time: Option<String>,
    /// Why the command could not read the rest.
    pub(super) server_errors: Option<Vec<String>>,
}

impl Info {
    /// `None` without an ID.
    pub(super) fn about(&self, api: Option<String>) -> Option<About> {
        let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let time = DateTime::parse_from_rfc3339(self.system_time.as_deref().unwrap_or_default());
        Some(About {
            id: set(&self.id)?,
            version: set(&self.server_version),
            api,
            time: time.ok().map(SystemTime::from),
        })
    }
}

impl EngineReader {
    /// The adapter that was chosen, and why.
    pub fn adapter(&self) -> String {
        let Adapter {
            tool,
            route,
            reason,
        } = &self.adapter;
        let reason = without_credentials(reason);
        match route {
            Route::Api(socket) => format!("the Engine API on {} ({reason})", socket.display()),
            Route::Command => format!("the command `{tool}` ({reason})"),
            Route::Unavailable => format!("unavailable ({reason})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_may_be_missing() {
        let of = |json: &str| {
            let info: Info = serde_json::from_str(json).expect("JSON");
            info.about(None)
        };
        let full = of(
            r#"{"ID":"A","ServerVersion":"26.1","SystemTime":"2026-01-02T03:04:05.678901234+01:00"}"#,
        )
        .expect("an ID");
        assert_eq!(full.version.as_deref(), Some("26.1"));
        let since = full
            .time
            .expect("a time")
            .duration_since(SystemTime::UNIX_EPOCH);
        assert_eq!(since.expect("after 1970").as_secs(), 1_767_319_445);
        assert_eq!(of(r#"{"ID":null}"#), None);
        let empty = of(r#"{"ID":"A","SystemTime":"now"}"#).expect("an ID");
        assert_eq!((empty.version, empty.time), (None, None));
    }
}
