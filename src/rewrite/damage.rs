//! Whether the literal rewrite damages a text (B02).
//!
//! The parsed result must equal the parsed original without its `env_file` keys and with `./` replaced inside strings,
//! including keys. Comments and the style of scalars do not matter. Where B02 leaves room:
//! - `env_file` is a key of a service, of an `include` item, or of anything below `x-`. Elsewhere (`environment`,
//!   `labels`, a service of that name) it is an ordinary name, and deleting it is damage.
//! - An `env_file` that stays (flow style, a quoted key) is damage: Portainer cannot read the file (M11).
//! - A mapping that loses all its entries becomes null, which is damage: Compose rejects a null service, and `<<` of a
//!   null fragment.
//! - Deleting `- .env` from any list except an `env_file` is damage, even from a fragment that is only used as one:
//!   something else might use it.

use std::fmt;

use super::{
    env_files::{DeletedLines, Where, below, env_file_keys, is_env_file, item},
    literal::original_line,
};
use composefile::{
    document::{Document, Node, NodeId, NodeKind, NodeMap},
    schema::ROOT,
};

/// The most damages that are listed.
pub const MOST: usize = 50;

/// One place where the rewrite damages the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The line of the original, counted from 1.
    pub line: usize,
    /// What happens there. Paths are like `services.web.ports[0]`.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Compares `rewritten`, the result of [`super::literal::rewrite`] for `stack_dir`, with the original: where it does not have
/// the expected meaning, in the order of the original's lines; at most [`MOST`] places.
pub fn damages(original: &Document<'_>, rewritten: &str, stack_dir: &str) -> Vec<Damage> {
    let keys = env_file_keys(original);
    let deleted = DeletedLines::of(original.text());
    let mut damages = match Document::parse(rewritten) {
        Ok(result) => {
            let walk = Walk {
                original,
                stack_dir,
                deleted: &deleted,
                strays: deleted.without(&keys),
                ahead: Vec::new(),
                twins: NodeMap::default(),
                aliases: Vec::new(),
                damages: Vec::new(),
            };
            walk.differences(&result)
        }
        Err(error) => vec![Damage {
            line: original_line(original.text(), error.position.line).unwrap_or(1),
            what: format!("the result is not valid YAML: {}", error.message),
        }],
    };
    if damages.is_empty() {
        return damages;
    }
    let left_over = keys.iter().filter_map(|entry| {
        let is_removed = deleted.hold(entry.key.span().start);
        let left = deleted.first_left(original.text(), &entry.value.span());
        Some(Damage {
            line: original.line(left.filter(|_| is_removed)?),
            what: format!("part of the removed {} remains", entry.key.path()),
        })
    });
    damages.extend(left_over.take(MOST));
    damages.sort_by_key(|damage| damage.line);
    damages.dedup();
    damages.truncate(MOST);
    damages
}

/// Compares the original and the result node by node.
struct Walk<'d> {
    original: &'d Document<'d>,
    stack_dir: &'d str,
    deleted: &'d DeletedLines,
    /// The deleted lines that are not part of an `env_file`.
    strays: DeletedLines,
    /// Pairs still to be compared.
    ahead: Vec<(Node<'d>, Node<'d>, Where)>,
    /// The node of the result for each anchored node of the original.
    twins: NodeMap<NodeId>,
    /// Pairs of aliases. Their targets may be compared later.
    aliases: Vec<(Node<'d>, Node<'d>)>,
    damages: Vec<Damage>,
}

impl<'d> Walk<'d> {
    fn differences(mut self, result: &'d Document<'d>) -> Vec<Damage> {
        match (self.original.root(), result.root()) {
            (Some(before), Some(after)) => self.ahead.push((before, after, Some(&ROOT))),
            (Some(before), None) => self.differs(before),
            // Deletions and replacements add no node to an empty text.
            (None, _) => {}
        }
        while let Some((before, after, at)) = self.ahead.pop() {
            self.compare(before, after, at);
        }
        for (before, after) in std::mem::take(&mut self.aliases) {
            if self.twins.get(&before.resolved().id()) != Some(&after.resolved().id()) {
                self.differs(before);
            }
        }
        self.damages
    }

