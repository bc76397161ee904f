//! Works out what an adoption would do. Reads only: it holds no client that can write.

use anyhow::Result;
use composefile::document::Document;

use crate::{
    observe::{Before, Depth, Situation},
    plan::{self, Adoption, AdoptionFacts, Hashes, Keep, Removal, Sent},
    portainer::Payload,
    rewrite::faithful::{self, Blocker, Faithful, Runs},
    stack::{Shell, Source},
};

/// A stack, its faithful rewrite, and what adopting it would do.
pub struct Prepared {
    /// The files on disk.
    pub source: Source,
    /// What is sent, or everything that prevents the rewrite.
    pub rewrite: Result<Faithful, Vec<Blocker>>,
    /// What exists now.
    pub before: Before,
    /// What an adoption would do.
    pub plan: Adoption,
}

impl Prepared {
    /// Reads the stack's files, Portainer and the engine. What runs can change the text: it is rewritten a second time
    /// then. Fails if the files or Portainer's list of stacks cannot be
    /// read.
    pub fn new(situation: &Situation, keep: Keep) -> Result<Self> {
        let (stack, name) = (situation.stack, situation.stack.name());
        let source = stack.read()?;
        let records = situation.portainer.records(
            situation.endpoint,
            name.as_str(),
            &name.portainer_name(),
        )?;
        let (text, env) = (source.compose.as_str(), source.env.as_deref());
        let shell = Shell::of(stack, |context| {
            faithful::env_files_needed(text, env, context)
        });
        if let Some(error) = shell.unreadable {
            return Err(error);
        }
        let document = Document::parse(text);
        let first = faithful::rewrite(text, env, &shell.context(), &Runs::default());
        let before = situation.observe(records, sent(&first), Depth::Everything);
        let plan_of = |rewrite: &Result<Faithful, Vec<Blocker>>, runs: &Runs| {
            let hashes: Result<Hashes, String> = Err(
                "this host has no Compose program that could compare the configurations".to_owned(),
            );
            situation.with_facts(
                &source,
                document.as_ref(),
                sent(rewrite),
                Removal::Stop,
                &before,
                |facts| {
                    let input = AdoptionFacts {
                        facts,
                        file: stack.file(),
                        rewrite: rewrite.as_ref().err().map_or(&[], Vec::as_slice),
                        runs,
                        hashes: hashes.as_ref().map_err(String::as_str),
                        portainer_version: before.portainer_version.as_deref(),
                    };
                    let plan = plan::adoption(&input);
                    let runs = plan::runs(&input, &plan, keep);
                    (plan, runs)
                },
            )
        };
        let (plan, (runs, blockers)) = plan_of(&first, &Runs::default());
        let (rewrite, mut plan) = if runs.is_empty() {
            (first, plan)
        } else {
            let rewrite = faithful::rewrite(text, env, &shell.context(), &runs);
            let (plan, _) = plan_of(&rewrite, &runs);
            (rewrite, plan)
        };
        plan.blockers.extend(blockers);
        Ok(Self {
            source,
            rewrite,
            before,
            plan,
        })
    }

    /// The body of the create, if the stack can be rewritten.
    pub fn payload<'a>(&'a self, name: &'a str) -> Option<Payload<'a>> {
        let rewrite = self.rewrite.as_ref().ok()?;
        Some(Payload {
            name,
            text: &rewrite.text,
            env: &rewrite.env,
        })
    }
}

/// What is sent; nothing if the rewrite is blocked.
fn sent(rewrite: &Result<Faithful, Vec<Blocker>>) -> Sent<'_> {
    match rewrite {
        Ok(rewrite) => Sent {
            text: &rewrite.text,
            env: &rewrite.env,
        },
        Err(_) => Sent { text: "", env: &[] },
    }
}
