//! The lines that arrange what runs, what Portainer has, and what fails.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};
use testbed::{
    Access, Call, Container, FaultKind, Files, Git, Record, Rehearsal, Rule, STACKS, Status, World,
    config_hash,
};

/// The repository that Portainer reaches.
const REPOSITORY: &str = "https://git.example/stacks.git";

/// What Portainer may let only administrators deploy.
const SETTINGS: [&str; 7] = [
    "BindMounts",
    "ContainerCapabilities",
    "DeviceMapping",
    "HostNamespace",
    "PrivilegedMode",
    "SecurityOpt",
    "SysctlSetting",
];

/// A change of what runs, or of what Portainer has.
pub struct Step {
    words: Vec<String>,
    block: String,
    root: String,
}

impl Step {
    pub fn of(line: &str, block: &str, root: &Path) -> Result<Self, String> {
        let words = shlex::split(line).ok_or_else(|| format!("a quote is open: {line}"))?;
        Ok(Self {
            words,
            block: block.to_owned(),
            root: root.display().to_string(),
        })
    }

    pub fn apply_to(&self, bench: &Rehearsal) {
        bench.world(|world| {
            bench.git(|git| bench.access(|access| self.apply(world, git, access)));
        });
    }

    /// Makes the change. An unknown line panics.
    pub fn apply(&self, world: &mut World, git: &mut Git, access: &mut Access) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        if limit(access, &words) {
            return;
        }
        match words[..] {
            ["up", folder, ref rest @ ..] => self.up(world, folder, rest),
            // While a command runs: before it, `write` also gives the world the file.
            ["write", path] => {
                fs::write(Path::new(&self.root).join(path), &self.block).expect("a file");
            }
            ["down", project] => world.down(project),
            ["container", name, ref rest @ ..] => self.container(world, name, rest),
            ["service", name, ref rest @ ..] => service(world, name, rest),
            ["image", name, "cannot", "be", "pulled"] => {
                world.unpullable.insert(name.to_owned());
            }
            ["image", name, "exists"] => {
                world.add_image(name);
            }
            ["image", name, "is", "removed"] => {
                world.images.retain(|_, image| image["RepoTags"][0] != name);
            }
            ["volume", "*", "is", "removed"] => world.volumes.clear(),
            ["volume", name, "is", "removed"] => {
                world.volumes.retain(|volume| volume["Name"] != name);
            }
            ["volume", name, "has", "no", "labels"] => {
                let mut volumes = world.volumes.iter_mut();
                let volume = volumes.find(|volume| volume["Name"] == name);
                volume.expect("a volume")["Labels"] = json!({});
            }
            ["engine", "has", "the", "ID", id] => {
                id.clone_into(&mut world.engine);
                for endpoint in world.endpoints.values_mut() {
                    id.clone_into(&mut endpoint.engine);
                }
            }
            ["engine", "has", "version", version] => {
                version.clone_into(&mut world.engine_version);
            }
            ["portainer", "stops", "stack", id] => {
                testbed::stop(world, number(id), 1).expect("stopped");
            }
            ["network", name, "is", "removed"] => {
                world.networks.retain(|network| network["Name"] != name);
            }
            ["portainer", "has", name] => {
                world.add_record(name, 1, &self.block);
            }
            ["portainer", "has", name, "in", "environment", id] => {
                world.add_record(name, number(id), &self.block);
            }
            ["portainer", "stack", id, ref rest @ ..] => self.record(world, number(id), rest),
            // It comes to an end if this line is in a transcript.
            ["deployments", "take", "forever"] => world.deploy_polls = u32::MAX,
            ["deployment", id, "ends"] => world.finish_deployment(number(id)),
            ["git", "has", path] => {
                branch(git).insert(path.to_owned(), self.block.clone());
            }
            ["git", "has", "no", path] => {
                branch(git).remove(path);
            }
            ["git", "is", "gone"] => git.repositories.clear(),
            ["git", "needs", "password", password] => {
                let repository = git.repositories.get_mut(REPOSITORY);
                repository.expect("a repository").password = Some(password.to_owned());
            }
            ["wait", time] => world.now += millis(time_of(time)),
            ["everything", "is", "removed"] => {
                world.records.clear();
                world.containers.clear();
            }
            ["portainer", "has", "no", "stacks"] => world.records.clear(),
            ["environment", id, ref rest @ ..] => environment(world, number(id), rest),
            _ => panic!("unknown line: {}", self.words.join(" ")),
        }
    }

    /// `up web`, `up web as shop`, `up web -f a.yml -f b.yml`
    fn up(&self, world: &mut World, folder: &str, rest: &[&str]) {
        let (project, rest) = match rest {
            ["as", project, rest @ ..] => (*project, rest),
            rest => (folder, rest),
        };
        let files: Vec<&str> = rest.iter().copied().filter(|word| *word != "-f").collect();
        let folder = Path::new(&self.root).join(folder).display().to_string();
        world
            .start_by_hand(project, &folder, &files)
            .expect("a stack that starts");
    }

    /// The container of this name, or with `*` each one.
    fn container(&self, world: &mut World, name: &str, rest: &[&str]) {
        if let ["shares", "the", "network", "of", other] = rest {
            let other = world.container(other).expect("a container");
            let mode = format!("container:{}", other.id);
            let mut all = world.containers.values_mut();
            let container = all.find(|one| one.name == name).expect("a container");
            container.host_config["NetworkMode"] = mode.into();
            return;
        }
        let now = world.now / 1000;
        let mut named = world
            .containers
            .values_mut()
            .filter(|one| name == "*" || one.name == name);
        match rest {
            ["runs", image] => {
                drop(named);
                world.add_container(name, image);
            }
            ["stops"] => {
                drop(named);
                // There may be none of that name.
                world.stop_container(name, 137).ok();
            }
            ["is", "removed"] => {
                drop(named);
                world
                    .containers
                    .retain(|_, one| name != "*" && one.name != name);
            }
            ["is", "a", "copy", "of", other] => {
                drop(named);
                let mut copy = world.container(other).expect("a container").clone();
                copy.id = format!("{:0>64}", world.containers.len());
                name.clone_into(&mut copy.name);
                world.containers.insert(copy.id.clone(), copy);
            }
            ["is", "replaced"] => {
                drop(named);
                replace(world, name);
            }
            ["joins", network] => named.for_each(|one| {
                let attachment = one.networks.values().next().cloned();
                one.networks
                    .insert((*network).to_owned(), attachment.expect("a network"));
            }),
            ["is", "not", "healthy", "yet"] => {
                named.for_each(|one| one.healthy_at = Some(i64::MAX));
            }
            ["has", "no", "files"] => named.for_each(|one| one.files.clear()),
            ["has", variable] => named.for_each(|one| {
                let variables = one.config["Env"].as_array_mut();
                variables.expect("a list").push((*variable).into());
            }),
            ["has", "the", "hash", "of"] => {
                let service = serde_json::from_str(&self.block).expect("JSON");
                let hash = config_hash(&service);
                named.for_each(|one| {
                    one.labels
                        .insert("com.docker.compose.config-hash".to_owned(), hash.clone());
                });
            }
            ["mounts", "what", other, "mounts"] => {
                drop(named);
                let mounts = world.container(other).expect("a container").mounts.clone();
                let mut all = world.containers.values_mut();
                let container = all.find(|one| one.name == name).expect("a container");
                container.mounts.extend(mounts);
            }
            ["leaves", "every", "network"] => named.for_each(|one| one.networks.clear()),
            ["loses", "the", "alias", alias, "in", network] => named.for_each(|one| {
                let attachment = one.networks.get_mut(*network).expect("a network");
                let aliases = attachment["Aliases"].as_array_mut();
                aliases.expect("aliases").retain(|one| one != alias);
            }),
            ["is", "never", "healthy"] => named.for_each(|one| one.healthy_at = None),
            ["is", "healthy"] => named.for_each(|one| one.healthy_at = Some(0)),
            ["exits", code] => named.for_each(|one| one.exit(code.parse().expect("a code"), now)),
            ["is", "a", "minute", "newer"] => named.for_each(|one| one.created += 60),
            ["writes", path, size @ ..] => named.for_each(|one| {
                one.files.insert((*path).to_owned(), content(size));
            }),
            ["label", label, "=", value] => named.for_each(|one| {
                let label = if label.starts_with("com.") {
                    (*label).to_owned()
                } else {
                    format!("com.docker.compose.{label}")
                };
                one.labels.insert(label, (*value).to_owned());
            }),
            [field, "=", value] => {
                let mut found = false;
                named.by_ref().for_each(|one| {
                    found = true;
                    set(one, field, value);
                });
                assert!(found, "no container {name}");
            }
            _ => panic!("unknown line: {}", self.words.join(" ")),
        }
    }

    fn record(&self, world: &mut World, id: u64, rest: &[&str]) {
        if let ["is", "deleted"] = rest {
            world.records.remove(&id);
            return;
        }
        if let ["has", "the", "ID", new] = rest {
            let mut record = world.records.remove(&id).expect("a stack");
            record.id = number(new);
            world.records.insert(record.id, record);
            return;
        }
        let now = world.now / 1000;
        let record = world.records.get_mut(&id).expect("a stack");
        match rest {
            ["has", "no", "line", part] => {
                let lines = record.text.lines().filter(|line| !line.contains(part));
                record.text = lines
                    .map(|line| format!("{line}\n"))
                    .collect::<Vec<_>>()
                    .concat();
            }
            ["is", "a", "minute", "older"] => record.created -= 60,
            ["is", "updated", "now"] => record.updated = now,
            ["has", "text"] => record.text.clone_from(&self.block),
            [field, "=", value] => set_of_record(record, field, value),
            _ => panic!("unknown line: {}", self.words.join(" ")),
        }
    }
}

