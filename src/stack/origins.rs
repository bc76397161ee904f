//! The files that Compose reads for a stack: each is read here first, or refused (B25, B29).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use composefile::{
    document::{Document, Node},
    dotenv,
    interpolate::{interpolate, occurrences},
    path::Base,
    reader::NAME_FILES,
    services::{Service, one_or_many, services},
};

use super::{Files, Stack, encoding, shell, unreadable};
use crate::{disk, failure::Failure};

/// The most levels of files that name other files.
const MAX_DEPTH: usize = 32;

/// The most bytes of all files together.
const MOST: usize = 64 << 20;

/// What each file counts at least: thousands of small files take time, too.
const LEAST: usize = 64 << 10;

/// What each port of a range counts: Compose prints an entry for each.
const PORT: usize = 100;

/// What each node counts that an alias repeats.
const NODE: usize = 32;

/// The files of each service, in the order in which Compose reads them. The paths below the stack's directory are relative to it.
pub type Origins = BTreeMap<String, Vec<String>>;

/// The variables of env files.
type Variables = Vec<(String, String)>;

/// The files that Compose reads for a stack.
pub struct FilesRead {
    /// The Compose files of each service.
    pub origins: Origins,
    /// Its env files, without `.env`.
    pub env_files_of: Origins,
    /// Each of them that exists.
    pub all: BTreeMap<PathBuf, Arc<[u8]>>,
    /// The texts of the env files of services and of included files that exist.
    pub env_files: BTreeMap<PathBuf, Arc<[u8]>>,
    /// The variables of the project's env files; an error if one of them cannot be parsed.
    pub variables: Result<Variables>,
}

impl Stack {
    /// Reads everything that Compose would open for these files: the files that define each service, the files that they
    /// include, those of the services that they extend, and their env files and label files. Files that do not exist are
    /// left out. Fails if one of them is refused.
    pub fn read_files(&self, files: &Files) -> Result<FilesRead> {
        let env = match files.env.as_slice() {
            [] => &[".env".to_owned()],
            passed => passed,
        };
        let user = shell::user_of(self);
        let (known, variables) = self.variables(env, user)?;
        let home = shell::variable(self.dir_text(), user, "HOME");
        let mut reading = Reading {
            stack: self,
            user,
            home: home.filter(|home| !home.is_empty()),
            variables: known,
            left: MOST,
            texts: BTreeMap::new(),
            seen: BTreeSet::new(),
            found: FilesRead {
                origins: Origins::new(),
                env_files_of: Origins::new(),
                all: BTreeMap::new(),
                env_files: BTreeMap::new(),
                variables,
            },
        };
        for file in &files.compose {
            reading.file(&self.dir.join(file), &self.dir, 0)?;
        }
        let all = reading.texts.into_iter();
        reading.found.all = all
            .filter_map(|(path, bytes)| Some((path, bytes?)))
            .collect();
        Ok(reading.found)
    }

    /// The variables of the env files that Compose reads for the project. A later file takes precedence. Those that can be
    /// read, and all of them or the first problem.
    fn variables(
        &self,
        files: &[String],
        user: Option<u32>,
    ) -> Result<(Variables, Result<Variables>)> {
        let mut variables = Variables::new();
        let mut problem = None;
        for file in files {
            let bytes = self.read_env_bytes(file)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let lookup = |name: &str| {
                let earlier = || variables.iter().find(|(other, _)| other == name);
                self.shell(user, name)
                    .or_else(|| Some(earlier()?.1.clone()))
            };
            let read = dotenv::parse(&text, &lookup)
                .with_context(|| format!("cannot parse the env file {file}"))
                .unwrap_or_else(|error| {
                    problem.get_or_insert(error);
                    Vec::new()
                });
            variables.retain(|(name, _)| !read.iter().any(|(other, _)| other == name));
            variables.extend(read.into_iter().filter(|(name, _)| !name.is_empty()));
            if let Err(error) = encoding::strict("env file", &self.dir.join(file), bytes) {
                problem.get_or_insert(error);
            }
        }
        let all = problem.map_or_else(|| Ok(variables.clone()), Err);
        Ok((variables, all))
    }

