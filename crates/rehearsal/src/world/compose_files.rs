//! The Compose files of a project, and what is around them.

use std::{collections::BTreeMap, path::Path};

use composefile::{dotenv, path::Base};

/// The files that Compose reads, and their surroundings.
#[derive(Clone, Copy)]
pub struct ComposeFiles<'f> {
    /// The name of the project; `None` if Compose finds it by itself.
    pub project: Option<&'f str>,
    /// The directory that relative paths start from.
    pub folder: &'f str,
    /// The Compose files, of which each overrides those before it. If empty, Compose finds one by itself.
    pub files: &'f [String],
    /// The env files. If empty, Compose reads `.env`.
    pub env_files: &'f [String],
    /// The variables of the shell.
    pub shell: &'f BTreeMap<String, String>,
    /// Whether variables are replaced.
    pub interpolates: bool,
    /// What `~` stands for.
    pub home: &'f str,
    /// Reads a file.
    pub read: &'f dyn Fn(&str) -> Option<String>,
}

/// The names of the files that Compose finds by itself, in the order in which it looks for them.
const FOUND: [&str; 6] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
    "podman-compose.yml",
    "podman-compose.yaml",
];

impl ComposeFiles<'_> {
    /// Makes a path absolute by the rules of Compose: `~` is the home directory. An absolute path stays as it is written.
    pub(super) fn absolute(&self, path: &str) -> String {
        // As on Windows: Compose leaves it as it is.
        if path.get(1..2) == Some(":") {
            return path.to_owned();
        }
        let (dir, home) = (self.folder, Some(self.home));
        Base { dir, home }.host(path)
    }

    /// The text of a file that must exist.
    pub(super) fn open(&self, path: &str) -> Result<String, String> {
        (self.read)(path).ok_or_else(|| format!("open {path}: no such file or directory"))
    }

    /// The paths of files in the directory.
    fn in_folder(&self, files: &[String]) -> Vec<String> {
        let folder = Path::new(self.folder);
        let paths = files.iter().map(|path| folder.join(path));
        paths.map(|path| path.display().to_string()).collect()
    }

    /// The paths of the Compose files.
    pub(super) fn paths(&self) -> Result<Vec<String>, String> {
        if !self.files.is_empty() {
            return Ok(self.in_folder(self.files));
        }
        let mut found = self.in_folder(&FOUND.map(str::to_owned)).into_iter();
        let found = found.find(|path| (self.read)(path).is_some());
        let missing = || format!("no configuration file in {}", self.folder);
        found.map(|path| vec![path]).ok_or_else(missing)
    }

    /// The variables of the env files and of the shell.
    pub(super) fn variables(&self) -> Result<BTreeMap<String, String>, String> {
        let mut given = BTreeMap::new();
        let default = [".env".to_owned()];
        let files = match self.env_files {
            [] => &default[..],
            files => files,
        };
        for path in self.in_folder(files) {
            let text = (self.read)(&path).unwrap_or_default();
            given.extend(variables(&text, &path, &given)?);
        }
        given.extend(self.shell.clone());
        Ok(given)
    }
}

/// Reads the variables of an env file by the rules of Compose (M08).
pub(super) fn variables(
    text: &str,
    path: &str,
    known: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    dotenv::parse(text, &|name: &str| known.get(name).cloned())
        .map(|read| read.into_iter().collect())
        .map_err(|error| format!("failed to read {path}: {error}"))
}
