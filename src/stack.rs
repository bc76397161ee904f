//! A stack on disk: its name, directory, Compose file, `.env`, backup and lock.

use std::{
    borrow::Cow,
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    disk::{self, Contents, FileAccess, Refused},
    failure::Failure,
    model::{Container, is_portainers, may_be_portainers},
    text::{command, near, printable, shell_word},
};
use composefile::{dotenv, reader::DEFAULT_FILES};

mod backup;
mod encoding;
mod name;
mod origins;
mod shell;
mod started;

pub use backup::Backup;
pub use name::StackName;
pub use origins::{FilesRead, Origins};
pub use shell::Shell;
pub use started::{
    Files, export_words, files as started_files, is_same, started_by_hand, started_dirs,
};

/// Where to find a stack.
#[derive(Debug, Clone)]
pub struct Location {
    /// `--stacks-root`: the directory under which each stack has its own.
    pub root: PathBuf,
    /// `--dir`: the stack's directory, if it is not `{root}/<STACK>`.
    pub dir: Option<PathBuf>,
    /// `--file`: the Compose file's name, if it is not the one that [`Stack::find`] looks for.
    pub file: Option<String>,
    /// The container tool, `docker` unless configured.
    pub tool: String,
}

impl Location {
    /// Whether a directory has a Compose file: by any of the names, or in the `COMPOSE_FILE` of its `.env`.
    pub fn has_file(&self, dir: &Path) -> bool {
        let exists = |name: &str| disk::exists(&dir.join(name));
        if let Some(file) = &self.file {
            return exists(file);
        }
        let own = format!("{}-compose.yml", self.tool);
        let mut names = DEFAULT_FILES.into_iter().chain([own.as_str()]);
        let listed = || listed(dir).unwrap_or_default();
        names.any(exists) || listed().iter().any(|name| exists(name))
    }
}

/// A stack whose directory and Compose file exist.
#[derive(Debug, Clone)]
pub struct Stack {
    name: StackName,
    dir: PathBuf,
    file: String,
    started: Option<Files>,
}

/// The files of a stack, read once.
#[derive(Clone, Default)]
pub struct StackText {
    /// The Compose file, byte for byte.
    pub compose: String,
    /// `.env`, byte for byte; `None` if it does not exist (C40).
    pub env: Option<String>,
    /// Who could access the Compose file when it was read.
    pub access: FileAccess,
}

impl Stack {
    /// Finds the stack's directory (C06) and Compose file: `<tool>-compose.yml` (C07), otherwise the one that Compose
    /// finds. Reads neither.
    pub fn find(name: StackName, at: &Location) -> Result<Self> {
        let dir = stack_dir(&name, at)?;
        if !is(&dir, fs::Metadata::is_dir)? {
            return Err(missing_dir(&name, &dir, at).into());
        }
        let is_file = |name: &str| is(&dir.join(name), fs::Metadata::is_file);
        let own = format!("{}-compose.yml", at.tool);
        let file = match &at.file {
            Some(file) => file.clone(),
            None if is_file(&own)? => own,
            None => found(&dir).map_or(own, str::to_owned),
        };
        if !is_file(&file)? {
            return Err(missing_file(&name, &dir, &file).into());
        }
        Ok(Self::at(name, &dir, &file))
    }

    /// Whether [`Self::find`] chooses this Compose file by itself.
    pub fn is_chosen(&self, tool: &str) -> bool {
        let own = format!("{tool}-compose.yml");
        let is_own = disk::metadata(&self.dir.join(&own)).is_ok_and(|own| own.is_file());
        self.file == own || (!is_own && found(&self.dir) == Some(&self.file))
    }

    /// Finds the stack's directory, and the Compose file as Compose does: by its usual names or in the `COMPOSE_FILE` of
    /// `.env`, unless `--file` names it.
    /// Reads neither.
    pub fn find_like_compose(name: StackName, at: &Location) -> Result<Self> {
        let dir = stack_dir(&name, at)?;
        let file = match at.file.clone().or_else(|| found(&dir).map(str::to_owned)) {
            None => {
                let first = listed(&dir)?.into_iter().next();
                let file = first.map(|file| file.trim_start_matches("./").to_owned());
                file.filter(|file| !file.contains('/') && disk::is_file(&dir.join(file)))
            }
            file => file,
        };
        Self::find(name, &Location { file, ..at.clone() })
    }

