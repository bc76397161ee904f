//! Compares the original and the result node by node.
//!
//! Collections are first compared pair by pair, which suffices for a text without damage. Only if that fails are their
//! members aligned by their position in the original.

use std::{iter, ops::Range};

use super::{Damage, DamageKind, MOST, origin::Origin};
use crate::rewrite::env_files::{
    DeletedLines, EnvFileKey, Where, below, env_file_keys, is_env_file, item,
};
use composefile::{
    document::{Document, Entry, Node, NodeKind},
    schema::ROOT,
};

/// Every place where `result` differs from the expected rewrite of `original`; at most [`MOST`].
pub(super) fn differences(
    original: &Document<'_>,
    result: &Document<'_>,
    stack_dir: &str,
) -> Vec<Damage> {
    let mut walk = Walk {
        original,
        origin: Origin::new(original.text(), stack_dir),
        stack_dir,
        report: Report::new(original),
        ahead: Vec::new(),
    };
    match (original.root(), result.root()) {
        (Some(before), Some(after)) => walk.run(before, after),
        (Some(before), None) => walk.report.gone(before),
        // Deletions and replacements add no node to an empty text.
        (None, _) => {}
    }
    walk.report.damages
}

struct Walk<'d> {
    original: &'d Document<'d>,
    origin: Origin,
    stack_dir: &'d str,
    report: Report<'d>,
    /// Pairs still to be compared.
    ahead: Vec<(Node<'d>, Node<'d>, Where)>,
}

impl<'d> Walk<'d> {
    fn run(&mut self, before: Node<'d>, after: Node<'d>) {
        self.ahead.push((before, after, Some(&ROOT)));
        while let Some((before, after, at)) = self.ahead.pop() {
            if self.report.is_full() {
                return;
            }
            self.compare(before, after, at);
        }
    }

    fn compare(&mut self, before: Node<'d>, after: Node<'d>, at: Where) {
        let same = match (before.kind(), after.kind()) {
            _ if !self.same_tag(before, after) => false,
            (NodeKind::Scalar(_), NodeKind::Scalar(_)) => self.same_scalar(before, after),
            (NodeKind::Alias, NodeKind::Alias) => self.same_target(before, after),
            (NodeKind::Mapping(_), NodeKind::Mapping(_)) => {
                self.mappings(before, after, at);
                true
            }
            (NodeKind::Sequence(_), NodeKind::Sequence(_)) => {
                self.sequences(before, after, at);
                true
            }
            (NodeKind::Mapping(_), NodeKind::Scalar(_)) if after.is_null() => {
                return self.report.emptied(before, at);
            }
            _ => false,
        };
        if !same {
            let from = self.origin.of_range(&after.span());
            self.report.differs(before, from);
        }
    }

    fn same_tag(&self, before: Node<'_>, after: Node<'_>) -> bool {
        match (before.tag(), after.tag()) {
            (Some(before), Some(after)) => is_replaced(before, after, self.stack_dir),
            (None, None) => true,
            _ => false,
        }
    }

    fn same_scalar(&self, before: Node<'_>, after: Node<'_>) -> bool {
        let (Some((old, _)), Some((new, _))) = (before.scalar(), after.scalar()) else {
            return false;
        };
        is_replaced(old, new, self.stack_dir) && before.scalar_type() == after.scalar_type()
    }

    /// Aliases are the same if their targets come from the same position. The targets are compared on their own.
    fn same_target(&self, before: Node<'_>, after: Node<'_>) -> bool {
        let target = before.resolved().span();
        let from = self.origin.of(after.resolved().span().start);
        target.start <= from && from <= target.end
    }

    fn mappings(&mut self, before: Node<'d>, after: Node<'d>, at: Where) {
        if self.entries_agree(before, after, at) {
            let kept = kept_entries(before, at);
            self.ahead.extend(
                iter::zip(kept, after.own_entries())
                    .map(|(old, new)| (old.value, new.value, below(at, &old))),
            );
        } else {
            self.align_entries(before, after, at);
        }
    }

