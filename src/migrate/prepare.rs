//! Works out what a migration would do. Reads only: it holds no client that can write.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
};

use anyhow::Result;

use super::{Rewrite, namesake};
use crate::{
    finding::Finding,
    model::Record,
    observe::{self, Depth, Situation, mask, read_on_disk, read_sent},
    plan::{self, Before, Facts, Parsed, Plan, Projects, Readiness, Request, Sent, Touch, Unread},
    rewrite::diff::changed_lines,
    stack::{Files, Stack, StackText},
    text::Mask,
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
    /// Portainer's list of stacks cannot be read, or if another Portainer stack may have the name. With `force`, what would refuse
    /// the run is a warning.
    pub fn new(situation: &Situation, force: bool) -> Result<Self> {
        let source = situation.stack.read()?;
        let records = situation.records()?;
        namesake(situation.stack, &records)?;
        let prepared = Self::of(situation, source, records, Depth::Everything)?;
        Ok(prepared.finished(situation.stack, force))
    }

    /// Completes the plan with what a run says by itself.
    fn finished(mut self, stack: &Stack, force: bool) -> Self {
        let (plan, before) = (&mut self.plan, &self.before);
        let of_env = self.rewrite.env.warnings.iter();
        let dir = stack.dir_text();
        let of_env = of_env.map(|warning| Finding::as_told(format!("{dir}/.env: {warning}")));
        let mut warnings: Vec<Finding> = before.warnings.iter().cloned().chain(of_env).collect();
        warnings.append(&mut plan.warnings);
        plan.warnings = warnings;
        for refusal in take(&mut plan.blockers) {
            if force {
                plan.warn(format!("{}; --force overrides this", refusal.message));
            } else {
                plan.blockers.extend(refusal.split(stack.file()));
            }
        }
        plan.readiness = if plan.blockers.is_empty() {
            Readiness::Ready
        } else {
            Readiness::Blocked
        };
        plan.request = Some(match &before.remote.record {
            Some(record) => Request::Replace(record.id.clone()),
            None => Request::Create,
        });
        plan.losses_known &= before.host.is_known();
        plan.access.clone_from(&before.remote.uses.wanted);
        plan.changed_lines = Some(changed_lines(&self.source.compose, &self.rewrite.text));
        self
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
        situation.engine.hide(&mask);
        let mut before = situation.observe(records, depth);
        before.warnings.extend(before.host.unread.iter().map(|why| {
            let hint = why.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
            Finding::as_told(format!("{}{hint}; the stack's containers are unknown: what they will lose cannot be listed, and they cannot be rolled back", why.message))
        }));
        situation.engine.refuse_podman()?;
        let on_disk = Parsed::new(&source.compose);
        let text = Parsed::new(sent.text).document;
        let is_needed = depth == Depth::Everything || before.destroys();
        let files = observe::files(situation.stack, || {
            observe::found(situation.stack, &source).1
        });
        let projects = read(situation, &files, sent, &mask, is_needed);
        if is_needed {
            let named = match (&projects.sent, &text) {
                (Ok(project), _) => project.images(),
                (Err(_), Some(text)) => plan::images_to_have(text, sent),
                (Err(_), None) => BTreeSet::new(),
            };
            situation.read_images(&mut before, named);
        }
        if let (Ok(project), Some(text)) = (&projects.sent, &text)
            && before.remote.version.is_none()
            && plan::depends_on_version(sent, text, project)
        {
            situation.read_version(&mut before);
        }
        let facts = Facts {
            files: &files.compose,
            ..situation.facts(&on_disk, (sent, text.as_ref()), &projects, &before)
        };
        let mut plan = plan::migration(&facts);
        let name = Some(situation.stack.name().as_str());
        let containers = before.host.inspected();
        let touched: Vec<_> = containers
            .map(
                |container| match container.compose_label(situation.tool, "project") {
                    project if project == name => (container, Touch::Replaced),
                    // B10
                    _ => (container, Touch::MayBeReplaced),
                },
            )
            .collect();
        situation.lose_foreign(&before, &touched, &mut plan);
        plan.hide_values(&mask);
        Ok(Self {
            source,
            rewrite,
            before,
            plan,
        })
    }
}

/// What the Compose program of this host reads in the literal text and in the files on disk, if it is asked. A migration needs
/// none (C11).
fn read(
    situation: &Situation,
    files: &Files,
    sent: Sent,
    mask: &Mask,
    is_needed: bool,
) -> Projects {
    let unknown = |why: String| Projects {
        on_disk: Err(why.clone()),
        sent: Err(Unread::Unknown(why)),
        deployed: None,
    };
    if !is_needed {
        return unknown("nothing is interrupted or lost".to_owned());
    }
    let program = match situation.compose.compose() {
        Ok(program) => program,
        Err(error) => return unknown(format!("{error:#}")),
    };
    let stack = situation.stack;
    let project = stack.name().portainer_name();
    let sent = read_sent(program, (stack, &project), sent, &BTreeMap::new(), mask);
    Projects {
        on_disk: match &sent {
            Ok(_) => read_on_disk(program, stack, files)
                .map_err(|error| format!("Compose cannot read the files on disk: {error:#}")),
            // There is nothing to compare with.
            Err(why) => Err(why.to_string()),
        },
        sent,
        deployed: None,
    }
}
