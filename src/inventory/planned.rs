//! The plan of one stack: what each way would do.

use anyhow::Result;

use super::{Files, Found, stack_report};
use crate::{
    adopt, migrate,
    observe::Situation,
    parallel::side_by_side,
    plan::{AdoptFlags, Before, InPortainer, Plan, Readiness},
    report::{PlanReport, PortainerReport, StackReport, VERSION, Way},
};

/// The flags of `render` that show what a migration changes.
const DIFF: [&str; 3] = ["--as", "migrate", "--diff"];

/// The ways to plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ways {
    pub adopt: Option<AdoptFlags>,
    /// To plan a migration: whether it overrides refusals.
    pub migrate: Option<bool>,
    /// Whether to plan a migration too if the stack cannot be adopted.
    pub or_migrate: bool,
}

/// Plans each way. Fails if no way can be planned.
pub fn plan(situation: &Situation, ways: Ways) -> Result<PlanReport> {
    // Side by side: each waits for Portainer, the engine and Compose.
    let (force, typed) = (ways.migrate.unwrap_or_default(), situation.typed);
    let migrating = || migrate::Prepared::new(situation, force);
    let flags = ways.adopt.unwrap_or_default();
    let adopting = || adopt::Prepared::new(situation, flags);
    let (migrated, adopted) = side_by_side(
        || ways.migrate.map(|_| migrating()),
        || ways.adopt.map(|_| adopting()),
    );
    let before = match (&adopted, &migrated) {
        (Some(Ok(prepared)), _) => &prepared.before,
        (_, Some(Ok(prepared))) => &prepared.before,
        _ => {
            let error = adopted.and_then(Result::err);
            let error = error.or_else(|| migrated.and_then(Result::err));
            return Err(error.unwrap_or_else(|| anyhow::anyhow!("no way was asked for")));
        }
    };
    let adopt = adopted.as_ref().map(|prepared| Plan {
        diff_command: Some(adoption(situation, &["plan", "--diff"], flags)),
        ..planned(prepared, |prepared| &prepared.plan)
    });
    let is_blocked = |way: &Plan| way.readiness == Readiness::Blocked;
    let may_migrate = ways.or_migrate && ways.migrate.is_none();
    let otherwise = (may_migrate && adopt.as_ref().is_some_and(is_blocked)).then(migrating);
    let migrate = migrated.as_ref().or(otherwise.as_ref());
    let migrate = migrate.map(|prepared| Plan {
        diff_command: Some(migration(situation, "render", &DIFF)),
        ..planned(prepared, |prepared| &prepared.plan)
    });
    let stack = stack(situation, before);
    let mut report = PlanReport {
        version: VERSION,
        stack,
        was_in_portainer: match before.last_sent.hashes {
            // If Portainer has another name for it, it may be there under that name.
            Some(_) => (situation.stack.name().as_str() == before.project).then_some(true),
            None => before.last_sent.is_empty().then_some(false),
        },
        restore_command: None,
        export_command: situation.stack.export_command(),
        overwrite_command: adoption(situation, &["plan"], flags.overwriting()),
        may_be_unseen: before.remote.may_be_unseen(),
        unanswered: situation.unanswered()?,
        portainer: PortainerReport {
            url: situation.base_url.to_string(),
            version: before.remote.version.clone(),
            environment: situation.endpoint,
        },
        adopt,
        migrate,
        next_command: None,
    };
    let containers = report.stack.containers.as_ref();
    if report.was_in_portainer == Some(true)
        && report.stack.portainer_stack.is_none()
        && report.stack.interrupted_run.is_none()
        && containers.is_some_and(|all| all.all == 0)
        && situation.has_run()
    {
        report.restore_command = Some(typed.with(&["restore", &report.stack.name]));
    }
    report.next_command = match report.recommended() {
        // Portainer has what the files say: there is nothing to repair.
        Some((Way::Adopt, way)) if way.in_portainer == InPortainer::OtherForm => None,
        Some((Way::Adopt, _)) => Some(adoption(situation, &["adopt"], flags)),
        // To recreate what Portainer has is no advice.
        Some((Way::Migrate, _)) if report.stack.portainer_stack.is_some() => None,
        Some((Way::Migrate, _)) => {
            let access = situation.access_flags();
            let mut flags: Vec<&str> = access.iter().map(String::as_str).collect();
            flags.extend(force.then_some("--force"));
            Some(migration(situation, "migrate", &flags))
        }
        None if report.runs_again() => Some(typed.with(&["adopt", &report.stack.name])),
        None => report.heals().map(str::to_owned),
    };
    Ok(report)
}

fn planned<P>(prepared: &Result<P>, plan: fn(&P) -> &Plan) -> Plan {
    match prepared {
        Ok(prepared) => plan(prepared).clone(),
        Err(error) => Plan::failed(error),
    }
}

fn stack(situation: &Situation, before: &Before) -> StackReport {
    let containers = before.host.listed.as_ref();
    let found = Found {
        name: situation.stack.name().to_string(),
        files: Files::Stack(situation.stack.clone()),
        containers: containers.map(|all| all.iter().collect()),
        record: before.remote.record.as_ref(),
    };
    let interrupted = situation.interrupted(before);
    stack_report(
        &found,
        interrupted.as_ref(),
        situation.tool,
        situation.typed,
    )
}

/// A command of an adoption with these flags.
fn adoption(situation: &Situation, command: &[&str], flags: AdoptFlags) -> String {
    let mut words = command.to_vec();
    words.insert(1, situation.stack.name().as_str());
    words.extend(flags.words());
    let access = situation.access_flags();
    words.extend(access.iter().map(String::as_str));
    let git = situation.git.map_or(&[][..], |git| &git.flags);
    words.extend(git.iter().map(String::as_str));
    situation.typed.with(&words)
}

/// A migration and the literal `render` may find another Compose file than the one that was started (C07).
fn migration(situation: &Situation, command: &str, flags: &[&str]) -> String {
    let (stack, typed) = (situation.stack, situation.typed);
    let mut words = [&[command, stack.name().as_str()], flags].concat();
    let has_file = typed.flags.iter().any(|flag| flag == "--file");
    if !has_file && !stack.is_chosen(situation.tool) {
        words.extend(["--file", stack.file()]);
    }
    typed.with(&words)
}
