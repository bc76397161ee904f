//! Writes a configuration as a Compose file.

use serde_json::Value;

use crate::rewrite::faithful::word;

/// The text of a mapping.
pub fn written(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

/// Writes the entries or items of a collection that is not empty, each on its own line.
fn block(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                text.push_str(&indent);
                // Compose doubles each `$` that it prints, but does not replace variables in keys.
                text.push_str(&word(&name.replace("$$", "$")));
                text.push(':');
                below(value, depth + 1, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                text.push_str(&indent);
                text.push('-');
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        let mut inside = String::new();
                        block(item, depth + 1, &mut inside);
                        text.push(' ');
                        text.push_str(inside.trim_start());
                    }
                    _ => below(item, depth + 1, text),
                }
            }
        }
        _ => {}
    }
}

/// Writes what follows a `:` or a `-`.
fn below(value: &Value, depth: usize, text: &mut String) {
    let flat = match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Object(_) | Value::Array(_) => {
            text.push('\n');
            return block(value, depth, text);
        }
        Value::String(string) => word(string),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    text.push(' ');
    text.push_str(&flat);
    text.push('\n');
}
