//! Variables of env files, written into `environment:`, and labels of label files, into `labels:`.
#![deny(clippy::disallowed_methods)]

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::{Reason, Refusal, rewriter::Rewriter, splice::Value};
use composefile::{
    document::{Entry, Node, NodeId, NodeKind as Kind, NodeMap, NodeSet, ScalarType},
    interpolate::escaped,
    services::Service,
};

/// What files give a service, and the key that takes it instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cargo {
    /// The key that names the files.
    pub(super) files: &'static str,
    /// The key that it goes to.
    pub(super) to: &'static str,
    one: &'static str,
    many: &'static str,
    why: &'static str,
}

pub(super) const VARIABLES: Cargo = Cargo {
    files: "env_file",
    to: "environment",
    one: "variable",
    many: "variables",
    why: "the manager reads no env file but stack.env (M11)",
};

pub(super) const LABELS: Cargo = Cargo {
    files: "label_file",
    to: "labels",
    one: "label",
    many: "labels",
    why: "the manager reads no label file (M11)",
};

/// What one service is to get.
pub(super) struct Emission<'d> {
    pub(super) service: Service<'d>,
    pub(super) cargo: &'static Cargo,
    pub(super) values: Rc<[(String, String)]>,
    /// The key that names its files, where it is written.
    pub(super) files: Option<Entry<'d>>,
}

impl<'d> Emission<'d> {
    /// What the service has of its own.
    fn target(&self) -> Option<Node<'d>> {
        self.service.node.get(self.cargo.to)
    }
}

