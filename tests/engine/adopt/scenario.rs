//! One adoption: the stack before and after, what the plan said, and a redeployment from Portainer.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
};

use serde_json::{Value, json};
use testbed::{Record, Status, Variable};

use super::Case;
use crate::{
    bench::Stack,
    client,
    host::{IMAGE, docker, wait_until},
    run::Run,
};

/// A stack that runs and has data in its volumes.
pub struct Scenario {
    pub stack: Stack,
    pub case: Case,
}

/// What exists of a stack.
#[derive(Debug, Clone)]
pub struct State {
    pub containers: BTreeMap<String, Value>,
    /// A checksum of each file in each volume and bind mount, by source and path.
    pub data: BTreeSet<String>,
}

/// What happened to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Untouched,
    Recreated,
    Started,
    Removed,
}

/// An adoption that succeeded.
pub struct Adopted<'s> {
    scenario: &'s Scenario,
    before: State,
    pub after: State,
    happened: BTreeMap<String, Happened>,
    pub run: Run,
}

impl Scenario {
    /// Writes the Compose file and the files, starts the stack and writes data to its volumes.
    pub fn new(case: Case, text: &str, files: &[(&str, &str)]) -> Self {
        let scenario = Self::stopped(case, text, files);
        scenario.start();
        scenario
    }

    /// Writes the Compose file and the files.
    pub fn stopped(case: Case, text: &str, files: &[(&str, &str)]) -> Self {
        let stack = Stack::between(case.origin.compose(), &case.host.compose(), case.era);
        stack.write(text);
        for (name, content) in files {
            stack.file(name, content);
        }
        Self { stack, case }
    }

    /// Starts the stack, waits until it is healthy and writes data to its volumes.
    pub fn start(&self) {
        self.stack.up();
        self.wait_until_healthy();
        for (name, container) in self.stack.containers() {
            if container["State"]["Running"] != true {
                continue;
            }
            let mounts = container["Mounts"].as_array().unwrap().iter();
            for mount in mounts.filter(|mount| mount["RW"] == true) {
                let at = mount["Destination"].as_str().unwrap();
                let script = format!("if [ -d {at} ]; then echo {name}{at} > {at}/kept; fi");
                docker(&["exec", &name, "/bin/sh", "-c", &script]);
            }
        }
    }

    /// Waits until every health check has succeeded.
    pub fn wait_until_healthy(&self) {
        wait_until(|| {
            let containers = self.stack.containers();
            let mut healths = containers.values().map(|one| &one["State"]["Health"]);
            healths.all(|health| health.is_null() || health["Status"] == "healthy")
        });
    }

    pub fn state(&self) -> State {
        let containers = self.stack.containers();
        let mut sources = BTreeMap::new();
        for container in containers.values() {
            for mount in container["Mounts"].as_array().unwrap() {
                let kind = mount["Type"].as_str().unwrap();
                let source = match kind {
                    "volume" => &mount["Name"],
                    "bind" => &mount["Source"],
                    _ => continue,
                };
                sources.insert(source.as_str().unwrap(), kind);
            }
        }
        State {
            data: self.read(&sources),
            containers,
        }
    }

    /// A checksum of each file in each source.
    fn read(&self, sources: &BTreeMap<&str, &str>) -> BTreeSet<String> {
        if sources.is_empty() {
            return BTreeSet::new();
        }
        let mark = self.stack.host.mark();
        let mut arguments = vec!["run", "--rm", "--label", &mark, "--network=none"];
        let mount = |(index, (source, kind))| {
            format!("type={kind},source={source},target=/data/{index},readonly")
        };
        let mounts: Vec<String> = sources.iter().enumerate().map(mount).collect();
        arguments.extend(mounts.iter().flat_map(|mount| ["--mount", mount]));
        let script = "/bin/busybox find /data -type f -exec /bin/busybox md5sum {} +; echo END";
        arguments.extend([IMAGE, "/bin/sh", "-c", script]);
        // `docker run` can lose the output of a short command.
        let listed = (0..5)
            .find_map(|_| Some(docker(&arguments).strip_suffix("END")?.to_owned()))
            .expect("the files of the sources");
        let names: Vec<&str> = sources.keys().copied().collect();
        let file = |line: &str| {
            let (sum, path) = line.split_once("  /data/").unwrap();
            let (index, path) = path.split_once('/').unwrap_or((path, ""));
            let source = names[index.parse::<usize>().unwrap()];
            format!("{source} {path} {sum}")
        };
        listed.lines().map(file).collect()
    }

