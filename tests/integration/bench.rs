//! A bench for one test: a rehearsal, stacks on disk, and the real binary between them.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    ops::Deref,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{
    Call, Container, Era, FaultKind, Options, Record, Rehearsal, Request, Variable, World,
};

#[path = "../rehearsal/client.rs"]
#[allow(dead_code, reason = "the replay also compares the content type")]
mod client;
#[path = "../rehearsal/run.rs"]
#[allow(dead_code, reason = "the tests with an engine use more of it")]
mod run;

#[allow(unused_imports, reason = "the transcripts need fewer")]
pub use run::{KEY, MARK, MARKED, Run, Texts};

/// A Compose file of one service that loses nothing when it is migrated.
pub const PLAIN: &str = "services:\n  a:\n    image: busybox:1.36\n    command: sleep 1000\n";

/// A program that prints nothing and fails.
const FAILS: &str = "/bin/false";

pub struct Bench {
    pub rehearsal: Rehearsal,
    root: TempDir,
    home: TempDir,
    #[allow(dead_code, reason = "only the transcripts use it")]
    programs: TempDir,
}

impl Deref for Bench {
    type Target = Rehearsal;

    fn deref(&self) -> &Rehearsal {
        &self.rehearsal
    }
}

/// This response in place of what was asked for.
pub fn instead(status: u16, text: &str) -> FaultKind {
    FaultKind::Status(status, text.to_owned())
}

/// What was asked for, and this response.
pub fn done(status: u16, text: &str) -> FaultKind {
    FaultKind::Body(status, text.as_bytes().to_vec())
}

