//! What a deployment waits for: the conditions of `depends_on`, also of services whose containers run unchanged (M05).
//!
//! If a condition is not met, the deployment fails, and every container is removed (M06, B20).

use crate::{
    compose::{Dependency, Project, Service},
    finding::Finding,
    model::{Condition, Container},
    plan::{Facts, Fate, Plan, service::inspected},
};

/// A container that a deployment waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// The service that depends on it.
    pub service: String,
    /// The container's ID.
    pub id: String,
    /// The container's name.
    pub container: String,
    pub condition: Condition,
    /// Whether the deployment fails if the condition is not met. If not, it continues, but only once that is certain.
    pub required: bool,
    pub until: Until,
}

/// Whether a container meets its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It does.
    Met,
    /// It does not yet: it is starting, or a job that is running.
    Pending,
    /// It is a job that has succeeded, or that never ran: a restore recreates it so. The deployment runs it (N08), and it has
    /// to succeed.
    Rerun,
}

impl Plan {
    /// Checks what the deployment waits for. A container that no longer can meet its condition is a blocker.
    pub fn check_dependencies(&mut self, facts: &Facts, project: &Project) {
        let mut unmet = Vec::new();
        for service in &project.services {
            // With `scale: 0`, it waits all the same.
            if service.text(&["deploy", "replicas"]).as_deref() == Some("0") {
                continue;
            }
            for (name, awaited) in &service.depends_on {
                let found = project.service(name).filter(|found| found.replicas() > 0);
                if let Some(found) = found.filter(|_| awaited.condition != Condition::Started) {
                    unmet.extend(self.check_one(facts, service, found, awaited));
                }
            }
        }
        if !unmet.is_empty() {
            for service in &mut self.services {
                service.may_stop(facts, Fate::unknown("the deployment would fail"));
            }
        }
        let what = "services wait for a condition that is not met: the deployment would fail";
        let hint = "fix these containers, or change `depends_on` in the Compose file; if the file has the fix already, run `docker compose up -d` first";
        let blocker = Finding::about(unmet, what, hint);
        self.blockers
            .extend(blocker.map(|blocker| blocker.short("dependency not ready")));
    }

    /// Returns why the condition of a dependency is not met, for each of its containers.
    fn check_one(
        &mut self,
        facts: &Facts,
        service: &Service,
        dependency: &Service,
        awaited: &Dependency,
    ) -> Vec<String> {
        let (condition, required) = (awaited.condition, awaited.required);
        let (own, name) = (&service.name, &dependency.name);
        let mut services = self.services.iter();
        let planned = services.find(|service| service.service == dependency.name);
        let found = planned.map(|service| inspected(facts, &service.containers));
        let containers = found.unwrap_or_default();
        let is_new = containers.is_empty()
            || planned.is_some_and(|service| matches!(service.fate, Fate::Recreated(_)));
        let (until, fails) = match condition {
            Condition::Completed => ("succeeds", "fails"),
            Condition::Started | Condition::Healthy => ("is healthy", "does not become healthy"),
        };
        let mut unmet = Vec::new();
        if required
            && is_new
            && condition == Condition::Healthy
            && has_health_check(facts, dependency) == Some(false)
        {
            return vec![format!(
                "service {own} waits until {name} is healthy: {name} has no health check"
            )];
        }
        if required && is_new {
            self.warn(format!(
                "if the new container of {name} {fails}, {own} is not started and the deployment fails"
            ));
        }
        for container in containers {
            let shown = container.name();
            let state = match look(container, condition) {
                // It is about the container that goes.
                Err(Unmet::NoHealthCheck) | Ok(Until::Rerun) if is_new => continue,
                // The deployment starts it first.
                Err(Unmet::NotRunning) if self.is_stopped => continue,
                Ok(Until::Rerun) if self.is_stopped && container.has_never_run() => continue,
                Err(why) if required || matches!(why, Unmet::NeverEnds) => {
                    let again = match why {
                        Unmet::Failed(_) => {
                            format!("; to run it again: `{} start {shown}`", facts.tool)
                        }
                        _ => String::new(),
                    };
                    unmet.push(format!(
                        "service {own} waits until {name} {until}: {shown} {why}{again}"
                    ));
                    continue;
                }
                // Compose says that it skips it.
                Err(_) => continue,
                Ok(Until::Rerun) if !required => continue,
                Ok(state) => state,
            };
            match state {
                Until::Met => {}
                Until::Pending => self.warn(format!(
                    "service {own} waits until {name} {until}: `adopt` waits for that before it sends anything"
                )),
                Until::Rerun => self.warn(format!(
                    "{name} runs twice, because service {own} waits until it {until}: first by `adopt`, which sends nothing if it fails, then by the deployment"
                )),
            }
            self.awaited.push(Awaited {
                service: service.name.clone(),
                id: container.id().to_owned(),
                container: container.name().to_owned(),
                condition,
                required,
                until: state,
            });
        }
        unmet
    }
}