/// A tool that updates images replaces a container: the new one has another ID.
fn replace(world: &mut World, name: &str) {
    let mut container = world.container(name).expect("a container").clone();
    world.containers.remove(&container.id);
    container.id = "f00d".repeat(16);
    world.containers.insert(container.id.clone(), container);
}

/// What a container writes to a file. More than 1 MiB is more than a snapshot keeps.
fn content(size: &[&str]) -> Vec<u8> {
    match size {
        [] => b"report\n".to_vec(),
        ["of", "2", "MiB"] => vec![b'.'; 2 << 20],
        _ => panic!("unknown size: {}", size.join(" ")),
    }
}

/// The files of the branch `main` of the repository.
fn branch(git: &mut Git) -> &mut Files {
    let main = "refs/heads/main".to_owned();
    let repository = git.repositories.entry(REPOSITORY.to_owned());
    let repository = repository.or_default();
    repository.default.clone_from(&main);
    repository.branches.entry(main).or_default()
}

/// Users, and what they may not do. Returns whether the line is about that.
fn limit(access: &mut Access, words: &[&str]) -> bool {
    match words {
        ["user", name, "has", "the", "key", key] => {
            access.users.push(((*key).to_owned(), (*name).to_owned()));
        }
        ["portainer", "stack", id, "has", "lost", "its", "workflow"] => {
            access.lost_workflows.insert(number(id));
        }
        ["environment", id, "is", "restricted"] => {
            access.restricted.insert(number(id));
        }
        ["environment", id, "forbids", "stacks"] => {
            let settings = access.admin_only.entry(number(id));
            settings.or_default().push(STACKS);
        }
        [
            "environment",
            id,
            "lets",
            "only",
            "administrators",
            "deploy",
            what @ ..,
        ] => {
            let settings = access.admin_only.entry(number(id)).or_default();
            settings.retain(|setting| *setting == STACKS);
            settings.extend(SETTINGS.iter().filter(|setting| what.contains(setting)));
        }
        _ => return false,
    }
    true
}

