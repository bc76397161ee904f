//! What a text or files mean: the configuration that a Compose program prints, and the config hashes that follow from it.

mod service;

use std::collections::{BTreeMap, BTreeSet};

use composefile::path::clean;
use serde_json::Value;

pub use self::service::{Content, Dependency, Endpoint, Mount, Place, Service};
use self::service::{Folders, PlacedFile, Sections};
use super::{
    HOME, Read,
    answer::share_by_id,
    dialect::{
        CREATE_HOST_PATH, Dialect, Fields, OMITS_TRUE, all_binds, clean_targets, go_json,
        set_created, subsets,
    },
    version::ComposeVersion,
};
use crate::{
    model::{Condition, Container, ResourceHashes, WrittenMount, WrittenServices},
    text::sha256,
};

/// What a text or files mean, as a Compose program resolved it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// The active services, in the order of the text, as far as that is known.
    pub services: Vec<Service>,
    /// Each service as Compose hashes it. There are several forms if what Compose printed does not tell which one the files have.
    forms: BTreeMap<String, Vec<Fields>>,
    /// The services that may have ports in the long syntax.
    long_ports: BTreeSet<String>,
    /// The config hashes of networks and volumes (N13).
    pub resources: ResourceHashes,
    /// Every key but `services`, as it was printed.
    pub others: Fields,
    folders: Folders,
}

impl Project {
    /// The project that a program read.
    ///
    /// `containers` are the IDs of containers by service: `up` hashes the ID of a container whose namespace a service shares
    /// (N05). `written` is how the text writes the services.
    pub fn new(
        read: &Read,
        containers: &BTreeMap<String, String>,
        written: Option<&WrittenServices>,
    ) -> Self {
        let (config, printed_by) = (&read.config, read.printed_by);
        let mut config = config.clone();
        single_dollars(&mut config);
        let folders = Folders::of(read.folder.as_deref());
        let sections = Sections {
            config: &config,
            project: config["name"].as_str().unwrap_or_default(),
            folders: &folders,
        };
        let mut project = Self {
            resources: resources(&config),
            ..Self::default()
        };
        let all = config["services"].as_object();
        let active: BTreeSet<&String> = all.into_iter().flatten().map(|(name, _)| name).collect();
        for (name, fields) in all.into_iter().flatten() {
            let Some(mut fields) = fields.as_object().cloned() else {
                continue;
            };
            // Compose prints optional dependencies on inactive services, and `up` removes them.
            if let Some(Value::Object(dependencies)) = fields.get_mut("depends_on") {
                dependencies.retain(|name, how| how["required"] != false || active.contains(name));
                if dependencies.is_empty() {
                    fields.shift_remove("depends_on");
                }
            }
            let written = written.and_then(|written| written.get(name));
            let service = sections.service(name, &fields, written);
            share_by_id(&mut fields, containers);
            volumes_by_id(&mut fields, containers);
            let forms = match written {
                Some(written) => vec![as_written(fields, &written.mounts)],
                None => possible_forms(fields, printed_by),
            };
            if written.is_none_or(|written| written.has_long_ports) {
                project.long_ports.insert(name.clone());
            }
            project.forms.insert(name.clone(), forms);
            project.services.push(service);
        }
        let position = |service: &Service| Some(written?.get(&service.name)?.position);
        project.services.sort_by_key(position);
        if let Value::Object(mut others) = config {
            others.shift_remove("services");
            project.others = others;
        }
        project.folders = folders;
        project
    }

