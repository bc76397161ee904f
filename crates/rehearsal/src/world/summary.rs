//! The world in a few lines, for people.

use std::{collections::BTreeMap, fmt};

use super::{container::Container, record::Record, state::World};

/// The heading of containers without a project label; no stack can be called so.
const NO_STACK: &str = "(no stack)";

/// Records and containers of this host, by stack; displays as lines.
pub struct Summary<'w> {
    world: &'w World,
    only: Option<String>,
}

impl World {
    /// All stacks.
    pub fn summary(&self) -> Summary<'_> {
        Summary {
            world: self,
            only: None,
        }
    }

    /// One stack.
    pub fn summary_of(&self, stack: &str) -> Summary<'_> {
        Summary {
            world: self,
            only: Some(stack.to_owned()),
        }
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stacks = BTreeMap::<&str, (Vec<&Record>, Vec<&Container>)>::new();
        for record in self.world.records.values() {
            stacks.entry(&record.name).or_default().0.push(record);
        }
        let label = self.world.label("project");
        let here = |one: &&Container| one.engine == self.world.engine.id;
        for container in self.world.containers.values().filter(here) {
            let project = container
                .labels
                .get(&label)
                .map_or("(no stack)", String::as_str);
            stacks.entry(project).or_default().1.push(container);
        }
        let is_wanted = |stack: &str| self.only.as_ref().is_none_or(|only| only == stack);
        stacks.retain(|stack, _| is_wanted(stack));
        if stacks.is_empty() {
            return f.write_str("nothing");
        }
        let mut separator = "";
        for (stack, (records, mut containers)) in stacks {
            write!(f, "{separator}{stack}")?;
            separator = "\n";
            if records.is_empty() && stack != NO_STACK {
                write!(f, "\n  no record")?;
            }
            for record in records {
                write!(
                    f,
                    "\n  record {} on endpoint {}, {}",
                    record.id,
                    record.endpoint,
                    format!("{:?}", record.status).to_lowercase()
                )?;
            }
            containers.sort_by(|one, other| one.name.cmp(&other.name));
            for container in containers {
                let status = container.status(self.world.seconds());
                let id = &container.id[..12.min(container.id.len())];
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
