//! A bench for one test: a rehearsal, stacks on disk, and the real binary between them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rehearsal::{Call, Era, Options, Peer, Rehearsal, Request, World};
use serde_json::Value;
use tempfile::TempDir;

/// The administrator's key. No output may show it.
pub const KEY: &str = "ptr_bench-key-4f9a1c";

/// Part of secret values in `.env`. No output and no other file may contain it.
pub const MARK: &str = "s3cr3t-";

/// Such a value.
pub const MARKED: &str = "s3cr3t-7d1e55a0";

/// A Compose file of one service that loses nothing when it is migrated.
pub const PLAIN: &str = "services:\n  a:\n    image: busybox:1.36\n    command: sleep 1000\n";

pub struct Bench {
    pub rehearsal: Rehearsal,
    root: TempDir,
    home: TempDir,
}

/// What a run of the binary came to.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Bench {
    /// An empty Portainer 2.23 and an empty engine.
    pub fn new() -> Self {
        Self::of(Era::Sync)
    }

    /// The same, of an era.
    pub fn of(era: Era) -> Self {
        let mut world = World::new(KEY);
        // Nobody waits in a test: a deployment ends when it is asked about.
        world.deploy_millis = None;
        let options = Options {
            era,
            ..Options::default()
        };
        Self {
            rehearsal: Rehearsal::start(world, &options).expect("a rehearsal"),
            root: tempfile::tempdir().expect("a stacks root"),
            home: tempfile::tempdir().expect("a home"),
        }
        .without_compose()
    }

    /// No Compose program is found on `PATH`, whatever this machine has.
    fn without_compose(self) -> Self {
        let none = self.home.path().join("no-compose");
        fs::create_dir(&none).expect("a folder");
        for name in ["docker", "docker-compose"] {
            write_script(&none.join(name), "exit 1\n");
        }
        self
    }

    /// `PATH` with `first` before everything else.
    pub fn path(&self, first: &[&Path]) -> std::ffi::OsString {
        let none = self.home.path().join("no-compose");
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let mut all: Vec<PathBuf> = first.iter().map(|path| path.to_path_buf()).collect();
        all.push(none);
        all.extend(std::env::split_paths(&rest));
        std::env::join_paths(all).expect("a PATH")
    }

    /// A stack on disk, not started: its Compose file, and `.env` where there is one.
    pub fn stack(&self, name: &str, compose: &str, env: Option<&str>) -> PathBuf {
        let dir = self.dir(name);
        fs::create_dir_all(&dir).expect("the stack's directory");
        fs::write(dir.join("docker-compose.yml"), compose).expect("the Compose file");
        let folder = dir.to_str().expect("UTF-8").to_owned();
        let mut files = vec![("docker-compose.yml", compose)];
        if let Some(env) = env {
            fs::write(dir.join(".env"), env).expect("the env file");
            files.push((".env", env));
        }
        self.rehearsal
            .world(|world| world.add_stack(&folder, files));
        dir
    }

    /// A stack on disk that was started by hand.
    pub fn started(&self, name: &str, compose: &str, env: Option<&str>) -> PathBuf {
        let dir = self.stack(name, compose, env);
        let folder = dir.to_str().expect("UTF-8").to_owned();
        self.rehearsal
            .world(|world| world.start_by_hand(name, &folder))
            .expect("a stack that starts");
        dir
    }

    /// A Portainer stack that runs nothing yet.
    pub fn record(&self, name: &str, endpoint: u64) -> u64 {
        self.rehearsal
            .world(|world| world.add_record(name, endpoint, PLAIN))
    }

    /// Where a stack of that name lies.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The stacks root.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The state folder, where snapshots lie.
    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// The binary with an environment of its own, pointed at the rehearsal. An adoption and a restore get `--yes`, without
    /// which they are refused where there is no terminal (B08).
    pub fn command(&self, args: &[&str]) -> Command {
        let (before, after) = args.split_at(yes_at(args).unwrap_or(args.len()));
        let yes = if after.is_empty() {
            &[][..]
        } else {
            &["--yes"]
        };
        self.asking(&[before, yes, after].concat())
    }

    /// The same, without `--yes`.
    pub fn asking(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stacklift"));
        command
            .args(args)
            .env_clear()
            .env("PATH", self.path(&[]))
            .env("HOME", self.home.path())
            .env("STACKMGR_API_KEY", KEY)
            .env("STACKLIFT_BASE_URL", self.rehearsal.base_url())
            .env("STACKLIFT_STACKS_ROOT", self.root.path())
            .env("STACKLIFT_ENGINE", "api")
            .env("STACKLIFT_STATE_DIR", self.state())
            .env(
                "STACKLIFT_SYSTEM_SETTINGS",
                self.home.path().join("system.toml"),
            )
            // A request without a known end is waited for: a quarter of this (B11).
            .env("STACKLIFT_TIMEOUT", "4s")
            .env(
                "DOCKER_HOST",
                format!("unix://{}", self.rehearsal.socket().display()),
            )
            .stdin(Stdio::null())
            .current_dir(self.home.path());
        command
    }

    /// Runs the binary.
    pub fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.command(args))
    }

    /// The requests of one call to Portainer.
    pub fn calls(&self, call: Call) -> Vec<Request> {
        let mut requests = self.rehearsal.requests();
        requests.retain(|request| request.call == call);
        requests
    }

    /// Every request, as `Portainer GET /api/stacks`, in order; container ids left out.
    pub fn journal(&self) -> Vec<String> {
        let short = |path: &str| match path.split_once("/containers/") {
            Some((_, rest)) if !rest.starts_with("json") => "/containers/<id>".to_owned(),
            Some(_) => "/containers/json".to_owned(),
            None => path.to_owned(),
        };
        self.rehearsal
            .requests()
            .iter()
            .map(|request| match request.peer {
                Peer::Portainer => format!("Portainer {} {}", request.method, request.path),
                Peer::Engine => format!("engine {} {}", request.method, short(&request.path)),
            })
            .collect()
    }

    /// The body of the one create that was sent.
    pub fn sent(&self) -> Value {
        let creates = self.calls(Call::Create);
        assert_eq!(creates.len(), 1, "creates: {creates:?}");
        serde_json::from_slice(&creates[0].body).expect("JSON")
    }

    /// The text that was sent.
    pub fn sent_text(&self) -> String {
        let text = self.sent()["stackFileContent"].clone();
        text.as_str().expect("a string").to_owned()
    }

    /// The variables that were sent.
    pub fn sent_env(&self) -> Vec<(String, String)> {
        let env = self.sent()["env"].clone();
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        env.as_array()
            .expect("an array")
            .iter()
            .map(|variable| (text(&variable["name"]), text(&variable["value"])))
            .collect()
    }

    /// The ids of a project's containers.
    pub fn containers(&self, project: &str) -> Vec<String> {
        self.rehearsal.world(|world| {
            world
                .project(project)
                .into_iter()
                .map(|container| container.id.clone())
                .collect()
        })
    }

    /// Whether Portainer and the engine only received reads.
    pub fn nothing_was_changed(&self) -> bool {
        self.rehearsal
            .requests()
            .iter()
            .all(|request| matches!(request.method.as_str(), "GET" | "HEAD"))
    }

    /// The backups in a stack's directory.
    pub fn backups(&self, name: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir(name)).expect("the stack's directory");
        let mut found: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| {
                path.to_string_lossy()
                    .contains(".bak-pre-stackmgr-migration-")
            })
            .collect();
        found.sort();
        found
    }

    /// A program on `PATH` that is a script: the engine is then reached by the command.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let bin = self.home.path().join("bin");
        fs::create_dir_all(&bin).expect("a folder");
        let path = bin.join(name);
        write_script(&path, text);
        bin
    }
}

