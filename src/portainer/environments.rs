//! The environments of Portainer (M22).

use std::fmt;

use anyhow::Result;
use serde_json::Value;

use super::{PortainerReader, failed_to, wire};
use crate::text::printable;

/// The types of environments without a Docker engine: Azure, and Kubernetes in three forms (M22).
const WITHOUT_ENGINE: [i64; 4] = [3, 5, 6, 7];

/// An environment. Prints as `3 (nas)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedEnvironment {
    /// The ID, for `--endpoint`.
    pub id: i64,
    /// The name that users see in Portainer.
    pub name: String,
}

impl fmt::Display for NamedEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, printable(&self.name))
    }
}

impl PortainerReader {
    /// The environments with a container engine that the API key may see, in Portainer's order. An environment of an
    /// unknown type may have one.
    pub fn environments(&self) -> Result<Vec<NamedEnvironment>> {
        let action = "list Portainer's environments";
        // The snapshots are most of the response. A version that does not know the parameter ignores it.
        let list = self.json("/api/endpoints?excludeSnapshots=true", action)?;
        environments(&list).map_err(failed_to(action))
    }
}

fn environments(list: &Value) -> Result<Vec<NamedEnvironment>> {
    let list = match list {
        Value::Null => &[][..],
        Value::Array(list) => list,
        _ => return Err(wire::unexpected("expected a list of environments").into()),
    };
    let has_engine = |one: &&Value| {
        let kind = one.get("Type").and_then(Value::as_i64);
        !kind.is_some_and(|kind| WITHOUT_ENGINE.contains(&kind))
    };
    let listed = list.iter().filter(has_engine).map(|environment| {
        Ok(NamedEnvironment {
            id: wire::field(environment, "Id", "an integer")?,
            name: wire::field(environment, "Name", "text")?,
        })
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_field_of_an_unexpected_type_is_named() {
        for (list, reason) in [
            (json!({}), "expected a list of environments"),
            (
                json!([{"Id": "secret", "Name": "nas"}]),
                "its Id is not an integer",
            ),
            (json!([{"Id": 1, "Name": null}]), "its Name is not text"),
            (json!(["secret"]), "expected an object"),
        ] {
            let error = environments(&list).unwrap_err().to_string();
            assert_eq!(error, format!("cannot parse the response: {reason}"));
        }
        assert_eq!(environments(&Value::Null).unwrap(), []);
    }
}
