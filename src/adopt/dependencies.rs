//! What the deployment waits for is waited for before it is sent: if it fails, every container is removed (M06, B20).

use std::{collections::BTreeSet, slice, time::Instant};

use anyhow::Result;

use super::{Adoption, Prepared};
use crate::{
    after::{Limits, wait_for},
    failure::Failure,
    model::{Condition, Container},
    plan::{Awaited, Plan, Readiness, Until},
    run::State,
    text::printable,
};

impl Adoption<'_, '_> {
    /// Waits for the dependencies that do not meet their conditions yet, and plans again then.
    pub(super) fn wait_for_dependencies(&mut self, prepared: Prepared) -> Result<Prepared> {
        let plan = &prepared.plan;
        let is_pending = |one: &Awaited| one.until == Until::Pending;
        if plan.readiness != Readiness::Ready || !plan.awaited.iter().any(is_pending) {
            return Ok(prepared);
        }
        self.wait_for_each(&plan.awaited, is_pending)?;
        self.prepare()
    }

    /// Right before the request: runs the jobs that the deployment runs again, and looks at each other dependency once more.
    pub(super) fn check_dependencies(&mut self, plan: &Plan) -> Result<()> {
        let mut ran = BTreeSet::new();
        for job in &plan.awaited {
            if job.until == Until::Rerun && ran.insert(job.id.as_str()) {
                let name = printable(&job.container);
                self.run.wait(format!("running {name}"));
                self.run.set_state(State::new(format!(
                    "this run started the job {name}, which is still running, and sent nothing to Portainer"
                )));
                self.run.engine.start(&job.id)?;
                let ended = self.wait_for_each(slice::from_ref(job), |_| true);
                let found = self.run.engine.inspect_containers([&job.id]);
                if found.is_ok_and(|found| !found.iter().any(Container::is_running)) {
                    let what = "this run ran jobs of the stack, and sent nothing to Portainer";
                    self.run.set_state(State::new(what));
                }
                ended?;
                self.run.detail("ran", format!("{name}: it succeeded"));
            }
        }
        self.wait_for_each(&plan.awaited, |awaited| awaited.until != Until::Rerun)
    }

    /// Waits until each chosen container meets its condition, up to `--wait`.
    fn wait_for_each(
        &mut self,
        all: &[Awaited],
        is_chosen: impl Fn(&Awaited) -> bool,
    ) -> Result<()> {
        let now = Instant::now();
        let limits = Limits {
            deadline: now + self.a.wait,
            unhealthy: now,
            option: "--wait",
        };
        for one in all.iter().filter(|awaited| is_chosen(awaited)) {
            let name = printable(&one.container);
            if one.until == Until::Pending {
                self.run.wait(format!("waiting for {name}"));
            }
            let container = (one.id.as_str(), one.container.as_str());
            if let Err(error) = wait_for(self.run.engine, container, one.condition, limits) {
                if !one.required && Instant::now() < limits.deadline {
                    // Portainer's Compose waits no longer either.
                    continue;
                }
                return Err(Failure::new(format!(
                    "service {} waits for {name}, so the deployment would fail: {error:#}",
                    printable(&one.service)
                ))
                .hint(match one.condition {
                    Condition::Completed => format!(
                        "fix the job, run it with `{} start {name}`, then run the command again",
                        self.at.tool
                    ),
                    _ => "fix the container, then run the command again".to_owned(),
                })
                .into());
            }
        }
        Ok(())
    }
}