/// A refusal by Portainer or the engine itself.
pub fn refusal() -> FaultKind {
    instead(500, r#"{"message":"no","details":"no"}"#)
}

impl Bench {
    /// An empty Portainer 2.23 and an empty engine.
    pub fn new() -> Self {
        Self::of(Era::Sync)
    }

    /// The same, of an era.
    pub fn of(era: Era) -> Self {
        Self::below(&std::env::temp_dir(), era)
    }

    /// The same, with its directories below this one. Their paths have the same length in every run: six letters for the
    /// stacks root, five for the home.
    pub fn below(folder: &Path, era: Era) -> Self {
        let directory = |letters| {
            let mut builder = tempfile::Builder::new();
            let created = builder.prefix("").rand_bytes(letters).tempdir_in(folder);
            created.expect("a directory")
        };
        let mut world = World::new(KEY);
        // Nobody waits in a test: a deployment ends when it is asked about.
        let home = directory(5);
        world.home = home.path().display().to_string();
        let options = Options {
            era,
            folder: Some(folder.to_owned()),
            ..Options::default()
        };
        Self {
            rehearsal: Rehearsal::start(world, options).expect("a rehearsal"),
            root: directory(6),
            home,
            programs: tempfile::tempdir().expect("a folder"),
        }
        .with_programs()
    }

    /// A bench with the stack `web` of this text, which was started by hand.
    pub fn web(compose: &str) -> Self {
        Self::web_of(Era::Sync, compose)
    }

    /// The same, of an era.
    pub fn web_of(era: Era, compose: &str) -> Self {
        let bench = Self::of(era);
        bench.started("web", compose, None);
        bench
    }

    /// The same stack, which a migration moved into Portainer.
    pub fn migrated(compose: &str) -> Self {
        let bench = Self::web(compose);
        bench.run("web").code(0);
        bench
    }

    /// A bench with the stack `web` and its `.env`, which was started by hand.
    pub fn with_env(compose: &str, env: &str) -> Self {
        let bench = Self::new();
        bench.started("web", compose, Some(env));
        bench
    }

    /// A bench with the stack `web` of this text, which does not run.
    pub fn on_disk(compose: &str) -> Self {
        let bench = Self::new();
        bench.stack("web", compose, None);
        bench
    }

    /// Whatever this machine has, the Compose program on `PATH` is that of the rehearsal.
    fn with_programs(self) -> Self {
        fs::create_dir(self.bin()).expect("a folder");
        symlink(FAILS, self.bin().join("docker")).expect("a link");
        let compose = env!("CARGO_BIN_EXE_rehearsed-compose");
        symlink(compose, self.bin().join("docker-compose")).expect("a link");
        self
    }

    /// A directory for programs and what they print, which may contain values.
    #[allow(dead_code, reason = "only the transcripts use it")]
    pub fn programs(&self) -> &Path {
        self.programs.path()
    }

    /// The directory that comes first on `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.home.path().join("bin")
    }

    /// `PATH` with `first` before everything else.
    pub fn path(&self, first: &[&Path]) -> OsString {
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let mut all: Vec<PathBuf> = first.iter().map(|path| path.to_path_buf()).collect();
        all.push(self.bin());
        all.extend(std::env::split_paths(&rest));
        std::env::join_paths(all).expect("a PATH")
    }

    /// Each request of the call is answered so.
    pub fn always(&self, call: Call, kind: FaultKind) {
        self.faults().set(call, kind);
    }

    /// The next request of the call is answered so.
    pub fn once(&self, call: Call, kind: FaultKind) {
        self.faults().once(call, kind);
    }

    /// Writes a file of a stack, and returns its path.
    pub fn write(&self, stack: &str, name: &str, text: &str) -> PathBuf {
        let path = self.dir(stack).join(name);
        fs::write(&path, text).expect("a file");
        path
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
        self.start_as(name, &dir);
        self.create_mounted(&dir);
        dir
    }

    /// Starts the stack of a directory by hand, under the name of a project.
    pub fn start_as(&self, project: &str, dir: impl AsRef<Path>) {
        let dir = dir.as_ref().to_str().expect("UTF-8");
        let started = self.world(|world| world.start_by_hand(project, dir, &[]));
        started.expect("a stack that starts");
    }

    /// The first Portainer stack.
    pub fn first_record(&self) -> Record {
        self.world(|world| world.records.values().next().expect("a stack").clone())
    }

    /// Changes the container of this name.
    pub fn change_container(&self, name: &str, change: impl FnOnce(&mut Container)) {
        self.world(|world| {
            let mut all = world.containers.values_mut();
            change(all.find(|one| one.name == name).expect(name));
        });
    }

    /// Sets a label of Compose of every container.
    pub fn label(&self, name: &str, value: &str) {
        self.world(|world| {
            for container in world.containers.values_mut() {
                let label = format!("com.docker.compose.{name}");
                container.labels.insert(label, value.to_owned());
            }
        });
    }

    /// Creates the directories below `dir` that containers mount and that are missing, as Docker does.
    fn create_mounted(&self, dir: &Path) {
        let sources: Vec<String> = self.rehearsal.world(|world| {
            let mounts = world.containers.values().flat_map(|one| &one.mounts);
            let sources = mounts.filter_map(|mount| mount["Source"].as_str());
            sources.map(str::to_owned).collect()
        });
        for source in sources.iter().map(Path::new) {
            if source.starts_with(dir) && !source.exists() {
                fs::create_dir_all(source).expect("a directory");
            }
        }
    }

    /// Somebody creates a stack in Portainer. Returns its ID.
    pub fn create_in_portainer(&self, name: &str, text: &str, env: &[Variable]) -> u64 {
        let path = "/api/stacks/create/standalone/string?endpointId=1";
        let body = json!({ "name": name, "stackFileContent": text, "env": env });
        let created: Value = self.portainer("POST", path, &body.to_string());
        created["Id"].as_u64().expect("an ID")
    }

    /// Somebody edits a stack in Portainer.
    pub fn update_in_portainer(&self, record: &Record) {
        let path = format!("/api/stacks/{}?endpointId=1", record.id);
        let body = json!({ "stackFileContent": record.text, "env": record.env });
        self.portainer("PUT", &path, &body.to_string());
    }

    /// Somebody deletes a stack in Portainer.
    #[allow(dead_code, reason = "only the transcripts use it")]
    pub fn delete_in_portainer(&self, id: u64) {
        self.portainer("DELETE", &format!("/api/stacks/{id}?endpointId=1"), "");
    }

    /// Sends a request that is not one of the program: the requests so far are forgotten.
    fn portainer(&self, method: &str, path: &str, body: &str) -> Value {
        let headers = [("X-API-Key", KEY)];
        let response = client::send(&self.rehearsal, method, path, &headers, body);
        assert!(response.status < 300, "{response:?}");
        self.rehearsal.forget_requests();
        serde_json::from_str(&response.body).unwrap_or_default()
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
    #[allow(dead_code, reason = "only the transcripts use it")]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The home of the user.
    #[allow(dead_code, reason = "only the transcripts use it")]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The state folder, where snapshots lie.
    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// The binary with an environment of its own, pointed at the rehearsal. An adoption and a restore get `--yes`, without
    /// which they are refused where there is no terminal (B08).
    pub fn command<'a>(&self, args: impl Texts<'a>) -> Command {
        let args = words(args);
        let (before, after) = args.split_at(yes_at(&args).unwrap_or(args.len()));
        let yes = if after.is_empty() {
            &[][..]
        } else {
            &["--yes"]
        };
        self.asking(&[before, yes, after].concat())
    }

    /// The same, without `--yes`.
    pub fn asking<'a>(&self, args: impl Texts<'a>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stacklift"));
        command
            .args(words(args))
            .env_clear()
            .env("PATH", self.path(&[]))
            .env("HOME", self.home.path())
            .env("TZ", "UTC")
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
    pub fn run<'a>(&self, args: impl Texts<'a>) -> Run {
        Run::of(&mut self.command(args))
    }

    /// Runs the binary with this variable.
    pub fn run_with<'a>(&self, args: impl Texts<'a>, name: &str, value: impl AsRef<OsStr>) -> Run {
        Run::of(self.command(args).env(name, value))
    }

    /// Runs the binary, which must fail and say this.
    #[track_caller]
    pub fn fails<'a>(&self, args: impl Texts<'a>, says: impl Texts<'a>) -> Run {
        self.run(args).fails(says)
    }

    /// Runs the binary, which must succeed and say this.
    #[track_caller]
    pub fn succeeds<'a>(&self, args: impl Texts<'a>, says: impl Texts<'a>) -> Run {
        self.run(args).succeeds(says)
    }

    /// Starts the binary with its output in pipes.
    #[allow(dead_code, reason = "only the matrix uses it")]
    pub fn spawn<'a>(&self, args: impl Texts<'a>) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    /// Waits until a run sends a request of the call.
    pub fn wait_for(&self, call: Call, run: &mut Child) {
        while self.calls(call).is_empty() {
            if run.try_wait().expect("a child").is_some() {
                let err = run.stderr.take().map(io::read_to_string);
                panic!("it ended: {err:?}");
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The files below the snapshots whose name ends so, in the order of their names.
    pub fn saved(&self, end: &str) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.state().join("snapshots"));
        let mut found: Vec<PathBuf> = folders
            .into_iter()
            .flatten()
            .flat_map(|folder| fs::read_dir(folder.expect("a folder").path()).expect("read"))
            .map(|file| file.expect("a file").path())
            .filter(|path| path.to_string_lossy().ends_with(end))
            .collect();
        found.sort();
        found
    }

    /// The requests of one call to Portainer.
    pub fn calls(&self, call: Call) -> Vec<Request> {
        let mut requests = self.rehearsal.requests();
        requests.retain(|request| request.call == call);
        requests
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

    /// Puts a program on `PATH` that is a script.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        write_script(&self.bin().join(name), text);
        self.bin()
    }
}

/// The arguments of a command line: one text is a line of them.
pub fn words<'a>(args: impl Texts<'a>) -> Vec<&'a str> {
    let list = args.list();
    match list[..] {
        [line] => line.split_whitespace().collect(),
        _ => list,
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

#[allow(dead_code, reason = "only the transcripts use it")]
pub fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// The ID of the snapshot in a file.
pub fn id_of(snapshot: &Path) -> String {
    let stem = snapshot.file_stem().expect("a name");
    stem.to_str().expect("UTF-8").to_owned()
}

/// Writes a program that is a script. This process never has the program itself open: a program that is open to write
/// cannot be run, and a child that another test starts may hold it open for a moment.
pub fn write_script(path: &Path, text: &str) {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/script");
    fs::write(path.with_extension("script"), text).expect("a script");
    let _ = fs::remove_file(path);
    copy_program(Path::new(program), path);
}

/// Copies a program without this process having the copy open.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status();
    assert!(copied.expect("cp").success());
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
            let is_env = path.to_string_lossy().contains(".env");
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
