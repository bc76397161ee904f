//! The text that makes a path absolute, at each place where compose resolves one.
#![deny(clippy::disallowed_methods)]

use composefile::{
    interpolate::{Lookup, escaped, interpolate},
    path::Base,
    places::Role,
    services::{MountSpec, MountType as MountKind, split_at_colons},
};

/// The new text of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Absolute {
    pub(super) text: String,
    /// Right for the values of today only, and written with them.
    pub(super) today: bool,
}

/// Why a path cannot be made absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No text at its place can say it.
    Colon,
    /// Compose programs disagree on what it is.
    Disputed,
}

/// The text at a place, made absolute: `None` where it is already.
pub(super) fn absolute(
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
        Role::Host if base.is_disputed(&read) => Err(Trouble::Disputed),
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
    // Without variables there is nothing to keep.
    let has_variables = text.contains('$');
    let template = has_variables.then(|| base.template(text)).flatten();
    let is_relative = template.is_some() || read != expected;
    if let Some(text) = template.filter(reads_right) {
        return Some(Absolute { text, today: false });
    }
    is_relative.then(|| Absolute {
        text: escaped(expected),
        today: has_variables,
    })
}

fn mount(
    text: &str,
    read: &str,
    base: &Base<'_>,
    here: Lookup<'_>,
) -> Result<Option<Absolute>, Trouble> {
    // Up to 2.2x, a colon in braces that come out of `$${…}` separates as well.
    let without_braces = read.replace("${", "$(");
    if split_at_colons(&without_braces).len() != split_at_colons(read).len() {
        return Err(Trouble::Disputed);
    }
    let Some(before) = MountSpec::parse(read) else {
        return Ok(None);
    };
    let Some(source) = before.source else {
        return Ok(None);
    };
    let expected = match before.kind {
        MountKind::Bind if base.is_disputed(source) => return Err(Trouble::Disputed),
        MountKind::Bind => base.host(source),
        _ => source.to_owned(),
    };
    let reads_right = |new: &String| {
        let Ok(read) = interpolate(new, here) else {
            return false;
        };
        let after = MountSpec::parse(&read);
        after.is_some_and(|after| {
            after.kind == before.kind
                && after.source == Some(&expected)
                && (after.target, after.options) == (before.target, before.options)
        })
    };
    // The source as it is written, where the text shows one.
    let written = match split_at_colons(text)[..] {
        [source, _] | [source, _, _] => Some(source),
        _ => None,
    };
    let with = |source: String| written.map(|old| format!("{source}{}", &text[old.len()..]));
    // Without variables there is nothing to keep.
    let has_variables = text.contains('$');
    let head = written.filter(|source| has_variables && is_path(source));
    let template = head.and_then(|source| base.template(source));
    let is_relative = template.is_some() || expected != source;
    if let Some(text) = template.and_then(with).filter(reads_right) {
        return Ok(Some(Absolute { text, today: false }));
    }
    if !is_relative {
        return Ok(None);
    }
    let rest = &read[source.len()..];
    let whole = || Some(escaped(&format!("{expected}{rest}")));
    let text = with(escaped(&expected)).filter(reads_right);
    let text = text.or_else(|| whole().filter(reads_right));
    Ok(Some(Absolute {
        text: text.ok_or(Trouble::Colon)?,
        today: has_variables,
    }))
}

/// Whether the source of the short syntax can be a path: not the name of a volume.
fn is_path(source: &str) -> bool {
    use composefile::{interpolate::occurrences, services::is_host_path};
    match occurrences(source).into_iter().next() {
        Some(first) if first.span.start == 0 => is_path(&source[first.word]),
        _ => is_host_path(source),
    }
}
