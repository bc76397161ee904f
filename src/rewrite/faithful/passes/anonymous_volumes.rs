//! Names the anonymous volumes of running containers, so that their data stays with the service (N04).

use std::collections::{BTreeMap, BTreeSet};

use composefile::{
    document::{Entry, Node, NodeId, NodeKind},
    interpolate::escaped,
    path::clean,
    reader::Reader,
    services::{Service, one_or_many},
};

use crate::rewrite::faithful::{
    Finding, Kind,
    findings::{Findings, ItemEdit, NewEntry, NewValue, Secrecy},
    mounts::{MountItem, Mounted, OWN_VOLUMES, is_external, lists, mounts, wanted},
    runs::{Runs, ServiceRuns},
    sharing::Sharing,
    shell::effective_text,
};

/// Writes the name of every anonymous volume of `runs` into the text.
pub(super) fn anonymous_volumes<'d>(reader: &Reader<'d, '_>, runs: &Runs) -> Findings<'d> {
    if runs.volumes().is_empty() {
        return Findings::default();
    }
    let mut pass = AnonymousVolumes {
        reader,
        runs,
        sharing: Sharing::new(reader),
        keys: keys(reader, runs),
        used: BTreeSet::new(),
        added: BTreeMap::new(),
        found: Findings::default(),
    };
    for &service in &reader.services {
        if let Some(runs) = runs.services.get(service.name) {
            pass.service(service, runs);
        }
    }
    pass.add();
    pass.define();
    pass.found
}

struct AnonymousVolumes<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    runs: &'r Runs,
    sharing: Sharing<'r, 'd, 'a>,
    /// The key of each volume.
    keys: BTreeMap<String, String>,
    /// The volumes that the text names now.
    used: BTreeSet<String>,
    /// New items, by the place that gets them: the list, or the mapping of a service without one.
    added: BTreeMap<NodeId, (Node<'d>, Vec<String>)>,
    found: Findings<'d>,
}

impl<'d> AnonymousVolumes<'_, 'd, '_> {
    fn service(&mut self, service: Service<'d>, runs: &ServiceRuns) {
        let chain = self.reader.chain(service);
        let volumes = wanted(self.reader, self.runs, service);
        if volumes.is_empty() {
            return;
        }
        if runs.containers > 1 || !self.is_single(&chain) {
            let message = format!(
                "service {} has anonymous volumes and more than one container: with a name, all of them would share one volume",
                service.name
            );
            let hint = "run a single container, write a named volume or bind mount for the data, or pass --keep-anonymous: the volumes of containers that keep running get no names then, and may be lost when these are recreated";
            self.found.block(service.node, Kind::Shared, message, hint);
            return;
        }
        for (target, volume) in volumes {
            self.mount(service, &chain, target, volume);
        }
    }

    /// Whether the text asks for at most one container.
    fn is_single(&self, chain: &[Service<'d>]) -> bool {
        let counts = chain.iter().flat_map(|base| {
            let deploy = base.node.get("deploy");
            let replicas = deploy.and_then(|deploy| deploy.get("replicas"));
            [base.node.get("scale"), replicas]
        });
        let mut texts = counts.flatten().filter_map(Node::as_str);
        texts.all(|count| {
            self.reader
                .read(count)
                .is_ok_and(|count| ["0", "1"].contains(&&*count))
        })
    }

    fn mount(&mut self, service: Service<'d>, chain: &[Service<'d>], target: &str, volume: &str) {
        let Some(key) = self.keys.get(volume).cloned() else {
            return;
        };
        let last = chain.len() - 1;
        let mut declared: Vec<(usize, Node<'d>, MountItem<'d>)> = Vec::new();
        for (place, list) in lists(chain) {
            let all = mounts(self.reader, list).into_iter();
            let here = all.filter(|mount| mount.target == target);
            declared.extend(here.map(|mount| (place, list.resolved(), mount)));
        }
        match declared.last() {
            Some((_, _, mount)) if self.is_named(&mount.mounted, volume) => {}
            Some((_, _, mount)) if mount.mounted != Mounted::Anonymous => {
                self.conflict(service, mount.item, target);
            }
            Some(&(place, mounts, _)) if place == last => {
                for (_, _, mount) in declared.into_iter().filter(|(at, _, _)| *at == last) {
                    if mount.mounted == Mounted::Anonymous {
                        self.replace(service, mounts, &mount, &key);
                    }
                }
                self.used.insert(volume.to_owned());
            }
            Some((_, _, mount)) if mount.item.is_mapping() => {
                self.block_shared(service, mount.item);
            }
            _ if self.is_tmpfs(chain, target) => self.conflict(service, service.node, target),
            _ => self.insert(service, target, &key, volume),
        }
    }

    fn is_named(&self, mounted: &Mounted, volume: &str) -> bool {
        matches!(mounted, Mounted::Volume(key) if is_external(self.reader, key, volume))
    }

