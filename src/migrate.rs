//! The literal migration (contract C01–C59): from the source on disk to a stack that Portainer runs.

use std::collections::BTreeSet;

use anyhow::Result;
use chrono::NaiveDate;

use crate::{
    failure::Failure,
    finding::Finding,
    model::Record,
    observe::{Depth, Situation, foreign_since},
    plan::{Before, Sent},
    portainer::Payload,
    rewrite::{
        env::{ContractEnv, contract_env},
        literal,
    },
    run::{self, Consent, Listener, Peers, Purpose, Run, Seen, Setup, State, Stopped},
    snapshot::LastSent,
    stack::{Stack, StackText},
    text::shell_word,
};

mod creating;
mod planning;
mod prepare;
mod steps;

pub use prepare::Prepared;

/// The input of a migration.
pub struct Migration<'a> {
    pub situation: Situation<'a>,
    pub peers: &'a Peers,
    /// The local date, for the backup (C20).
    pub today: NaiveDate,
    /// Whether to warn and continue where B02–B06 refuse.
    pub force: bool,
    /// Whether to ask before something is interrupted or lost (B08).
    pub consent: Consent<'a>,
    pub setup: &'a Setup,
}

/// Migrates the stack.
pub fn run(migration: &Migration, listener: &mut Listener) -> Result<(), Stopped> {
    let (peers, setup) = (migration.peers, migration.setup);
    let dir = migration.situation.stack.dir();
    run::under_lock(dir, Purpose::Change, peers, setup, listener, |run| {
        let mut procedure = Procedure {
            m: migration,
            at: migration.situation,
            run,
            untouched: State::untouched(),
            deleted: None,
            removed: None,
        };
        procedure.steps()
    })
}

/// The literal rewrite of a stack's source (C30–C33, C40–C43).
pub struct Rewrite {
    /// The text to send.
    pub text: String,
    /// The variables to send, and the warnings about `.env` (C43).
    pub env: ContractEnv,
}

impl Rewrite {
    /// The literal rewrite of `source`, for the stack in `dir`.
    pub fn literal(source: &StackText, dir: &str) -> Self {
        Self {
            text: literal::rewrite(&source.compose, dir),
            env: contract_env(source.env.as_deref().unwrap_or_default()),
        }
    }

    /// The same, as the plan reads it.
    fn sent(&self) -> Sent<'_> {
        Sent::new(&self.text, &self.env.variables)
    }

    /// What counts as last sent afterwards (B22).
    fn last_sent(&self) -> LastSent {
        LastSent::of(&self.text, &self.env.variables)
    }

    /// The body of call C.
    pub fn payload<'a>(&'a self, name: &'a str) -> Payload<'a> {
        Payload::new(name, &self.text, &self.env.variables)
    }
}

/// Refuses a name that Portainer changes into one that is taken: that Portainer stack may belong to another stack (C59).
fn namesake(stack: &Stack, records: &[Record]) -> Result<()> {
    let name = stack.name();
    let portainer_name = name.portainer_name();
    if portainer_name == name.as_str() {
        return Ok(());
    }
    if portainer_name.is_empty() {
        let what =
            format!("the name {name} has no character that Portainer allows (a-z, 0-9, - and _)");
        let hint = "choose another name and pass the stack's directory with --dir";
        return Err(Failure::new(what).hint(hint).into());
    }
    let Some(record) = records.iter().find(|record| record.name == portainer_name) else {
        return Ok(());
    };
    let (id, endpoint, dir) = (&record.id, record.endpoint_id, shell_word(stack.dir_text()));
    let what = format!(
        "Portainer would call this stack {portainer_name}, but Portainer stack {id} on environment {endpoint} already has that name: it may be another stack"
    );
    let hint =
        format!("if it is the same stack, run `stacklift migrate {portainer_name} --dir {dir}`");
    Err(Failure::new(what).hint(hint).into())
}

struct Procedure<'a, 'r> {
    m: &'a Migration<'a>,
    /// What the run reads.
    at: Situation<'a>,
    run: &'r mut Run<'a>,
    /// The state before anything was deleted, removed or sent.
    untouched: State,
    /// The ID of the Portainer stack, once it is deleted with its containers.
    deleted: Option<String>,
    /// What existed before and was removed, as a clause.
    removed: Option<String>,
}

impl Procedure<'_, '_> {
    fn steps(&mut self) -> Result<()> {
        self.show_banner();
        let source = self.at.stack.read()?;
        self.run.hide(source.env.as_deref(), &[]);
        self.run.settle_earlier()?;
        let records = self.look_for_namesake()?;
        self.run.wait("inspecting what exists");
        let prepared = Prepared::of(&self.at, source, records, Depth::IfNeeded)?;
        let (source, rewrite) = (prepared.source, prepared.rewrite);
        let (mut before, plan) = (prepared.before, prepared.plan);
        self.run
            .warn_all(before.warnings.iter().map(Finding::to_string));
        if let Some((contents, _)) = &before.remote.contents {
            self.run.hide(None, &contents.env);
        }
        self.say(&rewrite, &plan)?;
        let containers = before.host.containers.clone();
        let asked = self.ask(&plan, &before)?;
        let pulled = self.pull(&plan, &before)?;
        let seen = if asked || pulled {
            Seen::default()
        } else {
            before.take_seen()
        };
        self.back_up(&source)?;
        let snapshot = self.take_snapshot(&source, &before, seen)?;
        self.untouched = self.run.state().clone();
        let ended = self.replace(before, &rewrite, snapshot.as_deref());
        let (engine, name) = (self.run.engine, self.at.stack.name());
        let containers = containers.unwrap_or_default();
        let (_, warning) = foreign_since(engine, (&containers, &[]), self.at.tool, name);
        self.run.warn_all(warning);
        ended
    }

    /// Removes what exists, and lets Portainer create the stack.
    fn replace(&mut self, before: Before, rewrite: &Rewrite, snapshot: Option<&str>) -> Result<()> {
        if before.destroys() {
            let name = self.at.stack.name().as_str();
            let (payload, last_sent) = (rewrite.payload(name), rewrite.last_sent());
            self.run
                .prepare_create(self.at.endpoint, &payload, &last_sent);
        }
        self.delete_record(&before)?;
        self.remove_containers(before)?;
        let created = self.create(rewrite)?;
        self.wait_for_deployment(&created)?;
        // Portainer started every container.
        let sent = rewrite
            .last_sent()
            .made_in(self.at.stack.dir_text())
            .deployed_as(Some(BTreeSet::new()));
        self.run.set_last_sent(&sent);
        self.report(&created);
        self.share(&created.id)?;
        self.run.is_whole()?;
        if let Some(id) = snapshot {
            let name = self.at.stack.name().as_str();
            let undo = self.run.undo_command(name, id);
            let next = format!("  edit it in Portainer from now on; to undo: {undo}");
            self.run.line(next);
        }
        Ok(())
    }
}
