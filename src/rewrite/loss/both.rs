//! One text read twice: as compose does here, and as the manager does after the rewrite.

use std::borrow::Cow;

use crate::rewrite::faithful::names;
use composefile::{
    path::clean,
    places::Role,
    reader::Reader,
    services::{MountSpec, MountType},
};

/// Who reads the original, and who the result.
pub(super) struct Both<'d, 'a> {
    pub(super) here: Reader<'d, 'a>,
    pub(super) there: Reader<'d, 'a>,
}

/// What becomes of a text that is no path.
#[derive(Default)]
pub(super) struct Change {
    /// A `./` in it is replaced (C32), and it reads otherwise for that.
    pub(super) replaced: bool,
    /// The variables for which it reads otherwise.
    pub(super) variables: Vec<String>,
}

impl Both<'_, '_> {
    /// Whether a variable is not to the manager what it is here.
    pub(super) fn differs(&self, name: &str) -> bool {
        self.here.here(name) != self.there.here(name)
    }

    /// A text as the rewrite leaves it (C32).
    pub(super) fn rewritten<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.contains("./") {
            Cow::Owned(text.replace("./", &format!("{}/", self.here.context.stack_dir)))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// A text, or the part of it that counts; what cannot be read here does not change.
    pub(super) fn text(&self, text: &str, part: &dyn Fn(String) -> Option<String>) -> Change {
        let mut change = Change::default();
        if !text.contains("./") && !text.contains('$') {
            return change;
        }
        let read = |reader: &Reader<'_, '_>, text: &str| {
            let read = reader.read(text).ok()?;
            part(read.into_owned())
        };
        let Some(before) = read(&self.here, text) else {
            return change;
        };
        let rewritten = self.rewritten(text);
        let after = read(&self.there, &rewritten);
        if after.as_ref() == Some(&before) {
            return change;
        }
        let rewritten = read(&self.here, &rewritten);
        change.replaced = rewritten != Some(before);
        if rewritten != after {
            names(text, &mut |name, _| {
                if self.differs(name) && !change.variables.iter().any(|known| known == name) {
                    change.variables.push(name.to_owned());
                }
            });
        }
        change
    }

    /// Whether a path leads elsewhere.
    pub(super) fn path_moves(&self, path: &str, role: Role) -> bool {
        self.moves(path, |reader, path| Some(place(reader, role, path)))
    }

    /// Whether the source of a mount in the short syntax leads elsewhere, and what becomes of the rest; of a
    /// volume the name is part of that.
    pub(super) fn mount(&self, text: &str) -> (bool, Change) {
        let source = |reader: &Reader<'_, '_>, read: &str| {
            let spec = MountSpec::parse(read)?;
            let source = spec.source.filter(|_| spec.kind == MountType::Bind)?;
            Some(place(reader, Role::Host, source))
        };
        let before = self.here.read(text).ok();
        let is_bind = before.is_some_and(|read| source(&self.here, &read).is_some());
        let rest = self.text(text, &|read| {
            let spec = MountSpec::parse(&read)?;
            let name = spec.source.filter(|_| !is_bind).unwrap_or_default();
            let options = spec.options.unwrap_or_default();
            Some(format!("{name}\n{}\n{options}", spec.target))
        });
        (is_bind && self.moves(text, source), rest)
    }

    fn moves(&self, text: &str, place: impl Fn(&Reader<'_, '_>, &str) -> Option<String>) -> bool {
        let Ok(before) = self.here.read(text) else {
            return false;
        };
        let rewritten = self.rewritten(text);
        let after = self.there.read(&rewritten).ok();
        place(&self.here, &before) != after.and_then(|after| place(&self.there, &after))
    }
}

/// Where a path leads, the same for every way to write it.
fn place(reader: &Reader<'_, '_>, role: Role, path: &str) -> String {
    let base = reader.base();
    let path = match role {
        Role::Local => base.local(path),
        Role::Mount | Role::Host => base.host(path),
    };
    if path.starts_with('/') {
        clean(&path)
    } else {
        path
    }
}
