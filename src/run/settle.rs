//! Waits until Portainer has finished the requests that no run saw the end of (B11).
//!
//! A request outlives its client (M21). Three things show its end: the Portainer stack, the processes in Portainer's own
//! container, and otherwise that nothing of the stack has changed for a while.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::{Event, Run, requests::Open};
use crate::{
    failure::Failure,
    model::{Container, Deployment, Record, portainer_name, projects_of},
    portainer::{self, may_respond},
    snapshot::{RequestKind, SentRequest, Unanswered},
};

/// How long nothing may change until a request counts as finished. Portainer gives the containers of a delete 10 s to
/// stop (M04), and nothing changes while it waits for them.
const QUIET: Duration = Duration::from_secs(15);
/// What is added to a longer grace period of a container.
const AFTER_GRACE: Duration = Duration::from_secs(5);
/// The longest pause between two observations.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause before Portainer or the engine is asked again that did not respond, and how long it may take until that is told.
const RETRY: Duration = Duration::from_millis(200);
const TOLD_AFTER: Duration = Duration::from_secs(5);

/// Who can say whether a request has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Witness {
    PortainerAndEngine,
    /// Portainer does not respond (B19).
    EngineAlone,
}

/// What exists of the stack at one moment. Two equal observations mean that nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look {
    /// The records with the stack's name; `None` if Portainer is not asked.
    records: Option<Vec<Record>>,
    /// ID and state of each container.
    containers: Vec<(String, String)>,
    /// What shows that Portainer is working on it.
    busy: Option<String>,
}

