//! The Ansible collection, with the real Ansible, on three hosts with a real engine each and one embedded Portainer.
//!
//! `deploy/ansible/test` starts the hosts and runs this.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs, io,
    net::{Shutdown, TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use tempfile::TempDir;
use testbed::{Era, Options, Program, Rehearsal, World};

const KEY: &str = "ptr_ansible-key-5c1e90";
const SECRET: &str = "s3cr3t-of-the-database";
const TEXT: &str = "services:
  db:
    image: stacklift-test-busybox
    command: /bin/sleep 3600
    init: true
    env_file: .env
    volumes: [data:/data]
  app:
    image: stacklift-test-busybox
    command: /bin/sleep 3600
    init: true
    restart: unless-stopped
    volumes: [./app:/app]
volumes:
  data:
";

/// Three hosts, and the embedded Portainer with an environment for each: the ID of the environment is the number of the
/// host.
struct Hosts {
    /// The folder of `deploy/ansible/test`.
    folder: PathBuf,
    rehearsal: Rehearsal,
    /// The inventory, and what the embedded Portainer writes.
    own: TempDir,
}

/// A container's ID and start time, by its name.
type Containers = BTreeMap<String, String>;

/// A run of the playbook.
struct Play {
    code: Option<i32>,
    /// Standard output, then standard error.
    output: String,
}

impl Hosts {
    fn start() -> Self {
        let folder = env::var("STACKLIFT_ANSIBLE_HOSTS").expect("run deploy/ansible/test");
        let folder = PathBuf::from(folder);
        let own = tempfile::tempdir().unwrap();
        let mut world = World::new(KEY);
        for number in 1..=3 {
            world.add_endpoint(number, &format!("host{number}"));
        }
        for (number, endpoint) in &mut world.endpoints {
            let arguments = ["info", "--format", "{{.ID}}"];
            endpoint.engine = docker_in(&folder, *number, &arguments);
        }
        world.engine.clone_from(&world.endpoints[&1].engine);
        let stacks = own.path().join("stacks");
        fs::create_dir(&stacks).unwrap();
        let script = format!(
            "case \"$*\" in *' up '*) if [ -e {}/fails ]; then echo 'no space left' >&2; exit 1; fi; esac
             DOCKER_HOST=unix://{}/host$PORTAINER_ENVIRONMENT/docker.sock exec {} \"$@\"",
            own.path().display(),
            folder.display(),
            env::var("STACKLIFT_TEST_COMPOSE").unwrap()
        );
        let command = ["sh", "-c", &script, "deploy"].map(str::to_owned);
        let program = Program {
            command: command.to_vec(),
            era: Era::Sync,
            seen_as: stacks.to_str().unwrap().to_owned(),
            folder: stacks,
        };
        let options = Options {
            program: Some(program),
            has_real_engines: true,
            ..Options::default()
        };
        let rehearsal = Rehearsal::start(world, options).unwrap();
        let port = forward(rehearsal.base_url().rsplit(':').next().unwrap());
        let hosts = Self {
            folder,
            rehearsal,
            own,
        };
        hosts.write_inventory(port);
        hosts
    }

    /// Writes what a user writes: the inventory with the settings, and the configuration of Ansible.
    fn write_inventory(&self, port: u16) {
        let mut text = String::from("[docker_hosts]\n");
        for number in 1..=3 {
            writeln!(text, "host{number} ansible_host={}", address(number)).unwrap();
        }
        fs::write(self.own.path().join("hosts.ini"), text).unwrap();
        let (ssh, binary) = (self.folder.join("ssh"), self.folder.join("stacklift"));
        let (ssh, binary) = (ssh.display(), binary.display());
        let variables = format!(
            "ansible_user: root\n\
             ansible_python_interpreter: /usr/bin/python3\n\
             ansible_ssh_private_key_file: {ssh}/client\n\
             ansible_ssh_common_args: -o UserKnownHostsFile={ssh}/known_hosts -o StrictHostKeyChecking=yes\n\
             stacklift_binary: {binary}\n\
             stacklift_api_key: {KEY}\n\
             stacklift_settings:\n\
             \x20 base-url: https://10.213.9.254:{port}\n\
             \x20 tls: 'sha256:{}'\n",
            fingerprint(&self.rehearsal.certificate_pem())
        );
        let folder = self.own.path().join("group_vars");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("docker_hosts.yml"), variables).unwrap();
        let playbook = "- ansible.builtin.import_playbook: stacklift.stacks.adopt\n";
        fs::write(self.own.path().join("adopt.yml"), playbook).unwrap();
    }

    /// Runs the playbook of the collection. The key and the values of `.env` are never shown.
    #[track_caller]
    fn play(&self, what: &str, arguments: &[&str]) -> Play {
        let play = self.ansible("ansible-playbook", &[&["adopt.yml"], arguments].concat());
        println!("{what}: {}\n{}", arguments.join(" "), play.recap());
        play
    }

    /// Runs the module on a host.
    #[track_caller]
    fn module(&self, number: u64, arguments: &str) -> Play {
        let host = format!("host{number}");
        let arguments = [&host, "-m", "stacklift.stacks.run", "-a", arguments];
        self.ansible("ansible", &arguments)
    }

    /// Runs a program of Ansible.
    #[track_caller]
    fn ansible(&self, program: &str, arguments: &[&str]) -> Play {
        let output = Command::new(program)
            .args(["-vvv", "-i", "hosts.ini"])
            .args(arguments)
            .current_dir(self.own.path())
            .env("ANSIBLE_NOCOLOR", "1")
            .env("ANSIBLE_PIPELINING", "1")
            .env("HOME", self.own.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let play = Play {
            code: output.status.code(),
            output: text(&output),
        };
        for secret in [KEY, SECRET] {
            assert!(!play.output.contains(secret), "{program} shows {secret}");
        }
        play
    }

    /// Runs a shell script on a host.
    #[track_caller]
    fn ssh(&self, number: u64, script: &str) -> String {
        let ssh = self.folder.join("ssh");
        let known = format!("UserKnownHostsFile={}/known_hosts", ssh.display());
        let host = format!("root@{}", address(number));
        let mut command = Command::new("ssh");
        command.arg("-i").arg(ssh.join("client"));
        succeeded(command.args(["-o", &known, &host, script]))
    }

    /// Starts a stack by hand.
    fn start_stack(&self, number: u64, name: &str) {
        self.ssh(
            number,
            &format!(
                "mkdir -p /opt/stacks/{name}/app && cd /opt/stacks/{name} && \
                 printf 'PASSWORD={SECRET}\\n' > .env && printf '%s' '{TEXT}' > docker-compose.yml && \
                 docker-compose up -d"
            ),
        );
    }

    fn containers(&self, number: u64) -> Containers {
        let ids = docker_in(&self.folder, number, &["ps", "-aq", "--no-trunc"]);
        let found = ids.lines().map(|id| {
            let format = "{{.Name}} {{.Id}} {{.State.StartedAt}}";
            let found = docker_in(&self.folder, number, &["inspect", "--format", format, id]);
            let (name, rest) = found.split_once(' ').unwrap();
            (name.to_owned(), rest.to_owned())
        });
        found.collect()
    }

    fn all(&self) -> [Containers; 3] {
        [1, 2, 3].map(|number| self.containers(number))
    }

    /// The names of the Portainer stacks.
    fn records(&self) -> Vec<String> {
        self.rehearsal.world(|world| {
            let records = world.records.values();
            records
                .map(|one| format!("{} {}", one.endpoint, one.name))
                .collect()
        })
    }
}

impl Play {
    /// The last lines: a line for each host.
    fn recap(&self) -> &str {
        let at = self.output.find("PLAY RECAP").expect("a recap");
        self.output[at..].split("\n\n").next().unwrap()
    }

    /// What the recap counts for a host; `None` if the host is not in it.
    fn count(&self, host: u64, what: &str) -> Option<u32> {
        let start = format!("host{host} ");
        let line = self.recap().lines().find(|line| line.starts_with(&start))?;
        let words = line.split_whitespace();
        let count = words
            .filter_map(|word| word.split_once('='))
            .find(|(name, _)| *name == what);
        Some(count.unwrap().1.parse().unwrap())
    }

    /// `changed` and `failed` of each host.
    fn counts(&self) -> [Option<(u32, u32)>; 3] {
        [1, 2, 3].map(|host| Some((self.count(host, "changed")?, self.count(host, "failed")?)))
    }

    #[track_caller]
    fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.output);
        self
    }

    #[track_caller]
    fn says(self, part: &str) -> Self {
        assert!(self.output.contains(part), "no {part:?} in {}", self.output);
        self
    }
}