    /// Whether the keys are the expected ones, in order.
    fn entries_agree(&self, before: Node<'_>, after: Node<'_>, at: Where) -> bool {
        let mut kept = kept_entries(before, at);
        let mut found = after.own_entries();
        loop {
            match (kept.next(), found.next()) {
                (Some(old), Some(new)) if self.same_key(old.key, new.key) => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    }

    /// Keys that are collections count as different, so that they are aligned and then compared.
    fn same_key(&self, before: Node<'_>, after: Node<'_>) -> bool {
        match (before.kind(), after.kind()) {
            (NodeKind::Scalar(_), NodeKind::Scalar(_)) => {
                self.same_tag(before, after) && self.same_scalar(before, after)
            }
            (NodeKind::Alias, NodeKind::Alias) => self.same_target(before, after),
            _ => false,
        }
    }

    fn align_entries(&mut self, before: Node<'d>, after: Node<'d>, at: Where) {
        let mut found = after.own_entries().peekable();
        for old in before.own_entries() {
            let place = old.key.span();
            while let Some(new) = found.next_if(|new| self.start(new.key) < place.start) {
                self.extra(before, new.key);
            }
            let here = found.next_if(|new| self.start(new.key) <= place.end);
            match (is_env_file(at, &old), here) {
                (true, Some(_)) => self.report.stays(old.key),
                (true, None) => {}
                (false, None) => self.report.gone(old.key),
                (false, Some(new)) => {
                    self.ahead.push((old.key, new.key, None));
                    self.ahead.push((old.value, new.value, below(at, &old)));
                }
            }
        }
        for new in found {
            self.extra(before, new.key);
        }
    }

    fn sequences(&mut self, before: Node<'d>, after: Node<'d>, at: Where) {
        let same_count = before.own_items().count() == after.own_items().count();
        let mut found = after.own_items().peekable();
        for old in before.own_items() {
            let place = old.span();
            while let Some(new) = found.next_if(|&new| !same_count && self.start(new) < place.start)
            {
                self.extra(before, new);
            }
            match found.next_if(|&new| same_count || self.start(new) <= place.end) {
                Some(new) => self.ahead.push((old, new, item(at))),
                None => self.report.gone(old),
            }
        }
        for new in found {
            self.extra(before, new);
        }
    }

    /// The position in the original that a node of the result comes from.
    fn start(&self, after: Node<'_>) -> usize {
        self.origin.of(after.span().start)
    }

    /// Reports a member that the collection has only in the result.
    fn extra(&mut self, before: Node<'d>, after: Node<'d>) {
        let from = self.origin.of_range(&after.span());
        self.report
            .extra(before, self.original.line(from.start), from);
    }
}

/// The entries that the literal rewrite keeps.
fn kept_entries(node: Node<'_>, at: Where) -> impl Iterator<Item = Entry<'_>> {
    node.own_entries()
        .filter(move |entry| !is_env_file(at, entry))
}

/// Whether `after` is `before` with every `./` replaced. Does not build the replaced text.
fn is_replaced(before: &str, after: &str, stack_dir: &str) -> bool {
    let mut after = Some(after);
    let mut done = 0;
    for (dot, _) in before.match_indices("./") {
        let kept = after.and_then(|rest| rest.strip_prefix(&before[done..dot]));
        after = kept.and_then(|rest| rest.strip_prefix(stack_dir));
        done = dot + 1;
    }
    after == Some(&before[done..])
}

/// Describes the differences.
struct Report<'d> {
    original: &'d Document<'d>,
    deleted: DeletedLines,
    /// The removed `env_file` keys of which a part remains.
    left_over: Vec<EnvFileKey<'d>>,
    damages: Vec<Damage>,
}

impl<'d> Report<'d> {
    fn new(original: &'d Document<'d>) -> Self {
        let deleted = DeletedLines::of(original.text());
        let is_left_over = |entry: &EnvFileKey<'_>| {
            deleted.hold(entry.key.span().start)
                && deleted
                    .first_left(original.text(), &entry.value.span())
                    .is_some()
        };
        let left_over = env_file_keys(original)
            .into_iter()
            .filter(is_left_over)
            .collect();
        Self {
            original,
            deleted,
            left_over,
            damages: Vec::new(),
        }
    }

    fn add(&mut self, line: usize, kind: DamageKind) {
        self.damages.push(Damage { line, kind });
    }

    /// Whether no more damages are listed: describing each costs time.
    fn is_full(&self) -> bool {
        self.damages.len() >= MOST
    }

    /// The result has nothing in the place of `before`.
    fn gone(&mut self, before: Node<'_>) {
        if self.is_full() {
            return;
        }
        let path = path_of(before);
        self.add(before.line(), DamageKind::Deleted { path });
    }

    fn stays(&mut self, key: Node<'_>) {
        if self.is_full() {
            return;
        }
        let path = path_of(key);
        self.add(key.line(), DamageKind::EnvFileStays { path });
    }

    /// A mapping became null: because it only held `env_file`, or because other entries were deleted.
    fn emptied(&mut self, before: Node<'_>, at: Where) {
        let path = path_of(before);
        let other = before.own_entries().find(|entry| !is_env_file(at, entry));
        match other {
            Some(entry) => self.gone(entry.key),
            None => self.add(before.line(), DamageKind::Emptied { path }),
        }
    }

    /// `before` has another value, which comes from the bytes `from` of the original.
    fn differs(&mut self, before: Node<'_>, from: Range<usize>) {
        if self.is_full() {
            return;
        }
        let path = path_of(before);
        if let Some(entry) = self.left_over_in(&from) {
            self.left(entry, &from, path);
        } else if let Some(line) = self.deleted.first_in(&before.span()) {
            self.add(self.original.line(line.start), DamageKind::Deleted { path });
        } else {
            self.add(before.line(), DamageKind::Changed { path });
        }
    }

    /// The collection `before` has an additional member, which comes from the bytes `from`.
    fn extra(&mut self, before: Node<'_>, line: usize, from: Range<usize>) {
        if self.is_full() {
            return;
        }
        let path = path_of(before);
        match self.left_over_in(&from) {
            Some(entry) => self.left(entry, &from, path),
            None => self.add(line, DamageKind::Changed { path }),
        }
    }

    fn left(&mut self, entry: EnvFileKey<'_>, from: &Range<usize>, path: String) {
        let value = entry.value.span();
        let shared = value.start.max(from.start)..value.end;
        let first = self.deleted.first_left(self.original.text(), &shared);
        let line = self.original.line(first.unwrap_or(shared.start));
        self.add(
            line,
            DamageKind::LeftOver {
                of: entry.key.path(),
                became_part_of: Some(path),
            },
        );
    }

    fn left_over_in(&self, from: &Range<usize>) -> Option<EnvFileKey<'d>> {
        let overlaps = |entry: &&EnvFileKey<'_>| {
            let value = entry.value.span();
            value.start < from.end && from.start < value.end
        };
        self.left_over.iter().find(overlaps).copied()
    }
}

fn path_of(node: Node<'_>) -> String {
    let path = node.path();
    if path.is_empty() {
        "the top level".to_owned()
    } else {
        path
    }
}
