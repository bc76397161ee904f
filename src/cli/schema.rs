//! `stacklift schema`: the JSON schema of the outputs.

use anyhow::Result;
use schemars::JsonSchema;

use super::{Console, config::Config};
use crate::report::{
    AdoptReport, AllReport, DoctorReport, ExportReport, ListReport, PlanReport, PlansReport,
    SnapshotsReport,
};

/// The schema of each output is in `$defs`, once.
#[derive(JsonSchema)]
#[schemars(
    title = "The outputs of stacklift with `--output json`",
    rename_all = "kebab-case"
)]
#[expect(dead_code, reason = "only the schema is used")]
struct Outputs {
    /// Of `plan`, `adopt --dry-run` and `migrate --dry-run`.
    plan: PlanReport,
    /// Of `plan` with several names, or with a pattern.
    plans: PlansReport,
    list: ListReport,
    adopt: AdoptReport,
    /// Of `adopt --all`, and of `adopt` with several names.
    adopt_all: AllReport,
    /// Of `restore --list`.
    snapshots: SnapshotsReport,
    export: ExportReport,
    doctor: DoctorReport,
    config: Config,
}

pub(super) fn run(console: &Console) -> Result<()> {
    console.json(&schemars::schema_for!(Outputs))
}
