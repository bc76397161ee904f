//! The format of a report: what `--output json` prints. `docs/schemas/plan-v1.json` is its schema.

use schemars::JsonSchema;
use serde::Serialize;

/// What `stacklift plan --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift plan --output json`")]
pub(in crate::cli) struct Report {
    /// The version of this format: 1.
    pub version: u32,
    pub stack: StackReport,
    pub portainer: PortainerReport,
    /// What `stacklift adopt` would do; null if only `migrate` was asked for.
    pub adopt: Option<WayReport>,
    /// What `stacklift migrate` would do; null if only `adopt` was asked for.
    pub migrate: Option<WayReport>,
    /// Everything that will be lost, as far as it is known.
    pub losses: Vec<LossReport>,
    /// Whether the containers could be inspected and the Compose file could be parsed. Otherwise it is unknown what the
    /// stack loses.
    pub losses_known: bool,
    /// The way that loses the least; null if there is nothing to do, or if every way is blocked.
    pub recommended: Option<Recommended>,
}

/// The stack as it is now.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct StackReport {
    pub name: String,
    /// The stack's directory, absolute.
    pub dir: String,
    /// The Compose file in that directory.
    pub file: String,
    /// Its containers; null if they could not be listed.
    pub containers: Option<ContainersReport>,
    /// The Portainer stack of this name in the environment.
    pub portainer_stack: Option<PortainerStack>,
    /// Whether one may exist that the API key does not see (B24).
    #[serde(skip)]
    pub may_be_unseen: bool,
    /// The requests of earlier runs whose end is unknown. Every run first waits until Portainer has finished them.
    #[serde(default)]
    pub unanswered: Vec<String>,
}

/// The containers of the stack.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ContainersReport {
    pub all: usize,
    pub running: usize,
    /// Those that Portainer started.
    pub started_by_portainer: usize,
}

/// A Portainer stack.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PortainerStack {
    pub id: String,
    /// `active`, `inactive`, `still deploying` or `in error`.
    pub state: String,
}

/// Portainer, and the environment in which the stack would be created.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct PortainerReport {
    pub url: String,
    /// Its version; null if it is unknown.
    pub version: Option<String>,
    /// The ID of the environment.
    pub environment: i64,
    pub engine: EngineReport,
}

/// The engine of the environment.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum EngineReport {
    /// It is the engine of this host.
    ThisHost,
    Another,
    /// Portainer has no such environment.
    NoEnvironment,
    /// The API key is not allowed to use the environment.
    Forbidden,
    /// It is reached through a socket that Portainer's Compose does not use.
    OtherSocket,
    /// It is unknown which engine it is.
    Unknown,
}

/// A way into Portainer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum Way {
    Adopt,
    Migrate,
}

/// What one way would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct WayReport {
    /// What Portainer is asked to do.
    pub request: RequestReport,
    /// What happens to each service; empty if that cannot be worked out.
    pub services: Vec<ServiceReport>,
    /// How many lines of the Compose file change; null if it cannot be rewritten, or if `combined_files` is not empty.
    pub changed_lines: Option<usize>,
    /// The Compose files that Compose resolved into one text; empty if the Compose file is edited in place.
    #[serde(default)]
    pub combined_files: Vec<String>,
    /// The command that shows the changes of the Compose file.
    pub diff_command: String,
    /// Every reason why this way is refused.
    pub blockers: Vec<BlockerReport>,
    /// What may go wrong, or could not be checked.
    pub warnings: Vec<String>,
    /// What to know before a later change or deployment.
    #[serde(default)]
    pub notices: Vec<String>,
}

/// What Portainer is asked to do.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct RequestReport {
    pub kind: RequestKind,
    /// The ID of the Portainer stack that exists.
    pub portainer_stack: Option<String>,
}

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum RequestKind {
    /// To create a Portainer stack.
    Create,
    /// To update the Portainer stack.
    Update,
    /// To delete the Portainer stack, then to create another one.
    Replace,
    /// Nothing: the Portainer stack has the same text and variables.
    Nothing,
    /// Nothing: the plan could not be made.
    Unknown,
}

/// What happens to a service.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct ServiceReport {
    pub service: String,
    /// The names of its containers.
    pub containers: Vec<String>,
    pub fate: FateReport,
    pub interruption: Interruption,
    /// How long the engine waits at most for a running container to stop before it kills it, in seconds; null if none is
    /// replaced, or if it is killed at once.
    pub stop_seconds: Option<u32>,
}

/// The fate of a service, and why.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct FateReport {
    pub kind: FateKind,
    pub reason: Option<String>,
}

/// What happens to the containers of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum FateKind {
    /// They are not touched.
    Unchanged,
    /// They are replaced once.
    Recreated,
    /// They stay, and are stopped and started again.
    Restarted,
    /// The service does not run completely now, and will.
    Started,
    /// They are removed and not replaced.
    Removed,
    /// They stay as they are, and Portainer does not update them.
    LeftBehind,
    /// It cannot be known.
    Unknown,
}

/// Whether a service that runs is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum Interruption {
    None,
    /// Until its containers have stopped and started again.
    Once,
    /// It is unknown whether.
    Maybe,
    /// It does not run afterwards.
    ForGood,
}

/// A reason why a way is refused, and the way out.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct BlockerReport {
    pub message: String,
    pub details: Vec<String>,
    pub hint: String,
}

/// Something that will be lost.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct LossReport {
    pub way: Way,
    /// The service that it belongs to, if it belongs to one.
    pub service: Option<String>,
    /// What loses it: `service web`, the name of a container, `Portainer stack`; null for the whole stack.
    pub subject: Option<String>,
    pub message: String,
}

/// The recommended command.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Recommended {
    pub way: Way,
    /// The command, quoted for a shell, with every setting that is not the default.
    pub command: String,
}
