//! What happened to each container, from the inspect objects before and now.
//!
//! Invariant: pure; reads inspect JSON.
#![deny(clippy::disallowed_methods)]

use std::{collections::BTreeSet, fmt, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::difference::{Creator, Difference};
use crate::{
    engine::ContainerEvent,
    model::Container,
    portainer,
    report::Change,
    snapshot::Snapshot,
    text::{down, listed},
};

/// The containers of a stack, as the engine inspected them at a time.
#[derive(Clone, Copy, Default)]
pub struct Ran<'a> {
    pub containers: &'a [Container],
    pub at: DateTime<Utc>,
}

/// A container before and now.
#[derive(Clone, Copy)]
pub struct Compared<'a> {
    pub change: Change,
    pub before: Option<&'a Container>,
    pub now: Option<&'a Container>,
    /// Whether it ran in a restart loop before. It may do so now as well (B28).
    pub looped: bool,
}

impl<'a> Compared<'a> {
    /// A container that was inspected at this time, and what exists of it now.
    pub fn new(before: &'a Container, now: Option<&'a Container>, at: DateTime<Utc>) -> Self {
        let looped = before.is_in_loop(at);
        Self {
            change: now.map_or(Change::Missing, |now| change(before, now, looped)),
            before: Some(before),
            now,
            looped,
        }
    }

    /// The inspect object that exists: the current one, otherwise the previous one.
    fn any(self) -> Option<&'a Container> {
        self.now.or(self.before)
    }

    pub fn name(self) -> &'a str {
        self.any().map_or("", Container::name)
    }

    /// The service that it belongs to.
    pub fn service(self, tool: &str) -> &'a str {
        let service = self
            .any()
            .and_then(|container| container.compose_label(tool, "service"));
        service.unwrap_or_default()
    }

    /// How long an original container was down, from the signal to stop of the old one, or its exit if its restart policy started
    /// it again, to the start of the one that runs now. `None` if that is unknown, or if it did not run before.
    pub fn away(self, events: &[ContainerEvent]) -> Option<Duration> {
        if self.told_change() == Change::Kept {
            return Some(Duration::ZERO);
        }
        let (before, now) = (self.before.filter(|_| self.is_moved())?, self.now?);
        let of = |id: &'a str| events.iter().filter(move |event| event.id == id);
        let end = of(before.id()).find(|event| !event.started)?;
        // The engine forgets the signal while a container takes long to shut down.
        if end.exited && self.told_change() != Change::RestartedByPolicy {
            return None;
        }
        let start = of(now.id()).find(|event| event.started && event.at >= end.at)?;
        start.at.checked_sub(end.at)
    }

    /// Whether it ran, and was restarted or recreated.
    fn is_moved(self) -> bool {
        let moved = [
            Change::Restarted,
            Change::Recreated,
            Change::RestartedByPolicy,
        ];
        moved.contains(&self.told_change()) && self.before.is_some_and(Container::is_running)
    }

    /// What differs from before.
    pub fn differences(self) -> Vec<Difference<'a>> {
        match (self.before, self.now) {
            (Some(before), Some(now)) => before.differences(now, Creator::Compose),
            _ => Vec::new(),
        }
    }

    /// Whether it is the same container since the same start, with the same configuration.
    pub fn is_as_before(self) -> bool {
        self.change == Change::Kept && self.differences().is_empty()
    }

    /// What happened to it, for a report. A restart by its policy is no change that an adoption makes.
    pub fn told_change(self) -> Change {
        match (self.before, self.now) {
            (Some(before), Some(now))
                if self.change == Change::Kept
                    && !self.looped
                    && now.restarts() > before.restarts() =>
            {
                Change::RestartedByPolicy
            }
            _ => self.change,
        }
    }

    /// Whether it was recreated from another image.
    pub fn has_other_image(self) -> bool {
        let images = self.before.zip(self.now);
        images.is_some_and(|(before, now)| before.image_id() != now.image_id())
    }

    /// Whether it ran before and has to run now. A finished job has not.
    pub fn has_to_run(self) -> bool {
        match self.before {
            Some(before) => before.is_running(),
            None => self.change == Change::New,
        }
    }

    /// Whether it runs, or is a job that succeeded and did not run before, or is in a restart loop as before.
    pub fn runs(self) -> bool {
        self.now.is_some_and(|now| {
            let finished = self.before.is_none() && now.exit_code() == Some(0);
            let loops = self.looped && (now.is_running() || now.gave_up());
            (now.is_running() && !now.is_restarting()) || finished || loops
        })
    }

    /// Whether it restarts again and again, and did not before (B28).
    pub fn keeps_restarting(self, times: u64) -> bool {
        let same = self.before.filter(|_| self.change != Change::Recreated);
        let before = same.map_or(0, Container::restarts);
        let restarts = |now: &Container| now.is_restarting() && now.restarts() >= before + times;
        self.has_to_run() && !self.looped && self.now.is_some_and(restarts)
    }

    /// Whether it was healthy before, and is not now.
    pub fn lacks_health(self) -> bool {
        let was = self.before.is_some_and(Container::is_healthy);
        was && !self.looped && !self.now.is_some_and(Container::is_healthy)
    }

    /// How long it may take until its health check has succeeded or failed, if it was healthy before and is starting now.
    pub fn health_time(self) -> Option<Duration> {
        let now = self.now.filter(|_| self.lacks_health())?;
        (now.health() == Some("starting")).then(|| now.health_time())
    }

    /// What [`Self::lacks_health`] says.
    pub fn told_health(self) -> String {
        let name = self.name();
        match self.now.and_then(Container::health) {
            Some("starting") => format!("the health check of {name} has not finished"),
            _ => format!("{name} is not healthy"),
        }
    }

    /// The container before, if it is a job that had succeeded, or that never ran.
    fn was_job(self) -> Option<&'a Container> {
        let is_job = |before: &&Container| match before.exit_code() {
            Some(code) => code == 0,
            None => before.text("/State/Status") == "created",
        };
        self.before.filter(is_job)
    }

    /// What became of a job that Portainer ran again (N08), if it did not succeed.
    pub fn failed_again(self) -> Option<String> {
        self.was_job()?;
        let now = self.now.filter(|_| self.change != Change::Kept)?;
        match now.exit_code() {
            Some(0) => None,
            Some(code) => Some(format!("exited with code {code} when it ran again")),
            None if now.is_running() => None,
            None => Some("was recreated, but has not run since".to_owned()),
        }
    }

    /// Whether it is a job that runs again now.
    pub fn runs_again(self) -> bool {
        let runs = |now: &Container| now.is_running() && !now.is_kept_running();
        self.was_job().is_some() && self.now.is_some_and(runs)
    }

    /// Whether it may end within a time: the last time, it did.
    pub fn may_end_within(self, time: Duration) -> bool {
        let took = self.was_job().and_then(Container::ran_for);
        took.is_some_and(|took| took <= time)
    }

    /// Whether it may still come to run, or to be healthy.
    pub fn may_recover(self) -> bool {
        let Some(now) = self.now else {
            return false;
        };
        let policy = now.text("/HostConfig/RestartPolicy/Name");
        let ends = matches!(policy, "" | "no") || self.change == Change::Stray;
        now.is_running() || (!ends && !now.is_being_removed())
    }
}

