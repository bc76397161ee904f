//! Nodes, and how to read them through aliases and merges.

use std::{collections::HashSet, fmt, iter, ops::Range};

use foldhash::fast::RandomState;

use super::{Document, Layout, NodeId, NodeSet, RawNode, ScalarType, Style, scalar::inside};

/// A node of a document.
///
/// [`Node::span`], [`Node::kind`], [`Node::tag`] and [`Node::anchor`] describe the node as written, and so an alias.
/// Methods that read a value ([`Node::as_str`], [`Node::get`], …) follow an alias to its target. An alias can be
/// inside its own target: bound a walk that follows aliases. [`Node::own_entries`] and [`Node::own_items`] do not
/// follow them.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document<'d>,
    id: u32,
}

/// What a node is, as written.
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
    /// The key. If the entry was merged, the key is in another mapping.
    pub key: Node<'d>,
    /// The value of the key.
    pub value: Node<'d>,
}

impl<'d> Node<'d> {
    pub(super) fn new(document: &'d Document<'d>, id: u32) -> Self {
        Self { document, id }
    }

    fn raw(self) -> &'d RawNode {
        &self.document.nodes[self.id as usize]
    }

    /// The number of the node, in the order of the text.
    pub fn id(self) -> NodeId {
        NodeId(self.id)
    }

    /// The document of the node.
    pub fn document(self) -> &'d Document<'d> {
        self.document
    }

    /// The bytes of the node, with its quotes or brackets and without its anchor and tag.
    ///
    /// The span of a block scalar starts after the line of its `|` or `>` and may end in the indentation of the next
    /// line. The span of a block collection ends with its last node. The span of a missing value is empty.
    pub fn span(self) -> Range<usize> {
        self.raw().start as usize..self.raw().end as usize
    }

    /// The line on which the node starts, counted from 1.
    pub fn line(self) -> usize {
        self.document.line(self.span().start)
    }

    /// The path from the root, for messages: `services.web.volumes[0]`.
    ///
    /// Takes time in proportion to the number of siblings before the node on each level.
    pub fn path(self) -> String {
        let mut path = String::new();
        let mut at = Self::new(self.document, 0);
        while at.id != self.id {
            let Some((step, below)) = at.step_towards(self.id) else {
                return String::new();
            };
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path.push_str(&step);
            at = below;
        }
        path
    }

    /// The child that is or holds a node, and its step of the path.
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
        let mut items = self.own_items().enumerate();
        let (index, item) = items.find(|(_, item)| item.last_id() >= id)?;
        Some((format!("[{index}]"), item))
    }

    /// Whether a node is below this one in the text.
    pub fn holds(self, node: Node<'d>) -> bool {
        self.id < node.id && node.id <= self.last_id()
    }

    /// The number of the last node below this one.
    fn last_id(self) -> u32 {
        self.raw().after - 1
    }

    /// What the node is, as written.
    pub fn kind(self) -> NodeKind {
        self.raw().kind
    }

    /// The tag, such as `!reset` or `!!str`.
    pub fn tag(self) -> Option<&'d str> {
        self.document.text.get(self.tag_span()?)
    }

    /// The bytes of the tag.
    pub fn tag_span(self) -> Option<Range<usize>> {
        self.document.tags.get(&self.id()).cloned()
    }

    /// The name of the anchor.
    pub fn anchor(self) -> Option<&'d str> {
        let written = self.document.text.get(self.anchor_span()?)?;
        written.strip_prefix('&')
    }

    /// The bytes of the anchor, with the `&`.
    pub fn anchor_span(self) -> Option<Range<usize>> {
        self.document.anchors.get(&self.id()).cloned()
    }

    /// The target of an alias; any other node itself.
    #[must_use]
    pub fn resolved(self) -> Self {
        Self::new(self.document, self.raw().target)
    }

    /// Whether the node is a scalar or an alias of one.
    pub fn is_scalar(self) -> bool {
        matches!(self.resolved().kind(), NodeKind::Scalar(_))
    }

    /// Whether the node is a list or an alias of one.
    pub fn is_sequence(self) -> bool {
        matches!(self.resolved().kind(), NodeKind::Sequence(_))
    }

    /// Whether the node is a mapping or an alias of one.
    pub fn is_mapping(self) -> bool {
        matches!(self.resolved().kind(), NodeKind::Mapping(_))
    }

    /// Whether the value is null: `~`, `null`, or missing.
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

    /// The value of a scalar of any type, with escapes and folding resolved, and its style.
    pub fn scalar(self) -> Option<(&'d str, Style)> {
        let node = self.resolved();
        let NodeKind::Scalar(style) = node.kind() else {
            return None;
        };
        let written = || inside(style, &self.document.text[node.span()]);
        let stored = self.document.values.get(&node.id());
        Some((stored.map_or_else(written, String::as_str), style))
    }

    /// The value of a scalar; `None` for null and for collections.
    pub fn as_str(self) -> Option<&'d str> {
        let (value, _) = self.scalar()?;
        (!self.is_null()).then_some(value)
    }

    /// The value of a boolean; `None` for any other value.
    pub fn as_bool(self) -> Option<bool> {
        let (value, _) = self.scalar()?;
        (self.scalar_type() == Some(ScalarType::Bool)).then(|| value.eq_ignore_ascii_case("true"))
    }

    /// The items of a list without those tagged `!reset`; empty for any other node.
    pub fn items(self) -> impl Iterator<Item = Node<'d>> + Clone {
        self.resolved().own_items().filter(|item| !item.is_reset())
    }

    /// The items of a list as written, with those tagged `!reset`; empty for an alias.
    pub fn own_items(self) -> impl Iterator<Item = Node<'d>> + Clone {
        self.children(matches!(self.kind(), NodeKind::Sequence(_)))
    }

    /// The entries of a mapping as Compose reads them: first its own, then those that `<<` merges, each key once,
    /// without those tagged `!reset`. Empty for any other node.
    pub fn entries(self) -> Vec<Entry<'d>> {
        let target = self.resolved();
        let mut found: Vec<_> = if target.own_entries().any(|entry| entry.is_merge()) {
            target.merged_entries()
        } else {
            target.own_entries().collect()
        };
        found.retain(|entry| !entry.value.is_reset());
        found
    }

    /// The entries of a mapping as written, `<<` among them; empty for an alias.
    pub fn own_entries(self) -> impl Iterator<Item = Entry<'d>> + Clone {
        let mut children = self.children(matches!(self.kind(), NodeKind::Mapping(_)));
        iter::from_fn(move || {
            let (key, value) = (children.next()?, children.next()?);
            Some(Entry { key, value })
        })
    }

    /// The direct children, if they are wanted.
    fn children(self, is_wanted: bool) -> impl Iterator<Item = Node<'d>> + Clone {
        let after = if is_wanted { self.raw().after } else { 0 };
        let at = move |id| (id < after).then(|| Self::new(self.document, id));
        iter::successors(at(self.id + 1), move |child| at(child.last_id() + 1))
    }

    /// The value of a key, its own or merged. An own key takes precedence over a merged one, and an earlier merge over
    /// a later one. Returns `None` for a value tagged `!reset`.
    pub fn get(self, key: &str) -> Option<Node<'d>> {
        Some(self.entry(key)?.value)
    }

    /// The entry of a key, found as in [`Node::get`].
    pub fn entry(self, key: &str) -> Option<Entry<'d>> {
        let mut all = self.mappings().flat_map(Self::own_entries);
        let found = all.find(|entry| entry.is_named(key))?;
        (!found.value.is_reset()).then_some(found)
    }

    /// The mapping and those that it merges, each once, in order of precedence.
    pub fn mappings(self) -> impl Iterator<Item = Node<'d>> {
        let first = self.resolved();
        let mut ahead = Vec::new();
        let mut seen = NodeSet::default();
        let mut last: Option<Node<'d>> = None;
        iter::from_fn(move || {
            last = Some(match last {
                None => first,
                // Lazy: most keys are in the first mapping, and most mappings merge none.
                Some(last) => {
                    last.push_merges(&mut ahead);
                    loop {
                        let next = ahead.pop()?;
                        if next.id != first.id && seen.insert(next.id()) {
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

    /// Pushes the mappings that `<<` merges, the one with the highest precedence last. A second `<<` is a duplicate
    /// key, which Compose rejects.
    fn push_merges(self, ahead: &mut Vec<Self>) {
        let Some(merge) = self.own_entries().find(Entry::is_merge) else {
            return;
        };
        let target = merge.value.resolved();
        let below = ahead.len();
        if target.is_mapping() {
            ahead.push(target);
        }
        ahead.extend(target.items().map(Self::resolved));
        ahead[below..].reverse();
    }

    fn merged_entries(self) -> Vec<Entry<'d>> {
        let mut names = HashSet::with_hasher(RandomState::default());
        let entries = self.mappings().flat_map(Self::own_entries);
        entries
            .filter(|entry| !entry.is_merge())
            .filter(|entry| entry.name().is_none_or(|name| names.insert(name)))
            .collect()
    }
}

impl<'d> Entry<'d> {
    /// The text of the key; `None` if the key is a collection.
    pub fn name(&self) -> Option<&'d str> {
        Some(self.key.scalar()?.0)
    }

    fn is_named(&self, name: &str) -> bool {
        self.name() == Some(name)
    }

    /// Whether the entry merges mappings (`<<`).
    pub fn is_merge(&self) -> bool {
        self.is_named("<<") && self.key.scalar_type() == Some(ScalarType::Merge)
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.kind(), self.span())
    }
}
