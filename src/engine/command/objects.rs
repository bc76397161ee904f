//! The questions about what a project consists of.

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Command, IDS_A_CALL, TRIES, with_ids};
use crate::{
    engine::objects::{Kind, stands_for},
    model::{Change, ChangeKind, Changes},
};

impl Command {
    /// What the engine says of `names`; those that are not there are left out.
    pub(in crate::engine) fn inspect(&self, kind: Kind, names: &[String]) -> Result<Vec<Value>> {
        let mut names = names.to_vec();
        for _ in 1..TRIES {
            let failed = match self.print(kind, &names) {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            // It fails as a whole where one is not there, and only a list tells which.
            let there = self.there(kind)?;
            let before = names.len();
            names.retain(|name| {
                let is_it = |found: &String| found == name || stands_for(name, found);
                there.iter().any(is_it)
            });
            if names.len() == before {
                return Err(failed);
            }
        }
        self.print(kind, &names)
    }

    /// What the command prints of `names`, all of which must be there.
    pub(super) fn print<T: DeserializeOwned>(
        &self,
        kind: Kind,
        names: &[String],
    ) -> Result<Vec<T>> {
        // `inspect --type` knows containers and images only in some tools.
        let question: &[&str] = match kind {
            Kind::Container => &["inspect", "--type", "container"],
            Kind::Network => &["network", "inspect"],
            Kind::Volume => &["volume", "inspect"],
            Kind::Image => &["image", "inspect"],
        };
        let mut found = Vec::new();
        for names in names.chunks(IDS_A_CALL) {
            let output = self.ask(&with_ids(question, names))?;
            let inspected: Vec<T> = serde_json::from_slice(&output).with_context(|| {
                let question = question.join(" ");
                format!("`{} {question}` does not print what it should", self.tool)
            })?;
            found.extend(inspected);
        }
        Ok(found)
    }

    /// The ids and names of all that are there.
    fn there(&self, kind: Kind) -> Result<Vec<String>> {
        let output = self.ask(match kind {
            Kind::Container => &["ps", "-aq", "--no-trunc"],
            Kind::Network => &[
                "network",
                "ls",
                "--no-trunc",
                "--format",
                "{{.ID}}\n{{.Name}}",
            ],
            Kind::Volume => &["volume", "ls", "-q"],
            Kind::Image => &["image", "ls", "-aq", "--no-trunc"],
        })?;
        Ok(lines(&output))
    }

    /// The ids of the networks with the label of `project`, as far as the command's filter tells.
    pub(in crate::engine) fn networks(&self, project: &str) -> Result<Vec<String>> {
        let filter = format!("label={}={project}", self.label);
        self.ids(&["network", "ls", "-q", "--no-trunc", "--filter", &filter])
    }

    /// The names of the volumes with the label of `project`, as far as the command's filter tells.
    pub(in crate::engine) fn volumes(&self, project: &str) -> Result<Vec<String>> {
        let filter = format!("label={}={project}", self.label);
        let output = self.ask(&["volume", "ls", "-q", "--filter", &filter])?;
        Ok(lines(&output))
    }

    /// What differs between the layer of `container` and its image.
    pub(in crate::engine) fn changes(&self, container: &str) -> Result<Changes> {
        let output = self.ask(&["diff", container])?;
        let mut changes = Changes::default();
        for line in String::from_utf8_lossy(&output).lines() {
            let kind = match line.get(..3) {
                Some("A /") => ChangeKind::Added,
                Some("C /") => ChangeKind::Modified,
                Some("D /") => ChangeKind::Deleted,
                // The rest of a name with a line break in it.
                _ if changes.total > changes.listed.len() => continue,
                _ => {
                    if let Some(Change { path, .. }) = changes.listed.last_mut() {
                        path.push('\n');
                        path.push_str(line);
                    }
                    continue;
                }
            };
            changes.add(Change {
                path: line[2..].to_owned(),
                kind,
            });
        }
        Ok(changes)
    }
}

fn lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}