fn address(number: u64) -> String {
    format!("10.213.9.{number}")
}

/// Runs `docker` for the engine of a host.
#[track_caller]
fn docker_in(folder: &std::path::Path, number: u64, arguments: &[&str]) -> String {
    let host = format!("unix://{}/host{number}/docker.sock", folder.display());
    let mut command = Command::new("docker");
    let output = succeeded(command.args(["-H", &host]).args(arguments));
    output.trim_end().to_owned()
}

/// What a command prints to standard output.
#[track_caller]
fn succeeded(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The SHA-256 fingerprint of a certificate.
fn fingerprint(pem: &str) -> String {
    let lines = pem.lines().filter(|line| !line.starts_with("-----"));
    let der = BASE64_STANDARD.decode(lines.collect::<String>()).unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, &der);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Lets the hosts reach the embedded Portainer, which listens on a loopback address. Returns the port.
fn forward(to: &str) -> u16 {
    let to: u16 = to.parse().unwrap();
    let listener = TcpListener::bind("10.213.9.254:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
            copy(client.try_clone().unwrap(), server.try_clone().unwrap());
            copy(server, client);
        }
    });
    port
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Write).ok();
    });
}

#[test]
#[ignore = "needs Ansible, root and three engines: run deploy/ansible/test"]
fn the_playbook_with_ansible() {
    let hosts = Hosts::start();
    for number in 1..=3 {
        hosts.start_stack(number, &format!("web-{number}"));
    }
    checks(&hosts);
    stops_at_a_blocked_stack(&hosts);
    continues(&hosts);
    changes_nothing_again(&hosts);
    for number in 2..=3 {
        hosts.start_stack(number, &format!("new-{number}"));
    }
    stops_at_a_failed_deployment(&hosts);
    stops_at_an_engine_that_is_down(&hosts);
    refuses_a_loss(&hosts);
    rolls_back(&hosts);
}

