//! Reading a node: through aliases and merges, as compose sees it.

use std::{collections::HashSet, fmt, iter, ops::Range};

use foldhash::fast::RandomState;

use super::{
    Document, DuplicateKey, Layout, NodeId, NodeSet, Properties, RawNode, ScalarType, Shape,
    Stored, Style,
};

/// A place in a document.
///
/// [`Node::span`], [`Node::kind`], [`Node::tag`] and [`Node::anchor`] speak of what is written at the
/// place. Everything that reads a value ([`Node::as_str`], [`Node::get`], …) sees the target where
/// an alias is written. An alias may lie inside its own target, so whoever walks down through
/// aliases must bound the walk; [`Node::own_entries`] and [`Node::own_items`] never follow one.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document<'d>,
    id: u32,
}

/// What is written at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A scalar.
    Scalar(Style),
    /// A list.
    Sequence(Layout),
    /// A mapping.
    Mapping(Layout),
    /// `*name`
    Alias,
}

/// A key with its value.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'d> {
    /// The key, where it is written: in another mapping if it was merged.
    pub key: Node<'d>,
    /// Its value.
    pub value: Node<'d>,
}

impl<'d> Node<'d> {
    pub(super) fn new(document: &'d Document<'d>, id: u32) -> Self {
        Self { document, id }
    }