impl Run<'_> {
    /// Reads the journal, so that the state names the unanswered requests from the start. If that fails, the run stops when
    /// it waits for them.
    pub(super) fn look_for_unanswered(&mut self) {
        if !self.setup.place.has_unanswered() {
            return;
        }
        let entries = self.store().unanswered().unwrap_or_default();
        self.set_open(&entries);
    }

    /// Sets the requests that are not known to have finished. What Portainer has accepted in this run stays accepted.
    fn set_open(&mut self, entries: &[Unanswered]) {
        let known = std::mem::take(&mut self.open);
        let open = entries.iter().map(|entry| {
            let known = known.iter().find(|request| request.entry == *entry);
            Open {
                is_own: known.is_some_and(|one| one.is_own),
                accepted: known.is_some_and(|one| one.accepted),
                entry: entry.clone(),
            }
        });
        self.open = open.collect();
        self.report_state();
    }

    /// The same for a run that has sent nothing yet. If Portainer does not respond, the hint names what does not need it.
    pub fn settle_earlier(&mut self) -> Result<()> {
        let settled = self.settle(Witness::PortainerAndEngine);
        settled.map_err(|error| {
            let Some(way) = self.without_portainer(&error) else {
                return error;
            };
            let what = "Portainer may still be working on the stack";
            Failure::with_way(what, error, &way).into()
        })
    }

    /// How to restore the containers if Portainer does not respond, which is the reason of `error` (B19).
    fn without_portainer(&self, error: &anyhow::Error) -> Option<String> {
        error.downcast_ref::<portainer::Error>()?;
        let mut requests = self.open.iter().map(|open| &open.entry.request);
        let request = requests.find(|request| request.snapshot.is_some())?;
        let command = self.command(&["restore", &request.stack, "--engine-only"]);
        Some(format!(
            "to restore the containers without Portainer, run `{command}`"
        ))
    }

    /// Waits until every request in the journal has finished, and removes it from there. Fails if that cannot be known
    /// within the time limit.
    ///
    /// The engine alone cannot show the end: a Portainer that hangs may continue later. The requests then stay in the
    /// journal and in [`Self::unanswered`].
    pub fn settle(&mut self, witness: Witness) -> Result<()> {
        if !self.setup.place.has_unanswered() {
            return Ok(());
        }
        let entries = self.store().unanswered()?;
        if entries.is_empty() {
            return Ok(());
        }
        self.set_open(&entries);
        for open in &self.open {
            let doing = open.entry.request.doing();
            let what = if open.is_own {
                format!("this run was {doing}, and the outcome is unknown")
            } else {
                format!("an interrupted run was {doing}")
            };
            // Nothing else shows the end of these.
            let until = match open.entry.request.kind {
                RequestKind::Create | RequestKind::Delete => String::new(),
                RequestKind::Update | RequestKind::Stop => format!(
                    ", until nothing of the stack has changed for at least {} s",
                    QUIET.min(self.setup.timeout / 4).as_secs_f32()
                ),
            };
            let warning = format!("{what}; waiting for Portainer to finish{until}");
            (self.listener)(Event::Warning(warning));
        }
        self.wait(match witness {
            Witness::PortainerAndEngine => "waiting for Portainer to finish",
            Witness::EngineAlone => "waiting until the stack no longer changes",
        });
        let requests: Vec<SentRequest> =
            entries.iter().map(|entry| entry.request.clone()).collect();
        let quiet = self.wait_until_settled(&requests, witness)?;
        if witness == Witness::EngineAlone {
            self.detail("waited", "until the stack no longer changed");
            return Ok(());
        }
        for entry in &entries {
            self.store().forget(entry)?;
        }
        self.open.clear();
        self.report_state();
        let evidence = match quiet {
            None => "until Portainer had finished".to_owned(),
            Some(period) => format!(
                "until the stack had not changed for {} s: it is assumed that Portainer has finished",
                period.as_secs_f32().round().max(1.0)
            ),
        };
        self.detail("waited", evidence);
        Ok(())
    }

    /// Returns for how long nothing of the stack has changed; `None` if the Portainer stack shows that the requests have
    /// finished, because it exists or is gone.
    fn wait_until_settled(
        &mut self,
        requests: &[SentRequest],
        witness: Witness,
    ) -> Result<Option<Duration>> {
        let started = Instant::now();
        let timeout = self.setup.timeout;
        let portainer = self.portainer_containers();
        let base_url = self.setup.base_url.to_string();
        let mut last: Option<Look> = None;
        let mut changed = started;
        let mut quiet = QUIET;
        let (mut silent_since, mut is_told) = (None, false);
        loop {
            // Before this run has sent anything, a Portainer that does not respond stops it at once (B19).
            let waits = last.is_some() || self.open.iter().any(|open| open.is_own);
            let look = match self.look(requests, &portainer, witness) {
                Err(error)
                    if waits && may_respond(&error) && started.elapsed() + RETRY < timeout =>
                {
                    if silent_since.is_none() {
                        self.wait("waiting until Portainer and Docker respond");
                    }
                    let silent = *silent_since.get_or_insert_with(Instant::now);
                    if !is_told && silent.elapsed() > TOLD_AFTER {
                        is_told = true;
                        let how_long = format!(
                            "{error:#}; waiting until it responds, for up to {} s. Ctrl-C is safe: the next run waits again",
                            timeout.as_secs()
                        );
                        let way = self.without_portainer(&error);
                        self.warn(
                            way.into_iter()
                                .fold(how_long, |told, way| told + "; " + &way),
                        );
                    }
                    thread::sleep(RETRY);
                    continue;
                }
                look => look?,
            };
            if silent_since.take().is_some() {
                self.wait("waiting for Portainer to finish");
            }
            if is_over(requests, &look, &base_url) && self.sees_the_end(requests) {
                return Ok(None);
            }
            if look.busy.is_some() || last.as_ref() != Some(&look) {
                changed = Instant::now();
                quiet = self.quiet_period(&look).min(timeout / 4);
            } else if changed.elapsed() >= quiet {
                return Ok(Some(quiet));
            }
            let pause = (quiet / 8).min(PAUSE);
            if started.elapsed() + pause > timeout {
                return Err(unsettled(requests, &look, started.elapsed()).into());
            }
            // Portainer itself reports the end of these deployments (N01).
            let records = look.records.iter().flatten();
            for record in records.filter(|record| record.deployment == Deployment::Deploying) {
                self.portainer.wait_for_deployment(&record.id)?;
            }
            last = Some(look);
            thread::sleep(pause);
        }
    }

    /// Whether a Portainer stack that the API key does not see is gone (B24), if that shows the end of a request.
    fn sees_the_end(&self, requests: &[SentRequest]) -> bool {
        requests.iter().all(|request| {
            request.kind == RequestKind::Create
                || self.portainer.rights(request.endpoint).see_every_stack()
        })
    }

    fn look(
        &self,
        requests: &[SentRequest],
        portainer: &[Container],
        witness: Witness,
    ) -> Result<Look> {
        let undetermined = "cannot determine whether Portainer has finished";
        let records = match witness {
            Witness::EngineAlone => None,
            Witness::PortainerAndEngine => {
                let listed = requests.iter().map(|request| {
                    let (stack, project) = (&request.stack, portainer_name(&request.stack));
                    self.portainer.records(request.endpoint, stack, &project)
                });
                let records = listed.collect::<Result<Vec<_>>>();
                Some(records.context(undetermined)?.concat())
            }
        };
        let stacks = requests.iter().map(|request| &*request.stack);
        let projects: BTreeSet<String> = stacks.flat_map(projects_of).collect();
        let listed = projects.iter().map(|project| self.engine.list(project));
        let containers = listed.collect::<Result<Vec<_>>>();
        let containers = containers.context(undetermined)?.concat();
        let deploying = records.iter().flatten().find_map(deploying);
        let busy = deploying
            .or_else(|| self.process_in(portainer))
            .or_else(|| containers.iter().find_map(transient));
        Ok(Look {
            records,
            containers: containers.iter().map(Container::id_and_state).collect(),
            busy,
        })
    }

    /// The containers on this engine that run Portainer.
    fn portainer_containers(&self) -> Vec<Container> {
        let base_url = &self.setup.base_url;
        let port = base_url.is_this_host().then(|| base_url.port());
        let all = self.engine.list_all().unwrap_or_default().into_iter();
        let running = all.filter(|container| {
            container.status() == "running" && container.runs_portainer(port).is_some()
        });
        asked(running.collect(), port)
    }

    /// A Compose process in Portainer's container. A process of another stack counts as well: a create may be waiting
    /// for it (M21).
    fn process_in(&self, portainer: &[Container]) -> Option<String> {
        portainer.iter().find_map(|container| {
            let processes = self.engine.top(container.id()).ok()?;
            let mut compose = processes.iter().filter(|line| line.contains("compose"));
            let command = compose.find_map(|line| Some(&line[line.find("--project-name")?..]))?;
            let name = container.name();
            Some(format!("Compose is running in container {name}: {command}"))
        })
    }

    /// How long nothing may change, for these containers: longer than the longest time that one has to stop.
    fn quiet_period(&self, look: &Look) -> Duration {
        let ids = look.containers.iter().map(|(id, _)| id);
        let inspected = self.engine.inspect_containers(ids).unwrap_or_default();
        let graces = inspected.iter().map(Container::stop_grace);
        let longest = Duration::from_secs(graces.max().flatten().unwrap_or_default().into());
        QUIET.max(longest + AFTER_GRACE)
    }
}

