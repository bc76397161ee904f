//! Resolves paths as Compose does: against the project directory, and `~` against the home directory.
//!
//! ```
//! use composefile::path::Base;
//!
//! let base = Base { dir: "/srv/web", home: Some("/root") };
//! assert_eq!(base.host("../data/"), "/srv/data");
//! assert_eq!(base.host("~/data"), "/root/data");
//! assert_eq!(base.template("${DATA:-./data}/db").as_deref(), Some("${DATA:-/srv/web/data}/db"));
//! ```

use super::interpolate::{escaped, occurrences};

/// The directories that paths are resolved against.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// The project directory, absolute.
    pub dir: &'a str,
    /// The home directory of the user who runs Compose. If it is `None`, a `~` is kept.
    pub home: Option<&'a str>,
}

impl Base<'_> {
    /// Resolves a path that the engine reads: the source of a bind mount, the `file` of a secret or config. An absolute
    /// Windows path is absolute on every host.
    pub fn host(&self, path: &str) -> String {
        let path = self.without_tilde(path);
        if path.starts_with('/') || is_windows_absolute(&path) {
            return path;
        }
        below(self.dir, &path)
    }

    /// Resolves a path that Compose itself reads: an env file, a `path` of `develop.watch`.
    pub fn local(&self, path: &str) -> String {
        let path = self.without_tilde(path);
        if path.is_empty() || path.starts_with('/') {
            return path;
        }
        below(self.dir, &path)
    }

    fn without_tilde(&self, path: &str) -> String {
        match (path.strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) => below(home, rest),
            _ => path.to_owned(),
        }
    }

    /// Makes a path absolute without replacing its variables. Returns `None` if it is absolute, or if it starts with a
    /// variable that has no default.
    pub fn template(&self, path: &str) -> Option<String> {
        let first = occurrences(path).into_iter().next();
        if let Some(first) = first.filter(|first| first.span.start == 0) {
            if !matches!(first.operator, "-" | ":-") {
                return None;
            }
            let word = self.template(&path[first.word.clone()])?;
            let (before, after) = (&path[..first.word.start], &path[first.word.end..]);
            return Some(format!("{before}{word}{after}"));
        }
        if path.is_empty() || path.starts_with('/') || is_windows_absolute(path) {
            return None;
        }
        match (path.strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) => Some(clean_template(&format!("{}/{rest}", escaped(home)))),
            _ => Some(clean_template(&format!("{}/{path}", escaped(self.dir)))),
        }
    }
}

/// Removes `.`, `..` and repeated slashes from a path, by its text alone.
pub fn clean(path: &str) -> String {
    without_dots(path.split('/'), |_| true)
}

/// The cleaned path of `path` in `dir`.
fn below(dir: &str, path: &str) -> String {
    without_dots(dir.split('/').chain(path.split('/')), |_| true)
}

/// Cleans a path that holds variables. A `${…}` is part of one component, and `..` does not remove a variable.
fn clean_template(path: &str) -> String {
    without_dots(parts_of(path), |part| occurrences(part).is_empty())
}

fn without_dots<'p>(
    parts: impl IntoIterator<Item = &'p str>,
    is_name: impl Fn(&str) -> bool,
) -> String {
    let mut kept: Vec<&str> = Vec::with_capacity(16);
    for part in parts {
        match part {
            "" | "." => {}
            ".." if kept.last().is_none_or(|last| is_name(last)) => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

/// The components of a path that holds variables. A slash inside `${…}` does not separate.
fn parts_of(path: &str) -> Vec<&str> {
    let variables = occurrences(path);
    let mut ahead = variables.iter().peekable();
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in path.match_indices('/') {
        while ahead.next_if(|variable| variable.span.end <= at).is_some() {}
        let is_separator = ahead.peek().is_none_or(|next| !next.span.contains(&at));
        if is_separator {
            parts.push(&path[start..at]);
            start = at + 1;
        }
    }
    parts.push(&path[start..]);
    parts
}

/// Whether a path is absolute on Windows, which makes it absolute for Compose on every host: `C:\x`, `n:/x`,
/// `\\server\share\x`.
fn is_windows_absolute(path: &str) -> bool {
    let is_drive =
        matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic());
    let parts = path
        .strip_prefix(r"\\")
        .map(|rest| rest.splitn(3, ['/', '\\']));
    is_drive || parts.is_some_and(|parts| parts.filter(|part| !part.is_empty()).count() > 1)
}

#[cfg(test)]
mod tests {
    use super::{Base, clean_template};

    const BASE: Base = Base {
        dir: "/s/w$b",
        home: Some("/home/u"),
    };

    #[test]
    fn cleaned() {
        for (path, expected) in [
            ("/a/./b//c/../d/", "/a/b/d"),
            ("/../..", "/"),
            ("/a/${X:-../y}/../z", "/a/${X:-../y}/../z"),
            ("/a/$$x/..", "/a"),
            ("/a/$x/..", "/a/$x/.."),
        ] {
            assert_eq!(clean_template(path), expected);
        }
    }

    #[test]
    fn resolved() {
        for (path, expected) in [
            (".", "/s/w$b"),
            ("..", "/s"),
            ("a/../../b/", "/s/b"),
            ("~", "/home/u"),
            ("~x", "/home/u/x"),
            ("~/../v", "/home/v"),
            ("/a/../b", "/a/../b"),
            ("n:/n", "n:/n"),
            ("n:n", "/s/w$b/n:n"),
            (r"\\h\s\", r"\\h\s\"),
            (r"\x", r"/s/w$b/\x"),
        ] {
            assert_eq!(BASE.host(path), expected, "{path}");
        }
        assert_eq!(BASE.local(""), "");
        assert_eq!(BASE.local("n:/n"), "/s/w$b/n:/n");
    }

    #[test]
    fn templates() {
        for (path, expected) in [
            ("./$X/y/", Some("/s/w$$b/$X/y")),
            ("../$X", Some("/s/$X")),
            ("${X:-./d}/db", Some("${X:-/s/w$$b/d}/db")),
            ("${X:-${Y-~/d}}", Some("${X:-${Y-/home/u/d}}")),
            ("${X}/d", None),
            ("/x", None),
            ("${X:-/d}/d", None),
        ] {
            assert_eq!(BASE.template(path).as_deref(), expected, "{path}");
        }
    }
}
