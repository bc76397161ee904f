//! Works out what a migration would do. Reads only: it holds no client that can write.

use anyhow::Result;
use composefile::document::Document;

use super::{Rewrite, namesake};
use crate::{
    model::Record,
    observe::{Before, Depth, Situation, mask},
    plan::{self, Plan, Touch},
    rewrite::faithful::env_files_needed,
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
    /// Portainer's list of stacks cannot be read, or if another Portainer stack may have the name.
    pub fn new(situation: &Situation) -> Result<Self> {
        let source = situation.stack.read()?;
        let records = situation.records()?;
        namesake(situation.stack, &records)?;
        Self::of(situation, source, records, Depth::Everything)
    }

    /// Reads and plans the rest, once the files and the Portainer stacks with the stack's name are read.
    pub(super) fn of(
        situation: &Situation,
        source: StackText,
        records: Vec<Record>,
        depth: Depth,
    ) -> Result<Self> {
        let rewrite = Rewrite::literal(&source, situation.stack.dir_text());
        let sent = rewrite.sent();
        let mask = mask(&source, sent.env);
        let mut before = situation.observe(records, sent, &mask, depth);
        before.warnings.extend(before.observed.unread.iter().map(|why| {
            let hint = why.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
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
        let mut plan = situation.with_facts(read, &shell, sent, false, &before, plan::migration);
        let name = Some(situation.stack.name().as_str());
        let containers = before.inspected();
        let touched: Vec<_> = containers
            .map(|one| match one.compose_label(situation.tool, "project") {
                project if project == name => (one, Touch::Replaced),
                // B10
                _ => (one, Touch::MayBeReplaced),
            })
            .collect();
        situation.lose_foreign(&before, &touched, &mut plan.losses, &mut plan.warnings);
        plan.hide_values(&mask);
        Ok(Self {
            source,
            rewrite,
            before,
            plan,
        })
    }
}
