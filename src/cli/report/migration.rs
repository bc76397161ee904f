//! What a migration would do.

use anyhow::Result;

use super::{
    BlockerReport, FateKind, FateReport, Interruption, MigrateWay, RequestKind, RequestReport,
    ServiceReport, WayReport, services_of,
};
use crate::{
    cli::{diff, settings::Settings},
    migrate,
    observe::Situation,
    plan::{ContainerLoss, Loss, Plan},
    run::RestoreCommand,
};

pub(super) fn migrated(
    prepared: Result<migrate::Prepared>,
    way: MigrateWay,
    (situation, settings): (&Situation, &Settings),
    command: &RestoreCommand,
) -> WayReport {
    let name = situation.stack.name().as_str();
    let mut words = vec!["render", name, "--diff"];
    words.extend(file_flag(situation, settings));
    let diff_command = command.with(&words);
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return WayReport::impossible(&error, diff_command),
    };
    let (plan, before) = (&prepared.plan, &prepared.before);
    let mut warnings: Vec<String> = before.warnings.clone();
    warnings.extend(
        prepared
            .rewrite
            .env
            .warnings
            .iter()
            .map(|warning| format!("{}/.env: {warning}", situation.stack.dir_text())),
    );
    warnings.extend(plan.warnings.iter().cloned());
    let mut blockers = Vec::new();
    for refusal in &plan.refusals {
        if way.force {
            warnings.push(format!("{refusal}; --force overrides this"));
        } else {
            blockers.push(BlockerReport::of_refusal(refusal, name));
        }
    }
    WayReport {
        request: RequestReport {
            kind: match before.record {
                Some(_) => RequestKind::Replace,
                None => RequestKind::Create,
            },
            portainer_stack: before.record.as_ref().map(|record| record.id.clone()),
        },
        services: services(&prepared, way, situation),
        changed_lines: Some(diff::changed(
            &prepared.source.compose,
            &prepared.rewrite.text,
        )),
        combined_files: Vec::new(),
        diff_command,
        blockers,
        warnings,
        notices: plan.notices().collect(),
    }
}

/// The services with containers, then those that get some.
fn services(
    prepared: &migrate::Prepared,
    way: MigrateWay,
    situation: &Situation,
) -> Vec<ServiceReport> {
    let names = services_of(&prepared.before, situation.tool);
    // B10
    let is_adopted = |name: &str| {
        let mut all = prepared.before.all.iter().flatten();
        all.any(|one| {
            let of = one.compose_label(situation.tool, "project");
            one.name() == name && of != Some(situation.stack.name().as_str())
        })
    };
    let is_running = |name: &str| {
        let mut all = prepared.before.all.iter().flatten();
        all.any(|one| one.name() == name && one.state == "running")
    };
    let mut found: Vec<ServiceReport> = Vec::new();
    for (container, service) in &names {
        let (kind, reason) = match removed(&prepared.plan, container) {
            _ if is_adopted(container) => (
                FateKind::Unknown,
                Some("Portainer adopts its container, and may recreate it".to_owned()),
            ),
            Some(reason) => (FateKind::Removed, Some(reason)),
            None => (FateKind::Recreated, None),
        };
        let interruption = match kind {
            _ if !is_running(container) => Interruption::None,
            FateKind::Unknown => Interruption::Maybe,
            FateKind::Removed => Interruption::ForGood,
            _ => Interruption::Once,
        };
        let same = |one: &&mut ServiceReport| one.service == *service && one.fate.kind == kind;
        if let Some(one) = found.iter_mut().find(same) {
            one.containers.push(container.clone());
            if interruption != Interruption::None {
                one.interruption = interruption;
            }
            continue;
        }
        found.push(ServiceReport {
            service: service.clone(),
            containers: vec![container.clone()],
            fate: FateReport { kind, reason },
            interruption,
            stop_seconds: way
                .grace
                .filter(|_| interruption != Interruption::None)
                .and_then(|grace| u32::try_from(grace.as_secs()).ok()),
        });
    }
    found.extend(prepared.plan.starts.iter().map(|service| ServiceReport {
        service: service.clone(),
        containers: Vec::new(),
        fate: FateReport {
            kind: FateKind::Started,
            reason: Some("it has no container".to_owned()),
        },
        interruption: Interruption::None,
        stop_seconds: None,
    }));
    found
}

/// Why a container is removed without a successor.
fn removed(plan: &Plan, container: &str) -> Option<String> {
    plan.losses.iter().find_map(|loss| match loss {
        Loss::Container {
            container: of,
            loss,
            ..
        } if of == container => match loss {
            ContainerLoss::NotDefined { .. } => {
                Some("the Compose file does not define the service".to_owned())
            }
            ContainerLoss::Profile { .. } => {
                Some("no profile of the service is active in Portainer".to_owned())
            }
            ContainerLoss::OneOff => Some("it is a one-off container of `compose run`".to_owned()),
            _ => None,
        },
        _ => None,
    })
}

/// The command of the migration, with the flags that the plan was made with.
pub(super) fn command(
    situation: &Situation,
    settings: &Settings,
    way: Option<MigrateWay>,
    command: &RestoreCommand,
) -> String {
    let mut words = vec!["migrate", situation.stack.name().as_str()];
    let grace;
    if let Some(way) = way {
        if way.force {
            words.push("--force");
        }
        if let Some(time) = way.grace {
            grace = format!("{}s", time.as_secs());
            words.extend(["--grace", &grace]);
        }
    }
    words.extend(file_flag(situation, settings));
    command.with(&words)
}

/// A migration and the literal `render` find only the Compose file with the name of the contract (C07).
fn file_flag<'a>(situation: &'a Situation, settings: &Settings) -> Vec<&'a str> {
    let file = situation.stack.file();
    if settings.location.file.is_some() || file == format!("{}-compose.yml", situation.tool) {
        Vec::new()
    } else {
        vec!["--file", file]
    }
}
