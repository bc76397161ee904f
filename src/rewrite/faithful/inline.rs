//! Writes the variables of env files into `environment`, and the labels of label files into `labels`.
//!
//! Invariant: an entry is written only where every service that reads it is to have it.
#![deny(clippy::disallowed_methods)]

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap, HashSet},
};

use composefile::{
    document::{Entry, Node, NodeId, NodeKind, NodeMap, NodeSet, ScalarType},
    interpolate::escaped,
    reader::Reader,
    services::Service,
};

use super::{
    Blocker, Reason,
    additions::{Addition, AllDropped, Dropped, KEPT, Section},
    findings::{Edit, Findings, NewEntry, NewValue, Note, Secrecy},
    sharing::is_own,
    shell::effective_text,
    uses,
};

/// The mappings that get an `environment` or `labels` with the values of a service, in text order.
type Placed<'p, 'd> = BTreeMap<NodeId, (Node<'d>, &'p Addition<'d>)>;

/// Gives every service its values, and removes the keys that name the files.
pub(super) fn inline<'d>(
    reader: &Reader<'d, '_>,
    section: &'static Section,
    additions: &[Addition<'d>],
    dropped: &AllDropped<'d>,
) -> Findings<'d> {
    let mut inline = Inline {
        reader,
        section,
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
    section: &'static Section,
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
            match addition.present(self.section) {
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
            self.found.edits.push(if dropped.overrides {
                let name = entry.name().unwrap_or_default();
                Edit::ReplaceEntry {
                    entry,
                    new: vec![(name.to_owned(), NewValue::EmptyList)],
                    note: Note::new(
                        format!("`{name}` becomes an empty list"),
                        "otherwise a merged key of that name would take effect",
                    ),
                }
            } else {
                let why = self.section.why;
                Edit::RemoveEntry { entry, why }
            });
        }
    }

    /// Adds the values of services that read the same `environment` or `labels`.
    fn extend_present(&mut self, group: &[&Addition<'d>], all: &[Addition<'d>]) {
        let first = group[0];
        let Some(present) = first.present(self.section).map(Node::resolved) else {
            return;
        };
        let is_same = group.iter().all(|other| other.values == first.values);
        if is_same && first.values.is_empty() {
            return;
        }
        if is_same && self.may_extend(present, first, all) {
            self.extend(first, present);
            return;
        }
        match self.placed(group, Placed::default()) {
            Ok(placed) => self.separate(present, &placed),
            Err(addition) => self.block(addition),
        }
    }

    /// Whether a mapping or list is used only where these values are right: elsewhere, it must not change, and a mapping
    /// that merges it must set them itself.
    fn may_extend(&self, present: Node<'d>, addition: &Addition<'d>, all: &[Addition<'d>]) -> bool {
        if present.anchor().is_none() {
            return true;
        }
        let is_right_for = |other: &Addition<'d>| {
            let Some(other_present) = other.present(self.section) else {
                return true;
            };
            let mut before: HashSet<_> = other.values.iter().map(|(name, _)| &**name).collect();
            for mapping in other_present.mappings() {
                if mapping.id() == present.id() {
                    let mut names = addition.values.iter().map(|(name, _)| &**name);
                    return names.all(|name| before.contains(name));
                }
                before.extend(mapping.own_entries().filter_map(|entry| entry.name()));
            }
            true
        };
        let elsewhere = || uses::elsewhere(self.reader.document);
        !self
            .elsewhere
            .get_or_init(elsewhere)
            .contains(&present.id())
            && all.iter().all(is_right_for)
    }

    /// Adds values to an `environment` or `labels`.
    fn extend(&mut self, addition: &Addition<'d>, present: Node<'d>) {
        let mut new = Vec::new();
        for (name, value) in addition.values.iter() {
            if !self.replace_present(addition, name, value) {
                new.push((name.clone(), written(present, name, value)));
            }
        }
        if !new.is_empty() {
            self.found.edits.push(Edit::InsertFront {
                collection: present,
                note: addition.note(self.section, new.len()),
                new,
            });
        }
    }

    /// The services whose mappings get an `environment` or `labels` of their own, so that every service of a group reads
    /// its own values, although some merge the mappings of others. The error is a service whose mapping another one
    /// needs with different values.
    fn placed<'p>(
        &self,
        group: &[&'p Addition<'d>],
        mut placed: Placed<'p, 'd>,
    ) -> Result<Placed<'p, 'd>, &'p Addition<'d>> {
        loop {
            let before = placed.len();
            for &addition in group {
                let own = addition.service.node.resolved();
                let reads = self.read(addition.service, &placed);
                let is_right = match reads {
                    Some(other) => other.values == addition.values,
                    None => addition.values.is_empty(),
                };
                if !is_right && placed.insert(own.id(), (own, addition)).is_some() {
                    return Err(addition);
                }
            }
            if placed.len() == before {
                return Ok(placed);
            }
        }
    }

    /// The addition whose new `environment` or `labels` a service reads.
    fn read<'p>(&self, service: Service<'d>, placed: &Placed<'p, 'd>) -> Option<&'p Addition<'d>> {
        for mapping in service.node.mappings() {
            if let Some((_, addition)) = placed.get(&mapping.id()) {
                return Some(addition);
            }
            if self.own(mapping).is_some() {
                break;
            }
        }
        None
    }

    /// The `environment` or `labels` that is written in a mapping itself.
    fn own(&self, mapping: Node<'d>) -> Option<Entry<'d>> {
        let mut entries = mapping.own_entries();
        entries.find(|entry| entry.name() == Some(self.section.values))
    }

    /// Gives each of these services its own values, in addition to the `environment` or `labels` that they read now.
    fn separate(&mut self, present: Node<'d>, placed: &Placed<'_, 'd>) {
        let is_home = |mapping| {
            let own = self.own(mapping);
            own.is_some_and(|own| own.value.id() == present.id())
        };
        let home = placed.values().find(|(mapping, _)| is_home(*mapping));
        let home = home.map(|(mapping, _)| mapping.id());
        let mut entries = self.reader.document.nodes().flat_map(Node::own_entries);
        let is_in_build = entries.any(|entry| {
            let is_above = entry.value.id() == present.id() || entry.value.holds(present);
            is_above && entry.name() == Some("build")
        });
        // The definition moves, possibly to a place after one of its aliases.
        let moves = home.is_some() || is_in_build;
        for (mapping, addition) in placed.values() {
            if home == Some(mapping.id()) && present.anchor().is_none() {
                self.extend(addition, present);
                continue;
            }
            let merged = self.merged(*mapping, present).filter(|_| !moves);
            let Some(rest) = merged.or_else(|| self.copy(present)) else {
                self.block(addition);
                continue;
            };
            let mut all = addition.entries();
            let added: HashSet<_> = addition.values.iter().map(|(name, _)| name).collect();
            let rest = rest.into_iter().filter(|(name, _)| !added.contains(name));
            all.extend(rest);
            let name = self.section.values.to_owned();
            let value = match &all[..] {
                [] => NewValue::EmptyList,
                _ => NewValue::Mapping(all),
            };
            let new = vec![(name, value)];
            let note = addition.note(self.section, addition.values.len());
            self.found.edits.push(match self.own(*mapping) {
                Some(entry) => Edit::ReplaceEntry { entry, new, note },
                None => Edit::InsertEntries {
                    mapping: *mapping,
                    new,
                    note,
                },
            });
        }
    }

    /// The alias that a mapping has for its `environment` or `labels`, as an entry that merges its target.
    fn merged(&self, mapping: Node<'d>, present: Node<'d>) -> Option<Vec<NewEntry>> {
        let alias = self.own(mapping)?.value;
        let is_alias = alias.kind() == NodeKind::Alias && present.is_mapping();
        let is_tagged = |entry: &Entry<'d>| entry.value.tag().is_some();
        let mergeable = is_alias
            && !present
                .mappings()
                .flat_map(Node::own_entries)
                .any(|entry| is_tagged(&entry));
        let target = NewValue::Alias {
            anchor: present.anchor()?.to_owned(),
            target: present.id(),
        };
        mergeable.then(|| vec![("<<".to_owned(), target)])
    }

    /// Gives an entry or item of this name another value, wherever it is written in the service's own collection. Whether
    /// there is one.
    fn replace_present(&mut self, addition: &Addition<'d>, name: &str, value: &str) -> bool {
        let Some(present) = addition.present(self.section).map(Node::resolved) else {
            return false;
        };
        let service = addition.service.name;
        let what = format!("{name} of service {service} gets the value of its container");
        let note = Note::new(what, KEPT).with(Secrecy::Secret);
        let named = |item: &Node<'d>| {
            let text = item.as_str().and_then(|text| self.reader.read(text).ok());
            text.is_some_and(|text| text.split('=').next() == Some(name))
        };
        let items: Vec<_> = present.own_items().filter(named).collect();
        let entries: Vec<_> = present
            .own_entries()
            .filter(|entry| entry.name() == Some(name))
            .collect();
        let is_present = !(items.is_empty() && entries.is_empty());
        let items = items.into_iter().map(|item| Edit::ReplaceItem {
            list: present,
            item,
            text: escaped(&format!("{name}={value}")),
            note: note.clone(),
        });
        let entries = entries.into_iter().map(|entry| Edit::ReplaceEntry {
            entry,
            new: vec![(name.to_owned(), written(present, name, value))],
            note: note.clone(),
        });
        self.found.edits.extend(items.chain(entries));
        is_present
    }

    /// Writes an `environment` or `labels` for the services that have none. It goes into the mapping that names the files
    /// if every service that reads that mapping gets these values. Otherwise, it goes into the service's own mapping.
    fn create_missing(&mut self, without: &[&Addition<'d>]) {
        let mut readers: NodeMap<Vec<&Addition<'d>>> = NodeMap::default();
        for addition in without {
            for mapping in addition.service.node.mappings() {
                readers.entry(mapping.id()).or_default().push(addition);
            }
        }
        let mut placed = Placed::default();
        for &addition in without.iter().filter(|one| !one.values.is_empty()) {
            let Some(mapping) = addition.mapping() else {
                continue;
            };
            let mut readers = readers[&mapping.id()].iter();
            if readers.all(|other| other.values == addition.values) {
                placed.entry(mapping.id()).or_insert((mapping, addition));
            }
        }
        match self.placed(without, placed) {
            Ok(placed) => {
                for (mapping, addition) in placed.values() {
                    self.create(*mapping, addition);
                }
            }
            Err(addition) => self.block(addition),
        }
    }

    fn create(&mut self, mapping: Node<'d>, addition: &Addition<'d>) {
        let section = self.section;
        let value = match &addition.entries()[..] {
            [] => NewValue::EmptyList,
            entries => NewValue::Mapping(entries.to_vec()),
        };
        let mut new = vec![(section.values.to_owned(), value)];
        let note = addition.note(self.section, addition.values.len());
        let files = addition
            .files
            .filter(|entry| is_own(mapping, *entry))
            .and_then(|entry| self.dropped.get(&entry.key.id()));
        // The own key has no value, or is reset.
        self.found.edits.push(match (self.own(mapping), files) {
            (Some(entry), _) => Edit::ReplaceEntry { entry, new, note },
            (None, Some(&Dropped { entry, overrides })) => {
                if overrides {
                    new.insert(0, (section.files.to_owned(), NewValue::EmptyList));
                }
                self.replaced.insert(entry.key.id());
                Edit::ReplaceEntry { entry, new, note }
            }
            (None, None) => Edit::InsertEntries { mapping, new, note },
        });
    }

    fn block(&mut self, addition: &Addition<'d>) {
        let Section {
            files,
            values,
            plural,
            ..
        } = self.section;
        let name = addition.service.name;
        self.found.blockers.push(Blocker::at(
            addition.service.node,
            Reason::Shared,
            format!(
                "service {name} gets {plural} from its `{files}`, but shares its `{values}` with services that do not get the same {plural}"
            ),
            format!("give the service its own `{values}`, without an anchor"),
        ));
    }

    /// An `environment` or `labels` as new entries; `None` if they would not mean the same.
    fn copy(&self, present: Node<'d>) -> Option<Vec<NewEntry>> {
        let mut found = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut add = |name: &str, value: NewValue| {
            if let Some(&at) = seen.get(name) {
                found[at] = (name.to_owned(), value);
            } else {
                seen.insert(name.to_owned(), found.len());
                found.push((name.to_owned(), value));
            }
        };
        for item in present.items() {
            let text = effective_text(self.reader, item)?;
            match text.split_once('=') {
                Some((name, value)) => add(name, NewValue::Text(value.to_owned())),
                None => add(&text, NewValue::Null),
            }
        }
        for entry in present.entries() {
            let text = effective_text(self.reader, entry.value);
            let value = match entry.value.scalar_type()? {
                ScalarType::Null => NewValue::Null,
                ScalarType::Merge | ScalarType::Text => NewValue::Text(text?.into_owned()),
                _ if entry.value.resolved().tag().is_some() => return None,
                _ => NewValue::Plain(text?.into_owned()),
            };
            add(entry.name()?, value);
        }
        Some(found)
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
