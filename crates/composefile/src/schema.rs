//! The schema of Compose files: which keys exist where, the first release that accepts each, and what their values hold.
//!
//! The schema is one static table. A position in it is a [`SchemaNode`]; [`ROOT`] is the place of the whole file. From a
//! place, [`SchemaNode::key`] and [`SchemaNode::item`] lead down, in step with a walk through a
//! [`Document`](crate::document::Document).
//!
//! The table is the union of what Docker Compose 2.33 and 5.7.1 accept; [`SchemaNode::since`] says which release was the first to
//! accept a key. Debian's build of 2.26.1 accepts what 2.33 accepts. The table does not list types, required keys, allowed values
//! or the format of strings: Compose itself checks these.
//!
//! ```
//! use composefile::schema::{Holds, ROOT, SERVICE};
//!
//! assert_eq!(SERVICE.since("image"), Some((0, 0, 0)));
//! assert_eq!(SERVICE.since("label_file"), Some((2, 32, 0)));
//! // A misspelled key is not in the table. Extensions are accepted.
//! assert_eq!(SERVICE.since("imagee"), None);
//! assert_eq!(SERVICE.key("x-note").map(|place| place.holds()), Some(Holds::Extension));
//!
//! // services.web.env_file[0].path
//! let env_file = ["services", "web", "env_file"]
//!     .into_iter()
//!     .try_fold(&ROOT, |place, key| place.key(key))
//!     .expect("services have env files");
//! let path = env_file.item().and_then(|item| item.key("path")).expect("an env file has a path");
//! assert_eq!(path.holds(), Holds::EnvFile);
//! ```

mod table;

use std::{
    hash::{Hash, Hasher},
    ptr,
};

use crate::document::Entry;

pub use table::{INCLUDE, ROOT, SERVICE};

/// A position in a Compose file: what the value holds, and the places below it.
///
/// Places are static and compare by identity. Positions that share a definition share a place: `post_start[]` and
/// `pre_stop[]` are equal.
#[derive(Debug)]
pub struct SchemaNode {
    holds: Holds,
    /// The names of keys whose values hold nothing. After an `@` stands the first release that accepts the key, unless 2.17.2
    /// does.
    plain: &'static str,
    /// The other keys, written in the same way.
    placed: &'static [(&'static str, &'static SchemaNode)],
    /// Places that have more keys of this one.
    shared: &'static [&'static SchemaNode],
    /// The value of a key that the user chooses.
    any_key: Option<&'static SchemaNode>,
    item: Option<&'static SchemaNode>,
    /// One bit for each [`Holds`] of the places below.
    leads_to: u32,
}

/// A release of Docker Compose, without the patches of a distribution.
pub type Release = (u16, u16, u16);

/// The newest release that the table covers.
pub const NEWEST: Release = (5, 7, 1);

/// What a value is to Compose.
///
/// A collection whose members all hold the same holds that, too: `volumes`, `volumes[]` and the items' text are
/// all [`Holds::Mount`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holds {
    /// A value that refers to nothing else.
    Plain,
    /// An `x-` key, or a value below one. Compose ignores it; an alias elsewhere may refer to it.
    Extension,
    /// A mount: `source:target:options`, or a mapping.
    Mount,
    /// The source of a mount that is a mapping. If the `type` is `bind`, a path that the engine reads.
    MountSource,
    /// The `device` option of a volume. If the `driver` is `local` and the option `o` is `bind`, a path that the
    /// engine reads.
    Device,
    /// A path on the engine's host.
    HostPath,
    /// A path that Compose itself reads.
    LocalPath,
    /// The path of an env file.
    EnvFile,
}

impl SchemaNode {
    /// What the value holds.
    pub fn holds(&self) -> Holds {
        self.holds
    }

