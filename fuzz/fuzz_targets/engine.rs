//! The engine's answers, through its API and as its command prints them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use stacklift::{
    engine::{MOST_CHANGES, fuzzing},
    observed::Container,
};

fuzz_target!(|body: &[u8]| {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    match fuzzing::listed(body) {
        Ok(containers) => {
            let Some(Value::Array(entries)) = &json else {
                // Numbers that fit no type of Rust are passed over where nobody asks for them.
                assert!(containers.is_empty() || json.is_none(), "from {json:?}");
                return;
            };
            same_ids(&containers, entries);
        }
        Err(error) => {
            assert!(!is_list_of_ids(json.as_ref()), "{error:#}");
            assert!(
                !format!("{error:#}").contains('\u{1b}'),
                "an escape gets through"
            );
        }
    }
    if let (Ok(containers), Some(Value::Array(entries))) = (fuzzing::inspected(body), &json) {
        same_ids(&containers, entries);
    }
    if let Ok(changes) = fuzzing::changes(body) {
        assert_eq!(changes.listed.len(), changes.total.min(MOST_CHANGES));
    }
    for error in fuzzing::others(body).into_iter().filter_map(Result::err) {
        assert!(
            !format!("{error:#}").contains('\u{1b}'),
            "an escape gets through"
        );
    }
});

/// Nothing is added, left out or put in another place.
fn same_ids(containers: &[Container], entries: &[Value]) {
    assert_eq!(containers.len(), entries.len());
    for (container, entry) in containers.iter().zip(entries) {
        assert_eq!(last_id(entry), container.id);
        assert!(
            !container.name().is_empty() || container.id.is_empty() || !container.names.is_empty()
        );
        assert!(container.names.iter().all(|name| !name.contains('/')));
    }
}

fn last_id(entry: &Value) -> &str {
    // Structs are read from arrays, too.
    let id = entry.get("Id").or_else(|| entry.get(0));
    id.and_then(Value::as_str).unwrap_or_default()
}

/// A list of which nothing but ids is said is understood.
fn is_list_of_ids(json: Option<&Value>) -> bool {
    let has_only_an_id = |entry: &Value| matches!(entry, Value::Object(object) if object.len() == 1 && object.get("Id").is_some_and(Value::is_string));
    matches!(json, Some(Value::Array(entries)) if entries.iter().all(has_only_an_id))
}
