//! Variables of env files, written into `environment:`.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    super::{
        document::{Entry, Kind, Node, NodeId, ScalarType},
        interpolate::escaped,
        services::Service,
    },
    Reason, Refusal,
    rewriter::Rewriter,
    splice::Value,
};

const WHY: &str = "the manager reads no env file but stack.env (M11)";

/// What one service is to get.
pub(super) struct Emission<'d> {
    pub(super) service: Service<'d>,
    pub(super) variables: Vec<(String, String)>,
    /// Its `env_file`, where it is written.
    pub(super) env_file: Option<Entry<'d>>,
}

impl<'d> Rewriter<'d, '_> {
    /// Writes every service's variables where it alone, or each that reads the place alike, gets them.
    pub(super) fn carry(&mut self, emissions: &[Emission<'d>], gone: &HashSet<NodeId>) {
        let mut by_environment: BTreeMap<NodeId, Vec<&Emission<'d>>> = BTreeMap::new();
        let mut without: BTreeMap<NodeId, Vec<&Emission<'d>>> = BTreeMap::new();
        for emission in emissions {
            let environment = emission.service.node.get("environment");
            match environment.filter(|node| !node.is_null()) {
                Some(node) => by_environment
                    .entry(node.resolved().id())
                    .or_default()
                    .push(emission),
                None if emission.variables.is_empty() => {}
                None => {
                    let place = emission
                        .env_file
                        .map_or(emission.service.node.resolved().id(), |entry| {
                            entry.key.id()
                        });
                    without.entry(place).or_default().push(emission);
                }
            }
        }
        for group in by_environment.values() {
            self.add_to_environment(group);
        }
        for group in without.values() {
            self.as_new_environment(group, emissions, gone);
        }
    }

    fn add_to_environment(&mut self, group: &[&Emission<'d>]) {
        let first = group[0];
        let Some(target) = first.service.node.get("environment").map(Node::resolved) else {
            return;
        };
        if group.iter().all(|other| other.variables == first.variables) {
            if first.variables.is_empty() {
                return;
            }
            let is_list = matches!(target.kind(), Kind::Sequence(_));
            let variables = first.variables.iter();
            let entries = variables
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
                .insert_front(target, entries, (what, WHY, true));
            return;
        }
        for emission in group {
            if !emission.variables.is_empty() {
                self.expand_environment(emission, target);
            }
        }
    }

    /// Gives a service that shares its `environment` one of its own.
    fn expand_environment(&mut self, emission: &Emission<'d>, target: Node<'d>) {
        let service = emission.service;
        let mapping = service.node.resolved();
        let own = mapping
            .own_entries()
            .find(|entry| entry.name() == Some("environment"));
        let written_here = own.is_some_and(|own| own.value.id() == target.id());
        let full = self.full(target);
        let (Some(mut entries), false, false) = (full, written_here, self.is_shared(service))
        else {
            self.refuse_shared(service);
            return;
        };
        let variables = emission.variables.iter();
        let mut all: Vec<_> = variables
            .map(|(name, value)| (name.clone(), Value::Text(escaped(value))))
            .collect();
        all.append(&mut entries);
        let new = vec![("environment".to_owned(), Value::Map(all))];
        let note = (what(emission), WHY, true);
        match own {
            Some(own) => self.replace(mapping, own, new, note),
            None => self.insert(mapping, new, note),
        }
    }

    fn as_new_environment(
        &mut self,
        group: &[&Emission<'d>],
        all: &[Emission<'d>],
        gone: &HashSet<NodeId>,
    ) {
        let first = group[0];
        let service = first.service;
        let Some(mapping) = written_in(first) else {
            self.refuse_shared(service);
            return;
        };
        // Whoever merges that mapping and has no `environment` of its own gets the new one as well.
        let reached = all.iter().filter(|emission| {
            emission
                .service
                .node
                .get("environment")
                .is_none_or(Node::is_null)
                && reaches(emission.service.node, mapping.id())
        });
        if reached
            .into_iter()
            .any(|other| other.variables != first.variables)
        {
            self.refuse_shared(service);
            return;
        }
        let variables = first.variables.iter();
        let values = variables
            .map(|(name, value)| (name.clone(), Value::Text(escaped(value))))
            .collect();
        let new = vec![("environment".to_owned(), Value::Map(values))];
        let note = (what(first), WHY, true);
        let null = mapping
            .own_entries()
            .find(|entry| entry.name() == Some("environment"));
        match (null, first.env_file) {
            (Some(null), _) => self.replace(mapping, null, new, note),
            (None, Some(entry)) if gone.contains(&entry.key.id()) && is_own(mapping, entry) => {
                self.removals
                    .retain(|removed| removed.key.id() != entry.key.id());
                let mut new = new;
                if self.covers.contains(&entry.key.id()) {
                    new.insert(0, ("env_file".to_owned(), Value::Nothing));
                }
                self.replace(mapping, entry, new, note);
            }
            _ => self.insert(mapping, new, note),
        }
    }

    fn refuse_shared(&mut self, service: Service<'d>) {
        self.refusals.push(Refusal::at(
            service.node,
            Reason::Shared,
            format!(
                "the service {} gets variables from an env file, and shares its `environment` with services that do not get the same",
                service.name
            ),
            "write an `environment:` of its own into the service, without an anchor",
        ));
    }

    /// An `environment` as entries that can be written elsewhere; `None` where they cannot.
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
                None => add(&text, Value::Null),
            }
        }
        for entry in target.entries() {
            let value = match entry.value.scalar_type()? {
                ScalarType::Null => Value::Null,
                ScalarType::Number if entry.value.as_str()?.parse::<i64>().is_err() => return None,
                _ => Value::Text(self.text_of(entry.value)?),
            };
            add(entry.name()?, value);
        }
        Some(found)
    }
}

