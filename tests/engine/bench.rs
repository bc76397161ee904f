//! A stack on the real engine, the embedded Portainer, and the real binary between them.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{BufRead as _, BufReader, ErrorKind},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU16, AtomicU32, Ordering},
    },
};

use serde_json::Value;
use tempfile::TempDir;
use testbed::{Call, Era, FaultKind, Options, Rehearsal, World};

use crate::{
    host::{Compose, Host, IMAGE, PROJECT, attempt, docker, lines, remove_all, wait_until},
    portainer::Portainer,
    run::{KEY, Run},
};

/// The Compose file of an existing Portainer stack. The embedded Portainer does not deploy it to the real engine.
pub const RECORD: &str = "services:\n  old:\n    image: busybox:1.36\n";

/// A stack. Dropping it removes everything that was created for it.
pub struct Stack {
    pub host: Host,
    pub compose: Compose,
    pub rehearsal: Rehearsal,
    /// Portainer's own container, if the embedded Portainer deploys onto the real engine.
    portainer: Option<Portainer>,
    root: TempDir,
    home: TempDir,
    /// The first three numbers of its subnet.
    subnet: String,
    /// The volumes that its containers have mounted: anonymous volumes have no label to find them by.
    seen: RefCell<BTreeSet<String>>,
}

impl Stack {
    /// A stack that is not started. What the embedded Portainer deploys is not on the real engine.
    pub fn new() -> Self {
        let (host, compose) = (Host::new(), Compose::new());
        Self::of(host, compose, None, None)
    }

    /// The same, which `compose` starts.
    pub fn started_by(compose: Compose) -> Self {
        Self::of(Host::new(), compose, None, None)
    }

    /// A stack that is not started. The embedded Portainer deploys onto the real engine.
    pub fn with_portainer() -> Self {
        Self::between(Compose::new(), &Compose::new(), Era::Sync)
    }

    /// A stack that is not started. `origin` starts it by hand, the host has the program `present`, and a Portainer of `era`
    /// deploys onto the real engine.
    pub fn between(origin: Compose, present: &Compose, era: Era) -> Self {
        let host = Host::new();
        let portainer = Portainer::start(&host, era);
        Self::of(host, origin, Some(present), Some(portainer))
    }