/// `environment 2 edge`, and what is known of it: whether it is this host, or a copy of it with the same engine ID.
fn environment(world: &mut World, id: u64, rest: &[&str]) {
    match rest {
        [name] => {
            world.add_endpoint(id, name);
            return;
        }
        ["is", "gone"] => {
            world.endpoints.remove(&id);
            return;
        }
        ["has", "the", "ID", new] => {
            let moved = world.endpoints.remove(&id).expect("an environment");
            world.endpoints.insert(number(new), moved);
            return;
        }
        ["is", "environment", other, "too"] => {
            let same = world.endpoints[&number(other)].clone();
            world.endpoints.insert(id, same);
            return;
        }
        _ => {}
    }
    let engine = world.engine.clone();
    let endpoint = world.endpoints.get_mut(&id).expect("an environment");
    match rest {
        ["is", "this", "host"] => endpoint.engine = engine,
        ["is", "another", "host"] => endpoint.engine = format!("REMOTE-ENGINE-{id}"),
        ["is", "a", "clone", "of", "this", "host"] => {
            (endpoint.engine, endpoint.is_clone) = (engine, true);
        }
        ["is", "no", "clone"] => endpoint.is_clone = false,
        _ => panic!("unknown line: environment {id} {rest:?}"),
    }
}

/// `service web/b exits 3`, `service web/b runs`, `service web/a is healthy after 3s`, `service web/a is never healthy`
fn service(world: &mut World, name: &str, rest: &[&str]) {
    match rest {
        ["exits", code] => {
            world
                .exits
                .insert(name.to_owned(), code.parse().expect("a code"));
        }
        ["runs"] => {
            world.exits.remove(name);
        }
        ["is", "never", "healthy"] => {
            world.health.insert(name.to_owned(), None);
        }
        ["is", "healthy", "after", time] => {
            let after = Some(millis(time_of(time)));
            world.health.insert(name.to_owned(), after);
        }
        _ => panic!("unknown line: service {name} {rest:?}"),
    }
}

