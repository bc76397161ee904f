//! A stack on the real engine, the embedded Portainer, and the real binary between them.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    env, fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU16, AtomicU32, Ordering},
    },
};

use serde_json::Value;
use tempfile::TempDir;
use testbed::{Call, Era, FaultKind, Options, Rehearsal, World};

use crate::{
    host::{Compose, Host, quoted, wait_until},
    portainer::{self, Portainer},
    run::{KEY, Run},
    state::{Containers, State},
};

/// The Compose file of an existing Portainer stack. The embedded Portainer does not deploy it to the real engine.
pub const RECORD: &str = "services:\n  old:\n    image: busybox:1.36\n";

/// The label of the objects of a stack.
const LABEL: &str = "com.docker.compose.project=$PROJECT";

/// Who starts a stack by hand, what the host has then, and which Portainer deploys it.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub origin: Compose,
    pub host: Compose,
    pub era: Era,
}

pub const OLD: Case = Case {
    origin: Compose::Two,
    host: Compose::Two,
    era: Era::Sync,
};

impl Case {
    /// `services`, if the Compose that started them is of another generation than that of Portainer, and has another hash
    /// for them (N05).
    pub fn by_another_version(self, services: &'static [&'static str]) -> &'static [&'static str] {
        match (self.origin, self.era) {
            (Compose::Two, Era::Async) | (Compose::Five, Era::Sync) => services,
            _ => &[],
        }
    }
}

/// A stack. Dropping it removes everything that was created for it.
pub struct Stack {
    pub host: Host,
    pub case: Case,
    pub rehearsal: Rehearsal,
    /// Portainer's own container, if the embedded Portainer deploys onto the real engine.
    portainer: Option<Portainer>,
    root: TempDir,
    home: TempDir,
    /// The first three numbers of its subnet.
    pub subnet: String,
    /// The volumes that its containers have mounted: anonymous volumes have no label to find them by.
    seen: RefCell<BTreeSet<String>>,
}

impl Stack {
    /// A stack that is not started. What the embedded Portainer deploys is not on the real engine.
    pub fn new() -> Self {
        Self::of(Host::new(), OLD, None)
    }

    /// The same, with these programs.
    pub fn with(case: Case) -> Self {
        Self::of(Host::new(), case, None)
    }

    /// A stack that is not started. The embedded Portainer deploys onto the real engine.
    pub fn by(case: Case) -> Self {
        let host = Host::new();
        let portainer = Portainer::start(&host, case.era);
        Self::of(host, case, Some(portainer))
    }

    fn of(host: Host, case: Case, portainer: Option<Portainer>) -> Self {
        static ENGINE: OnceLock<String> = OnceLock::new();
        let mut world = World::new(KEY);
        // The environment has the ID of this host's engine (B03).
        let engine = ENGINE.get_or_init(|| host.docker("info -f {{.ID}}"));
        world.engine.clone_from(engine);
        for endpoint in world.endpoints.values_mut() {
            endpoint.engine.clone_from(&world.engine);
        }
        let options = Options {
            program: portainer
                .as_ref()
                .map(|portainer| portainer.program(case.era)),
            era: case.era,
            has_real_engines: true,
            ..Options::default()
        };
        let stack = Self {
            host,
            case,
            rehearsal: Rehearsal::start(world, options).unwrap(),
            portainer,
            root: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
            subnet: subnet(),
            seen: RefCell::default(),
        };
        fs::create_dir(stack.dir()).unwrap();
        let plugins = stack.config().join("cli-plugins");
        fs::create_dir_all(&plugins).unwrap();
        symlink(case.host.program(), plugins.join("docker-compose")).unwrap();
        stack
    }

