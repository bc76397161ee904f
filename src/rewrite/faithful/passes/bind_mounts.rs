//! Writes bind mounts in the long syntax, without `create_host_path` (B39).

use std::collections::BTreeMap;

use composefile::{
    document::{Node, NodeId, NodeKind},
    interpolate::escaped,
    path::clean,
    reader::Reader,
    services::{MountSpec, MountType, split_at_colons},
};

use super::paths::absolute_mount;
use crate::rewrite::faithful::{
    findings::{Findings, ItemEdit, NewEntry, NewValue, Secrecy},
    mounts::{creates_path, lists},
    runs::Runs,
    shell::effective_text,
};

/// The propagation options of the short syntax.
const PROPAGATION: [&str; 6] = [
    "shared", "rshared", "slave", "rslave", "private", "rprivate",
];

/// An item of `volumes` with its list.
type Item<'d> = (Node<'d>, Node<'d>);

/// Rewrites the bind mounts of the services in `runs`. A mount stays if a service shares it that is not one of them, or if it
/// cannot be written in another form: the plan compares what Compose reads.
pub(super) fn long_binds<'d>(reader: &Reader<'d, '_>, runs: &Runs) -> Findings<'d> {
    let mut found = Findings::default();
    if runs.long_binds.is_empty() {
        return found;
    }
    // By the node that is written: the items that are or repeat it with their lists, and whether every service with them is in
    // `runs`.
    let mut items: BTreeMap<NodeId, (BTreeMap<NodeId, Item<'d>>, bool)> = BTreeMap::new();
    for service in &reader.services {
        let is_wanted = runs.long_binds.contains(service.name);
        for (_, list) in lists(&reader.chain(*service)) {
            for item in list.items() {
                let (uses, all) = items
                    .entry(item.resolved().id())
                    .or_insert_with(|| (BTreeMap::new(), true));
                uses.insert(item.id(), (list.resolved(), item));
                *all &= is_wanted;
            }
        }
    }
    for (id, (uses, _)) in items.into_iter().filter(|(_, (_, all))| *all) {
        let Some(&(_, item)) = uses.values().next() else {
            continue;
        };
        if item.is_mapping() {
            let bind = item
                .get("bind")
                .filter(|_| creates_path(reader, item) == Some(true));
            found.edits.removed.extend(bind.and_then(|bind| {
                let entry = bind.resolved().entry("create_host_path")?;
                Some((entry.key.id(), entry))
            }));
            clean_target(&mut found, item);
        } else if is_whole(reader, id, &uses) {
            for (list, item) in uses.into_values() {
                found.edits.items.extend(long_item(reader, list, item));
            }
        }
    }
    found
}

/// Whether the items are all that an anchor is used for: it is removed with them.
fn is_whole(reader: &Reader<'_, '_>, id: NodeId, uses: &BTreeMap<NodeId, Item<'_>>) -> bool {
    let nodes = reader.document.nodes();
    let mut aliases =
        nodes.filter(|node| node.kind() == NodeKind::Alias && node.resolved().id() == id);
    uses.contains_key(&id) && aliases.all(|alias| uses.contains_key(&alias.id()))
}

/// Writes the path in the container as Compose has it since 2.30 (N36).
fn clean_target<'d>(found: &mut Findings<'d>, item: Node<'d>) {
    let Some(node) = item.get("target").map(Node::resolved) else {
        return;
    };
    let target = node.as_str().unwrap_or_default();
    if target.starts_with('/') && !target.contains('$') && clean(target) != target {
        found.set(node, clean(target), Secrecy::Public);
    }
}

/// The long syntax of an item, if it is a bind mount in the short syntax.
fn long_item<'d>(reader: &Reader<'d, '_>, list: Node<'d>, item: Node<'d>) -> Option<ItemEdit<'d>> {
    let entries = long(reader, item)?;
    let secrecy = match effective_text(reader, item) {
        Some(text) if item.as_str() == Some(&text) => Secrecy::Public,
        _ => Secrecy::Secret,
    };
    Some(ItemEdit {
        list,
        item,
        new: Some(NewValue::Mapping(entries)),
        secrecy,
    })
}

/// The long syntax of a bind mount in short syntax. Variables stay in its paths.
fn long<'d>(reader: &Reader<'d, '_>, item: Node<'d>) -> Option<Vec<NewEntry>> {
    let read = reader.read(item.as_str()?).ok()?;
    let spec = MountSpec::parse(&read).filter(|spec| spec.kind == MountType::Bind)?;
    let text = absolute_mount(reader, item)?;
    let (source, target) = match split_at_colons(&text)[..] {
        // Compose cleans the path in the short syntax. In the long one, it does since 2.30.
        [source, target] | [source, target, _] if target.contains('$') => {
            (source.to_owned(), target.to_owned())
        }
        [source, _] | [source, _, _] => (source.to_owned(), escaped(&clean(spec.target))),
        // A variable contains the separators.
        _ => (escaped(spec.source?), escaped(&clean(spec.target))),
    };
    let of = |key: &str, value: NewValue| (key.to_owned(), value);
    let text = |key: &str, value: &str| of(key, NewValue::Word(value.to_owned()));
    let mut entries = vec![
        text("type", "bind"),
        text("source", &source),
        text("target", &target),
    ];
    let (mut is_read_only, mut bind, mut volume) = (false, Vec::new(), Vec::new());
    for option in spec.options.unwrap_or_default().split(',') {
        match option {
            "ro" | "rw" => is_read_only = option == "ro",
            "z" | "Z" => set(&mut bind, text("selinux", option)),
            "nocopy" => volume.push(of("nocopy", NewValue::True)),
            option if PROPAGATION.contains(&option) => {
                set(&mut bind, text("propagation", option));
            } // Compose ignores all others.
            _ => {}
        }
    }
    entries.extend(is_read_only.then(|| of("read_only", NewValue::True)));
    entries.push(of("bind", NewValue::Mapping(bind)));
    if !volume.is_empty() {
        entries.push(of("volume", NewValue::Mapping(volume)));
    }
    Some(entries)
}

/// Writes an entry in place of one with the same key.
fn set(entries: &mut Vec<NewEntry>, entry: NewEntry) {
    entries.retain(|(key, _)| *key != entry.0);
    entries.push(entry);
}