/// Check mode says what would change, also before anything is installed.
fn checks(hosts: &Hosts) {
    let before = hosts.all();
    assert!(before.iter().all(|containers| containers.len() == 2));
    let play = hosts.play("check", &["--check", "--diff"]).code(0);
    let would_change = |counts: &Option<_>| matches!(counts, Some((1.., 0)));
    assert!(play.counts().iter().all(would_change));
    play.says("web-1: to adopt (create)")
        .says("app: unchanged")
        .says("(in Portainer)");
    assert_eq!(hosts.all(), before);
    assert_eq!(hosts.records(), [""; 0]);
    let left = "find /etc/stacklift* /usr/local/bin/stacklift /var/lib/stacklift /tmp/*.stacklift 2>/dev/null || true";
    for number in 1..=3 {
        assert_eq!(hosts.ssh(number, left), "");
    }
}

/// The second host fails, because another environment has a Portainer stack of that name (M20). The first is adopted, and
/// the third is not reached.
fn stops_at_a_blocked_stack(hosts: &Hosts) {
    let before = hosts.all();
    let add = |world: &mut World| world.add_record("web-2", 1, TEXT);
    let other = hosts.rehearsal.world(add);
    let play = hosts.play("a blocked stack", &[]).code(2);
    let [Some((1.., 0)), Some((_, 1)), None] = play.counts() else {
        panic!("{}", play.recap());
    };
    play.says("refused: web-2: ");
    assert_eq!(hosts.all(), before);
    assert_eq!(hosts.records(), ["1 web-2", "1 web-1"]);
    hosts.rehearsal.world(|world| world.records.remove(&other));
}

/// The next run continues: the first host is done.
fn continues(hosts: &Hosts) {
    let before = hosts.all();
    let play = hosts.play("the next run", &[]).code(0);
    let [Some((0, 0)), Some((1.., 0)), Some((1.., 0))] = play.counts() else {
        panic!("{}", play.recap());
    };
    assert_eq!(hosts.all(), before);
    assert_eq!(hosts.records(), ["1 web-1", "2 web-2", "3 web-3"]);
    assert_eq!(hosts.ssh(3, "stat -c %a /etc/stacklift.key"), "600\n");
}

