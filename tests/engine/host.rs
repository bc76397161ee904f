//! The real engine that the tests run on. Everything that a test creates on it is removed at its end.

use std::{
    env,
    path::Path,
    process::{Command, Output, id},
    sync::atomic::{AtomicU32, Ordering},
};

/// The image that `scripts/test` creates.
pub const IMAGE: &str = "stacklift-test-busybox";

/// The label that names a container's project.
pub const PROJECT: &str = "com.docker.compose.project";

/// The label of every container, network and volume of a test.
const MARK: &str = "stacklift.test";

/// The engine, for one test. Dropping it removes everything with the label of the test.
pub struct Host {
    /// The unique name of the test's project.
    pub project: String,
}

impl Host {
    /// Panics if the engine or the test image is missing.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let succeeds =
            |arguments: &[&str]| attempt(arguments).is_ok_and(|output| output.status.success());
        assert!(
            succeeds(&["version"]),
            "`docker version` failed: scripts/test starts an engine"
        );
        assert!(
            succeeds(&["image", "inspect", IMAGE]),
            "image {IMAGE} not found: scripts/test creates it"
        );
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            project: format!("stacklift-test-{}-{count}", id()),
        }
    }

    /// The full name of the container `name`.
    pub fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.project)
    }

    /// The label that makes [`Host`] remove an object at the end of the test.
    pub fn mark(&self) -> String {
        format!("{MARK}={}", self.project)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let filter = format!("label={}", self.mark());
        let lines = |arguments: &[&str]| {
            let output = attempt(arguments)
                .map(|output| output.stdout)
                .unwrap_or_default();
            let text = String::from_utf8_lossy(&output).into_owned();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let remove = |verbs: &[&str], found: Vec<String>| {
            if !found.is_empty() {
                let found = found.iter().map(String::as_str);
                let arguments: Vec<_> = verbs.iter().copied().chain(found).collect();
                attempt(&arguments).ok();
            }
        };
        remove(
            &["rm", "-f", "-v"],
            lines(&["ps", "-aq", "--filter", &filter]),
        );
        remove(
            &["volume", "rm", "-f"],
            lines(&["volume", "ls", "-q", "--filter", &filter]),
        );
        remove(
            &["network", "rm"],
            lines(&["network", "ls", "-q", "--filter", &filter]),
        );
        // Not `{project}*`: that would match the tenth test's images when the first test ends.
        let image = format!("reference={}", self.project);
        let others = format!("reference={}-*", self.project);
        remove(
            &["rmi", "-f"],
            lines(&[
                "images",
                "--filter",
                &image,
                "--filter",
                &others,
                "--format",
                "{{.Repository}}:{{.Tag}}",
            ]),
        );
    }
}

/// Runs `docker`, which must succeed. Returns its output.
pub fn docker(arguments: &[&str]) -> String {
    let output = attempt(arguments).unwrap();
    assert!(
        output.status.success(),
        "docker {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// Runs `docker`.
pub fn attempt(arguments: &[&str]) -> std::io::Result<Output> {
    Command::new("docker").args(arguments).output()
}

/// The path of a program that scripts/test provides.
pub fn required(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run scripts/test"))
}

/// A Compose program.
pub struct Compose {
    program: String,
    first: &'static [&'static str],
}

impl Compose {
    /// `STACKLIFT_TEST_COMPOSE`, otherwise the plugin of `docker`. Panics if the program does not run.
    pub fn new() -> Self {
        let program = env::var("STACKLIFT_TEST_COMPOSE").unwrap_or_default();
        if program.is_empty() {
            return Self::of("docker".to_owned(), &["compose"]);
        }
        Self::of(program, &[])
    }

    /// Compose 5: `STACKLIFT_TEST_COMPOSE_5`. Panics if the program does not run.
    pub fn five() -> Self {
        Self::of(required("STACKLIFT_TEST_COMPOSE_5"), &[])
    }

    fn of(program: String, first: &'static [&'static str]) -> Self {
        let compose = Self { program, first };
        let output = compose.attempt(&["version"]);
        assert!(
            output.is_ok_and(|output| output.status.success()),
            "`{} version` failed: scripts/test downloads a Compose program",
            compose.words()
        );
        compose
    }

    /// Runs it in `folder` for `project`. It must succeed. Returns its messages.
    pub fn run(&self, folder: &Path, project: &str, arguments: &[&str]) -> String {
        let dir = folder.to_str().unwrap();
        let start = ["--project-directory", dir, "-p", project];
        let arguments: Vec<_> = start.iter().chain(arguments).copied().collect();
        let output = self.attempt(&arguments).unwrap();
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "{} {}: {messages}",
            self.words(),
            arguments.join(" ")
        );
        messages
    }

    /// Makes it the Compose program of a host whose `PATH` starts with `folder`.
    pub fn install(&self, folder: &Path) {
        if self.first.is_empty() {
            std::os::unix::fs::symlink(&self.program, folder.join("docker-compose")).unwrap();
        }
    }

    fn attempt(&self, arguments: &[&str]) -> std::io::Result<Output> {
        Command::new(&self.program)
            .args(self.first)
            .args(arguments)
            .output()
    }

    fn words(&self) -> String {
        let words: Vec<_> = std::iter::once(self.program.as_str())
            .chain(self.first.iter().copied())
            .collect();
        words.join(" ")
    }
}