    fn compare(&mut self, before: Node<'d>, after: Node<'d>, at: Where) {
        if before.anchor().is_some() {
            self.twins.insert(before.id(), after.id());
        }
        match (before.kind(), after.kind()) {
            _ if !self.same_tag(before, after) => self.differs(before),
            (NodeKind::Scalar(_), NodeKind::Scalar(_)) if self.same_scalar(before, after) => {}
            (NodeKind::Alias, NodeKind::Alias) => self.aliases.push((before, after)),
            (NodeKind::Mapping(_), NodeKind::Mapping(_)) => self.entries(before, after, at),
            (NodeKind::Sequence(_), NodeKind::Sequence(_)) => self.items(before, after, at),
            (NodeKind::Mapping(_), NodeKind::Scalar(_)) if after.is_null() => {
                let mut entries = before.own_entries();
                match entries.find(|entry| !is_env_file(at, entry)) {
                    Some(entry) => self.differs(entry.key),
                    None => self.add(before.line(), before, |path| {
                        format!("{path} loses all its entries")
                    }),
                }
            }
            _ => self.differs(before),
        }
    }

    fn same_tag(&self, before: Node<'_>, after: Node<'_>) -> bool {
        match (before.tag(), after.tag()) {
            (Some(before), Some(after)) => is_replaced(before, after, self.stack_dir),
            (before, after) => before == after,
        }
    }

    fn same_scalar(&self, before: Node<'_>, after: Node<'_>) -> bool {
        let (Some((old, _)), Some((new, _))) = (before.scalar(), after.scalar()) else {
            return false;
        };
        is_replaced(old, new, self.stack_dir) && before.scalar_type() == after.scalar_type()
    }

    fn entries(&mut self, before: Node<'d>, after: Node<'d>, at: Where) {
        let mut found = after.own_entries();
        for old in before.own_entries() {
            let is_env_file = is_env_file(at, &old);
            if is_env_file && self.deleted.hold(old.key.span().start) {
                continue;
            }
            if !is_env_file && self.strays.hold(old.key.span().start) {
                self.differs(old.key);
                continue;
            }
            let Some(new) = found.next() else {
                return self.differs(before);
            };
            let are_scalars = old.key.is_scalar() && new.key.is_scalar();
            if are_scalars && !self.same_scalar(old.key, new.key) {
                return self.differs(before);
            }
            self.ahead.push((old.key, new.key, None));
            if is_env_file {
                self.add(old.key.line(), old.key, |path| {
                    format!("{path} is not removed, and Portainer cannot read the file")
                });
            } else {
                self.ahead.push((old.value, new.value, below(at, &old)));
            }
        }
        if found.next().is_some() {
            self.differs(before);
        }
    }

    fn items(&mut self, before: Node<'d>, after: Node<'d>, at: Where) {
        let mut found = after.own_items();
        for old in before.own_items() {
            if self.strays.hold(old.span().start) {
                self.differs(old);
                continue;
            }
            let Some(new) = found.next() else {
                return self.differs(before);
            };
            self.ahead.push((old, new, item(at)));
        }
        if found.next().is_some() {
            self.differs(before);
        }
    }

    /// Reports a node that is gone or has another value.
    fn differs(&mut self, before: Node<'_>) {
        match self.strays.first_in(&before.span()) {
            Some(line) => self.add(self.original.line(line.start), before, |path| {
                format!("deletes a line of {path}, which is not an env_file")
            }),
            None => self.add(before.line(), before, |path| {
                format!("{path} gets a different value")
            }),
        }
    }

    fn add(&mut self, line: usize, node: Node<'_>, what: impl FnOnce(&str) -> String) {
        // Describing each costs time.
        if self.damages.len() < MOST {
            let what = match node.path().as_str() {
                "" => what("the top level"),
                path => what(path),
            };
            self.damages.push(Damage { line, what });
        }
    }
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

#[cfg(test)]
mod tests;
