//! What `plan` and `--dry-run` report: what each way would do to a stack, as data.
//!
//! Invariant: names, never values of variables. Nothing here can write: a [`Situation`] holds readers only.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;

use super::{
    diff, peers,
    settings::{Settings, state_folder},
};
use crate::{
    adopt,
    failure::Failure,
    migrate,
    model::{Container, PORTAINER_FOLDERS, Record},
    observe::{Before, Situation},
    parallel::side_by_side,
    plan::{Blocker, Environment, Fate, Keep, Loss, Refusal, Removal, Request, ServicePlan},
    portainer::BaseUrl,
    run::RestoreCommand,
};

mod format;
mod migration;
mod text;

pub(super) use format::{
    BlockerReport, ContainersReport, FateKind, PortainerReport, PortainerStack, Report,
    RequestReport, ServiceReport, Way,
};
pub(super) use text::show;

use format::{
    EngineReport, FateReport, Interruption, LossReport, Recommended, RequestKind, StackReport,
    WayReport,
};

/// The version of the format.
const VERSION: u32 = 1;
/// The ways to report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ways {
    pub adopt: Option<Keep>,
    pub migrate: Option<MigrateWay>,
}

/// How the migration would run.
#[derive(Debug, Clone, Copy)]
pub(super) struct MigrateWay {
    /// `--grace`.
    pub grace: Option<Duration>,
    /// Whether refusals are overridden.
    pub force: bool,
}

impl MigrateWay {
    fn removal(self) -> Removal {
        match self.grace {
            Some(_) => Removal::Stop,
            None => Removal::Kill,
        }
    }
}

impl Report {
    /// Plans each way. Fails if none can be planned.
    pub(super) fn new(situation: &Situation, settings: &Settings, ways: Ways) -> Result<Self> {
        let command = &settings.typed;
        let unanswered = unanswered(situation)?;
        // Side by side: each waits for Portainer, the engine and Compose.
        let migrate = |way: MigrateWay| migrate::Prepared::new(situation, way.removal());
        let (migration, adoption) = side_by_side(
            || ways.migrate.map(migrate),
            || ways.adopt.map(|keep| adopt::Prepared::new(situation, keep)),
        );
        let before = match (&adoption, &migration) {
            (Some(Ok(prepared)), _) => &prepared.before,
            (_, Some(Ok(prepared))) => &prepared.before,
            (Some(Err(_)), _) => {
                return Err(adoption.and_then(Result::err).unwrap_or_else(unplanned));
            }
            _ => return Err(migration.and_then(Result::err).unwrap_or_else(unplanned)),
        };
        let services = services_of(before, situation.tool);
        let is_parsed = match &migration {
            Some(Ok(prepared)) => prepared.plan.is_parsed,
            _ => true,
        };
        let losses_known = before.is_known() && is_parsed;
        let mut losses = Vec::new();
        let mut lose = |way, lost: &[Loss]| {
            losses.extend(
                lost.iter()
                    .map(|loss| LossReport::new(way, loss, &services)),
            );
        };
        if let Some(Ok(prepared)) = &adoption {
            lose(Way::Adopt, &prepared.plan.losses);
        }
        if let Some(Ok(prepared)) = &migration {
            lose(Way::Migrate, &prepared.plan.losses);
        }
        let name = situation.stack.name().as_str();
        let mut report = Self {
            version: VERSION,
            stack: StackReport::new(situation, before, unanswered),
            portainer: PortainerReport::new(
                situation.base_url,
                situation.endpoint,
                before.portainer_version.clone(),
                &before.environment,
            ),
            adopt: ways.adopt.zip(adoption).map(|(keep, prepared)| {
                adopted(prepared, (name, situation.stack.file()), keep, command)
            }),
            migrate: ways.migrate.zip(migration).map(|(way, prepared)| {
                migration::migrated(prepared, way, (situation, settings), command)
            }),
            losses,
            losses_known,
            recommended: None,
        };
        report.recommended = report.recommend().map(|way| Recommended {
            way,
            command: match way {
                Way::Adopt => {
                    let keep = ways.adopt.map_or_else(Vec::new, Keep::flags);
                    command.with(&[&["adopt", name], keep.as_slice()].concat())
                }
                Way::Migrate => migration::command(situation, settings, ways.migrate, command),
            },
        });
        Ok(report)
    }

