//! The real engine that the tests run on. Everything that a test creates on it is removed at its end.

use std::{
    env,
    io::{self, Write as _},
    panic,
    path::Path,
    process::{Command, id},
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// The image that `scripts/test` creates.
pub const IMAGE: &str = "stacklift-test-busybox";

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
        // No name begins with another one.
        Self {
            project: format!("stacklift-test-{}-{count:03}", id()),
        }
    }

    /// A text with `$PROJECT`, `$IMAGE` and `$MARK`, the label that makes [`Host`] remove an object, replaced.
    pub fn filled(&self, text: &str) -> String {
        text.replace("$MARK", &format!("{MARK}=$PROJECT"))
            .replace("$PROJECT", &self.project)
            .replace("$IMAGE", IMAGE)
    }

    /// What a test sees of an output: the project is `$PROJECT`.
    pub fn seen(&self, output: &str) -> String {
        output.replace(&self.project, "$PROJECT")
    }

    /// Runs `docker` with the words of a line, which is filled. The error is its message.
    fn attempt(&self, line: &str) -> Result<String, String> {
        let words = shlex::split(&self.filled(line)).expect("words");
        let output = Command::new("docker").args(words).output().unwrap();
        let text = |bytes: &[u8]| self.seen(String::from_utf8_lossy(bytes).trim_end());
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    /// Runs `docker` with the words of a line, which is filled. It must succeed. Returns its output.
    #[track_caller]
    pub fn docker(&self, line: &str) -> String {
        let output = self.attempt(line);
        output.unwrap_or_else(|message| panic!("docker {line}: {message}"))
    }

    /// The lines of its output; none if it fails.
    pub fn lines(&self, line: &str) -> Vec<String> {
        let output = self.attempt(line).unwrap_or_default();
        output.lines().map(str::to_owned).collect()
    }

    /// The inspect objects of these containers, networks or volumes, in the same order.
    pub fn inspect(&self, kind: &str, names: &[String]) -> Vec<Value> {
        if names.is_empty() {
            return Vec::new();
        }
        let found = self.docker(&format!("{kind} inspect {}", names.join(" ")));
        serde_json::from_str(&found).unwrap()
    }

    /// Removes the containers, volumes and networks with a label, and these volumes.
    pub fn remove(&self, label: &str, mut volumes: Vec<String>) {
        let found = |list: &str| self.lines(&format!("{list} -q --filter label={label}"));
        let remove =
            |line: &str, found: &[String]| self.lines(&format!("{line} {}", found.join(" ")));
        remove("rm -f -v", &found("ps -a"));
        volumes.extend(found("volume ls"));
        remove("volume rm -f", &volumes);
        remove("network rm", &found("network ls"));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.remove("$MARK", Vec::new());
        let own = "--filter reference=$PROJECT* --filter reference=*/*:$PROJECT";
        let images = format!("images {own} --format {{{{.Repository}}}}:{{{{.Tag}}}}");
        self.lines(&format!("rmi -f {}", self.lines(&images).join(" ")));
    }
}

/// A text as one word of a line.
pub fn quoted(text: &str) -> String {
    shlex::try_quote(text).expect("a word").into_owned()
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compose {
    /// `STACKLIFT_TEST_COMPOSE`.
    Two,
    /// `STACKLIFT_TEST_COMPOSE_5`.
    Five,
}

impl Compose {
    /// Its path.
    pub fn program(self) -> String {
        required(match self {
            Self::Two => "STACKLIFT_TEST_COMPOSE",
            Self::Five => "STACKLIFT_TEST_COMPOSE_5",
        })
    }

    /// It with these arguments, in `folder` for `project`.
    pub fn command(self, folder: &Path, project: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.arg("--project-directory").arg(folder);
        command.args(["-p", project]).args(arguments);
        command
    }

    /// Runs it. It must succeed. Returns its messages.
    pub fn run(self, folder: &Path, project: &str, arguments: &[&str]) -> String {
        let mut command = self.command(folder, project, arguments);
        let output = command.output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?}: {messages}");
        messages
    }
}
