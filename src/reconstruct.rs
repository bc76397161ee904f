//! A Compose project as files, from its containers: for a project whose Compose file is lost. Reads the engine only.
//!
//! Invariant: values that look secret are in the variables, never in the text.

mod draft;
mod objects;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use self::{
    draft::{Draft, secret},
    objects::{Known, Objects},
};
use crate::{
    compose::{Input, Profiles, Program, Project, Values},
    engine::EngineReader,
    failure::Failure,
    model::{Container, Variable, compose_label},
    plan::{Fate, ServicePlan, starts},
    rewrite::{
        combine::written,
        env::stack_env,
        export::ExportedFiles,
        faithful::{FROM_CONTAINERS, MARK, encoded, written_services},
    },
    text::{Mask, printable, without_credentials},
};

/// Parts of the names of variables whose values look secret.
const SECRET: [&str; 8] = [
    "PASS",
    "SECRET",
    "TOKEN",
    "KEY",
    "CREDENTIAL",
    "PWD",
    "AUTH",
    "SALT",
];

/// A project as its containers show it.
pub struct Reconstructed {
    pub files: ExportedFiles,
    /// How many variables the env file has.
    pub variables: usize,
    /// Why Compose did not read the files for the hashes, if there is a Compose program.
    pub problem: Option<anyhow::Error>,
    /// What an adoption of the files would do to each service.
    pub services: Vec<ServicePlan>,
}

/// What the engine knows of a project.
struct Read {
    tool: String,
    project: String,
    /// The first container of each service, and how many it has.
    services: BTreeMap<String, (Container, usize)>,
    /// The services by the IDs of their containers.
    ids: BTreeMap<String, String>,
    images: Vec<Value>,
    objects: Objects,
    /// The engine's log driver, if it is known.
    log_driver: Option<String>,
    /// Hides the values of variables in what Compose says.
    mask: Mask,
}

/// Why a container may differ from the file.
const HIDDEN: &str = "its file had a setting that a container does not show, or `docker update` has changed one since";

/// Reads the containers of `project`, and writes it as files. `compose` tells whether they have the configuration of the containers.
pub fn reconstruct(
    engine: &EngineReader,
    tool: &str,
    project: &str,
    compose: &dyn Program,
) -> Result<Reconstructed> {
    let mut read = Read::new(engine, tool, project)?;
    let drafts = read.services.keys();
    let drafts = drafts.map(|service| (service.clone(), Draft::new(service, &read)));
    let drafts: BTreeMap<String, Draft> = drafts.collect();
    let mut problem = None;
    let resolved = read.resolved(&drafts, compose);
    let resolved = resolved.map_err(|error| problem = Some(error)).ok();
    let (mut services, mut reasons) = (Map::new(), BTreeMap::new());
    for (name, draft) in &drafts {
        let found = resolved
            .as_ref()
            .map_or(Err(None), |all| draft.search(name, all, read.hash(name)));
        let (picked, reason) = match found {
            Ok(picked) => (picked, None),
            Err(reason) => (draft.likely(), reason),
        };
        let mut service = draft.service(&picked);
        if service.shift_remove("build").is_some() {
            let image = read.services[name].0.image_name();
            service.insert("image".to_owned(), image.into());
            let reason = "its file named no image, but Portainer needs one";
            reasons.insert(name, reason.to_owned());
        }
        if service.get("networks") == Some(&json!(["default"])) {
            service.shift_remove("networks");
        }
        reasons.extend(reason.map(|reason| (name, reason)));
        services.insert(name.clone(), service.into());
    }
    let variables = secrets(&mut services);
    let env = stack_env(&variables);
    let mut text = read.text(&services);
    let mut written = None;
    while problem.is_none() {
        match read.project(compose, &text, &env, Profiles::Active) {
            Ok(found) if read.objects.try_others(&found.resources.networks) => {
                text = read.text(&services);
            }
            Ok(found) => {
                written = Some(found);
                break;
            }
            Err(error) => problem = Some(error),
        }
    }
    let fates = drafts.keys().map(|name| {
        let fate = match &written {
            None => Fate::unknown("Compose did not read the files"),
            Some(written) if written.is_of(name, read.hash(name)) => read.fate(name),
            Some(_) => {
                let why = reasons.get(name).map_or(HIDDEN, String::as_str);
                Fate::Recreated(why.to_owned())
            }
        };
        (name.clone(), fate)
    });
    let mut fates = fates.collect();
    follow(&services, &mut fates);
    let service = |(service, fate)| ServicePlan {
        service,
        fate,
        ..ServicePlan::default()
    };
    Ok(Reconstructed {
        services: fates.into_iter().map(service).collect(),
        problem,
        variables: variables.len(),
        files: ExportedFiles {
            text,
            env,
            ..ExportedFiles::default()
        },
    })
}