impl fmt::Display for Compared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        f.write_str(match self.change {
            Change::Kept => match self.differences().as_slice() {
                [] => " was not touched",
                differences => return write!(f, " differs from before: {}", told(differences)),
            },
            Change::Started => " was started",
            Change::Restarted => " was restarted",
            Change::RestartedByPolicy => " was restarted by its restart policy",
            Change::Ended => " no longer runs",
            Change::Recreated if self.has_other_image() => " was recreated from another image",
            Change::Recreated => " was recreated",
            Change::New => " is new",
            Change::Missing => " no longer exists",
            Change::Stray => " is a new container under a temporary name",
        })?;
        match self.now {
            Some(now) if !now.is_running() && self.change != Change::Kept => {
                match now.exit_code() {
                    Some(code) => write!(f, " (exited, code {code})"),
                    None => write!(f, " ({})", now.text("/State/Status")),
                }
            }
            Some(now) if now.is_restarting() && !self.looped => f.write_str(" (keeps restarting)"),
            _ => Ok(()),
        }
    }
}

/// Why Docker could not start a container, or how its process ended. `None` if that is unknown.
pub fn end(container: &Container) -> Option<String> {
    let code = container.at("/State/ExitCode").and_then(Value::as_i64);
    match container.text("/State/Error") {
        "" if container.is_restarting() => {
            Some(format!("it keeps restarting (exit code {})", code?))
        }
        "" => Some(format!("it exited with code {}", container.exit_code()?)),
        reason => Some(portainer::reason(reason)),
    }
}

/// What happened to each container that is not as before.
pub fn changes(compared: &[Compared]) -> Vec<String> {
    let changed = compared.iter().filter(|pair| !pair.is_as_before());
    changed.map(ToString::to_string).collect()
}

