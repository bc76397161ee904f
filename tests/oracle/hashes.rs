//! The config hashes of real stacks, computed for each version from what each other one prints (B47).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use stacklift::{ComposeVersion, Dialect, Project, Read};

use crate::{
    judge::{Host, Judge},
    on_two_threads, real_stacks, required,
};

/// A program, the version that decides what it prints, and how it hashes.
struct Program {
    path: PathBuf,
    version: ComposeVersion,
    dialect: Dialect,
}

/// The programs of `scripts/compose`.
fn programs() -> [Program; 3] {
    let variables = [
        "STACKLIFT_TEST_COMPOSE",
        "STACKLIFT_TEST_COMPOSE_2_40",
        "STACKLIFT_TEST_COMPOSE_5",
    ];
    variables.map(|variable| {
        let path = required(variable);
        let version = text(Command::new(&path).args(["version", "--short"]));
        let parsed = ComposeVersion::parse(&version).expect("a version");
        let is_of_debian = parsed == ComposeVersion(2, 26, 1) && version.contains('-');
        let dialect = if is_of_debian {
            Dialect::of_debian()
        } else {
            Dialect::of(parsed)
        };
        Program {
            path,
            version: parsed,
            dialect,
        }
    })
}

fn text(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs `config` in the directory of a stack, if the program accepts the stack.
fn config(program: &Path, host: &Host, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args(["-p", "web", "-f", &host.file, "config"])
        .args(arguments);
    let output = command
        .current_dir(&host.dir)
        .env_clear()
        .envs(&host.shell)
        .output();
    let output = output.expect("the program runs");
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).expect("UTF-8"))
}

/// How many hashes were compared, and those that differ.
fn compared(programs: &[Program], host: &Host) -> (usize, Vec<String>) {
    let printed: Vec<Option<Value>> = programs
        .iter()
        .map(|program| {
            let text = config(&program.path, host, &["--format", "json"])?;
            Some(serde_json::from_str(&text).expect("JSON"))
        })
        .collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for (of, printed_by_it) in programs.iter().zip(&printed) {
        let Some(own) = printed_by_it else { continue };
        let hashes = config(&of.path, host, &["--hash", "*"]).expect("hashes");
        let hashes = hashes.lines().filter_map(|line| line.split_once(' '));
        let hashes: BTreeMap<&str, &str> = hashes.collect();
        for (by, printed) in programs.iter().zip(&printed) {
            let Some(printed) = printed else { continue };
            let none = BTreeMap::new();
            let read = Read {
                config: printed.clone(),
                printed_by: by.version,
                folder: None,
            };
            let project = Project::new(&read, &none, None);
            for (service, hash) in &hashes {
                // Before 5.5, `config --hash` leaves out env files and variables without a value, which `up` resolves.
                let is_whole = own["services"][service]["environment"]
                    .as_object()
                    .is_none_or(|all| all.values().all(|value| !value.is_null()));
                if !is_whole || host.text.contains("env_file") {
                    continue;
                }
                count += 1;
                if !project.has_hash(service, hash, [of.dialect]) {
                    wrong.push(format!("{service}: {:?} from {:?}", of.version, by.version));
                }
            }
        }
    }
    (count, wrong)
}

mod needs_corpus {
    use super::*;

    /// Each program prints, and each hashes.
    #[test]
    #[ignore = "needs STACKLIFT_CORPUS and Compose 2.26, 2.40 and 5: run scripts/test"]
    fn b47_any_version_hashes_the_corpus_with_compose_5() {
        let (corpus, programs) = (real_stacks(), programs());
        let found = on_two_threads(corpus.len(), |at| {
            let judge = Judge::new(&programs[0].path, &corpus[at], at, None);
            Some((corpus[at].name(), compared(&programs, &judge.host()?)))
        });
        let count: usize = found.values().map(|(count, _)| count).sum();
        let wrong = found
            .iter()
            .flat_map(|(name, (_, wrong))| wrong.iter().map(move |what| (name, what)));
        let wrong: Vec<_> = wrong.collect();
        println!("{count} hashes compared");
        assert!(count > 2000, "{count}");
        assert_eq!(wrong, []);
    }
}