    /// The host has the program `present`, or else the one that starts the stack.
    fn of(
        host: Host,
        compose: Compose,
        present: Option<&Compose>,
        portainer: Option<Portainer>,
    ) -> Self {
        static ENGINE: LazyLock<String> = LazyLock::new(|| docker(&["info", "-f", "{{.ID}}"]));
        let mut world = World::new(KEY);
        // The environment has the ID of this host's engine (B03).
        world.engine.clone_from(&ENGINE);
        for endpoint in world.endpoints.values_mut() {
            endpoint.engine.clone_from(&world.engine);
        }
        let options = Options {
            program: portainer.as_ref().map(Portainer::program),
            era: portainer.as_ref().map_or_else(Era::default, |one| one.era),
            has_real_engines: true,
            ..Options::default()
        };
        let stack = Self {
            host,
            compose,
            rehearsal: Rehearsal::start(world, options).unwrap(),
            portainer,
            root: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
            subnet: subnet(),
            seen: RefCell::default(),
        };
        fs::create_dir(stack.dir()).unwrap();
        fs::create_dir(stack.bin()).unwrap();
        present.unwrap_or(&stack.compose).install(&stack.bin());
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
    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// Its programs come first on `PATH`.
    fn bin(&self) -> PathBuf {
        self.home.path().join("bin")
    }

    /// Writes the Compose file and the files, and starts the stack.
    pub fn running(self, text: &str, files: &[(&str, &str)]) -> Self {
        self.write(text);
        for (name, content) in files {
            self.file(name, content);
        }
        self.up();
        self
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
            .replace("$IMAGE", IMAGE)
            .replace("$PROJECT", &self.host.project)
            .replace("$SUBNET", &self.subnet)
            .replace("$PORT", &free_port().to_string());
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
        self.file("docker-compose.yml", &self.text().replace(from, to));
    }

    /// Writes a file to the directory of the stack.
    pub fn file(&self, name: &str, text: &str) {
        let path = self.dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Creates an image for this test that sleeps like `$SLEEP` and declares the volume `/imgvol`. Each new volume at `/imgvol` or `/anonymous`
    /// gets a file that identifies the test.
    fn image(&self) {
        let image = &self.host.project;
        let script =
            format!("mkdir /imgvol /anonymous && touch /imgvol/{image} /anonymous/{image}");
        let (volume, sleep) = ("VOLUME /imgvol", r#"CMD ["/bin/sleep", "600"]"#);
        let changes = ["--change", volume, "--change", sleep];
        self.host.commit(IMAGE, &script, &changes, image);
    }

    /// Runs `compose up -d`. Returns its messages.
    pub fn up(&self) -> String {
        self.compose(&["up", "-d"])
    }

    /// Runs a Compose command. Returns its messages.
    pub fn compose(&self, arguments: &[&str]) -> String {
        let project = &self.host.project;
        let messages = self.compose.run(&self.dir(), project, arguments);
        self.containers();
        messages
    }

    /// The content of a file in a volume. The error is the message of `docker`.
    pub fn in_volume(&self, volume: &str, file: &str) -> Result<String, String> {
        let (mark, file) = (self.host.mark(), format!("/volume/{file}"));
        let mount = format!("type=volume,source={volume},target=/volume,volume-nocopy");
        let mut arguments = vec!["run", "--rm", "--label", &mark, "--network=none"];
        arguments.extend(["--mount", &mount, IMAGE, "/bin/cat", &file]);
        let output = attempt(&arguments).map_err(|error| error.to_string())?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text(output.stderr))
        }
    }

    /// The volumes that were created for containers of this test's [`Self::image`], mounted or not. The file of the
    /// image identifies them.
    pub fn created_volumes(&self) -> Vec<String> {
        let mut created = lines(&["volume", "ls", "-q", "--filter", "dangling=true"]);
        created.retain(|volume| volume.len() == 64 && self.is_of_image(volume));
        let mounted = self.containers();
        let mounts = mounted
            .values()
            .map(|one| one["Mounts"].as_array().unwrap());
        let mounts = mounts.flatten();
        created.extend(mounts.filter_map(|mount| mount["Name"].as_str().map(str::to_owned)));
        created.sort();
        created
    }

    fn is_of_image(&self, volume: &str) -> bool {
        let file = &self.host.project;
        // Prefers the mount point: while a container uses the volume, another test cannot remove it.
        let mount_point = lines(&["volume", "inspect", "--format", "{{.Mountpoint}}", volume]);
        match mount_point.first().map(fs::read_dir) {
            Some(Ok(mut entries)) => {
                entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() == file.as_str()))
            }
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
                self.in_volume(volume, file).is_ok()
            }
            _ => false,
        }
    }

    /// The inspect JSON of the stack's containers, by name.
    pub fn containers(&self) -> BTreeMap<String, Value> {
        let found = inspect("container", &self.ids());
        let mut seen = self.seen.borrow_mut();
        let mut containers = BTreeMap::new();
        for container in found {
            for mount in container["Mounts"].as_array().unwrap() {
                seen.extend(mount["Name"].as_str().map(str::to_owned));
            }
            let name = container["Name"].as_str().unwrap();
            containers.insert(name.trim_start_matches('/').to_owned(), container);
        }
        containers
    }

    /// The full IDs of the stack's containers.
    pub fn ids(&self) -> Vec<String> {
        lines(&["ps", "-aq", "--no-trunc", "--filter", &self.label()])
    }

    /// The inspect JSON of the stack's networks.
    pub fn networks(&self) -> Vec<Value> {
        let ids = lines(&["network", "ls", "-q", "--filter", &self.label()]);
        let mut networks = inspect("network", &ids);
        networks.sort_by_key(|network| network["Name"].to_string());
        networks
    }

    /// The name of the container of a service.
    pub fn name(&self, service: &str) -> String {
        self.host.name(&format!("{service}-1"))
    }

    /// Removes all containers of the stack, but not their networks.
    pub fn remove_all(&self) {
        let ids = self.ids();
        let ids = ids.iter().map(String::as_str);
        docker(&["rm", "-f"].into_iter().chain(ids).collect::<Vec<_>>());
        assert!(self.ids().is_empty());
    }

    /// Removes all networks of the stack.
    pub fn remove_networks(&self) {
        for network in self.networks() {
            docker(&["network", "rm", network["Id"].as_str().unwrap()]);
        }
    }

    /// Waits until the engine has restarted these containers so often by their restart policy, and they do not run.
    pub fn wait_for_restarts(&self, names: &[String], count: u64) {
        let paused = |one: &Value| {
            one["RestartCount"].as_u64() >= Some(count) && one["State"]["Restarting"] == true
        };
        wait_until(|| {
            let containers = self.containers();
            names.iter().all(|name| paused(&containers[name]))
        });
    }

    /// Runs a script in the running container of a service.
    pub fn sh(&self, service: &str, script: &str) -> String {
        docker(&["exec", &self.name(service), "/bin/sh", "-c", script])
    }

    /// The binary with the arguments in a line, in which `$PROJECT` is replaced. An adoption and a restore get `--yes`,
    /// without which they are refused where there is no terminal (B08).
    pub fn command(&self, line: &str) -> Command {
        let line = line.replace("$PROJECT", &self.host.project);
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stacklift"));
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("STACK") {
                command.env_remove(name);
            }
        }
        let path = env::var("PATH").unwrap_or_default();
        let asks = matches!(arguments[0], "adopt" | "restore") && !arguments.contains(&"--list");
        command
            .args(arguments)
            .args(asks.then_some("--yes"))
            .env("PATH", format!("{}:{path}", self.bin().display()))
            // Hides the settings files of the machine.
            .env("XDG_CONFIG_HOME", self.home.path())
            .env("STACKLIFT_SYSTEM_SETTINGS", self.home.path().join("none"))
            .env("STACKMGR_API_KEY", KEY)
            .env("STACKLIFT_BASE_URL", self.rehearsal.base_url())
            .env("STACKLIFT_STACKS_ROOT", self.root.path())
            .env("STACKLIFT_ENGINE", "api")
            .env("STACKLIFT_STATE_DIR", self.state())
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

    /// The same, while Portainer deploys or removes the stack.
    pub fn kill_in_flight(&self, line: &str) {
        self.kill_when(line, || self.portainer().is_busy());
    }

    /// Runs the binary as [`Self::command`] does.
    pub fn run(&self, line: &str) -> Run {
        Run::of(&mut self.command(line))
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

    /// Takes a snapshot, and nothing else: a migration stops right after it.
    pub fn save(&self) {
        self.record();
        self.rehearsal
            .faults()
            .once(Call::Delete, FaultKind::CloseBefore);
        self.run("$PROJECT").fails("stacklift restore");
    }

    /// Portainer's own container.
    pub fn portainer(&self) -> &Portainer {
        self.portainer.as_ref().expect("a Portainer")
    }

    /// Adds a Portainer stack of the same name.
    pub fn record(&self) -> u64 {
        let name = self.host.project.as_str();
        self.rehearsal
            .world(|world| world.add_record(name, 1, RECORD))
    }

    /// The snapshots on disk, oldest first.
    pub fn snapshots(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for stack in files_in(&self.state().join("snapshots")) {
            found.extend(files_in(&stack));
        }
        // Not a request, nor what was last sent.
        found.retain(|file| file.extension().is_some_and(|one| one == "json"));
        found.sort();
        found
    }

    fn label(&self) -> String {
        format!("label={PROJECT}={}", self.host.project)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        remove_all(&self.label(), self.seen.take().into_iter().collect());
    }
}

/// The inspect JSON of the named objects, in the same order.
pub fn inspect(kind: &str, names: &[String]) -> Vec<Value> {
    if names.is_empty() {
        return Vec::new();
    }
    let mut arguments = vec![kind, "inspect"];
    arguments.extend(names.iter().map(String::as_str));
    serde_json::from_str(&docker(&arguments)).unwrap()
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