    /// Finds the Compose files from which the project's `containers` were started in the stack's directory. Otherwise, does
    /// the same as [`Stack::find_like_compose`]. Containers that Portainer recreated do not name these files. If no
    /// container was started in the directory, the containers of an `earlier` time count.
    ///
    /// The directory gets the path with which the containers were started, if that leads to it, too (B28).
    ///
    /// If the stack is not in the stacks root, and `--dir` is not given, the directory is the only one in which its
    /// containers were started, or those of the latest `earlier` time that has one, otherwise the first in the stacks root to
    /// which Compose gives its name.
    pub fn find_started<I: Iterator<Item = Vec<Container>>>(
        name: &StackName,
        at: &Location,
        containers: &[Container],
        earlier: impl Fn() -> I,
    ) -> Result<Self> {
        let in_root = match Self::find_started_in_dir(name.clone(), at, containers, earlier()) {
            Err(error) if Refused::in_chain(&error).is_some() => return Err(error),
            Err(error) if at.dir.is_some() => return Err(lost(error, name, containers, at)),
            // The engine lists the containers of the project `web` for `Web`, too.
            Err(error) if name.portainer_name() != name.as_str() && at.dir.is_none() => {
                let project = name.portainer_name();
                return Err(match containers {
                    [] => error,
                    _ => Failure::new(format!("{error:#}"))
                        .hint(format!("did you mean {project}?"))
                        .mistyped()
                        .into(),
                });
            }
            Err(error) => error,
            found => return found,
        };
        let in_dir = |dir: PathBuf, containers: &[Container]| {
            let dir = Some(dir);
            let at = Location { dir, ..at.clone() };
            Self::find_started_in_dir(name.clone(), &at, containers, std::iter::empty()).ok()
        };
        let found_by = |containers: &[Container]| -> Vec<Self> {
            let dirs = started_dirs(containers, &at.tool).into_iter();
            let dirs = dirs.filter(|dir| !may_be_portainers(dir));
            dirs.filter_map(|dir| in_dir(dir.into(), containers))
                .collect()
        };
        let mut found = found_by(containers);
        if found.is_empty() {
            let mut earlier = earlier().map(|containers| found_by(&containers));
            found = earlier.find(|found| !found.is_empty()).unwrap_or_default();
        }
        if found.is_empty() {
            // The first to which Compose gives this name.
            let is_own = |dir: &PathBuf| {
                let own = dir.file_name().and_then(|own| StackName::new(own).ok());
                own.is_some_and(|own| own.portainer_name() == name.as_str())
            };
            let mut dirs = disk::entries(&at.root).unwrap_or_default();
            dirs.retain(is_own);
            dirs.sort();
            found.extend(dirs.into_iter().find_map(|dir| in_dir(dir, containers)));
        }
        match found.len() {
            0 => Err(lost(in_root, name, containers, at)),
            1 => Ok(found.swap_remove(0)),
            _ => Err(started_in_several(name, found.iter().map(Self::dir_text)).into()),
        }
    }

    fn find_started_in_dir(
        name: StackName,
        at: &Location,
        containers: &[Container],
        mut earlier: impl Iterator<Item = Vec<Container>>,
    ) -> Result<Self> {
        let dir = stack_dir(&name, at)?;
        let is_here = |containers: &[Container]| started::is_in(containers, &at.tool, &dir);
        let from = if is_here(containers) {
            Cow::Borrowed(containers)
        } else {
            Cow::Owned(earlier.find(|earlier| is_here(earlier)).unwrap_or_default())
        };
        let spelled = started::spelling(&from, &at.tool, &dir);
        let dir = spelled.as_ref().unwrap_or(&dir);
        let started = match at.file {
            Some(_) => None,
            None => started::files(&from, &at.tool, dir),
        };
        let first = started.as_ref().and_then(|files| files.compose.first());
        let at = Location {
            file: at.file.clone().or_else(|| first.cloned()),
            dir: spelled.clone().or_else(|| at.dir.clone()),
            ..at.clone()
        };
        match Self::find_like_compose(name, &at) {
            Ok(stack) => Ok(Self { started, ..stack }),
            Err(error) => {
                let other = started::other_dir(containers, &at.tool, dir);
                // Docker creates a folder of Portainer if a container mounts a path in it.
                let has_file = |dir: &&str| found(Path::new(dir)).is_some();
                let other = other.filter(|dir| !is_portainers(dir) || has_file(dir));
                Err(match other {
                    Some(other) => elsewhere(&error, other).into(),
                    None => error,
                })
            }
        }
    }

