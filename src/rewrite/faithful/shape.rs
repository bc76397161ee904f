//! Whether a text has the shape of a compose file, as far as the rewrite reads it.
#![deny(clippy::disallowed_methods)]

use std::collections::HashSet;

use super::{Blocker, Reason};
use composefile::document::{Document, Entry, Kind, Node, NodeId, NodeMap, ScalarType};

/// What can stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Nothing,
    Text,
    Bool,
    Number,
    Date,
    List,
    Mapping,
}

use Is::{Bool, List, Mapping, Nothing, Number, Text};

/// A key of a mapping, `*` for any, or `[]` for the items of a list; what compose takes there (the same
/// from 2.26 to 5.6), and the places below.
struct Place(&'static str, &'static [Is], &'static [Place]);

const TEXT: &[Is] = &[Text];
const MAPPING: &[Is] = &[Mapping];
const PAIRS: &[Place] = &[
    Place("[]", TEXT, &[]),
    Place("*", &[Nothing, Text, Bool, Number, Is::Date], &[]),
];
const TEXTS: &[Place] = &[Place("[]", TEXT, &[])];
const SOURCES: &[Place] = &[Place("[]", &[Text, Mapping], &[Place("source", TEXT, &[])])];

const ROOT: Place = Place(
    "",
    MAPPING,
    &[
        Place("name", &[Text, Is::Date], &[]),
        Place("include", &[Nothing, List], &[]),
        Place("services", MAPPING, &[Place("*", MAPPING, SERVICE)]),
        Place("networks", MAPPING, &[Place("*", &[Nothing, Mapping], &[])]),
        Place(
            "volumes",
            MAPPING,
            &[Place("*", &[Nothing, Mapping], VOLUME)],
        ),
        Place("secrets", MAPPING, &[Place("*", MAPPING, FILE)]),
        Place("configs", MAPPING, &[Place("*", MAPPING, FILE)]),
    ],
);

const SERVICE: &[Place] = &[
    Place("image", TEXT, &[]),
    Place("environment", &[List, Mapping], PAIRS),
    Place("labels", &[List, Mapping], PAIRS),
    Place("volumes", &[List], &[Place("[]", &[Text, Mapping], MOUNT)]),
    Place(
        "env_file",
        &[Text, List],
        &[Place("[]", &[Text, Mapping], ENV_FILE)],
    ),
    Place("label_file", &[Text, List], TEXTS),
    Place("build", &[Text, Mapping], BUILD),
    Place("pull_policy", TEXT, &[]),
    Place("extends", &[Text, Mapping], EXTENDS),
    Place("develop", &[Nothing, Mapping], DEVELOP),
    Place("profiles", &[List], TEXTS),
    Place("depends_on", &[List, Mapping], DEPENDENCIES),
    Place("networks", &[List, Mapping], NETWORKS),
    Place("secrets", &[List], SOURCES),
    Place("configs", &[List], SOURCES),
    Place("links", &[List], TEXTS),
    Place("volumes_from", &[List], TEXTS),
    Place("network_mode", TEXT, &[]),
    Place("ipc", TEXT, &[]),
    Place("pid", TEXT, &[]),
];

const MOUNT: &[Place] = &[
    Place("type", TEXT, &[]),
    Place("source", TEXT, &[]),
    Place("target", TEXT, &[]),
];

const ENV_FILE: &[Place] = &[
    Place("path", TEXT, &[]),
    Place("required", &[Text, Bool], &[]),
    Place("format", TEXT, &[]),
];

const BUILD: &[Place] = &[
    Place("context", TEXT, &[]),
    Place("additional_contexts", &[List, Mapping], PAIRS),
    Place("secrets", &[List], SOURCES),
    Place("ssh", &[List, Mapping], PAIRS),
];

const EXTENDS: &[Place] = &[
    Place("service", TEXT, &[]),
    Place("file", &[Nothing, Text], &[]),
];

const DEVELOP: &[Place] = &[Place(
    "watch",
    &[List],
    &[Place("[]", MAPPING, &[Place("path", TEXT, &[])])],
)];

const DEPENDENCIES: &[Place] = &[Place("[]", TEXT, &[]), Place("*", MAPPING, &[])];

const NETWORKS: &[Place] = &[Place("[]", TEXT, &[]), Place("*", &[Nothing, Mapping], &[])];

const VOLUME: &[Place] = &[
    Place("driver", TEXT, &[]),
    Place("driver_opts", MAPPING, &[Place("*", &[Text, Number], &[])]),
];

const FILE: &[Place] = &[
    Place("file", TEXT, &[]),
    Place("environment", TEXT, &[]),
    Place("content", TEXT, &[]),
];

/// What aliases may make of a text: compose reads no more than this to its end in good time.
const MOST_NODES: u64 = 1_000_000;

const HINT: &str = "see https://docs.docker.com/reference/compose-file/";

/// Finds values of a type that Compose rejects. The error is a text that no pass can read.
pub(super) fn check(document: &Document<'_>) -> Result<Vec<Blocker>, Blocker> {
    let mut shape = Shape {
        document,
        blockers: Vec::new(),
    };
    shape.shape()?;
    Ok(shape.blockers)
}

struct Shape<'d> {
    document: &'d Document<'d>,
    blockers: Vec<Blocker>,
}

