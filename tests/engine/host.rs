//! The real engine that the tests run on. Everything that a test creates on it is removed at its end.

use std::{
    env,
    io::{self, Write as _},
    panic,
    path::{Path, PathBuf},
    process::{Command, Output, id},
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
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
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        static HOOK: Once = Once::new();
        // Cargo prints what a test says at the end of a long run: a failure is also printed where it happens.
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                writeln!(io::stderr(), "{info}").ok();
                usual(info);
            }));
        });
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            project: format!("stacklift-test-{}-{count}", id()),
        }
    }

    /// The full name of the container `name`.
    pub fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.project)
    }

    /// Starts a sleeping container outside the stack, which ends with the test.
    pub fn run(&self, name: &str, options: &[&str], image: &str) -> String {
        let mark = self.mark();
        let start = ["run", "-d", "--init", "--name", name, "--label", &mark];
        docker(&[&start, options, &[image, "/bin/sleep", "600"]].concat())
    }

    /// Runs a script in a container of `image`, and makes another image of the container.
    pub fn commit(&self, image: &str, script: &str, changes: &[&str], to: &str) {
        let (name, mark) = (self.name("commit"), self.mark());
        let start = ["run", "--name", &name, "--label", &mark, "--network=none"];
        docker(&[&start[..], &[image, "/bin/sh", "-c", script]].concat());
        docker(&[&["commit"], changes, &[&name, to]].concat());
        docker(&["rm", "-f", "-v", &name]);
    }

    /// The label that makes [`Host`] remove an object at the end of the test.
    pub fn mark(&self) -> String {
        format!("{MARK}={}", self.project)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let filter = format!("label={}", self.mark());
        remove_all(&filter, Vec::new());
        // Not `{project}*`: that would match the tenth test's images when the first test ends.
        let image = format!("reference={}", self.project);
        let others = format!("reference={}-*", self.project);
        let list = ["images", "--filter", &image, "--filter", &others];
        let format = ["--format", "{{.Repository}}:{{.Tag}}"];
        remove(&["rmi", "-f"], &lines(&[&list[..], &format].concat()));
    }
}

/// Removes these volumes, and the containers, volumes and networks of a filter.
pub fn remove_all(filter: &str, mut volumes: Vec<String>) {
    let found = |list: &[&str]| lines(&[list, &["-q", "--filter", filter]].concat());
    remove(&["rm", "-f", "-v"], &found(&["ps", "-a"]));
    volumes.extend(found(&["volume", "ls"]));
    remove(&["volume", "rm", "-f"], &volumes);
    remove(&["network", "rm"], &found(&["network", "ls"]));
}

fn remove(verbs: &[&str], found: &[String]) {
    if !found.is_empty() {
        let found = found.iter().map(String::as_str);
        let arguments: Vec<_> = verbs.iter().copied().chain(found).collect();
        attempt(&arguments).ok();
    }
}

/// The lines that `docker` prints; none if it fails.
pub fn lines(arguments: &[&str]) -> Vec<String> {
    let output = attempt(arguments).map(|output| output.stdout);
    let text = String::from_utf8(output.unwrap_or_default()).unwrap();
    text.lines().map(str::to_owned).collect()
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

/// Waits until something is the case.
#[track_caller]
pub fn wait_until(mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_mins(5), "it never is");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The path of a program that scripts/test provides.
pub fn required(variable: &str) -> String {
    env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run scripts/test"))
}

/// A Compose program.
pub struct Compose {
    program: String,
    first: &'static [&'static str],
    /// The folder of the Docker configuration, if it is not the usual one.
    pub config: Option<PathBuf>,
}

impl Compose {
    /// `STACKLIFT_TEST_COMPOSE`, otherwise the plugin of `docker`.
    pub fn new() -> Self {
        let program = env::var("STACKLIFT_TEST_COMPOSE").unwrap_or_default();
        let (program, first): (_, &[_]) = match program.as_str() {
            "" => ("docker".to_owned(), &["compose"]),
            _ => (program, &[]),
        };
        Self {
            program,
            first,
            config: None,
        }
    }

    /// Compose 5: `STACKLIFT_TEST_COMPOSE_5`.
    pub fn five() -> Self {
        let program = required("STACKLIFT_TEST_COMPOSE_5");
        Self {
            program,
            first: &[],
            config: None,
        }
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
            self.program,
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
        let mut command = Command::new(&self.program);
        command.envs(self.config.iter().map(|config| ("DOCKER_CONFIG", config)));
        command.args(self.first).args(arguments).output()
    }
}