/// Where `--yes` belongs, if the arguments are those of an adoption or a restore without it.
fn yes_at(args: &[&str]) -> Option<usize> {
    let takes_value = |arg: &str| arg.starts_with("--") && !arg.contains('=');
    let is_value = |at: usize| at > 0 && takes_value(args[at - 1]);
    let command = (0..args.len()).find(|&at| !args[at].starts_with('-') && !is_value(at))?;
    let asks = matches!(args[command], "adopt" | "restore");
    let is_answered = args
        .iter()
        .any(|arg| ["--yes", "-y", "--list"].contains(arg));
    (asks && !is_answered).then_some(command + 1)
}

/// Writes a file that only this user may read.
pub fn write_private(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a mode");
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

impl Drop for Bench {
    /// Every file that a test leaves is looked through for the key and for marked values.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for folder in [self.root.path(), self.home.path()] {
            assert_no_secret_in(folder);
        }
    }
}

/// Env files and snapshots may contain the values.
fn assert_no_secret_in(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
        if kind.is_dir() {
            assert_no_secret_in(&path);
        } else if kind.is_file() {
            let bytes = fs::read(&path).expect("a file");
            let holds = |text: &str| memchr::memmem::find(&bytes, text.as_bytes()).is_some();
            assert!(!holds(KEY), "the key is in {}", path.display());
            let is_env = path.to_string_lossy().ends_with(".env");
            let is_snapshot = path
                .components()
                .any(|part| part.as_os_str() == "snapshots");
            assert!(
                is_env || is_snapshot || !holds(MARK),
                "a value is in {}",
                path.display()
            );
        }
    }
}

impl Run {
    /// Runs a command and takes what it prints.
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the binary runs");
        let run = Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        assert!(!run.all().contains(KEY), "the key shows: {run:?}");
        let reveals = command.get_args().any(|argument| argument == "--reveal");
        assert!(
            reveals || !run.all().contains(MARK),
            "a value shows: {run:?}"
        );
        assert!(!run.err.contains("panicked"), "{run:?}");
        run
    }

    /// Both streams.
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Asserts that one of the streams says all of `words`.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.all().contains(word), "no {word:?} in {self:#?}");
        }
        self
    }

    /// Asserts that neither stream says `word`.
    #[track_caller]
    pub fn hides(self, word: &str) -> Self {
        assert!(!self.all().contains(word), "{word:?} in {self:#?}");
        self
    }
}
