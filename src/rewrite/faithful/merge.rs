//! Merges the edits of all passes: finds those that contradict each other, and writes the others.
//!
//! Invariant: the result does not depend on the order of the passes, except for the order of new entries in front of
//! the same key.

use std::collections::BTreeMap;

use composefile::document::{Document, Entry, Node, NodeId, NodeKind, NodeMap, NodeSet};

use super::{
    Finding, Kind,
    findings::{Edits, Insertion, ItemEdit, Replacement, Scalar},
    splice::Splices,
    uses,
    write::Unwritable,
};

/// What became of the edits: changes of the text, and the contradictions between them.
pub(super) struct Merged {
    pub(super) splices: Splices,
    pub(super) blockers: Vec<Finding>,
}

/// Merges the edits of all passes.
pub(super) fn merge<'d>(document: &'d Document<'d>, edits: Edits<'d>) -> Merged {
    let mut merge = Merge {
        document,
        fixed: uses::elsewhere(document),
        splices: Splices::default(),
        gone: BTreeMap::new(),
        blockers: Vec::new(),
    };
    for Insertion { collection, new } in edits.in_front {
        merge.splices.insert_front(collection, new);
    }
    for item in edits.items {
        merge.item(item);
    }
    let mut replaced: BTreeMap<NodeId, Replacement<'d>> = BTreeMap::new();
    for replacement in edits.replaced {
        let key = replacement.entry.key;
        let known = replaced.get(&key.id());
        if known.is_some_and(|known| known.new != replacement.new) {
            merge.block_shared(key);
        }
        replaced.insert(key.id(), replacement);
    }
    for filled in edits.filled {
        let key = filled.entry.key.id();
        if !edits.removed.contains_key(&key) {
            replaced.entry(key).or_insert(filled);
        }
    }
    let scalars = merge.scalars(edits.inlined, &edits.kept, edits.set);
    merge.entries(edits.removed, replaced, edits.inserted);
    merge.check_aliases();
    merge.write_scalars(scalars);
    merge.check_collections();
    Merged {
        splices: merge.splices,
        blockers: merge.blockers,
    }
}

struct Merge<'d> {
    document: &'d Document<'d>,
    /// Nodes that an alias also uses in a place where they must not change.
    fixed: NodeSet,
    splices: Splices,
    /// The nodes that are removed or replaced with all that they hold. None holds another.
    gone: BTreeMap<NodeId, Node<'d>>,
    blockers: Vec<Finding>,
}

impl<'d> Merge<'d> {
    fn item(&mut self, edit: ItemEdit<'d>) {
        let ItemEdit { list, item, .. } = edit;
        if self.gone.insert(item.id(), item).is_some() {
            return self.block_shared(item);
        }
        if let Some(new) = edit.new {
            self.splices.replace_item(list, item, new, edit.secrecy);
        } else {
            let removed = self.splices.remove_item(list, item);
            self.written(removed, item);
        }
    }