/// Differences in a sentence.
pub fn told(differences: &[impl ToString]) -> String {
    let names: Vec<String> = differences.iter().map(ToString::to_string).collect();
    listed(&names)
}

/// How long each container was down that was restarted or recreated, in a sentence. Of these `unknown` ones that is not known.
pub fn told_down(
    compared: &[Compared],
    events: &[ContainerEvent],
    called: impl Fn(&Compared) -> String,
    mut unknown: Vec<String>,
) -> Option<String> {
    let moved = compared
        .iter()
        .filter(|pair| pair.change != Change::Kept && pair.is_moved());
    let mut times = Vec::new();
    for container in moved {
        match container.away(events) {
            Some(away) => times.push((called(container), away.as_secs_f64())),
            None if container.now.is_some_and(Container::is_running) => {
                unknown.push(called(container));
            }
            None => {}
        }
    }
    // A container that has another name now is found twice.
    unknown.retain(|name| times.iter().all(|(timed, _)| timed != name));
    let told = down(&times)?;
    let verb = if unknown.len() == 1 { "was" } else { "were" };
    Some(match unknown.as_slice() {
        [] => told,
        unknown => format!(
            "{told}; how long {} {verb} down is unknown",
            listed(unknown)
        ),
    })
}

impl<'a> Ran<'a> {
    /// The containers that a snapshot contains; none if they are unknown.
    pub fn of(snapshot: &'a Snapshot) -> Self {
        Self {
            containers: snapshot.containers.items(),
            at: snapshot.taken_at(),
        }
    }

    /// Compares all containers of the stack with those that exist `now`: the original ones in their order, then the others. Compose
    /// gives the successor of a container another name if that was renamed, or if the `container_name` of its service changed: it is
    /// then found by its service and its number.
    pub fn compare(self, now: &'a [Container], tool: &str) -> Vec<Compared<'a>> {
        let before = || self.containers.iter();
        let existed = |now: &&Container| before().any(|old| old.id() == now.id());
        let successor = |old: &'a Container| {
            let mut new = now.iter().filter(|now| !existed(now));
            new.clone()
                .find(|now| now.name() == old.name())
                .or_else(|| {
                    let place = place_of(old, tool)?;
                    new.find(|now| {
                        place_of(now, tool) == Some(place)
                            && !is_temporary(now.name())
                            && before().all(|old| old.name() != now.name())
                    })
                })
        };
        let mut compared: Vec<Compared> = before()
            .map(|old| {
                let mut all = now.iter();
                let found = all.find(|now| now.id() == old.id());
                Compared::new(old, found.or_else(|| successor(old)), self.at)
            })
            .collect();
        let known = compared.iter().filter_map(|pair| Some(pair.now?.id()));
        let known: BTreeSet<&str> = known.collect();
        let others = now.iter();
        let others = others.filter(|now| !known.contains(now.id()));
        compared.extend(others.map(|now| Compared {
            change: if is_temporary(now.name()) {
                Change::Stray
            } else {
                Change::New
            },
            before: None,
            now: Some(now),
            looped: false,
        }));
        compared
    }
}

/// The service of a container and its number, unless `compose run` started it.
fn place_of<'a>(container: &'a Container, tool: &str) -> Option<(&'a str, &'a str)> {
    let label = |name| container.compose_label(tool, name);
    let place = label("service").zip(label("container-number"));
    place.filter(|_| !container.is_one_off(tool))
}

/// What happened to a container that exists.
fn change(old: &Container, now: &Container, looped: bool) -> Change {
    if old.id() != now.id() {
        return Change::Recreated;
    }
    match (old.is_running(), now.is_running()) {
        (true, false) if looped && now.gave_up() => Change::Kept,
        (true, false) => Change::Ended,
        (false, true) => Change::Started,
        _ if starts_of(old) == starts_of(now) && old.is_paused() == now.is_paused() => Change::Kept,
        // The engine itself restarts a container by its restart policy, and counts when it ends. A start by somebody else
        // resets the count.
        (true, true) if now.restarts() >= old.restarts() + u64::from(!old.is_restarting()) => {
            Change::Kept
        }
        (true, true) => Change::Restarted,
        (false, false) => Change::Started,
    }
}

fn starts_of(container: &Container) -> &str {
    container.text("/State/StartedAt")
}