    /// `adopt` if nothing prevents it; `migrate` if it is the only way that was asked for. What blocks an adoption, such
    /// as a file that Compose rejects, may also make the create of a migration fail.
    fn recommend(&self) -> Option<Way> {
        if self.has_nothing_to_do() {
            return None;
        }
        let is_open =
            |way: &Option<WayReport>| way.as_ref().is_some_and(|way| way.blockers.is_empty());
        if is_open(&self.adopt) {
            return Some(Way::Adopt);
        }
        (self.adopt.is_none() && is_open(&self.migrate)).then_some(Way::Migrate)
    }

    /// Whether Portainer has the stack as it would be adopted, and all of it runs.
    fn has_nothing_to_do(&self) -> bool {
        self.adopt
            .as_ref()
            .is_some_and(|way| way.request.kind == RequestKind::Nothing && way.blockers.is_empty())
    }

    /// Whether something is lost, or it is unknown what is.
    fn loses(&self, way: Way) -> bool {
        !self.losses_known || self.losses_of(way).next().is_some()
    }

    pub(super) fn losses_of(&self, way: Way) -> impl Iterator<Item = &LossReport> {
        self.losses.iter().filter(move |loss| loss.way == way)
    }

    /// 0 if nothing is lost, 3 if something is, 1 if no way is recommended.
    pub(super) fn exit_code(&self) -> u8 {
        match &self.recommended {
            Some(recommended) if self.loses(recommended.way) => 3,
            Some(_) => 0,
            None if self.has_nothing_to_do() => 0,
            None => 1,
        }
    }
}

/// The requests in the journal (B11), read without a lock. Without a state directory, no run can have sent one.
fn unanswered(situation: &Situation) -> Result<Vec<String>> {
    let Ok(state) = state_folder() else {
        return Ok(Vec::new());
    };
    let place = peers::place(state, situation.stack.name());
    if !place.has_unanswered() {
        return Ok(Vec::new());
    }
    let store = place.open(situation.engine.id().ok().as_deref());
    let requests = store.unanswered()?.into_iter();
    Ok(requests.map(|one| one.request.to_string()).collect())
}

fn unplanned() -> anyhow::Error {
    anyhow::anyhow!("no way was asked for")
}

impl StackReport {
    fn new(situation: &Situation, before: &Before, unanswered: Vec<String>) -> Self {
        let containers = before.all.as_ref();
        Self {
            name: situation.stack.name().to_string(),
            dir: situation.stack.dir_text().to_owned(),
            file: situation.stack.file().to_owned(),
            containers: containers.map(|all| ContainersReport::of(all, situation.tool)),
            portainer_stack: before.record.as_ref().map(PortainerStack::of),
            may_be_unseen: before.may_be_unseen(),
            unanswered,
        }
    }
}

impl ContainersReport {
    pub(super) fn of<'c>(all: impl IntoIterator<Item = &'c Container>, tool: &str) -> Self {
        let mut report = Self {
            all: 0,
            running: 0,
            started_by_portainer: 0,
        };
        for container in all {
            let dir = container.compose_label(tool, "project.working_dir");
            report.all += 1;
            report.running += usize::from(container.state == "running");
            report.started_by_portainer +=
                usize::from(dir.is_some_and(|dir| dir.starts_with(PORTAINER_FOLDERS)));
        }
        report
    }
}

impl PortainerStack {
    pub(super) fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            state: record.deployment.to_string(),
        }
    }
}

impl PortainerReport {
    pub(super) fn new(
        base_url: &BaseUrl,
        environment: i64,
        version: Option<String>,
        engine: &Environment,
    ) -> Self {
        Self {
            url: base_url.to_string(),
            version,
            environment,
            engine: match engine {
                Environment::SameEngine => EngineReport::ThisHost,
                Environment::OtherEngine { .. } => EngineReport::Another,
                Environment::NotFound { .. } => EngineReport::NoEnvironment,
                Environment::Forbidden(_) => EngineReport::Forbidden,
                Environment::OtherSocket(_) => EngineReport::OtherSocket,
                Environment::Unknown(_) => EngineReport::Unknown,
            },
        }
    }
}

impl LossReport {
    fn new(way: Way, loss: &Loss, services: &BTreeMap<String, String>) -> Self {
        let subject = loss.subject();
        let of_container = subject.as_ref().and_then(|subject| services.get(subject));
        Self {
            way,
            service: loss.service().map(str::to_owned).or(of_container.cloned()),
            subject,
            message: loss.message(),
        }
    }
}