    /// The name of the project.
    pub fn name(&self) -> &str {
        self.others
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Where an absolute path leads that Compose printed.
    pub fn place(&self, path: &str) -> Place {
        self.folders.place(path)
    }

    /// The secrets and configs that Compose puts into containers, with the service of each.
    pub fn placed_files(&self) -> impl Iterator<Item = (&Service, &PlacedFile)> {
        let services = self.services.iter();
        services.flat_map(|service| service.files.iter().map(move |file| (service, file)))
    }

    /// The references of the images of its services.
    pub fn images(&self) -> BTreeSet<String> {
        let services = self.services.iter();
        services
            .filter_map(|service| service.image.clone())
            .collect()
    }

    /// A service.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// The services that others wait for until they have succeeded.
    pub fn jobs(&self) -> BTreeSet<&str> {
        let dependencies = self.services.iter().flat_map(|service| &service.depends_on);
        let awaited =
            dependencies.filter(|(_, dependency)| dependency.condition == Condition::Completed);
        awaited.map(|(name, _)| name.as_str()).collect()
    }

    /// Whether `up` adds to a service what the engine or another program answers, so that its hash is unknown.
    pub fn is_completed(&self, service: &str) -> bool {
        let Some(service) = self.service(service) else {
            return false;
        };
        let is_provided = |name: &String| {
            self.service(name)
                .is_some_and(|one| one.get("provider").is_some())
        };
        service.get("models").is_some()
            || service.get("use_api_socket").is_some()
            || service.depends_on.keys().any(is_provided)
    }

    /// A service, in the form that is most likely.
    pub fn fields(&self, name: &str) -> Option<&Fields> {
        self.forms(name).first()
    }

    /// Whether `hash` is that of a service, as one of these dialects computes it.
    pub fn has_hash(
        &self,
        service: &str,
        hash: &str,
        dialects: impl IntoIterator<Item = Dialect>,
    ) -> bool {
        let forms = self.forms(service);
        let mut dialects = dialects.into_iter();
        dialects.any(|dialect| forms.iter().any(|form| dialect.has_hash(form, hash)))
    }

    /// Whether versions of a dialect certainly keep a container of a service with this hash.
    pub fn keeps(
        &self,
        service: &str,
        hash: &str,
        dialect: Dialect,
        created_by: Option<Dialect>,
    ) -> bool {
        let has_long_ports = self.long_ports.contains(service);
        let mut forms = self.forms(service).iter();
        forms.any(|form| dialect.keeps(form, hash, created_by, has_long_ports))
    }

    /// The part of a service for which an equal hash proves nothing to versions of a dialect.
    pub fn open_part(
        &self,
        service: &str,
        dialect: Dialect,
        created_by: Option<Dialect>,
    ) -> Option<&'static str> {
        let has_long_ports = self.long_ports.contains(service);
        dialect.open_part(created_by, self.fields(service)?, has_long_ports)
    }

    /// Whether a container certainly has another configuration than its service, whichever version created it.
    pub fn differs_from(&self, container: &Container, tool: &str) -> bool {
        let label = |name: &str| container.compose_label(tool, name);
        let created_by = label("version").and_then(ComposeVersion::parse);
        let hashed = label("service").zip(label("config-hash"));
        hashed.is_some_and(|(service, hash)| {
            self.service(service).is_some()
                && !self.is_completed(service)
                && created_by.is_some_and(Dialect::is_known)
                && !self.is_of(service, hash)
        })
    }

    /// Whether `hash` is that of a service, whichever version computed it.
    pub fn is_of(&self, service: &str, hash: &str) -> bool {
        self.has_hash(service, hash, Dialect::all())
    }

    /// Whether a service has another hash than in another project, as each of these dialects computes it.
    pub fn differs(
        &self,
        other: &Self,
        service: &str,
        dialects: impl IntoIterator<Item = Dialect>,
    ) -> bool {
        let hashed = |project: &Self, dialect: Dialect| -> Vec<Fields> {
            let forms = project.forms(service).iter();
            forms.flat_map(|form| dialect.hashed(form)).collect()
        };
        dialects.into_iter().all(|dialect| {
            let others = hashed(other, dialect);
            let mut own = hashed(self, dialect).into_iter();
            own.all(|form| !others.contains(&form))
        })
    }

    /// The part of a service that the two dialects hash in different ways.
    pub fn difference(&self, service: &str, one: Dialect, other: Dialect) -> Option<&'static str> {
        one.difference(other, self.fields(service)?)
    }

    /// The same, with the bind mounts of a service in the long syntax and without `create_host_path`, and with clean paths in the
    /// container. `None` if no mount changes.
    pub fn with_long_binds(&self, service: &str) -> Option<Self> {
        let written = self.fields(service)?;
        let mut long = written.clone();
        for bind in
            all_binds(&mut long).filter(|bind| bind.get(CREATE_HOST_PATH) == Some(&true.into()))
        {
            bind.shift_remove(CREATE_HOST_PATH);
        }
        clean_targets(&mut long);
        (long != *written).then(|| Self {
            forms: BTreeMap::from([(service.to_owned(), vec![long])]),
            long_ports: self.long_ports.clone(),
            ..Self::default()
        })
    }

    fn forms(&self, service: &str) -> &[Fields] {
        self.forms.get(service).map_or(&[], Vec::as_slice)
    }
}

/// Makes the containers in `volumes_from` those of `containers`, by ID.
fn volumes_by_id(service: &mut Fields, containers: &BTreeMap<String, String>) {
    let sources = service
        .get_mut("volumes_from")
        .and_then(Value::as_array_mut);
    for source in sources.into_iter().flatten() {
        let text = source.as_str().unwrap_or_default();
        let id = match text.strip_prefix("container:") {
            Some(container) => container.split(':').next(),
            None => text
                .split(':')
                .next()
                .and_then(|service| Some(containers.get(service)?.as_str())),
        };
        if let Some(id) = id {
            *source = id.into();
        }
    }
}

