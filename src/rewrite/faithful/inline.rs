//! Writes the variables of env files into `environment`, and the labels of label files into `labels`.
//!
//! Invariant: an entry is written only where every service that reads it is to have it.
#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use composefile::{
    document::{Entry, Node, NodeId, NodeKind, NodeMap, NodeSet, ScalarType},
    interpolate::escaped,
    reader::Reader,
    services::Service,
};

use super::{
    Blocker, Reason,
    findings::{Edit, Findings, NewEntry, NewValue, Note, Secrecy},
    sharing::{Sharing, is_own},
    shell::effective_text,
};

/// A key that names files, and the key that takes their values instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// The key that names the files.
    pub(super) files: &'static str,
    /// The key that takes the values.
    pub(super) values: &'static str,
    singular: &'static str,
    plural: &'static str,
    why: &'static str,
}

pub(super) const VARIABLES: Section = Section {
    files: "env_file",
    values: "environment",
    singular: "variable",
    plural: "variables",
    why: "stack.env is the only env file that Portainer can read",
};

pub(super) const LABELS: Section = Section {
    files: "label_file",
    values: "labels",
    singular: "label",
    plural: "labels",
    why: "Portainer cannot read label files",
};

/// The values that one service is to get.
pub(super) struct Addition<'d> {
    pub(super) service: Service<'d>,
    pub(super) values: Rc<[(String, String)]>,
    /// The key that names the service's files.
    pub(super) files: Option<Entry<'d>>,
    /// Whether values come from the running container.
    pub(super) is_kept: bool,
}

const KEPT: &str = "the running container has these values, and the file does not give them";

impl<'d> Addition<'d> {
    /// The service's present `environment` or `labels`.
    fn present(&self, section: &Section) -> Option<Node<'d>> {
        self.service.node.get(section.values)
    }

    /// The mapping that the values go to: where the files are named, or else the service's own.
    fn mapping(&self) -> Option<Node<'d>> {
        let own = self.service.node.resolved();
        let Some(entry) = self.files else {
            return Some(own);
        };
        own.mappings().find(|mapping| is_own(*mapping, entry))
    }

    /// A note about `count` of its values.
    fn note(&self, section: &Section, count: usize) -> Note {
        let Section {
            values,
            singular,
            plural,
            why,
            ..
        } = *section;
        let name = self.service.name;
        let what = match count {
            1 => format!("1 {singular} of service {name} is written into `{values}`"),
            count => format!("{count} {plural} of service {name} are written into `{values}`"),
        };
        let why = if self.is_kept { KEPT } else { why };
        Note::new(what, why).with(Secrecy::Secret)
    }

    /// The values as entries of a mapping.
    fn entries(&self) -> Vec<NewEntry> {
        let values = self.values.iter();
        values
            .map(|(name, value)| (name.clone(), NewValue::Text(escaped(value))))
            .collect()
    }
}

/// A key that names files and is not to stay.
#[derive(Clone, Copy)]
pub(super) struct Dropped<'d> {
    pub(super) entry: Entry<'d>,
    /// Whether it overrides a merged key of the same name, which would take effect without it.
    pub(super) overrides: bool,
}

/// The dropped keys, each once.
pub(super) type AllDropped<'d> = BTreeMap<NodeId, Dropped<'d>>;

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
        sharing: Sharing::new(reader),
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
    sharing: Sharing<'r, 'd, 'a>,
    dropped: &'r AllDropped<'d>,
    /// The dropped keys that values took the place of.
    replaced: NodeSet,
    found: Findings<'d>,
}