fn changes_nothing_again(hosts: &Hosts) {
    let before = hosts.all();
    for arguments in [[].as_slice(), &["--check"]] {
        let play = hosts.play("again", arguments).code(0);
        assert_eq!(play.counts(), [Some((0, 0)); 3]);
        assert_eq!(hosts.all(), before);
    }
}

/// Portainer fails to deploy on the second host and removes the containers (M06). They are restored, and the third host
/// is not reached.
fn stops_at_a_failed_deployment(hosts: &Hosts) {
    let before = hosts.all();
    let fails = hosts.own.path().join("fails");
    fs::write(&fails, "").unwrap();
    let play = hosts.play("a failed deployment", &[]);
    fs::remove_file(fails).unwrap();
    let play = play.code(2);
    assert_eq!(play.counts(), [Some((0, 0)), Some((0, 1)), None]);
    play.says("no space left").says("new-2: restored");
    let mut after = hosts.all();
    let is_running = |containers: &Containers| containers.keys().eq(before[1].keys());
    assert!(is_running(&after[1]), "{after:#?}");
    after[1].retain(|name, _| name.starts_with("/web-2"));
    let mut kept = before;
    kept[1].retain(|name, _| name.starts_with("/web-2"));
    assert_eq!(after, kept);
    assert_eq!(hosts.records(), ["1 web-1", "2 web-2", "3 web-3"]);
}

fn stops_at_an_engine_that_is_down(hosts: &Hosts) {
    let before = hosts.all();
    hosts.ssh(2, "mv /run/docker.sock /run/docker.away");
    let play = hosts.play("an engine that is down", &[]);
    hosts.ssh(2, "mv /run/docker.away /run/docker.sock");
    assert_eq!(play.code, Some(2), "{}", play.output);
    assert_eq!(play.counts(), [Some((0, 0)), Some((0, 1)), None]);
    play.says("cannot reach Docker");
    assert_eq!(hosts.all(), before);
    assert_eq!(hosts.records(), ["1 web-1", "2 web-2", "3 web-3"]);
}

/// The files have changed since, so that the containers are recreated: a file inside one is lost, which only
/// `accept_losses` accepts.
fn refuses_a_loss(hosts: &Hosts) {
    hosts.ssh(
        3,
        "docker exec new-3-app-1 sh -c 'echo > /written' && \
         sed -i 's/sleep 3600/sleep 7200/' /opt/stacks/new-3/docker-compose.yml",
    );
    let before = hosts.all();
    let play = hosts.module(3, "command=adopt stacks=new-3");
    play.says("host3 | FAILED!")
        .says("loss: new-3-app-1: ")
        .says("hint: set accept_losses");
    assert_eq!(hosts.all(), before);
    let play = hosts.module(3, "command=adopt stacks=new-3 accept_losses=true");
    play.says("host3 | CHANGED").says("new-3: adopted");
    hosts
        .module(3, "command=list")
        .says("host3 | SUCCESS")
        // Its containers have the directory of this test's Portainer, which does not look like that of a real one.
        .says("new-3: in-portainer, ");
    let is_other = |name: &str| !name.starts_with("/new-3-");
    let mut after = hosts.all();
    let mut kept = before;
    assert!(after[2].keys().eq(kept[2].keys()), "{after:#?}");
    after[2].retain(|name, _| is_other(name));
    kept[2].retain(|name, _| is_other(name));
    assert_eq!(after, kept);
}

/// The command of the guide.
fn rolls_back(hosts: &Hosts) {
    let command = "STACKMGR_API_KEY_FILE=/etc/stacklift.key stacklift restore web-3 --yes";
    let play = hosts.ansible(
        "ansible",
        &["host3", "-m", "ansible.builtin.shell", "-a", command],
    );
    play.code(0);
    assert_eq!(hosts.records(), ["1 web-1", "2 web-2", "3 new-3"]);
    assert_eq!(hosts.containers(3).len(), 4);
}
