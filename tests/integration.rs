//! The real binary against the rehearsal's manager and engine; one file a feature.

#[path = "integration/bench.rs"]
mod bench;
#[path = "integration/rules.rs"]
mod rules;