/// The mapping that holds the service's `env_file`, or its own.
fn written_in<'d>(emission: &Emission<'d>) -> Option<Node<'d>> {
    let own = emission.service.node.resolved();
    let Some(entry) = emission.env_file else {
        return Some(own);
    };
    mappings(own)
        .into_iter()
        .find(|mapping| is_own(*mapping, entry))
}

fn what(emission: &Emission<'_>) -> String {
    let count = emission.variables.len();
    format!(
        "{count} variable{} of the service {} {} into `environment`",
        if count == 1 { "" } else { "s" },
        emission.service.name,
        if count == 1 { "goes" } else { "go" },
    )
}

fn is_own(mapping: Node<'_>, entry: Entry<'_>) -> bool {
    mapping
        .own_entries()
        .any(|own| own.key.id() == entry.key.id())
}

/// A mapping and all that it merges.
pub(super) fn mappings(node: Node<'_>) -> Vec<Node<'_>> {
    let mut found: Vec<Node<'_>> = Vec::new();
    let mut seen = HashSet::new();
    let mut ahead = vec![node.resolved()];
    while let Some(mapping) = ahead.pop() {
        if !seen.insert(mapping.id()) {
            continue;
        }
        found.push(mapping);
        for entry in mapping.own_entries().filter(Entry::is_merge) {
            let target = entry.value.resolved();
            ahead.push(target);
            ahead.extend(target.own_items().map(Node::resolved));
        }
    }
    found
}

/// What a service's mapping merges under the same key, and an entry of it hides.
pub(super) fn others<'d>(service: Service<'d>, entry: Entry<'d>) -> Vec<Entry<'d>> {
    mappings(service.node)
        .into_iter()
        .flat_map(Node::own_entries)
        .filter(|other| other.name() == entry.name() && other.key.id() != entry.key.id())
        .collect()
}

fn reaches(node: Node<'_>, mapping: NodeId) -> bool {
    mappings(node).iter().any(|reached| reached.id() == mapping)
}