    /// A stack whose directory and Compose file may be gone.
    pub fn at(name: StackName, dir: &Path, file: &str) -> Self {
        let (dir, file) = (dir.to_owned(), file.to_owned());
        Self {
            name,
            dir,
            file,
            started: None,
        }
    }

    pub fn name(&self) -> &StackName {
        &self.name
    }

    /// The stack's directory, absolute.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The stack's directory as text: it replaces `./` in the Compose text (C32).
    pub fn dir_text(&self) -> &str {
        self.dir.to_str().unwrap_or_default()
    }

    /// The Compose file's name in the directory.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The files that its containers were started from, if they agree.
    pub fn started(&self) -> Option<&Files> {
        self.started.as_ref()
    }

    /// Whether an export can write its files over those of the stack: `plan` and `adopt` still read several files, and one below
    /// the directory.
    pub fn is_replaceable(&self) -> bool {
        let started = self.started.as_ref();
        let files = started.map_or(1, |files| files.compose.len() + files.env.len());
        files < 2 && !self.file.contains('/')
    }

    /// The command that writes Portainer's version over the files. `None` if it cannot.
    pub fn export_command(&self) -> Option<String> {
        let words = [
            "export",
            self.name.as_str(),
            "--to",
            self.dir_text(),
            "--force",
        ];
        self.is_replaceable().then(|| command(&words))
    }

    /// Whether Compose finds this file by itself. It merges override files only into that one.
    pub fn is_found(&self) -> bool {
        found(&self.dir) == Some(self.file.as_str())
    }

    /// The Compose file, absolute.
    pub fn compose_path(&self) -> PathBuf {
        self.dir.join(&self.file)
    }

    /// Reads the Compose file and `.env`. Either must be UTF-8 (C34). Fails if a file that Compose would read for them is
    /// refused (B25, B29).
    pub fn read(&self) -> Result<StackText> {
        let source = self.read_own()?;
        self.read_files(&Files {
            compose: vec![self.file.clone()],
            env: Vec::new(),
        })?;
        Ok(source)
    }

    /// The same, without the other files that Compose would read.
    pub fn read_own(&self) -> Result<StackText> {
        let (compose, access) = self.read_compose()?;
        Ok(StackText {
            compose,
            env: self.read_env(".env")?,
            access,
        })
    }

    fn read_compose(&self) -> Result<(String, FileAccess)> {
        let path = self.compose_path();
        let Contents { bytes, access } = disk::read(&self.dir, &path).map_err(|error| {
            let hint = match Refused::of(&error) {
                Some(Refused::TooLarge) => "is it the right file? pass another one with --file",
                _ => "make it readable for the user who runs stacklift, then run the command again",
            };
            unreadable("Compose file", &path, error, hint)
        })?;
        Ok((encoding::strict("Compose file", &path, bytes)?, access))
    }

    /// Reads an env file; `file` is relative to the stack's directory. `None` if it does not exist.
    pub fn read_env(&self, file: &str) -> Result<Option<String>> {
        let bytes = self.read_env_bytes(file)?;
        let path = self.dir.join(file);
        let strict = |bytes| encoding::strict("env file", &path, bytes);
        bytes.map(strict).transpose()
    }

    fn read_env_bytes(&self, file: &str) -> Result<Option<Vec<u8>>> {
        const HINT: &str = "fix it, or move it away if the stack does not need its variables, then run the command again";
        let path = self.dir.join(file);
        match disk::read(&self.dir, &path) {
            Ok(contents) => Ok(Some(contents.bytes)),
            // A link may lead nowhere.
            Err(error) if error.kind() == ErrorKind::NotFound && !disk::is_link(&path) => Ok(None),
            Err(error) => Err(unreadable("env file", &path, error, HINT).into()),
        }
    }
}

