//! One text, read twice: by Compose on this host, and by Portainer after the rewrite.

use std::borrow::Cow;

use crate::rewrite::faithful::names;
use composefile::{
    path::clean,
    places::Role,
    reader::Reader,
    services::{MountSpec, MountType},
};

/// The reader of the original, and the reader of the result.
pub(super) struct Both<'d, 'a> {
    pub(super) here: Reader<'d, 'a>,
    pub(super) there: Reader<'d, 'a>,
}

/// How the meaning of a text that is not a path changes.
#[derive(Default)]
pub(super) struct Difference {
    /// Whether replacing `./` changes it (C32).
    pub(super) replaced: bool,
    /// The variables that change it.
    pub(super) variables: Vec<String>,
}

impl Both<'_, '_> {
    /// Whether a variable has another value in Portainer.
    pub(super) fn differs(&self, name: &str) -> bool {
        self.here.here(name) != self.there.here(name)
    }

    /// A text after the rewrite (C32).
    pub(super) fn rewritten<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.contains("./") {
            Cow::Owned(text.replace("./", &format!("{}/", self.here.context.stack_dir)))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// The difference in the relevant `part` of a text. A text that cannot be read on this host does not difference.
    pub(super) fn text(&self, text: &str, part: &dyn Fn(String) -> Option<String>) -> Difference {
        let mut difference = Difference::default();
        if !text.contains("./") && !text.contains('$') {
            return difference;
        }
        let read = |reader: &Reader<'_, '_>, text: &str| part(reader.read(text).ok()?.into_owned());
        let Some(before) = read(&self.here, text) else {
            return difference;
        };
        let rewritten = self.rewritten(text);
        let after = read(&self.there, &rewritten);
        if after.as_ref() == Some(&before) {
            return difference;
        }
        let rewritten = read(&self.here, &rewritten);
        difference.replaced = rewritten != Some(before);
        if rewritten != after {
            let differ = names(text).into_iter().filter(|name| self.differs(name));
            difference.variables = differ.map(str::to_owned).collect();
        }
        difference
    }

    /// Whether a path will point to another place.
    pub(super) fn path_moves(&self, path: &str, role: Role) -> bool {
        self.moves(path, |reader, path| Some(place(reader, role, path)))
    }

    /// Whether the source of a mount in short syntax will point to another place, and the difference in the rest. The
    /// name of a volume is part of the rest.
    pub(super) fn mount(&self, text: &str) -> (bool, Difference) {
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

/// The place that a path points to, independent of its spelling.
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