/// Those that may be the Portainer at this port of this host: if one of them certainly is, no other one.
fn asked(mut portainers: Vec<Container>, port: Option<u16>) -> Vec<Container> {
    let is_asked = |one: &Container| {
        one.runs_portainer(None).is_some() && port.is_some_and(|port| one.publishes(port))
    };
    if portainers.iter().any(is_asked) {
        portainers.retain(is_asked);
    }
    portainers
}

/// Whether the Portainer stack alone shows that the request has finished. Only a single request to this Portainer can be
/// judged so: with two creates, the Portainer stack of the first says nothing about the second.
///
/// The status of a Portainer stack that exists before and after, as with an update, proves nothing: older versions of
/// Portainer keep it active during the update (M06).
fn is_over(requests: &[SentRequest], look: &Look, base_url: &str) -> bool {
    let ([request], Some(records), None) = (requests, &look.records, &look.busy) else {
        return false;
    };
    if request.base_url != base_url {
        return false;
    }
    match request.kind {
        // Older versions list it only when Compose has finished (M21), newer ones with the status of the deployment
        // (N01), which is not busy here.
        RequestKind::Create => records
            .iter()
            .any(|record| record.endpoint_id == request.endpoint),
        RequestKind::Delete => records
            .iter()
            .all(|record| request.record.as_ref() != Some(&record.id)),
        RequestKind::Update | RequestKind::Stop => false,
    }
}