    fn raw(self) -> &'d RawNode {
        &self.document.nodes[self.id as usize]
    }

    fn properties(self) -> &'d Properties {
        &self.document.properties[self.raw().properties as usize]
    }

    /// Its place in the order of the text.
    pub fn id(self) -> NodeId {
        NodeId(self.id)
    }

    /// The document it is part of.
    pub fn document(self) -> &'d Document<'d> {
        self.document
    }

    /// The bytes of what is written: quotes and brackets included, anchor and tag not.
    ///
    /// A block scalar's span starts behind its `|` or `>` line and may end in the next line's
    /// indentation. A block collection's ends with its last node. A scalar that is not there has an
    /// empty span.
    pub fn span(self) -> Range<usize> {
        self.raw().start as usize..self.raw().end as usize
    }

    /// The line it starts on, counted from 1.
    pub fn line(self) -> usize {
        self.document.line(self.span().start)
    }

    /// The way to it from the root, as people write it: `services.web.volumes[0]`.
    ///
    /// Costs time in proportion to what stands before it on each level, so it is for messages.
    pub fn path(self) -> String {
        let root = Self::new(self.document, 0);
        self.path_below(root).unwrap_or_default()
    }

    /// The same from another node on, which is cheaper; `None` where it is not below that one.
    pub fn path_below(self, above: Node<'d>) -> Option<String> {
        let mut path = String::new();
        let mut at = above;
        if self.id < at.id || self.id > at.last_id() {
            return None;
        }
        while at.id != self.id {
            let (step, below) = at.step_towards(self.id)?;
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path.push_str(&step);
            at = below;
        }
        Some(path)
    }

    /// The child that is or holds a node, and how to name it; the value where the node is its key.
    fn step_towards(self, id: u32) -> Option<(String, Self)> {
        if let Some(entry) = self.own_entries().find(|entry| entry.value.last_id() >= id) {
            let name = entry.name().unwrap_or("?").to_owned();
            let in_key = id < entry.value.id;
            let below = if in_key {
                Self::new(self.document, id)
            } else {
                entry.value
            };
            return Some((name, below));
        }
        let (index, item) = self
            .own_items()
            .enumerate()
            .find(|(_, item)| item.last_id() >= id)?;
        Some((format!("[{index}]"), item))
    }

    /// Whether a node is written below this one.
    pub fn holds(self, node: Node<'d>) -> bool {
        self.id < node.id && node.id <= self.last_id()
    }

    /// The node that is written before this one, or holds it.
    pub fn before(self) -> Option<Self> {
        Some(Self::new(self.document, self.id.checked_sub(1)?))
    }

    /// The last node that is part of this one.
    fn last_id(self) -> u32 {
        match self.raw().shape {
            Shape::Sequence { after, .. } | Shape::Mapping { after, .. } => after - 1,
            _ => self.id,
        }
    }

    /// What is written here.
    pub fn kind(self) -> NodeKind {
        match self.raw().shape {
            Shape::Scalar { style, .. } => NodeKind::Scalar(style),
            Shape::Sequence { layout, .. } => NodeKind::Sequence(layout),
            Shape::Mapping { layout, .. } => NodeKind::Mapping(layout),
            Shape::Alias { .. } => NodeKind::Alias,
        }
    }

    /// The tag as written (`!reset`, `!!str`).
    pub fn tag(self) -> Option<&'d str> {
        self.document.text.get(self.tag_span()?)
    }

    /// The bytes of the tag.
    pub fn tag_span(self) -> Option<Range<usize>> {
        self.properties().tag.clone().map(widen)
    }

    /// The name of the anchor, without the `&`.
    pub fn anchor(self) -> Option<&'d str> {
        self.document
            .text
            .get(self.anchor_span()?)?
            .strip_prefix('&')
    }

    /// The bytes of the anchor, the `&` included.
    pub fn anchor_span(self) -> Option<Range<usize>> {
        self.properties().anchor.clone().map(widen)
    }

    /// What an alias points at; any other node itself.
    #[must_use]
    pub fn resolved(self) -> Self {
        match self.raw().shape {
            Shape::Alias { target } => Self::new(self.document, target),
            _ => self,
        }
    }

    /// Whether it is, or points at, a scalar.
    pub fn is_scalar(self) -> bool {
        matches!(self.resolved().kind(), NodeKind::Scalar(_))
    }

    /// Whether it is, or points at, a list.
    pub fn is_sequence(self) -> bool {
        matches!(self.resolved().kind(), NodeKind::Sequence(_))
    }

    /// Whether it is, or points at, a mapping.
    pub fn is_mapping(self) -> bool {
        matches!(self.resolved().kind(), NodeKind::Mapping(_))
    }

    /// Whether it is nothing: `~`, `null`, or not written at all.
    pub fn is_null(self) -> bool {
        let Some((value, style)) = self.scalar() else {
            return false;
        };
        match self.resolved().tag() {
            Some(tag) => ScalarType::of_tagged(tag, value, style) == ScalarType::Null,
            None => ScalarType::is_null(value, style),
        }
    }

    /// The type of a scalar; `None` for a collection.
    pub fn scalar_type(self) -> Option<ScalarType> {
        let (value, style) = self.scalar()?;
        Some(match self.resolved().tag() {
            Some(tag) => ScalarType::of_tagged(tag, value, style),
            None => ScalarType::of(value, style),
        })
    }

    /// A scalar's value, escapes and folding undone, and how it is written; numbers and null as well.
    pub fn scalar(self) -> Option<(&'d str, Style)> {
        let document = self.document;
        match self.resolved().raw().shape {
            Shape::Scalar {
                style,
                stored,
                offset,
                length,
            } => {
                let from: &'d str = match stored {
                    Stored::InText => document.text,
                    Stored::Decoded => &document.decoded,
                };
                let range = offset as usize..(offset + length) as usize;
                Some((from.get(range).unwrap_or_default(), style))
            }
            _ => None,
        }
    }

    /// A scalar's value; `None` for null and for collections.
    pub fn as_str(self) -> Option<&'d str> {
        let (value, _) = self.scalar()?;
        (!self.is_null()).then_some(value)
    }

    /// `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        let (value, _) = self.scalar()?;
        (self.scalar_type() == Some(ScalarType::Bool)).then(|| value.eq_ignore_ascii_case("true"))
    }

    /// The items of a list; none for anything else. Items tagged `!reset` are left out.
    pub fn items(self) -> Items<'d> {
        let target = self.resolved();
        match target.raw().shape {
            Shape::Sequence { after, .. } => Items {
                children: Children {
                    document: self.document,
                    next: target.id + 1,
                    after,
                },
                as_written: false,
            },
            _ => Items {
                children: Children::none(self.document),
                as_written: false,
            },
        }
    }

    /// The items of the list that is written here, `!reset` ones included; none behind an alias.
    pub fn own_items(self) -> Items<'d> {
        match self.raw().shape {
            Shape::Sequence { .. } => Items {
                as_written: true,
                ..self.items()
            },
            _ => Items {
                children: Children::none(self.document),
                as_written: true,
            },
        }
    }

    /// The entries of a mapping as compose sees them: what `<<` brings in comes after the mapping's
    /// own, each key once, entries tagged `!reset` left out; none for anything else.
    pub fn entries(self) -> Vec<Entry<'d>> {
        let target = self.resolved();
        let mut found: Vec<_> = if target.has_merges() {
            target.merged_entries()
        } else {
            target.pairs().collect()
        };
        found.retain(|entry| !entry.value.is_reset());
        found
    }

    /// The entries of the mapping that is written here, `<<` among them, nothing merged or left out;
    /// none behind an alias.
    pub fn own_entries(self) -> Entries<'d> {
        match self.kind() {
            NodeKind::Mapping(_) => self.pairs(),
            _ => Entries(Children::none(self.document)),
        }
    }

    /// The value of a key, also one that `<<` brings in: the mapping's own goes first, then the
    /// merged ones in their order. A value tagged `!reset` is no value.
    pub fn get(self, key: &str) -> Option<Node<'d>> {
        Some(self.entry(key)?.value)
    }

    /// The same with the key.
    pub fn entry(self, key: &str) -> Option<Entry<'d>> {
        let found = self
            .mappings()
            .find_map(|mapping| mapping.pairs().find(|entry| entry.is_named(key)))?;
        (!found.value.is_reset()).then_some(found)
    }

    /// The mapping and those that `<<` brings in, each once, in the order in which they count.
    pub fn mappings(self) -> impl Iterator<Item = Node<'d>> {
        let first = self.resolved();
        let mut ahead = Vec::new();
        let mut seen = NodeSet::default();
        let mut last: Option<Node<'d>> = None;
        iter::from_fn(move || {
            last = Some(match last {
                None => first,
                // Asked for only now: most keys are in the first mapping, and most mappings merge none.
                Some(last) => {
                    last.push_merges(&mut ahead);
                    loop {
                        let next = ahead.pop()?;
                        // What is alone and merges nothing is the last, and need not be remembered.
                        let is_last = ahead.is_empty() && seen.is_empty() && !next.has_merges();
                        if next.id != first.id && (is_last || seen.insert(next.id())) {
                            break next;
                        }
                    }
                }
            });
            last
        })
    }

    fn is_reset(self) -> bool {
        self.tag() == Some("!reset")
    }

    /// The pairs below a mapping, `<<` among them.
    fn pairs(self) -> Entries<'d> {
        match self.raw().shape {
            Shape::Mapping { after, .. } => Entries(Children {
                document: self.document,
                next: self.id + 1,
                after,
            }),
            _ => Entries(Children::none(self.document)),
        }
    }

    /// Puts the mappings that `<<` names on a stack, on its top the one that counts most. A second `<<` is a
    /// key that stands twice, which compose refuses.
    fn push_merges(self, ahead: &mut Vec<Self>) {
        let Shape::Mapping {
            merge: key @ 1.., ..
        } = self.raw().shape
        else {
            return;
        };
        let target = Self::new(self.document, key + 1).resolved();
        let below = ahead.len();
        if target.is_mapping() {
            ahead.push(target);
        }
        ahead.extend(target.items().map(Self::resolved));
        ahead[below..].reverse();
    }

    fn has_merges(self) -> bool {
        matches!(self.raw().shape, Shape::Mapping { merge: 1.., .. })
    }

    fn merged_entries(self) -> Vec<Entry<'d>> {
        let mut names = HashSet::with_hasher(RandomState::default());
        let entries = self.mappings().flat_map(Self::pairs);
        entries
            .filter(|entry| !entry.is_merge())
            .filter(|entry| entry.name().is_none_or(|name| names.insert(name)))
            .collect()
    }
}

