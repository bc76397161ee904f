//! A rehearsal with the example stacks, and commands that use it.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow, ensure};
use tempfile::TempDir;
use testbed::{Options, Rehearsal, World, seed};

pub const KEY: &str = "ptr_bench";

pub struct Place {
    pub rehearsal: Rehearsal,
    pub root: TempDir,
    home: TempDir,
}

impl Place {
    /// Starts a rehearsal with the example stacks.
    pub fn new() -> Result<Self> {
        let root = tempfile::tempdir()?;
        seed::write(root.path())?;
        let world =
            World::with_examples(KEY, text(root.path())?).map_err(|error| anyhow!(error))?;
        Ok(Self {
            rehearsal: Rehearsal::start(world, Options::default())?,
            root,
            home: tempfile::tempdir()?,
        })
    }

    /// The measured program, with the Compose program of the rehearsal, which is built next to it.
    pub fn stacklift(&self, arguments: &[&str]) -> Result<Command> {
        let program = env::var_os("STACKLIFT_BENCH_PROGRAM")
            .context("STACKLIFT_BENCH_PROGRAM is not set: run scripts/bench")?;
        let compose = Path::new(&program).with_file_name("rehearsed-compose");
        let mut command = self.command(program);
        // The engine is reached by its API.
        command.args(arguments).env("PATH", self.path("bin"));
        let link = self.path("bin/docker-compose");
        if !link.exists() {
            fs::create_dir_all(self.path("bin"))?;
            symlink(compose, link)?;
        }
        Ok(command)
    }

    /// A program with the environment that leads to the rehearsal.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let url = self.rehearsal.base_url();
        command
            .env("HOME", self.home.path())
            .env("STACKMGR_API_KEY", KEY)
            .env("STACKLIFT_BASE_URL", &url)
            .env("STACKLIFT_STACKS_ROOT", self.root.path())
            .env("STACKLIFT_STATE_DIR", self.home.path().join("state"))
            .env("STACKLIFT_ENGINE", "api")
            .env("BASE_URL", &url)
            .env("STACKS_ROOT", self.root.path())
            .env(
                "DOCKER_HOST",
                format!("unix://{}", self.rehearsal.socket().display()),
            );
        command
    }

    /// `curl` with the API key. Takes the arguments of the request.
    pub fn curl(&self) -> Command {
        let mut command = self.command("curl");
        command.args(["-sSkf", "-o", "/dev/null", "-H"]);
        command.arg(format!("X-API-Key: {KEY}"));
        command
    }

    /// One `curl` process that sends the two requests of a run: the list of stacks and the create.
    pub fn two_requests(&self, stack: &str) -> Result<Command> {
        let rendered = self.stacklift(&["render", "--reveal", stack])?.output()?;
        ensure!(rendered.status.success(), "render failed: {rendered:?}");
        let payload = self.home.path().join(format!("{stack}.json"));
        fs::write(&payload, &rendered.stdout)?;
        let url = self.rehearsal.base_url();
        let mut command = self.curl();
        command.arg(format!("{url}/api/stacks"));
        command.args(["--next", "-sSkf", "-o", "/dev/null", "-H"]);
        command.arg(format!("X-API-Key: {KEY}"));
        command.args(["-H", "Content-Type: application/json", "--data-binary"]);
        command.arg(format!("@{}", payload.display()));
        command.arg(format!(
            "{url}/api/stacks/create/standalone/string?endpointId=1"
        ));
        Ok(command)
    }

    /// Removes the Portainer stack and the containers of a stack.
    pub fn reset(&self, stack: &str) {
        self.rehearsal.world(|world| {
            let here = world.records.values().filter(|record| record.name == stack);
            let ids: Vec<_> = here.map(|record| record.id).collect();
            for id in ids {
                world.records.remove(&id);
            }
            world.down(stack);
        });
        self.rehearsal.forget_requests();
    }

    /// The path of a file in a temporary directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

pub fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the path is not UTF-8")
}
