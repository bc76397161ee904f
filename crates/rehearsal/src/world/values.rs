//! A Compose file as plain values: aliases and merges are resolved, variables are interpolated.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use composefile::{
    document::{Document, Node, ScalarType},
    interpolate::{Lookup, interpolate},
};

/// Parses `text`. A variable that is missing in `variables` is unset; without any, they stay as they are written. Also returns what
/// the library says about a date without quotes (N31).
pub(super) fn read(
    text: &str,
    variables: Option<&BTreeMap<String, String>>,
) -> Result<(Value, Option<String>), String> {
    let document = Document::parse(text)
        .map_err(|error| format!("yaml: line {}: {}", error.position.line, error.message))?;
    let lookup = |name: &str| variables?.get(name).cloned();
    let lookup: Option<Lookup<'_>> = variables.is_some().then_some(&lookup);
    let mut nodes = document.nodes();
    let date = nodes.find(|node| node.scalar_type() == Some(ScalarType::Timestamp));
    let date = date.map(|node| format!("{} invalid jsonType time.Time", node.path()));
    let root = document.root();
    let value = root.map_or(Ok(Value::Null), |root| value_of(root, "", lookup));
    Ok((value?, date))
}

fn value_of(node: Node<'_>, path: &str, lookup: Option<Lookup<'_>>) -> Result<Value, String> {
    if node.is_mapping() {
        let mut map = Map::new();
        for entry in node.entries() {
            let name = entry
                .name()
                .ok_or_else(|| format!("non-string key in {path}"))?;
            let below = format!("{path}.{name}");
            let value = value_of(entry.value, below.trim_start_matches('.'), lookup)?;
            map.insert(name.to_owned(), value);
        }
        return Ok(Value::Object(map));
    }
    if node.is_sequence() {
        let items = node.items().map(|item| value_of(item, path, lookup));
        return items.collect::<Result<_, _>>().map(Value::Array);
    }
    let Some((text, _)) = node.scalar() else {
        return Ok(Value::Null);
    };
    Ok(match node.scalar_type() {
        None | Some(ScalarType::Null) => Value::Null,
        Some(ScalarType::Bool) => Value::Bool(text.eq_ignore_ascii_case("true")),
        Some(ScalarType::Number) => number(text),
        // As Go prints a day.
        Some(ScalarType::Timestamp) => format!("{text} 00:00:00 +0000 UTC").into(),
        Some(ScalarType::Merge | ScalarType::Text) => {
            let failed = |error| format!("error while interpolating {path}: {error}");
            match lookup {
                Some(lookup) => interpolate(text, lookup).map_err(failed)?.into(),
                None => text.into(),
            }
        }
    })
}

/// A number as Go reads it: with a leading zero, it is octal.
fn number(text: &str) -> Value {
    let bare = text.replace('_', "");
    let bare = bare.strip_prefix('+').unwrap_or(&bare);
    let (sign, digits) = match bare.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, bare),
    };
    let radixes = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8), ("", 10)];
    let whole = radixes.into_iter().find_map(|(prefix, radix)| {
        let digits = digits.strip_prefix(prefix)?;
        i64::from_str_radix(digits, radix).ok()
    });
    match (whole, bare.parse::<f64>()) {
        (Some(whole), _) => Value::from(sign * whole),
        (None, Ok(number)) if number.is_finite() => fraction(number),
        _ => text.into(),
    }
}

/// A number that may be whole: Go prints no `.0`.
pub(super) fn fraction(number: f64) -> Value {
    const LARGEST: f64 = 1e15;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    let whole = number as i64;
    if number.fract() == 0.0 && number.abs() < LARGEST {
        whole.into()
    } else {
        number.into()
    }
}

/// A scalar as text; `None` for null and collections.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(bool) => Some(bool.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The items of a list, or a single value as a list of one.
pub(super) fn many(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(items) => items,
        single => std::slice::from_ref(single),
    }
}

/// The entries of a mapping; none of another value.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The pairs of a mapping, or of a list of `NAME=value` and `NAME`. A `NAME` without a value has `None`.
pub(super) fn pairs(value: &Value) -> BTreeMap<String, Option<String>> {
    let mapped = entries(value).map(|(name, value)| (name.clone(), text(value)));
    let listed = many(value).iter().filter_map(text);
    let listed = listed.map(|item| match item.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (item, None),
    });
    mapped.chain(listed).collect()
}

/// The texts of a list, or of a single value.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    many(value).iter().filter_map(text).collect()
}

/// The labels of a mapping or a list.
pub(crate) fn labels(value: &Value) -> BTreeMap<String, String> {
    let all = pairs(value).into_iter();
    all.map(|(name, value)| (name, value.unwrap_or_default()))
        .collect()
}
