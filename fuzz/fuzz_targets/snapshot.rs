//! The snapshot file: what is understood of one is written as it was read, and a restore can be planned
//! from it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use stacklift::{
    restore::{
        container::NewIds,
        plan::{self, Plan},
    },
    snapshot::Snapshot,
};

fuzz_target!(|json: &[u8]| {
    let Ok(snapshot) = serde_json::from_slice::<Snapshot>(json) else {
        return;
    };
    let written = serde_json::to_vec(&snapshot).expect("JSON");
    let again: Snapshot = serde_json::from_slice(&written).expect("what was written is read");
    // Fractions may lose their last digit, and no engine writes any.
    assert!(again == snapshot || has_fraction(&written));
    let _ = (snapshot.unknowns(), format!("{snapshot:?}"));

    let saved = plan::saved(&snapshot);
    let ids: NewIds = saved
        .iter()
        .map(|container| (container.id().to_owned(), "0".repeat(64)))
        .collect();
    for container in &saved {
        assert!(
            container.differences(*container).is_empty(),
            "it differs from itself"
        );
        let recipe = container.recipe(container.image_name(), &ids);
        assert!(recipe.body.is_object());
        let _ = container.own_files(&["/a", "/a/b", "//", ""]);
        let _ = container.volumes();
    }
    let there: Vec<Value> = snapshot.containers.known().cloned().unwrap_or_default();
    for there in [&[][..], &there[..]] {
        let plan = Plan::new(&snapshot, there);
        let mut order = plan.order.clone();
        order.sort_unstable();
        assert!(
            order.into_iter().eq(0..saved.len()),
            "not every container once"
        );
        assert_eq!(plan.keep.len() + plan.create.len(), saved.len());
    }
});

fn has_fraction(json: &[u8]) -> bool {
    let mut ahead: Vec<Value> = serde_json::from_slice(json).into_iter().collect();
    while let Some(value) = ahead.pop() {
        match value {
            Value::Number(number) if number.is_f64() => return true,
            Value::Array(items) => ahead.extend(items),
            Value::Object(entries) => ahead.extend(entries.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    false
}
