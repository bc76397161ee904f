//! The export: writes a Portainer stack into a directory, so that Compose does there what Portainer does. Reads Portainer
//! only, and no container.
//!
//! Invariants: the files are complete or absent, and no error or note holds the value of a variable.

mod lost;

use std::{
    borrow::Cow,
    ffi::OsStr,
    fs::{self, DirEntry},
    io::{self, ErrorKind},
    path::Path,
};

use anyhow::{Context as _, Result};
use composefile::{
    document::{Document, Node},
    interpolate::occurrences,
    reader::{DEFAULT_FILES, EnvFiles, OVERRIDE_FILES},
};

use crate::{
    disk::{self, Dir, Existing, INCOMPLETE, Refused, Rights},
    failure::Failure,
    model::{StackKind, Variable, portainer_name},
    portainer::{Repository, Stored},
    report::ExportedStack,
    rewrite::{
        env::stack_env,
        export::{self, ExportedFiles},
        faithful::FROM_PORTAINER_DATA,
        portainer::STACK_ENV,
        repository::with_env_files,
    },
    stack::is_same,
    text::{bulleted, printable},
};

pub use lost::{Lost, find as find_lost};

/// The file with the text, unless the directory has another one that Compose finds.
const COMPOSE_FILE: &str = "compose.yaml";
/// The file with the variables.
const ENV_FILE: &str = ".env";
/// What to do if not everything of a Git stack is in Portainer.
const CLONE: &str = "clone its Git repository instead";

/// How stacks are exported.
pub struct Export<'a> {
    pub stacks_root: &'a Path,
    /// Whether files in the directory may be replaced.
    pub force: bool,
    /// What a Portainer that is gone stored, if the stack is lost.
    pub lost: Option<&'a Lost>,
    /// The name of the Compose file, if the stack's own has another one than Compose finds.
    pub file: Option<&'a str>,
}

impl Export<'_> {
    /// Writes the Portainer stack `name` into `dir`. Fails before anything is written if the files would have a different
    /// meaning, or if the directory is refused. `stored` is only called if it is not.
    pub fn run(
        &self,
        (name, kind): (&str, StackKind),
        dir: &Path,
        stored: impl FnOnce() -> Result<Stored>,
    ) -> Result<ExportedStack> {
        Self::check(dir, self.force)?;
        self.check_name(name, dir)?;
        if kind == StackKind::Kubernetes {
            let name = printable(name);
            let what =
                format!("the Portainer stack {name} is a Kubernetes stack: it has no Compose file");
            let hint = "copy its manifest from Portainer";
            return Err(Failure::new(what).hint(hint).into());
        }
        let stored = stored()?;
        let files = match kind {
            StackKind::Swarm => ExportedFiles {
                text: stored.contents.text.clone(),
                env: stack_env(&stored.contents.env),
                ..ExportedFiles::default()
            },
            _ => self.files_of(name, &stored)?,
        };
        let written = write((dir, self.file), &files, self.force)?;
        Ok(ExportedStack {
            stack: name.to_owned(),
            variables: stored.contents.env.len() - files.left_out.len(),
            notes: [&written.notes[..], &notes(&files, &stored.folder)].concat(),
            moves_data: files.text.contains(&stored.folder),
            ..written
        })
    }

    /// Refuses a directory that is not empty, unless its files may be replaced, and one with files that Compose
    /// would merge.
    pub fn check(dir: &Path, force: bool) -> Result<()> {
        let hint = "pass another directory with --to";
        let refused = |why: &str| {
            Failure::new(format!("cannot export into {}{why}", dir.display())).hint(hint)
        };
        let mut entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(refused("").source(error).into()),
        };
        if let Some(file) = OVERRIDE_FILES.iter().find(|file| dir.join(file).exists()) {
            let why = format!(": Compose would merge its {file} into the exported file");
            return Err(refused(&why).into());
        }
        let is_incomplete =
            |entry: DirEntry| entry.file_name().to_string_lossy().starts_with(INCOMPLETE);
        if !force && !entries.all(|entry| entry.is_ok_and(is_incomplete)) {
            let replace = format!(
                "{hint}; if this is the right one, pass it with --to and --force, which replaces its Compose file and {ENV_FILE} and keeps copies"
            );
            return Err(refused(": the directory is not empty").hint(replace).into());
        }
        Ok(())
    }

    /// Refuses a directory of the stacks root with another name, unless its files may be replaced: two directories would have
    /// the stack's project.
    fn check_name(&self, name: &str, dir: &Path) -> Result<()> {
        let real = disk::canonicalize(dir).or_else(|_| std::path::absolute(dir));
        let real = real.unwrap_or_else(|_| dir.to_owned());
        let root = self.stacks_root;
        let is_in_root = real.parent().is_some_and(|parent| is_same(parent, root));
        let own = real.file_name().and_then(OsStr::to_str).map(portainer_name);
        if self.force || !is_in_root || own.as_deref() == Some(name) {
            return Ok(());
        }
        let (name, root, dir) = (printable(name), root.display(), dir.display());
        let what = format!(
            "cannot export into {dir}: in the stacks root, the directory of {name} must have its name"
        );
        let hint = format!("pass --to {root}/{name}, or a directory outside {root}");
        Err(Failure::new(what).hint(hint).into())
    }

    fn files_of(&self, project: &str, stored: &Stored) -> Result<ExportedFiles> {
        let name = printable(project);
        if stored.further_files > 0 {
            let all = stored.further_files + 1;
            let what = format!(
                "cannot export {name}: Portainer returns only the first of its {all} Compose files"
            );
            return Err(Failure::new(what).hint(CLONE).into());
        }
        let (text, env) = (&stored.contents.text, &stored.contents.env);
        let text = match &stored.git {
            None => Cow::Borrowed(text),
            Some(git) => Cow::Owned(text_of_git(git, text, env).map_err(|variable| {
                let what = format!("cannot export {name}: Portainer has no value for {variable}, which a .env file in the repository may set");
                Failure::new(what).hint(CLONE)
            })?),
        };
        let none = EnvFiles::new();
        let input = export::Stored {
            text: &text,
            variables: &stored.contents.env,
            project,
            folder: &stored.folder,
            env_file: self.lost.map_or(STACK_ENV, |lost| &lost.env_file),
            env_files: self.lost.map_or(&none, |lost| &lost.env_files),
            mark: self.lost.map(|_| FROM_PORTAINER_DATA),
        };
        export::files(&input).map_err(|blockers| {
            let lines = blockers.iter().map(|blocker| match blocker.position {
                Some(position) => format!("line {}: {}", position.line, blocker.message),
                None => blocker.message.clone(),
            });
            Failure::new(format!(
                "cannot export {name}: its Compose file would mean something else outside Portainer"
            ))
            .details(bulleted(lines))
            .hint(match self.lost {
                None if stored.git.is_some() => CLONE,
                None => "change the Compose file in Portainer, or copy it and the variables from there",
                Some(_) => "copy the Compose file and the variables from Portainer's data, and change them there",
            })
            .into()
        })
    }
}

