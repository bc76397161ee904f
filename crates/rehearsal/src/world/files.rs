//! Paths on the host.

use super::state::World;

/// Paths that exist on every host and are often mounted.
const ALWAYS: &str = "/dev /etc/hosts /etc/localtime /etc/timezone /proc /sys /tmp /var/lib/docker \
                      /var/run/docker.sock";

impl World {
    /// Adds a directory to the host.
    pub(crate) fn add_directory(&mut self, path: &str) {
        self.host.entry(path.to_owned()).or_default();
    }

    /// Adds a file to the host.
    pub(crate) fn add_file(&mut self, path: &str, text: &str) {
        self.host.insert(path.to_owned(), Some(text.to_owned()));
    }

    /// Whether a path, or anything below it, exists.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        let inside = |known: &str| known == path || known.starts_with(&below);
        let next = self.host.range(below.clone()..).next();
        ALWAYS.split(' ').any(inside)
            || self.host.contains_key(path)
            || next.is_some_and(|(known, _)| inside(known))
    }

    /// The text of a file of the host.
    pub fn read_host(&self, path: &str) -> Option<&str> {
        self.host.get(path)?.as_deref()
    }
}
