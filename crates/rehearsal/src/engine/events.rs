//! `/events`

use serde_json::{Map, json};

use super::input::filters;
use crate::{
    http::{Incoming, Response},
    world::{EngineError, Event, World},
};

/// The events so far, between `since` and `until`. A real engine also sends those until `until` as they happen.
pub(super) fn list(
    world: &World,
    engine: &str,
    incoming: &Incoming,
) -> Result<Response, EngineError> {
    let filters = filters(incoming)?;
    let since = millis(incoming, "since")?.unwrap_or(world.now);
    let until = millis(incoming, "until")?.unwrap_or(i64::MAX);
    let events = world.events.iter().filter(|event| {
        let action = json!(event.action);
        event.engine == engine
            && (since..=until).contains(&event.at)
            && filters.any("type", |kind| kind == "container")
            && filters.any("event", |name| action == name)
            && filters.any("container", |id| {
                event.id.starts_with(id) || event.name == id
            })
            && filters.labels(&event.labels)
    });
    let body = events.map(|event| format!("{}\n", shown(event)));
    Ok(Response::new(
        200,
        "application/json",
        body.collect::<String>(),
    ))
}

fn shown(event: &Event) -> serde_json::Value {
    let labels = event.labels.iter();
    let mut attributes = labels
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect::<Map<_, _>>();
    attributes.insert("image".to_owned(), json!(event.image));
    attributes.insert("name".to_owned(), json!(event.name));
    json!({
        "status": event.action,
        "id": event.id,
        "from": event.image,
        "Type": "container",
        "Action": event.action,
        "Actor": { "ID": event.id, "Attributes": attributes },
        "scope": "local",
        "time": event.at / 1000,
        "timeNano": event.at * 1_000_000,
    })
}

/// A time in seconds, with a fraction or without: `1795255427.123456789`. In milliseconds since 1970.
fn millis(incoming: &Incoming, name: &str) -> Result<Option<i64>, EngineError> {
    let Some(text) = incoming.query(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = format!("{fraction:0<3}");
    let parsed = seconds
        .parse::<i64>()
        .ok()
        .zip(fraction[..3].parse::<i64>().ok());
    let parsed = parsed.map(|(seconds, millis)| seconds * 1000 + millis);
    parsed
        .map(Some)
        .ok_or_else(|| EngineError::new(400, format!("failed to parse value as time: {text}")))
}
