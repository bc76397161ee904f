//! The folder of a stack in the data of a Portainer that is gone: the labels of the containers name it, and it is in what was
//! mounted into Portainer's container (M07). Reads only.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use composefile::{document::Document, dotenv, interpolate::interpolate, reader::EnvFiles};
use rustix::process::geteuid;

use crate::{
    disk,
    engine::EngineReader,
    failure::Failure,
    model::{Container, Variable, portainers_folder},
    portainer::{Contents, Stored},
    rewrite::{env::stack_env, export, portainer::STACK_ENV},
    text::{bulleted, command, printable},
};

/// Where a stack of a Portainer that is gone was found.
pub struct Lost {
    /// The Compose file that was read.
    pub file: PathBuf,
    /// The env file with the variables: a path in Portainer's container.
    pub env_file: String,
    /// What shows that the file may be that of another stack.
    pub doubt: Option<String>,
    /// The texts of the other env files that were found, by their paths in Portainer's container.
    pub env_files: EnvFiles,
}

/// Where Portainer had the files of a stack, as the labels of a container say: paths in Portainer's container.
struct Folder<'c> {
    /// Portainer's directory of the stack.
    root: &'c str,
    /// The folder of the Compose file: that of a Git stack may be below the other.
    dir: &'c str,
    file: &'c str,
    env: Option<&'c str>,
}

/// A directory of Portainer's container, and where it is on this host.
struct MappedDir {
    inside: String,
    here: PathBuf,
}

/// Finds what Portainer stored of the Compose project `name`. `data` is the directory that was mounted at Portainer's
/// `/data`: without it, every volume and mount is searched.
///
/// Files that do not define the services of the containers do not count, nor do those with other images if a file has the same.
/// Several that count are an error. So is one that only older containers name, or with other images, unless `data` is given.
pub fn find(
    engine: &EngineReader,
    tool: &str,
    name: &str,
    data: Option<&Path>,
) -> Result<(Stored, Lost)> {
    if let Some(dir) = data.filter(|dir| !dir.is_dir()) {
        let what = format!("cannot find the directory {}", dir.display());
        let hint = "pass --portainer-data the directory that was mounted at /data in Portainer's container, or a copy of it; without it, every volume is searched";
        return Err(Failure::new(what).hint(hint).into());
    }
    let all = engine.list_all()?;
    let is_own = |one: &&Container| one.compose_label(tool, "project") == Some(name);
    let own: Vec<(&Container, Folder)> = all
        .iter()
        .filter(is_own)
        .filter_map(|container| Some((container, Folder::of(container, tool)?)))
        .collect();
    // A container that a redeployment kept names the folder of an older version.
    let mut folders: BTreeMap<&str, &Folder> = BTreeMap::new();
    for (_, folder) in &own {
        let known = folders.entry(folder.of_stack()).or_insert(folder);
        *known = std::cmp::max_by_key(*known, folder, |one| (one.root.len(), one.root));
    }
    let stack = printable(name);
    let ids: Vec<String> = own.iter().map(|(one, _)| one.id().to_owned()).collect();
    let inspected = engine.inspect_containers(&ids)?;
    let Some(folder) = newest(&inspected, &own, &folders) else {
        let what = format!("no container of {stack} was started by Portainer");
        return Err(Failure::new(what).hint(from_containers(name)).into());
    };
    if folder.file.contains(',') {
        let files = printable(folder.file);
        let what = format!("{stack} has several Compose files: {files}");
        let hint = "clone its Git repository instead";
        return Err(Failure::new(what).hint(hint).into());
    }
    let images: BTreeMap<&str, &str> = inspected
        .iter()
        .filter_map(|container| {
            Some((
                container.compose_label(tool, "service")?,
                container.image_name(),
            ))
        })
        .collect();
    let mut found = BTreeMap::new();
    for one in folders.values() {
        let places = match data {
            Some(dir) => Vec::from([one.data_in(dir)]),
            None => places(engine, &all, one)?,
        };
        for place in places {
            if let Some((stored, lost)) = one.read(name, &place, &images)? {
                let real = disk::canonicalize(&lost.file).unwrap_or_else(|_| lost.file.clone());
                found.insert(real, (stored, lost));
            }
        }
    }
    if found.values().any(|(_, lost)| lost.doubt.is_none()) {
        found.retain(|_, (_, lost)| lost.doubt.is_none());
    }
    let is_older = |stored: &Stored| data.is_none() && stored.folder != folder.dir;
    let wanted = printable(folder.file);
    let place = folder.data();
    let pass = format!("pass the directory that was mounted at {place} with --portainer-data");
    let instead =
        format!("{pass}; for the file that was found, it is the one that contains `compose`");
    let failure = match (found.pop_first(), found.len()) {
        (None, _) => Failure::new(format!("found no {wanted} of {stack}"))
            .hint(format!("{pass}; {}", from_containers(name))),
        (Some((file, (stored, _))), 0) if is_older(&stored) => Failure::new(format!(
            "the newest containers of {stack} were started from {wanted}, but only {} was found",
            file.display()
        ))
        .hint(instead),
        (Some((file, (_, lost))), 0) if data.is_none() && lost.doubt.is_some() => {
            let (file, doubt) = (file.display(), lost.doubt.unwrap_or_default());
            Failure::new(format!(
                "{file} may be the Compose file of another stack: {doubt}"
            ))
            .hint(instead)
        }
        (Some((_, found)), 0) => return Ok(found),
        (Some((first, _)), _) => {
            let files = [first].into_iter().chain(found.into_keys());
            let files = files.map(|file| file.display().to_string());
            Failure::new(format!("found several Compose files of {stack}"))
                .details(bulleted(files))
                .hint("pass the directory that contains the right `compose` directory with --portainer-data, or a copy that contains only that file")
        }
    };
    Err(failure.into())
}