    /// The kind of the fate of each service in `stacklift plan`.
    pub fn plan(&self, services: &BTreeSet<String>, options: &str) -> BTreeMap<String, String> {
        let run = self.run(&format!("plan $PROJECT --output=json {options}"));
        let report = run.json();
        let planned = report["adopt"]["services"].as_array().unwrap();
        let fates: BTreeMap<String, String> = planned
            .iter()
            .map(|one| [&one["service"], &one["fate"]["kind"]])
            .map(|pair| pair.map(|text| text.as_str().unwrap().to_owned()))
            .map(|[service, kind]| (service, kind))
            .filter(|(service, _)| services.contains(service))
            .collect();
        assert!(fates.keys().eq(services), "{run:#?}");
        fates
    }

    /// Plans and adopts. Every byte, variable and mount is there afterwards, what the plan said happened, and exactly the
    /// services `recreated` have other containers.
    #[track_caller]
    pub fn adopts(&self, recreated: &[&str]) -> Adopted<'_> {
        self.adopts_with(recreated, "")
    }

    #[track_caller]
    pub fn adopts_with(&self, recreated: &[&str], options: &str) -> Adopted<'_> {
        let before = self.state();
        let services = services(&before.containers);
        let fates = self.plan(&services, options);
        let run = self.run(&format!("adopt $PROJECT {options}")).code(0);
        let after = self.state();
        let happened = happened(&before.containers, &after.containers);
        for (service, happened) in &happened {
            let true_fates: &[&str] = match happened {
                Happened::Untouched => &["unchanged", "left-behind", "unknown"],
                Happened::Recreated => &["recreated", "unknown"],
                Happened::Started => &["started", "restarted", "unknown"],
                Happened::Removed => &[],
            };
            let fate = fates[service].as_str();
            assert!(
                true_fates.contains(&fate),
                "{service}: {fate} -> {happened:?}"
            );
        }
        assert_kept(&before, &after);
        let changed = happened.iter().filter(|one| *one.1 == Happened::Recreated);
        let changed: Vec<&str> = changed.map(|(service, _)| service.as_str()).collect();
        assert_eq!(changed, recreated, "{run:#?}");
        Adopted {
            scenario: self,
            before,
            after,
            happened,
            run,
        }
    }

    /// The text that Portainer has.
    pub fn text_in_portainer(&self) -> String {
        self.record().text
    }

    fn record(&self) -> Record {
        let project = &self.stack.host.project;
        let record = self.stack.rehearsal.world(|world| {
            let mut records = world.records.values();
            records.find(|one| one.name == *project).cloned()
        });
        record.unwrap()
    }

    /// Sends a PUT with this text and the variables that Portainer has, and waits for its end.
    pub fn update(&self, text: &str) -> (u16, Status) {
        let stack = &self.stack;
        let record = self.record();
        let env = record.env.unwrap_or_default();
        let variable = |one: &Variable| json!({ "name": one.name, "value": one.value });
        let body = json!({
            "stackFileContent": text,
            "env": env.iter().map(variable).collect::<Vec<_>>(),
            "prune": false,
            "pullImage": false,
        });
        let path = format!("/api/stacks/{}?endpointId=1", record.id);
        let headers = [("X-API-Key", stack.rehearsal.key())];
        let body = body.to_string();
        let response = client::send(&stack.rehearsal, "PUT", &path, &headers, &body);
        let status = || self.record().status;
        wait_until(|| status() != Status::Deploying);
        (response.status, status())
    }
}

impl Deref for Scenario {
    type Target = Stack;

    fn deref(&self) -> &Stack {
        &self.stack
    }
}

