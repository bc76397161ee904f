//! Versions of Compose.

use std::fmt;

/// A version of Compose, without its pre-release part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComposeVersion(pub u16, pub u16, pub u16);

impl ComposeVersion {
    /// `2.26.1`, `v2.26.1` or `2.26.1-desktop.1`. `None` for another text.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let mut parts = text.split(['-', '+']).next()?.split('.');
        let mut next = || parts.next()?.parse().ok();
        Some(Self(next()?, next()?, next()?))
    }

    /// Major, minor and patch.
    pub fn release(self) -> (u16, u16, u16) {
        (self.0, self.1, self.2)
    }
}

impl fmt::Display for ComposeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_compose_prints_them() {
        let read = |text| ComposeVersion::parse(text).map(|version| version.to_string());
        for (text, expected) in [
            ("v2.26.1", Some("2.26.1")),
            ("2.40.3-desktop.1", Some("2.40.3")),
            ("dev", None),
            ("", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }
}