/// The folder that the most recently created container names, if there are several.
fn newest<'f, 'c>(
    inspected: &[Container],
    own: &[(&Container, Folder)],
    folders: &BTreeMap<&str, &'f Folder<'c>>,
) -> Option<&'f Folder<'c>> {
    if folders.len() < 2 {
        return folders.values().next().copied();
    }
    let newest = inspected
        .iter()
        .max_by_key(|container| container.text("/Created"));
    let newest = newest.and_then(|newest| own.iter().find(|(one, _)| newest.id() == one.id()));
    newest.and_then(|(_, folder)| folders.get(folder.of_stack()).copied())
}

fn from_containers(name: &str) -> String {
    let export = command(&["export", name, "--from", "containers"]);
    format!("if the Compose file is lost, run `{export}`")
}

/// Every directory of this host that may have been mounted into Portainer's container.
fn places(engine: &EngineReader, all: &[Container], folder: &Folder) -> Result<Vec<MappedDir>> {
    let volumes = engine.all_volumes()?;
    let dirs = volumes
        .iter()
        .filter_map(|volume| volume["Mountpoint"].as_str());
    let volumes = dirs.map(|dir| folder.data_in(Path::new(dir)));
    let mounts = all.iter().flat_map(Container::mounts);
    let binds = mounts.filter(|mount| mount["Type"] == "bind");
    let binds = binds.filter_map(|mount| {
        let source = Path::new(mount["Source"].as_str()?);
        Some(MappedDir::new(mount["Destination"].as_str()?, source))
    });
    // A Portainer without a container had the same paths.
    let same = MappedDir::new("/", Path::new("/"));
    Ok(volumes.chain(binds).chain([same]).collect())
}

impl<'c> Folder<'c> {
    fn of(container: &'c Container, tool: &str) -> Option<Self> {
        let label = |name: &str| container.compose_label(tool, name);
        let dir = label("project.working_dir")?;
        Some(Self {
            root: portainers_folder(dir)?,
            dir,
            file: label("project.config_files")?,
            env: label("project.environment_file"),
        })
    }

