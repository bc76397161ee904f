//! A readable summary of the world.

use std::{collections::BTreeMap, fmt};

use super::{container::Container, record::Record, state::World};

/// The heading for containers without a project label. Not a valid stack name.
const NO_STACK: &str = "(no stack)";

/// Displays the stacks in Portainer and the containers of this host, grouped by stack.
pub struct Summary<'w>(&'w World);

impl World {
    /// The stacks in Portainer and the containers of this host, as lines of text.
    pub fn summary(&self) -> Summary<'_> {
        Summary(self)
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stacks = BTreeMap::<&str, (Vec<&Record>, Vec<&Container>)>::new();
        for record in self.0.records.values() {
            stacks.entry(&record.name).or_default().0.push(record);
        }
        let label = self.0.label("project");
        for container in self.0.containers.values() {
            let project = container
                .labels
                .get(&label)
                .map_or(NO_STACK, String::as_str);
            stacks.entry(project).or_default().1.push(container);
        }
        if stacks.is_empty() {
            return f.write_str("no stacks");
        }
        let mut separator = "";
        for (stack, (records, mut containers)) in stacks {
            write!(f, "{separator}{stack}")?;
            separator = "\n";
            if records.is_empty() && stack != NO_STACK {
                write!(f, "\n  not in Portainer")?;
            }
            for record in records {
                write!(
                    f,
                    "\n  Portainer stack {} in environment {}, {}",
                    record.id,
                    record.endpoint,
                    format!("{:?}", record.status).to_lowercase()
                )?;
            }
            containers.sort_by(|one, other| one.name.cmp(&other.name));
            for container in containers {
                let status = container.status(self.0.now);
                let id = container.short_id();
                write!(
                    f,
                    "\n  {id}  {}  {}  {status}",
                    container.name, container.image
                )?;
            }
        }
        Ok(())
    }
}
