//! The values from env files and label files that are written into services.
#![deny(clippy::disallowed_methods)]

use std::{collections::BTreeMap, rc::Rc};

use composefile::{
    document::{Entry, Node, NodeId},
    interpolate::escaped,
    services::Service,
};

use super::{
    findings::{NewEntry, NewValue, Note, Secrecy},
    sharing::is_own,
};

/// A key that names files, and the key that takes their values instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// The key that names the files.
    pub(super) files: &'static str,
    /// The key that takes the values.
    pub(super) values: &'static str,
    pub(super) plural: &'static str,
    pub(super) why: &'static str,
    singular: &'static str,
}

pub(super) const VARIABLES: Section = Section {
    files: "env_file",
    values: "environment",
    singular: "variable",
    plural: "variables",
    why: "stack.env is the only env file that Portainer can read",
};

pub(super) const LABELS: Section = Section {
    files: "label_file",
    values: "labels",
    singular: "label",
    plural: "labels",
    why: "Portainer cannot read label files",
};

/// The values that are written into one service.
pub(super) struct Addition<'d> {
    pub(super) service: Service<'d>,
    pub(super) values: Rc<[(String, String)]>,
    /// The key that names the service's files.
    pub(super) files: Option<Entry<'d>>,
    /// Whether values come from the running container.
    pub(super) is_kept: bool,
}

pub(super) const KEPT: &str =
    "the running container has these values, but the file does not set them";

impl<'d> Addition<'d> {
    /// The service's current `environment` or `labels`.
    pub(super) fn present(&self, section: &Section) -> Option<Node<'d>> {
        self.service.node.get(section.values)
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
    pub(super) fn note(&self, section: &Section, count: usize) -> Note {
        let Section {
            values,
            singular,
            plural,
            why,
            ..
        } = *section;
        let name = self.service.name;
        let what = match count {
            0 => format!("service {name} gets its own `{values}`"),
            1 => format!("1 {singular} of service {name} is written into `{values}`"),
            count => format!("{count} {plural} of service {name} are written into `{values}`"),
        };
        let why = if self.is_kept { KEPT } else { why };
        Note::new(what, why).with(Secrecy::Secret)
    }

    /// The values as entries of a mapping.
    pub(super) fn entries(&self) -> Vec<NewEntry> {
        let values = self.values.iter();
        values
            .map(|(name, value)| (name.clone(), NewValue::Text(escaped(value))))
            .collect()
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
