//! Whether a path means the same place to the manager as it meant to compose here.

use std::borrow::Cow;

use crate::compose::{
    interpolate::{Lookup, interpolate},
    services::{MountKind, MountSpec, starts_with_drive},
};

/// What paths are resolved against.
pub(super) struct Places<'a> {
    pub(super) stack_dir: &'a str,
    /// What the stack's `.env` sets.
    pub(super) variables: Lookup<'a>,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// The same for whoever reads it.
    Absolute(String),
    /// Below the reader's home.
    Home,
    /// Below the reader's project folder.
    Relative(String),
}

impl Places<'_> {
    /// A path as the rewrite leaves it (C32).
    pub(super) fn replaced(&self, path: &str) -> String {
        path.replace("./", &format!("{}/", self.stack_dir))
    }

    /// Whether the manager finds another place behind a path. A path that cannot be interpolated is none
    /// to begin with.
    pub(super) fn path_moves(&self, path: &str) -> bool {
        let (Some(before), Some(after)) = (self.before(path), self.after(path)) else {
            return false;
        };
        self.moves(&before, &after)
    }

    /// The same for the source of the short syntax, if it is a path of the host.
    pub(super) fn mount_moves(&self, spec: &str) -> bool {
        let (Some(before), Some(after)) = (self.before(spec), self.after(spec)) else {
            return false;
        };
        let Some(old) = MountSpec::parse(&before).filter(|mount| mount.kind == MountKind::Bind)
        else {
            return false;
        };
        let new = MountSpec::parse(&after).filter(|mount| mount.kind == MountKind::Bind);
        match (old.source, new.and_then(|mount| mount.source)) {
            (Some(before), Some(after)) => self.moves(before, after),
            _ => true,
        }
    }

    /// A text as compose reads it here. `PWD`, `HOME` and `USER` are what every shell sets.
    pub(super) fn before(&self, text: &str) -> Option<String> {
        let lookup = |name: &str| (self.variables)(name).or_else(|| self.of_the_shell(name));
        interpolate(text, &lookup).ok().map(Cow::into_owned)
    }

    /// A text as the manager reads it after the rewrite.
    fn after(&self, text: &str) -> Option<String> {
        let replaced = self.replaced(text);
        interpolate(&replaced, self.variables)
            .ok()
            .map(Cow::into_owned)
    }

    /// Of a home and a user only matters that they are not the manager's.
    fn of_the_shell(&self, name: &str) -> Option<String> {
        match name {
            "PWD" => Some(self.stack_dir.to_owned()),
            "HOME" => Some("~".to_owned()),
            "USER" => Some("\u{0}user".to_owned()),
            _ => None,
        }
    }

    fn moves(&self, before: &str, after: &str) -> bool {
        match (Place::of(before), Place::of(after)) {
            (Place::Absolute(before), Place::Absolute(after)) => before != after,
            (Place::Relative(before), Place::Absolute(after)) => {
                normalized(&format!("{}/{before}", self.stack_dir)) != after
            }
            (_, Place::Home | Place::Relative(_)) | (Place::Home, _) => true,
        }
    }
}

impl Place {
    fn of(path: &str) -> Self {
        if path.starts_with('/') {
            Self::Absolute(normalized(path))
        } else if starts_with_drive(path) || path.starts_with(r"\\") {
            Self::Absolute(path.to_owned())
        } else if path.starts_with('~') {
            Self::Home
        } else {
            Self::Relative(path.to_owned())
        }
    }
}

/// An absolute path without `.`, `..` and doubled slashes, by its text alone.
fn normalized(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