    /// The new text of each scalar. A text that is set replaces one with inlined variables, which it was made from.
    fn scalars(
        &mut self,
        inlined: Vec<Scalar<'d>>,
        kept: &NodeSet,
        set: Vec<Scalar<'d>>,
    ) -> BTreeMap<NodeId, Scalar<'d>> {
        let by_node = inlined.into_iter().map(|one| (one.node.id(), one));
        let mut effective: BTreeMap<NodeId, Scalar<'d>> = by_node.collect();
        let mut wanted: BTreeMap<NodeId, Scalar<'d>> = BTreeMap::new();
        for mut scalar in set {
            let id = scalar.node.resolved().id();
            if !self.may_change(scalar.node) {
                continue;
            }
            let known = wanted.get(&id);
            if kept.contains(&id) || known.is_some_and(|known| known.text != scalar.text) {
                self.block_shared(scalar.node);
                continue;
            }
            let before = [known, effective.get(&id)].into_iter().flatten();
            let secrecy = before.map(|before| before.secrecy).max();
            scalar.secrecy = scalar.secrecy.max(secrecy.unwrap_or_default());
            scalar.node = scalar.node.resolved();
            wanted.insert(id, scalar);
        }
        effective.append(&mut wanted);
        effective
    }

    /// Writes the removals, replacements and insertions of entries.
    fn entries(
        &mut self,
        mut removed: BTreeMap<NodeId, Entry<'d>>,
        replaced: BTreeMap<NodeId, Replacement<'d>>,
        mut inserted: Vec<Insertion<'d>>,
    ) {
        removed.retain(|key, _| !replaced.contains_key(key));
        if !removed.is_empty() || !replaced.is_empty() {
            let holders =
                self.holders(|key| removed.contains_key(&key) || replaced.contains_key(&key));
            for (key, Replacement { entry, new }) in replaced {
                if let Some(&mapping) = holders.get(&key) {
                    self.mark_gone(entry);
                    self.splices.replace_entry(mapping, entry, new);
                }
            }
            self.remove(&holders, removed, &mut inserted);
        }
        self.insert(inserted);
    }

    /// The mapping that each of these keys is written in.
    fn holders(&self, is_wanted: impl Fn(NodeId) -> bool) -> NodeMap<Node<'d>> {
        let mut holders = NodeMap::default();
        for mapping in self.document.nodes() {
            for entry in mapping.own_entries() {
                if is_wanted(entry.key.id()) {
                    holders.insert(entry.key.id(), mapping);
                }
            }
        }
        holders
    }

    fn remove(
        &mut self,
        holders: &NodeMap<Node<'d>>,
        removed: BTreeMap<NodeId, Entry<'d>>,
        inserted: &mut Vec<Insertion<'d>>,
    ) {
        let mut by_holder: BTreeMap<NodeId, (Node<'d>, Vec<_>)> = BTreeMap::new();
        for (key, removal) in removed {
            if let Some(&holder) = holders.get(&key) {
                let (_, entries) = by_holder.entry(holder.id()).or_insert((holder, Vec::new()));
                entries.push(removal);
            }
        }
        for (holder, entries) in by_holder.into_values() {
            let nothing_stays = holder.own_entries().count() == entries.len();
            for (at, entry) in entries.into_iter().enumerate() {
                self.mark_gone(entry);
                if !nothing_stays || at > 0 {
                    let removed = self.splices.remove_entry(holder, entry);
                    self.written(removed, entry.key);
                    continue;
                }
                // The entries that are inserted take the place of the first one.
                let is_here = |one: &mut Insertion<'d>| one.collection.id() == holder.id();
                let here = inserted.extract_if(.., is_here);
                match here.flat_map(|one| one.new).collect::<Vec<_>>() {
                    none if none.is_empty() => self.splices.empty(holder, entry),
                    entries => self.splices.replace_entry(holder, entry, entries),
                }
            }
        }
    }

    /// Writes new entries in front of the first that stays.
    fn insert(&mut self, inserted: Vec<Insertion<'d>>) {
        for Insertion { collection, new } in inserted {
            let mut entries = collection.own_entries();
            match entries.find(|entry| !self.splices.is_removed(entry.key)) {
                Some(place) => self.splices.insert_before(collection, place.key, new),
                None => self.written(Err(Unwritable), collection),
            }
        }
    }

    /// Writes the new texts of the scalars that stay.
    fn write_scalars(&mut self, scalars: BTreeMap<NodeId, Scalar<'d>>) {
        for scalar in scalars.into_values() {
            if !self.is_gone(scalar.node) {
                let set = self.splices.set(scalar.node, &scalar.text, scalar.secrecy);
                self.written(set, scalar.node);
            }
        }
    }

    /// Blocks on changed collections that are used where they must not change.
    fn check_collections(&mut self) {
        let changed: Vec<_> = self.splices.changed.iter().copied().collect();
        for node in changed.into_iter().filter_map(|id| self.document.node(id)) {
            self.may_change(node);
        }
    }

    /// Blocks on aliases whose definition is removed.
    fn check_aliases(&mut self) {
        let nodes = self.document.nodes();
        let aliases = nodes.filter(|node| node.kind() == NodeKind::Alias);
        let lost = aliases.filter(|alias| self.is_gone(alias.resolved()) && !self.is_gone(*alias));
        let message =
            "the anchor of this alias is removed, because the part that contains it is rewritten";
        let hint = "write out the value instead of the alias";
        let blocker = |alias| Finding::at(alias, Kind::Shared, message, hint);
        let blockers: Vec<_> = lost.map(blocker).collect();
        self.blockers.extend(blockers);
    }

    fn mark_gone(&mut self, entry: Entry<'d>) {
        for node in [entry.key, entry.value] {
            self.gone.insert(node.id(), node);
        }
    }

    fn is_gone(&self, node: Node<'d>) -> bool {
        let before = self.gone.range(..=node.id()).next_back();
        before.is_some_and(|(&id, gone)| id == node.id() || gone.holds(node))
    }

    /// Whether a node may change in every place where it is used; blocks if not.
    fn may_change(&mut self, node: Node<'d>) -> bool {
        let is_fixed = self.fixed.contains(&node.resolved().id());
        if is_fixed {
            self.block_shared(node);
        }
        !is_fixed
    }

    fn block_shared(&mut self, node: Node<'d>) {
        let message = "an alias uses this value in places that need different values";
        let hint = "write out the value in each place";
        let blocker = Finding::at(node, Kind::Shared, message, hint);
        self.blockers.push(blocker);
    }

    fn written(&mut self, result: Result<(), Unwritable>, node: Node<'d>) {
        let message = "cannot rewrite this value in its current form";
        let blocker =
            |Unwritable| Finding::at(node, Kind::Unwritable, message, "put it on its own line");
        self.blockers.extend(result.err().map(blocker));
    }
}