    fn is_tmpfs(&self, chain: &[Service<'d>], target: &str) -> bool {
        let tmpfs = chain.iter().filter_map(|base| base.node.get("tmpfs"));
        let mut paths = tmpfs.flat_map(one_or_many).filter_map(Node::as_str);
        paths.any(|path| {
            let path = self.reader.read(path).unwrap_or_default();
            path.split(':')
                .next()
                .is_some_and(|path| clean(path) == target)
        })
    }

    /// Gives a declared mount a source.
    fn replace(&mut self, service: Service<'d>, list: Node<'d>, mount: &MountItem<'d>, key: &str) {
        let item = mount.item;
        if let Some(text) = effective_text(self.reader, item) {
            let secrecy = match item.as_str() {
                Some(written) if written == text => Secrecy::Public,
                _ => Secrecy::Secret,
            };
            self.found.edits.items.push(ItemEdit {
                list,
                item,
                new: Some(NewValue::Item(format!("{key}:{text}"))),
                secrecy,
            });
            return;
        }
        if item.kind() == NodeKind::Alias || item.anchor().is_some() {
            self.block_shared(service, item);
            return;
        }
        let new = vec![("source".to_owned(), NewValue::Text(key.to_owned()))];
        let mut entries = item.own_entries();
        match entries.find(|entry| entry.name() == Some("source")) {
            Some(entry) => self.found.replace(entry, new),
            None => self.found.insert(item, new),
        }
    }

    /// Adds a mount that the service does not declare itself.
    fn insert(&mut self, service: Service<'d>, target: &str, key: &str, volume: &str) {
        if target.contains(':') {
            let name = service.name;
            let message = format!(
                "the anonymous volume of service {name} at {target} cannot be written in the short syntax"
            );
            let hint = "write the mount in long syntax (`type: volume`)";
            self.found
                .block(service.node, Kind::Unwritable, message, hint);
            return;
        }
        let list = service
            .node
            .get("volumes")
            .filter(|list| list.is_sequence());
        let is_tagged =
            |entry: Entry<'_>| entry.name() == Some("volumes") && entry.value.tag().is_some();
        let is_reset = service.node.resolved().own_entries().any(is_tagged);
        if list.is_none() && (is_reset || self.sharing.is_shared(service)) {
            self.block_shared(service, service.node);
            return;
        }
        let place = list.unwrap_or(service.node).resolved();
        let (_, items) = self.added.entry(place.id()).or_insert((place, Vec::new()));
        items.push(format!("{key}:{}", escaped(target)));
        self.used.insert(volume.to_owned());
    }

    fn add(&mut self) {
        for (place, items) in std::mem::take(&mut self.added).into_values() {
            if place.is_sequence() {
                let item = |item: String| (String::new(), NewValue::Item(item));
                let new = items.into_iter().map(item).collect();
                self.found.insert_front(place, new);
            } else {
                let new = vec![("volumes".to_owned(), NewValue::List(items))];
                self.found.insert(place, new);
            }
        }
    }

    /// The volumes that the services use now and that Docker counts as anonymous: `/data of db (volume 0123456789ab)`.
    fn places(&self) -> Vec<String> {
        let services = self.runs.services.iter();
        let all = services.flat_map(|(name, runs)| runs.volumes.iter().map(move |one| (name, one)));
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
            self.found.notices.push(Finding::of_stack(&format!(
                "`docker volume prune` still deletes these volumes when no container uses them: {}",
                places.join(", ")
            )));
        }
        match root.get("volumes").map(Node::resolved) {
            None => {
                let new = vec![("volumes".to_owned(), NewValue::Mapping(new))];
                self.found.insert(root, new);
            }
            Some(empty) if empty.own_entries().next().is_none() => {
                self.found.insert_front(empty, new);
            }
            Some(mapping) => self.found.insert(mapping, new),
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

    fn block_shared(&mut self, service: Service<'d>, node: Node<'d>) {
        let message = format!(
            "service {} needs its own `volumes`, to name its anonymous volumes, but shares them",
            service.name
        );
        self.found.block(node, Kind::Shared, message, OWN_VOLUMES);
    }
}

/// A key for each volume, after its service and path: `db-var-lib-mysql`.
fn keys(reader: &Reader<'_, '_>, runs: &Runs) -> BTreeMap<String, String> {
    let section = reader.document.get("volumes").into_iter();
    let present = section.flat_map(Node::entries);
    let names = present.filter_map(|entry| Some(entry.name()?.to_owned()));
    let mut taken: BTreeSet<String> = names.collect();
    let mut keys = BTreeMap::new();
    for &service in &reader.services {
        for (target, volume) in wanted(reader, runs, service) {
            if keys.contains_key(volume) {
                continue;
            }
            let base = key(service.name, target);
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