/// Finds the containers that are not kept because that of another service is not. Older versions of Compose also recreate what
/// depends on a container that is recreated (N05).
fn follow(services: &Map<String, Value>, fates: &mut BTreeMap<String, Fate>) {
    let is_kept = |fate: &Fate| matches!(fate, Fate::Unchanged | Fate::Started(_));
    let of_one = |name: &str, fates: &BTreeMap<String, Fate>| {
        let service = &services[name];
        let depends = |other: &&str| fates.get(*other).is_some_and(|fate| !is_kept(fate));
        let shared = shared(service).find(depends);
        if let Some(other) = shared
            && matches!(fates[other], Fate::Recreated(_))
        {
            let why = format!("it shares a namespace or volumes with {other}");
            return Some(Fate::Recreated(why));
        }
        let other = shared.or_else(|| dependencies(service).find(depends))?;
        let why = format!("it depends on {other}, which would not be kept");
        Some(Fate::Unknown(why))
    };
    while let Some((name, follows)) = services.keys().find_map(|name| {
        let may_follow = fates.get(name).is_some_and(is_kept);
        Some((name, of_one(name, fates).filter(|_| may_follow)?))
    }) {
        fates.insert(name.clone(), follows);
    }
}

/// The services whose namespace or volumes a service shares.
fn shared(service: &Value) -> impl Iterator<Item = &str> {
    let modes = ["network_mode", "pid", "ipc"].into_iter();
    let modes = modes.filter_map(|key| service[key].as_str()?.strip_prefix("service:"));
    let volumes = service["volumes_from"].as_array().into_iter().flatten();
    let volumes = volumes.filter_map(|volume| volume.as_str()?.split(':').next());
    modes.chain(volumes)
}

fn dependencies(service: &Value) -> impl Iterator<Item = &str> {
    let short = service["depends_on"].as_array().into_iter().flatten();
    let long = service["depends_on"].as_object().into_iter().flatten();
    let short = short.filter_map(Value::as_str);
    short.chain(long.map(|(name, _)| name.as_str()))
}

impl Read {
    fn new(engine: &EngineReader, tool: &str, project: &str) -> Result<Self> {
        let name = printable(project);
        let listed = engine.list(project)?;
        let mut containers = engine.inspect_containers(listed.iter().map(Container::id))?;
        containers.retain(|container| !container.is_one_off(tool));
        if containers.is_empty() {
            return Err(Failure::new(format!("{name} has no containers on this host: without them, its Compose file cannot be written"))
                .hint("if a backup or a Portainer stack has the file, use that one")
                .into());
        }
        let mut services: BTreeMap<String, (Container, usize)> = BTreeMap::new();
        let (mut by_id, mut by_name) = (BTreeMap::new(), BTreeMap::new());
        let hash = compose_label(tool, "config-hash");
        for container in &containers {
            let one = container;
            let is_of_swarm = one.label("com.docker.swarm.task.id").is_some();
            let label = one.compose_label(tool, "service").filter(|_| !is_of_swarm);
            let name = printable(one.name());
            let service =
                label.with_context(|| format!("container {name} was not created by Compose"))?;
            by_id.insert(one.id().to_owned(), service.to_owned());
            by_name.insert(one.name().to_owned(), service.to_owned());
            let known = services.entry(service.to_owned());
            let (first, count) = known.or_insert_with(|| (container.clone(), 0));
            *count += 1;
            if first.label(&hash) != one.label(&hash) {
                let service = printable(service);
                let what = format!("the containers of service {service} have different settings");
                let hint = "remove those that are out of date, then run the command again";
                return Err(Failure::new(what).hint(hint).into());
            }
        }
        let all = || containers.iter();
        let ids: BTreeSet<&str> = all().map(Container::image_id).collect();
        let images = engine.inspect_images(ids)?;
        let connected = all().flat_map(Container::networks);
        let mut names: BTreeSet<&str> = connected.map(|(name, _)| name.as_str()).collect();
        names.retain(|name| !matches!(*name, "host" | "none" | "bridge"));
        let networks = engine.inspect_networks(names)?;
        let mounted = all().flat_map(Container::volumes);
        let names: BTreeSet<&str> = mounted.map(|(name, _)| name).collect();
        let volumes = engine.inspect_volumes(names)?;
        let fixed = all()
            .flat_map(Container::fixed_addresses)
            .map(|(network, _)| network.to_owned());
        for other in engine.list_all()? {
            by_name.entry(other.name().to_owned()).or_default();
        }
        let objects = Objects::new(Known {
            tool,
            project,
            networks: &networks,
            volumes: &volumes,
            containers: by_name,
            fixed: fixed.collect(),
        });
        let mask = Mask::new(all().flat_map(Container::env).map(|(_, value)| value));
        Ok(Self {
            tool: tool.to_owned(),
            project: project.to_owned(),
            services,
            ids: by_id,
            images,
            objects,
            log_driver: engine
                .about()
                .ok()
                .and_then(|about| about.log_driver.clone()),
            mask,
        })
    }

