//! The stacks of a host: directories with a Compose file, projects of the engine, and Portainer stacks.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    mem,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{Inventory, earlier};
use crate::{
    disk::{self, Refused},
    failure::Failure,
    model::{Container, PORTAINER_FOLDERS, Record, StackKind, is_folder_of, may_be_portainers},
    observe::Overview,
    parallel::in_parallel,
    stack::{Location, Stack, StackName, is_same, started_dirs, started_in_several},
};

/// A stack, as far as it exists.
pub struct Found<'h> {
    pub name: String,
    pub files: Files,
    /// The containers of its project; `None` if they are unknown.
    pub containers: Option<Vec<&'h Container>>,
    /// Its Portainer stack in the environment.
    pub record: Option<&'h Record>,
}

/// What a stack has on disk.
pub enum Files {
    Stack(Stack),
    /// A directory whose stack cannot be adopted: its path, and why.
    Unusable(String, anyhow::Error),
    /// No directory with a Compose file.
    None,
}

/// Every stack of the host, sorted by name. Fails if the stacks root cannot be read.
pub(super) fn find<'h>(inventory: &Inventory, host: &'h Overview) -> Result<Vec<Found<'h>>> {
    let mut finder = Finder::new(inventory, host);
    finder.directories()?;
    finder.projects();
    finder.records();
    let mut found = finder.once_a_directory();
    found.sort_by_cached_key(|stack| (stack.name.to_lowercase(), stack.name.clone()));
    Ok(found)
}

struct Finder<'a, 'h> {
    at: &'a Location,
    /// The state directory.
    state: Option<&'a Path>,
    /// The containers of each project; `None` if they are unknown.
    projects: Option<BTreeMap<&'h str, Vec<&'h Container>>>,
    /// The projects that were started from each directory.
    started: BTreeMap<PathBuf, BTreeSet<&'h str>>,
    /// The Portainer stacks of the environment that are not in `found`.
    records: Vec<&'h Record>,
    /// Whether Portainer listed all of them.
    sees_every_stack: bool,
    found: Vec<Found<'h>>,
}

impl<'a, 'h> Finder<'a, 'h> {
    fn new(inventory: &Inventory<'a>, host: &'h Overview) -> Self {
        let at = inventory.location;
        let environment = inventory.portainer.map(|(_, id)| id);
        let listed = host.records.iter().flatten();
        let records = listed.filter_map(|listed| listed.record.as_ref().ok());
        let records = records.filter(|record| Some(record.endpoint_id) == environment);
        let mut projects: BTreeMap<&str, Vec<&Container>> = BTreeMap::new();
        let mut dirs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for container in host.containers.iter().flatten() {
            let label = |name| container.compose_label(&at.tool, name);
            let Some(project) = label("project") else {
                continue;
            };
            projects.entry(project).or_default().push(container);
            if let Some(dir) = label("project.working_dir") {
                dirs.entry(dir).or_default().insert(project);
            }
        }
        let mut started: BTreeMap<PathBuf, BTreeSet<&str>> = BTreeMap::new();
        let dirs: Vec<_> = dirs.into_iter().collect();
        let found = in_parallel(&dirs, |(dir, _)| disk::canonicalize(Path::new(dir)));
        for ((_, projects), dir) in dirs.into_iter().zip(found) {
            // Several paths may lead to one directory.
            if let Ok(dir) = dir {
                started.entry(dir).or_default().extend(projects);
            }
        }
        Self {
            at,
            state: inventory.state,
            projects: host.containers.is_some().then_some(projects),
            started,
            records: records.collect(),
            sees_every_stack: host.rights.see_every_stack(),
            found: Vec::new(),
        }
    }

    /// The directories below the stacks root.
    fn directories(&mut self) -> Result<()> {
        let root = &self.at.root;
        let unreadable = |error| {
            Failure::new(format!("failed to read the stacks root {}", root.display()))
                .source(error)
                .hint("pass the directory that contains the stack directories with --stacks-root, or run `stacklift config init`")
        };
        let mut dirs = Vec::new();
        let paths = disk::entries(root).map_err(unreadable)?;
        // One that does not respond takes its time.
        let found = in_parallel(&paths, |path| disk::metadata(path));
        for (path, found) in paths.into_iter().zip(found) {
            match found {
                Ok(metadata) if metadata.is_dir() => dirs.push(path),
                Err(error) if Refused::of(&error).is_some() => self.unusable(&path, error.into()),
                _ => {}
            }
        }
        // A symbolic link to another one is the same stack.
        dirs.sort_by_key(|dir| (dir.is_symlink(), dir.clone()));
        let mut other_names = Vec::new();
        for dir in dirs {
            let own = dir.file_name().unwrap_or_default();
            match StackName::new(own) {
                Ok(name) if self.is_known(name.as_str()) => self.directory(&name, &dir),
                // It may have the name of a project that is found later.
                Ok(name) => other_names.push((name, dir)),
                Err(error) if self.at.has_file(&dir) => {
                    let error = Failure::new(error.to_string()).hint("rename the directory");
                    self.unusable(&dir, error.into());
                }
                Err(_) => {}
            }
        }
        for (name, dir) in other_names {
            let other = self.name_of_project(&name, &dir);
            self.directory(&other.unwrap_or(name), &dir);
        }
        Ok(())
    }

