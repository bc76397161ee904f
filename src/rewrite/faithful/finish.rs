//! From what is to change to the text that is sent, and its proof.
#![deny(clippy::disallowed_methods)]

use std::{collections::BTreeMap, ops::Range};

use super::{
    Change, Faithful, Reason, Refusal,
    check::{self, Mismatch},
    encode,
    env_files::{Listed, listed},
    rewriter::Rewriter,
    shell,
    splice::Value,
};
use crate::model::Variable;
use composefile::{
    document::{Document, Entry, Node, NodeId, NodeKind as Kind, NodeMap, Position, Style},
    services::services,
};

const LEFT_OUT: &str = "the manager cannot read what it names (M11)";

impl<'d> Rewriter<'d, '_> {
    /// Writes the text, and proves it.
    pub(super) fn finish(mut self, text: &str) -> Result<Faithful, Vec<Refusal>> {
        self.take_out();
        self.put_in();
        self.set_scalars();
        for id in std::mem::take(&mut self.splices.touched) {
            if let Some(node) = self.document.node(id) {
                self.is_elsewhere(node);
            }
        }
        if !self.refusals.is_empty() {
            return Err(self.in_order());
        }
        let Ok((new, masks)) = self.splices.apply(text) else {
            return Err(vec![internal("two changes overlap", None)]);
        };
        let document = Document::parse(&new).map_err(|error| vec![unreadable(&error.message)])?;
        let checked = check::compare(self.document, &document, &self.splices.expected);
        checked.map_err(|mismatch| {
            vec![match mismatch {
                Mismatch::Alias(offset) => Refusal {
                    position: Some(Position::of(text, offset)),
                    ..lost_anchor()
                },
                Mismatch::Other(offset) => internal(
                    "the new text does not say what it was to say",
                    Some(Position::of(text, offset)),
                ),
            }]
        })?;
        if let Some(what) = self.unreadable(&document) {
            return Err(vec![internal(&what, None)]);
        }
        let edits = std::mem::take(&mut self.splices.edits).into_iter();
        let edits = edits.map(|edit| Change {
            line: self.document.line(edit.span.start),
            span: edit.span,
            what: edit.what,
            why: edit.why,
        });
        let edits = edits.collect();
        self.notices.sort();
        self.notices.dedup();
        Ok(Faithful {
            text: new,
            env: self.payload_env(),
            project: self.reader.project,
            edits,
            notices: self.notices,
            masks,
        })
    }

    /// What the manager still could not read, which a removal may have brought to light.
    fn unreadable(&self, new: &Document) -> Option<String> {
        services(new).iter().find_map(|service| {
            let files = listed(
                *service,
                "env_file",
                &|name| self.here(name),
                &str::to_owned,
            );
            let stays = |one: &Listed<'_>| one.file == "stack.env" && one.format.is_none();
            let reads_file = !files.iter().all(stays);
            let builds = service.build().is_some_and(|build| !self.is_remote(build));
            let what = match (reads_file, builds) {
                (true, _) => "an env file",
                (_, true) => "a build",
                _ if service.node.get("label_file").is_some() => "a label file",
                _ => return None,
            };
            Some(format!("{what} of the service {} is left", service.name))
        })
    }

    /// The refusals in the order of the text.
    fn in_order(mut self) -> Vec<Refusal> {
        self.refusals
            .sort_by_key(|refusal| refusal.position.map(|place| (place.line, place.column)));
        self.refusals.dedup();
        self.refusals
    }

    fn payload_env(&self) -> Vec<Variable> {
        let kept = encode::kept(self.env_text.unwrap_or_default(), self.env);
        let entries = self.env.iter().zip(kept);
        entries
            .filter(|((name, _), _)| !name.is_empty())
            .map(|((name, value), kept)| Variable {
                name: name.clone(),
                value: kept.map_or_else(|| encode::encoded(name, value), str::to_owned),
            })
            .collect()
    }

    fn take_out(&mut self) {
        if self.removals.is_empty() {
            return;
        }
        let mut holders: NodeMap<Node<'d>> = NodeMap::default();
        for node in self.document.nodes() {
            for entry in node.own_entries() {
                if self.removals.contains_key(&entry.key.id()) {
                    holders.insert(entry.key.id(), node);
                }
            }
        }
        let mut by_holder: BTreeMap<NodeId, (Node<'d>, Vec<Entry<'d>>)> = BTreeMap::new();
        for (key, entry) in std::mem::take(&mut self.removals) {
            let Some(&holder) = holders.get(&key) else {
                continue;
            };
            if self.covers.contains(&key) {
                let what = "`env_file` becomes an empty list".to_owned();
                let why = "without it, a merged one would come to light";
                let nothing = vec![("env_file".to_owned(), Value::Nothing)];
                self.splices
                    .replace_entry(holder, entry, nothing, (what, why, false));
                continue;
            }
            let (_, entries) = by_holder.entry(holder.id()).or_insert((holder, Vec::new()));
            entries.push(entry);
        }
        for (holder, entries) in by_holder.into_values() {
            let goes_whole = holder.own_entries().count() == entries.len();
            for (at, entry) in entries.into_iter().enumerate() {
                let what = format!("`{}` is taken out", entry.name().unwrap_or_default());
                if goes_whole && at == 0 {
                    self.take_out_last(holder, entry, what);
                    continue;
                }
                let note = (what, LEFT_OUT);
                if self.splices.remove_entry(holder, entry, note).is_err() {
                    self.refuse_unwritable(entry.key);
                }
            }
        }
    }

    /// Nothing of the mapping stays: what comes to it takes the place of its first entry.
    fn take_out_last(&mut self, holder: Node<'d>, entry: Entry<'d>, what: String) {
        let mut entries = Vec::new();
        let mut secret = false;
        self.insertions.retain_mut(|(mapping, new, note)| {
            let is_here = mapping.id() == holder.id();
            if is_here {
                entries.append(new);
                secret |= note.2;
            }
            !is_here
        });
        if entries.is_empty() {
            self.splices.empty(holder, entry, (what, LEFT_OUT));
        } else {
            self.splices
                .replace_entry(holder, entry, entries, (what, LEFT_OUT, secret));
        }
    }

    /// Writes new entries in front of the first that stays.
    fn put_in(&mut self) {
        for (mapping, new, note) in std::mem::take(&mut self.insertions) {
            let removed = &self.splices.expected.removed;
            let stays = |entry: &Entry<'_>| !removed.contains(&entry.key.id());
            let Some(place) = mapping.own_entries().find(stays) else {
                self.refuse_unwritable(mapping);
                continue;
            };
            for entry in new {
                self.splices
                    .insert_before(mapping, place.key, entry, note.clone());
            }
        }
    }

    /// Writes the new texts of scalars that are still there.
    fn set_scalars(&mut self) {
        let mut gone: Vec<Range<usize>> = self
            .splices
            .edits
            .iter()
            .map(|edit| edit.span.clone())
            .filter(|span| !span.is_empty())
            .collect();
        gone.sort_by_key(|span| span.start);
        for (id, (value, note)) in std::mem::take(&mut self.desired) {
            let Some(node) = self.document.node(id) else {
                continue;
            };
            let start = node.span().start;
            let at = gone.partition_point(|span| span.end <= start);
            if gone.get(at).is_some_and(|span| span.start <= start) {
                continue;
            }
            let raw = self.raw(node, &value);
            if self.splices.set(node, &value, raw, note).is_err() {
                self.refuse_unwritable(node);
            }
        }
    }

    /// The text of a block scalar in which only variables of the shell were replaced, where that leaves its lines
    /// as they are.
    fn raw(&self, node: Node<'d>, value: &str) -> Option<String> {
        let is_block = matches!(node.kind(), Kind::Scalar(Style::Literal | Style::Folded));
        if !is_block || self.written.get(&node.id()).map(String::as_str) != Some(value) {
            return None;
        }
        let raw = &self.document.text()[node.span()];
        let new = shell::written(raw, &|name| self.fate(name), &mut Vec::new());
        shape_of(raw).eq(shape_of(&new)).then(|| new.into_owned())
    }
}

/// What YAML makes of the lines of a block: how far each is indented, and which are blank.
fn shape_of(block: &str) -> impl Iterator<Item = (usize, bool)> {
    block.split('\n').map(|line| {
        let content = line.trim_start();
        (line.len() - content.len(), content.is_empty())
    })
}

fn internal(what: &str, position: Option<Position>) -> Refusal {
    Refusal {
        position,
        ..Refusal::of(
            Reason::Internal,
            format!("internal error: {what}; nothing was made of it"),
            "please report it with the compose file",
        )
    }
}

fn unreadable(message: &str) -> Refusal {
    if message.contains("alias") || message.contains("anchor") {
        return lost_anchor();
    }
    internal("the new text is not YAML", None)
}

fn lost_anchor() -> Refusal {
    Refusal::of(
        Reason::Shared,
        "an anchor stands in a part that the manager cannot read, and is used elsewhere",
        "write out what the alias stands for",
    )
}
