//! Names the anonymous volumes of running containers, so that their data stays with the service (N04).

use std::collections::{BTreeMap, BTreeSet};

use composefile::{
    document::Node,
    interpolate::escaped,
    path::clean,
    reader::Reader,
    services::{Service, one_or_many},
};

use crate::rewrite::faithful::{
    Finding, Kind,
    findings::{Findings, NewEntry, NewValue},
    mounts::{MountItem, is_external, mounts},
    runs::{Runs, ServiceRuns},
};

/// Writes the name of every anonymous volume of `runs` into the text.
pub(super) fn anonymous_volumes<'d>(
    reader: &Reader<'d, '_>,
    runs: &Runs,
    found: &mut Findings<'d>,
) {
    if runs.volumes().is_empty() {
        return;
    }
    let mut pass = AnonymousVolumes {
        reader,
        runs,
        keys: keys(reader, runs),
        used: BTreeSet::new(),
        found,
    };
    for &service in &reader.services {
        if let Some(runs) = runs.services.get(service.name) {
            pass.service(service, runs);
        }
    }
    pass.define();
}

struct AnonymousVolumes<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    runs: &'r Runs,
    /// The key of each volume.
    keys: BTreeMap<String, String>,
    /// The volumes that the text names now.
    used: BTreeSet<String>,
    found: &'r mut Findings<'d>,
}

impl<'d> AnonymousVolumes<'_, 'd, '_> {
    fn service(&mut self, service: Service<'d>, runs: &ServiceRuns) {
        if runs.volumes.is_empty() {
            return;
        }
        if runs.containers > 1 || !self.is_single(service) {
            let message = format!(
                "service {} has anonymous volumes and more than one container: with a name, all of them would share one volume",
                service.name
            );
            let hint = "run a single container, write a named volume or bind mount for the data, or pass --keep-anonymous: the volumes of containers that keep running get no names then, and may be lost when these are recreated";
            self.found
                .block(service.node, Kind::Inconsistent, message, hint);
            return;
        }
        let added = runs.volumes.iter();
        let added = added.filter_map(|(target, volume)| self.mount(service, target, volume));
        let added: Vec<String> = added.collect();
        if !added.is_empty() {
            self.insert(service, added);
        }
    }

    /// Whether the text asks for at most one container.
    fn is_single(&self, service: Service<'d>) -> bool {
        let deploy = service.node.get("deploy");
        let replicas = deploy.and_then(|deploy| deploy.get("replicas"));
        let counts = [service.node.get("scale"), replicas].into_iter();
        let mut texts = counts.flatten().filter_map(Node::as_str);
        texts.all(|count| {
            self.reader
                .read(count)
                .is_ok_and(|count| ["0", "1"].contains(&&*count))
        })
    }

    /// Names the volume at a path. Returns the mount that the service has to get for it, if it declares none there.
    fn mount(&mut self, service: Service<'d>, target: &str, volume: &str) -> Option<String> {
        let key = self.keys.get(volume).cloned()?;
        let list = service.node.get("volumes");
        let mut declared = list.map_or_else(Vec::new, |list| mounts(self.reader, list));
        declared.retain(|mount| mount.target == target);
        match declared.last() {
            Some(mount) if self.is_named(mount, volume) => return None,
            Some(mount) if !mount.is_anonymous() => {
                self.conflict(service, mount.item, target);
                return None;
            }
            None if self.is_tmpfs(service, target) => {
                self.conflict(service, service.node, target);
                return None;
            }
            _ => {}
        }
        if !self.found.is_simple(service) {
            return None;
        }
        self.used.insert(volume.to_owned());
        if declared.is_empty() {
            return Some(format!("{key}:{}", escaped(target)));
        }
        declared.retain(MountItem::is_anonymous);
        for mount in &declared {
            self.replace(mount, &key);
        }
        None
    }

    fn is_named(&self, mount: &MountItem<'_>, volume: &str) -> bool {
        let key = mount.volume();
        key.is_some_and(|key| is_external(self.reader, key, volume))
    }

    fn is_tmpfs(&self, service: Service<'d>, target: &str) -> bool {
        let tmpfs = service.node.get("tmpfs").into_iter();
        let mut paths = tmpfs.flat_map(one_or_many).filter_map(Node::as_str);
        paths.any(|path| {
            let path = self.reader.read(path).unwrap_or_default();
            path.split(':')
                .next()
                .is_some_and(|path| clean(path) == target)
        })
    }