impl<'d> Inline<'_, 'd, '_> {
    fn add(&mut self, additions: &[Addition<'d>]) {
        let mut by_present: BTreeMap<NodeId, Vec<&Addition<'d>>> = BTreeMap::new();
        let mut without: BTreeMap<NodeId, &Addition<'d>> = BTreeMap::new();
        // A service without the key gets the values written into any mapping that it merges.
        let mut reached: NodeMap<Vec<&Addition<'d>>> = NodeMap::default();
        for addition in additions {
            let node = addition.service.node;
            if let Some(present) = addition.present(self.section) {
                let group = by_present.entry(present.resolved().id());
                group.or_default().push(addition);
                continue;
            }
            for mapping in node.mappings() {
                reached.entry(mapping.id()).or_default().push(addition);
            }
            if !addition.values.is_empty() {
                let written = addition.files.map(|entry| entry.key);
                let place = written.unwrap_or(node.resolved()).id();
                without.entry(place).or_insert(addition);
            }
        }
        for group in by_present.values() {
            self.extend_present(group);
        }
        for addition in without.values() {
            self.create(addition, &reached);
        }
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

    /// Adds values to an `environment` or `labels` that the services of a group have in common.
    fn extend_present(&mut self, group: &[&Addition<'d>]) {
        let first = group[0];
        let Some(present) = first.present(self.section).map(Node::resolved) else {
            return;
        };
        if group.iter().any(|other| other.values != first.values) {
            for addition in group.iter().filter(|one| !one.values.is_empty()) {
                self.unshare(addition, present);
            }
            return;
        }
        if first.values.is_empty() {
            return;
        }
        let mut new = Vec::new();
        for (name, value) in first.values.iter() {
            if !self.replace_present(first, name, value) {
                new.push((name.clone(), written(present, name, value)));
            }
        }
        if !new.is_empty() {
            self.found.edits.push(Edit::InsertFront {
                collection: present,
                note: first.note(self.section, new.len()),
                new,
            });
        }
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

    /// Gives a service that shares its `environment` or `labels` a copy of its own.
    fn unshare(&mut self, addition: &Addition<'d>, present: Node<'d>) {
        let service = addition.service;
        let mapping = service.node.resolved();
        let own = mapping
            .own_entries()
            .find(|entry| entry.name() == Some(self.section.values));
        let written_here = own.is_some_and(|own| own.value.id() == present.id());
        let (Some(mut copy), false, false) = (
            self.copy(present),
            written_here,
            self.sharing.is_shared(service),
        ) else {
            self.block(addition);
            return;
        };
        let mut all = addition.entries();
        copy.retain(|(name, _)| all.iter().all(|(added, _)| added != name));
        all.append(&mut copy);
        let name = self.section.values.to_owned();
        let new = vec![(name, NewValue::Mapping(all))];
        let note = addition.note(self.section, addition.values.len());
        self.found.edits.push(match own {
            Some(entry) => Edit::ReplaceEntry { entry, new, note },
            None => Edit::InsertEntries { mapping, new, note },
        });
    }

    /// Writes an `environment` or `labels` for a service that has none.
    fn create(&mut self, addition: &Addition<'d>, reached: &NodeMap<Vec<&Addition<'d>>>) {
        let Some(mapping) = addition.mapping() else {
            self.block(addition);
            return;
        };
        let mut reached = reached.get(&mapping.id()).into_iter().flatten();
        if reached.any(|other| other.values != addition.values) {
            self.block(addition);
            return;
        }
        let section = self.section;
        let mut new = vec![(
            section.values.to_owned(),
            NewValue::Mapping(addition.entries()),
        )];
        let note = addition.note(self.section, addition.values.len());
        // A key without a value, or reset.
        let unset = mapping
            .own_entries()
            .find(|entry| entry.name() == Some(section.values));
        let files = addition
            .files
            .filter(|entry| is_own(mapping, *entry))
            .and_then(|entry| self.dropped.get(&entry.key.id()));
        self.found.edits.push(match (unset, files) {
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
                ScalarType::Bool => NewValue::Text(entry.value.as_bool()?.to_string()),
                ScalarType::Number | ScalarType::Timestamp => NewValue::Text(as_decimal(&text?)?),
                ScalarType::Merge | ScalarType::Text => NewValue::Text(text?.into_owned()),
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

/// A number, if Compose writes it as it is written here.
fn as_decimal(number: &str) -> Option<String> {
    let read = number.parse::<i64>().ok()?.to_string();
    (read == number).then_some(read)
}
