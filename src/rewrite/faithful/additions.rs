//! The variables from env files and containers that are written into services.
#![deny(clippy::disallowed_methods)]

use std::collections::BTreeMap;

use composefile::{
    document::{Entry, Node, NodeId},
    services::Service,
};

use super::{
    findings::{Note, Secrecy},
    sharing::is_own,
};

/// The values that are written into one service.
pub(super) struct Addition<'d> {
    pub(super) service: Service<'d>,
    pub(super) values: BTreeMap<String, String>,
    /// The key that names the service's files.
    pub(super) files: Option<Entry<'d>>,
}

impl<'d> Addition<'d> {
    /// The service's current `environment`.
    pub(super) fn present(&self) -> Option<Node<'d>> {
        self.service.node.get("environment")
    }

    /// The mapping that gets the values: the one that names the files, otherwise the service's own.
    pub(super) fn mapping(&self) -> Option<Node<'d>> {
        let own = self.service.node.resolved();
        let Some(entry) = self.files else {
            return Some(own);
        };
        own.mappings().find(|mapping| is_own(*mapping, entry))
    }

    /// A note about `count` of its values.
    pub(super) fn note(&self, count: usize) -> Note {
        let name = self.service.name;
        let what = match count {
            1 => format!("1 variable of service {name} is written into `environment`"),
            count => format!("{count} variables of service {name} are written into `environment`"),
        };
        Note::new(what).with(Secrecy::Secret)
    }
}

/// A key that names files and is removed.
#[derive(Clone, Copy)]
pub(super) struct Dropped<'d> {
    pub(super) entry: Entry<'d>,
    /// Whether it overrides a merged key of the same name. Without it, the merged key would take effect.
    pub(super) overrides: bool,
}

/// The dropped keys, each once.
pub(super) type AllDropped<'d> = BTreeMap<NodeId, Dropped<'d>>;
