//! Works out what a migration would do. Reads only: it holds no client that can write.

use std::time::Duration;

use anyhow::{Context as _, Result};
use composefile::document::Document;

use super::{Rewrite, namesake};
use crate::{
    model::Record,
    observe::{Before, Depth, Situation, mask},
    plan::{self, Plan, Removal, Touch},
    rewrite::faithful::env_files_needed,
    snapshot::Inspected,
    stack::{Shell, StackText},
};

/// A stack, its literal rewrite, and what migrating it would do.
pub struct Prepared {
    /// The files on disk.
    pub source: StackText,
    /// What is sent.
    pub rewrite: Rewrite,
    /// What exists now.
    pub before: Before,
    /// What a migration would do.
    pub plan: Plan,
}

impl Prepared {
    /// Reads the stack's files, Portainer and the engine. Fails where a migration stops before it plans: if the files or
    /// Portainer's list of stacks cannot be read, if another Portainer stack may have the name, or if containers cannot be
    /// stopped within `grace`.
    pub fn new(situation: &Situation, grace: Option<Duration>) -> Result<Self> {
        let source = situation.stack.read()?;
        let records = situation.records()?;
        namesake(situation.stack, &records)?;
        Self::of(situation, source, records, grace, Depth::Everything)
    }

    /// Reads and plans the rest, once the files and the Portainer stacks with the stack's name are read.
    pub(super) fn of(
        situation: &Situation,
        source: StackText,
        records: Vec<Record>,
        grace: Option<Duration>,
        depth: Depth,
    ) -> Result<Self> {
        if grace.is_some() {
            let needs = situation.engine.require_api();
            needs.context("cannot stop the containers within --grace")?;
        }
        let rewrite = Rewrite::literal(&source, situation.stack.dir_text());
        let sent = rewrite.sent();
        let mask = mask(&source, sent.env);
        let mut before = situation.observe(records, sent, &mask, depth);
        before.warnings.extend(before.unread.iter().map(|why| {
            let hint = match why.hint.as_str() {
                "" => String::new(),
                hint => format!(" ({hint})"),
            };
            format!("{}{hint}; the stack's containers are unknown: what they will lose cannot be listed, and they cannot be rolled back", why.message)
        }));
        situation.engine.refuse_podman()?;
        let document = Document::parse(&source.compose);
        let (compose, env) = (&source.compose, source.env.as_deref());
        let shell = Shell::of(situation.stack, None, |context| {
            env_files_needed(compose, env, context)
        });
        let read = plan::Source {
            compose,
            document: document.as_ref(),
            env,
        };
        let mut plan =
            situation.with_facts(read, &shell, sent, removal(grace), &before, plan::migration);
        let name = Some(situation.stack.name().as_str());
        let containers = before.details.containers.iter().flatten().map(Inspected);
        let touched: Vec<_> = containers
            .map(|one| match one.compose_label(situation.tool, "project") {
                project if project == name => (one, Touch::Replaced),
                // B10
                _ => (one, Touch::MayBeReplaced),
            })
            .collect();
        situation.lose_foreign(&before, &touched, &mut plan.losses, &mut plan.warnings);
        Ok(Self {
            source,
            rewrite,
            before,
            plan,
        })
    }
}

/// How running containers end, with or without `--grace`.
fn removal(grace: Option<Duration>) -> Removal {
    match grace {
        Some(grace) => Removal::Stop(u32::try_from(grace.as_secs()).unwrap_or(u32::MAX)),
        None => Removal::Kill,
    }
}
