//! The proof of a rewrite: the new text is parsed and compared with the original node by node.

use composefile::{
    document::{Document, Entry, Node, NodeId, NodeKind, NodeMap, Position, ScalarType},
    reader::Reader,
    services::{Service, services},
};

use super::{
    Finding, Kind,
    findings::{NewEntry, NewValue},
    listed::{Listed, listed},
    mounts,
    runs::Runs,
    splice::{Expected, Written},
};

/// Proves that the new text differs from the original by the expected changes only, and that Portainer can read it.
pub(super) fn prove(
    reader: &Reader<'_, '_>,
    written: &Written,
    runs: &Runs,
) -> Result<(), Finding> {
    let failed = |at: Option<usize>| {
        let text = reader.document.text();
        let position = at.map(|at| Position::of(text, at));
        Finding::internal("the rewritten file failed verification", position)
    };
    let new = Document::parse(&written.text).map_err(|_| failed(None))?;
    compare(reader.document, &new, &written.expected).map_err(|at| failed(Some(at)))?;
    let again = Reader::new(&new, reader.env_text, reader.env, reader.context);
    if let Some(message) = unreadable(reader, &new) {
        return Err(Finding::internal(&message, None));
    }
    if runs.is_empty() {
        return Ok(());
    }
    mounts::differing(reader, &again, runs).map_or(Ok(()), |Service { name, node, .. }| {
        let message = format!(
            "service {name} needs its own `volumes`: it shares those of a service whose anonymous volumes get names"
        );
        Err(Finding::at(node, Kind::Shared, message, mounts::OWN_VOLUMES))
    })
}

/// The first part of the new text that Portainer cannot read.
fn unreadable(reader: &Reader<'_, '_>, new: &Document<'_>) -> Option<String> {
    services(new).iter().find_map(|service| {
        let files = listed(reader, *service);
        let readable = |one: &Listed<'_>| one.named == "stack.env" && one.format.is_none();
        let builds = service.build().is_some_and(|one| !reader.is_remote(one));
        let what = if !files.iter().all(readable) {
            "an env file"
        } else if builds {
            "a build"
        } else if service.node.get("label_file").is_some() {
            "a label file"
        } else {
            return None;
        };
        Some(format!("service {} still has {what}", service.name))
    })
}

/// The error is the byte of the original where the texts differ unexpectedly.
pub(super) fn compare(
    document: &Document<'_>,
    new: &Document<'_>,
    expected: &Expected,
) -> Result<(), usize> {
    let (Some(old), Some(new)) = (document.root(), new.root()) else {
        return Err(0);
    };
    let mut check = Check {
        expected,
        ahead: vec![(old, new)],
        twins: NodeMap::default(),
        aliases: Vec::new(),
    };
    while let Some((old, new)) = check.ahead.pop() {
        check.pair(old, new).ok_or(old.span().start)?;
    }
    let twins = &check.twins;
    let is_lost = |(old, new): &&(Node<'_>, Node<'_>)| {
        twins.get(&old.resolved().id()) != Some(&new.resolved().id())
    };
    match check.aliases.iter().find(is_lost) {
        Some((old, _)) => Err(old.span().start),
        None => Ok(()),
    }
}

struct Check<'a> {
    expected: &'a Expected,
    /// Pairs still to be compared.
    ahead: Vec<(Node<'a>, Node<'a>)>,
    /// The new node for each anchored node of the original.
    twins: NodeMap<NodeId>,
    /// Pairs of aliases. Their targets may be compared later.
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
            return (matches!(new.kind(), NodeKind::Mapping(_)) && is_empty).then_some(());
        }
        match (old.kind(), new.kind()) {
            (NodeKind::Alias, NodeKind::Alias) => {
                self.aliases.push((old, new));
                Some(())
            }
            (NodeKind::Scalar(a), NodeKind::Scalar(b)) => {
                (a == b && old.scalar()?.0 == new.scalar()?.0).then_some(())
            }
            (NodeKind::Sequence(a), NodeKind::Sequence(b)) if a == b => self.items(old, new),
            (NodeKind::Mapping(a), NodeKind::Mapping(b)) if a == b => self.entries(old, new),
            _ => None,
        }
    }

    fn items(&mut self, old: Node<'a>, new: Node<'a>) -> Option<()> {
        let mut written = new.own_items();
        for (_, value) in self.expected.front.get(&old.id()).into_iter().flatten() {
            has_value(written.next()?, value).then_some(())?;
        }
        for item in old.own_items() {
            if let Some(value) = self.expected.items.get(&item.id()) {
                has_value(written.next()?, value).then_some(())?;
            } else if !self.expected.removed.contains(&item.id()) {
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

/// Skips the expected new entries; `None` if one is missing.
fn take<'n>(
    written: &mut impl Iterator<Item = Entry<'n>>,
    new: Option<&Vec<NewEntry>>,
) -> Option<()> {
    for (name, value) in new.into_iter().flatten() {
        let entry = written.next()?;
        (entry.name() == Some(name) && has_value(entry.value, value)).then_some(())?;
    }
    Some(())
}

fn has_value(node: Node<'_>, value: &NewValue) -> bool {
    match value {
        NewValue::Text(text) | NewValue::Word(text) => {
            node.as_str() == Some(text) && node.scalar_type() == Some(ScalarType::Text)
        }
        NewValue::True => node.as_bool() == Some(true),
        NewValue::Mapping(entries) => {
            let mut written = node.own_entries();
            node.is_mapping()
                && take(&mut written, Some(entries)).is_some()
                && written.next().is_none()
        }
        NewValue::EmptyList => node.is_sequence() && node.own_items().next().is_none(),
        NewValue::List(items) => {
            let expected = items.iter().map(|item| Some(item.as_str()));
            node.is_sequence() && node.own_items().map(Node::as_str).eq(expected)
        }
        NewValue::External(volume) => {
            node.own_entries().count() == 2
                && node.get("external").and_then(Node::as_bool) == Some(true)
                && node.get("name").and_then(Node::as_str) == Some(volume)
        }
        NewValue::Item(text) => node.as_str() == Some(text),
    }
}