/// The text of a Git stack, with the path that `stack.env` has in its folder. The error is a variable that Portainer does not
/// set: the `.env` in the repository may.
fn text_of_git(git: &Repository, text: &str, env: &[Variable]) -> Result<String, String> {
    let own = git.stack_env();
    let text = with_env_files(text, |path| (path == own).then(|| STACK_ENV.to_owned()));
    let is_set = |name: &str| env.iter().any(|variable| variable.name == name);
    let unset = Document::parse(&text).ok().and_then(|document| {
        let scalars = document.nodes().filter_map(Node::as_str);
        let mut names = scalars
            .flat_map(occurrences)
            .map(|occurrence| occurrence.name);
        names.find(|name| !is_set(name)).map(str::to_owned)
    });
    unset.map_or(Ok(text), Err)
}

/// How the text differs from the one in Portainer.
fn notes(files: &ExportedFiles, folder: &str) -> Vec<String> {
    let changes = files.changes.iter().map(|line| {
        format!(
            "line {line} differs from the file in Portainer, where it depends on {folder} or Portainer's container"
        )
    });
    let told = |name| format!("{name} is left out of {ENV_FILE}: it has no effect in Portainer");
    changes.chain(files.left_out.iter().map(told)).collect()
}

/// Writes the files, the Compose file last, which may contain secrets, too. Returns their names, and notes about files that
/// were replaced, and nothing else. Without the name of the Compose file, it is the one that Compose finds.
pub fn write(
    (path, compose_file): (&Path, Option<&str>),
    files: &ExportedFiles,
    replace: bool,
) -> Result<ExportedStack> {
    let existing = if replace {
        Existing::Replace
    } else {
        Existing::Keep
    };
    let dir = Dir::create(path).map_err(|error| {
        let hint = match Refused::of(&error) {
            Some(Refused::LinkOf(_)) => "pass the path without that link with --to",
            _ => "pass another directory with --to",
        };
        Failure::new(format!("failed to create {}", path.display()))
            .source(error)
            .hint(hint)
    })?;
    dir.remove_incomplete()
        .with_context(|| format!("failed to tidy up {}", path.display()))?;
    let mut exported = ExportedStack {
        dir: Some(path.display().to_string()),
        ..ExportedStack::default()
    };
    let mut one = |name: &str, write: &mut dyn FnMut() -> io::Result<()>| -> Result<()> {
        write().with_context(|| {
            let so_far = match exported.files.as_slice() {
                [] => String::new(),
                written => format!("; {} was written before", written.join(", ")),
            };
            format!("failed to write {}{so_far}", path.join(name).display())
        })?;
        exported.files.push(name.to_owned());
        Ok(())
    };
    let mut text = |name: &str, text: &str| {
        let now = disk::read(path, Path::new(name));
        if replace && !now.is_ok_and(|now| now.bytes == text.as_bytes()) {
            let copy = dir.keep(name)?;
            exported
                .notes
                .extend(copy.map(|copy| format!("the earlier {name} is now {copy}")));
        }
        dir.write(name, text.as_bytes(), Rights::AsReplaced, existing)
    };
    // An `.env` that exists would set other variables.
    if !files.env.is_empty() || files.names_stack_env || disk::exists(&path.join(ENV_FILE)) {
        one(ENV_FILE, &mut || text(ENV_FILE, &files.env))?;
    }
    let mut defaults = DEFAULT_FILES.into_iter();
    let found = defaults.find(|file| disk::exists(&path.join(file)));
    let compose_file = compose_file.or(found).unwrap_or(COMPOSE_FILE);
    one(compose_file, &mut || text(compose_file, &files.text))?;
    if files.names_stack_env {
        one(STACK_ENV, &mut || dir.link(STACK_ENV, ENV_FILE, existing))?;
    }
    // What a power failure undoes can be exported again.
    dir.sync().ok();
    Ok(exported)
}
