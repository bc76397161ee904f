//! Hides the values of `.env` in text that Portainer or Compose returns (C55).
#![deny(clippy::disallowed_methods)]

use serde_json::Value;

/// Replaces a hidden value.
const MASK: &str = "***";
/// Shorter values stay visible: hiding them would hide ordinary words.
const SHORTEST: usize = 8;

/// The values to hide. Its `Debug` output shows none of them.
#[derive(Clone, Default)]
pub struct Mask {
    /// Longest first: a value inside a longer one must not leave the rest of the longer one visible.
    values: Vec<String>,
}

impl Mask {
    /// Hides each of `values` that has at least eight characters, with or without its quotes.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hidden: Vec<String> = values
            .into_iter()
            .flat_map(|value| {
                let bare = value.trim();
                [value, bare, bare.trim_matches(['"', '\''])]
            })
            .filter(|value| value.chars().count() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        hidden.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        hidden.dedup();
        Self { values: hidden }
    }

    /// `text` with every value hidden.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), MASK);
            }
        }
        text
    }

    /// A response body for display, with every value hidden: formatted if it is JSON, otherwise unchanged.
    pub fn hide_body(&self, body: &[u8]) -> String {
        match serde_json::from_slice::<Value>(body) {
            Ok(mut json) => {
                self.hide_json(&mut json);
                serde_json::to_string_pretty(&json).unwrap_or_default()
            }
            Err(_) => self.hide(&String::from_utf8_lossy(body)),
        }
    }

    // serde_json limits the nesting depth, and with it this recursion.
    fn hide_json(&self, json: &mut Value) {
        match json {
            Value::String(text) => *text = self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_json(item)),
            Value::Object(fields) => {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(key, mut value)| {
                        self.hide_json(&mut value);
                        (self.hide(&key), value)
                    })
                    .collect();
            }
            Value::Number(number) => {
                if self.values.contains(&number.to_string()) {
                    *json = Value::String(MASK.to_owned());
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask({} values)", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_values_of_eight_characters_or_more() {
        let mask = Mask::new([
            "\"quoted-secret\"",
            "short",
            "12345678",
            "quoted-secret-longer",
        ]);
        assert_eq!(
            mask.hide("short quoted-secret quoted-secret-longer"),
            "short *** ***"
        );
        assert_eq!(
            mask.hide_body(br#"{"message":"bad quoted-secret","n":12345678}"#),
            "{\n  \"message\": \"bad ***\",\n  \"n\": \"***\"\n}"
        );
        assert_eq!(mask.hide_body(b"not json 12345678"), "not json ***");
        assert_eq!(format!("{mask:?}"), "Mask(4 values)");
    }
}