    /// A variable of the shell of a user that does not say which files to read.
    fn shell(&self, user: Option<u32>, name: &str) -> Option<String> {
        let names_files = NAME_FILES.contains(&name);
        (!names_files).then(|| shell::variable(self.dir_text(), user, name))?
    }
}

struct Reading<'a> {
    stack: &'a Stack,
    /// See [`shell::user_of`].
    user: Option<u32>,
    home: Option<String>,
    /// The variables of the project's env files, then those of the included files that are being read.
    variables: Variables,
    /// How many bytes may still be read.
    left: usize,
    /// What was read; `None` for a file that does not exist.
    texts: BTreeMap<PathBuf, Option<Arc<[u8]>>>,
    /// The files and the extended services that were followed.
    seen: BTreeSet<(PathBuf, Option<(String, String)>)>,
    found: FilesRead,
}

impl Reading<'_> {
    /// Reads a Compose file whose paths are relative to `dir`.
    fn file(&mut self, path: &Path, dir: &Path, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH || !self.seen.insert((path.to_owned(), None)) {
            return Ok(());
        }
        let Some(text) = self.text("Compose file", path)? else {
            return Ok(());
        };
        for document in documents(&text) {
            self.take(self.expanded(&document), "values in", path)?;
            for item in document.get("include").into_iter().flat_map(Node::items) {
                self.include(item, path, dir, depth)?;
            }
            for service in services(&document) {
                self.service(service.name, path, dir, &service, depth)?;
            }
        }
        Ok(())
    }

    fn include(&mut self, item: Node, path: &Path, dir: &Path, depth: usize) -> Result<()> {
        let all = |key| {
            let named = item.get(key).into_iter().flat_map(one_or_many);
            named.filter_map(Node::as_str)
        };
        let mut included = Vec::new();
        for named in all("path").chain(item.as_str()) {
            included.extend(self.one("Compose file", path, dir, named)?);
        }
        let Some(first) = included.first() else {
            return Ok(());
        };
        let own = first.parent().unwrap_or(dir).to_owned();
        let given = item.get("project_directory").and_then(Node::as_str);
        let project = given.map_or(own, |given| self.named(dir, given));
        let known = self.variables.len();
        let listed: Vec<PathBuf> = all("env_file")
            .flat_map(|file| self.candidates(path, dir, file))
            .collect();
        for file in listed.into_iter().chain([project.join(".env")]) {
            let bytes = self.env_file(&file)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let read = dotenv::parse(&text, &|name| self.value(name));
            self.variables.extend(read.unwrap_or_default());
        }
        for file in included {
            self.file(&file, &project, depth + 1)?;
        }
        self.variables.truncate(known);
        Ok(())
    }

    /// Adds the file of a service, and those of the services that it extends.
    fn service(
        &mut self,
        name: &str,
        path: &Path,
        dir: &Path,
        service: &Service,
        depth: usize,
    ) -> Result<()> {
        let file = self.below(path);
        add(&mut self.found.origins, name, file);
        for file in service.env_files() {
            let [first, other] = self.candidates(path, dir, file.path);
            let (has_first, has_other) = (self.env_file(&first)?, self.env_file(&other)?);
            let is_other = has_first.is_none() && has_other.is_some();
            let file = self.below(if is_other { &other } else { &first });
            if file != ".env" {
                add(&mut self.found.env_files_of, name, file);
            }
        }
        for file in service.label_files() {
            for file in self.candidates(path, dir, file) {
                self.text("label file", &file)?;
            }
        }
        let extends = service.node.get("extends");
        let (Some(extends), Some(file)) = (extends, service.extends_file()) else {
            return Ok(());
        };
        let Some(base) = self.one("Compose file", path, dir, file)? else {
            return Ok(());
        };
        let extended = extends.get("service").and_then(Node::as_str);
        let extended = extended.unwrap_or_default();
        let key = (name.to_owned(), extended.to_owned());
        if depth > MAX_DEPTH || !self.seen.insert((base.clone(), Some(key))) {
            return Ok(());
        }
        let text = self.text("Compose file", &base)?.unwrap_or_default();
        let dir = base.parent().unwrap_or(dir);
        for document in documents(&text) {
            let all = services(&document);
            if let Some(extended) = all.iter().find(|service| service.name == extended) {
                self.service(name, &base, dir, extended, depth + 1)?;
            }
        }
        Ok(())
    }

    /// A path, relative to the stack's directory if it is below it.
    fn below(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.stack.dir).unwrap_or(path);
        below.display().to_string()
    }

    fn value(&self, name: &str) -> Option<String> {
        let known = || self.variables.iter().find(|(other, _)| other == name);
        self.stack
            .shell(self.user, name)
            .or_else(|| Some(known()?.1.clone()))
    }

    /// The path of a file that is named relative to `dir`.
    fn named(&self, dir: &Path, named: &str) -> PathBuf {
        let text = interpolate(named, &|name| self.value(name)).unwrap_or(named.into());
        let base = Base {
            dir: &dir.display().to_string(),
            home: self.home.as_deref(),
        };
        PathBuf::from(base.local(&text))
    }

    /// The paths of a file that the file at `path` names, relative to `dir`. Some versions of Compose resolve some names
    /// against the file's own directory.
    fn candidates(&self, path: &Path, dir: &Path, named: &str) -> [PathBuf; 2] {
        [dir, path.parent().unwrap_or(dir)].map(|dir| self.named(dir, named))
    }

    /// The first of the candidates that exists. Every one that exists is checked.
    fn one(&mut self, what: &str, path: &Path, dir: &Path, named: &str) -> Result<Option<PathBuf>> {
        let mut found = None;
        for candidate in self.candidates(path, dir, named) {
            if self.read(what, &candidate)?.is_some() {
                found = found.or(Some(candidate));
            }
        }
        Ok(found)
    }

    fn env_file(&mut self, path: &Path) -> Result<Option<Arc<[u8]>>> {
        let bytes = self.read("env file", path)?;
        if let Some(bytes) = &bytes {
            let env_files = &mut self.found.env_files;
            env_files.insert(path.to_owned(), Arc::clone(bytes));
        }
        Ok(bytes)
    }

    fn text(&mut self, what: &str, path: &Path) -> Result<Option<String>> {
        let bytes = self.read(what, path)?;
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok()))
    }

    /// Reads a file, if that was not done before; `None` if it does not exist.
    fn read(&mut self, what: &str, path: &Path) -> Result<Option<Arc<[u8]>>> {
        if let Some(known) = self.texts.get(path) {
            return Ok(known.clone());
        }
        let hint = "replace it with a regular file, or remove it from the stack's files";
        let read = match disk::read(&self.stack.dir, path) {
            Ok(contents) => Some(Arc::from(contents.bytes)),
            Err(error) if disk::is_absent(&error) => None,
            Err(error) => return Err(unreadable(what, path, error, hint).into()),
        };
        let bytes = read.as_ref().map_or(0, |bytes: &Arc<[u8]>| bytes.len());
        self.take(bytes.max(LEAST), what, path)?;
        self.texts.insert(path.to_owned(), read.clone());
        Ok(read)
    }

    /// Counts what is read. Fails if it is too much.
    fn take(&mut self, bytes: usize, what: &str, path: &Path) -> Result<()> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| {
            Failure::new(format!(
                "the stack has too many files, or too large ones: with the {what} {}, they exceed {} MiB",
                path.display(),
                MOST >> 20
            ))
            .hint("check which files the stack includes, and which values, aliases and ranges of ports they repeat")
        })?;
        Ok(())
    }

    /// The bytes that Compose adds to a text: the values of its variables, each port of a range, and what aliases repeat (B43).
    /// It copies a default value once for each variable around it.
    fn expanded(&self, document: &Document) -> usize {
        let written = document.nodes().filter_map(Node::as_str);
        let values = written.map(|text| {
            let all = occurrences(text).into_iter();
            let values = all.filter_map(|occurrence| self.value(occurrence.name));
            let copied = depth(text).saturating_sub(1).saturating_mul(text.len());
            values.map(|value| value.len()).sum::<usize>() + copied
        });
        let (written, all) = (1..)
            .zip(document.expanded())
            .last()
            .map_or((0, 0), |(written, (_, all))| (written, all));
        let repeated = usize::try_from(all - written).unwrap_or(usize::MAX);
        let services = services(document);
        let ports = services
            .iter()
            .filter_map(|service| service.node.get("ports"));
        let ports = ports.flat_map(Node::items).filter_map(Node::as_str);
        let ports = ports.map(|port| ports_of(port) * PORT);
        let repeated = repeated.saturating_mul(NODE);
        values.chain(ports).fold(repeated, usize::saturating_add)
    }
}