/// The error of a stack that is not found, with the one directory in which its containers were started.
pub fn started_elsewhere(
    error: anyhow::Error,
    containers: &[Container],
    tool: &str,
) -> anyhow::Error {
    match started::other_dir(containers, tool, Path::new("")) {
        Some(other) => elsewhere(&error, other).mistyped().into(),
        None => error,
    }
}

/// A stack that is not found, whose containers can say what its Compose file was.
fn lost(
    error: anyhow::Error,
    name: &StackName,
    containers: &[Container],
    at: &Location,
) -> anyhow::Error {
    let tool = &at.tool;
    let dirs = started_dirs(containers, tool);
    if dirs.is_empty() || dirs.iter().any(|dir| found(Path::new(dir)).is_some()) {
        return error;
    }
    let (what, source) = if dirs.iter().any(|dir| is_portainers(dir)) {
        ("the Portainer that started it is gone", "portainer-data")
    } else {
        ("the Compose file is lost", "containers")
    };
    let mut files = containers.iter();
    let files = files.find_map(|container| container.compose_label(tool, "project.config_files"));
    let is_gone = |file: &str| !disk::is_file(Path::new(file));
    let message = match files {
        Some(files) if source == "containers" && files.split(',').all(is_gone) => {
            let verb = if files.contains(',') { "do" } else { "does" };
            let files = printable(files).replace(',', " and ");
            format!("{name} was started from {files}, which {verb} not exist")
        }
        _ => format!("{error:#}"),
    };
    let own = stack_dir(name, at).unwrap_or_default();
    let by_hand = started_by_hand(containers, tool);
    let own = own
        .to_str()
        .filter(|_| source == "portainer-data" || by_hand.is_some());
    // One started in the stacks root gets its own directory there.
    let dir = by_hand
        .filter(|dir| !is_same(Path::new(dir), &at.root))
        .or(own);
    let export = command(&[export_words(name.as_str(), dir), vec!["--from", source]].concat());
    Failure::new(message)
        .hint(format!(
            "if it was moved or renamed, pass its directory with --dir or its name with --file; if {what}, run `{export}` to write a new one"
        ))
        .mistyped()
        .into()
}

/// A stack that is not found where its containers were not started.
fn elsewhere(error: &anyhow::Error, other: &str) -> Failure {
    let portainer = if is_portainers(other) {
        "if that is Portainer's directory, `stacklift export` writes the file, with the API key of an administrator; otherwise, "
    } else {
        ""
    };
    Failure::new(format!("{error:#}")).hint(format!(
        "the project's containers were started in {other}: {portainer}pass --dir {}",
        shell_word(other)
    ))
}

/// The absolute path of a stack's directory, whether it exists or not.
pub fn stack_dir(name: &StackName, at: &Location) -> Result<PathBuf> {
    let dir = match &at.dir {
        Some(dir) => dir.clone(),
        None => at.root.join(name.as_str()),
    };
    let dir = std::path::absolute(&dir)
        .with_context(|| format!("failed to resolve the directory {}", dir.display()))?;
    if dir.to_str().is_none() {
        bail!(
            "the path of the directory {} is not UTF-8: it cannot be written into a Compose file",
            dir.display()
        );
    }
    Ok(dir)
}

/// The directories of this name with a Compose file one level deeper in the stacks root.
pub fn deeper_dirs(name: &str, at: &Location) -> Vec<PathBuf> {
    let dirs = disk::entries(&at.root).unwrap_or_default().into_iter();
    let mut deeper: Vec<PathBuf> = dirs.map(|dir| dir.join(name)).collect();
    deeper.retain(|dir| at.has_file(dir));
    deeper.sort();
    deeper
}

/// Why a file is not read. `hint` is for a file that is not [`Refused::NotReadableBy`] somebody.
fn unreadable(what: &str, path: &Path, error: io::Error, hint: &str) -> Failure {
    let dir = path.parent().and_then(|dir| disk::metadata(dir).ok());
    // A link could lead the command to a file of root.
    let owner = dir.map(|dir| dir.uid()).filter(|_| !disk::is_link(path));
    let hint = match Refused::of(&error) {
        Some(Refused::NotReadableBy(user)) => {
            let path = path.to_string_lossy();
            let how = if owner == Some(user) {
                let file = shell_word(&path);
                format!("if this is the stack's file, run `chown -h {user} {file}`")
            } else {
                format!(
                    "make the file readable for the user {user}, or make root the owner of the directory"
                )
            };
            &format!("root reads the files of a directory only as its owner: {how}")
        }
        _ => hint,
    };
    Failure::new(format!("failed to read the {what} {}", path.display()))
        .source(error)
        .hint(hint)
}

