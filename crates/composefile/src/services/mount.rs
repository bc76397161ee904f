//! One volume of a service: `source:target:options`.

/// What is mounted where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountSpec<'t> {
    /// What kind of thing the source is.
    pub kind: MountType,
    /// A host path or a volume's name; `None` for an anonymous volume.
    pub source: Option<&'t str>,
    /// The path in the container.
    pub target: &'t str,
    /// What stands behind the second colon: `ro`, `z`, …
    pub options: Option<&'t str>,
}

/// What kind of thing is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountType {
    /// A path of the host.
    Bind,
    /// A volume, named or anonymous.
    Volume,
    /// `tmpfs`, `npipe`, `cluster`, `image`.
    Other,
}

impl MountType {
    /// The kind that the long syntax's `type` names.
    pub fn named(kind: &str) -> Self {
        match kind {
            "bind" => Self::Bind,
            "volume" => Self::Volume,
            _ => Self::Other,
        }
    }
}

impl<'t> MountSpec<'t> {
    /// Reads the short syntax. Colons inside `${…}` and after a drive letter separate nothing. `None`
    /// where compose finds no volume in it: an empty part, or more than three.
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

/// Whether compose takes the source of the short syntax for a path of the host: it starts with `.`, `/`,
/// `~`, `\\` or a drive letter. A bare `dir/file` is a volume's name to it, which it then refuses.
pub fn is_host_path(source: &str) -> bool {
    source.starts_with(['.', '/', '~']) || source.starts_with(r"\\") || starts_with_drive(source)
}

/// Whether a path starts with a drive letter, which compose takes for absolute.
fn starts_with_drive(source: &str) -> bool {
    let mut chars = source.chars();
    chars.next().is_some_and(char::is_alphabetic) && chars.next() == Some(':')
}

/// The parts of the short syntax.
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