/// Adds a file of a service once.
fn add(origins: &mut Origins, service: &str, file: String) {
    let files = origins.entry(service.to_owned()).or_default();
    if !files.contains(&file) {
        files.push(file);
    }
}

/// How many variables in braces are inside each other.
fn depth(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for pair in text.as_bytes().windows(2) {
        match pair {
            b"${" => open += 1,
            [b'}', _] => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// How many ports a port in the short syntax stands for.
fn ports_of(port: &str) -> usize {
    let ranges = port.split(':').filter_map(|part| {
        let (first, last) = part.split('/').next()?.split_once('-')?;
        let [first, last]: [usize; 2] = [first.parse().ok()?, last.parse().ok()?];
        last.checked_sub(first)
    });
    ranges.max().unwrap_or_default()
}

/// The documents of a text. Some versions of Compose read several.
fn documents(text: &str) -> Vec<Document<'_>> {
    let parsed = |part| Document::parse(part).ok();
    match parsed(text) {
        Some(document) => vec![document],
        None => text.split("\n---").filter_map(parsed).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::stack::StackName;

    #[test]
    fn the_files_of_each_service_are_found() {
        let root = tempfile::tempdir().expect("a folder");
        let dir = root.path().join("web");
        let web = "include: [{path: [$APP/compose.yaml], env_file: own.env}, gone.yaml]\nservices:\n  a: {extends: {file: ../base.yaml, service: b}}\n";
        let app = "include: [compose.yaml]\nservices: {c: {image: x}}\n";
        let base = "services:\n  b: {extends: {file: web/app/more.yaml, service: e}}\n";
        for (file, text) in [
            ("web/compose.yaml", web),
            ("web/compose.override.yaml", "services: {a: {}, d: {}}\n"),
            ("web/app/compose.yaml", app),
            ("base.yaml", base),
            ("web/app/more.yaml", "services: {e: {image: x}}\n"),
            ("web/app/.env", "A=1"),
            ("web/own.env", "A=1"),
            ("web/.env", "APP=app"),
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
        let name = StackName::new("web".as_ref()).expect("a name");
        let stack = Stack::at(name, &dir, "compose.yaml");
        let found = stack.read_files(&files).expect("read");
        let base = root.path().join("base.yaml").display().to_string();
        let of_a = format!("compose.yaml {base} app/more.yaml compose.override.yaml");
        let expected = [
            ("a", &*of_a),
            ("c", "app/compose.yaml"),
            ("d", "compose.override.yaml"),
        ];
        let origins = expected.map(|(name, files)| {
            let files = files.split(' ').map(str::to_owned);
            (name.to_owned(), files.collect())
        });
        assert_eq!(found.origins, Origins::from(origins));
        for file in ["app/.env", "own.env"] {
            assert!(found.env_files.contains_key(&dir.join(file)), "{file}");
        }
    }
}