    /// The stacks root.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The stack's directory.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join(&self.host.project)
    }

    /// The state directory.
    pub fn state_dir(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// The configuration of `docker`, which has Compose as its plugin.
    fn config(&self) -> PathBuf {
        self.home.path().join("docker")
    }

    /// Writes the Compose file and the files, starts the stack, and writes a file to each of its volumes.
    pub fn running(self, text: &str, files: &[(&str, &str)]) -> Self {
        let stack = self.stopped(text, files);
        stack.start();
        stack
    }

    /// Writes the Compose file and the files.
    pub fn stopped(self, text: &str, files: &[(&str, &str)]) -> Self {
        self.write(text);
        for (name, content) in files {
            self.file(name, content);
        }
        self
    }

    /// Starts the stack, waits until it is healthy, and writes a file to each of its volumes.
    pub fn start(&self) {
        self.up();
        self.wait_until_healthy();
        self.write_data();
    }

    /// Writes a file to each volume that a running container can write to.
    pub fn write_data(&self) {
        for (name, container) in &self.containers().0 {
            if container["State"]["Running"] != true {
                continue;
            }
            let mounts = container["Mounts"].as_array().unwrap().iter();
            for mount in mounts.filter(|mount| mount["RW"] == true) {
                let at = mount["Destination"].as_str().unwrap();
                let script = format!("if [ -d {at} ]; then echo {name}{at} > {at}/kept; fi");
                self.docker(&format!("exec {name} /bin/sh -c {}", quoted(&script)));
            }
        }
    }

    /// Waits until every health check has succeeded.
    pub fn wait_until_healthy(&self) {
        wait_until(|| {
            let containers = self.containers().0;
            let mut healths = containers.values().map(|one| &one["State"]["Health"]);
            healths.all(|health| health.is_null() || health["Status"] == "healthy")
        });
    }

    /// Writes the Compose file, with `$IMAGE`, `$PROJECT`, `$SUBNET` and `$PORT` replaced. `$SLEEP` is a container of the
    /// image that sleeps, and `$OWN_SLEEP` one of the image of [`Self::image`], which is created if the text names it. A text
    /// without networks gets a subnet of its own: while the network is removed, no other test takes its addresses.
    pub fn write(&self, text: &str) {
        if text.contains("$PROJECT") || text.contains("$OWN_SLEEP") {
            self.image();
        }
        let default = if text.contains("\nnetworks:") {
            ""
        } else {
            "networks: {default: {ipam: {config: [{subnet: $SUBNET.0/24}]}}}\n"
        };
        let sleep = "\n    command: /bin/sleep 600\n    init: true";
        let text = format!("{text}{default}")
            .replace("$SLEEP", &format!("image: $IMAGE{sleep}"))
            .replace("$OWN_SLEEP", &format!("image: $PROJECT{sleep}"))
            .replace("$SUBNET", &self.subnet)
            .replace("$PORT", &free_port().to_string());
        let text = self.host.filled(&text);
        fs::write(self.dir().join("docker-compose.yml"), &text).unwrap();
        let dir = self.dir().to_str().unwrap().to_owned();
        self.rehearsal.world(|world| {
            world.add_stack(&dir, [("docker-compose.yml", text.as_str()), (".env", "")]);
        });
    }

    /// The Compose file.
    pub fn text(&self) -> String {
        fs::read_to_string(self.dir().join("docker-compose.yml")).unwrap()
    }

    /// Replaces a part of the Compose file.
    pub fn edit(&self, from: &str, to: &str) {
        let [from, to] = [from, to].map(|text| self.host.filled(text));
        self.file("docker-compose.yml", &self.text().replace(&from, &to));
    }

    /// Writes a file to the directory of the stack.
    pub fn file(&self, name: &str, text: &str) {
        let path = self.dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Starts a sleeping container outside the stack, which ends with the test.
    pub fn sleep(&self, options: &str) {
        let start = "run -d --init --label $MARK";
        self.docker(&format!("{start} {options} $IMAGE /bin/sleep 600"));
    }

    /// Runs a script in a container of `image`, and makes another image of the container.
    pub fn commit(&self, image: &str, script: &str, changes: &str, to: &str) {
        let start = "run --name $PROJECT-commit --label $MARK --network=none";
        self.docker(&format!("{start} {image} /bin/sh -c {}", quoted(script)));
        self.docker(&format!("commit {changes} $PROJECT-commit {to}"));
        self.docker("rm -f -v $PROJECT-commit");
    }

    /// Creates an image for this test that sleeps like `$SLEEP` and declares the volume `/imgvol`. Each new volume at `/imgvol`
    /// or `/anonymous` gets a file that identifies the test.
    fn image(&self) {
        let script = "mkdir /imgvol /anonymous; echo $PROJECT | busybox tee /imgvol/$PROJECT > /anonymous/$PROJECT";
        let changes = r#"--change 'VOLUME /imgvol' --change 'CMD ["/bin/sleep", "600"]'"#;
        self.commit("$IMAGE", script, changes, "$PROJECT");
    }

    /// Runs `compose up -d`. Returns its messages.
    pub fn up(&self) -> String {
        self.compose(&["up", "-d"])
    }

    /// Runs a Compose command. Returns its messages.
    pub fn compose(&self, arguments: &[&str]) -> String {
        let project = &self.host.project;
        let messages = self.case.origin.run(&self.dir(), project, arguments);
        self.containers();
        self.host.seen(&messages)
    }

    /// Runs `docker` with the words of a line, in which `$PROJECT`, `$IMAGE`, `$MARK` and `$SUBNET` are replaced. It must succeed.
    pub fn docker(&self, line: &str) -> String {
        self.host.docker(&line.replace("$SUBNET", &self.subnet))
    }

    /// The lines that `docker` prints; none if it fails.
    pub fn lines(&self, line: &str) -> Vec<String> {
        self.host.lines(line)
    }

    /// The content of a file in a volume; nothing if there is none.
    pub fn in_volume(&self, volume: &str, file: &str) -> String {
        let mount = format!("type=volume,source={volume},target=/volume,volume-nocopy");
        let run = "run --rm --label $MARK --network=none --mount";
        let read = format!("{run} {mount} $IMAGE /bin/cat /volume/{file}");
        self.lines(&read).join("\n")
    }

    /// The inspect objects of the stack's containers, by name.
    pub fn containers(&self) -> Containers {
        let named = |container: Value| {
            let name = container["Name"].as_str().unwrap();
            (name.trim_start_matches('/').to_owned(), container)
        };
        let found = self.host.inspect("container", &self.ids());
        let containers = Containers(found.into_iter().map(named).collect());
        let volumes = containers
            .mounts()
            .filter_map(|mount| mount["Name"].as_str());
        let volumes = volumes.map(|volume| self.host.filled(volume));
        self.seen.borrow_mut().extend(volumes);
        containers
    }

    /// The full IDs of the stack's containers.
    pub fn ids(&self) -> Vec<String> {
        self.lines(&format!("ps -aq --no-trunc --filter label={LABEL}"))
    }

    fn ids_of_networks(&self) -> Vec<String> {
        self.lines(&format!("network ls -q --filter label={LABEL}"))
    }

    /// The inspect objects of the stack's networks.
    pub fn networks(&self) -> Vec<Value> {
        let mut networks = self.host.inspect("network", &self.ids_of_networks());
        networks.sort_by_key(|network| network["Name"].to_string());
        networks
    }

    /// Removes all containers of the stack, but not their networks.
    pub fn remove_all(&self) {
        self.docker(&format!("rm -f {}", self.ids().join(" ")));
        assert!(self.ids().is_empty());
    }

    /// Removes all networks of the stack.
    pub fn remove_networks(&self) {
        self.docker(&format!("network rm {}", self.ids_of_networks().join(" ")));
    }

    /// Waits until the engine has restarted the containers of these services so often by their restart policy, and they do
    /// not run.
    pub fn wait_for_restarts(&self, services: &[&str], count: u64) {
        let paused = |one: &Value| {
            one["RestartCount"].as_u64() >= Some(count) && one["State"]["Restarting"] == true
        };
        wait_until(|| {
            let containers = self.containers();
            services.iter().all(|service| paused(&containers[*service]))
        });
    }

    /// Runs a script in the running container of a service.
    pub fn sh(&self, service: &str, script: &str) -> String {
        self.docker(&format!(
            "exec $PROJECT-{service}-1 /bin/sh -c {}",
            quoted(script)
        ))
    }

    /// The binary with the arguments in a line, in which `$PROJECT` is replaced. An adoption and a restore get `--yes`,
    /// without which they are refused where there is no terminal (B08).
    pub fn command(&self, line: &str) -> Command {
        let line = line.replace("$PROJECT", &self.host.project);
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let program = env::var_os("STACKLIFT_TEST_PROGRAM");
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_stacklift").into());
        let mut command = Command::new(program);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("STACK") {
                command.env_remove(name);
            }
        }
        let asks = matches!(arguments[0], "adopt" | "restore") && !arguments.contains(&"--list");
        command
            .args(arguments)
            .args(asks.then_some("--yes"))
            .env("DOCKER_CONFIG", self.config())
            // Hides the settings files of the machine.
            .env("XDG_CONFIG_HOME", self.home.path())
            .env("STACKLIFT_SYSTEM_SETTINGS", self.home.path().join("none"))
            .env("STACKMGR_API_KEY", KEY)
            .env("STACKLIFT_BASE_URL", self.rehearsal.base_url())
            .env("STACKLIFT_STACKS_ROOT", self.root.path())
            .env("STACKLIFT_ENGINE", "api")
            .env("STACKLIFT_STATE_DIR", self.state_dir())
            .stdin(Stdio::null())
            .current_dir(self.home.path());
        command
    }

    /// Runs the binary as [`Self::command`] does, and kills it once something is the case.
    pub fn kill_when(&self, line: &str, is_so: impl FnMut() -> bool) {
        let mut command = self.command(line);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until(is_so);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Whether Portainer deploys or removes the stack.
    pub fn is_in_flight(&self) -> bool {
        let top = self.docker("top $PROJECT-portainer");
        top.contains(portainer::inside(self.case.era))
    }

    /// Kills a run while Portainer deploys or removes the stack.
    pub fn kill_in_flight(&self, line: &str) {
        self.kill_when(line, || self.is_in_flight());
    }

    /// Runs the binary as [`Self::command`] does.
    pub fn run(&self, line: &str) -> Run {
        self.ended(&mut self.command(line))
    }

    /// Runs a command. The project is `$PROJECT` in its output.
    pub fn ended(&self, command: &mut Command) -> Run {
        let mut run = Run::of(command);
        run.out = self.host.seen(&run.out);
        run.err = self.host.seen(&run.err);
        run
    }

    /// Migrates a stack whose Compose file was not edited: takes a snapshot, removes the containers and creates the stack
    /// in the embedded Portainer.
    #[track_caller]
    pub fn migrate(&self) -> Run {
        let run = self.run("$PROJECT").code(0).hides(&[
            "is mounted at",
            "no longer mounted",
            "published",
            "settings reset",
            "instead of",
        ]);
        assert!(self.ids().is_empty(), "{run:#?}");
        run
    }

    /// Restores the stack. It must succeed, but may have to be run again: Docker 20.10 may not respond about a container for a minute
    /// after the program was killed that was starting it.
    #[track_caller]
    pub fn restore(&self) -> Run {
        let mut run = self.run("restore $PROJECT");
        if run.err.contains("no response from Docker") {
            run = self.run("restore $PROJECT");
        }
        let run = run.code(0);
        self.containers();
        run
    }

    /// Restores the stack to this state. Another restore and `up` recreate nothing then.
    #[track_caller]
    pub fn comes_back(&self, before: &State) -> Run {
        let run = self.restore();
        self.assert_is(before);
        let ids = self.ids();
        self.restore().says("the snapshot").hides("recreated");
        self.up();
        assert_eq!(self.ids(), ids);
        run
    }

    /// Takes a snapshot, and nothing else: a migration stops right after it.
    pub fn save(&self) {
        self.record();
        let faults = self.rehearsal.faults();
        faults.once(Call::Delete, FaultKind::CloseBefore);
        self.run("$PROJECT").fails("stacklift restore");
    }

    /// Runs a shell script once, right before the next deployment, with what [`Self::docker`] replaces.
    pub fn before_deployment(&self, script: &str) {
        let portainer = self.portainer.as_ref().expect("a Portainer");
        portainer.before_deployment(&self.host.filled(script));
    }

    /// Adds a Portainer stack of the same name.
    pub fn record(&self) {
        let name = self.host.project.as_str();
        let world = &self.rehearsal;
        world.world(|world| world.add_record(name, 1, RECORD));
    }

    /// The snapshots on disk, oldest first.
    pub fn snapshots(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for stack in files_in(&self.state_dir().join("snapshots")) {
            found.extend(files_in(&stack));
        }
        // Not a request, nor what was last sent.
        found.retain(|file| file.extension().is_some_and(|one| one == "json"));
        found.sort();
        found
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let volumes = self.seen.take().into_iter().collect();
        self.host.remove(LABEL, volumes);
    }
}

/// The entries of a directory; none if it does not exist.
pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The first three numbers of a subnet that no other test of this run uses.
fn subnet() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("10.214.{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A port that no program of this host uses. It is below those that the kernel gives to programs, so that it stays free while
/// the container that publishes it is stopped.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Runs a command with `-v`, kills it after this number of requests, and returns them.
pub fn kill_after(mut command: Command, count: usize) -> Vec<String> {
    command.arg("-v").stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut requests = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with("engine: ") || line.starts_with("portainer: ") {
            requests.push(line);
            if requests.len() == count {
                child.kill().unwrap();
                break;
            }
        }
    }
    child.wait().unwrap();
    requests
}
