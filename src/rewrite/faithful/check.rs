//! The proof of a rewrite: the new text parsed, and compared with the old one node by node.
#![deny(clippy::disallowed_methods)]

use super::splice::{Expected, Value};
use composefile::document::{Document, Entries, Node, NodeId, NodeKind as Kind, NodeMap};

/// The place in the old text where the two part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// An alias that stands for something else, or for what has gone.
    Alias(usize),
    Other(usize),
}

pub(super) fn compare(old: &Document, new: &Document, expected: &Expected) -> Result<(), Mismatch> {
    let (Some(old), Some(new)) = (old.root(), new.root()) else {
        return Err(Mismatch::Other(0));
    };
    let mut check = Check {
        expected,
        ahead: vec![(old, new)],
        twins: NodeMap::default(),
        aliases: Vec::new(),
    };
    while let Some((old, new)) = check.ahead.pop() {
        let same = check.pair(old, new);
        same.ok_or(Mismatch::Other(old.span().start))?;
    }
    let twins = &check.twins;
    let lost = check
        .aliases
        .iter()
        .find(|(old, new)| twins.get(&old.resolved().id()) != Some(&new.resolved().id()));
    lost.map_or(Ok(()), |(old, _)| Err(Mismatch::Alias(old.span().start)))
}

struct Check<'a> {
    expected: &'a Expected,
    ahead: Vec<(Node<'a>, Node<'a>)>,
    /// The new node of each anchored old one.
    twins: NodeMap<NodeId>,
    /// Aliases: what one points at stands before it, but may be compared later.
    aliases: Vec<(Node<'a>, Node<'a>)>,
}

impl<'a> Check<'a> {
    fn pair(&mut self, old: Node<'a>, new: Node<'a>) -> Option<()> {
        if old.anchor().is_some() {
            self.twins.insert(old.id(), new.id());
        }
        if let Some(value) = self.expected.scalars.get(&old.id()) {
            return (new.as_str() == Some(value) && old.anchor() == new.anchor()).then_some(());
        }
        if old.tag() != new.tag() || old.anchor() != new.anchor() {
            return None;
        }
        if self.expected.emptied.contains(&old.id()) {
            let is_empty = new.own_entries().next().is_none();
            return (matches!(new.kind(), Kind::Mapping(_)) && is_empty).then_some(());
        }
        match (old.kind(), new.kind()) {
            (Kind::Alias, Kind::Alias) => {
                self.aliases.push((old, new));
                Some(())
            }
            (Kind::Scalar(a), Kind::Scalar(b)) => {
                (a == b && old.scalar()?.0 == new.scalar()?.0).then_some(())
            }
            (Kind::Sequence(a), Kind::Sequence(b)) if a == b => self.items(old, new),
            (Kind::Mapping(a), Kind::Mapping(b)) if a == b => self.entries(old, new),
            _ => None,
        }
    }

    fn items(&mut self, old: Node<'a>, new: Node<'a>) -> Option<()> {
        let mut written = new.own_items();
        for (_, value) in self.expected.front.get(&old.id()).into_iter().flatten() {
            let Value::Item(text) = value else {
                return None;
            };
            (written.next()?.as_str() == Some(text)).then_some(())?;
        }
        for item in old.own_items() {
            if !self.expected.removed.contains(&item.id()) {
                self.ahead.push((item, written.next()?));
            }
        }
        written.next().is_none().then_some(())
    }

    fn entries(&mut self, old: Node<'a>, new: Node<'a>) -> Option<()> {
        let mut written = new.own_entries();
        take(&mut written, self.expected.front.get(&old.id()))?;
        for entry in old.own_entries() {
            let key = entry.key.id();
            take(&mut written, self.expected.before.get(&key))?;
            if let Some(entries) = self.expected.replaced.get(&key) {
                take(&mut written, Some(entries))?;
            } else if !self.expected.removed.contains(&key) {
                let twin = written.next()?;
                self.ahead.push((entry.key, twin.key));
                self.ahead.push((entry.value, twin.value));
            }
        }
        written.next().is_none().then_some(())
    }
}

/// Passes entries that are new.
fn take(written: &mut Entries<'_>, new: Option<&Vec<(String, Value)>>) -> Option<()> {
    for (name, value) in new.into_iter().flatten() {
        let entry = written.next()?;
        (entry.name() == Some(name) && is(entry.value, value)).then_some(())?;
    }
    Some(())
}

fn is(node: Node<'_>, value: &Value) -> bool {
    match value {
        Value::Text(text) => node.as_str() == Some(text),
        Value::Null => node.is_null(),
        Value::Map(entries) => {
            let written: Vec<_> = node.own_entries().collect();
            written.len() == entries.len()
                && written.iter().zip(entries).all(|(entry, (name, value))| {
                    entry.name() == Some(name) && is(entry.value, value)
                })
        }
        Value::Nothing => node.is_sequence() && node.own_items().next().is_none(),
        Value::Item(_) => false,
    }
}
