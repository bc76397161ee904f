//! The world of a rehearsal: the example stacks, or a copy of one of the user's.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow};
use composefile::path;
use rehearsal::{World, seed};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::{
    cli::console::Console,
    disk,
    failure::Failure,
    observe,
    stack::{Location, Stack, StackName, StackText},
};

/// The home directory of the user who starts stacks in a [`World`].
const HOME: &str = "/home/operator";

/// How long the containers of the user's stack have been running, in milliseconds.
const AGE: i64 = (24 * 60 + 30) * 60_000;

/// The world of a rehearsal, and where its stacks are on disk.
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) location: Location,
}

/// The example stacks, started without Portainer, and shown as if they were in the stacks root.
pub(super) fn of_examples(at: &Location, folder: &Path, console: &Console) -> Result<Stage> {
    let root = folder.join("stacks");
    seed::write(&root).context("failed to write the example stacks")?;
    let world = World::with_examples(&key()?, path_text(&root)?)
        .map_err(|reason| anyhow!("failed to start the example stacks: {reason}"))?;
    console.rename(path_text(&root)?, path_text(&at.root)?);
    let location = Location { root, ..at.clone() };
    Ok(Stage { world, location })
}

/// A copy of the user's stack, started without Portainer, and shown with the paths of its originals.
pub(super) fn of_user(
    name: &StackName,
    at: &Location,
    folder: &Path,
    console: &Console,
) -> Result<Stage> {
    let stack = Stack::find(name.clone(), at)?;
    let source = stack.read_own()?;
    let root = mirrored(folder, stack.dir().parent().unwrap_or(Path::new("/")));
    let copy = root.join(name.as_str());
    let copy_text = path_text(&copy)?;
    console.rename(copy_text, stack.dir_text());
    console.rename(path_text(&mirrored(folder, Path::new("")))?, "/");
    let home = std::env::home_dir();
    if let Some(home) = home.as_deref().and_then(Path::to_str) {
        console.rename(HOME, home);
    }
    let (compose_files, mut files) = files_of(&stack, &source)?;
    if let Some(env) = source.env {
        files.insert(stack.dir().join(".env"), env);
    }
    let copied = |path: &Path| match path.strip_prefix(stack.dir()) {
        Ok(inside) => copy.join(inside),
        Err(_) => mirrored(folder, path),
    };
    let mut world = World::new(&key()?);
    world.now -= AGE;
    world.add_portainer();
    world.tool.clone_from(&at.tool);
    for (path, text) in &files {
        let to = copied(path);
        write_copy(&to, text)?;
        // A text can also name the file by its absolute path, or by `~`.
        let inside_home = home.as_ref().map(|home| path.strip_prefix(home));
        let below_home = inside_home.and_then(|inside| Some(Path::new(HOME).join(inside.ok()?)));
        let paths = [Some(&to), Some(path), below_home.as_ref()];
        for path in paths.into_iter().flatten() {
            let folder = path_text(path.parent().unwrap_or(Path::new("/")))?;
            let name = path.file_name().and_then(OsStr::to_str);
            world.add_stack(folder, [(name.unwrap_or_default(), text.as_str())]);
        }
    }
    let copied_files: Vec<PathBuf> = compose_files.iter().map(|path| copied(path)).collect();
    let copied_files = copied_files.iter().map(|path| path_text(path));
    let copied_files = copied_files.collect::<Result<Vec<_>>>()?;
    let cannot_start = |reason: String| {
        Failure::new(format!("cannot rehearse the stack {name}: it does not start"))
            .source(reason)
            .hint("check it with `docker compose config`; the rehearsal knows only the stack's Compose files and env files")
    };
    let needed = world.add_external(name.as_str(), copy_text, &copied_files);
    for path in needed.map_err(cannot_start)?.iter().map(Path::new) {
        let original = original(path, folder, (&copy, stack.dir()));
        stand_in(&mut world, path, &original)?;
    }
    let started = world.start_by_hand(name.as_str(), copy_text, &copied_files);
    started.map_err(cannot_start)?;
    // Containers that a run does not touch then look the same before and after.
    world.now += AGE;
    let mut location = Location { root, ..at.clone() };
    location.dir = None;
    Ok(Stage { world, location })
}