    /// Adds the stack that a directory is named after, but that cannot be adopted.
    fn unusable(&mut self, dir: &Path, error: anyhow::Error) {
        let name = dir.file_name().unwrap_or_default();
        let files = Files::Unusable(dir.display().to_string(), error);
        self.add(name.to_string_lossy().into_owned(), files);
    }

    /// Adds the stack of a directory, if there is one.
    fn directory(&mut self, name: &StackName, dir: &Path) {
        match self.stack(name, dir) {
            Files::None => {}
            files => self.add(name.as_str().to_owned(), files),
        }
    }

    /// The name of the stack of a directory whose own name no project and no Portainer stack has: that of the only project
    /// that was started there, otherwise the one that Portainer gives it (C59), which it keeps when its containers are gone.
    fn name_of_project(&self, own: &StackName, dir: &Path) -> Option<StackName> {
        let real = disk::canonicalize(dir).ok();
        let started = real.and_then(|dir| self.started.get(&dir));
        let mut projects = started.into_iter().flatten();
        let project = match (projects.next(), projects.next()) {
            (Some(project), None) => (*project).to_owned(),
            (None, _) => own.portainer_name(),
            _ => return None,
        };
        let is_free = !self.found.iter().any(|stack| stack.name == project);
        let is_elsewhere = disk::is_dir(&self.at.root.join(&project));
        let name = StackName::new(OsStr::new(&project)).ok()?;
        (is_free && !is_elsewhere).then_some(name)
    }

    /// The projects that no directory below the stacks root has.
    fn projects(&mut self) {
        let projects = self.projects.iter().flatten();
        let projects: Vec<&str> = projects.map(|(&name, _)| name).collect();
        for project in projects {
            if !self.found.iter().any(|stack| stack.name == project) {
                let files = self.files_elsewhere(project);
                self.add(project.to_owned(), files);
            }
        }
    }

    /// The files in the only directory that a project was started in by hand and that has some. If its containers name none,
    /// those of the latest earlier run that do count. A directory that only may be one of a Portainer outside a container counts
    /// last, if it is known that none of its stacks has it.
    fn files_elsewhere(&self, project: &str) -> Files {
        let Ok(name) = StackName::new(OsStr::new(project)) else {
            return Files::None;
        };
        let found_by = |dirs: Vec<&str>, is_own: &dyn Fn(&str) -> bool| -> Vec<(String, Files)> {
            let dirs = dirs.into_iter();
            dirs.filter(|dir| dir.starts_with('/') && !dir.starts_with(PORTAINER_FOLDERS))
                .filter(|dir| is_own(dir))
                .map(|dir| (dir.to_owned(), self.stack(&name, Path::new(dir))))
                .filter(|(_, files)| !matches!(files, Files::None))
                .collect()
        };
        let by_hand = |dir: &str| !may_be_portainers(dir);
        let containers = self.containers(project).into_iter().flatten();
        let started = started_dirs(containers, &self.at.tool);
        let mut found = found_by(started.clone(), &by_hand);
        if found.is_empty() {
            let earlier = earlier(self.state, &name, &self.at.tool);
            let mut earlier =
                earlier.map(|all| found_by(started_dirs(&all, &self.at.tool), &by_hand));
            found = earlier.find(|found| !found.is_empty()).unwrap_or_default();
        }
        if found.is_empty() && self.sees_every_stack {
            found = found_by(started, &|dir| !self.is_portainers(project, dir));
        }
        match found.len() {
            0 | 1 => found.pop().map_or(Files::None, |(_, files)| files),
            _ => {
                let several = started_in_several(&name, found.iter().map(|(dir, _)| dir.as_str()));
                Files::Unusable(found.swap_remove(0).0, several.into())
            }
        }
    }