/// The name of the Compose file that Compose finds in a directory by itself. It need not be a regular file.
fn found(dir: &Path) -> Option<&'static str> {
    let mut files = DEFAULT_FILES.into_iter();
    files.find(|file| disk::exists(&dir.join(file)))
}

/// The files in the `COMPOSE_FILE` of a directory's `.env`. Fails if `.env` is refused.
fn listed(dir: &Path) -> Result<Vec<String>> {
    let path = dir.join(".env");
    let env = match disk::read(dir, &path) {
        Ok(contents) => String::from_utf8(contents.bytes).unwrap_or_default(),
        Err(error) if Refused::of(&error).is_some() => {
            let hint = "move it away, or replace it with a regular file";
            return Err(unreadable("env file", &path, error, hint).into());
        }
        Err(_) => return Ok(Vec::new()),
    };
    let variables = dotenv::parse(&env, &|_| None).unwrap_or_default();
    let value = |wanted| {
        let found = variables.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let separator = value("COMPOSE_PATH_SEPARATOR").unwrap_or(":");
    let files = value("COMPOSE_FILE").unwrap_or_default();
    let files = files.split(separator).filter(|file| !file.is_empty());
    Ok(files.map(str::to_owned).collect())
}

fn is(path: &Path, kind: impl Fn(&fs::Metadata) -> bool) -> Result<bool> {
    match disk::metadata(path) {
        Ok(metadata) => Ok(kind(&metadata)),
        Err(error) if disk::is_absent(&error) => Ok(false),
        Err(error) => Err(Failure::new(format!("failed to access {}", path.display()))
            .source(error)
            .hint("run stacklift as a user who can read the stack's directory")
            .into()),
    }
}

fn missing_dir(name: &StackName, dir: &Path, at: &Location) -> Failure {
    let is = if disk::exists(dir) {
        "is not a directory"
    } else {
        "does not exist"
    };
    let what = format!("there is no stack named {name}: {} {is}", dir.display());
    let failure = Failure::new(what).mistyped();
    if at.dir.is_some() {
        return failure;
    }
    let question = match near_stacks(name.as_str(), &at.root).as_slice() {
        [] => String::new(),
        near => format!("did you mean {}? ", near.join(" or ")),
    };
    failure.hint(format!(
        "{question}looked in {}; pass --stacks-root, or --dir for this stack only",
        at.root.display()
    ))
}

/// The stacks below `root` whose names are close to `name`, the closest first.
fn near_stacks(name: &str, root: &Path) -> Vec<String> {
    let mut dirs = disk::entries(root).unwrap_or_default();
    dirs.retain(|dir| disk::is_dir(dir));
    let names = dirs.iter().filter_map(|dir| dir.file_name()?.to_str());
    let near = near(name, names).into_iter();
    near.take(3).map(str::to_owned).collect()
}

/// The error of a stack that is not in the stacks root, and whose containers were started in several of these directories.
pub fn started_in_several<'d>(name: &StackName, dirs: impl Iterator<Item = &'d str>) -> Failure {
    let dirs: Vec<String> = dirs
        .map(|dir| format!("--dir {}", shell_word(dir)))
        .collect();
    let count = dirs.len();
    Failure::new(format!(
        "the containers of {name} were started in {count} directories"
    ))
    .hint(format!("pass one of them: {}", dirs.join(" or ")))
}

fn missing_file(name: &StackName, dir: &Path, file: &str) -> Failure {
    let mut found = Vec::from(DEFAULT_FILES);
    found.retain(|other| *other != file && disk::is_file(&dir.join(other)));
    let hint = match found.first() {
        Some(other) => format!(
            "found {}; to use it, pass --file {other}",
            found.join(" and ")
        ),
        None => format!(
            "looked for {}; pass another name with --file",
            DEFAULT_FILES.join(", ")
        ),
    };
    Failure::new(format!(
        "the Compose file of the stack {name} is missing: {} is not a file",
        dir.join(file).display()
    ))
    .hint(hint)
}
