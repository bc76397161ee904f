//! Restores the containers that ran before, from a snapshot: as they ran, not as a compose file describes them.
//!
//! Plans again at each step, so that the next run finishes what a killed run began. Volumes are never removed.

use std::{fmt, path::Path};

use anyhow::Result;

use crate::{
    model::Record,
    portainer::Contents,
    run::{self, Listener, Peers, Run, Setup, State, Stopped, Witness},
    snapshot::{Saved, Snapshot},
    stack::{StackName, lock_dir},
    text::Mask,
};
use composefile::dotenv;

mod compare;
mod files;
mod objects;
mod plan;
mod recipe;
mod record;
mod steps;
#[cfg(test)]
mod tests;

/// The input of a restore.
pub struct Restore<'a> {
    pub name: &'a StackName,
    /// The stack's directory. It need not exist.
    pub dir: &'a Path,
    pub peers: &'a Peers,
    pub setup: &'a Setup,
    /// The ID of the snapshot; `None` for the newest of a state that ran whole (B15).
    pub snapshot: Option<&'a str>,
}

/// The change to the Portainer stack.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RecordStep {
    Nothing,
    /// None, because the snapshot does not know the record.
    Unknown,
    /// Delete a record that was created since, with its containers (N07).
    Delete(Record),
    /// Update the text and variables (M16).
    Update(Record, Contents),
    /// Create a record with the old text and variables.
    Create(Contents),
}

/// Restores the stack.
pub fn run(restore: &Restore, listener: &mut Listener) -> Result<(), Stopped> {
    let lock = lock_dir(restore.name, restore.dir);
    run::under_lock(lock, restore.peers, restore.setup, listener, |run| {
        let saved = run.store().choose(restore.snapshot)?;
        run.restores(&saved);
        Procedure {
            saved: &saved,
            run,
            mask: mask(&saved.snapshot),
            touched: false,
            trouble: Vec::new(),
        }
        .steps()
    })
}

struct Procedure<'s, 'a, 'r> {
    saved: &'s Saved,
    run: &'r mut Run<'a>,
    /// Hides the values of `.env` and of the record in Portainer's messages.
    mask: Mask,
    /// Whether anything was changed.
    touched: bool,
    /// What failed without stopping the restore.
    trouble: Vec<String>,
}

impl<'s> Procedure<'s, '_, '_> {
    fn steps(&mut self) -> Result<()> {
        self.show_banner();
        self.run.settle(Witness::PortainerAndEngine)?;
        self.require_containers()?;
        let engine = self.run.engine.restoring()?;
        let record = self.look_at_record()?;
        self.show_plan(&record)?;
        self.restore_record(&record)?;
        self.restore_networks(&engine)?;
        self.restore_volumes(&engine)?;
        self.restore_containers(&engine)?;
        self.run.settle(Witness::PortainerAndEngine)?;
        self.verify()
    }

    fn snapshot(&self) -> &'s Snapshot {
        &self.saved.snapshot
    }

    /// Sets the state before the first change.
    fn touch(&mut self) {
        if !self.touched {
            self.touched = true;
            let id = &self.saved.id;
            let command = self.run.restore_command(&self.snapshot().stack, id);
            self.run.set_state(State::new(format!(
                "the stack is partly restored from the snapshot {id}; to continue, run: {command}"
            )));
        }
    }

    /// Warns of something that is not restored. The end of the restore names it again.
    fn trouble(&mut self, what: String) {
        self.run.warn(what.clone());
        self.trouble.push(what);
    }
}

fn mask(snapshot: &Snapshot) -> Mask {
    let env = snapshot.env.as_ref().map(|file| file.text.as_str());
    let own = dotenv::parse(env.unwrap_or_default(), &|_| None).unwrap_or_default();
    let record = snapshot.record.known().and_then(Option::as_ref);
    let values = record.into_iter().flat_map(|record| &record.env);
    let values = values.map(|variable| variable.value.as_str());
    Mask::new(values.chain(own.iter().map(|(_, value)| value.as_str())))
}

impl fmt::Display for RecordStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no changes in Portainer"),
            Self::Unknown => f.write_str(
                "no changes in Portainer: the snapshot does not know the Portainer stack",
            ),
            Self::Delete(record) => write!(f, "delete Portainer stack {}", record.id),
            Self::Update(record, _) => write!(
                f,
                "restore the text and variables of Portainer stack {}",
                record.id
            ),
            Self::Create(_) => f.write_str("recreate the Portainer stack"),
        }
    }
}
