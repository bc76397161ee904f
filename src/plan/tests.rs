//! The stack `web` in `/s/web`, and the plan of its migration to environment 1.

use std::{collections::BTreeMap, io::ErrorKind, sync::Arc};

use composefile::document::Document;
use rehearsal::{ComposeFiles, config_of_files};
use serde_json::{Value, json};

use super::*;
use crate::{
    compose::{ComposeVersion, Doubt, HOME, Project, Read, Rejection},
    finding::{Finding, Kind},
    model::{Changes, Container, Record, Rights, Uses, Variable},
    plan::{before::Remote, checks::validation},
    rewrite::{
        env::{contract_env, stack_env},
        faithful::{Runs, written_services},
        literal,
    },
    snapshot::Known,
};

mod rejection;

/// A port of the host that a program uses.
const PORT_IN_USE: u16 = 18_700;

/// What exists before the migration. One container runs, unless a test says otherwise.
pub struct World {
    pub name: &'static str,
    pub compose: String,
    pub env: Option<String>,
    /// The variables of the shell.
    pub shell: Vec<(&'static str, &'static str)>,
    pub containers: Vec<Container>,
    pub others: Vec<Container>,
    pub images: BTreeMap<String, Option<Value>>,
    pub changes: BTreeMap<String, Known<Changes>>,
    pub environment: Environment,
    pub rights: Rights,
    pub portainer_version: Option<&'static str>,
    pub missing: Vec<&'static str>,
    pub rejection: Option<Rejection>,
    /// What Compose reads in the files on disk, if it is not what the rehearsal reads.
    pub on_disk: Option<Project>,
    /// What Compose reads in what is sent, if it is not what the rehearsal reads.
    pub read: Option<Project>,
    /// The text and the variables of the Portainer stack.
    pub deployed: Option<(&'static str, Vec<Variable>)>,
    pub uses: Uses,
    pub portainer_env: Option<BTreeMap<String, String>>,
}

pub fn world(compose: &str) -> World {
    World {
        name: "web",
        compose: compose.to_owned(),
        env: None,
        shell: vec![("HOME", "/root")],
        containers: vec![container("web-web-1", "web")],
        others: Vec::new(),
        images: BTreeMap::from([
            ("sha256:x".to_owned(), Some(image("sha256:x"))),
            ("x".to_owned(), Some(image("sha256:x"))),
        ]),
        changes: BTreeMap::new(),
        environment: Environment::SameEngine,
        rights: Rights::Administrator,
        portainer_version: Some("2.21.0"),
        missing: Vec::new(),
        rejection: None,
        on_disk: None,
        read: None,
        deployed: None,
        uses: Uses::default(),
        portainer_env: Some(BTreeMap::new()),
    }
}

fn image(id: &str) -> Value {
    json!({"Id": id, "Config": {"Env": ["PATH=/bin", "VERSION=1"]}})
}

/// A running container as Compose creates it, without options.
pub fn container(name: &str, service: &str) -> Container {
    Container(json!({
        "Id": format!("{name:0<64}"),
        "Name": format!("/{name}"),
        "Image": "sha256:x",
        "State": {"Status": "running", "Running": true, "Paused": false},
        "Config": {
            "Image": "x",
            "Env": ["PATH=/bin", "VERSION=1"],
            "Labels": {
                "com.docker.compose.project": "web",
                "com.docker.compose.service": service,
                "com.docker.compose.image": "sha256:x",
                "com.docker.compose.oneoff": "False",
                "com.docker.compose.container-number": name.rsplit('-').next(),
                "com.docker.compose.project.working_dir": "/s/web",
            },
        },
        "HostConfig": {"RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}},
        "Mounts": [],
        "NetworkSettings": {"Networks": {"web_default": {"Aliases": [name, service]}}},
    }))
}

/// A running container outside the stack.
pub fn other(name: &str, image: &str, ports: &[(&str, u16)]) -> Container {
    let port =
        |&(address, port): &(&str, u16)| json!({"HostIp": address, "HostPort": port.to_string()});
    Container(json!({
        "Id": "f".repeat(64),
        "Name": name,
        "Config": {"Image": image, "Labels": {}},
        "State": {"Status": "running", "Running": true},
        "NetworkSettings": {"Ports": {"80/tcp": ports.iter().map(port).collect::<Vec<_>>()}},
    }))
}

impl World {
    /// The plan, without the loss that running containers are killed.
    pub fn plan(&self) -> Plan {
        let mut plan = self.with_facts(migration);
        let is_killed = |loss: &Finding| loss.to_string().contains("SIGKILL");
        plan.losses.retain(|loss| !is_killed(loss));
        plan
    }

    pub fn with_facts<T>(&self, then: impl FnOnce(&Facts) -> T) -> T {
        let text = literal::rewrite(&self.compose, "/s/web");
        let env = contract_env(self.env.as_deref().unwrap_or_default());
        let sent = Sent {
            text: &text,
            env: &env.variables,
        };
        let projects = Projects {
            on_disk: self.on_disk.clone().map_or_else(|| self.read_on_disk(), Ok),
            sent: match &self.rejection {
                Some(rejection) => Err(Unread::Rejected(rejection.clone())),
                None => self.read.clone().map_or_else(|| read(sent), Ok),
            },
            deployed: self
                .deployed
                .as_ref()
                .and_then(|(text, env)| read(Sent::new(text, env)).ok()),
        };
        let parsed = Document::parse(&text).ok();
        let record = Record::with_id("7");
        let known = Arc::new(vec![json!({"Name": "known"})]);
        let before = Before {
            remote: Remote {
                environment: self.environment.clone(),
                rights: self.rights.clone(),
                uses: self.uses.clone(),
                version: self.portainer_version.map(str::to_owned),
                ..Remote::default()
            },
            host: Host {
                listed: Some(self.containers.clone()),
                others: Some(self.others.clone()),
                containers: Some(self.containers.clone()),
                changes: self.changes.clone(),
                images: self.images.clone(),
                networks: Some(known.clone()),
                volumes: Some(known),
                portainer_env: self.portainer_env.clone(),
                ..Host::default()
            },
            ..Before::default()
        };
        then(&Facts {
            name: self.name,
            project: "web",
            dir: "/s/web",
            tool: "docker",
            endpoint: 1,
            portainer_port: Some(9443),
            source: &Parsed::new(&self.compose),
            sent,
            document: parsed.as_ref(),
            projects: &projects,
            host: &before.host,
            remote: &before.remote,
            portainer: before.portainer_compose("docker"),
            before: &before,
            has_data: true,
            record: self.deployed.as_ref().map(|(text, env)| {
                RecordFacts::new(&record, Some(Sent::new(text, env)), &before.last_sent, sent)
            }),
            lookup: &|path| {
                if self.missing.contains(&path) {
                    PathKind::Missing
                } else {
                    PathKind::File
                }
            },
            is_same_file: &|one, other| match one {
                "/linked" => Some(other == "/s/web/data"),
                "/link" => Some(other == "/s/web"),
                "/secret" => None,
                _ => Some(false),
            },
            unbindable: &|_, port, _| (port == PORT_IN_USE).then_some(ErrorKind::AddrInUse),
            form: Form::Literal,
            file: "docker-compose.yml",
            files: &["docker-compose.yml".to_owned()],
            env_files: const { &BTreeMap::new() },
            named: None,
            keep: Keep::default(),
            problems: &[],
            runs: Runs::NONE,
            redeploys: false,
        })
    }

    /// What the Compose program of the rehearsal reads in the files on disk.
    fn read_on_disk(&self) -> Result<Project, String> {
        let file = "docker-compose.yml".to_owned();
        let config = config_of_files(&ComposeFiles {
            project: None,
            folder: "/s/web",
            files: &[file],
            env_files: &[],
            shell: &(self.shell.iter())
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            interpolates: true,
            home: "/root",
            read: &|path| match path {
                "/s/web/docker-compose.yml" => Some(self.compose.clone()),
                "/s/web/.env" => self.env.clone(),
                // A file that another one includes.
                _ => Some("services: {}".to_owned()),
            },
        })?;
        let read = Read {
            config,
            printed_by: ComposeVersion(2, 26, 1),
            folder: None,
        };
        Ok(Project::new(&read, &BTreeMap::new(), None))
    }

    /// The losses, as shown.
    pub fn losses(&self) -> Vec<String> {
        let plan = self.plan();
        let losses = plan.changes.iter().chain(&plan.losses);
        losses.map(ToString::to_string).collect()
    }

    /// The refusals with their details, as shown.
    fn refusals(&self) -> Vec<String> {
        let refusals = self.plan().blockers;
        let shown = |refusal: Finding| match refusal.details.as_slice() {
            [] => refusal.message,
            details => format!("{}: {}", refusal.message, details.join("\n")),
        };
        refusals.into_iter().map(shown).collect()
    }

    #[track_caller]
    pub fn loses<const N: usize>(&self, expected: [impl AsRef<str>; N]) {
        assert_eq!(self.losses(), expected.map(|loss| loss.as_ref().to_owned()));
    }

    #[track_caller]
    pub fn warns<const N: usize>(&self, expected: [impl AsRef<str>; N]) {
        let expected = expected.map(|one| one.as_ref().to_owned());
        assert_eq!(messages(&self.plan().warnings), expected);
    }

    #[track_caller]
    fn refuses<const N: usize>(&self, expected: [impl AsRef<str>; N]) {
        assert_eq!(
            self.refusals(),
            expected.map(|refusal| refusal.as_ref().to_owned())
        );
    }

    /// Sets a member of an object of a container, which may be new.
    pub fn set(&mut self, index: usize, pointer: &str, value: Value) {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = self.containers[index].0.pointer_mut(parent);
        parent.expect("an object")[key] = value;
    }
}

/// What findings say.
pub fn messages(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|one| one.message.as_str()).collect()
}

/// The folder in which the text that is sent is read.
const STACK: &str = "/temporary/data/compose/stack";

/// What the Compose program of the rehearsal reads in a text of the stack `web`.
pub fn read(sent: Sent) -> Result<Project, Unread> {
    let env = stack_env(sent.env);
    let (file, env_file) = ("docker-compose.yml".to_owned(), "stack.env".to_owned());
    let has_env = !env.is_empty();
    let files = ComposeFiles {
        project: Some("web"),
        folder: STACK,
        files: &[file],
        env_files: if has_env { &[env_file][..] } else { &[] },
        shell: &BTreeMap::from([("HOME".to_owned(), HOME.to_owned())]),
        interpolates: true,
        home: HOME,
        read: &|path| match path {
            _ if path.ends_with("/stack.env") => has_env.then(|| env.clone()),
            _ if path.ends_with("/docker-compose.yml") => Some(sent.text.to_owned()),
            _ if path.starts_with(STACK) => None,
            // A file that another one includes.
            _ => Some("services: {}".to_owned()),
        },
    };
    let config = config_of_files(&files).map_err(|message| {
        Unread::Rejected(Rejection {
            by: "docker compose 2.26.1".to_owned(),
            doubt: message
                .contains("Additional property")
                .then_some(Doubt::UnknownKey),
            is_about_files: message.contains("no such file"),
            message: message.replace(&format!("{STACK}/"), ""),
        })
    })?;
    let read = Read {
        config,
        printed_by: ComposeVersion(2, 26, 1),
        folder: Some(STACK.to_owned()),
    };
    let written = written_services(sent.text, sent.env);
    Ok(Project::new(&read, &BTreeMap::new(), Some(&written)))
}

const PLAIN: &str = "services:\n  web:\n    image: x\n";

#[test]
fn b06_a_plain_stack_is_neither_refused_nor_loses_anything() {
    let plan = world(PLAIN).plan();
    let expected = Plan {
        services: plan.services.clone(),
        losses_known: true,
        ..Plan::default()
    };
    assert_eq!(plan, expected);
}

#[test]
fn b06_what_only_portainer_knows_is_not_refused() {
    let compose = "
services:
  web:
    image: x
    hostname: ${HOSTNAME}
    ports: ['${HOSTNAME}:80']
    volumes: ['${HOME}/data:/data', '~/x:/x']
    secrets: [token]
secrets:
  token: {file: ~/token}
";
    world(compose).refuses([""; 0]);
}

/// Found in the schemas of the releases: see `crates/composefile/tests/fixtures/first-releases.txt`.
#[test]
fn b20_keys_that_the_compose_of_portainer_rejects() {
    let compose = "x-watch: &watch {include: [a]}
services:
  web:
    image: x
    gpus: all
    pull_policy: daily
    build: {context: ., sbom: true, entitlements: [a]}
    depends_on: {db: {condition: service_started, required: false, restart: true}}
    label_file: a
    volumes: [{type: image, source: x, target: /x, image: {subpath: /a}}]
    networks: {default: {interface_name: a}}
    develop: {watch: [{<<: *watch, path: a, action: sync}]}
    deploy: {resourcess: {}}
models:
  m: {model: x}
";
    let rejected = |major, minor, patch| {
        let version = ComposeVersion(major, minor, patch);
        let found = world(compose).with_facts(|facts| {
            validation::newer(facts, facts.document.unwrap(), "compose.yaml", version)
        });
        let words = |line: String| line.split('`').nth(1).unwrap().to_owned();
        found.into_iter().map(words).collect::<Vec<_>>().join(" ")
    };
    let since_26 = "include gpus sbom entitlements label_file image interface_name resourcess models pull_policy: daily";
    assert_eq!(rejected(2, 26, 1), since_26);
    let since_29 = since_26.replace(" entitlements", "");
    assert_eq!(rejected(2, 29, 2), since_29);
    assert_eq!(rejected(2, 40, 3), "resourcess");
    assert_eq!(rejected(5, 8, 0), "");
}

#[test]
fn b06_files_that_portainer_cannot_read_are_refused_where_its_container_is_known() {
    let compose = "include: [./more.yml]\nservices:\n  web:\n    image: x\n";
    let mut world = world(compose);
    world.refuses([""; 0]);
    world.warns(["`include`: the deployment fails if Portainer cannot read /s/web/more.yml"]);
    let mut portainer = other("portainer", "portainer/portainer-ce", &[("0.0.0.0", 9443)]);
    world.others = vec![portainer.clone()];
    world
        .refuses(["Portainer cannot read files: `include`: Portainer cannot read /s/web/more.yml"]);
    portainer["Mounts"] = json!([{"Type": "bind", "Source": "/s", "Destination": "/s"}]);
    world.others = vec![portainer];
    world.refuses([""; 0]);
    world.warns([""; 0]);
}

#[test]
fn b27_images_that_the_deployment_would_pull_are_pulled_first() {
    let amd64 = || Some(json!({"Id": "sha256:1", "Os": "linux", "Architecture": "amd64"}));
    let (arm, arm_v8) = ("y (linux/arm64)", "y (linux/arm64/v8)");
    for (service, image, pulls) in [
        ("{image: y}", None, "y"),
        ("{image: 'y@sha256:00'}", None, "y@sha256:00"),
        ("{image: y, platform: linux/arm64/v8}", None, arm_v8),
        ("{image: y, platform: linux/arm64}", amd64(), arm),
        ("{image: y, platform: linux/x86_64}", amd64(), ""),
        ("{image: y}", amd64(), ""),
        ("{image: y, pull_policy: always}", amd64(), "y"),
        ("{image: y, pull_policy: daily}", amd64(), "y"),
        ("{image: y, pull_policy: missing}", amd64(), ""),
        ("{image: y, pull_policy: build, build: app}", None, ""),
        ("{image: y, pull_policy: build}", None, ""),
        ("{image: y, pull_policy: never}", None, ""),
        ("{image: y, build: app}", None, ""),
        ("{image: y, scale: 0}", None, ""),
        ("{image: y, profiles: [p]}", None, ""),
    ] {
        let mut world = world(&format!("services:\n  web: {service}\n  b: {service}\n"));
        for name in ["y", "y@sha256:00"] {
            world.images.insert(name.to_owned(), image.clone());
        }
        let found: Vec<String> = world
            .plan()
            .images
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found.join(" "), pulls, "{service}");
    }
}

