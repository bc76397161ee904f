//! The JSON schema of what the program prints.

use std::fs;

use serde_json::{Value, json};

use crate::bench::Run;

pub const SCHEMA: &str = "docs/schemas/v1.json";

pub fn stored() -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    fs::read_to_string(format!("{root}/{SCHEMA}")).expect("a schema")
}

/// The schema of everything, and of an output, such as `plan`.
pub fn schema(output: &str) -> (Value, Value) {
    let all: Value = serde_json::from_str(&stored()).expect("JSON");
    let own = all["properties"][output].clone();
    (all, own)
}

impl Run {
    /// What was printed as JSON, which must conform to the schema of this output, such as `plan`.
    #[track_caller]
    pub fn report(&self, output: &str) -> Value {
        let report = self.json();
        conforms(output, &report);
        report
    }
}

/// Checks a value against the schema of an output, with the keywords that a derived one uses. Others fail the test.
#[track_caller]
pub fn conforms(output: &str, value: &Value) {
    let (all, schema) = schema(output);
    if let Err(problem) = check(&all, &schema, value) {
        panic!("{problem}: {value:#}");
    }
}

pub fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    for (keyword, rule) in schema.as_object().ok_or("a schema that is no object")? {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => {}
            "$ref" => {
                let path = rule.as_str().unwrap_or_default().trim_start_matches('#');
                let target = root.pointer(path).ok_or(format!("no {path}"))?;
                check(root, target, value)?;
            }
            "type" => {
                let is = |name: &Value| match name.as_str() {
                    Some("object") => value.is_object(),
                    Some("array") => value.is_array(),
                    Some("string") => value.is_string(),
                    Some("integer") => value.is_i64() || value.is_u64(),
                    Some("number") => value.is_number(),
                    Some("null") => value.is_null(),
                    Some("boolean") => value.is_boolean(),
                    _ => false,
                };
                if !is(rule) && !list(rule).iter().any(is) {
                    return Err(format!("not {rule}"));
                }
            }
            // Every unknown property is refused.
            "additionalProperties" if *rule == json!(false) => {}
            "minimum" if value.is_null() => {}
            "minimum" if value.as_f64() >= rule.as_f64() => {}
            "const" if value == rule => {}
            "enum" if list(rule).contains(value) => {}
            "anyOf" | "oneOf" => {
                let fits = |one: &Value| check(root, one, value).is_ok();
                if !list(rule).iter().any(fits) {
                    return Err(format!("none of {rule}"));
                }
            }
            "required" => {
                let is_there =
                    |key: &Value| key.as_str().is_some_and(|key| value.get(key).is_some());
                if let Some(key) = list(rule).iter().find(|key| !is_there(key)) {
                    return Err(format!("no {key}"));
                }
            }
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let schema = rule.get(key).ok_or(format!("unknown {key}"))?;
                    check(root, schema, value).map_err(|error| format!("{key}: {error}"))?;
                }
            }
            "items" => {
                for value in value.as_array().into_iter().flatten() {
                    check(root, rule, value)?;
                }
            }
            other => return Err(format!("{other} does not hold")),
        }
    }
    Ok(())
}