impl<'d> Shape<'d> {
    fn shape(&mut self) -> Result<(), Blocker> {
        let Some(root) = self.document.root() else {
            let what = "the compose file is empty";
            let hint = "name the right file with --file";
            return Err(Blocker::new(Reason::WrongType, what, hint));
        };
        if let Some(blocker) = endless(self.document) {
            return Err(blocker);
        }
        if !root.is_mapping() {
            return Err(wrong(root, "the compose file is no mapping"));
        }
        for twice in self.document.duplicate_keys() {
            let name = twice.again.scalar().map_or("", |(name, _)| name);
            let line = twice.first.line();
            let what =
                format!("the key {name} stands a second time in one mapping, first in line {line}");
            self.blockers.push(wrong(twice.again, what));
        }
        for entry in self.document.nodes().flat_map(Node::own_entries) {
            if entry.is_merge() {
                let target = entry.value;
                if !target.is_mapping() && !is_list_of_mappings(target) {
                    let what = "`<<` merges mappings, and here is something else";
                    self.blockers.push(wrong(place_of(entry.key, target), what));
                }
            } else if is(entry.key) != Text {
                let what = format!("{} is a key: compose takes text", named(is(entry.key)));
                self.blockers.push(Blocker::at(
                    entry.key,
                    Reason::WrongType,
                    what,
                    "write it in quotes",
                ));
            }
        }
        let mut seen = HashSet::new();
        self.place(root, root, &ROOT, &Step::Root, &mut seen);
        Ok(())
    }

    /// Refuses what is not what compose takes at a place, and all that is wrong below it.
    fn place(
        &mut self,
        node: Node<'d>,
        shown: Node<'d>,
        place: &'static Place,
        way: &Step<'_>,
        seen: &mut HashSet<(NodeId, *const Place)>,
    ) {
        let Place(_, takes, below) = place;
        let found = is(node);
        if takes.contains(&found) && below.is_empty() {
            return;
        }
        if !seen.insert((node.resolved().id(), std::ptr::from_ref(place))) {
            return;
        }
        if !takes.contains(&found) {
            let takes: Vec<_> = takes.iter().copied().map(named).collect();
            let what = format!(
                "`{way}` is {}: compose takes {}",
                named(found),
                takes.join(" or ")
            );
            self.blockers.push(wrong(place_of(shown, node), what));
            return;
        }
        for Entry { key, value } in node.entries() {
            let Some((name, _)) = key.scalar() else {
                continue;
            };
            let at = below.iter().find(|at| at.0 == name || at.0 == "*");
            if let Some(at) = at {
                self.place(value, key, at, &Step::Key(way, name), seen);
            }
        }
        if let Some(at) = below.iter().find(|at| at.0 == "[]") {
            for (index, item) in node.items().enumerate() {
                self.place(item, item, at, &Step::Item(way, index), seen);
            }
        }
    }
}

/// The way to a place, for messages.
enum Step<'a> {
    Root,
    Key(&'a Step<'a>, &'a str),
    Item(&'a Step<'a>, usize),
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, name) => f.write_str(name),
            Self::Key(above, name) => write!(f, "{above}.{name}"),
            Self::Item(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

/// An alias inside what it points at, or aliases that make too much of the text.
fn endless(document: &Document) -> Option<Blocker> {
    // How much each anchored collection makes; those that are open, and what was made before them.
    let mut sizes: NodeMap<u64> = NodeMap::default();
    let mut open: Vec<(Node<'_>, u64)> = Vec::new();
    let mut made: u64 = 0;
    for (written, node) in (1..).zip(document.nodes()) {
        while let Some((above, before)) = open.pop_if(|(above, _)| !above.holds(node)) {
            sizes.insert(above.id(), made - before);
        }
        if node.kind() == Kind::Alias {
            let target = node.resolved();
            if target.holds(node) {
                return Some(wrong(node, "the alias stands inside what it points at"));
            }
            let size = sizes.get(&target.id()).copied().unwrap_or(1);
            made = made.saturating_add(size);
        } else {
            if node.anchor().is_some() && !node.is_scalar() {
                open.push((node, made));
            }
            made = made.saturating_add(1);
        }
        if made > MOST_NODES.max(10 * written) {
            let what = format!("aliases make more than {MOST_NODES} nodes of this text");
            return Some(wrong(node, what));
        }
    }
    None
}

fn wrong(node: Node<'_>, what: impl Into<String>) -> Blocker {
    Blocker::at(node, Reason::WrongType, what, HINT)
}

/// The value, or its key where no value is written.
fn place_of<'d>(key: Node<'d>, value: Node<'d>) -> Node<'d> {
    if value.span().is_empty() { key } else { value }
}

fn is_list_of_mappings(node: Node<'_>) -> bool {
    node.is_sequence() && node.items().all(Node::is_mapping)
}

fn is(node: Node<'_>) -> Is {
    if node.is_mapping() {
        return Mapping;
    }
    match node.scalar_type() {
        None => List,
        Some(ScalarType::Null) => Nothing,
        Some(ScalarType::Bool) => Bool,
        Some(ScalarType::Number) => Number,
        Some(ScalarType::Timestamp) => Is::Date,
        Some(ScalarType::Merge | ScalarType::Text) => Text,
    }
}

fn named(is: Is) -> &'static str {
    match is {
        Nothing => "nothing",
        Text => "text",
        Bool => "true or false",
        Number => "a number",
        Is::Date => "a date",
        List => "a list",
        Mapping => "a mapping",
    }
}