#[test]
fn m12_variables_of_portainers_container_override_those_of_the_stack() {
    let compose = "
services:
  web:
    image: x
    environment: ['A=${A}', 'B=${B:-1}', 'C=${C}', D, 'E=${HOME}${U}']
";
    let mut world = world(compose);
    world.env = Some("A=1\nC=1\nD=1\n".to_owned());
    let lost = |world: &World| {
        let losses = world.plan().losses.into_iter().map(|loss| loss.to_string());
        let all = losses.filter(|loss| loss.starts_with("variables of Portainer's container"));
        all.collect::<Vec<_>>()
    };
    assert_eq!(lost(&world), [""; 0]);
    let set = ["A=2", "B=2", "C=1", "D=2", "HOME=/root", "OTHER=2"];
    let set = set.iter().filter_map(|one| one.split_once('='));
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    world.portainer_env = Some(set.collect());
    let expected =
        "variables of Portainer's container would override those of the stack: A, B and D";
    assert_eq!(lost(&world), [expected]);
    assert_eq!(world.plan().notices, []);
    world.portainer_env = None;
    assert_eq!(lost(&world), [""; 0]);
    assert_eq!(world.plan().notices.len(), 1);
    // Without variables, there is nothing to override.
    world.env = None;
    assert_eq!(world.plan().notices, []);
}

