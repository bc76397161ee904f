//! The figures of docs/reference/speed.md. They print a table:
//! `RUST_TEST_NOCAPTURE=1 RUST_TEST_THREADS=1 scripts/test --release --test engine adopt::figures::`

use std::time::{Duration, Instant};

use super::{
    Case, by_each_portainer,
    scenario::Scenario,
    scenarios::{self, ANONYMOUS, HEALTH, PLAIN, PROFILES, SECRETS, VARIABLES},
    watch::Watch,
};

by_each_portainer! {
    interruption
    speed
}

/// What is special about it, its Compose file and its other files.
type Stack = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// How long the longest service is away in an adoption, and in a migration of the same stack.
fn interruption(case: Case) {
    println!("| stack | containers | untouched | adopt: away | migrate: away |");
    let stacks: [Stack; 6] = [
        ("named and bind volumes", PLAIN, scenarios::PLAIN_FILES),
        ("dependencies and health", HEALTH, &[]),
        ("variables", VARIABLES, scenarios::VARIABLE_FILES),
        ("anonymous volumes", ANONYMOUS, &[]),
        ("secrets and configs", SECRETS, scenarios::SECRET_FILES),
        ("profiles", PROFILES, scenarios::PROFILE_FILES),
    ];
    for (what, text, files) in stacks {
        let adopted = away(&Scenario::new(case, text, files), "adopt");
        let migrated = away(&Scenario::new(case, text, files), "migrate");
        let (count, untouched, adopted) = adopted.expect("an adoption succeeds");
        let migrated = migrated.map_or("refused".to_owned(), |(_, _, away)| seconds(away));
        println!(
            "| {what} | {count} | {untouched} | {} | {migrated} |",
            seconds(adopted)
        );
        assert_eq!(adopted == Duration::ZERO, count == untouched);
    }
}

/// The number of containers, how many are untouched, and the time that the longest service was away. Nothing if the
/// command fails.
fn away(scenario: &Scenario, command: &str) -> Option<(usize, usize, Duration)> {
    let name = scenario.host.project.as_str();
    let before = scenario.ids();
    let watch = Watch::start(name);
    let run = scenario.run(&[command, name]);
    scenario.wait_until_healthy();
    let away = watch.away();
    let after = scenario.ids();
    let untouched = after.iter().filter(|id| before.contains(id)).count();
    let longest = away.values().copied().collect::<Option<Vec<_>>>()?;
    let longest = longest.into_iter().max().unwrap_or_default();
    (run.code == Some(0)).then_some((before.len(), untouched, longest))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// An adoption of a running stack, and `compose up -d` of the same stack, which has nothing to do: medians in alternation.
fn speed(case: Case) {
    let scenario = Scenario::new(case, PLAIN, scenarios::PLAIN_FILES);
    let name = scenario.host.project.as_str();
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..7 {
        let started = Instant::now();
        scenario.run(&["adopt", name]).code(0);
        times[0].push(started.elapsed());
        scenario.rehearsal.world(|world| world.records.clear());
        let started = Instant::now();
        scenario.up();
        times[1].push(started.elapsed());
    }
    let [adopt, up] = times.map(|mut times| {
        times.sort();
        times[3]
    });
    println!("adopt: {adopt:.2?}; compose up -d with nothing to do: {up:.2?}");
}
