//! `stacklift adopt --git`: a stack that Portainer deploys from a Git repository (M24, M25).

use std::fs;

use serde_json::Value;
use testbed::{Call, Era, FaultKind, Files, Git};

use crate::{
    bench::{Bench, MARKED, PLAIN, Run, write_private},
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
fn m25_a_private_repository_needs_its_password_which_is_never_shown() {
    let bench = bench(PLAIN, None, &[(FILE, PLAIN)]);
    bench.git(|git| {
        let repository = git.repositories.get_mut(URL).expect("a repository");
        repository.password = Some(MARKED.to_owned());
    });
    let folder = tempfile::tempdir().expect("a folder");
    let right = folder.path().join("right");
    write_private(&right, &format!("{MARKED}\n"));
    let with = |file: &std::path::Path| {
        format!(
            "adopt web -v {FLAGS} --git-user bob --git-password-file {}",
            file.display()
        )
    };
    run(&bench, &format!("adopt web {FLAGS} --git-user bob")).fails("--git-user needs a password");
    assert!(nothing_was_sent(&bench));
    run(&bench, &format!("{} --output json", with(&right))).code(0);
    let body = sent(&bench);
    assert_eq!(body["repositoryUsername"], "bob");
    assert_eq!(body["repositoryPassword"], MARKED);
    assert_eq!(body["repositoryAuthentication"], true);
    // From a variable, too. The stack is there then.
    let user = ("STACKLIFT_GIT_USER", "bob");
    let env = [("STACKLIFT_GIT_PASSWORD", MARKED), user];
    bench.world(|world| world.records.clear());
    run_with(&bench, &format!("plan web {FLAGS} --request"), &env)
        .succeeds("\"repositoryUsername\": \"bob\"")
        .hides("repositoryPassword");
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

/// A newer Compose file.
fn newer() -> String {
    PLAIN.replace("sleep 1000", "sleep 9")
}

#[test]
fn m24_a_git_stack_that_was_deleted_is_recreated_from_its_repository() {
    let bench = bench(PLAIN, Some("A=1\n"), &[(FILE, PLAIN)]);
    let password = [("STACKLIFT_GIT_PASSWORD", MARKED)];
    bench.git(|git| {
        let repository = git.repositories.get_mut(URL).expect("a repository");
        repository.password = Some(MARKED.to_owned());
    });
    let adopt = format!("adopt web {FLAGS} --git-user bob --git-skip-tls-verify --auto-update 5m");
    run_with(&bench, &adopt, &password).code(0);
    let first = sent(&bench);
    bench.git(|git| push(git, &[(FILE, &newer())]));
    run_with(&bench, &adopt, &password).code(0);
    bench.world(|world| world.records.clear());
    bench.forget_requests();
    for args in ["restore web --dry-run", "restore web"] {
        run(&bench, args).fails(&[
            "Portainer cannot read blog/compose.yaml from https://git.example/stacks.git: status 400: Invalid git credential",
            "for a private repository, set STACKLIFT_GIT_PASSWORD",
        ]);
    }
    let told = "the Portainer stack is recreated from blog/compose.yaml of https://git.example/stacks.git (main) as it is now, with a new ID";
    for args in ["restore web --dry-run", "restore web -v"] {
        assert!(nothing_was_sent(&bench));
        let restored = run_with(&bench, args, &password).code(0);
        let other = ": its repository has another Compose file than the snapshot";
        assert_eq!(restored.err.contains(other), !args.contains("--dry-run"));
        restored.says(told).hides(MARKED);
    }
    assert_eq!(sent(&bench), first);
    assert!(bench.calls(Call::Create).is_empty());
    assert!(bench.world(|world| world.records.values().all(|one| one.git.is_some())));
    for path in bench.saved("") {
        let text = fs::read_to_string(&path).expect("a snapshot");
        assert!(!text.contains(MARKED), "{}", path.display());
    }
}
