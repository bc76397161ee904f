//! Containers, volumes and networks for the tests.

use std::sync::atomic::{AtomicU32, Ordering};

use super::host::{Host, IMAGE, PROJECT, docker};

impl Host {
    /// Starts a container `<project>-<name>` of `project` that sleeps. Returns its ID.
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

    /// Creates a container without starting it. Returns its ID.
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

    /// Runs a container until it exits. Returns its ID.
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

    /// Creates a volume `<project>-<name>`. Returns its name.
    pub fn volume(&self, name: &str) -> String {
        docker(&[
            "volume",
            "create",
            "--label",
            &self.mark(),
            &self.name(name),
        ])
    }

    /// Creates a network `<project>-<name>` with its own subnet. Returns the first three numbers of the subnet.
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

    /// The names of all existing containers of this test, sorted, without the project.
    pub fn existing(&self) -> Vec<String> {
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
