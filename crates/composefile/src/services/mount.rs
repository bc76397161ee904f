//! Mounts in short syntax, `source:target:options`.

/// A mount of a service.
///
/// ```
/// use composefile::services::{MountSpec, MountType};
///
/// let mount = MountSpec::parse("${DATA:-./data}:/var/lib/db:ro").expect("a mount");
/// assert_eq!(mount.source, Some("${DATA:-./data}"));
/// assert_eq!(mount.options, Some("ro"));
/// // The type depends on the text alone: replace variables first.
/// assert_eq!(mount.kind, MountType::Volume);
/// assert_eq!(MountSpec::parse("./data:/var/lib/db").map(|mount| mount.kind), Some(MountType::Bind));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountSpec<'t> {
    /// What the source is.
    pub kind: MountType,
    /// A host path or the name of a volume; `None` for an anonymous volume.
    pub source: Option<&'t str>,
    /// The path in the container.
    pub target: &'t str,
    /// The options after the second colon: `ro`, `z`, …
    pub options: Option<&'t str>,
}

/// The type of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountType {
    /// A host path.
    Bind,
    /// A volume, named or anonymous.
    Volume,
    /// `tmpfs`, `npipe`, `cluster`, `image`.
    Other,
}

impl MountType {
    /// The type that the `type` key of the long syntax names.
    pub fn named(kind: &str) -> Self {
        match kind {
            "bind" => Self::Bind,
            "volume" => Self::Volume,
            _ => Self::Other,
        }
    }
}

impl<'t> MountSpec<'t> {
    /// Parses the short syntax. Colons inside `${…}` and after a drive letter are not separators. Returns `None`
    /// for a text that Compose rejects: one with an empty part or with more than three parts.
    pub fn parse(spec: &'t str) -> Option<Self> {
        let parts = if spec.len() <= 2 {
            vec![spec]
        } else {
            split_at_colons(spec)
        };
        if parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        let (source, target, options) = match parts[..] {
            [target] => (None, target, None),
            [source, target] => (Some(source), target, None),
            [source, target, options] => (Some(source), target, Some(options)),
            _ => return None,
        };
        Some(Self {
            kind: match source {
                Some(path) if is_host_path(path) => MountType::Bind,
                _ => MountType::Volume,
            },
            source,
            target,
            options,
        })
    }
}

/// Whether the source of a mount in short syntax is a host path: it starts with `.`, `/`, `~`, `\\` or a drive
/// letter. Compose takes a bare `dir/file` for the name of a volume and rejects it.
pub fn is_host_path(source: &str) -> bool {
    let drive = source.split_once(':').map(|(drive, _)| drive);
    source.starts_with(['.', '/', '~']) || source.starts_with(r"\\") || drive.is_some_and(is_drive)
}

/// Splits a mount in short syntax at its separators.
pub fn split_at_colons(spec: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut open_braces = 0usize;
    for (at, c) in spec.char_indices() {
        let part = &spec[start..at];
        match c {
            '{' if part.ends_with('$') => open_braces += 1,
            '}' => open_braces = open_braces.saturating_sub(1),
            ':' if open_braces == 0 && !is_drive(part) => {
                parts.push(part);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&spec[start..]);
    parts
}

fn is_drive(part: &str) -> bool {
    let mut chars = part.chars();
    chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
}
