//! A served rehearsal with the example stacks, and commands that are pointed at it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow};
use rehearsal::{Options, Rehearsal, World, seed};
use tempfile::TempDir;

pub const KEY: &str = "ptr_bench";

pub struct Place {
    pub rehearsal: Rehearsal,
    pub root: TempDir,
    home: TempDir,
}

impl Place {
    /// What `stacklift rehearse --serve` serves.
    pub fn new() -> Result<Self> {
        let root = tempfile::tempdir()?;
        seed::write(root.path())?;
        let world = World::with_examples(KEY, text(root.path())?).map_err(|why| anyhow!(why))?;
        Ok(Self {
            rehearsal: Rehearsal::start(world, &Options::default())?,
            root,
            home: tempfile::tempdir()?,
        })
    }

    /// The measured program.
    pub fn stacklift(&self, arguments: &[&str]) -> Result<Command> {
        let program = env::var_os("STACKLIFT_BENCH_PROGRAM").context("run scripts/bench")?;
        let mut command = self.command(program);
        command.args(arguments);
        Ok(command)
    }

    /// Any program, with the environment that `rehearse --serve` asks for.
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

    /// One `curl` process with the key, for the arguments of its calls.
    pub fn curl(&self) -> Command {
        let mut command = self.command("curl");
        command.args(["-sSkf", "-o", "/dev/null", "-H"]);
        command.arg(format!("X-API-Key: {KEY}"));
        command
    }

    /// Takes the record and the containers of a stack away.
    pub fn reset(&self, stack: &str) {
        self.rehearsal.world(|world| {
            let here = world.records.values().filter(|record| record.name == stack);
            let ids: Vec<_> = here.map(|record| record.id).collect();
            for id in ids {
                world.finish_deployment(id);
                // Gone is gone.
                let _ = world.delete(id, 1);
            }
            world.down(stack);
        });
        self.rehearsal.forget_requests();
    }

    /// A file in the home.
    pub fn file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.home.path().join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }
}

pub fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}
