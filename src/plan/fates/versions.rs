//! Which Compose each version of Portainer has (N18), and what it does.

use std::{collections::BTreeSet, ops::RangeInclusive};

use crate::{
    compose::{ComposeVersion, Dialect},
    model::PORTAINER_FOLDERS,
    plan::Before,
};

/// The Compose that Portainer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortainerCompose {
    pub first: ComposeVersion,
    /// Equal to `first` if the version is known exactly.
    pub last: ComposeVersion,
    /// Whether it is the library in Portainer's own process, not a program.
    pub is_library: bool,
    /// Whether it follows the variables of a stack.
    pub follows: Followed,
}

/// Whether Compose in Portainer follows variables of a stack (N14). `None` is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    /// `COMPOSE_PROFILES`
    pub profiles: Option<bool>,
    /// `COMPOSE_REMOVE_ORPHANS`
    pub orphans: Option<bool>,
}

/// The programs that Portainer's images contain: the first Portainer version, and the version of Compose.
const BUNDLED: [((u16, u16, u16), ComposeVersion); 5] = [
    ((2, 18, 4), ComposeVersion(2, 17, 2)),
    ((2, 19, 0), ComposeVersion(2, 20, 2)),
    ((2, 20, 0), ComposeVersion(2, 24, 6)),
    ((2, 20, 2), ComposeVersion(2, 26, 1)),
    ((2, 21, 0), ComposeVersion(2, 29, 2)),
];
/// The first program that reads `COMPOSE_REMOVE_ORPHANS` from its env file (N14).
const FOLLOWS_ORPHANS: ComposeVersion = ComposeVersion(2, 27, 0);
/// The first program that removes the containers of a service with the highest numbers. Earlier ones remove the newest.
const REMOVES_BY_NUMBER: ComposeVersion = ComposeVersion(2, 25, 0);
/// The first Portainer version with the library, and the first and the last version of the library (N18).
const FIRST_WITH_LIBRARY: (u16, u16, u16) = (2, 24, 0);
const LIBRARY: (ComposeVersion, ComposeVersion) =
    (ComposeVersion(2, 29, 7), ComposeVersion(2, 40, 3));
/// The newest known Portainer version, without the patch level.
const NEWEST: (u16, u16) = (2, 45);

impl PortainerCompose {
    /// A program of an exact version.
    pub fn exactly(version: ComposeVersion) -> Self {
        Self {
            first: version,
            last: version,
            is_library: false,
            follows: Followed {
                profiles: Some(true),
                orphans: Some(version >= FOLLOWS_ORPHANS),
            },
        }
    }

    /// The same program, or the one of this version.
    #[must_use]
    pub fn or(mut self, version: ComposeVersion) -> Self {
        self.first = self.first.min(version);
        self.last = self.last.max(version);
        if self.follows.orphans != Self::exactly(version).follows.orphans {
            self.follows.orphans = None;
        }
        self
    }

    /// How it hashes a service: in one of these dialects.
    pub fn dialects(self) -> BTreeSet<Dialect> {
        Dialect::between(self.first, self.last)
    }

    /// What it does to the dependents of a service that it recreates.
    pub fn dependents(self) -> Dependents {
        match (self.first, self.last) {
            (first, last)
                if RECREATES_DEPENDENTS.contains(&first) && last <= *RECREATES_DEPENDENTS.end() =>
            {
                Dependents::Recreated
            }
            (first, last) if first != last => Dependents::Unknown,
            (_, version) if version == LIBRARY.1 => Dependents::RestartedIfAsked,
            _ => Dependents::Unknown,
        }
    }

    /// Whether it recreates a container that lacks a network or a volume of its service (N05). `None` is unknown.
    pub fn compares_mounts(self) -> Option<bool> {
        self.does_since(COMPARES_MOUNTS)
    }

    /// Whether it removes the containers with the highest numbers if a service gets fewer.
    pub fn removes_by_number(self) -> bool {
        self.first >= REMOVES_BY_NUMBER
    }

    /// Whether it compares the definitions of networks and volumes with those that exist (N13). `None` is unknown.
    pub fn compares_definitions(self) -> Option<bool> {
        self.does_since(COMPARES_DEFINITIONS)
    }

    /// Whether it does what this version began to do.
    fn does_since(self, version: ComposeVersion) -> Option<bool> {
        let does = self.last >= version;
        (does == (self.first >= version)).then_some(does)
    }

    /// The Compose of a Portainer version, such as `2.21.4`. `None` for a version that is not known.
    pub fn of(portainer: &str) -> Option<Self> {
        let version @ (major, minor, _) = ComposeVersion::parse(portainer)?.release();
        if (major, minor) > NEWEST {
            return None;
        }
        if version >= FIRST_WITH_LIBRARY {
            let (first, last) = LIBRARY;
            let is_last = matches!(version, (2, 33, 7..) | (2, 38.., _));
            let since = |first| (version >= first).then_some(true);
            let (profiles, orphans) = match version {
                (2, 24, _) => (Some(false), Some(false)),
                _ => (since((2, 33, 6)), since((2, 43, 0))),
            };
            return Some(Self {
                first: if is_last { last } else { first },
                last,
                is_library: true,
                follows: Followed { profiles, orphans },
            });
        }
        let bundled = BUNDLED.iter().rev().find(|(from, _)| *from <= version)?;
        Some(Self::exactly(bundled.1))
    }
}

