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

    /// The version on the first line of what a program prints, and how it is written there without the `v`. `None` if the line is
    /// something else. The patch level is 0 if it is missing.
    pub(super) fn printed(output: &str) -> Option<(Self, &str)> {
        let line = output.trim().lines().next()?.trim();
        let text = line.strip_prefix('v').unwrap_or(line);
        let is_part = |c: char| c.is_ascii_alphanumeric() || ".-+~_".contains(c);
        let mut parts = text.split(['.', '-', '+']).map(str::parse);
        let (major, minor) = (parts.next()?.ok()?, parts.next()?.ok()?);
        let patch = parts.next().and_then(Result::ok).unwrap_or_default();
        let is_version = text.chars().all(is_part) && text.len() <= 64;
        is_version.then_some((Self(major, minor, patch), text))
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

    #[test]
    fn versions_that_a_program_prints_are_read() {
        for (output, expected) in [
            ("2.26.1-4\n", Some("2.26.1")),
            ("v5.6.1", Some("5.6.1")),
            ("2.40.3-desktop.1", Some("2.40.3")),
            ("1.0.6\nusing podman\n", Some("1.0.6")),
            ("Docker version 20.10.24, build 1", None),
            ("", None),
            ("5", None),
        ] {
            let printed = ComposeVersion::printed(output);
            let version = printed.map(|(version, _)| version.to_string());
            assert_eq!(version.as_deref(), expected, "{output}");
        }
    }
}
