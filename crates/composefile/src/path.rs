//! Where compose finds a path: against the stack's directory, or the home for `~`.

use super::interpolate::{escaped, occurrences};

/// What paths are resolved against.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// The stack's directory.
    pub dir: &'a str,
    /// The home of whoever started the stack; without one a `~` stays.
    pub home: Option<&'a str>,
}

impl Base<'_> {
    /// A path that the engine reads (bind sources, `file` of secrets and configs): a Windows path is
    /// absolute here too.
    pub fn host(&self, path: &str) -> String {
        let path = self.without_tilde(path);
        if path.starts_with('/') || is_windows_absolute(&path) == Some(true) {
            return path;
        }
        self.joined(&path)
    }

    /// Whether compose programs disagree on what [`Base::host`] is.
    pub fn is_disputed(&self, path: &str) -> bool {
        is_windows_absolute(&self.without_tilde(path)).is_none()
    }

    /// A path that compose itself reads (`env_file`, `develop.watch`).
    pub fn local(&self, path: &str) -> String {
        let path = self.without_tilde(path);
        if path.is_empty() || path.starts_with('/') {
            return path;
        }
        self.joined(&path)
    }

    fn joined(&self, path: &str) -> String {
        below(self.dir, path)
    }

    fn without_tilde(&self, path: &str) -> String {
        match (path.strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) => below(home, rest),
            _ => path.to_owned(),
        }
    }

    /// A path with variables in it, made absolute as far as its text tells; `None` where it is absolute, or
    /// where a variable without a default stands in front.
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
        if path.is_empty() || path.starts_with('/') || is_windows_absolute(path) != Some(false) {
            return None;
        }
        match (path.strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) => Some(clean_template(&format!("{}/{rest}", escaped(home)))),
            _ => Some(clean_template(&format!("{}/{path}", escaped(self.dir)))),
        }
    }
}

/// A path without `.`, `..` and doubled slashes, by its text alone.
pub fn clean(path: &str) -> String {
    without_dots(path.split('/'), |_| true)
}

/// The same of a path below a folder.
fn below(dir: &str, path: &str) -> String {
    without_dots(dir.split('/').chain(path.split('/')), |_| true)
}

/// The same of a path with variables in it: `${…}` is one piece, and no `..` goes above a variable.
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
    let mut path = String::with_capacity(kept.iter().map(|part| part.len() + 1).sum());
    for part in &kept {
        path.push('/');
        path.push_str(part);
    }
    if kept.is_empty() {
        path.push('/');
    }
    path
}

/// The pieces between slashes that are in no variable.
fn parts_of(path: &str) -> Vec<&str> {
    let variables = occurrences(path);
    let mut ahead = variables.iter().peekable();
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in path.match_indices('/') {
        while ahead.next_if(|variable| variable.span.end <= at).is_some() {}
        if ahead
            .peek()
            .is_some_and(|variable| variable.span.contains(&at))
        {
            continue;
        }
        parts.push(&path[start..at]);
        start = at + 1;
    }
    parts.push(&path[start..]);
    parts
}

/// Whether a path is absolute on Windows, and so to compose on every host: `C:\x`, `n:/x`,
/// `\\server\share\x`. `None` where programs disagree: up to 2.2x, what else starts with `\\` is relative, and
/// a drive is a letter.
fn is_windows_absolute(path: &str) -> Option<bool> {
    let is_separator = |c| matches!(c, '/' | '\\');
    if let [drive, b':', b'/' | b'\\', ..] = path.as_bytes() {
        return drive.is_ascii_alphabetic().then_some(true);
    }
    let Some(rest) = path.strip_prefix('\\') else {
        return Some(false);
    };
    let Some(rest) = rest.strip_prefix(is_separator) else {
        return (!rest.starts_with("??")).then_some(false);
    };
    let is_name = |part: &str| !part.is_empty() && !part.starts_with('.');
    let parts: Vec<_> = rest.splitn(3, is_separator).collect();
    (parts.len() == 3 && is_name(parts[0]) && is_name(parts[1])).then_some(true)
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
        for (path, disputed) in [
            (r"\\h\s", true),
            (r"\\.\pipe\x", true),
            (r"\??\c:\x", true),
            ("1:/x", true),
            ("c:/x", false),
            (r"\\h/s\x", false),
            (r"~\\h", false),
            ("//h", false),
        ] {
            assert_eq!(BASE.is_disputed(path), disputed, "{path}");
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