impl<'d> Entry<'d> {
    /// The key as text; `None` for a key that is a collection.
    pub fn name(&self) -> Option<&'d str> {
        Some(self.key.scalar()?.0)
    }

    fn is_named(&self, name: &str) -> bool {
        match self.key.resolved().raw().shape {
            // Most keys have another length, and their text need not be looked at.
            Shape::Scalar { length, .. } => {
                length as usize == name.len() && self.name() == Some(name)
            }
            _ => false,
        }
    }

    /// Whether it is `<<`.
    pub fn is_merge(&self) -> bool {
        self.is_named("<<") && self.key.scalar_type() == Some(ScalarType::Merge)
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.kind(), self.span())
    }
}

/// The nodes right below a collection.
#[derive(Clone)]
struct Children<'d> {
    document: &'d Document<'d>,
    next: u32,
    after: u32,
}

impl<'d> Children<'d> {
    fn none(document: &'d Document<'d>) -> Self {
        Self {
            document,
            next: 0,
            after: 0,
        }
    }

    fn next(&mut self) -> Option<Node<'d>> {
        if self.next >= self.after {
            return None;
        }
        let child = Node::new(self.document, self.next);
        self.next = match child.raw().shape {
            Shape::Sequence { after, .. } | Shape::Mapping { after, .. } => after,
            _ => self.next + 1,
        };
        Some(child)
    }
}

/// The items of a list.
#[derive(Clone)]
pub struct Items<'d> {
    children: Children<'d>,
    as_written: bool,
}

impl<'d> Iterator for Items<'d> {
    type Item = Node<'d>;

    fn next(&mut self) -> Option<Node<'d>> {
        loop {
            let item = self.children.next()?;
            if self.as_written || !item.is_reset() {
                return Some(item);
            }
        }
    }
}

/// The pairs of a mapping.
#[derive(Clone)]
pub struct Entries<'d>(Children<'d>);

impl<'d> Iterator for Entries<'d> {
    type Item = Entry<'d>;

    fn next(&mut self) -> Option<Entry<'d>> {
        let key = self.0.next()?;
        let value = self.0.next()?;
        Some(Entry { key, value })
    }
}

/// Adds the keys that stand twice in the mapping written at `node`; `keys` is room to work in.
pub(super) fn duplicates_in<'d>(
    node: Node<'d>,
    keys: &mut Vec<(&'d str, Node<'d>)>,
    found: &mut Vec<DuplicateKey<'d>>,
) {
    keys.clear();
    keys.extend(
        node.own_entries()
            .filter_map(|entry| Some((entry.name()?, entry.key))),
    );
    keys.sort_unstable_by_key(|&(name, key)| (name, key.id));
    for same in keys.chunk_by(|(one, _), (other, _)| one == other) {
        let (_, first) = same[0];
        found.extend(
            same[1..]
                .iter()
                .map(|&(_, again)| DuplicateKey { first, again }),
        );
    }
}

fn widen(range: Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