    /// The label with the hash.
    fn hash(&self, service: &str) -> &str {
        let container = &self.services[service].0;
        container
            .compose_label(&self.tool, "config-hash")
            .unwrap_or_default()
    }

    /// A container with an equal hash is kept, unless its anonymous volume gets a name, or its network is recreated (N13).
    fn fate(&self, service: &str) -> Fate {
        let container = &self.services[service].0;
        let mut volumes = container.volumes().into_iter();
        let mut networks = container.networks();
        if let Some((volume, target)) = volumes.find(|(name, _)| self.objects.is_anonymous(name)) {
            let owner = self.owner_of(volume, container);
            let why = owner.map_or_else(
                || format!("the anonymous volume at {target} gets a name; its data stays"),
                |owner| format!("volumes are shared with {owner}, which is recreated"),
            );
            return Fate::Recreated(why);
        }
        match networks.find(|(name, _)| self.objects.is_unlike(name)) {
            Some((name, _)) => Fate::Recreated(format!(
                "the file had a setting of network {name} that Docker does not show"
            )),
            None if container.is_running() => Fate::Unchanged,
            None => Fate::Started(starts(container).to_owned()),
        }
    }

    /// The service in the `volumes_from` of a container that mounts this volume, too.
    fn owner_of(&self, volume: &str, container: &Container) -> Option<&str> {
        let sources = container.items("/HostConfig/VolumesFrom");
        let ids = sources.filter_map(|from| from.as_str()?.split(':').next());
        let mut services = ids.filter_map(|id| self.ids.get(id));
        let owner = services.find(|service| {
            let mut volumes = self.services[*service].0.volumes().into_iter();
            volumes.any(|(name, _)| name == volume)
        });
        owner.map(String::as_str)
    }

    /// Every value that a key of a service may have had, as Compose resolves it.
    fn resolved(&self, drafts: &BTreeMap<String, Draft>, compose: &dyn Program) -> Result<Project> {
        let variants = drafts.iter().flat_map(|(name, draft)| draft.variants(name));
        let services = variants.map(|(name, service)| (name, service.into()));
        let text = self.text(&services.collect());
        self.project(compose, &text, "", Profiles::All)
    }

    /// What Compose reads in a text.
    fn project(
        &self,
        compose: &dyn Program,
        text: &str,
        env: &str,
        profiles: Profiles,
    ) -> Result<Project> {
        let input = Input::Sent {
            project: &self.project,
            dir: None,
            text,
            env,
        };
        let read = compose.read(&input, profiles, Values::Resolved, &self.mask)?;
        let created = written_services(text, &[]);
        let services = self.services.iter();
        let ids = services.map(|(name, (one, _))| (name.clone(), one.id().to_owned()));
        Ok(Project::new(&read, &ids.collect(), Some(&created)))
    }

