//! Who may use a Portainer stack or a container besides administrators (B23).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use serde::{Deserialize, Serialize, Serializer};

use super::Container;
use crate::text::{listed, printable};

/// Who may use a Portainer stack or a container besides administrators, by Portainer's IDs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Access {
    /// The IDs of users.
    pub users: BTreeSet<i64>,
    /// The IDs of teams.
    pub teams: BTreeSet<i64>,
    /// Whether every user of the environment may use it.
    pub public: bool,
}

impl Access {
    /// Whether somebody besides administrators may use it.
    pub fn is_shared(&self) -> bool {
        *self != Self::default()
    }
}

/// Somebody who may use it. Parsed from and serialized as in `--access`; `Display` is for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// Every user of the environment.
    Public,
    /// Nobody besides administrators.
    Admins,
    User(String),
    Team(String),
}

impl Grant {
    /// As in `--access`.
    pub fn as_flag(&self) -> String {
        match self {
            Self::Public => "public".to_owned(),
            Self::Admins => "admins".to_owned(),
            Self::User(name) => format!("user:{name}"),
            Self::Team(name) => format!("team:{name}"),
        }
    }

    /// Those whom the labels of a container name. They have the same keys for every tool, and `public` comes first (M23).
    pub fn of_labels(container: &Container) -> BTreeSet<Self> {
        let label = |name: &str| container.label(&format!("io.portainer.accesscontrol.{name}"));
        if label("public").is_some() {
            return BTreeSet::from([Self::Public]);
        }
        let named = |label: Option<&str>, of: fn(String) -> Self| -> Vec<Self> {
            let names = label.into_iter().flat_map(|names| names.split(','));
            let names = names.map(str::trim).filter(|name| !name.is_empty());
            names.map(|name| of(name.to_owned())).collect()
        };
        let users = named(label("users"), Self::User).into_iter();
        users.chain(named(label("teams"), Self::Team)).collect()
    }

    /// Those who are in `some` and not in `others`. Portainer ignores the case of names.
    pub fn missing(some: &BTreeSet<Self>, others: &BTreeSet<Self>) -> BTreeSet<Self> {
        let key = |one: &Self| one.as_flag().to_lowercase();
        let others: BTreeSet<String> = others.iter().map(key).collect();
        let some = some.iter().cloned();
        some.filter(|grant| !others.contains("public") && !others.contains(&key(grant)))
            .collect()
    }

    /// `user ann and team ops`
    pub fn list(grants: &BTreeSet<Self>) -> String {
        listed(&grants.iter().map(Self::to_string).collect::<Vec<_>>())
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => f.write_str("every user"),
            Self::Admins => f.write_str("administrators only"),
            Self::User(name) => write!(f, "user {}", printable(name)),
            Self::Team(name) => write!(f, "team {}", printable(name)),
        }
    }
}

impl FromStr for Grant {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "public" => Ok(Self::Public),
            None if text == "admins" => Ok(Self::Admins),
            Some(("user", name)) if !name.is_empty() => Ok(Self::User(name.to_owned())),
            Some(("team", name)) if !name.is_empty() => Ok(Self::Team(name.to_owned())),
            _ => Err("expected public, admins, user:NAME or team:NAME"),
        }
    }
}

impl Serialize for Grant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.as_flag())
    }
}

/// What `--access` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedAccess {
    pub grants: BTreeSet<Grant>,
    pub access: Access,
}

/// Who may use a stack and its containers, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// Those to whom labels or an own resource control give a container, by the container's ID.
    pub containers: BTreeMap<String, BTreeSet<Grant>>,
    /// Those who may use the Portainer stack.
    pub stack: BTreeSet<Grant>,
    /// What `--access` asks for.
    pub wanted: Option<BTreeSet<Grant>>,
    /// Whether that is so already.
    pub is_as_wanted: bool,
}

impl Uses {
    /// Those who may use the Portainer stack, and not after `--access`.
    pub fn lost(&self) -> Option<BTreeSet<Grant>> {
        let lost = Grant::missing(&self.stack, self.wanted.as_ref()?);
        (!lost.is_empty()).then_some(lost)
    }

    /// Those who may use the Portainer stack, and not a new one, which belongs to administrators or to the user of the API
    /// key. `None` if they are not known: only an administrator sees their names.
    pub fn lost_with_stack(&self, is_administrator: bool) -> Option<BTreeSet<Grant>> {
        if self.wanted.is_some() {
            return Some(self.lost().unwrap_or_default());
        }
        let mut grants = self.stack.iter();
        match (grants.next(), grants.next()) {
            (None, _) => None,
            _ if is_administrator => Some(self.stack.clone()),
            // No other user sees it.
            (Some(Grant::User(_)), None) => Some(BTreeSet::new()),
            _ => None,
        }
    }
}