/// The path of this host that a path of the world stands for. `copy` is the stack's directory in the world and on this
/// host.
fn original(path: &Path, folder: &Path, copy: (&Path, &Path)) -> PathBuf {
    if let Ok(inside) = path.strip_prefix(copy.0) {
        return copy.1.join(inside);
    }
    if let Ok(mirrored) = path.strip_prefix(folder.join("stacks")) {
        return Path::new("/").join(mirrored);
    }
    match (path.strip_prefix(HOME), std::env::home_dir()) {
        (Ok(inside), Some(home)) => home.join(inside),
        _ => path.to_owned(),
    }
}

/// Adds an empty file or directory to the world if `original` exists, and to the copies if `path` is among them. The
/// engine refuses a mount whose source is missing (M13). The contents are data, which is never copied.
fn stand_in(world: &mut World, path: &Path, original: &Path) -> Result<()> {
    let Ok(metadata) = disk::metadata(original) else {
        return Ok(());
    };
    let is_copy = path != original && !path.starts_with(HOME);
    if metadata.is_dir() {
        world.add_stack(path_text(path)?, []);
        if is_copy {
            let failed = || format!("failed to create {}", path.display());
            fs::create_dir_all(path).with_context(failed)?;
        }
        return Ok(());
    }
    // An env file that is also mounted is there already, with its text.
    if is_copy && !path.exists() {
        write_copy(path, "")?;
    }
    world.add_stack(path_text(path.parent().unwrap_or(Path::new("/")))?, []);
    world.add_empty_file(path_text(path)?);
    Ok(())
}

/// The paths of the Compose files, and the texts of all files that Compose reads besides `.env`, by their absolute paths.
fn files_of(
    stack: &Stack,
    source: &StackText,
) -> Result<(Vec<PathBuf>, BTreeMap<PathBuf, String>)> {
    let absolute = |path: &Path| -> Result<PathBuf> {
        Ok(path::clean(path_text(&stack.dir().join(path))?).into())
    };
    let files = observe::files(stack, || observe::found(stack, source).1);
    let found = files.compose.iter().map(|file| absolute(Path::new(file)));
    let read = stack.read_files(&files)?.all.into_iter();
    let texts =
        read.filter_map(|(path, bytes)| Some((path, String::from_utf8(bytes.to_vec()).ok()?)));
    let texts = texts.map(|(path, text)| Ok((absolute(&path)?, text)));
    Ok((found.collect::<Result<_>>()?, texts.collect::<Result<_>>()?))
}

/// The absolute `path` below `folder`, so that `..` in it leads to the copies of the same files.
fn mirrored(folder: &Path, path: &Path) -> PathBuf {
    let mirror = folder.join("stacks");
    mirror.join(path.strip_prefix("/").unwrap_or(path))
}

fn write_copy(path: &Path, text: &str) -> Result<()> {
    let what = || format!("failed to write {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(what)?;
    }
    fs::write(path, text).with_context(what)
}

/// An API key that nobody else can know (B45).
fn key() -> Result<String> {
    let mut random = [0; 16];
    let read = getrandom(&mut random, GetRandomFlags::empty());
    anyhow::ensure!(
        read == Ok(random.len()),
        "failed to create a random API key"
    );
    let digits = random.iter().map(|byte| format!("{byte:02x}"));
    Ok(format!("ptr_{}", digits.collect::<String>()))
}

pub(super) fn path_text(path: &Path) -> Result<&str> {
    let shown = path.display();
    path.to_str()
        .with_context(|| format!("the path of the directory {shown} is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b45_the_key_of_a_rehearsal_is_random() {
        let [one, other] = [key(), key()].map(|key| key.expect("a key"));
        assert_ne!(one, other);
        let digits = one.strip_prefix("ptr_").expect("a key");
        assert_eq!(digits.len(), 32, "128 bits");
        assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
