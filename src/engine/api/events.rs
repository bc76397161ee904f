//! What happened to containers, as the engine remembers it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use serde_json::{Deserializer, Value, json};

use super::{Api, percent_encoded};

/// The start of a container, or its end: a signal to stop, from when on it may not answer, or its exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEvent {
    /// The full ID of the container.
    pub id: String,
    /// Whether it started; otherwise it ends.
    pub started: bool,
    /// Whether it exited, by itself or after a signal that was an event of its own.
    pub exited: bool,
    /// When, by the clock of the engine, since the Unix epoch.
    pub at: Duration,
}

impl Api {
    /// The starts and ends of the containers of `project` since `since`, oldest first.
    pub(in crate::engine) fn events(
        &self,
        project: &str,
        since: SystemTime,
    ) -> Result<Vec<ContainerEvent>> {
        let filters = json!({
            "type": ["container"],
            "event": ["start", "kill", "die"],
            "label": [format!("{}={project}", self.label)],
        });
        let path = format!(
            "/events?since={}&until={}&filters={}",
            timestamp(since),
            timestamp(SystemTime::now()),
            percent_encoded(&filters.to_string())
        );
        let response = self.fetch(&path)?;
        parse(&response.body).context("cannot parse the response")
    }
}

/// The response is a sequence of objects, not an array.
fn parse(body: &[u8]) -> serde_json::Result<Vec<ContainerEvent>> {
    let objects = Deserializer::from_slice(body).into_iter::<Value>();
    let events = objects.filter_map(|object| object.map(|object| event(&object)).transpose());
    events.collect()
}

/// The start or the end that an object of the response reports.
fn event(object: &Value) -> Option<ContainerEvent> {
    let (started, exited) = match object["Action"].as_str()? {
        "start" => (true, false),
        "kill" => (false, false),
        "die" => (false, true),
        _ => return None,
    };
    Some(ContainerEvent {
        started,
        exited,
        id: object["Actor"]["ID"].as_str()?.to_owned(),
        at: Duration::from_nanos(object["timeNano"].as_u64()?),
    })
}

/// Seconds since the Unix epoch, as the engine reads them: `1700000000.000000001`.
pub(in crate::engine) fn timestamp(time: SystemTime) -> String {
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
        let body = event("kill", 4) + &event("die", 5) + &event("pause", 6) + &event("start", 7);
        let events = parse(body.as_bytes()).expect("events");
        let seen = events
            .iter()
            .map(|event| (event.started, event.at.as_nanos()));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [(false, 4), (false, 5), (true, 7)]
        );
        assert!(parse(b"").expect("none").is_empty());
        assert!(parse(b"<html>").is_err());
    }

    #[test]
    fn a_time_has_nine_digits_after_the_point() {
        assert_eq!(timestamp(UNIX_EPOCH + Duration::new(3, 7)), "3.000000007");
    }
}
