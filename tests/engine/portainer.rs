//! Portainer's own container on the real engine. The embedded Portainer runs the real Compose in it, so that a request in
//! flight is real, and `docker top` shows it (M21).

use std::{env, fs, path::Path};

use tempfile::TempDir;
use testbed::{Era, Program};

use crate::host::{Compose, Host, required};

/// Where Portainer stores the files of its stacks (M07).
const STACKS: &str = "/data/compose";

/// The container `$PROJECT-portainer`. Dropping [`Host`] removes it and its image.
pub struct Portainer {
    /// Mounted at [`STACKS`].
    stacks: TempDir,
    /// The program that the embedded Portainer runs, and a script to run before its next deployment.
    programs: TempDir,
}

impl Portainer {
    /// Starts a container with the image name of Portainer, the engine's socket and the program that deploys: the Compose
    /// program of the host, or for newer versions `STACKLIFT_TEST_NEWER`, which uses Compose as a library.
    pub fn start(host: &Host, era: Era) -> Self {
        let image = "portainer/portainer-ce:$PROJECT";
        host.docker(&format!("tag $IMAGE {image}"));
        let stacks = tempfile::tempdir().unwrap();
        let mut mounts = vec![
            format!("{}:/var/run/docker.sock", socket()),
            format!("{}:{STACKS}", stacks.path().display()),
            format!("{}:{}:ro", program(era), inside(era)),
        ];
        // The program may be linked to libraries of the host.
        for libraries in ["/usr/lib", "/usr/lib64", "/lib", "/lib64"] {
            if Path::new(libraries).exists() {
                mounts.push(format!("{libraries}:{libraries}:ro"));
            }
        }
        let mounts = mounts.join(" -v ");
        host.docker(&format!(
            "run -d --name $PROJECT-portainer --label $MARK --network=none --env=HOME=/tmp -v {mounts} {image} /bin/sleep 3600"
        ));
        let programs = tempfile::tempdir().unwrap();
        let hook = programs.path().join("hook");
        let script = format!(
            "if mv {0} {0}.run 2>/dev/null; then sh {0}.run; fi >/dev/null 2>&1 </dev/null\n\
             exec docker exec $PROJECT-portainer {1} \"$@\"\n",
            hook.display(),
            inside(era)
        );
        fs::write(programs.path().join("deploy"), host.filled(&script)).unwrap();
        Self { stacks, programs }
    }

    /// How the embedded Portainer runs Compose.
    pub fn program(&self, era: Era) -> Program {
        let deploy = self.programs.path().join("deploy");
        Program {
            command: vec!["sh".to_owned(), deploy.to_str().unwrap().to_owned()],
            era,
            folder: self.stacks.path().to_owned(),
            seen_as: STACKS.to_owned(),
        }
    }

    /// Runs a shell script on this host once, right before the next deployment.
    pub fn before_deployment(&self, script: &str) {
        fs::write(self.programs.path().join("hook"), script).unwrap();
    }
}

/// The socket of the engine.
pub fn socket() -> String {
    let host = env::var("DOCKER_HOST").unwrap_or_default();
    let socket = host.strip_prefix("unix://");
    socket.unwrap_or("/var/run/docker.sock").to_owned()
}

/// Where the program that deploys is in the container.
pub fn inside(era: Era) -> &'static str {
    match era {
        Era::Sync => "/docker-compose",
        Era::Library | Era::Async => "/newer",
    }
}

/// The program that deploys.
fn program(era: Era) -> String {
    match era {
        Era::Sync => Compose::Two.program(),
        Era::Library | Era::Async => required("STACKLIFT_TEST_NEWER"),
    }
}
