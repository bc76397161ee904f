//! Which files the services of a stack come from.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use composefile::{
    document::{Document, Node},
    interpolate::{Lookup, interpolate},
    path::clean,
    services::{Service, includes, one_or_many, services},
};

use super::Files;

/// The most levels of files that name other files.
const MAX_DEPTH: usize = 32;

/// The Compose files of each service, in the order in which Compose reads them.
pub type Origins = BTreeMap<String, Vec<String>>;

/// The files that Compose reads for a stack.
#[derive(Debug, Default)]
pub struct FilesRead {
    pub origins: Origins,
    /// The paths of the env files of services and of included files, whether they exist or not.
    pub env_files: BTreeSet<PathBuf>,
}

impl Files {
    /// Finds the files that define each service, the files that they include, and the files of the services that it
    /// extends. Files that cannot be read are left out. The paths of origins below `dir` are relative to it. `lookup` gives
    /// the values of variables in paths.
    pub fn read(&self, dir: &Path, lookup: Lookup) -> FilesRead {
        let mut reading = Reading {
            dir,
            lookup,
            found: FilesRead::default(),
        };
        for file in &self.compose {
            reading.file(&dir.join(file), 0);
        }
        reading.found
    }
}

struct Reading<'a> {
    dir: &'a Path,
    lookup: Lookup<'a>,
    found: FilesRead,
}

impl Reading<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        let Ok(text) = fs::read_to_string(path) else {
            return;
        };
        let Ok(document) = Document::parse(&text) else {
            return;
        };
        if depth < MAX_DEPTH {
            for included in includes(&document) {
                let included = self.named(path, included.path);
                self.found.env_files.insert(included.with_file_name(".env"));
                self.file(&included, depth + 1);
            }
        }
        let items = document.get("include").into_iter().flat_map(Node::items);
        for item in items {
            let directory = item.get("project_directory").and_then(Node::as_str);
            let files = item.get("env_file").into_iter().flat_map(one_or_many);
            let files = files
                .filter_map(Node::as_str)
                .map(|file| self.named(path, file));
            let own = directory.map(|directory| self.named(path, directory).join(".env"));
            let files: Vec<PathBuf> = files.chain(own).collect();
            self.found.env_files.extend(files);
        }
        for service in services(&document) {
            self.service(service.name, path, &service, depth);
        }
    }

    /// Adds the file of a service, and those of the services that it extends.
    fn service(&mut self, name: &str, path: &Path, service: &Service, depth: usize) {
        self.add(name, path);
        for file in service.env_files() {
            let file = self.named(path, file.path);
            self.found.env_files.insert(file);
        }
        let extends = service.node.get("extends");
        let (Some(extends), Some(file)) = (extends, service.extends_file()) else {
            return;
        };
        let base = self.named(path, file.path);
        let Ok(text) = fs::read_to_string(&base) else {
            return;
        };
        let Ok(document) = Document::parse(&text) else {
            return;
        };
        let extended = extends.get("service").and_then(Node::as_str);
        let services = services(&document);
        let extended = services.iter().find(|one| Some(one.name) == extended);
        if let Some(extended) = extended.filter(|_| depth < MAX_DEPTH) {
            self.service(name, &base, extended, depth + 1);
        }
    }

    fn add(&mut self, name: &str, path: &Path) {
        let path = path.strip_prefix(self.dir).unwrap_or(path);
        let path = path.display().to_string();
        let files = self.found.origins.entry(name.to_owned()).or_default();
        if !files.contains(&path) {
            files.push(path);
        }
    }

    /// The path of a file that the file at `path` names.
    fn named(&self, path: &Path, named: &str) -> PathBuf {
        let text = interpolate(named, self.lookup).unwrap_or(named.into());
        let from = path.parent().unwrap_or(self.dir);
        PathBuf::from(clean(&from.join(text.as_ref()).display().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_each_service_are_found() {
        let root = tempfile::tempdir().expect("a folder");
        let dir = root.path().join("web");
        for (file, text) in [
            (
                "web/compose.yaml",
                "include: [{path: [$APP/compose.yaml], env_file: gone.env}, gone.yaml]\nservices:\n  a: {extends: {file: ../base.yaml, service: b}}\n",
            ),
            ("web/compose.override.yaml", "services: {a: {}, d: {}}\n"),
            (
                "web/app/compose.yaml",
                "include: [compose.yaml]\nservices: {c: {image: x}}\n",
            ),
            (
                "base.yaml",
                "services:\n  b: {extends: {file: web/app/more.yaml, service: e}}\n",
            ),
            ("web/app/more.yaml", "services: {e: {image: x}}\n"),
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let files = Files {
            compose: ["compose.yaml", "compose.override.yaml"]
                .map(str::to_owned)
                .into(),
            env: Vec::new(),
        };
        let found = files.read(&dir, &|name| (name == "APP").then(|| "app".to_owned()));
        let base = root.path().join("base.yaml").display().to_string();
        let expected = [
            (
                "a",
                vec![
                    "compose.yaml",
                    &base,
                    "app/more.yaml",
                    "compose.override.yaml",
                ],
            ),
            ("c", vec!["app/compose.yaml"]),
            ("d", vec!["compose.override.yaml"]),
        ];
        let expected = expected.map(|(name, files)| {
            let files = files.into_iter().map(str::to_owned).collect();
            (name.to_owned(), files)
        });
        assert_eq!(found.origins, Origins::from(expected));
        let env_files = ["app/.env", "gone.env"].map(|file| dir.join(file));
        assert!(env_files.iter().all(|file| found.env_files.contains(file)));
    }
}