/// What may fail again after a create, as warnings (B06): a container that failed to start the last time, and a dependency that
/// is not what its service waits for.
pub fn doubts(facts: &Facts, project: &Project) -> Vec<String> {
    let mut doubts = Vec::new();
    for service in &project.services {
        doubts.extend(facts.of_service(&service.name).filter_map(|container| {
            let (name, why) = (container.name(), container.start_error()?);
            Some(format!(
                "the deployment may fail: {name} failed to start the last time: {why}"
            ))
        }));
        for (name, dependency) in service.depends_on.iter().filter(|(_, one)| one.required) {
            for container in facts.of_service(name) {
                if let Err(why @ (Unmet::Unhealthy | Unmet::Failed(_))) =
                    look(container, dependency.condition)
                {
                    let (service, name) = (&service.name, container.name());
                    doubts.push(format!(
                        "the deployment may fail: {service} depends on {name}, which {why}"
                    ));
                }
            }
        }
    }
    doubts
}

/// Why a container does not meet a condition, and will not by itself.
#[derive(Debug, thiserror::Error)]
enum Unmet {
    #[error("has no health check")]
    NoHealthCheck,
    #[error("is unhealthy")]
    Unhealthy,
    #[error("is not running")]
    NotRunning,
    #[error("never ends: its restart policy starts it again")]
    NeverEnds,
    #[error("exited with code {0}")]
    Failed(i64),
}

fn look(container: &Container, condition: Condition) -> Result<Until, Unmet> {
    match condition {
        Condition::Started => Ok(Until::Met),
        Condition::Healthy if !container.is_running() => Err(Unmet::NotRunning),
        Condition::Healthy => match container.health() {
            None => Err(Unmet::NoHealthCheck),
            Some("unhealthy") => Err(Unmet::Unhealthy),
            Some("healthy") => Ok(Until::Met),
            Some(_) => Ok(Until::Pending),
        },
        Condition::Completed if container.is_kept_running() => Err(Unmet::NeverEnds),
        Condition::Completed => match container.exit_code() {
            Some(0) => Ok(Until::Rerun),
            Some(code) => Err(Unmet::Failed(code)),
            None if container.is_running() => Ok(Until::Pending),
            None if container.has_never_run() => Ok(Until::Rerun),
            None => Err(Unmet::NotRunning),
        },
    }
}

/// Whether a new container of a service has a health check: as the text says, or else its image. `None` if the image is not
/// known.
fn has_health_check(facts: &Facts, service: &Service) -> Option<bool> {
    let is_none = |test: &str| test == "NONE";
    if let Some(check) = service.get("healthcheck") {
        let test = &check["test"];
        let first = test.get(0).unwrap_or(test).as_str();
        if check["disable"] == true || first.is_some_and(is_none) {
            return Some(false);
        }
        if !test.is_null() {
            return Some(true);
        }
    }
    let image = facts.host.image(service.image.as_ref()?)?;
    let test = image["Config"]["Healthcheck"]["Test"][0].as_str();
    Some(test.is_some_and(|test| !test.is_empty() && !is_none(test)))
}