    /// The text of a Compose file with these services, and with the networks, volumes and secrets that they use.
    fn text(&self, services: &Map<String, Value>) -> String {
        let uses = |kind: &str, key: &str| {
            services.values().any(|service| match &service[kind] {
                Value::Object(used) => used.contains_key(key),
                Value::Array(used) => used.iter().any(|one| match one {
                    Value::String(short) => short.split(':').next() == Some(key),
                    long => long["source"] == key,
                }),
                _ => kind == "networks" && key == "default" && service["network_mode"].is_null(),
            })
        };
        let definitions = self.objects.definitions(&uses);
        let mut file = Map::from_iter([
            ("name".to_owned(), self.project.as_str().into()),
            (MARK.to_owned(), FROM_CONTAINERS.into()),
            ("services".to_owned(), escaped(services.clone().into())),
        ]);
        for (kind, mut all) in definitions {
            if kind == "networks" && all.get("default") == Some(&json!({})) {
                all.shift_remove("default");
            }
            if !all.is_empty() {
                file.insert(kind.to_owned(), escaped(all.into()));
            }
        }
        let services = self.services.values();
        let mounts = services.flat_map(|(one, _)| one.items("/HostConfig/Mounts"));
        let files = mounts.filter_map(|mount| {
            let file = json!({ "file": mount["Source"] });
            Some((secret(mount)?.to_owned(), file))
        });
        let secrets: Map<String, Value> = files.collect();
        if !secrets.is_empty() {
            file.insert("secrets".to_owned(), escaped(secrets.into()));
        }
        written(&file.into())
    }
}

/// Marks a reference to a variable, which no text of a container holds.
const REFERENCE: &str = "\0";

/// Doubles each `$`, but those of references.
fn escaped(value: Value) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix(REFERENCE) {
            Some(name) => format!("${{{name}}}").into(),
            None => text.replace('$', "$$").into(),
        },
        Value::Array(items) => items.into_iter().map(escaped).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key.replace('$', "$$"), escaped(value)))
            .collect(),
        other => other,
    }
}

/// Moves the values that look secret into variables.
fn secrets(services: &mut Map<String, Value>) -> Vec<Variable> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for (service, fields) in services {
        let environment = fields.get_mut("environment").and_then(Value::as_object_mut);
        for (name, value) in environment.into_iter().flatten() {
            let Some(text) = value.as_str().filter(|text| !text.is_empty()) else {
                continue;
            };
            let upper = name.to_ascii_uppercase();
            if !SECRET.iter().any(|part| upper.contains(part)) && without_credentials(text) == text
            {
                continue;
            }
            let plain = |text: &str| {
                let plain = text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                plain.to_ascii_uppercase()
            };
            let mut variable = plain(name);
            let is_taken = variables.get(&variable).is_some_and(|other| other != text);
            if is_taken || variable.starts_with("COMPOSE") || variable.starts_with("DOCKER") {
                variable = format!("{}_{variable}", plain(service));
            }
            if variable.starts_with(|c: char| c.is_ascii_digit()) {
                variable.insert(0, '_');
            }
            variables.insert(variable.clone(), text.to_owned());
            *value = format!("{REFERENCE}{variable}").into();
        }
    }
    let encode = |(name, value): (String, String)| Variable {
        value: encoded(&name, &value),
        name,
    };
    variables.into_iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n05_a_container_goes_with_the_one_that_it_shares_and_may_go_with_the_one_that_it_needs() {
        let services = json!({
            "api": {"depends_on": {"db": {"condition": "service_healthy"}}},
            "db": {},
            "files": {"volumes_from": ["vpn:ro"]},
            "other": {"depends_on": ["still"]},
            "still": {},
            "vpn": {"network_mode": "service:db", "depends_on": ["db"]},
            "web": {"depends_on": ["api"]},
        });
        let services = services.as_object().expect("services");
        let kept = services.keys().map(|name| (name.clone(), Fate::Unchanged));
        let mut fates: BTreeMap<String, Fate> = kept.collect();
        let recreated = |why: &str| Fate::Recreated(why.to_owned());
        fates.insert("db".to_owned(), recreated("x"));
        follow(services, &mut fates);
        let shares = |name| recreated(&format!("it shares a namespace or volumes with {name}"));
        let depends =
            |name: &str| Fate::Unknown(format!("it depends on {name}, which would not be kept"));
        let expected = [
            ("api", depends("db")),
            ("db", recreated("x")),
            ("files", shares("vpn")),
            ("other", Fate::Unchanged),
            ("still", Fate::Unchanged),
            ("vpn", shares("db")),
            ("web", depends("api")),
        ];
        assert_eq!(
            fates.into_iter().collect::<Vec<_>>(),
            expected.map(|(name, fate)| (name.to_owned(), fate))
        );
    }
}
