//! Makes every path absolute in the places where Compose resolves one.

use composefile::{
    document::Node,
    interpolate::{Lookup, escaped, interpolate, occurrences},
    path::Base,
    places::{self, Role},
    reader::Reader,
    services::{MountSpec, MountType, is_host_path, split_at_colons},
};

use crate::rewrite::faithful::{
    Kind,
    findings::{Findings, Secrecy},
    shell::effective_text,
};

/// Rewrites relative paths and paths that start with `~`, which Portainer would resolve elsewhere (M12).
pub(super) fn relative_paths<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    let here = |name: &str| reader.here(name);
    let root = reader.document.root().into_iter();
    let mut places: Vec<_> = root.flat_map(|root| places::of_root(root, &here)).collect();
    for &service in &reader.services {
        places.extend(places::of_service(service, &here));
    }
    for (node, role) in places {
        if let Some(text) = effective_text(reader, node) {
            place(reader, node, role, &text, found);
        }
    }
}

/// The text of a mount in short syntax with an absolute path, as [`relative_paths`] writes it. `None` if it cannot.
pub(super) fn absolute_mount<'d>(reader: &Reader<'d, '_>, node: Node<'d>) -> Option<String> {
    let text = effective_text(reader, node)?;
    let absolute = absolute(&text, Role::Mount, &reader.base(), &|name| {
        reader.here(name)
    });
    let changed = absolute.ok()?.map(|absolute| absolute.text);
    Some(changed.unwrap_or_else(|| text.into_owned()))
}

fn place<'d>(
    reader: &Reader<'d, '_>,
    node: Node<'d>,
    role: Role,
    text: &str,
    found: &mut Findings<'d>,
) {
    match absolute(text, role, &reader.base(), &|name| reader.here(name)) {
        Ok(None) => {}
        Ok(Some(Absolute { text, has_values })) => {
            if has_values {
                let message = "the path contains a variable with a relative value: its current value is written in its place";
                found.notice(node.line(), message);
            }
            found.set(node, &text, Secrecy::Public);
        }
        Err(Trouble(reason, message, hint)) => found.block(node, reason, message, hint),
    }
}

/// The new text of a path.
#[derive(Debug, PartialEq, Eq)]
struct Absolute {
    text: String,
    /// Whether variables are replaced by their current values.
    has_values: bool,
}

/// Why a path cannot be made absolute: the reason, the message and the hint.
struct Trouble(Kind, &'static str, &'static str);

/// No text in its place can express the path. Compose resolves the path, but passes it to the engine in short syntax. The
/// engine rejects that, so a deployment by hand fails too.
const COLON: Trouble = Trouble(
    Kind::NotSimple,
    "the absolute path contains a colon, which Docker reads as a separator in the short mount syntax",
    "write the mount in long syntax (`type: bind`) without `create_host_path`, or move the stack to a directory without a colon",
);

/// Compose versions disagree about the path.
const VERSION_DEPENDENT: Trouble = Trouble(
    Kind::VersionDependent,
    "the meaning of this path depends on the Compose version",
    "avoid Windows shares, drive names that are not a single letter, and colons inside braces",
);

/// The text in a place, made absolute; `None` if it is absolute already.
fn absolute(
    text: &str,
    role: Role,
    base: &Base<'_>,
    here: Lookup<'_>,
) -> Result<Option<Absolute>, Trouble> {
    let Ok(read) = interpolate(text, here) else {
        return Ok(None);
    };
    match role {
        Role::Mount => mount(text, &read, base, here),
        Role::Host if base.is_disputed(&read) => Err(VERSION_DEPENDENT),
        Role::Host => Ok(whole(text, &read, &base.host(&read), base, here)),
        Role::Local => Ok(whole(text, &read, &base.local(&read), base, here)),
    }
}

fn whole(
    text: &str,
    read: &str,
    expected: &str,
    base: &Base<'_>,
    here: Lookup<'_>,
) -> Option<Absolute> {
    let reads_right = |new: &String| {
        interpolate(new, here).is_ok_and(|read| read == expected && base.host(&read) == expected)
    };
    let template = text.contains('$').then(|| base.template(text)).flatten();
    let is_relative = template.is_some() || read != expected;
    if let Some(text) = template.filter(reads_right) {
        return Some(Absolute {
            text,
            has_values: false,
        });
    }
    is_relative.then(|| Absolute {
        text: escaped(expected),
        has_values: text.contains('$'),
    })
}

fn mount(
    text: &str,
    read: &str,
    base: &Base<'_>,
    here: Lookup<'_>,
) -> Result<Option<Absolute>, Trouble> {
    // Compose 2.26 also splits at a colon inside the literal braces of `$${…}`.
    let without_braces = read.replace("${", "$(");
    if split_at_colons(&without_braces).len() != split_at_colons(read).len() {
        return Err(VERSION_DEPENDENT);
    }
    let before = MountSpec::parse(read);
    let Some((before, source)) = before.and_then(|spec| Some((spec, spec.source?))) else {
        return Ok(None);
    };
    let expected = match before.kind {
        MountType::Bind if base.is_disputed(source) => return Err(VERSION_DEPENDENT),
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
    let is_relative = template.is_some() || expected != source;
    if let Some(text) = template.and_then(with).filter(reads_right) {
        return Ok(Some(Absolute {
            text,
            has_values: false,
        }));
    }
    if !is_relative {
        return Ok(None);
    }
    let rest = &read[source.len()..];
    let whole = || Some(escaped(&format!("{expected}{rest}")));
    let only_source = with(escaped(&expected)).filter(reads_right);
    let new = only_source.or_else(|| whole().filter(reads_right));
    Ok(Some(Absolute {
        text: new.ok_or(COLON)?,
        has_values: text.contains('$'),
    }))
}

/// Whether the source of a mount in short syntax can be a path, not the name of a volume.
fn is_path(source: &str) -> bool {
    match occurrences(source).into_iter().next() {
        Some(first) if first.span.start == 0 => is_path(&source[first.word]),
        _ => is_host_path(source),
    }
}