fn deploying(record: &Record) -> Option<String> {
    (record.deployment == Deployment::Deploying)
        .then(|| format!("Portainer stack {} is still deploying", record.id))
}

/// A state that ends by itself. While Compose waits for a health check, nothing else changes.
fn transient(container: &Container) -> Option<String> {
    let name = container.name();
    if container.status() == "removing" {
        return Some(format!("container {name} is being removed"));
    }
    let starts = container.health() == Some("starting");
    starts.then(|| format!("the health check of container {name} has not finished"))
}

fn unsettled(requests: &[SentRequest], look: &Look, after: Duration) -> Failure {
    let busy = look.busy.as_deref();
    let why = busy.unwrap_or("the stack is still changing");
    let requests: Vec<String> = requests.iter().map(ToString::to_string).collect();
    Failure::new(format!(
        "the outcome of {} is still unknown after {} s: {why}",
        requests.join(" and "),
        after.as_secs()
    ))
    .hint("check the stack in Portainer, then run the command again when it is idle; use --timeout for a longer limit")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(kind: RequestKind) -> SentRequest {
        SentRequest {
            kind,
            stack: "web".to_owned(),
            record: (kind != RequestKind::Create).then(|| "7".to_owned()),
            endpoint: 1,
            base_url: "https://h".to_owned(),
            sent: String::new(),
            snapshot: None,
            last_sent: None,
        }
    }

    fn look(ids: &[&str]) -> Look {
        Look {
            records: Some(ids.iter().map(|id| Record::with_id(id)).collect()),
            containers: Vec::new(),
            busy: None,
        }
    }

    #[test]
    fn b11_the_portainer_stack_shows_the_end_of_a_create_and_a_delete() {
        use RequestKind::{Create, Delete, Update};
        for (kind, ids, environment, over) in [
            (Create, &[][..], 1, false),
            (Create, &["8"], 1, true),
            (Create, &["8"], 2, false),
            (Delete, &["7"], 1, false),
            (Delete, &[], 1, true),
            (Update, &["7"], 1, false),
        ] {
            let mut look = look(ids);
            for record in look.records.iter_mut().flatten() {
                record.endpoint_id = environment;
            }
            let one = &[request(kind)][..];
            let found = is_over(one, &look, "https://h");
            assert_eq!(found, over, "{kind} {ids:?} {environment}");
            assert!(!is_over(&[one, one].concat(), &look, "https://h"));
            assert!(!is_over(one, &look, "https://other"));
            let busy = Look {
                busy: Some(String::new()),
                ..look
            };
            assert!(!is_over(one, &busy, "https://h"));
        }
    }

    #[test]
    fn b11_compose_of_another_portainer_on_this_engine_does_not_count() {
        let container = |name: &str, image: &str, port: u16| {
            let ports = json!({"9443/tcp": [{"HostPort": port.to_string()}]});
            let settings = json!({"Ports": ports});
            Container(
                json!({"Name": name, "Config": {"Image": image}, "NetworkSettings": settings}),
            )
        };
        let names = |all: &[Container], port| -> Vec<String> {
            let all = asked(all.to_vec(), port).into_iter();
            all.map(|one| one.name().to_owned()).collect()
        };
        let own = container("own", "portainer/portainer-ce", 9443);
        let other = container("other", "portainer/portainer-ce", 9444);
        let proxy = container("proxy", "traefik", 443);
        let all = [own, other, proxy];
        assert_eq!(names(&all, Some(9443)), ["own"]);
        // Each may be behind the proxy.
        assert_eq!(names(&all, Some(443)), ["own", "other", "proxy"]);
        assert_eq!(names(&all, None), ["own", "other", "proxy"]);
    }

    #[test]
    fn a_container_that_starts_its_health_check_or_goes_away_is_busy() {
        let container = |state: &str, health: &str| {
            Container(json!({"State": {"Status": state, "Health": {"Status": health}}}))
        };
        assert!(transient(&container("running", "starting")).is_some());
        assert!(transient(&container("removing", "")).is_some());
        assert!(transient(&container("running", "healthy")).is_none());
        let restarting = container("restarting", "").id_and_state();
        assert_eq!(restarting, container("running", "").id_and_state());
    }
}
