//! Portainer's own container on the real engine. The embedded Portainer runs the real Compose in it, so that a request in
//! flight is real, and `docker top` shows it (M21).

use std::{env, fs, path::Path};

use tempfile::TempDir;
use testbed::{Era, Program};

use crate::host::{Host, IMAGE, attempt, docker, required, wait_until};

/// Where Portainer stores the files of its stacks (M07).
const STACKS: &str = "/data/compose";

/// The container. Dropping [`Host`] removes it.
pub struct Portainer {
    /// Its name.
    pub container: String,
    /// How it deploys.
    pub era: Era,
    image: String,
    /// Mounted at [`STACKS`].
    stacks: TempDir,
    /// The program that the embedded Portainer runs, and a script to run before its next deployment.
    programs: TempDir,
}

impl Portainer {
    /// Starts a container with the image name of Portainer, the engine's socket and the program that deploys: the Compose
    /// program of the host, or for newer versions `STACKLIFT_TEST_NEWER`, which uses Compose as a library.
    pub fn start(host: &Host, era: Era) -> Self {
        let image = format!("portainer/portainer-ce:{}", host.project);
        docker(&["tag", IMAGE, &image]);
        let container = host.name("portainer");
        let stacks = tempfile::tempdir().unwrap();
        let socket = env::var("DOCKER_HOST").unwrap_or_default();
        let socket = socket
            .strip_prefix("unix://")
            .unwrap_or("/var/run/docker.sock");
        let mut mounts = vec![
            format!("{socket}:/var/run/docker.sock"),
            format!("{}:{STACKS}", stacks.path().display()),
            format!("{}:{}:ro", program(era), inside(era)),
        ];
        // The program may be linked to libraries of the host.
        for libraries in ["/usr/lib", "/usr/lib64", "/lib", "/lib64"] {
            if Path::new(libraries).exists() {
                mounts.push(format!("{libraries}:{libraries}:ro"));
            }
        }
        let mark = host.mark();
        let mut arguments = vec!["run", "-d", "--name", &container, "--label", &mark];
        arguments.extend(["--network=none", "--env=HOME=/tmp"]);
        arguments.extend(mounts.iter().flat_map(|mount| ["-v", mount]));
        arguments.extend([&image, "/bin/sleep", "3600"]);
        docker(&arguments);
        let programs = tempfile::tempdir().unwrap();
        let hook = programs.path().join("hook");
        let script = format!(
            "if mv {0} {0}.run 2>/dev/null; then sh {0}.run; fi >/dev/null 2>&1 </dev/null\n\
             exec docker exec {container} {1} \"$@\"\n",
            hook.display(),
            inside(era)
        );
        fs::write(programs.path().join("deploy"), script).unwrap();
        Self {
            container,
            era,
            image,
            stacks,
            programs,
        }
    }

    /// How the embedded Portainer runs Compose.
    pub fn program(&self) -> Program {
        let deploy = self.programs.path().join("deploy");
        Program {
            command: vec!["sh".to_owned(), deploy.to_str().unwrap().to_owned()],
            era: self.era,
            folder: self.stacks.path().to_owned(),
            seen_as: STACKS.to_owned(),
        }
    }

    /// Runs a shell script on this host once, right before the next deployment.
    pub fn before_deployment(&self, script: &str) {
        fs::write(self.programs.path().join("hook"), script).unwrap();
    }

    /// Whether it is deploying or removing a stack.
    pub fn is_busy(&self) -> bool {
        docker(&["top", &self.container]).contains(inside(self.era))
    }

    /// Waits until it is killed, with everything that it runs.
    pub fn wait_until_killed(&self) {
        let state = ["inspect", "-f", "{{.State.Running}}", &self.container];
        wait_until(|| docker(&state) != "true");
    }

    /// Starts it after it was killed.
    pub fn start_again(&self) {
        docker(&["start", &self.container]);
    }
}

/// Where the program that deploys is in the container.
fn inside(era: Era) -> &'static str {
    match era {
        Era::Sync => "/docker-compose",
        Era::Library | Era::Async => "/newer",
    }
}

/// The program that deploys.
fn program(era: Era) -> String {
    match era {
        Era::Sync => compose_program(),
        Era::Library | Era::Async => required("STACKLIFT_TEST_NEWER"),
    }
}

/// The path of the Compose program itself, not of `docker`.
fn compose_program() -> String {
    let program = env::var("STACKLIFT_TEST_COMPOSE").unwrap_or_default();
    if !program.is_empty() {
        return program;
    }
    let format = "{{range .ClientInfo.Plugins}}{{if eq .Name \"compose\"}}{{.Path}}{{end}}{{end}}";
    docker(&["info", "--format", format])
}

impl Drop for Portainer {
    fn drop(&mut self) {
        attempt(&["rm", "-f", &self.container]).ok();
        attempt(&["rmi", "-f", &self.image]).ok();
    }
}
