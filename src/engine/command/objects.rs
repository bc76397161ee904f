//! Reads the objects of a project.

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;

use super::{Command, MAX_IDS_PER_CALL, Ran, with_ids};
use crate::{
    engine::{
        Archive,
        objects::{ObjectKind, identifies},
    },
    model::{Change, ChangeKind, Changes},
    text::excerpt,
};

impl Command {
    /// The inspect JSON of the objects with these names or IDs. Objects that do not exist are left out, however many are
    /// removed at this moment.
    pub(in crate::engine) fn inspect<T: DeserializeOwned>(
        &self,
        kind: ObjectKind,
        names: &[String],
    ) -> Result<Vec<T>> {
        let mut names = names.to_vec();
        loop {
            let failed = match self.inspect_existing(kind, &names) {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            // One missing object fails the whole command. Only a list tells which objects exist.
            let existing = self.existing(kind)?;
            let before = names.len();
            names.retain(|name| {
                let is_named = |found: &String| found == name || identifies(name, found);
                existing.iter().any(is_named)
            });
            if names.len() == before {
                return Err(failed);
            }
        }
    }

    /// The inspect JSON of the objects with these names or IDs, all of which must exist.
    fn inspect_existing<T: DeserializeOwned>(
        &self,
        kind: ObjectKind,
        names: &[String],
    ) -> Result<Vec<T>> {
        // Some tools support `inspect --type` for containers and images only.
        let verb: &[&str] = match kind {
            ObjectKind::Container => &["inspect", "--type", "container"],
            ObjectKind::Network => &["network", "inspect"],
            ObjectKind::Volume => &["volume", "inspect"],
            ObjectKind::Image => &["image", "inspect"],
        };
        let mut found = Vec::new();
        for names in names.chunks(MAX_IDS_PER_CALL) {
            let output = self.read(&with_ids(verb, names))?;
            let inspected: Vec<T> = serde_json::from_slice(&output).with_context(|| {
                format!("unexpected output of `{} {}`", self.tool, verb.join(" "))
            })?;
            found.extend(inspected);
        }
        Ok(found)
    }

    /// The IDs and names of all objects of this kind.
    fn existing(&self, kind: ObjectKind) -> Result<Vec<String>> {
        let output = self.read(match kind {
            ObjectKind::Container => &["ps", "-aq", "--no-trunc"],
            ObjectKind::Network => &[
                "network",
                "ls",
                "--no-trunc",
                "--format",
                "{{.ID}}\n{{.Name}}",
            ],
            ObjectKind::Volume => &["volume", "ls", "-q"],
            ObjectKind::Image => &["image", "ls", "-aq", "--no-trunc"],
        })?;
        Ok(lines(&output))
    }

    /// The IDs of the networks with the label of `project`, according to the command's filter.
    pub(in crate::engine) fn networks(&self, project: &str) -> Result<Vec<String>> {
        let filter = format!("label={}={project}", self.label);
        self.ids(&["network", "ls", "-q", "--no-trunc", "--filter", &filter])
    }

    /// The names of the volumes with the label of `project`, according to the command's filter.
    pub(in crate::engine) fn volumes(&self, project: &str) -> Result<Vec<String>> {
        let filter = format!("label={}={project}", self.label);
        let output = self.read(&["volume", "ls", "-q", "--filter", &filter])?;
        Ok(lines(&output))
    }

    /// The names of all networks.
    pub(in crate::engine) fn network_names(&self) -> Result<Vec<String>> {
        let output = self.read(&["network", "ls", "--format", "{{.Name}}"])?;
        Ok(lines(&output))
    }

    /// The names of all volumes.
    pub(in crate::engine) fn volume_names(&self) -> Result<Vec<String>> {
        let output = self.read(&["volume", "ls", "-q"])?;
        Ok(lines(&output))
    }

    /// The files that differ between the writable layer of `container` and its image.
    pub(in crate::engine) fn changes(&self, container: &str) -> Result<Changes> {
        let output = self.read(&["diff", container])?;
        let mut changes = Changes::default();
        for line in String::from_utf8_lossy(&output).lines() {
            let kind = match line.get(..3) {
                Some("A /") => ChangeKind::Added,
                Some("C /") => ChangeKind::Modified,
                Some("D /") => ChangeKind::Deleted,
                // The rest of a path with a line break in it.
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

    /// `path` of the container as a tar archive: at most `most` bytes of it.
    pub(in crate::engine) fn archive(
        &self,
        container: &str,
        path: &str,
        most: u64,
    ) -> Result<Archive> {
        let from = format!("{container}:{path}");
        match self.run_up_to(&["cp", &from, "-"], self.read_timeout, most)? {
            Ran::Whole(output) if output.status.success() => Ok(Archive {
                bytes: output.stdout,
                is_whole: true,
            }),
            Ran::Whole(output) => bail!(
                "`{} cp` failed ({}): {}",
                self.tool,
                output.status,
                excerpt(&String::from_utf8_lossy(&output.stderr))
            ),
            Ran::Cut(bytes) => Ok(Archive {
                bytes,
                is_whole: false,
            }),
        }
    }
}

fn lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}
