//! What an adoption or a migration that was prepared would do, as a report.

use imara_diff::{Algorithm, Diff, InternedInput};

use crate::{
    adopt, migrate,
    model::Pull,
    observe::Situation,
    plan::{AdoptFlags, Plan, Readiness, Request, changed_variables},
};

/// What an adoption with these flags would do.
pub fn adoption(prepared: &adopt::Prepared, situation: &Situation, flags: AdoptFlags) -> Plan {
    let (plan, before) = (&prepared.plan, &prepared.before);
    let pulls = prepared.images_to_pull(flags);
    // Missing images are all that blocks it then.
    let blockers = plan.blockers.iter().filter(|_| pulls.is_empty());
    let blockers: Vec<_> = blockers.cloned().collect();
    let (rewrite, now) = (prepared.rewrite.as_ref().ok(), before.contents.as_ref());
    Plan {
        readiness: match plan.request {
            _ if plan.in_portainer.may_be_theirs() && !flags.overwrite => Readiness::Edited,
            _ if !blockers.is_empty() => Readiness::Blocked,
            Some(Request::Nothing(_)) if plan.access.is_none() => Readiness::NothingToDo,
            _ => Readiness::Ready,
        },
        changed_variables: now.zip(rewrite).map_or_else(Vec::new, |((now, _), sent)| {
            changed_variables(&now.env, &sent.env)
        }),
        changes: plan.untold_changes(),
        losses_known: before.is_known(),
        blockers,
        pulls: pulls.iter().map(Pull::to_string).collect(),
        patch: prepared.patch(),
        warnings: prepared.warnings(flags).map(str::to_owned).collect(),
        git: now.and_then(|(_, standing)| Some(standing.git.clone()?.typed(situation.git))),
        notices: prepared.notices(situation.stack.file()),
        changed_lines: match &prepared.git {
            Some(git) => prepared
                .deployed()
                .map(|now| changed_lines(now, git.text())),
            None => rewrite
                .filter(|_| prepared.combined.is_empty() || prepared.deployed().is_some())
                .map(|rewrite| changed_lines(prepared.compared(), &rewrite.text)),
        },
        combined_files: match prepared.git {
            Some(_) => Vec::new(),
            None => prepared.combined.clone(),
        },
        ..plan.clone()
    }
}

/// What a migration would do. With `force`, refusals are warnings.
pub(super) fn migration(prepared: &migrate::Prepared, situation: &Situation, force: bool) -> Plan {
    let (plan, before) = (&prepared.plan, &prepared.before);
    let stack = situation.stack;
    let of_env = |warning| format!("{}/.env: {warning}", stack.dir_text());
    let mut warnings = before.warnings.clone();
    warnings.extend(prepared.rewrite.env.warnings.iter().map(of_env));
    warnings.extend(plan.warnings.iter().cloned());
    let mut blockers = Vec::new();
    for refusal in &plan.blockers {
        if force {
            warnings.push(format!("{}; --force overrides this", refusal.message));
        } else {
            blockers.extend(refusal.clone().split(stack.file()));
        }
    }
    Plan {
        readiness: if blockers.is_empty() {
            Readiness::Ready
        } else {
            Readiness::Blocked
        },
        request: Some(match &before.record {
            Some(record) => Request::Replace(record.id.clone()),
            None => Request::Create,
        }),
        losses_known: before.is_known() && plan.losses_known,
        blockers,
        warnings,
        access: before.uses.wanted.clone(),
        notices: plan.notices().collect(),
        changed_lines: Some(changed_lines(
            &prepared.source.compose,
            &prepared.rewrite.text,
        )),
        ..plan.clone()
    }
}

/// How many lines change: of each hunk, the longer side.
fn changed_lines(before: &str, after: &str) -> usize {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let lines = diff
        .hunks()
        .map(|hunk| hunk.before.len().max(hunk.after.len()));
    lines.sum()
}
