//! What the rules allow a run to leave and to say.

use std::time::Duration;

use testbed::{Call, Container, Status, World};

use crate::{
    bench::{Bench, Run},
    stage::{Start, Way, containers, data, is_of_stack, records, world},
};

/// Everything that a run did or said against the rules; empty is well.
///
/// - At most one create or update was sent, and no delete whose outcome is unknown twice (B05).
/// - While Portainer works on a request, the request is in the journal, and the run does not say that nothing was changed (B35).
/// - Containers, Portainer stacks and networks of others are as they were; no volume is gone (C52, N02).
/// - Exit 0: one Portainer stack, deployed, and both containers run. A migration prints its Id (C54). An adoption keeps the
///   data, and the container that needs no change.
/// - Exit 1, 130 and 143: an error, a state and a hint, or that it was interrupted; every claim of the state line holds; where a
///   container is gone and not restored, the restore that brings it back is named.
pub fn judge(start: Start, bench: &Bench, before: &World, run: &Run) -> Vec<String> {
    let after = world(bench);
    let mut wrong = others(before, &after);
    let sent = bench.calls(Call::Create).len() + bench.calls(Call::Update).len();
    if sent > 1 {
        wrong.push(format!("{sent} creates and updates were sent"));
    }
    let deletes = bench.calls(Call::Delete);
    // Portainer's own 409 says that it did nothing (N01).
    if deletes.len() > 1 && deletes[0].status != Some(409) {
        wrong.push(format!("{} deletes were sent", deletes.len()));
    }
    if bench.rehearsal.is_busy() {
        if bench.saved(".request").is_empty() {
            wrong.push("Portainer works on a request that is not in the journal".to_owned());
        }
        if run.err.contains("Nothing was changed") {
            wrong.push("Portainer works on a request, and nothing was changed".to_owned());
        }
    }
    wrong.extend(match run.code {
        0 => success(start.way, before, &after, run),
        1 => failure(start.way, before, &after, run, &["error: "]),
        130 | 143 => failure(start.way, before, &after, run, &["warning: interrupted"]),
        code => vec![format!("exit code {code}")],
    });
    if !wrong.is_empty() {
        wrong.push(run.all());
    }
    wrong
}

/// What a run says before it touches containers that it cannot restore.
const UNSAVED: &str = "the containers could not be saved";

/// What is wrong once Portainer has finished everything: a container of before is gone, and the run named no way back (B35).
pub fn after_all(bench: &Bench, before: &World, run: &Run) -> Option<String> {
    bench.rehearsal.skip(Duration::from_mins(1));
    let after = world(bench);
    let is_gone = |old: &&Container| {
        after
            .container(&old.name)
            .is_none_or(|one| !one.is_running())
    };
    let gone = before.project("web").into_iter().find(is_gone)?;
    let is_told =
        run.code != 0 && (run.err.contains("stacklift restore web") || run.err.contains(UNSAVED));
    (!is_told).then(|| format!("{} is gone, and no way back was named: {run:#?}", gone.name))
}

/// What changed of everything that is not the stack.
pub fn others(before: &World, after: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    let containers = |world: &World| -> Vec<Container> {
        let is_of_stack = |one: &Container| {
            let project = one.labels.get("com.docker.compose.project");
            project.is_some_and(|project| project == "web")
        };
        let all = world.containers.values();
        all.filter(|one| !is_of_stack(one)).cloned().collect()
    };
    if containers(before) != containers(after) {
        wrong.push("containers of others have changed".to_owned());
    }
    let records = |world: &World| -> Vec<_> {
        let all = world.records.values();
        all.filter(|one| one.name != "web").cloned().collect()
    };
    if records(before) != records(after) {
        wrong.push("Portainer stacks of others have changed".to_owned());
    }
    for volume in &before.volumes {
        let name = &volume["Name"];
        if !after.volumes.iter().any(|other| other["Name"] == *name) {
            wrong.push(format!("the volume {name} is gone"));
        }
    }
    let networks = before.networks.iter();
    for network in networks.filter(|network| !is_of_stack(network)) {
        if !after
            .networks
            .iter()
            .any(|other| other["Id"] == network["Id"])
        {
            wrong.push(format!("the network {} is gone", network["Name"]));
        }
    }
    wrong
}

fn success(way: Way, before: &World, after: &World, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            wrong.push(format!("exit 0, but not: {what}"));
        }
    };
    let records = records(after);
    let id = records.first().map_or(0, |record| record.id);
    let is_one = matches!(records.as_slice(), [one] if one.status == Status::Active);
    must(is_one, "one Portainer stack is deployed");
    let all = after.project("web");
    let run_all = all.len() == 2 && all.iter().all(|one| one.is_running());
    must(run_all, "both containers run");
    if way == Way::Migrate {
        let said = format!("stack web with Id {id}");
        must(run.out.contains(&said), "it prints the Id");
        return wrong;
    }
    must(data(before) == data(after), "the data is there");
    // N07: an update of a stack in error would recreate it, but no run ends in one and succeeds.
    let is_same = before.container("web-a-1") == after.container("web-a-1");
    must(is_same, "`a` was not touched");
    let done = "web: a kept running, b was ";
    must(run.out.contains(done), "it says what it did");
    wrong
}