    /// Gives a declared mount a source.
    fn replace(&mut self, mount: &MountItem<'d>, key: &str) {
        let item = mount.item;
        if let Some(text) = item.as_str() {
            let new = NewValue::Text(format!("{key}:{text}"));
            return self.found.replace_value(item, &new);
        }
        let new = ("source".to_owned(), NewValue::Text(key.to_owned()));
        let mut entries = item.own_entries();
        match entries.find(|entry| entry.name() == Some("source")) {
            Some(entry) => self.found.replace(item, entry, &[new]),
            None => self.found.insert(item, &[new]),
        }
    }

    /// Adds mounts that the service does not declare itself.
    fn insert(&mut self, service: Service<'d>, items: Vec<String>) {
        let mut entries = service.node.own_entries();
        let own = entries.find(|entry| entry.name() == Some("volumes"));
        let new = |items| ("volumes".to_owned(), NewValue::List(items));
        match own {
            None => self.found.insert(service.node, &[new(items)]),
            Some(list) if list.value.own_items().next().is_none() => {
                self.found.replace(service.node, list, &[new(items)]);
            }
            Some(list) => self.found.insert_items(list.value, &items),
        }
    }

    /// The volumes that the services use now and that Docker counts as anonymous: `/data of db (volume 0123456789ab)`.
    fn places(&self) -> Vec<String> {
        let services = self.runs.services.iter();
        let all =
            services.flat_map(|(name, runs)| runs.volumes.iter().map(move |volume| (name, volume)));
        let used = all.filter(|(_, (_, volume))| {
            self.used.contains(*volume) && !self.runs.created.contains(*volume)
        });
        used.map(|(name, (target, volume))| format!("{target} of {name} (volume {volume:.12})"))
            .collect()
    }

    /// Defines the volumes that the services use now.
    fn define(&mut self) {
        let Some(root) = self.reader.document.root() else {
            return;
        };
        let external = |volume: &String| {
            let key = self.keys.get(volume)?.clone();
            Some((key, NewValue::External(volume.clone())))
        };
        let mut new: Vec<NewEntry> = self.used.iter().filter_map(external).collect();
        if new.is_empty() {
            return;
        }
        new.sort_by(|(one, _), (other, _)| one.cmp(other));
        let places = self.places();
        if !places.is_empty() {
            let what =
                "`docker volume prune` still deletes these volumes when no container uses them";
            let notice = Finding::of_stack(what)
                .of_kind(Kind::StillAnonymous)
                .details(places);
            self.found.notices.push(notice);
        }
        match root.entry("volumes") {
            Some(section)
                if section.value.is_mapping() && section.value.own_entries().count() > 0 =>
            {
                self.found.insert(section.value, &new);
            }
            section => {
                let new = [("volumes".to_owned(), NewValue::Mapping(new))];
                match section {
                    Some(section) => self.found.replace(root, section, &new),
                    None => self.found.insert(root, &new),
                }
            }
        }
    }

    fn conflict(&mut self, service: Service<'d>, node: Node<'d>, target: &str) {
        let message = format!(
            "the container of service {} has an anonymous volume at {target}, but the file mounts something else there",
            service.name
        );
        let hint =
            "move the data, then run `docker compose up -d`; or remove the mount from the file";
        self.found.block(node, Kind::Inconsistent, message, hint);
    }
}

/// A key for each volume, after its service and path: `db-var-lib-mysql`.
fn keys(reader: &Reader<'_, '_>, runs: &Runs) -> BTreeMap<String, String> {
    let section = reader.document.get("volumes").into_iter();
    let present = section.flat_map(Node::entries);
    let names = present.filter_map(|entry| Some(entry.name()?.to_owned()));
    let mut taken: BTreeSet<String> = names.collect();
    let mut keys = BTreeMap::new();
    for (service, own) in &runs.services {
        for (target, volume) in &own.volumes {
            if keys.contains_key(volume) {
                continue;
            }
            let base = key(service, target);
            let numbered = (2..).map(|count| format!("{base}-{count}"));
            let mut candidates = [base.clone()].into_iter().chain(numbered);
            let free = candidates.find(|key| taken.insert(key.clone()));
            keys.insert(volume.clone(), free.unwrap_or_default());
        }
    }
    keys
}

/// A key that Compose accepts, and does not take for a path.
fn key(service: &str, target: &str) -> String {
    let mut joined = String::new();
    for c in format!("{service}{target}").chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
            joined.push(c);
        } else if !joined.ends_with('-') {
            joined.push('-');
        }
    }
    let key = joined.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    // A single letter before a colon would be a drive.
    if key.len() < 2 {
        return format!("volume-{key}");
    }
    key.to_owned()
}