#[test]
fn b06_ports_addresses_and_names_of_other_containers_are_refused() {
    let compose = "
services:
  web:
    image: x
    container_name: frontend
    ports: ['8080:80', '127.0.0.1:9000:90', '7000-7010:80', '6000:60/udp', '5000']
    networks: {lan: {ipv4_address: 172.30.0.9, ipv6_address: 'fd00::9'}}
networks: {lan: {name: lan}}
";
    let with_addresses = |addresses: &[(&str, &str)]| {
        let mut container = other("d", "y", &[]);
        for (network, address) in addresses {
            container["NetworkSettings"]["Networks"][network]["IPAddress"] = json!(address);
        }
        container
    };
    let mut world = world(compose);
    world.others = vec![
        with_addresses(&[("other", "172.30.0.9"), ("lan", "172.30.0.10")]),
        with_addresses(&[("lan", "172.30.0.9")]),
        other("frontend", "y", &[("0.0.0.0", 8080), ("0.0.0.0", 7000)]),
        other("b", "y", &[("10.0.0.1", 9000)]),
        other("c", "y", &[("0.0.0.0", 6000), ("0.0.0.0", 5000)]),
    ];
    let held = [
        "port 8080/tcp is used by frontend",
        "the address 172.30.0.9 in network lan is used by d",
        "the container name frontend is used by another container of image y",
    ];
    let refusals = world.plan().blockers;
    let messages: Vec<_> = refusals.iter().map(|refusal| &*refusal.message).collect();
    assert_eq!(messages, held);
}

#[test]
fn b06_a_port_that_a_program_uses_is_a_warning() {
    for (ports, is_warned) in [
        ("18700:80", true),
        ("18690-18710:18690-18710", true),
        ("80:18700", false),
    ] {
        let world = world(&format!("{PLAIN}    ports: ['{ports}']\n"));
        let (warnings, said) = (world.plan().warnings, "port 18700/tcp is used by a program");
        let found = warnings
            .iter()
            .any(|warning| warning.message.contains(said));
        assert_eq!(found, is_warned, "{ports}: {warnings:?}");
    }
}
