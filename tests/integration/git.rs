//! `stacklift adopt --git`: a stack that Portainer deploys from a Git repository (M24, M25).

use serde_json::Value;
use testbed::{Call, Era, FaultKind, Files, Git};

use crate::{
    bench::{Bench, PLAIN, Run},
    interrupted::killed_running,
};

const URL: &str = "https://git.example/stacks.git";

/// The flags of most tests.
const FLAGS: &str = "--git https://git.example/stacks.git --ref main --path blog/compose.yaml";

/// Its Compose file.
pub const FILE: &str = "blog/compose.yaml";

fn push(git: &mut Git, files: &[(&str, &str)]) {
    let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    let files: Files = files.iter().map(own).collect();
    let main = "refs/heads/main".to_owned();
    let repository = git.repositories.entry(URL.to_owned()).or_default();
    repository.default.clone_from(&main);
    repository.branches.insert(main, files);
}

/// The stack `web`, started by hand, and the repository with these files.
fn bench(compose: &str, env: Option<&str>, files: &[(&str, &str)]) -> Bench {
    bench_of(Era::Sync, compose, env, files)
}

fn bench_of(era: Era, compose: &str, env: Option<&str>, files: &[(&str, &str)]) -> Bench {
    let bench = Bench::of(era);
    bench.started("web", compose, env);
    bench.git(|git| push(git, files));
    bench
}

pub fn run(bench: &Bench, args: &str) -> Run {
    run_with(bench, args, &[])
}

pub fn run_with(bench: &Bench, args: &str, env: &[(&str, &str)]) -> Run {
    Run::of(bench.command(args).envs(env.iter().copied()))
}

/// The body of the one create.
pub fn sent(bench: &Bench) -> Value {
    let creates = bench.calls(Call::CreateGit);
    assert_eq!(creates.len(), 1);
    serde_json::from_slice(&creates[0].body).expect("JSON")
}

/// Whether Portainer was only read.
pub fn nothing_was_sent(bench: &Bench) -> bool {
    bench
        .requests()
        .iter()
        .all(|one| matches!(one.method.as_str(), "GET" | "HEAD") || one.call == Call::Preview)
}

#[test]
fn m24_an_interrupted_adoption_from_git_goes_on_with_its_repository() {
    let bench = bench(PLAIN, None, &[(FILE, PLAIN)]);
    let adopt = bench.command(&format!("adopt web {FLAGS}"));
    killed_running(adopt, Call::CreateGit, &bench, FaultKind::Hang, || {});
    let words = FLAGS.replace(" main", " refs/heads/main");
    let next = format!("stacklift adopt web {words}\n");
    run(&bench, "list").succeeds(&["interrupted run", &next]);
    run(&bench, "plan web").succeeds(&format!("Next: {next}"));
    run(&bench, next.trim_start_matches("stacklift ").trim_end())
        .succeeds("adopted web: 1 container kept running");
}