    /// The keys that the schema names, with the first release that accepts each, all zeros if 2.17.2 accepts it, and the place
    /// of its value.
    pub fn keys(&'static self) -> impl Iterator<Item = (&'static str, Release, &'static Self)> {
        let all = self.groups().flat_map(|group| {
            let plain = group.plain.split_whitespace();
            let plain = plain.map(|key| (key, &table::PLAIN));
            plain.chain(group.placed.iter().copied())
        });
        all.map(|(key, place)| {
            let (name, since) = key.split_once('@').unwrap_or((key, ""));
            let mut numbers = since.split('.').map(|number| number.parse().unwrap_or(0));
            let mut next = || numbers.next().unwrap_or(0);
            (name, (next(), next(), next()), place)
        })
    }

    /// The first release that accepts a key; `None` for a key that Compose rejects.
    pub fn since(&'static self, name: &str) -> Option<Release> {
        if !self.names_keys() || self.any_key.is_some() || name.starts_with("x-") {
            return Some((0, 0, 0));
        }
        let found = self.keys().find(|(key, ..)| *key == name);
        found.map(|(_, since, _)| since)
    }

    /// The place of a key's value; `None` if the value holds nothing.
    pub fn key(&'static self, name: &str) -> Option<&'static Self> {
        let mut placed = self.groups().flat_map(|group| group.placed);
        let found = placed.find(|(key, _)| key.split('@').next() == Some(name));
        let is_extension = self.names_keys() && name.starts_with("x-");
        let other = || is_extension.then_some(&table::EXTENSION);
        let place = found.map(|(_, place)| *place);
        place.or(self.any_key).or_else(other)
    }

    fn groups(&'static self) -> impl Iterator<Item = &'static Self> {
        std::iter::once(self).chain(self.shared.iter().copied())
    }

    fn names_keys(&self) -> bool {
        !self.plain.is_empty() || !self.placed.is_empty()
    }

    /// The place of the items of a list.
    pub fn item(&self) -> Option<&'static Self> {
        self.item
    }

    /// Whether a place below this one holds this.
    pub fn leads_to(&self, holds: Holds) -> bool {
        self.leads_to & holds.bit() != 0
    }

    /// The place of the value of an entry. A merge (`<<`) stays at its place.
    pub fn below(&'static self, entry: &Entry<'_>) -> Option<&'static Self> {
        if entry.is_merge() {
            return Some(self);
        }
        self.key(entry.name()?)
    }
}

impl PartialEq for SchemaNode {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for SchemaNode {}

impl Hash for SchemaNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self, state);
    }
}

/// How the table is written.
impl SchemaNode {
    const fn new(holds: Holds) -> Self {
        Self {
            holds,
            plain: "",
            placed: &[],
            shared: &[],
            any_key: None,
            item: None,
            leads_to: 0,
        }
    }

    /// A mapping with these keys, whose values hold nothing.
    const fn plain(keys: &'static str) -> Self {
        Self {
            plain: keys,
            ..Self::new(Holds::Plain)
        }
    }

    /// A mapping whose keys the user chooses.
    const fn each(value: &'static Self) -> Self {
        Self {
            any_key: Some(value),
            ..Self::new(Holds::Plain).above(value)
        }
    }

    const fn list(item: &'static Self) -> Self {
        Self {
            item: Some(item),
            ..Self::new(Holds::Plain).above(item)
        }
    }

    const fn holding(self, holds: Holds) -> Self {
        Self { holds, ..self }
    }

    const fn and(mut self, placed: &'static [(&'static str, &'static Self)]) -> Self {
        self.placed = placed;
        let mut at = 0;
        while at < placed.len() {
            self = self.above(placed[at].1);
            at += 1;
        }
        self
    }

    const fn sharing(mut self, shared: &'static [&'static Self]) -> Self {
        self.shared = shared;
        let mut at = 0;
        while at < shared.len() {
            self.leads_to |= shared[at].leads_to;
            at += 1;
        }
        self
    }

    const fn above(mut self, below: &Self) -> Self {
        self.leads_to |= below.leads_to | below.holds.bit();
        self
    }
}

impl Holds {
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

#[cfg(test)]
mod tests;