/// The service of each container, by the container's name.
fn services_of(before: &Before, tool: &str) -> BTreeMap<String, String> {
    let all = before.all.iter().flatten();
    all.filter_map(|one| {
        let service = one.compose_label(tool, "service")?;
        Some((one.name().to_owned(), service.to_owned()))
    })
    .collect()
}

fn adopted(
    prepared: Result<adopt::Prepared>,
    (name, file): (&str, &str),
    keep: Keep,
    command: &RestoreCommand,
) -> WayReport {
    let written = Keep {
        orphans: false,
        jobs: false,
        ..keep
    };
    let render = ["render", name, "--as", "adopt", "--diff"];
    let diff_command = command.with(&[&render, written.flags().as_slice()].concat());
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return WayReport::impossible(&error, diff_command),
    };
    let notices = prepared.notices(file);
    let source = &prepared.source.compose;
    let rewrite = prepared.rewrite.as_ref().ok();
    let mut warnings = prepared.before.warnings;
    warnings.extend(prepared.plan.warnings);
    WayReport {
        request: RequestReport::of(prepared.plan.request),
        services: prepared
            .plan
            .services
            .into_iter()
            .map(ServiceReport::of)
            .collect(),
        changed_lines: rewrite
            .filter(|_| prepared.combined.is_none())
            .map(|rewrite| diff::changed(source, &rewrite.text)),
        combined_files: prepared.combined.map_or_else(Vec::new, |(files, _)| files),
        diff_command,
        blockers: prepared
            .plan
            .blockers
            .into_iter()
            .map(BlockerReport::of)
            .collect(),
        warnings,
        notices,
    }
}

impl WayReport {
    /// A way that cannot be planned.
    fn impossible(error: &anyhow::Error, diff_command: String) -> Self {
        Self {
            request: RequestReport {
                kind: RequestKind::Unknown,
                portainer_stack: None,
            },
            services: Vec::new(),
            changed_lines: None,
            combined_files: Vec::new(),
            diff_command,
            blockers: vec![BlockerReport::of_error(error)],
            warnings: Vec::new(),
            notices: Vec::new(),
        }
    }
}

impl RequestReport {
    pub(super) fn of(request: Request) -> Self {
        let (kind, portainer_stack) = match request {
            Request::Create => (RequestKind::Create, None),
            Request::Update(id) => (RequestKind::Update, Some(id)),
            Request::Nothing(id) => (RequestKind::Nothing, Some(id)),
        };
        Self {
            kind,
            portainer_stack,
        }
    }
}

impl ServiceReport {
    pub(super) fn of(plan: ServicePlan) -> Self {
        let kind = match &plan.fate {
            Fate::Unchanged => FateKind::Unchanged,
            Fate::Recreated(_) => FateKind::Recreated,
            Fate::Restarted(_) => FateKind::Restarted,
            Fate::Started(_) => FateKind::Started,
            Fate::LeftBehind(_) => FateKind::LeftBehind,
            Fate::Unknown(_) => FateKind::Unknown,
        };
        let interruption = match (kind, plan.stop_grace) {
            (FateKind::Recreated | FateKind::Restarted, Some(_)) => Interruption::Once,
            (FateKind::Unknown, Some(_)) => Interruption::Maybe,
            _ => Interruption::None,
        };
        Self {
            fate: FateReport {
                kind,
                reason: plan.fate.reason().map(str::to_owned),
            },
            service: plan.service,
            containers: plan.containers,
            interruption,
            stop_seconds: plan.stop_grace,
        }
    }
}

impl BlockerReport {
    pub(super) fn of_error(error: &anyhow::Error) -> Self {
        Self {
            message: format!("{error:#}"),
            details: Failure::details_of(error).map_or_else(Vec::new, lines),
            hint: Failure::hint_of(error).unwrap_or_default().to_owned(),
        }
    }

    pub(super) fn of(blocker: Blocker) -> Self {
        Self {
            message: blocker.message,
            details: blocker.details,
            hint: blocker.hint,
        }
    }

    fn of_refusal(refusal: &Refusal, stack: &str) -> Self {
        Self {
            message: refusal.to_string(),
            details: refusal.details().as_deref().map_or_else(Vec::new, lines),
            hint: refusal.hint(stack),
        }
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}
