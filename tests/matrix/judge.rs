//! What the rules allow a run to leave and to say.

use rehearsal::{Call, Container, Status, World};

use crate::{
    bench::{Bench, Run},
    stage::{records, world},
};

/// Everything that a run did or said against the rules; empty is well.
///
/// - At most one create was sent (B05).
/// - Containers, records and networks of others are as they were; no volume is gone (C52, N02).
/// - Exit 0: one record, deployed, its containers running, and its Id printed (C54).
/// - Exit 1: an error, a state and a hint; every claim of the state line holds in the world; where
///   containers are gone, the restore that brings them back is named.
pub fn judge(bench: &Bench, before: &World, run: &Run) -> Vec<String> {
    let after = world(bench);
    let mut wrong = Vec::new();
    let creates = bench.calls(Call::Create).len();
    if creates > 1 {
        wrong.push(format!("{creates} creates were sent"));
    }
    wrong.extend(others(before, &after));
    match run.code {
        0 => wrong.extend(success(&after, run)),
        1 => wrong.extend(failure(before, &after, run)),
        code => wrong.push(format!("exit code {code}")),
    }
    wrong
}

fn is_of_others(container: &Container) -> bool {
    let project = container.labels.get("com.docker.compose.project");
    project.is_none_or(|project| project != "web")
}

/// What changed of everything that is not the stack.
pub fn others(before: &World, after: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    let containers = |world: &World| -> Vec<Container> {
        let all = world.containers.values();
        all.filter(|one| is_of_others(one)).cloned().collect()
    };
    if containers(before) != containers(after) {
        wrong.push("containers of others have changed".to_owned());
    }
    let records = |world: &World| -> Vec<_> {
        let all = world.records.values();
        all.filter(|one| one.name != "web").cloned().collect()
    };
    if records(before) != records(after) {
        wrong.push("records of others have changed".to_owned());
    }
    for volume in &before.volumes {
        if !after.volumes.iter().any(|other| other.name == volume.name) {
            wrong.push(format!("the volume {} is gone", volume.name));
        }
    }
    for network in before
        .networks
        .iter()
        .filter(|n| !n.name.starts_with("web_"))
    {
        if !after.networks.iter().any(|other| other.id == network.id) {
            wrong.push(format!("the network {} is gone", network.name));
        }
    }
    wrong
}

fn is_running(container: &Container) -> bool {
    serde_json::to_value(container).expect("JSON")["state"] == "running"
}

fn success(after: &World, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    match records(after).as_slice() {
        [record] => {
            if record.status != Status::Active {
                wrong.push(format!("exit 0, and the record is {:?}", record.status));
            }
            let said = format!("stack web with Id {}", record.id);
            if !run.out.contains(&said) {
                wrong.push(format!("exit 0 without {said:?}"));
            }
        }
        records => wrong.push(format!("exit 0 with {} records", records.len())),
    }
    let containers = after.project("web");
    if containers.len() != 2 || !containers.into_iter().all(is_running) {
        wrong.push("exit 0, and not both containers run".to_owned());
    }
    wrong
}

fn failure(before: &World, after: &World, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(state) = state(run, &mut wrong) else {
        return wrong;
    };
    wrong.extend(claims(state, before, after));
    // Which containers there were could not be read, and that was said before they were touched.
    let unknown = run.err.contains("the containers could not be saved");
    let named = run.err.contains("stacklift restore web --to ");
    if is_destroyed(before, after) && named == unknown {
        wrong.push(format!(
            "something is gone, and a restore is {}named",
            if named { "" } else { "not " }
        ));
    }
    for (said, id) in numbers(&run.err, "exists as Portainer stack ") {
        if !after.records.contains_key(&id) {
            wrong.push(format!("{said:?}, and it has not"));
        }
    }
    wrong
}

/// The state that a failed run reports. Lists what its error lacks.
pub fn state<'r>(run: &'r Run, wrong: &mut Vec<String>) -> Option<&'r str> {
    for word in ["error: ", "hint: "] {
        if !run.err.contains(word) {
            wrong.push(format!("exit 1 without {word:?}"));
        }
    }
    let mut lines = run.err.lines();
    let state = lines.find_map(|line| line.strip_prefix("state: "));
    if state.is_none() {
        wrong.push("exit 1 without a state".to_owned());
    }
    state
}

/// Whether a container or a record of before is gone.
pub fn is_destroyed(before: &World, after: &World) -> bool {
    let is = ids(after);
    ids(before).iter().any(|id| !is.contains(id))
        || records(before)
            .iter()
            .any(|old| !after.records.contains_key(&old.id))
}

fn ids(world: &World) -> Vec<String> {
    let all = world.project("web").into_iter();
    all.map(|container| container.id.clone()).collect()
}

/// Each definite claim of the state line, held against the world.
pub fn claims(state: &str, before: &World, after: &World) -> Vec<String> {
    let (was, is) = (ids(before), ids(after));
    let here = is.len();
    let none = records(after).is_empty();
    let mut known = false;
    let mut wrong = Vec::new();
    let mut claim = |words: &str, holds: bool| {
        if state.contains(words) {
            known = true;
            if !holds {
                wrong.push(format!("{state:?} is not true"));
            }
        }
    };
    let containers =
        |world: &World| -> Vec<Container> { world.project("web").into_iter().cloned().collect() };
    let untouched = records(before) == records(after) && containers(before) == containers(after);
    claim("changed nothing", untouched);
    claim("is down", none && here == 0);
    claim("did not create", none);
    claim("does not list the stack", none);
    let all_gone = was.iter().all(|id| !is.contains(id));
    claim("old container", all_gone);
    claim("the old containers of Portainer stack", all_gone);
    claim("could not be listed", true);
    let counted = format!(
        "it has {here} container{} on",
        if here == 1 { "" } else { "s" }
    );
    claim("on this host", state.contains(&counted));
    let gone = was.iter().filter(|id| !is.contains(id)).count();
    let verb = if gone == 1 || was.len() == 1 {
        "was"
    } else {
        "were"
    };
    let removed = format!("{gone} of {} containers {verb} removed", was.len());
    let partly = format!(" of {} containers w", was.len());
    claim(&partly, state.contains(&removed));
    claim("may be gone", true);
    claim("may have been removed", true);
    claim("may exist", true);
    claim(
        "the stack was created as Portainer stack",
        records(after).len() == 1,
    );
    claim("may still be deploying", true);
    claim("the create was not sent", none);
    for (_, id) in numbers(state, "Portainer stack ") {
        let deleted = format!("Portainer stack {id} was deleted");
        claim(&deleted, !after.records.contains_key(&id));
    }
    for (_, id) in numbers(state, "exists as Portainer stack ") {
        let status = after.records.get(&id).map(|record| record.status);
        claim("exists as Portainer stack", status.is_some());
        claim("and is deployed", status == Some(Status::Active));
        claim("but its deployment failed", status == Some(Status::Error));
        claim(
            "; it may still be deploying",
            status == Some(Status::Deploying) || status == Some(Status::Active),
        );
    }
    if !known {
        wrong.push(format!("{state:?} claims nothing that is known here"));
    }
    wrong
}

/// The numbers that stand behind `words`.
fn numbers<'t>(text: &'t str, words: &'t str) -> Vec<(&'t str, u64)> {
    text.match_indices(words)
        .filter_map(|(at, words)| {
            let rest = &text[at + words.len()..];
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            Some((words, rest[..end].parse().ok()?))
        })
        .collect()
}
