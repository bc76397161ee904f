//! Makes every path absolute in the places where Compose resolves one.

use composefile::{
    document::Node,
    interpolate::{Lookup, escaped, interpolate, occurrences},
    path::Base,
    places::{self, Role},
    reader::Reader,
    services::{MountSpec, MountType, is_host_path, split_at_colons},
};

use crate::rewrite::faithful::findings::Findings;

/// Rewrites relative paths and paths that start with `~`, which Portainer would resolve elsewhere (M12).
pub(super) fn relative_paths<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    let here = |name: &str| reader.here(name);
    let root = reader.document.root().into_iter();
    let mut places: Vec<_> = root.flat_map(|root| places::of_root(root, &here)).collect();
    for &service in &reader.services {
        places.extend(places::of_service(service, &here));
    }
    for (node, role) in places {
        match absolute(reader, node, role) {
            Path::Absolute => {}
            Path::Written { text, has_values } => {
                if has_values {
                    let message = "the path contains a variable with a relative value: its current value is written in its place";
                    found.notice(node.line(), message);
                }
                found.set(node, &text);
            }
            Path::NotSimple => found.not_simple(node),
        }
    }
}

/// The text of a mount in short syntax with an absolute path, as [`relative_paths`] writes it. `None` if it cannot.
pub(super) fn absolute_mount(reader: &Reader<'_, '_>, node: Node<'_>) -> Option<String> {
    match absolute(reader, node, Role::Mount) {
        Path::Absolute => node.as_str().map(str::to_owned),
        Path::Written { text, .. } => Some(text),
        Path::NotSimple => None,
    }
}

/// How a path is made absolute.
enum Path {
    /// It is.
    Absolute,
    /// By another text.
    Written {
        text: String,
        /// Whether variables are replaced by their current values.
        has_values: bool,
    },
    /// No text in its place can express it.
    NotSimple,
}

/// The text in a place, made absolute.
fn absolute(reader: &Reader<'_, '_>, node: Node<'_>, role: Role) -> Path {
    let text = node.as_str().unwrap_or_default();
    let (base, here) = (reader.base(), |name: &str| reader.here(name));
    let Ok(read) = interpolate(text, &here) else {
        return Path::Absolute;
    };
    match role {
        Role::Mount => mount(text, &read, &base, &here),
        Role::Host => whole(text, &read, &base.host(&read), &base, &here),
        Role::Local => whole(text, &read, &base.local(&read), &base, &here),
    }
}

fn whole(text: &str, read: &str, expected: &str, base: &Base<'_>, here: Lookup<'_>) -> Path {
    let reads_right = |new: &String| {
        interpolate(new, here).is_ok_and(|read| read == expected && base.host(&read) == expected)
    };
    let template = text.contains('$').then(|| base.template(text)).flatten();
    let is_relative = template.is_some() || read != expected;
    match template.filter(reads_right) {
        Some(text) => Path::Written {
            text,
            has_values: false,
        },
        None if is_relative => Path::Written {
            text: escaped(expected),
            has_values: text.contains('$'),
        },
        None => Path::Absolute,
    }
}

fn mount(text: &str, read: &str, base: &Base<'_>, here: Lookup<'_>) -> Path {
    let before = MountSpec::parse(read);
    let Some((before, source)) = before.and_then(|spec| Some((spec, spec.source?))) else {
        return Path::Absolute;
    };
    let expected = match before.kind {
        MountType::Bind => base.host(source),
        _ => source.to_owned(),
    };
    let reads_right = |new: &String| {
        let read = interpolate(new, here).ok();
        let after = read.as_deref().and_then(MountSpec::parse);
        after.is_some_and(|after| {
            after.kind == before.kind
                && after.source == Some(&expected)
                && (after.target, after.options) == (before.target, before.options)
        })
    };
    // The source before interpolation, if the text has one.
    let written = match split_at_colons(text)[..] {
        [source, _] | [source, _, _] => Some(source),
        _ => None,
    };
    let with = |source: String| written.map(|old| format!("{source}{}", &text[old.len()..]));
    let head = written.filter(|source| text.contains('$') && is_path(source));
    let template = head.and_then(|source| base.template(source));
    if template.is_none() && expected == source {
        return Path::Absolute;
    }
    if let Some(text) = template.and_then(with).filter(reads_right) {
        return Path::Written {
            text,
            has_values: false,
        };
    }
    let whole = || escaped(&format!("{expected}{}", &read[source.len()..]));
    let new = with(escaped(&expected)).filter(reads_right);
    let new = new.or_else(|| Some(whole()).filter(reads_right));
    new.map_or(Path::NotSimple, |new| Path::Written {
        text: new,
        has_values: text.contains('$'),
    })
}

/// Whether the source of a mount in short syntax can be a path, not the name of a volume.
fn is_path(source: &str) -> bool {
    match occurrences(source).into_iter().next() {
        Some(first) if first.span.start == 0 => is_path(&source[first.word]),
        _ => is_host_path(source),
    }
}
