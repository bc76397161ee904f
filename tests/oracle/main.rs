//! Checks the faithful rewrite against the real compose program.
//!
//! Compose reads every stack in its own directory, and again as Portainer would hold it. The two configurations must be the
//! same.
//!
//! The tests need `STACKLIFT_TEST_COMPOSE`, a compose program, and those in `needs_corpus` also `STACKLIFT_CORPUS`, a
//! folder with a `manifest.jsonl`. They fail without them. `scripts/test` and `scripts/oracle` set both.

mod corpus;
mod hashes;
mod judge;
mod mutation;
mod parts;
mod several;
mod versions;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use corpus::Stack;
use judge::{Judge, Verdict};
use mutation::Mutation;
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, TestRunner},
};

#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn the_cases_mean_the_same_to_portainer() {
    assert_no_difference("cases", &corpus::cases());
}

/// N11: each value in `stack.env` reaches a container, and a `${…}`, unchanged.
#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn every_value_arrives_at_compose() {
    let compose = compose();
    let mut runner = TestRunner::new(Config::with_cases(1));
    let values = "([ -~]|[\n\r\tä\u{2028}]|[\\\\'\"$#{}= ]){0,12}";
    let values = proptest::collection::vec(values, 150..151);
    for _ in 0..12 {
        let values = values.new_tree(&mut runner).expect("values").current();
        let wrong = judge::arrives(&compose, &values);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

mod needs_corpus {
    use super::*;

    #[test]
    #[ignore = "needs STACKLIFT_CORPUS and a compose program: run scripts/test"]
    fn the_corpus_means_the_same_to_portainer() {
        assert_no_difference("corpus", &real_stacks());
    }

    /// Makes each change of `mutations.txt` to the first stack of the corpus, starting at a different place for each
    /// change, to which it applies and that compose still loads.
    #[test]
    #[ignore = "needs STACKLIFT_CORPUS and a compose program: run scripts/test"]
    fn the_mutated_corpus_means_the_same_to_portainer() {
        const TRIES: usize = 6;
        let mut mutations = mutation::all();
        // Those that make several files have a test of their own.
        mutations.retain(|one| !one.is_several() && one.name.contains(&only()));
        let (corpus, compose) = (real_stacks(), compose());
        let verdicts = on_two_threads(mutations.len(), |at| {
            let mutation = &mutations[at];
            let places = (0..corpus.len()).map(|place| (at * 37 + place) % corpus.len());
            let judged = places.filter_map(|place| {
                let judge = Judge::new(&compose, &corpus[place], place, Some(mutation));
                let name = format!("{} of {}", mutation.name, corpus[place].name());
                Some((name, judge.verdict()?))
            });
            let mut tried: Vec<_> = judged.take(TRIES).collect();
            let is_loadable = |(_, one): &(_, Verdict)| !matches!(one, Verdict::NotLoadable { .. });
            let at = tried.iter().position(is_loadable);
            at.map(|at| tried.swap_remove(at)).or_else(|| tried.pop())
        });
        assert_eq!(verdicts.len(), mutations.len(), "each applies somewhere");
        let wrong = report("mutated", &verdicts);
        assert_eq!(wrong, 0, "{wrong} mutations are different in Portainer");
    }

    /// Makes each stack of the corpus one of several files, in turn in each way of `mutations.txt`.
    #[test]
    #[ignore = "needs STACKLIFT_CORPUS and a compose program: run scripts/test"]
    fn the_corpus_in_several_files_means_the_same_to_portainer() {
        let (corpus, compose, only) = (real_stacks(), compose(), only());
        let mut ways = mutation::all();
        ways.retain(Mutation::is_several);
        let verdicts = on_two_threads(corpus.len(), |at| {
            let way = &ways[at % ways.len()];
            let name = format!("{} of {}", way.name, corpus[at].name());
            let judge = Judge::new(&compose, &corpus[at], at, Some(way));
            let verdict = name.contains(&only).then(|| judge.verdict())??;
            Some((name, verdict))
        });
        let wrong = report("corpus in several files", &verdicts);
        assert_eq!(wrong, 0, "{wrong} stacks are different in Portainer");
    }
}

fn real_stacks() -> Vec<Stack> {
    corpus::read(&required("STACKLIFT_CORPUS"))
}

fn compose() -> PathBuf {
    required("STACKLIFT_TEST_COMPOSE")
}

/// The path in a variable that scripts/test sets.
fn required(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set"));
    std::path::absolute(path).expect("a path")
}

fn only() -> String {
    std::env::var("STACKLIFT_ORACLE_ONLY").unwrap_or_default()
}

/// Checks that no stack means something different in Portainer.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method has one lifetime, the closure any"
)]
fn assert_no_difference(what: &str, stacks: &[Stack]) {
    let verdicts = judged(&compose(), stacks, |judge| judge.verdict());
    let wrong = report(what, &verdicts);
    assert_eq!(wrong, 0, "{wrong} stacks are different in Portainer");
}

/// What comes of each stack as it is, by its name.
fn judged<T: Send>(
    compose: &Path,
    stacks: &[Stack],
    judge: impl Fn(&Judge<'_>) -> Option<T> + Sync,
) -> BTreeMap<String, T> {
    let only = only();
    on_two_threads(stacks.len(), |at| {
        let stack = &stacks[at];
        if !stack.name().contains(&only) {
            return None;
        }
        let one = judge(&Judge::new(compose, stack, at, None))?;
        Some((stack.name(), one))
    })
}

fn on_two_threads<T: Send>(
    count: usize,
    judge: impl Fn(usize) -> Option<(String, T)> + Sync,
) -> BTreeMap<String, T> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                break;
            }
            let judged = judge(at);
            verdicts.lock().expect("lock").extend(judged);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    verdicts.into_inner().expect("lock")
}

/// Prints the sums and what is not equal; how many are different.
fn report(what: &str, verdicts: &BTreeMap<String, Verdict>) -> usize {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (name, verdict) in verdicts {
        let (kind, said) = match verdict {
            Verdict::Equal => ("equal", String::new()),
            Verdict::Resolved => ("resolved", "by Compose".to_owned()),
            Verdict::NotLoadable { why, refusals } => {
                ("not loadable", format!("{why} {refusals:?}"))
            }
            Verdict::Different(place) => ("DIFFERENT", place.clone()),
            Verdict::Refused(reasons) => {
                for (reason, _) in reasons {
                    *counts.entry(format!("refused by {reason}")).or_default() += 1;
                }
                ("refused", format!("{reasons:?}"))
            }
        };
        *counts.entry(kind.to_owned()).or_default() += 1;
        if !said.is_empty() {
            println!("{what}: {kind}: {name}: {said}");
        }
    }
    println!("{what}: {} stacks: {counts:?}", verdicts.len());
    counts.get("DIFFERENT").copied().unwrap_or_default()
}
