//! Portainer's own container on the real engine. The embedded Portainer runs the real Compose program in it, so that a
//! request in flight is real, and `docker top` shows it (M21).

use std::{env, path::Path};

use tempfile::TempDir;

use crate::host::{Host, IMAGE, attempt, docker};

/// Where Portainer stores the files of its stacks (M07).
const STACKS: &str = "/data/compose";

/// The container. Dropping [`Host`] removes it.
pub struct Portainer {
    /// Its name.
    pub container: String,
    image: String,
    /// Mounted at [`STACKS`].
    stacks: TempDir,
}

impl Portainer {
    /// Starts a container with the image name of Portainer, the engine's socket and the Compose program of the host.
    pub fn start(host: &Host) -> Self {
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
            format!("{}:/docker-compose:ro", compose_program()),
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
        let portainer = Self {
            container,
            image,
            stacks,
        };
        let command = portainer.compose().command;
        let version: Vec<_> = command[1..].iter().map(String::as_str).collect();
        docker(&[&version[..], &["version"]].concat());
        portainer
    }

    /// How the embedded Portainer runs Compose.
    pub fn compose(&self) -> rehearsal::Compose {
        let command = ["docker", "exec", &self.container, "/docker-compose"];
        rehearsal::Compose {
            command: command.map(str::to_owned).to_vec(),
            folder: self.stacks.path().to_owned(),
            seen_as: STACKS.to_owned(),
        }
    }

    /// Whether a Compose process runs in the container.
    pub fn is_busy(&self) -> bool {
        docker(&["top", &self.container]).contains("--project-name")
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
