//! Picks values out of JSON: `.adopt.services[].fate.kind`, or several of them with `, ` between them.

use serde_json::Value;

use crate::format::lines;

/// Each value that the query finds, on a line.
pub fn query(query: &str, json: &Value) -> String {
    let found = query.split(", ").flat_map(|path| picked(path, vec![json]));
    lines(found)
}

fn picked<'v>(path: &str, values: Vec<&'v Value>) -> Vec<&'v Value> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() {
        return values;
    }
    if let Some(rest) = path.strip_prefix("[]") {
        let each = |value: &'v Value| match value {
            Value::Object(fields) => fields.values().collect(),
            list => list.as_array().into_iter().flatten().collect::<Vec<_>>(),
        };
        return picked(rest, values.into_iter().flat_map(each).collect());
    }
    if let Some((index, rest)) = path.strip_prefix('[').and_then(|path| path.split_once(']')) {
        let index: usize = index.parse().expect("an index");
        return picked(rest, values.iter().map(|value| &value[index]).collect());
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (key, rest) = path.split_at(end);
    picked(rest, values.iter().map(|value| &value[key]).collect())
}
