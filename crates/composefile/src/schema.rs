//! The schema of Compose files: which keys exist where, the types they accept, and what they hold.
//!
//! The schema is one static table. A position in it is a [`Place`]; [`ROOT`] is the place of the whole file. From a
//! place, [`Place::key`] and [`Place::item`] lead down, in step with a walk through a
//! [`Document`](crate::document::Document).
//!
//! The table is the union of what Docker Compose 2.33 and 5.6.1 accept; [`Key::since`] says which release was the first to
//! accept a key. Debian's build of 2.26.1 accepts what 2.33 accepts. The table does not list required keys, allowed values or the format of strings.
//!
//! ```
//! use composefile::schema::{Holds, ROOT, SERVICE, Type};
//!
//! let image = SERVICE.key("image").expect("services have an image");
//! assert!(image.accepts(Type::Text) && !image.accepts(Type::List));
//!
//! // A misspelled key is not in the table. Extensions are accepted.
//! assert!(SERVICE.key("imagee").is_none());
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

mod build;
mod deploy;
mod leaf;
mod mount;
mod resource;
mod root;
mod service;

use std::{
    fmt,
    hash::{Hash, Hasher},
    ptr,
};

use crate::document::{Entry, Node, ScalarType};

pub use root::{INCLUDE, ROOT};
pub use service::SERVICE;

/// A position in a Compose file: the types accepted there, what the value holds, and the places below it.
///
/// Places are static and compare by identity. Positions that share a definition share a place: `post_start[]` and
/// `pre_stop[]` are equal.
pub struct Place {
    types: &'static [Type],
    holds: Holds,
    /// Keys, sorted by name.
    keys: &'static [Key],
    /// More keys, each list sorted by name, that other places have too.
    shared_keys: &'static [&'static [Key]],
    /// The value of any other key.
    any_key: Option<&'static Place>,
    item: Option<&'static Place>,
    /// One bit for each [`Holds`] of the places below.
    leads_to: u32,
}

/// A key that the schema names.
#[derive(Debug)]
pub struct Key {
    /// The key as written.
    pub name: &'static str,
    /// The place of its value.
    pub place: &'static Place,
    /// The first release that accepts the key; all zeros if 2.17.2 does.
    pub since: Release,
}

/// A release of Docker Compose, without the patches of a distribution.
pub type Release = (u16, u16, u16);

/// The newest release that the table covers.
pub const NEWEST: Release = (5, 6, 1);

/// The type of a value, as Compose tells types apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// `null`, `~`, or no value.
    Null,
    /// A string.
    Text,
    /// `true` or `false`.
    Bool,
    /// An integer or a float.
    Number,
    /// A plain scalar that YAML 1.1 reads as a date, such as `2024-01-31`.
    Date,
    /// A sequence.
    List,
    /// A mapping.
    Mapping,
}

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
    /// How to build an image.
    Build,
    /// The variables of a container.
    Environment,
}

impl Place {
    /// The types that at least one measured version accepts, in the order in which messages list them.
    pub fn types(&self) -> &'static [Type] {
        self.types
    }

    /// Whether a value of this type can stand here.
    pub fn accepts(&self, found: Type) -> bool {
        self.types.contains(&found)
    }

    /// What the value holds.
    pub fn holds(&self) -> Holds {
        self.holds
    }

    /// The keys that the schema names, without extensions and keys that the user chooses.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        let shared = self.shared_keys.iter().copied().flatten();
        self.keys.iter().chain(shared)
    }

    /// The place of a key's value; `None` for a key that Compose rejects.
    pub fn key(&self, name: &str) -> Option<&'static Self> {
        if let Some(key) = self.named(name) {
            return Some(key.place);
        }
        let is_extension =
            self.any_key.is_none() && name.starts_with("x-") && self.accepts(Type::Mapping);
        if is_extension {
            return Some(&leaf::EXTENSION);
        }
        self.any_key
    }

    /// The key of this name, if the schema names it.
    pub fn named(&self, name: &str) -> Option<&'static Key> {
        let mut groups = std::iter::once(self.keys).chain(self.shared_keys.iter().copied());
        groups.find_map(|keys| {
            let at = keys.binary_search_by_key(&name, |key| key.name).ok()?;
            Some(&keys[at])
        })
    }

    /// The place of any key that the schema does not name, where users choose the keys.
    pub fn any_key(&self) -> Option<&'static Self> {
        self.any_key
    }

    /// The place of the items of a list.
    pub fn item(&self) -> Option<&'static Self> {
        self.item
    }

    /// Whether Compose accepts any value here and below, as it does in an extension.
    pub fn is_unchecked(&self) -> bool {
        self.any_key == Some(self) && self.item == Some(self)
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

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self, state);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({:?}, {:?})", self.types, self.holds)
    }
}

