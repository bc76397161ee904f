//! The contract's procedure, from the source on disk to a stack that the manager runs.

use anyhow::Result;
use chrono::NaiveDate;

use crate::{
    engine::Engine,
    model::{Container, Record},
    plan::Loss,
    portainer::{BaseUrl, Payload, Portainer},
    rewrite::{
        env::{ContractEnv, contract_env},
        literal,
    },
    snapshot::Store,
    stack::{Backup, Source, Stack},
};
use composefile::document::Document;

mod creating;
mod progress;
mod snapshot;
mod steps;

pub use progress::Progress;

/// Everything a migration works with.
pub struct Migration<'a> {
    /// The stack on disk.
    pub stack: &'a Stack,
    /// The manager.
    pub manager: &'a Portainer,
    /// Where the manager is (B04).
    pub base_url: &'a BaseUrl,
    /// The engine of this host.
    pub engine: &'a Engine,
    /// The endpoint to create the stack on.
    pub endpoint: i64,
    /// The local date, for the backup (C20).
    pub today: NaiveDate,
    /// What to do about a refusal of B02–B04.
    pub on_refusal: OnRefusal,
    /// Where the snapshot goes that is taken before anything is destroyed.
    pub store: &'a Store,
    /// The container tool: it names the labels.
    pub tool: &'a str,
}

/// What to do where the run would be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRefusal {
    /// Stop.
    Stop,
    /// Say it and go on: `--force`.
    GoOn,
}

/// What a run says while it goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// The banner (C08).
    Banner {
        /// The stack.
        stack: &'a Stack,
        /// The endpoint.
        endpoint: i64,
    },
    /// What became of the backup (C21, C22).
    Backup(&'a Backup),
    /// What the manager will call the stack, where that differs (C59).
    Normalised(&'a str),
    /// Something that a person should know and that does not stop the run.
    Warning(String),
    /// What the stack will lose (B01).
    Losses(&'a [Loss]),
    /// A snapshot was taken; its id.
    Snapshot(&'a str),
    /// A record is about to be deleted (C51).
    Deleting(&'a Record),
    /// Containers are about to be removed (C52).
    Removing(&'a [Container]),
    /// Something takes a while; over at the next event that is said.
    Waiting(String),
    /// How far the run has come; nothing to say, unless it is interrupted.
    Progress(&'a Progress),
    /// The stack is created (C54).
    Created {
        /// The stack's name.
        name: &'a str,
        /// The record's id.
        id: &'a str,
    },
    /// The containers of the project after a success (C54).
    Containers(&'a [Container]),
}

/// A run that stopped: why, and how far it had come.
#[derive(Debug)]
pub struct Stopped {
    /// Why.
    pub error: anyhow::Error,
    /// What state the stack is in now.
    pub progress: Box<Progress>,
}

/// Migrates the stack. Each step is one line below; what it does is said where it is done.
pub fn run(migration: &Migration, say: &mut dyn FnMut(Event)) -> Result<(), Stopped> {
    let mut run = Run {
        m: migration,
        say,
        progress: Progress::default(),
    };
    run.procedure().map_err(|error| Stopped {
        error,
        progress: Box::new(run.progress),
    })
}

/// The literal rewrite of a stack's source (C30–C33, C40–C43), and what is known of it.
pub struct Rewrite {
    /// The text to send.
    pub text: String,
    /// What `.env` gives: the variables to send, and what is odd about it (C43).
    pub env: ContractEnv,
}

impl Rewrite {
    /// The literal rewrite of `source`, for the stack in `dir`.
    pub fn literal(source: &Source, dir: &str) -> Self {
        Self {
            text: literal::rewrite(&source.compose, dir),
            env: contract_env(source.env.as_deref().unwrap_or_default()),
        }
    }

    /// What call C sends.
    pub fn payload<'a>(&'a self, name: &'a str) -> Payload<'a> {
        Payload {
            name,
            text: &self.text,
            env: &self.env.variables,
        }
    }
}

struct Run<'a, 'say> {
    m: &'a Migration<'a>,
    say: &'say mut dyn FnMut(Event),
    progress: Progress,
}

/// What is there before the first destructive act.
struct Before {
    record: Option<Record>,
    /// `None`: the listing failed, which is tolerated (C52).
    containers: Option<Vec<Container>>,
}

impl Run<'_, '_> {
    fn procedure(&mut self) -> Result<()> {
        let stack = self.m.stack;
        self.say(Event::Banner {
            stack,
            endpoint: self.m.endpoint,
        });
        let lock = stack.lock()?;
        let source = stack.read()?;
        let known = self.look_for_namesake()?;
        self.back_up(&source, &lock)?;
        let document = Document::parse(&source.compose);
        let rewrite = self.rewrite(&source, &document)?;
        let before = self.observe(known)?;
        self.refuse_what_cannot_be_undone(&before)?;
        self.warn_of_filtered_list(&before);
        self.say_losses(&source, document.ok().as_ref(), &rewrite, &before);
        self.take_snapshot(&source, &before)?;
        self.delete_record(&before)?;
        self.remove_containers(before)?;
        let created = self.create(&source, &rewrite)?;
        self.settle(&source, &rewrite, &created)?;
        self.report(&created);
        Ok(())
    }
}
