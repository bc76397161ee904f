//! Brings back what ran before, from a snapshot: what ran, not what a file says.
//!
//! Observed anew at each step, so that a run that was killed anywhere is finished by the next. Volumes are
//! never removed.

use anyhow::Result;

use crate::{
    engine::Engine,
    model::Record,
    portainer::{Contents, Manager},
    snapshot::{Saved, Snapshot},
    text::Mask,
};
use composefile::dotenv;

pub mod container;
mod objects;
pub mod plan;
mod steps;

use plan::Plan;

/// Everything a restore works with.
pub struct Restore<'a> {
    /// What is brought back.
    pub saved: &'a Saved,
    /// The manager.
    pub manager: &'a Manager,
    /// The engine of this host, by its API.
    pub engine: &'a Engine,
}

/// What a restore says while it goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// What is brought back.
    Banner(&'a Saved),
    /// Something that a person should know and that does not stop the run.
    Warning(String),
    /// What will be done, before anything is done.
    Plan {
        /// At the manager.
        record: &'a RecordStep,
        /// At the engine, as far as the manager leaves things as they are.
        containers: &'a Plan,
        /// The names of the containers to be made again.
        names: &'a [String],
    },
    /// What cannot be brought back.
    Lost(&'a [String]),
    /// A step that is about to be done: its verb, and what it is about.
    Step(&'static str, String),
    /// Something takes a while; over at the next event that is said.
    Waiting(String),
    /// From now on the stack is not as it was; nothing to say, unless the run is interrupted.
    Touched(&'a str),
    /// All containers are as they were: how many, and how many of them run.
    Verified {
        /// All.
        containers: usize,
        /// Those that run.
        running: usize,
    },
}

/// What is done at the manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordStep {
    /// Nothing: it is as it was.
    Nothing,
    /// Nothing, because what was there is not known.
    Unknown,
    /// The record that came since goes, and takes its containers down (N07).
    Delete(Record),
    /// The record is given its text and variables back (M16).
    Update(Record, Contents),
    /// There is no record any more: one is made with the old text and variables.
    Create(Contents),
}

/// A restore that stopped: why, and what state the stack is in.
#[derive(Debug)]
pub struct Stopped {
    /// Why.
    pub error: anyhow::Error,
    /// What state the stack is in now.
    pub state: String,
}

/// Restores. Each step is one line below.
pub fn run(restore: &Restore, say: &mut dyn FnMut(Event)) -> Result<(), Stopped> {
    let mut run = Run {
        r: restore,
        say,
        mask: mask(&restore.saved.snapshot),
        touched: false,
        trouble: Vec::new(),
    };
    run.procedure().map_err(|error| Stopped {
        error,
        state: run.state(),
    })
}

struct Run<'a, 'say> {
    r: &'a Restore<'a>,
    say: &'say mut dyn FnMut(Event),
    /// Hides the values of `.env` and of the record in what the manager says.
    mask: Mask,
    /// Whether anything was changed.
    touched: bool,
    /// What went wrong without keeping the rest from being brought back.
    trouble: Vec<String>,
}

fn mask(snapshot: &Snapshot) -> Mask {
    let env = snapshot.env.as_ref().map(|file| file.text.as_str());
    let own = dotenv::parse(env.unwrap_or_default(), &|_| None).unwrap_or_default();
    let record = snapshot.record.known().and_then(Option::as_ref);
    let values = record.into_iter().flat_map(|record| &record.env);
    let values = values.map(|variable| variable.value.as_str());
    Mask::new(values.chain(own.iter().map(|(_, value)| value.as_str())))
}

impl Run<'_, '_> {
    fn procedure(&mut self) -> Result<()> {
        let saved = self.r.saved;
        self.say(Event::Banner(saved));
        self.require_containers()?;
        let engine = self.r.engine.restoring()?;
        let record = self.look_at_record()?;
        self.say_plan(&record)?;
        self.restore_record(&record)?;
        self.restore_networks(&engine)?;
        self.restore_volumes(&engine)?;
        self.restore_containers(&engine)?;
        self.verify()
    }

    fn snapshot(&self) -> &Snapshot {
        &self.r.saved.snapshot
    }

    /// Before anything is changed.
    fn touch(&mut self) {
        if !self.touched {
            self.touched = true;
            let state = self.state();
            self.say(Event::Touched(&state));
        }
    }

    fn state(&self) -> String {
        let id = &self.r.saved.id;
        let stack = &self.snapshot().stack;
        if self.touched {
            format!(
                "the stack is partly restored from the snapshot {id}; the same command goes on from here: stacklift restore {stack} --to {id}"
            )
        } else {
            "the stack is as it was: nothing was touched".to_owned()
        }
    }
}