impl Type {
    /// The type of a node, or of the node that an alias points at.
    pub fn of(node: Node<'_>) -> Self {
        if node.is_mapping() {
            return Self::Mapping;
        }
        match node.scalar_type() {
            None => Self::List,
            Some(ScalarType::Null) => Self::Null,
            Some(ScalarType::Bool) => Self::Bool,
            Some(ScalarType::Number) => Self::Number,
            Some(ScalarType::Timestamp) => Self::Date,
            Some(ScalarType::Merge | ScalarType::Text) => Self::Text,
        }
    }
}

/// With its article: `a string`, `a mapping`, `null`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Text => "a string",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::Date => "a date",
            Self::List => "a list",
            Self::Mapping => "a mapping",
        })
    }
}

/// How the table is written.
impl Place {
    const fn new(types: &'static [Type]) -> Self {
        Self {
            types,
            holds: Holds::Plain,
            keys: &[],
            shared_keys: &[],
            any_key: None,
            item: None,
            leads_to: 0,
        }
    }

    const fn mapping(keys: &'static [Key]) -> Self {
        Self::new(&[Type::Mapping]).keyed(keys)
    }

    const fn mapping_of(value: &'static Self) -> Self {
        Self::new(&[Type::Mapping]).valued(value)
    }

    const fn list_of(item: &'static Self) -> Self {
        Self::new(&[Type::List]).listed(item)
    }

    /// Any value, with the same place for all values below it.
    const fn unchecked(this: &'static Self, holds: Holds) -> Self {
        use Type::{Bool, Date, List, Mapping, Null, Number, Text};
        Self {
            holds,
            any_key: Some(this),
            item: Some(this),
            ..Self::new(&[Null, Text, Bool, Number, Date, List, Mapping])
        }
    }

    const fn holding(mut self, holds: Holds) -> Self {
        self.holds = holds;
        self
    }

    const fn keyed(mut self, keys: &'static [Key]) -> Self {
        self.keys = keys;
        self.above_all(keys)
    }

    const fn sharing(mut self, groups: &'static [&'static [Key]]) -> Self {
        self.shared_keys = groups;
        let mut at = 0;
        while at < groups.len() {
            self = self.above_all(groups[at]);
            at += 1;
        }
        self
    }

    const fn valued(mut self, value: &'static Self) -> Self {
        self.any_key = Some(value);
        self.above(value)
    }

    const fn listed(mut self, item: &'static Self) -> Self {
        self.item = Some(item);
        self.above(item)
    }

    const fn above(mut self, below: &Self) -> Self {
        self.leads_to |= below.leads_to | below.holds.bit();
        self
    }

    const fn above_all(mut self, keys: &[Key]) -> Self {
        let mut at = 0;
        while at < keys.len() {
            self = self.above(keys[at].place);
            at += 1;
        }
        self
    }
}

impl Holds {
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Key {
    const fn new(name: &'static str, place: &'static Place) -> Self {
        Self {
            name,
            place,
            since: (0, 0, 0),
        }
    }

    const fn newer(since: Release, name: &'static str, place: &'static Place) -> Self {
        Self { name, place, since }
    }
}

#[cfg(test)]
mod tests;
