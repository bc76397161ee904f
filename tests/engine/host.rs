//! The real engine that the tests run on, and containers on it that are gone at the end.

use std::{
    env,
    io::Write as _,
    path::Path,
    process::{Command, Output, id},
    sync::atomic::{AtomicU32, Ordering},
};

/// The image that `scripts/test` makes.
pub const IMAGE: &str = "stacklift-test-busybox";

/// The label that names a container's project.
pub const PROJECT: &str = "com.docker.compose.project";

/// The label that every container, network and volume of one test carries.
const MARK: &str = "stacklift.test";

/// The engine, for one test.
pub struct Host {
    /// The name of the test's project, unlike all others.
    pub project: String,
}

impl Host {
    /// The host; `None` where there is no engine and none is required. Says so.
    pub fn find() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if let Err(why) = ready() {
            assert!(!required(), "STACKLIFT_TEST_ENGINE=required, but {why}");
            // Past the capture of the test harness: nobody shall take it for a pass.
            let _ = writeln!(std::io::stderr(), "skipped a test of the engine: {why}");
            return None;
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Some(Self {
            project: format!("stacklift-test-{}-{count}", id()),
        })
    }

    /// Starts a container `<project>-<name>` of `project` that sleeps.
    pub fn run(&self, name: &str, project: Option<&str>, options: &[&str]) -> String {
        self.container(
            "run",
            &["-d"],
            name,
            project,
            options,
            &["/bin/sleep", "600"],
        )
    }

    /// Creates a container and does not start it.
    pub fn create(&self, name: &str, project: Option<&str>, options: &[&str]) -> String {
        self.container(
            "create",
            &[],
            name,
            project,
            options,
            &["/bin/sleep", "600"],
        )
    }

    /// Runs a container to its end.
    pub fn run_to_end(&self, name: &str, command: &[&str]) -> String {
        let project = Some(self.project.as_str());
        self.container("run", &["--network=none"], name, project, &[], command);
        docker(&["inspect", "--format", "{{.Id}}", &self.name(name)])
    }

    fn container(
        &self,
        verb: &str,
        how: &[&str],
        name: &str,
        project: Option<&str>,
        options: &[&str],
        command: &[&str],
    ) -> String {
        let name = self.name(name);
        let mark = self.mark();
        let label = project.map(|project| format!("{PROJECT}={project}"));
        let mut arguments = vec![verb];
        arguments.extend(how);
        arguments.extend(["--name", &name, "--label", &mark]);
        if let Some(label) = &label {
            arguments.extend(["--label", label]);
        }
        arguments.extend(options);
        arguments.push(IMAGE);
        arguments.extend(command);
        docker(&arguments)
    }

    /// Makes a volume `<project>-<name>`.
    pub fn volume(&self, name: &str) -> String {
        docker(&[
            "volume",
            "create",
            "--label",
            &self.mark(),
            &self.name(name),
        ])
    }

    /// Makes a network `<project>-<name>` with a subnet of its own, and gives the subnet's first three numbers.
    pub fn network(&self, name: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let subnet = format!("10.213.{}", COUNT.fetch_add(1, Ordering::Relaxed));
        docker(&[
            "network",
            "create",
            "--label",
            &self.mark(),
            "--label",
            &format!("{PROJECT}={}", self.project),
            "--subnet",
            &format!("{subnet}.0/24"),
            &self.name(name),
        ]);
        subnet
    }

    /// What the container is called on this host.
    pub fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.project)
    }

    /// The label that has the thing gone at the end of the test.
    pub fn mark(&self) -> String {
        format!("{MARK}={}", self.project)
    }

    /// The names of all containers of this test that are there, sorted, without the project.
    pub fn there(&self) -> Vec<String> {
        let filter = format!("label={}", self.mark());
        let names = docker(&["ps", "-a", "--filter", &filter, "--format", "{{.Names}}"]);
        let mut names: Vec<_> = names
            .lines()
            .map(|name| {
                name.trim_start_matches(&format!("{}-", self.project))
                    .to_owned()
            })
            .collect();
        names.sort();
        names
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
        let images = format!("reference={}*", self.project);
        remove(
            &["rmi", "-f"],
            lines(&[
                "images",
                "--filter",
                &images,
                "--format",
                "{{.Repository}}:{{.Tag}}",
            ]),
        );
    }
}

/// Runs `docker`, which must succeed; gives what it printed.
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

fn required() -> bool {
    env::var("STACKLIFT_TEST_ENGINE").is_ok_and(|value| value == "required")
}

fn ready() -> Result<(), String> {
    let works = |arguments: &[&str]| attempt(arguments).is_ok_and(|output| output.status.success());
    if !works(&["version"]) {
        return Err("`docker version` reaches no engine: scripts/test starts one".to_owned());
    }
    if !works(&["image", "inspect", IMAGE]) {
        return Err(format!("there is no image {IMAGE}: scripts/test makes it"));
    }
    Ok(())
}

/// The compose program: `STACKLIFT_TEST_COMPOSE`, else the plugin of `docker`.
pub struct Compose {
    program: String,
    first: &'static [&'static str],
}

impl Compose {
    /// The program; `None` where there is none and no engine is required. Says so.
    pub fn find() -> Option<Self> {
        let named = env::var("STACKLIFT_TEST_COMPOSE").unwrap_or_default();
        let compose = if named.is_empty() {
            Self {
                program: "docker".to_owned(),
                first: &["compose"],
            }
        } else {
            Self {
                program: named,
                first: &[],
            }
        };
        if compose
            .attempt(&["version"])
            .is_ok_and(|output| output.status.success())
        {
            return Some(compose);
        }
        let why = format!(
            "`{} version` does not run: scripts/test gets a compose program",
            compose.words()
        );
        assert!(!required(), "STACKLIFT_TEST_ENGINE=required, but {why}");
        let _ = writeln!(std::io::stderr(), "skipped a test of the engine: {why}");
        None
    }

    /// Runs it in `folder` for `project`; it must succeed. Gives what it said.
    pub fn run(&self, folder: &Path, project: &str, arguments: &[&str]) -> String {
        let place = folder.to_str().unwrap();
        let start = ["--project-directory", place, "-p", project];
        let arguments: Vec<_> = start.iter().chain(arguments).copied().collect();
        let output = self.attempt(&arguments).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "{} {}: {said}",
            self.words(),
            arguments.join(" ")
        );
        said
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
