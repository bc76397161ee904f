//! Records what `stacklift --version` prints: the commit, the target and the version of Rust.
//!
//! The build needs no git: without a repository, the commit is the one in `STACKLIFT_COMMIT`, if any.

use std::{env, path::Path, process::Command};

fn main() {
    for path in ["build.rs", "src", "crates", "Cargo.toml", "Cargo.lock"] {
        println!("cargo:rerun-if-changed={path}");
    }
    for variable in ["STACKLIFT_COMMIT", "STACKLIFT_COMMIT_DATE"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let given = |name| env::var(name).ok().filter(|value| !value.is_empty());
    // A tarball may be unpacked inside another repository.
    let is_own = git("rev-parse --show-prefix").is_some_and(|prefix| prefix.is_empty());
    let of_git = |arguments| git(arguments).filter(|_| is_own);
    let log = of_git("rev-parse --git-path logs/HEAD");
    // If a listed file did not exist, Cargo would run this script at each build.
    if let Some(log) = log.filter(|log| Path::new(log).exists()) {
        println!("cargo:rerun-if-changed={log}");
    }
    let (commit, date) = match given("STACKLIFT_COMMIT") {
        Some(commit) => (Some(commit), given("STACKLIFT_COMMIT_DATE")),
        None => (
            of_git("describe --always --dirty --abbrev=40 --exclude=*"),
            of_git("log -1 --format=%cs"),
        ),
    };
    let rustc = env::var("RUSTC")
        .ok()
        .and_then(|rustc| printed(&rustc, &["--version"]));
    for (name, value) in [
        ("STACKLIFT_COMMIT", commit),
        ("STACKLIFT_COMMIT_DATE", date),
        ("STACKLIFT_TARGET", given("TARGET")),
        ("STACKLIFT_RUSTC", rustc),
    ] {
        println!(
            "cargo:rustc-env={name}={}",
            value.as_deref().unwrap_or("unknown")
        );
    }
}

fn git(arguments: &str) -> Option<String> {
    let arguments = ["--no-optional-locks"]
        .into_iter()
        .chain(arguments.split(' '));
    printed("git", &arguments.collect::<Vec<_>>())
}

/// What a program prints; `None` if it fails.
fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
