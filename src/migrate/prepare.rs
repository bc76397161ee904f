//! Works out what a migration would do. Reads only: it holds no client that can write.

use anyhow::Result;
use composefile::document::Document;

use super::{Rewrite, namesake, planning::plan_of};
use crate::{
    observe::{Before, Depth, Situation, mask},
    plan::{Plan, Removal},
    stack::Source,
};

/// A stack, its literal rewrite, and what migrating it would do.
pub struct Prepared {
    /// The files on disk.
    pub source: Source,
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
    pub fn new(situation: &Situation, removal: Removal) -> Result<Self> {
        let stack = situation.stack;
        let source = stack.read()?;
        let records = situation.records()?;
        namesake(stack, &records)?;
        let rewrite = Rewrite::literal(&source, stack.dir_text());
        let mask = mask(&source, rewrite.sent().env);
        let before = situation.observe(records, rewrite.sent(), &mask, Depth::Everything);
        situation.engine.refuse_podman()?;
        let document = Document::parse(&source.compose);
        let plan = plan_of(
            situation,
            (&source, document.as_ref()),
            &rewrite,
            removal,
            &before,
        );
        Ok(Self {
            source,
            rewrite,
            before,
            plan,
        })
    }
}
