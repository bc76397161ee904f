//! Writes the variables of env files into `environment`.
//!
//! Invariant: an entry is written only where every service that reads it is to have it.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashSet},
};

use composefile::{
    document::{Entry, Node, NodeId, NodeKind, NodeMap, NodeSet},
    interpolate::escaped,
    reader::Reader,
    services::Service,
};

use super::{
    Kind,
    findings::{Findings, ItemEdit, NewValue, Secrecy},
    sharing::is_own,
    uses,
};

/// Gives every service its values, and removes the keys that name the files.
pub(super) fn inline<'d>(
    reader: &Reader<'d, '_>,
    additions: &[Addition<'d>],
    dropped: &AllDropped<'d>,
) -> Findings<'d> {
    let mut inline = Inline {
        reader,
        elsewhere: OnceCell::new(),
        dropped,
        replaced: NodeSet::default(),
        found: Findings::default(),
    };
    inline.add(additions);
    inline.drop();
    inline.found
}

struct Inline<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    /// The nodes that must not change, because an alias also uses them in other places.
    elsewhere: OnceCell<NodeSet>,
    dropped: &'r AllDropped<'d>,
    /// The dropped keys that values took the place of.
    replaced: NodeSet,
    found: Findings<'d>,
}

impl<'d> Inline<'_, 'd, '_> {
    fn add(&mut self, additions: &[Addition<'d>]) {
        let mut by_present: BTreeMap<NodeId, Vec<&Addition<'d>>> = BTreeMap::new();
        let mut without = Vec::new();
        for addition in additions {
            match addition.present() {
                Some(present) => {
                    let group = by_present.entry(present.resolved().id());
                    group.or_default().push(addition);
                }
                None => without.push(addition),
            }
        }
        for group in by_present.values() {
            self.extend_present(group, additions);
        }
        self.create_missing(&without);
    }

    fn drop(&mut self) {
        for (key, dropped) in self.dropped {
            let entry = dropped.entry;
            if self.replaced.contains(key) {
                continue;
            }
            if dropped.overrides {
                let name = entry.name().unwrap_or_default();
                let new = vec![(name.to_owned(), NewValue::EmptyList)];
                self.found.replace(entry, new);
            } else {
                self.found.remove(entry);
            }
        }
    }

    /// Adds the values of services that read the same `environment`.
    fn extend_present(&mut self, group: &[&Addition<'d>], all: &[Addition<'d>]) {
        let first = group[0];
        let is_same = group.iter().all(|other| other.values == first.values);
        let Some(present) = first.present().map(Node::resolved) else {
            return;
        };
        match group.iter().find(|other| !other.values.is_empty()) {
            None => {}
            Some(_) if is_same && self.may_extend(present, first, all) => {
                self.extend(first, present);
            }
            Some(addition) => self.block(addition),
        }
    }

    /// Whether a mapping or list is used only where these values are right: elsewhere, it must not change, and a mapping
    /// that merges it must set them itself.
    fn may_extend(&self, present: Node<'d>, addition: &Addition<'d>, all: &[Addition<'d>]) -> bool {
        if present.anchor().is_none() {
            return true;
        }
        let is_right_for = |other: &Addition<'d>| {
            let Some(other_present) = other.present() else {
                return true;
            };
            let mut before: HashSet<_> = other.values.keys().map(String::as_str).collect();
            for mapping in other_present.mappings() {
                if mapping.id() == present.id() {
                    let mut names = addition.values.keys();
                    return names.all(|name| before.contains(name.as_str()));
                }
                before.extend(mapping.own_entries().filter_map(|entry| entry.name()));
            }
            true
        };
        let elsewhere = || uses::elsewhere(self.reader.document);
        let elsewhere = self.elsewhere.get_or_init(elsewhere);
        !elsewhere.contains(&present.id()) && all.iter().all(is_right_for)
    }

    /// Adds values to an `environment`.
    fn extend(&mut self, addition: &Addition<'d>, present: Node<'d>) {
        let mut new = Vec::new();
        for (name, value) in &addition.values {
            if !self.replace_present(addition, name, value) {
                new.push((name.clone(), written(present, name, value)));
            }
        }
        if !new.is_empty() {
            self.found.insert_front(present, new);
        }
    }

    /// Gives an entry or item of this name another value, wherever it is written in the service's own collection. Whether
    /// there is one.
    fn replace_present(&mut self, addition: &Addition<'d>, name: &str, value: &str) -> bool {
        let Some(present) = addition.present().map(Node::resolved) else {
            return false;
        };
        let named = |item: &Node<'d>| {
            let text = item.as_str().and_then(|text| self.reader.read(text).ok());
            text.is_some_and(|text| text.split('=').next() == Some(name))
        };
        let items: Vec<_> = present.own_items().filter(named).collect();
        let entries = present.own_entries();
        let entries: Vec<_> = entries.filter(|one| one.name() == Some(name)).collect();
        let is_present = !items.is_empty() || !entries.is_empty();
        for item in items {
            self.found.edits.items.push(ItemEdit {
                list: present,
                item,
                new: Some(NewValue::Item(escaped(&format!("{name}={value}")))),
                secrecy: Secrecy::Secret,
            });
        }
        for entry in entries {
            let new = vec![(name.to_owned(), written(present, name, value))];
            self.found.replace(entry, new);
        }
        is_present
    }