fn failure(way: Way, before: &World, after: &World, run: &Run, said: &[&str]) -> Vec<String> {
    let missing = said.iter().filter(|word| !run.err.contains(**word));
    let mut wrong: Vec<String> = missing.map(|word| format!("no {word:?}")).collect();
    let mut lines = run.err.lines();
    // What was done about a failed deployment is a sentence.
    let is_sentence = |line: &str| line.ends_with('.') && line.starts_with(char::is_uppercase);
    let state = lines.find_map(|line| {
        let state = line.strip_prefix("state: ").map(str::to_owned);
        let (first, rest) = line.split_at_checked(1)?;
        state.or_else(|| is_sentence(line).then(|| first.to_lowercase() + rest))
    });
    let Some(state) = state else {
        wrong.push("no state".to_owned());
        return wrong;
    };
    wrong.extend(claims(&state, before, after));
    let is_lost = match way {
        Way::Migrate => is_destroyed(before, after),
        Way::Adopt => {
            let is_restored = state.contains("had been ");
            all(before) != all(after) && !is_restored
        }
    };
    // Which containers there were could not be read, and that was said before they were touched.
    let unknown = run.err.contains(UNSAVED);
    let named = run.err.contains("stacklift restore web --to ");
    if is_lost && named == unknown {
        let not = if named { "" } else { "not " };
        wrong.push(format!("something is gone, and a restore is {not}named"));
    }
    for id in numbers(&run.err, "exists as Portainer stack ") {
        if !after.records.contains_key(&id) {
            wrong.push(format!("Portainer stack {id} does not exist"));
        }
    }
    wrong
}

/// Whether a container or a Portainer stack of before is gone.
fn is_destroyed(before: &World, after: &World) -> bool {
    let is = ids(after);
    let mut records = records(before).into_iter();
    ids(before).iter().any(|id| !is.contains(id))
        || records.any(|old| !after.records.contains_key(&old.id))
}

fn ids(world: &World) -> Vec<&str> {
    let all = world.project("web").into_iter();
    all.map(|container| container.id.as_str()).collect()
}

fn all(world: &World) -> Vec<Container> {
    world.project("web").into_iter().cloned().collect()
}

/// Claims that hold in any world.
const UNCERTAIN: [&str; 9] = [
    "could not be listed",
    "could not check whether Portainer has the stack",
    "outcome is unknown",
    "may be gone",
    "may be deploying",
    "may have been removed",
    "may exist",
    "may still be deploying",
    "being restored",
];

/// Each claim of the state line that does not hold.
fn claims(state: &str, before: &World, after: &World) -> Vec<String> {
    let (was, is) = (ids(before), ids(after));
    let (here, none) = (is.len(), records(after).is_empty());
    let status = match records(after).as_slice() {
        [record] => Some(record.status),
        _ => None,
    };
    let unchanged = all(before) == all(after);
    let gone = was.iter().filter(|id| !is.contains(id)).count();
    let is_restored = containers(before) == containers(after) && data(before) == data(after);
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let is_one = gone == 1 || was.len() == 1;
    let verb = if is_one { "was" } else { "were" };
    let counted = format!("it has {here} container{} on", plural(here));
    let removed = format!("{gone} of {} containers {verb} removed", was.len());
    let all_is_same = unchanged && records(before) == records(after);
    let known = [
        ("nothing was changed", all_is_same),
        ("changed nothing else", unchanged),
        ("no container was changed", unchanged),
        ("the original containers exist and run", unchanged),
        ("had been ", is_restored),
        ("is down", none && here == 0),
        ("did not create", none),
        ("the stack was not sent to Portainer", none),
        ("does not list the stack", none),
        ("old container", gone == was.len()),
        ("on this host", state.contains(&counted)),
        ("was created as Portainer stack", status.is_some()),
        ("and is deployed", status == Some(Status::Active)),
        ("exists (active)", status == Some(Status::Active)),
        ("but its deployment failed", status == Some(Status::Error)),
    ];
    let known = known.map(|(words, holds)| (words.to_owned(), holds));
    let mut known = Vec::from(known);
    let counts = format!(" of {} containers w", was.len());
    known.push((counts, state.contains(&removed)));
    known.extend(UNCERTAIN.map(|words| (words.to_owned(), true)));
    for id in numbers(state, "Portainer stack ") {
        let exists = after.records.contains_key(&id);
        known.push((format!("Portainer stack {id} was deleted"), !exists));
        known.push((format!("Portainer stack {id} exists"), exists));
        known.push((format!("exists as Portainer stack {id}"), exists));
    }
    for name in ["web-a-1", "web-b-1"] {
        let (old, now) = (before.container(name), after.container(name));
        let is_other = old.map(|one| &one.id) != now.map(|one| &one.id);
        let runs = now.is_some_and(Container::is_running);
        known.extend([
            (format!("{name} no longer exists"), now.is_none()),
            (format!("{name} was recreated"), now.is_some() && is_other),
            (format!("{name} was recreated (created"), !runs),
            (format!("{name} was recreated (exited, code"), !runs),
            (format!("{name} was restarted"), !is_other && old != now),
            (format!("{name} no longer runs"), !is_other && !runs),
        ]);
    }
    known.retain(|(words, _)| state.contains(words));
    if known.is_empty() {
        return vec![format!("{state:?} claims nothing that is known here")];
    }
    known.retain(|(_, holds)| !holds);
    known
        .into_iter()
        .map(|(words, _)| format!("{state:?} is not true: {words:?}"))
        .collect()
}

/// The numbers that stand behind `words`.
fn numbers(text: &str, words: &str) -> Vec<u64> {
    let rests = text.split(words).skip(1);
    rests
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit());
            rest[..end.unwrap_or(rest.len())].parse().ok()
        })
        .collect()
}
