//! Where a text names env files, and what the literal rewrite does to those places.
#![deny(clippy::disallowed_methods)]

use std::ops::Range;

use super::literal::{TextEdit, TextEdits};
use composefile::document::{Document, Entry, Node};

/// An `env_file` key that compose takes as one.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnvFileKey<'d> {
    pub(super) key: Node<'d>,
    pub(super) value: Node<'d>,
}

/// The part of a compose file that a mapping stands in, as far as `env_file` is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Root,
    Services,
    Service,
    Include,
    IncludeItem,
    /// Anything below an `x-` key: a fragment that may be merged into a service.
    Extension,
    Other,
}

impl Part {
    /// Whether `env_file` in a mapping of this part is compose's, not just a name.
    pub(super) fn has_env_file(self) -> bool {
        matches!(self, Self::Service | Self::IncludeItem | Self::Extension)
    }

    /// The part that the value of a key stands in.
    pub(super) fn below(self, entry: &Entry<'_>) -> Self {
        let name = entry.name().unwrap_or_default();
        match self {
            _ if entry.is_merge() => self,
            Self::Root if name == "services" => Self::Services,
            Self::Root if name == "include" => Self::Include,
            Self::Services => Self::Service,
            Self::Extension => Self::Extension,
            Self::Root | Self::Service if name.starts_with("x-") => Self::Extension,
            _ => Self::Other,
        }
    }

    /// The part that an item of a list stands in; of a `<<` list, the same.
    pub(super) fn item(self) -> Self {
        match self {
            Self::Include => Self::IncludeItem,
            Self::Service | Self::Services | Self::Extension => self,
            _ => Self::Other,
        }
    }

    pub(super) fn is_env_file(self, entry: &Entry<'_>) -> bool {
        self.has_env_file() && entry.name() == Some("env_file")
    }
}

/// Every `env_file` key of a text that is compose's, in the order of the text.
pub(super) fn env_file_keys<'d>(document: &'d Document<'d>) -> Vec<EnvFileKey<'d>> {
    let mut found = Vec::new();
    let mut ahead: Vec<_> = document
        .root()
        .map(|root| (root, Part::Root))
        .into_iter()
        .collect();
    while let Some((node, part)) = ahead.pop() {
        if part == Part::Other {
            continue;
        }
        for entry in node.own_entries() {
            if part.is_env_file(&entry) {
                let (key, value) = (entry.key, entry.value);
                found.push(EnvFileKey { key, value });
            } else {
                ahead.push((entry.value, part.below(&entry)));
            }
        }
        ahead.extend(node.own_items().map(|item| (item, part.item())));
    }
    found.sort_by_key(|entry| entry.key.id());
    found
}

/// The lines that the literal rewrite deletes from a text.
pub(super) struct DeletedLines(Vec<Range<usize>>);

impl DeletedLines {
    pub(super) fn of(text: &str) -> Self {
        let lines = TextEdits::new(text).filter_map(|edit| match edit {
            TextEdit::Delete(line) => Some(line),
            TextEdit::Replace { .. } => None,
        });
        Self(lines.collect())
    }

    /// Whether a byte of the text is deleted.
    pub(super) fn hold(&self, offset: usize) -> bool {
        self.first_in(&(offset..offset + 1)).is_some()
    }

    /// The first deleted line that has a byte in a range.
    pub(super) fn first_in(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let at = self.0.partition_point(|line| line.end <= range.start);
        self.0
            .get(at)
            .filter(|line| line.start < range.end)
            .cloned()
    }

    /// The first byte of a range that stays and is neither blank nor comment.
    pub(super) fn first_left(&self, text: &str, range: &Range<usize>) -> Option<usize> {
        let mut at = range.start;
        for line in text.get(range.clone())?.split_inclusive('\n') {
            let content = line.trim_start();
            let start = at + line.len() - content.len();
            at += line.len();
            if !content.is_empty() && !content.starts_with('#') && !self.hold(start) {
                return Some(start);
            }
        }
        None
    }
}