    /// Whether a directory is the one that Portainer keeps for the project's Portainer stack.
    fn is_portainers(&self, project: &str, dir: &str) -> bool {
        let mut records = self.records.iter();
        records.any(|record| record.name == project && is_folder_of(&record.id, dir))
    }

    /// The Portainer stacks without a directory and without containers.
    fn records(&mut self) {
        for record in self.records.clone() {
            let files = match record.kind {
                StackKind::Compose => self.files_elsewhere(&record.name),
                _ => Files::None,
            };
            self.found.push(Found {
                name: record.name.clone(),
                files,
                containers: self.containers(&record.name),
                record: Some(record),
            });
        }
    }

    /// What was found, without a directory that has another name than its stack, and without a second path to one.
    fn once_a_directory(mut self) -> Vec<Found<'h>> {
        let found = mem::take(&mut self.found);
        let (mut known, mut others): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|stack| self.is_known(&stack.name));
        let real = |stack: &Found| disk::canonicalize(Path::new(stack.dir()?)).ok();
        let mut dirs: BTreeSet<PathBuf> = known.iter().filter_map(real).collect();
        others.retain(|stack| real(stack).is_none_or(|dir| dirs.insert(dir)));
        known.append(&mut others);
        known
    }

    /// The stack in a directory, as `plan` and `adopt` find it.
    fn stack(&self, name: &StackName, dir: &Path) -> Files {
        let containers = self.containers(name.as_str()).into_iter().flatten();
        let containers: Vec<Container> = containers.cloned().collect();
        let at = Location {
            dir: Some(dir.to_owned()),
            ..self.at.clone()
        };
        let earlier = || earlier(self.state, name, &self.at.tool);
        match Stack::find_started(name, &at, &containers, earlier) {
            Ok(stack) => Files::Stack(stack),
            Err(error) if self.is_unusable(dir, &error) => {
                Files::Unusable(dir.display().to_string(), error)
            }
            Err(_) => Files::None,
        }
    }

    /// Whether a directory in which no stack was found may have one: something that is no file has the name of a Compose
    /// file, a file was refused, or what is in the directory is unknown.
    fn is_unusable(&self, dir: &Path, error: &anyhow::Error) -> bool {
        self.at.has_file(dir)
            || Refused::in_chain(error).is_some()
            || disk::is_dir(dir) && !disk::exists(&dir.join("."))
    }

    /// Whether a project or a Portainer stack of the environment has this name.
    fn is_known(&self, name: &str) -> bool {
        let projects = self.projects.as_ref();
        projects.is_some_and(|projects| projects.contains_key(name))
            || self.records.iter().any(|record| record.name == name)
    }

    fn containers(&self, project: &str) -> Option<Vec<&'h Container>> {
        let projects = self.projects.as_ref()?;
        Some(projects.get(project).cloned().unwrap_or_default())
    }

    /// Adds a stack with its containers and the first Portainer stack of its name (C50).
    fn add(&mut self, name: String, files: Files) {
        let at = self.records.iter().position(|record| record.name == name);
        self.found.push(Found {
            files,
            containers: self.containers(&name),
            record: at.map(|at| self.records.remove(at)),
            name,
        });
    }
}

impl Found<'_> {
    /// The stack's directory, if it has one.
    pub fn dir(&self) -> Option<&str> {
        match &self.files {
            Files::Stack(stack) => Some(stack.dir_text()),
            Files::Unusable(dir, _) => Some(dir),
            Files::None => None,
        }
    }

    /// Its containers; none if they are unknown.
    pub fn listed(&self) -> Vec<Container> {
        self.containers.iter().flatten().copied().cloned().collect()
    }

    /// Whether its directory is not below the stacks root.
    pub fn is_outside(&self, root: &Path) -> bool {
        let real = |path: &Path| disk::canonicalize(path).ok();
        let root = std::path::absolute(root).unwrap_or_default();
        self.dir().map(Path::new).is_some_and(|dir| {
            let below = real(dir).zip(real(&root));
            !dir.starts_with(&root) && !below.is_some_and(|(dir, root)| dir.starts_with(root))
        })
    }

    /// Whether `plan` and `adopt` need `--dir` to find the stack.
    pub fn needs_dir(&self, at: &Location) -> bool {
        let own = std::path::absolute(at.root.join(&self.name)).unwrap_or_default();
        self.dir().is_some_and(|dir| !is_same(Path::new(dir), &own))
    }
}
