//! The proof of the faithful rewrite: the real compose program reads every stack of a corpus in its own
//! directory, and its rewrite as a manager would hold it; the two have to be the same configuration. Of the
//! literal rewrite, every difference between them has to be said, and nothing else.
//!
//! Runs where `STACKLIFT_CORPUS` names a folder with a `manifest.jsonl` and `STACKLIFT_TEST_COMPOSE` a
//! compose program; says so and passes where not. `scripts/oracle` sets both.

#[path = "oracle/compare.rs"]
mod compare;
#[path = "oracle/corpus.rs"]
mod corpus;
#[path = "oracle/judge.rs"]
mod judge;
#[path = "oracle/losses.rs"]
mod losses;
#[path = "oracle/mutation.rs"]
mod mutation;
#[path = "oracle/several.rs"]
mod several;
#[path = "oracle/style.rs"]
mod style;

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
use losses::Account;
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, TestRunner},
};

#[test]
fn the_corpus_means_the_same_to_the_manager() {
    if let (Some(corpus), Some(compose)) = (corpus(), compose()) {
        hold("corpus", &compose, &corpus);
    }
}

#[test]
fn the_cases_mean_the_same_to_the_manager() {
    if let Some(compose) = compose() {
        hold("cases", &compose, &corpus::cases());
    }
}

/// Every change of `mutations.txt`, each made to the first stack of the corpus, from a place of its own on, to
/// which it applies and that compose loads then.
#[test]
fn the_mutated_corpus_means_the_same_to_the_manager() {
    const TRIES: usize = 6;
    let (Some(corpus), Some(compose)) = (corpus(), compose()) else {
        return;
    };
    let only = only();
    let mut mutations = mutation::all();
    mutations.retain(|mutation| mutation.name.contains(&only));
    let verdicts = on_two_threads(mutations.len(), |at| {
        let mutation = &mutations[at];
        let places = (0..corpus.len()).map(|place| (at * 37 + place) % corpus.len());
        let judged = places.filter_map(|place| {
            let verdict = Judge::new(&compose, &corpus[place], place, Some(mutation)).verdict()?;
            let name = format!("{} of {}", mutation.name, corpus[place].name());
            Some((name, verdict))
        });
        let mut tried = None;
        for one in judged.take(TRIES) {
            let is_loadable = !matches!(one.1, Verdict::NotLoadable { .. });
            tried = Some(one);
            if is_loadable {
                break;
            }
        }
        tried
    });
    let wrong = report("mutated", &verdicts);
    assert_eq!(wrong, 0, "{wrong} mutations are different at the manager");
    assert_eq!(verdicts.len(), mutations.len(), "each applies somewhere");
}

/// The command that a refusal of several files names makes one of them that means the same.
#[test]
fn several_files_made_one_mean_the_same_to_the_manager() {
    let Some(compose) = compose() else {
        return;
    };
    for (name, files) in several::STACKS {
        let made = judge::made_one(&compose, files);
        assert_eq!(made, Ok(()), "{name}");
    }
}

/// Cases that the losses do not follow: a remote build's bare `args`, a reset behind `extends`, a variable
/// without a name or with a variable for a name, and what the shell says of env files.
const NOT_FOLLOWED: [&str; 6] = [
    "build-remote-args",
    "env-extends-reset",
    "env-nameless",
    "env-names-variable",
    "shell-disable",
    "shell-env-files",
];

/// B01 and B02: what the literal rewrite is said to lose is what it loses.
#[test]
fn what_is_said_to_be_lost_is_lost() {
    let Some(compose) = compose() else {
        return;
    };
    let mut cases = corpus::cases();
    cases.retain(|case| !NOT_FOLLOWED.contains(&case.name().as_str()));
    let mut wrong = 0;
    for (what, stacks) in [("corpus", corpus().unwrap_or_default()), ("cases", cases)] {
        let accounts = judged(&compose, &stacks, |judge| Some(losses::account(judge)));
        wrong += balance(what, &accounts);
    }
    assert_eq!(wrong, 0, "{wrong} losses are not what is said");
}

