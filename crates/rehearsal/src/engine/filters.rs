//! The query parameter `filters` of lists: `{"label":{"a=b":true}}`, or the older `{"label":["a=b"]}`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::world::Container;

/// The values of each filter.
#[derive(Default)]
pub(super) struct Filters(BTreeMap<String, Vec<String>>);

impl Filters {
    /// Parses the decoded query parameter.
    pub fn read(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(Self::default());
        };
        let invalid = || "invalid filters: a JSON object is needed".to_owned();
        let value = serde_json::from_str::<Value>(text).map_err(|error| error.to_string())?;
        let object = value.as_object().ok_or_else(invalid)?;
        let mut filters = BTreeMap::new();
        for (name, values) in object {
            let values = match values {
                Value::Array(items) => items
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
                Value::Object(flags) => flags.keys().cloned().collect(),
                _ => return Err(invalid()),
            };
            filters.insert(name.clone(), values);
        }
        Ok(Self(filters))
    }

    /// Whether a filter exists.
    pub fn names(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether one of the filter's values matches, or the filter does not exist.
    pub fn any(&self, name: &str, fits: impl Fn(&str) -> bool) -> bool {
        let values = self.0.get(name).filter(|values| !values.is_empty());
        values.is_none_or(|values| values.iter().any(|value| fits(value)))
    }

    /// Whether every `label` filter matches.
    pub fn labels(&self, labels: &BTreeMap<String, String>) -> bool {
        let wanted = self.0.get("label").into_iter().flatten();
        wanted
            .map(|label| {
                label
                    .split_once('=')
                    .map_or((label.as_str(), None), |(k, v)| (k, Some(v)))
            })
            .all(|(name, value)| {
                let found = labels.get(name);
                found.is_some_and(|found| value.is_none_or(|value| found == value))
            })
    }

    /// Whether a container matches all filters.
    pub fn matches(&self, container: &Container) -> bool {
        self.labels(&container.labels)
            && self.any("id", |id| container.id.starts_with(id))
            && self.any("name", |name| {
                container.name.contains(name.trim_matches(['/', '^', '$']))
            })
            && self.any("status", |state| container.state == state)
            && self.any("exited", |code| container.exit_code.to_string() == code)
            && self.any("ancestor", |image| container.image == image)
            && self.any("network", |network| {
                container.networks.contains_key(network)
            })
            && self.any("volume", |volume| {
                let mut mounts = container.mounts.iter();
                mounts.any(|mount| mount.name.as_deref() == Some(volume) || mount.target == volume)
            })
    }
}