/// The service with its mounts as the text writes them.
fn as_written(mut service: Fields, mounts: &BTreeMap<String, WrittenMount>) -> Fields {
    let all = service.get_mut("volumes").and_then(Value::as_array_mut);
    for mount in all.into_iter().flatten() {
        let target = clean(mount["target"].as_str().unwrap_or_default());
        let Some(written) = mounts.get(&target) else {
            continue;
        };
        mount["target"] = written.target.as_str().into();
        if let Some(Value::Object(bind)) = mount.get_mut("bind") {
            set_created(bind, written.creates);
        }
    }
    service
}

/// Every form that the service may have in files of which this version printed it.
fn possible_forms(service: Fields, printed_by: ComposeVersion) -> Vec<Fields> {
    let (omitted, printed) = if printed_by < OMITS_TRUE {
        (Some(false), Some(true))
    } else {
        (Some(true), Some(false))
    };
    let mut open = Vec::new();
    let mut service = service;
    for (at, bind) in all_binds(&mut service).enumerate() {
        if bind.get(CREATE_HOST_PATH).and_then(Value::as_bool) != printed {
            set_created(bind, omitted);
            open.push(at);
        }
    }
    subsets(service, &open, |service, at| {
        if let Some(bind) = all_binds(service).nth(at) {
            set_created(bind, None);
        }
    })
}

/// Replaces each `$$` by `$`: `config` prints every `$` twice.
fn single_dollars(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("$$") => *text = text.replace("$$", "$"),
        Value::Object(map) => {
            map.values_mut().for_each(single_dollars);
            if map.keys().any(|key| key.contains("$$")) {
                let entries = std::mem::take(map).into_iter();
                *map = entries
                    .map(|(key, value)| (key.replace("$$", "$"), value))
                    .collect();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(single_dollars),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The config hashes of networks and volumes. Compose hashes the JSON that it prints (N13).
fn resources(config: &Value) -> ResourceHashes {
    let mut definitions = BTreeMap::new();
    let mut of = |kind: &str| {
        let all = config[kind].as_object().into_iter().flatten();
        let own = all.filter(|(_, resource)| resource["external"] != true);
        let hashes = own.filter_map(|(_, resource)| {
            let name = resource["name"].as_str()?.to_owned();
            let mut resource = resource.as_object()?.clone();
            // Compose reads it since 5.2.0, and that of Portainer is older.
            if let Some(Value::Object(ipam)) = resource.get_mut("ipam") {
                ipam.shift_remove("options");
            }
            // Compose hashes a volume without a driver as one of this driver.
            if kind == "volumes" && !resource.contains_key("driver") {
                resource.shift_insert(1, "driver".to_owned(), "local".into());
            }
            let resource = Value::from(resource);
            let hash = sha256(&go_json(&resource));
            definitions.insert(hash.clone(), resource);
            Some((name, hash))
        });
        hashes.collect()
    };
    ResourceHashes {
        networks: of("networks"),
        volumes: of("volumes"),
        definitions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each hash is one that Compose 2.40.3 and 5.6.1 wrote into the label of what they created from this configuration.
    #[test]
    fn n13_hashes_of_networks_and_volumes_are_those_of_the_labels() {
        let config = r#"{"name": "netx", "networks": {
            "back": {"name": "netx_back", "ipam": {}, "internal": true, "attachable": true, "enable_ipv6": false},
            "default": {"name": "netx_default", "ipam": {}},
            "front": {"name": "netx_front", "driver": "bridge", "driver_opts": {"com.docker.network.bridge.name": "br77", "k": "5"},
              "ipam": {"config": [{"subnet": "10.77.0.0/24", "gateway": "10.77.0.1", "aux_addresses": {"h": "10.77.0.9"}}]},
              "labels": {"a": "1", "b": "x\u003cy\u0026z"}},
            "other": {"name": "other", "ipam": {}, "external": true}},
          "volumes": {
            "data": {"name": "netx_data"},
            "opts": {"name": "netx_opts", "driver_opts": {"device": "tmpfs", "o": "size=1m", "type": "tmpfs"}, "labels": {"q": "1"}},
            "other": {"name": "others", "external": true}}}"#;
        let hashes = resources(&serde_json::from_str(config).expect("a configuration"));
        let all = hashes.networks.into_iter().chain(hashes.volumes);
        let shown: Vec<_> = all.map(|(name, hash)| name + " " + &hash).collect();
        let expected = [
            "netx_back 897bfd3972c15196182a409e1e7f598ce1ea2ced3c658f6c0b3175c461faa21b",
            "netx_default a87878c54bf709844a7abd7711752521f4373a4a42fadd0e6998ad8401b46027",
            "netx_front 067a326d024e149d495a5fd6d2dd825eaa1eaab3ddae24ddc048f79d9216dba4",
            "netx_data 30ae98a6e78310215ff3423fc2146c265f04955739610d2f23a57999b5863851",
            "netx_opts 9bc34015aa2b5414a6b22295ce955de84cad1ee87f4bfbc7f540fbc3ed04eebf",
        ];
        assert_eq!(shown, expected);
    }
}