/// `<12 hexadecimal digits>_<name>`.
pub fn is_temporary(name: &str) -> bool {
    let prefix = name.split_once('_').map(|(prefix, _)| prefix);
    prefix.is_some_and(|prefix| {
        prefix.len() == 12
            && prefix
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(id: &str, name: &str, running: bool, started: &str) -> Container {
        Container(json!({
            "Id": id,
            "Name": format!("/{name}"),
            "RestartCount": 0,
            "State": {
                "Status": if running { "running" } else { "exited" },
                "Running": running,
                "StartedAt": started,
                "ExitCode": 0,
            },
        }))
    }

    /// The running container `a`, and the one that was started later, which has this ID.
    fn started_again(id: &str) -> ([Container; 1], [Container; 1]) {
        let now = container(id, "a", true, "u");
        ([container("1", "a", true, "t")], [now])
    }

    fn compared<'a>(before: &'a [Container], now: &'a [Container]) -> Vec<Compared<'a>> {
        let at = DateTime::default();
        Ran {
            containers: before,
            at,
        }
        .compare(now, "docker")
    }

    fn changes<'a>(before: &'a [Container], now: &'a [Container]) -> Vec<(&'a str, Change)> {
        let all = compared(before, now).into_iter();
        all.map(|one| (one.name(), one.change)).collect()
    }

    #[test]
    fn each_container_is_compared_with_itself_or_its_successor() {
        let before = [
            container("1", "kept", true, "t"),
            container("2", "recreated", true, "t"),
            container("3", "restarted", true, "t"),
            container("4", "ended", true, "t"),
            container("5", "started", false, "t"),
            container("6", "missing", true, "t"),
            container("7", "job", false, "t"),
            container("8", "ran-again", false, "t"),
        ];
        let now = [
            container("1", "kept", true, "t"),
            container("20", "recreated", true, "u"),
            container("3", "restarted", true, "u"),
            container("4", "ended", false, "t"),
            container("5", "started", true, "u"),
            container("60", "0123456789ab_missing", false, "u"),
            container("7", "job", false, "t"),
            container("8", "ran-again", false, "u"),
            container("9", "new", true, "u"),
        ];
        let expected = [
            ("kept", Change::Kept),
            ("recreated", Change::Recreated),
            ("restarted", Change::Restarted),
            ("ended", Change::Ended),
            ("started", Change::Started),
            ("missing", Change::Missing),
            ("job", Change::Kept),
            ("ran-again", Change::Started),
            ("0123456789ab_missing", Change::Stray),
            ("new", Change::New),
        ];
        assert_eq!(changes(&before, &now), expected);
    }

    #[test]
    fn a_container_that_restarts_by_its_policy_is_not_touched() {
        let mut old = container("1", "a", true, "t");
        let mut now = container("1", "a", true, "u");
        now["RestartCount"] = json!(3);
        let change = |old: &Container, now: &Container| change(old, now, false);
        assert_eq!(change(&old, &now), Change::Kept);
        old["State"]["Restarting"] = json!(true);
        old["RestartCount"] = json!(3);
        assert_eq!(change(&old, &now), Change::Kept);
        // Somebody else restarted it: the engine counts from 0 again.
        old["RestartCount"] = json!(0);
        assert_eq!(change(&now, &old), Change::Restarted);
    }

    #[test]
    fn b28_a_container_that_its_policy_restarts_did_not_keep_running() {
        let (before, mut now) = started_again("1");
        now[0]["RestartCount"] = json!(1);
        let one = compared(&before, &now)[0];
        assert_eq!(one.told_change(), Change::RestartedByPolicy);
        assert!(one.is_as_before() && one.runs());
    }

    #[test]
    fn b28_a_container_in_a_restart_loop_is_as_before_only_if_it_was_before() {
        let at = DateTime::parse_from_rfc3339("2026-11-22T10:00:30Z").unwrap();
        let looks = |started: &str, restarts: u64, restarting: bool| {
            let mut one = container("1", "a", true, started);
            one["RestartCount"] = json!(restarts);
            one["State"]["Restarting"] = json!(restarting);
            one["HostConfig"] = json!({"RestartPolicy": {"Name": "on-failure"}});
            one
        };
        let pausing = looks("2026-11-22T10:00:25Z", 7, true);
        let starting = looks("2026-11-22T10:00:28.123456789Z", 7, false);
        let stable = looks("2026-11-22T09:00:00Z", 7, false);
        let first = looks("2026-11-22T10:00:28Z", 0, false);
        for (before, is_wrong) in [
            (&pausing, false),
            (&starting, false),
            (&stable, true),
            (&first, true),
        ] {
            let all = [before.clone()];
            let mut now = [looks("2026-11-22T10:01:00Z", 9, true)];
            let before = Ran {
                containers: &all,
                at: at.to_utc(),
            };
            let found = before.compare(&now, "docker")[0];
            assert_eq!((found.change, found.runs()), (Change::Kept, !is_wrong));
            assert!(found.has_to_run());
            // A loop may end.
            now[0]["State"] = json!({"Status": "exited", "ExitCode": 1, "StartedAt": "u"});
            let found = before.compare(&now, "docker")[0];
            assert_eq!((found.runs(), found.is_as_before()), (!is_wrong, !is_wrong));
        }
    }

    #[test]
    fn a_successor_with_another_name_is_found_by_its_service_and_number() {
        let labeled = |id, name, number: &str| {
            let mut one = container(id, name, true, id);
            one["Config"]["Labels"] = json!({
                "com.docker.compose.service": "a",
                "com.docker.compose.container-number": number,
            });
            one
        };
        let before = [labeled("1", "renamed", "1"), labeled("2", "web-a-2", "2")];
        let now = [
            labeled("10", "web-a-1", "1"),
            labeled("20", "0123456789ab_web-a-2", "2"),
        ];
        let expected = [
            ("web-a-1", Change::Recreated),
            ("web-a-2", Change::Missing),
            ("0123456789ab_web-a-2", Change::Stray),
        ];
        assert_eq!(changes(&before, &now), expected);
    }

    #[test]
    fn n06_the_temporary_name_of_a_new_container() {
        assert!(is_temporary("0123456789ab_web-a-1"));
        for name in ["web-a-1", "0123456789ab", "0123456789ag_web", "012345_web"] {
            assert!(!is_temporary(name), "{name}");
        }
    }

    #[test]
    fn a_finished_job_need_not_run_and_a_healthy_container_must_be_healthy() {
        let before = [
            container("1", "job", false, "t"),
            container("2", "a", true, "t"),
        ];
        let all = compared(&before, &before);
        assert!(!all[0].has_to_run());
        assert!(all[1].has_to_run() && all[1].runs() && !all[1].lacks_health());
        assert_eq!(all[0].failed_again(), None);
        let mut healthy = before.clone();
        healthy[1]["State"]["Health"] = json!({"Status": "healthy"});
        assert!(compared(&healthy, &before)[1].lacks_health());
        let mut now = [container("1", "job", false, "u")];
        now[0]["State"]["ExitCode"] = json!(2);
        let said = compared(&before, &now)[0].failed_again();
        assert_eq!(said.unwrap(), "exited with code 2 when it ran again");
        let mut created = [container("10", "job", false, "")];
        created[0]["State"]["Status"] = json!("created");
        assert!(compared(&before, &created)[0].failed_again().is_some());
    }

    fn event(id: &str, started: bool, millis: u64) -> ContainerEvent {
        ContainerEvent {
            id: id.to_owned(),
            started,
            exited: false,
            at: Duration::from_millis(millis),
        }
    }

    #[test]
    fn the_time_from_the_end_of_the_old_to_the_start_of_the_new() {
        let (before, now) = started_again("2");
        let one = compared(&before, &now)[0];
        let events = [
            event("1", false, 1000),
            event("9", true, 1100),
            event("2", true, 1500),
            event("2", true, 4000),
        ];
        assert_eq!(one.away(&events), Some(Duration::from_millis(500)));
        // The engine remembers only its last events.
        assert_eq!(one.away(&events[1..]), None);
        let mut without_signal = events.clone();
        without_signal[0].exited = true;
        assert_eq!(one.away(&without_signal), None);
        let (other, restarted) = started_again("1");
        let pair = compared(&other, &restarted)[0];
        let known = [event("1", false, 5), event("1", true, 7)];
        let called = |pair: &Compared| pair.any().map_or("", Container::id).to_owned();
        let told = told_down(&[one, pair], &known, called, Vec::new());
        let expected = "1 was down for less than 0.1 s; how long 2 was down is unknown";
        assert_eq!(told.as_deref(), Some(expected));
        assert_eq!(one.away(&events[..2]), None);
    }

    #[test]
    fn a_restart_and_a_container_that_is_not_touched() {
        let (before, now) = started_again("1");
        let events = [event("1", false, 5), event("1", true, 7)];
        let restarted = compared(&before, &now)[0];
        assert_eq!(restarted.away(&events), Some(Duration::from_millis(2)));
        let kept = compared(&before, &before)[0];
        assert_eq!(kept.away(&[]), Some(Duration::ZERO));
    }
}