impl<'d> Rewriter<'d, '_> {
    /// Writes what every service is to get where it alone, or each that reads the place alike, gets them.
    pub(super) fn carry(&mut self, emissions: &[Emission<'d>], gone: &NodeSet) {
        let mut by_target: BTreeMap<NodeId, Vec<&Emission<'d>>> = BTreeMap::new();
        let mut without: BTreeMap<NodeId, Vec<&Emission<'d>>> = BTreeMap::new();
        // Whoever merges a mapping and has no such key of its own gets what is put into that one as well.
        let mut reached: NodeMap<Vec<&Emission<'d>>> = NodeMap::default();
        for emission in emissions {
            let node = emission.service.node;
            if let Some(target) = emission.target() {
                let group = by_target.entry(target.resolved().id());
                group.or_default().push(emission);
                continue;
            }
            for mapping in node.mappings() {
                reached.entry(mapping.id()).or_default().push(emission);
            }
            if !emission.values.is_empty() {
                let written = emission.files.map(|entry| entry.key);
                let place = written.unwrap_or(node.resolved()).id();
                without.entry(place).or_default().push(emission);
            }
        }
        for group in by_target.values() {
            self.add_to_target(group);
        }
        for group in without.values() {
            self.as_new_target(group[0], &reached, gone);
        }
    }

    fn add_to_target(&mut self, group: &[&Emission<'d>]) {
        let first = group[0];
        let Some(target) = first.target().map(Node::resolved) else {
            return;
        };
        if group.iter().all(|other| other.values == first.values) {
            if first.values.is_empty() {
                return;
            }
            let is_list = matches!(target.kind(), Kind::Sequence(_));
            let values = first.values.iter();
            let entries = values
                .map(|(name, value)| {
                    let value = if is_list {
                        Value::Item(escaped(&format!("{name}={value}")))
                    } else {
                        Value::Text(escaped(value))
                    };
                    (name.clone(), value)
                })
                .collect();
            let what = what(first);
            self.splices
                .insert_front(target, entries, (what, first.cargo.why, true));
            return;
        }
        for emission in group {
            if !emission.values.is_empty() {
                self.expand_target(emission, target);
            }
        }
    }

    /// Gives a service that shares its `environment` or `labels` one of its own.
    fn expand_target(&mut self, emission: &Emission<'d>, target: Node<'d>) {
        let service = emission.service;
        let mapping = service.node.resolved();
        let own = mapping
            .own_entries()
            .find(|entry| entry.name() == Some(emission.cargo.to));
        let written_here = own.is_some_and(|own| own.value.id() == target.id());
        let full = self.full(target);
        let (Some(mut entries), false, false) = (full, written_here, self.is_shared(service))
        else {
            self.refuse_shared(emission);
            return;
        };
        let values = emission.values.iter();
        let mut all: Vec<_> = values
            .map(|(name, value)| (name.clone(), Value::Text(escaped(value))))
            .collect();
        all.append(&mut entries);
        let new = vec![(emission.cargo.to.to_owned(), Value::Map(all))];
        let note = (what(emission), emission.cargo.why, true);
        match own {
            Some(own) => self.replace(mapping, own, new, note),
            None => self.insert(mapping, new, note),
        }
    }

    fn as_new_target(
        &mut self,
        first: &Emission<'d>,
        reached: &NodeMap<Vec<&Emission<'d>>>,
        gone: &NodeSet,
    ) {
        let Some(mapping) = written_in(first) else {
            self.refuse_shared(first);
            return;
        };
        let mut reached = reached.get(&mapping.id()).into_iter().flatten();
        if reached.any(|other| other.values != first.values) {
            self.refuse_shared(first);
            return;
        }
        let values = first.values.iter();
        let values = values
            .map(|(name, value)| (name.clone(), Value::Text(escaped(value))))
            .collect();
        let new = vec![(first.cargo.to.to_owned(), Value::Map(values))];
        let note = (what(first), first.cargo.why, true);
        let reset = mapping
            .own_entries()
            .find(|entry| entry.name() == Some(first.cargo.to));
        match (reset, first.files) {
            (Some(reset), _) => self.replace(mapping, reset, new, note),
            (None, Some(entry)) if gone.contains(&entry.key.id()) && is_own(mapping, entry) => {
                self.removals.remove(&entry.key.id());
                let mut new = new;
                if self.covers.contains(&entry.key.id()) {
                    new.insert(0, (first.cargo.files.to_owned(), Value::Nothing));
                }
                self.replace(mapping, entry, new, note);
            }
            _ => self.insert(mapping, new, note),
        }
    }

    fn refuse_shared(&mut self, emission: &Emission<'d>) {
        let Cargo {
            files, to, many, ..
        } = emission.cargo;
        let service = emission.service;
        self.refusals.push(Refusal::at(
            service.node,
            Reason::Shared,
            format!(
                "the service {} gets {many} from its `{files}`, and shares its `{to}` with services that do not get the same",
                service.name
            ),
            format!("write `{to}:` of its own into the service, without an anchor"),
        ));
    }

    /// An `environment` or `labels` as entries that can be written elsewhere; `None` where they cannot.
    fn full(&self, target: Node<'d>) -> Option<Vec<(String, Value)>> {
        let mut found = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut add = |name: &str, value: Value| {
            if let Some(&at) = seen.get(name) {
                found[at] = (name.to_owned(), value);
            } else {
                seen.insert(name.to_owned(), found.len());
                found.push((name.to_owned(), value));
            }
        };
        for item in target.items() {
            let text = self.text_of(item)?;
            match text.split_once('=') {
                Some((name, value)) => add(name, Value::Text(value.to_owned())),
                None => add(text, Value::Null),
            }
        }
        for entry in target.entries() {
            let written = self.text_of(entry.value);
            let value = match entry.value.scalar_type()? {
                ScalarType::Null => Value::Null,
                ScalarType::Bool => Value::Text(entry.value.as_bool()?.to_string()),
                ScalarType::Number | ScalarType::Timestamp => Value::Text(as_decimal(written?)?),
                ScalarType::Merge | ScalarType::Text => Value::Text(written?.to_owned()),
            };
            add(entry.name()?, value);
        }
        Some(found)
    }
}

/// The mapping that names the service's files, or its own.
fn written_in<'d>(emission: &Emission<'d>) -> Option<Node<'d>> {
    let own = emission.service.node.resolved();
    let Some(entry) = emission.files else {
        return Some(own);
    };
    own.mappings().find(|mapping| is_own(*mapping, entry))
}

fn what(emission: &Emission<'_>) -> String {
    let Cargo { to, one, many, .. } = emission.cargo;
    let name = emission.service.name;
    match emission.values.len() {
        1 => format!("1 {one} of the service {name} goes into `{to}`"),
        count => format!("{count} {many} of the service {name} go into `{to}`"),
    }
}

fn is_own(mapping: Node<'_>, entry: Entry<'_>) -> bool {
    mapping
        .own_entries()
        .any(|own| own.key.id() == entry.key.id())
}

/// What a service's mapping merges under the same key, and an entry of it hides.
pub(super) fn others<'d>(
    service: Service<'d>,
    entry: Entry<'d>,
) -> impl Iterator<Item = Entry<'d>> {
    let entries = service.node.mappings().flat_map(Node::own_entries);
    entries.filter(move |other| other.name() == entry.name() && other.key.id() != entry.key.id())
}

/// A number that compose writes as it is written.
fn as_decimal(number: &str) -> Option<String> {
    let read = number.parse::<i64>().ok()?.to_string();
    (read == number).then_some(read)
}