    /// Portainer's directory, without that of a version below it.
    fn of_stack(&self) -> &'c str {
        let parts = self.root.rsplit_once('/');
        let version = parts.filter(|(_, last)| last.starts_with('v'));
        version.map_or(self.root, |(folder, _)| folder)
    }

    /// Portainer's data directory in its container.
    fn data(&self) -> &'c str {
        let data = self.root.rsplit_once("/compose/");
        data.map_or("/", |(data, _)| data)
    }

    /// The place of Portainer's data in the directory `here`.
    fn data_in(&self, here: &Path) -> MappedDir {
        MappedDir::new(self.data(), here)
    }

    /// What is stored at a place. `None` if there is no Compose file with these services, of which `images` has the images.
    fn read(
        &self,
        name: &str,
        place: &MappedDir,
        images: &BTreeMap<&str, &str>,
    ) -> Result<Option<(Stored, Lost)>> {
        let Some((file, text)) = place.read(self.file)? else {
            return Ok(None);
        };
        let Ok(document) = Document::parse(&text) else {
            return Ok(None);
        };
        let of = |service: &str| document.get("services")?.get(service);
        if images.keys().any(|service| of(service).is_none()) {
            return Ok(None);
        }
        // Without variables, Portainer writes no stack.env, and Compose reads `.env`.
        let names = [(self.root, STACK_ENV), (self.dir, ".env")];
        let names = names.map(|(dir, name)| format!("{dir}/{name}"));
        let mut names = self.env.map(str::to_owned).into_iter().chain(names);
        let env = names.find_map(|name| {
            let read = place.read(&name).transpose()?;
            Some(read.map(|(_, text)| (name, variables(&text))))
        });
        let (env_file, env) = env
            .transpose()?
            .unwrap_or_else(|| (STACK_ENV.to_owned(), Vec::new()));
        let values = dotenv::parse(&stack_env(&env), &|_| None).unwrap_or_default();
        let values: BTreeMap<String, String> = values.into_iter().collect();
        let value = |name: &str| values.get(name).cloned();
        let doubt = images.iter().find_map(|(service, runs)| {
            let image = of(service)?.get("image")?.as_str()?;
            let image = interpolate(image, &value).ok()?;
            (image != *runs)
                .then(|| format!("{service} of {name} runs {runs}, and the file has image {image}"))
        });
        let mut env_files = EnvFiles::new();
        let listed = export::env_files(&export::Stored {
            text: &text,
            variables: &env,
            project: name,
            folder: self.dir,
            env_file: &env_file,
            env_files: &env_files,
            mark: None,
        });
        // Another file was one of Portainer's container.
        let is_in_data =
            |path: &String| Path::new(path).starts_with(self.data()) && !path.contains("/../");
        for path in listed.into_iter().filter(is_in_data) {
            if let Some((_, text)) = place.read(&path)? {
                env_files.insert(path, Some(text));
            }
        }
        let stored = Stored {
            contents: Contents { text, env },
            folder: self.dir.to_owned(),
            git: None,
            further_files: 0,
        };
        let lost = Lost {
            file,
            env_file,
            doubt,
            env_files,
        };
        Ok(Some((stored, lost)))
    }
}

impl MappedDir {
    fn new(inside: &str, here: &Path) -> Self {
        let (inside, here) = (inside.to_owned(), here.to_owned());
        Self { inside, here }
    }

    /// Reads a file of Portainer's container. `None` if it is not here.
    fn read(&self, path: &str) -> Result<Option<(PathBuf, String)>> {
        let Ok(below) = Path::new(path).strip_prefix(&self.inside) else {
            return Ok(None);
        };
        let path = self.here.join(below);
        match disk::read_below(&self.here, below) {
            Ok(contents) => {
                let text = String::from_utf8(contents.bytes);
                let text = text.ok().with_context(|| format!("{} is not UTF-8", path.display()))?;
                Ok(Some((path, text)))
            }
            Err(error) if disk::is_absent(&error) => Ok(None),
            Err(error) => Err(Failure::new(format!("failed to read {}", path.display()))
                .source(error)
                .hint(if geteuid().is_root() {
                    "pass a copy of Portainer's data with --portainer-data"
                } else {
                    "run the command as root, or pass a copy of Portainer's data with --portainer-data"
                })
                .into()),
        }
    }
}

/// The variables of a `stack.env`, as Portainer wrote them: one `NAME=VALUE` per line. A line without `=` is part of the
/// value before it.
fn variables(text: &str) -> Vec<Variable> {
    let mut all: Vec<Variable> = Vec::new();
    for line in text.lines() {
        match (line.split_once('='), all.last_mut()) {
            (Some((name, value)), _) => all.push(Variable::new(name, value)),
            (None, Some(last)) => last.value.extend(["\n", line]),
            (None, None) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::env::stack_env;

    #[test]
    fn m07_the_variables_of_stack_env_are_those_that_portainer_wrote() {
        for text in ["", "A=1\n", "A='x # y'\nB=\n", "KEY=one\ntwo\nC=a=b\n"] {
            assert_eq!(stack_env(&variables(text)), text);
        }
    }
}