/// N11: what is written into `stack.env` reaches a container, and a `${…}`, as it was.
#[test]
fn every_value_arrives_at_compose() {
    let Some(compose) = compose() else {
        return;
    };
    let mut runner = TestRunner::new(Config::with_cases(1));
    let values = "([ -~]|[\n\r\tä\u{2028}]|[\\\\'\"$#{}= ]){0,12}";
    let values = proptest::collection::vec(values, 150..151);
    for _ in 0..12 {
        let values = values.new_tree(&mut runner).expect("values").current();
        let wrong = judge::arrives(&compose, &values);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

fn corpus() -> Option<Vec<Stack>> {
    let folder = std::env::var_os("STACKLIFT_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("not run: STACKLIFT_CORPUS is not set");
    }
    Some(corpus::read(&folder?))
}

fn compose() -> Option<PathBuf> {
    let compose = std::env::var_os("STACKLIFT_TEST_COMPOSE").map(PathBuf::from);
    if compose.is_none() {
        eprintln!("not run: STACKLIFT_TEST_COMPOSE is not set");
    }
    Some(std::path::absolute(compose?).expect("a path"))
}

fn only() -> String {
    std::env::var("STACKLIFT_ORACLE_ONLY").unwrap_or_default()
}

/// Judges every stack; none may be different.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method is of one lifetime, the closure of any"
)]
fn hold(what: &str, compose: &Path, stacks: &[Stack]) {
    let verdicts = judged(compose, stacks, |judge| judge.verdict());
    let wrong = report(what, &verdicts);
    assert_eq!(wrong, 0, "{wrong} stacks are different at the manager");
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

/// Prints what is lost and what is said to be; how much of it does not agree.
fn balance(what: &str, accounts: &BTreeMap<String, Account>) -> usize {
    let (mut loadable, mut refused, mut agree) = (0, 0, 0);
    let (mut real, mut said, mut silent, mut false_alarms) = (0, 0, 0, 0);
    for (name, account) in accounts.iter().filter(|(_, account)| account.loadable) {
        loadable += 1;
        refused += usize::from(account.refused);
        real += account.real;
        said += account.said;
        silent += account.silent.len();
        false_alarms += account.false_alarms.len();
        if account.silent.is_empty() && account.false_alarms.is_empty() {
            agree += 1;
        }
        for place in &account.silent {
            println!("{what}: NOT SAID: {name}: {place}");
        }
        for loss in &account.false_alarms {
            println!("{what}: NOT LOST: {name}: {loss}");
        }
    }
    println!(
        "{what}: losses of {loadable} stacks ({refused} refused by the manager's compose): {agree} agree; {real} differences, {said} said, {silent} not said, {false_alarms} not lost"
    );
    silent + false_alarms
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
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let (mut loadable, mut equal, mut different) = (0, 0, 0);
    for (name, verdict) in verdicts {
        match verdict {
            Verdict::NotLoadable { why, refusals } if refusals.is_empty() => {
                println!("{what}: not loadable, but rewritten: {name}: {why}");
            }
            Verdict::NotLoadable { why, refusals } => {
                println!("{what}: not loadable: {name}: {why}");
                for (reason, message) in refusals {
                    println!("{what}: so refused by {reason}: {message}");
                }
            }
            Verdict::Equal => {
                loadable += 1;
                equal += 1;
            }
            Verdict::Refused(reasons) => {
                loadable += 1;
                for (reason, message) in reasons {
                    println!("{what}: refused: {name}: {message}");
                    *refused.entry(reason.clone()).or_default() += 1;
                }
            }
            Verdict::Different(where_) => {
                loadable += 1;
                different += 1;
                println!("{what}: DIFFERENT: {name}: {where_}");
            }
        }
    }
    println!(
        "{what}: {} stacks, {loadable} loadable, {equal} equal, {different} different",
        verdicts.len()
    );
    for (reason, count) in refused {
        println!("{what}: refused by {reason}: {count}");
    }
    different
}