    /// Writes an `environment` for the services that have none. It goes into the mapping that names the files if every
    /// service that reads that mapping gets these values. Otherwise, it goes into the service's own mapping.
    fn create_missing(&mut self, without: &[&Addition<'d>]) {
        let mut readers: NodeMap<Vec<&Addition<'d>>> = NodeMap::default();
        for addition in without {
            for mapping in addition.service.node.mappings() {
                readers.entry(mapping.id()).or_default().push(addition);
            }
        }
        let mut placed: BTreeMap<NodeId, (Node<'d>, &Addition<'d>)> = BTreeMap::new();
        for &addition in without.iter().filter(|one| !one.values.is_empty()) {
            let own = addition.service.node.resolved();
            let mut candidates = [addition.mapping(), Some(own)].into_iter().flatten();
            let is_right = |mapping: &Node<'d>| {
                let mut others = readers[&mapping.id()].iter();
                others.all(|other| other.values == addition.values)
            };
            match candidates.find(is_right) {
                Some(mapping) => {
                    placed.entry(mapping.id()).or_insert((mapping, addition));
                }
                None => self.block(addition),
            }
        }
        for (mapping, addition) in placed.into_values() {
            self.create(mapping, addition);
        }
    }

    fn create(&mut self, mapping: Node<'d>, addition: &Addition<'d>) {
        let values = addition.values.iter();
        let texts = values.map(|(name, value)| (name.clone(), NewValue::Text(escaped(value))));
        let value = NewValue::Mapping(texts.collect());
        let mut new = vec![("environment".to_owned(), value)];
        let own_files = addition.files.filter(|entry| is_own(mapping, *entry));
        let files = own_files.and_then(|entry| self.dropped.get(&entry.key.id()));
        let mut entries = mapping.own_entries();
        // The own key has no value, or is reset.
        let own = entries.find(|entry| entry.name() == Some("environment"));
        match (own, files) {
            (Some(entry), _) => self.found.replace(entry, new),
            (None, Some(&Dropped { entry, overrides })) => {
                if overrides {
                    new.insert(0, ("env_file".to_owned(), NewValue::EmptyList));
                }
                self.replaced.insert(entry.key.id());
                self.found.replace(entry, new);
            }
            (None, None) => self.found.insert(mapping, new),
        }
    }

    fn block(&mut self, addition: &Addition<'d>) {
        let Service { name, node, .. } = addition.service;
        let message = format!(
            "service {name} gets variables from its `env_file`, but shares its `environment` with services that do not get the same variables"
        );
        let hint = "give the service its own `environment`, without an anchor";
        self.found.block(node, Kind::Shared, message, hint);
    }
}

/// A value as a new entry or item of a collection.
fn written(collection: Node<'_>, name: &str, value: &str) -> NewValue {
    if matches!(collection.kind(), NodeKind::Sequence(_)) {
        NewValue::Item(escaped(&format!("{name}={value}")))
    } else {
        NewValue::Text(escaped(value))
    }
}

/// The values that are written into one service.
pub(super) struct Addition<'d> {
    pub(super) service: Service<'d>,
    pub(super) values: BTreeMap<String, String>,
    /// The key that names the service's files.
    pub(super) files: Option<Entry<'d>>,
}

impl<'d> Addition<'d> {
    /// The service's current `environment`.
    pub(super) fn present(&self) -> Option<Node<'d>> {
        self.service.node.get("environment")
    }

    /// The mapping that gets the values: the one that names the files, otherwise the service's own.
    pub(super) fn mapping(&self) -> Option<Node<'d>> {
        let own = self.service.node.resolved();
        let Some(entry) = self.files else {
            return Some(own);
        };
        own.mappings().find(|mapping| is_own(*mapping, entry))
    }
}

/// A key that names files and is removed.
#[derive(Clone, Copy)]
pub(super) struct Dropped<'d> {
    pub(super) entry: Entry<'d>,
    /// Whether it overrides a merged key of the same name. Without it, the merged key would take effect.
    pub(super) overrides: bool,
}

/// The dropped keys, each once.
pub(super) type AllDropped<'d> = BTreeMap<NodeId, Dropped<'d>>;