/// Whether a Portainer version creates a stack over running containers while another environment has a stack of that name
/// (M20); `None` if that is unknown.
pub fn takes_name_of_other_host(portainer: &str) -> Option<bool> {
    let ComposeVersion(major, minor, _) = ComposeVersion::parse(portainer)?;
    match (major, minor) {
        (..=1, _) | (2, ..=23) => Some(false),
        (2, 24..=42) => None,
        _ => Some(true),
    }
}

/// The versions that recreate the dependents of a service that they recreate (N05).
const RECREATES_DEPENDENTS: RangeInclusive<ComposeVersion> =
    ComposeVersion(2, 26, 1)..=ComposeVersion(2, 29, 2);

/// The first version that compares networks, and with 2.32 volumes, with their definitions (N13).
const COMPARES_DEFINITIONS: ComposeVersion = ComposeVersion(2, 31, 0);

/// The first version that compares the networks and volumes of a container with those of its service (N05).
const COMPARES_MOUNTS: ComposeVersion = ComposeVersion(2, 32, 0);

/// What happens to the dependents of a service that is recreated (N05).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependents {
    Recreated,
    /// Those with `restart: true`, which `links` implies.
    RestartedIfAsked,
    Unknown,
}

impl Before {
    /// Portainer's Compose: as Portainer's version tells, or an older one that a container says it started it.
    pub fn portainer_compose(&self, tool: &str) -> Option<PortainerCompose> {
        let version = self.remote.version.as_deref();
        let known = version.and_then(PortainerCompose::of);
        if known.is_some_and(|known| known.is_library) {
            return known;
        }
        // Several versions: Portainer was upgraded, and the label does not say when.
        let versions: BTreeSet<ComposeVersion> = self
            .host
            .others()
            .filter_map(|other| {
                let label = |name: &str| other.compose_label(tool, name);
                let is_portainers = label("project.working_dir")?.starts_with(PORTAINER_FOLDERS);
                ComposeVersion::parse(label("version")?).filter(|_| is_portainers)
            })
            .collect();
        match versions.iter().max() {
            // Portainer may have been upgraded since it started that container.
            Some(&version) if versions.len() == 1 => Some(match known {
                Some(known) => known.or(version),
                None => PortainerCompose::exactly(version),
            }),
            _ => known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> ComposeVersion {
        ComposeVersion::parse(text).expect(text)
    }

    #[test]
    fn n05_what_happens_to_dependents_depends_on_the_version() {
        let exactly = |text| PortainerCompose::exactly(version(text));
        let dependents = |compose: PortainerCompose| compose.dependents();
        assert_eq!(dependents(exactly("2.26.1")), Dependents::Recreated);
        assert_eq!(dependents(exactly("2.40.3")), Dependents::RestartedIfAsked);
        assert_eq!(dependents(exactly("2.29.2")), Dependents::Recreated);
        let both = exactly("2.26.1").or(version("2.29.2"));
        assert_eq!(dependents(both), Dependents::Recreated);
        assert_eq!(dependents(exactly("2.30.0")), Dependents::Unknown);
        assert_eq!(both.compares_mounts(), Some(false));
        let either = exactly("2.26.1").or(version("2.40.3"));
        assert_eq!(dependents(either), Dependents::Unknown);
        assert_eq!(either.compares_mounts(), None);
        assert_eq!(exactly("2.40.3").compares_mounts(), Some(true));
    }

    #[test]
    fn n18_portainers_compose_follows_from_its_version() {
        let found = |portainer: &str| {
            let compose = PortainerCompose::of(portainer)?;
            Some((
                compose.first.to_string(),
                compose.last.to_string(),
                compose.is_library,
            ))
        };
        let known = |first: &str, last: &str, is_library| {
            Some((first.to_owned(), last.to_owned(), is_library))
        };
        let between = known("2.29.7", "2.40.3", true);
        let last = known("2.40.3", "2.40.3", true);
        for (portainer, expected) in [
            ("1.24.0", None),
            ("2.20.1", known("2.24.6", "2.24.6", false)),
            ("2.23.0", known("2.29.2", "2.29.2", false)),
            ("2.24.0", between.clone()),
            ("2.33.6", between.clone()),
            ("2.33.7", last.clone()),
            ("2.37.0", between),
            ("2.38.0", last.clone()),
            ("2.39.1", last.clone()),
            ("2.45.1", last),
            ("2.46.0", None),
        ] {
            assert_eq!(found(portainer), expected, "{portainer}");
        }
    }

    #[test]
    fn n14_which_variables_steer_compose_depends_on_the_version() {
        for (portainer, profiles, orphans) in [
            ("2.20.3", Some(true), Some(false)),
            ("2.23.0", Some(true), Some(true)),
            ("2.24.1", Some(false), Some(false)),
            ("2.27.0", None, None),
            ("2.33.6", Some(true), None),
            ("2.43.0", Some(true), Some(true)),
        ] {
            let follows = PortainerCompose::of(portainer).expect(portainer).follows;
            assert_eq!(follows, Followed { profiles, orphans }, "{portainer}");
        }
        let old = PortainerCompose::of("2.23.0").expect("known");
        assert_eq!(old.or(version("2.26.1")).follows.orphans, None);
    }
}
