//! What was last sent to Portainer (B22). Whatever else Portainer has was edited there.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    model::{Variable, values},
    text::sha256,
};

/// The digests of the text and of the variables that were last sent. There are several while it is unknown which of them
/// Portainer has. It may have the text of one and the variables of another (N15).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSent {
    texts: BTreeSet<String>,
    variables: BTreeSet<String>,
    /// The digest of each variable with its name. `None` if they are unknown, or differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    each: Option<BTreeMap<String, String>>,
    /// The directory with the files that it was made of. `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// The ID of the Portainer stack that it was deployed as. `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The commit of a Git stack that was deployed. The text is everything that was read from the repository for the containers:
    /// after a restore, from an earlier commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether a restore put back earlier containers, and Portainer still has this: for a Git stack, those of another commit than that
    /// one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_behind: bool,
    /// The config hashes of the containers that ran after it was deployed. `None` if they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hashes: Option<BTreeSet<String>>,
    /// The variables that only containers had, and that were written into the text: each service with the names, and the
    /// digests of what the files said instead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables_of_containers: BTreeMap<String, BTreeMap<String, String>>,
    /// The anonymous volumes that got a name in the text: each service with the paths and the names of the volumes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, BTreeMap<String, String>>,
    /// The services whose anonymous volumes were to stay without a name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub left_anonymous: BTreeSet<String>,
}

impl LastSent {
    pub fn of(text: &str, variables: &[Variable]) -> Self {
        Self {
            texts: BTreeSet::from([sha256(text)]),
            variables: BTreeSet::from([hash_of(variables)]),
            each: Some(each(variables)),
            ..Self::default()
        }
    }

    /// The same, made of the files in this directory.
    #[must_use]
    pub fn made_in(self, dir: &str) -> Self {
        Self {
            dir: Some(dir.to_owned()),
            ..self
        }
    }

    /// The anonymous volumes of a service that got a name in the text, by their paths.
    pub fn volumes(&self, service: &str) -> impl Iterator<Item = (&String, &String)> {
        self.volumes.get(service).into_iter().flatten()
    }

    /// If a variable was written into the text because only a container had it: the digest of what the files said instead.
    pub fn kept_instead_of(&self, service: &str, name: &str) -> Option<&str> {
        let variables = self.variables_of_containers.get(service)?;
        variables.get(name).map(String::as_str)
    }

    /// All volumes that got a name in the text: the service, the path and the name.
    pub fn all_volumes(&self) -> impl Iterator<Item = (&String, &String, &String)> {
        let services = self.volumes.iter();
        services
            .flat_map(|(service, all)| all.iter().map(move |(path, name)| (service, path, name)))
    }

    /// The same, deployed as containers with these config hashes, if they are known.
    #[must_use]
    pub fn deployed_as(self, hashes: Option<BTreeSet<String>>) -> Self {
        Self { hashes, ..self }
    }

    /// Whether this text and these variables were sent.
    pub fn has(&self, text: &str, variables: &[Variable]) -> bool {
        self.has_text(text) && self.has_variables(variables)
    }

    /// Whether this text was sent, with any variables.
    pub fn has_text(&self, text: &str) -> bool {
        self.texts.contains(&sha256(text))
    }

    /// Whether the variable `name` of these is as it was sent, or lacks as it did. `None` if that is unknown.
    pub fn has_variable(&self, name: &str, variables: &[Variable]) -> Option<bool> {
        let sent = self.each.as_ref()?;
        Some(sent.get(name) == each(variables).get(name))
    }

    /// Whether these variables were sent, with any text.
    pub fn has_variables(&self, variables: &[Variable]) -> bool {
        self.variables.contains(&hash_of(variables))
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The same without what Portainer had before, unless nothing else was sent.
    #[must_use]
    pub fn but_for(mut self, text: &str, variables: &[Variable]) -> Self {
        if self.texts.len() > 1 {
            self.texts.remove(&sha256(text));
        }
        if self.variables.len() > 1 {
            self.variables.remove(&hash_of(variables));
        }
        self
    }

    /// What was sent of either.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.texts.extend(other.texts.iter().cloned());
        self.variables.extend(other.variables.iter().cloned());
        self.each = self.each.filter(|each| other.each.as_ref() == Some(each));
        self.dir = other.dir.clone().or(self.dir);
        self.id.clone_from(&other.id);
        self.variables_of_containers
            .extend(other.variables_of_containers.clone());
        self.commit = other.commit.clone().or(self.commit);
        self.volumes.extend(other.volumes.clone());
        self.left_anonymous
            .extend(other.left_anonymous.iter().cloned());
        let hashes = self.hashes.zip(other.hashes.as_ref());
        self.hashes = hashes.map(|(own, other)| &own | other);
        self
    }
}

fn each(variables: &[Variable]) -> BTreeMap<String, String> {
    let all = values(variables).into_iter();
    all.map(|(name, value)| (name.to_owned(), sha256(&format!("{name}={value}"))))
        .collect()
}

/// The last value of each variable counts, and their order does not.
fn hash_of(variables: &[Variable]) -> String {
    sha256(&format!("{:?}", values(variables)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(values: &[(&str, &str)]) -> Vec<Variable> {
        let pairs = values.iter();
        pairs
            .map(|&(name, value)| Variable::new(name, value))
            .collect()
    }

    #[test]
    fn b22_a_text_and_variables_are_those_that_were_sent_or_not() {
        let own = variables(&[("A", "1"), ("B", "2")]);
        let sent = LastSent::of("x", &own);
        for (text, values, expected) in [
            ("x", &[("A", "1"), ("B", "2")][..], true),
            ("x", &[("B", "2"), ("A", "1")], true),
            ("x", &[("A", "0"), ("A", "1"), ("B", "2")], true),
            ("x\n", &[("A", "1"), ("B", "2")], false),
            ("x", &[("A", "1")], false),
            ("x", &[("A", "2"), ("B", "1")], false),
        ] {
            assert_eq!(sent.has(text, &variables(values)), expected, "{values:?}");
        }
        assert!(!LastSent::default().has("", &[]), "nothing is known");
        let other = sent.and(&LastSent::of("y", &[]));
        assert!(other.has("x", &[]) && other.has("y", &own));
        let hashes = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        let deployed = |all: &[&str]| LastSent::default().deployed_as(Some(hashes(all)));
        assert_eq!(other.hashes, None, "one is unknown");
        let both = deployed(&["h"]).and(&deployed(&["i"]));
        assert_eq!(both.hashes, Some(hashes(&["h", "i"])));
        let json = serde_json::to_string(&other).expect("JSON");
        assert!(!json.contains("\"1\""), "no value in clear: {json}");
    }
}
