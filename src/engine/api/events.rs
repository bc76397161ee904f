//! What happened to containers, as the engine remembers it.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use ureq::http::Method;

use super::{Api, percent_encoded};
use crate::engine::wire::nullable;

/// The start or the end of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEvent {
    /// The full ID of the container.
    pub id: String,
    /// Whether it started; otherwise it ended.
    pub started: bool,
    /// When, by the clock of the engine, since the Unix epoch.
    pub at: Duration,
}

/// One object of the response to `GET /events`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Wire {
    action: String,
    actor: Actor,
    #[serde(rename = "timeNano")]
    nanoseconds: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Actor {
    #[serde(rename = "ID")]
    id: String,
    #[serde(default, deserialize_with = "nullable")]
    attributes: BTreeMap<String, String>,
}

impl Api {
    /// The starts and ends of the containers of `project` since `since`, oldest first.
    pub(in crate::engine) fn events(
        &self,
        project: &str,
        since: SystemTime,
    ) -> Result<Vec<ContainerEvent>> {
        let filters = BTreeMap::from([
            ("type", vec!["container".to_owned()]),
            ("event", vec!["start".to_owned(), "die".to_owned()]),
            ("label", vec![format!("{}={project}", self.label)]),
        ]);
        let filters = percent_encoded(&serde_json::to_string(&filters)?);
        let (since, until) = (timestamp(since), timestamp(SystemTime::now()));
        let path = format!(
            "/v{}/events?since={since}&until={until}&filters={filters}",
            self.version()?
        );
        let response = self.send(&Method::GET, &path, &[], self.read_timeout)?;
        if response.status != 200 {
            return Err(self.refused(&response));
        }
        let mut events = parse(&response.body).context("cannot parse the response")?;
        events.retain(|event| {
            event
                .actor
                .attributes
                .get(&self.label)
                .is_some_and(|of| of == project)
        });
        let mut events: Vec<ContainerEvent> = events
            .into_iter()
            .filter(|event| matches!(event.action.as_str(), "start" | "die"))
            .map(|event| ContainerEvent {
                id: event.actor.id,
                started: event.action == "start",
                at: Duration::from_nanos(event.nanoseconds),
            })
            .collect();
        events.sort_by_key(|event| event.at);
        Ok(events)
    }
}

/// The response is a sequence of objects, not an array.
fn parse(body: &[u8]) -> serde_json::Result<Vec<Wire>> {
    serde_json::Deserializer::from_slice(body)
        .into_iter()
        .collect()
}

/// Seconds since the Unix epoch, as the engine reads them: `1700000000.000000001`.
fn timestamp(time: SystemTime) -> String {
    let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_a_sequence_of_objects() {
        let event = |action: &str, nanoseconds: u64| {
            format!(
                "{{\"Type\":\"container\",\"Action\":\"{action}\",\"Actor\":{{\"ID\":\"a1\",\"Attributes\":{{\"name\":\"x\"}}}},\"time\":1,\"timeNano\":{nanoseconds}}}\n"
            )
        };
        let body = event("die", 5) + &event("start", 7);
        let events = parse(body.as_bytes()).expect("events");
        assert_eq!(events.len(), 2);
        assert_eq!(
            (events[0].action.as_str(), events[1].nanoseconds),
            ("die", 7)
        );
        assert!(parse(b"").expect("none").is_empty());
        assert!(parse(b"<html>").is_err());
    }

    #[test]
    fn a_time_has_nine_digits_after_the_point() {
        assert_eq!(timestamp(UNIX_EPOCH + Duration::new(3, 7)), "3.000000007");
    }
}