fn set(container: &mut Container, field: &str, value: &str) {
    let json = || serde_json::from_str::<Value>(value).unwrap_or_else(|_| value.into());
    match field.split_once('.') {
        None => match field {
            "state" => value.clone_into(&mut container.state),
            "image" => value.clone_into(&mut container.image),
            "error" => value.clone_into(&mut container.error),
            "process" => container.process = number(value),
            "image_id" => value.clone_into(&mut container.image_id),
            _ => panic!("unknown field: {field}"),
        },
        Some(("config", key)) => container.config[key] = json(),
        Some(("host_config", key)) => container.host_config[key] = json(),
        Some(_) => panic!("unknown field: {field}"),
    }
}

fn set_of_record(record: &mut Record, field: &str, value: &str) {
    let json = || serde_json::from_str(value).expect("JSON");
    match field {
        "variables" => record.env = serde_json::from_value(json()).expect("variables"),
        "status" => {
            record.status = match value {
                "active" => Status::Active,
                "inactive" => Status::Inactive,
                "deploying" => Status::Deploying,
                "error" => Status::Error,
                _ => panic!("unknown status: {value}"),
            }
        }
        "users" => record.control.users = serde_json::from_value(json()).expect("IDs"),
        "teams" => record.control.teams = serde_json::from_value(json()).expect("IDs"),
        "public" => record.control.public = value == "true",
        "name" => value.clone_into(&mut record.name),
        "environment" => record.endpoint = number(value),
        "prune" => record.prune = Some(value == "true"),
        "git" => record.git = Some(json()),
        "auto_update" => record.auto_update = Some(json()),
        _ => panic!("unknown field: {field}"),
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("a short time")
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// `300ms`, `3s`
fn time_of(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => Duration::from_millis(number(millis)),
        None => Duration::from_secs(number(text.trim_end_matches('s'))),
    }
}

/// The call of this name, such as `Create`.
pub fn call(name: &str) -> Result<Call, String> {
    let found = Call::ALL.iter().find(|call| format!("{call:?}") == name);
    found
        .copied()
        .ok_or_else(|| format!("unknown call: {name}"))
}

/// A fault of a call: `fault Create 500 {"message": "no"}`. Before the call, `once` limits it to one request, `after 2` lets two
/// requests pass, and `at /changes` limits it to paths that contain this.
pub fn fault(line: &str) -> Result<Rule, String> {
    let mut rest = line.strip_prefix("fault ").unwrap_or_default();
    let (mut is_once, mut after, mut path) = (false, 0, None);
    let name = loop {
        let (word, more) = rest.split_once(' ').ok_or("which fault?")?;
        rest = more;
        let mut value = || {
            let (value, more) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = more;
            value
        };
        match word {
            "once" => is_once = true,
            "after" => after = value().parse().map_err(|_| "after how many?")?,
            "at" => path = Some(value()),
            name => break name,
        }
    };
    let (kind, body) = rest.split_once(' ').unwrap_or((rest, ""));
    let status = |text: &str| text.parse::<u16>().ok();
    let kind = match kind {
        "refused" => FaultKind::Status(500, r#"{"message":"no","details":"no"}"#.to_owned()),
        // What was asked for is done, and then this is answered.
        "done" => {
            let (code, body) = body.split_once(' ').unwrap_or((body, ""));
            FaultKind::Body(
                status(code).ok_or("which status?")?,
                body.as_bytes().to_vec(),
            )
        }
        "garbage" => FaultKind::Garbage,
        "empty" => FaultKind::Empty,
        "cut-off" => FaultKind::CutOff,
        "drips" => FaultKind::SlowDrip,
        "repeated" => FaultKind::Repeated,
        "closes" => FaultKind::CloseBefore,
        "closes-after" => FaultKind::CloseAfter,
        "hangs" => FaultKind::Hang,
        "hangs-after" => FaultKind::HangAfter,
        "dies" => FaultKind::Die,
        "dies-after" => FaultKind::DieAfter,
        // Answers before Portainer has finished.
        "impatient-success" | "impatient-failure" => {
            let words: Vec<&str> = body.splitn(3, ' ').collect();
            let [code, after, body] = words[..] else {
                return Err(format!("{kind} STATUS TIME BODY"));
            };
            FaultKind::Impatient {
                status: status(code).ok_or("which status?")?,
                body: body.as_bytes().to_vec(),
                after: time_of(after),
                fails: kind == "impatient-failure",
            }
        }
        "late-success" => FaultKind::LateSuccess(time_of(body)),
        "late-failure" => FaultKind::LateFailure(time_of(body)),
        code => FaultKind::Status(
            status(code).ok_or_else(|| format!("unknown fault: {code}"))?,
            body.to_owned(),
        ),
    };
    let rule = Rule::new(call(name)?, kind).after(after);
    let rule = if is_once { rule.times(1) } else { rule };
    Ok(match path {
        Some(path) => rule.path(path),
        None => rule,
    })
}
