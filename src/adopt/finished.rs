//! What the plan of an adoption says when everything is read: whether it can be run, what it pulls first, and how its text differs.

use std::mem::take;

use super::Prepared;
use crate::{
    finding::Kind,
    observe::Situation,
    plan::{self, AdoptFlags, Plan, Readiness, Request, changed_variables},
    rewrite::diff::changed_lines,
    text::{Mask, command},
};

impl Prepared {
    /// Completes the plan of an adoption with these flags.
    pub(super) fn finished(
        mut self,
        situation: &Situation,
        flags: AdoptFlags,
        mask: &Mask,
    ) -> Self {
        let file = situation.stack.file();
        let planned = take(&mut self.plan);
        let (rewrite, now) = (
            self.rewrite.as_ref().ok(),
            self.before.remote.contents.as_ref(),
        );
        let mut plan = Plan {
            losses_known: self.before.host.is_known(),
            git: now.and_then(|(_, standing)| Some(standing.git.clone()?.typed(situation.git))),
            changed_variables: now.zip(rewrite).map_or_else(Vec::new, |((now, _), sent)| {
                changed_variables(&now.env, &sent.env)
            }),
            changed_lines: match &self.git {
                Some(git) => self.deployed().map(|now| changed_lines(now, git.text())),
                None => rewrite
                    .filter(|_| self.combined.is_empty() || self.deployed().is_some())
                    .map(|rewrite| changed_lines(self.compared(), &rewrite.text)),
            },
            ..planned
        };
        match &self.git {
            Some(git) => plan.patch.clone_from(&git.patch),
            None => plan.combined_files.clone_from(&self.combined),
        }
        let is_theirs = plan.in_portainer.may_be_theirs() && !flags.overwrite;
        let mut warnings = self.before.warnings.clone();
        if is_theirs || !plan.blockers.is_empty() {
            // Nothing is sent.
            plan.notices.clear();
            plan.warnings
                .retain(|finding| finding.kind == Kind::FailedBefore);
        }
        // They are about a text, which is not sent to a Git stack.
        if let Some(rewrite) = rewrite.filter(|_| !plan.is_left_to_git()) {
            let notices = rewrite.notices.iter().cloned();
            let notices = notices.filter(|one| match one.kind {
                Kind::StillAnonymous => plan.creates(),
                Kind::Resolved => !plan.sends_nothing(),
                _ => true,
            });
            let notices: Vec<_> = notices.map(|notice| notice.in_file(file)).collect();
            plan.notices.extend(notices);
        }
        if is_theirs && plan.files_differ {
            let (name, dir) = (situation.stack.name().as_str(), situation.stack.dir_text());
            let export = command(&["export", name, "--to", dir, "--force"]);
            plan.warn(format!(
                "your files differ from the last adoption, too: `{export}` replaces them and keeps copies"
            ));
        }
        warnings.append(&mut plan.warnings);
        plan.warnings = warnings;
        // Missing images are all that blocks it then.
        let pulls = flags.pull && !is_theirs;
        if let ([_], true) = (&plan.blockers[..], pulls) {
            plan.pulls = plan::images_to_pull(&self.projects, &self.before.host);
            plan.blockers.retain(|_| plan.pulls.is_empty());
        }
        plan.readiness = match plan.request {
            _ if is_theirs => Readiness::Edited,
            _ if !plan.blockers.is_empty() => Readiness::Blocked,
            Some(Request::Nothing(_)) if plan.access.is_none() => Readiness::NothingToDo,
            _ => Readiness::Ready,
        };
        plan.hide_values(mask);
        self.plan = plan;
        self
    }
}
