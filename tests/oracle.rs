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

use std::{
    collections::BTreeMap,
    path::PathBuf,
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
    let Some(folder) = std::env::var_os("STACKLIFT_CORPUS").map(PathBuf::from) else {
        eprintln!("not run: STACKLIFT_CORPUS is not set");
        return;
    };
    hold("corpus", false, || corpus::read(&folder));
}

#[test]
fn the_mutated_corpus_means_the_same_to_the_manager() {
    let Some(folder) = std::env::var_os("STACKLIFT_CORPUS").map(PathBuf::from) else {
        eprintln!("not run: STACKLIFT_CORPUS is not set");
        return;
    };
    hold("mutated", true, || corpus::read(&folder));
}

#[test]
fn the_cases_mean_the_same_to_the_manager() {
    hold("cases", false, corpus::cases);
}

/// The command that a refusal of several files names makes one of them that means the same.
#[test]
fn several_files_made_one_mean_the_same_to_the_manager() {
    let Some(compose) = std::env::var_os("STACKLIFT_TEST_COMPOSE").map(PathBuf::from) else {
        eprintln!("not run: STACKLIFT_TEST_COMPOSE is not set");
        return;
    };
    let compose = std::path::absolute(compose).expect("a path");
    for (name, files) in several::STACKS {
        let made = judge::made_one(&compose, files);
        assert_eq!(made, Ok(()), "{name}");
    }
}

/// B01 and B02: what the literal rewrite is said to lose is what it loses.
#[test]
fn what_is_said_to_be_lost_is_lost() {
    let folder = std::env::var_os("STACKLIFT_CORPUS").map(PathBuf::from);
    let corpus = || folder.as_deref().map(corpus::read).unwrap_or_default();
    let bodies = [
        ("corpus", false, corpus()),
        ("mutated", true, corpus()),
        ("cases", false, corpus::cases()),
    ];
    let mut wrong = 0;
    for (what, mutate, stacks) in bodies {
        let accounts = judged(&stacks, mutate, |judge| losses::account(&judge));
        wrong += balance(what, &accounts);
    }
    assert_eq!(wrong, 0, "what is said to be lost is not what is lost");
}

/// N11: what is written into `stack.env` reaches a container, and a `${…}`, as it was.
#[test]
fn every_value_arrives_at_compose() {
    let Some(compose) = std::env::var_os("STACKLIFT_TEST_COMPOSE").map(PathBuf::from) else {
        eprintln!("not run: STACKLIFT_TEST_COMPOSE is not set");
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

/// Judges every stack; none may be different.
fn hold(what: &str, mutate: bool, stacks: impl FnOnce() -> Vec<Stack>) {
    let verdicts = judged(&stacks(), mutate, |judge| judge.verdict());
    let wrong = report(what, &verdicts);
    assert_eq!(wrong, 0, "{wrong} stacks are different at the manager");
}

/// What comes of each stack, by its name; nothing where there is no compose program.
fn judged<T: Send>(
    stacks: &[Stack],
    mutate: bool,
    judge: impl Fn(Judge<'_>) -> T + Sync,
) -> BTreeMap<String, T> {
    let Some(compose) = std::env::var_os("STACKLIFT_TEST_COMPOSE").map(PathBuf::from) else {
        eprintln!("not run: STACKLIFT_TEST_COMPOSE is not set");
        return BTreeMap::new();
    };
    let compose = std::path::absolute(compose).expect("a path");
    let only = std::env::var("STACKLIFT_ORACLE_ONLY").unwrap_or_default();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(stack) = stacks.get(at) else { break };
                    if !stack.name().contains(&only) {
                        continue;
                    }
                    let one = judge(Judge::new(&compose, stack, at, mutate));
                    found.lock().expect("lock").insert(stack.name(), one);
                }
            });
        }
    });
    found.into_inner().expect("lock")
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