impl Adopted<'_> {
    /// A redeployment from Portainer with the same text changes nothing, and a second adoption has nothing to do.
    #[track_caller]
    pub fn stays(&self) {
        let scenario = self.scenario;
        let text = scenario.text_in_portainer();
        assert_eq!(scenario.update(&text), (200, Status::Active));
        let now = scenario.state();
        assert_untouched(&self.after.containers, &now.containers);
        assert_kept(&self.before, &now);
        scenario.run("adopt $PROJECT").succeeds("up to date");
        assert_untouched(&now.containers, &scenario.stack.containers());
    }

    /// No value of an env file of the scenarios was printed.
    #[track_caller]
    pub fn hides_secrets(&self) {
        let all = self.run.all();
        for secret in ["MIIBVg", "password-", "quoted", "of $WORD"] {
            assert!(!all.contains(secret), "{secret}");
        }
    }

    /// What happened to a service.
    pub fn happened(&self, service: &str) -> Happened {
        self.happened[service]
    }
}

/// Asserts that nothing happened to any service.
#[track_caller]
pub fn assert_untouched(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) {
    let happened = happened(before, after);
    let is_untouched = |one: &Happened| *one == Happened::Untouched;
    assert!(happened.values().all(is_untouched), "{happened:?}");
}

/// Asserts that the containers have the same variables, mounts, networks, ports and image, and that no byte is lost.
#[track_caller]
pub fn assert_kept(before: &State, after: &State) {
    let lost: Vec<_> = before.data.difference(&after.data).collect();
    assert!(lost.is_empty(), "lost: {lost:#?}");
    let new: Vec<_> = after.data.difference(&before.data).collect();
    assert!(new.is_empty(), "new: {new:#?}");
    for (name, before) in &before.containers {
        let after = after.containers.get(name);
        let after = after.unwrap_or_else(|| panic!("{name} is gone"));
        assert_eq!(essence(before), essence(after), "{name}");
    }
    let names = |state: &State| state.containers.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(before), names(after));
}

/// What must be the same after a container was recreated.
fn essence(container: &Value) -> Value {
    let sorted = |value: &Value| {
        let items = value.as_array().into_iter().flatten();
        let mut items: Vec<String> = items.map(Value::to_string).collect();
        items.sort();
        items
    };
    let mounts = container["Mounts"].as_array().unwrap().iter();
    let mounts = mounts.map(|mount| {
        let keys = ["Type", "Name", "Source", "Destination", "RW"];
        json!(keys.map(|key| &mount[key]))
    });
    let networks = container["NetworkSettings"]["Networks"].as_object();
    let config = &container["Config"];
    let host = &container["HostConfig"];
    let id = container["Id"].as_str().unwrap();
    let networks = networks.unwrap().iter().map(|(name, endpoint)| {
        let aliases = endpoint["Aliases"].as_array().into_iter().flatten();
        let aliases: BTreeSet<_> = aliases
            .filter_map(Value::as_str)
            .filter(|alias| id.get(..12) != Some(*alias))
            .collect();
        json!([name, aliases])
    });
    json!({
        "running": container["State"]["Running"],
        "healthy": container["State"]["Health"]["Status"],
        "image": container["Image"],
        "command": [config["Entrypoint"], config["Cmd"]],
        "env": sorted(&config["Env"]),
        "user": config["User"],
        "mounts": sorted(&mounts.collect()),
        "networks": networks.collect::<Vec<_>>(),
        "ports": host["PortBindings"],
        "restart": host["RestartPolicy"],
        "init": host["Init"],
    })
}

fn service_of(container: &Value) -> &str {
    let label = &container["Config"]["Labels"]["com.docker.compose.service"];
    label.as_str().unwrap()
}

fn services(containers: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let all = containers.values();
    all.map(|one| service_of(one).to_owned()).collect()
}

/// What happened to each service, in the order of their names.
pub fn happened(
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
) -> BTreeMap<String, Happened> {
    let of = |service: &str, pointer: &str| {
        [before, after].map(|containers| {
            let own = containers.values().filter(|one| service_of(one) == service);
            let values = own.map(|one| one.pointer(pointer).unwrap().to_string());
            let mut values: Vec<_> = values.collect();
            values.sort();
            values
        })
    };
    let mut all = services(before);
    all.extend(services(after));
    let happened = |service: String| {
        let [old, new] = of(&service, "/Id");
        let [old_start, new_start] = of(&service, "/State/StartedAt");
        let happened = match () {
            () if new.is_empty() => Happened::Removed,
            () if old.is_empty() => Happened::Started,
            () if old != new => Happened::Recreated,
            () if old_start != new_start => Happened::Started,
            () => Happened::Untouched,
        };
        (service, happened)
    };
    all.into_iter().map(happened).collect()
}
