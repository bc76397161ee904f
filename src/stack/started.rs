//! Where containers were started from, as their labels say.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{
    disk,
    model::{Container, may_be_portainers},
};

/// The files that Compose reads for a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The Compose files in the order in which Compose reads them, absolute or relative to the stack's directory.
    pub compose: Vec<String>,
    /// The files of `--env-file`, absolute or relative to the stack's directory. If empty, Compose reads `.env`, if it
    /// exists.
    pub env: Vec<String>,
}

/// Whether a container was started in `dir`.
pub(super) fn is_in(containers: &[Container], tool: &str, dir: &Path) -> bool {
    in_dir(containers, tool, dir).next().is_some()
}

/// The path of `dir` with which most containers were started: another one may be written into the text, which would
/// recreate them (B28).
pub(super) fn spelling(containers: &[Container], tool: &str, dir: &Path) -> Option<PathBuf> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let started = in_dir(containers, tool, dir);
    for from in started.filter_map(|container| container.compose_label(tool, "project.working_dir"))
    {
        *counts.entry(from).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(from, _)| PathBuf::from(from))
}

fn in_dir<'c>(
    containers: &'c [Container],
    tool: &str,
    dir: &Path,
) -> impl Iterator<Item = &'c Container> {
    containers.iter().filter(move |container| {
        container
            .compose_label(tool, "project.working_dir")
            .is_some_and(|from| is_same(Path::new(from), dir))
    })
}

/// The files that the containers started from `dir` name, if the containers agree and all Compose files exist. A file in
/// `dir` is given by its name only. The first file is in `dir`.
pub fn files(containers: &[Container], tool: &str, dir: &Path) -> Option<Files> {
    let label = |one: &Container, name| {
        let files = one.compose_label(tool, name)?.split(',');
        let named = files.filter(|file| !file.is_empty()).map(str::to_owned);
        Some(named.collect::<Vec<_>>())
    };
    let all: BTreeSet<_> = in_dir(containers, tool, dir)
        .filter_map(|container| {
            let env = label(container, "project.environment_file").unwrap_or_default();
            Some((label(container, "project.config_files")?, env))
        })
        .collect();
    let (mut compose, mut env) = only(all)?;
    if !compose.iter().all(|file| disk::exists(&dir.join(file))) {
        return None;
    }
    for file in compose.iter_mut().chain(&mut env) {
        let path = dir.join(&file);
        let name = path.file_name().and_then(|name| name.to_str());
        match (name, path.parent()) {
            (Some(name), Some(parent)) if is_same(parent, dir) => name.clone_into(file),
            _ => {
                let below = path.strip_prefix(dir).ok().and_then(Path::to_str);
                *file = below.map_or_else(|| file.clone(), str::to_owned);
            }
        }
    }
    // The stack's own file is in its directory, or below it with `--project-directory`.
    let is_below =
        |file: &&String| !file.starts_with('/') && !file.split('/').any(|part| part == "..");
    let first = compose.first().filter(is_below)?;
    if env.is_empty() && !first.contains('/') {
        env = env_of_parent(dir, &compose);
    }
    if let [one] = env.as_slice()
        && is_same(&dir.join(one), &dir.join(".env"))
    {
        env.clear();
    }
    Some(Files { compose, env })
}

/// The env files of Compose files that the `COMPOSE_FILE` of a parent directory names: Compose reads its `.env`, too, and no
/// label says so.
fn env_of_parent(dir: &Path, compose: &[String]) -> Vec<String> {
    let names_them = |parent: &&Path| {
        let listed = super::listed(parent).unwrap_or_default();
        let mut pairs = listed.iter().zip(compose);
        listed.len() == compose.len()
            && pairs.all(|(listed, file)| is_same(&parent.join(listed), &dir.join(file)))
    };
    let Some(parent) = dir.ancestors().skip(1).find(names_them) else {
        return Vec::new();
    };
    // Its values take precedence.
    let own = disk::exists(&dir.join(".env")).then(|| ".env".to_owned());
    let parents = parent.join(".env").to_str().map(str::to_owned);
    own.into_iter().chain(parents).collect()
}

/// The directories that the containers were started in, each once.
pub fn started_dirs<'c>(
    containers: impl IntoIterator<Item = &'c Container>,
    tool: &str,
) -> Vec<&'c str> {
    let containers = containers.into_iter();
    let started =
        containers.filter_map(|container| container.compose_label(tool, "project.working_dir"));
    let mut dirs: Vec<&str> = Vec::new();
    for dir in started.collect::<BTreeSet<_>>() {
        let is_known = |known: &&str| is_same(Path::new(known), Path::new(dir));
        if !dirs.iter().any(is_known) {
            dirs.push(dir);
        }
    }
    dirs
}

/// The one directory besides `dir` that the containers were started in, if it exists.
pub(super) fn other_dir<'c>(
    containers: &'c [Container],
    tool: &str,
    dir: &Path,
) -> Option<&'c str> {
    let one = only(started_dirs(containers, tool))?;
    (disk::is_dir(Path::new(one)) && !is_same(Path::new(one), dir)).then_some(one)
}

/// The only directory in which containers were started by hand, if it can exist.
pub fn started_by_hand<'c>(
    containers: impl IntoIterator<Item = &'c Container>,
    tool: &str,
) -> Option<&'c str> {
    let dirs = started_dirs(containers, tool).into_iter();
    let one = only(dirs.filter(|dir| !may_be_portainers(dir)))?;
    let is_dir = Path::new(one).parent().is_some_and(disk::is_dir);
    is_dir.then_some(one)
}

/// The words of the `stacklift export` that writes the lost files of a stack into its directory, where `plan` and `adopt` find
/// them. `--force` is needed if it has other files.
pub fn export_words<'w>(name: &'w str, dir: Option<&'w str>) -> Vec<&'w str> {
    let mut words = vec!["export", name];
    if let Some(dir) = dir {
        words.extend(["--to", dir]);
        let has_files = disk::entries(Path::new(dir)).is_ok_and(|all| !all.is_empty());
        words.extend(has_files.then_some("--force"));
    }
    words
}

/// The one item, if there is only one.
fn only<T>(items: impl IntoIterator<Item = T>) -> Option<T> {
    let mut all = items.into_iter();
    all.next().filter(|_| all.next().is_none())
}

/// Whether two paths are the same file or directory, following symbolic links.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| disk::canonicalize(path).ok();
    one == other || real(one).is_some_and(|path| Some(path) == real(other))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use serde_json::json;

    use super::*;

    fn container(dir: &Path, files: &str) -> Container {
        let labels = json!({
            "com.docker.compose.project.working_dir": dir,
            "com.docker.compose.project.config_files": files,
        });
        Container(json!({"Config": {"Labels": labels}}))
    }

    #[test]
    fn the_file_that_containers_were_started_from_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        let (dir, link) = (root.path().join("web"), root.path().join("link"));
        fs::create_dir(&dir).expect("a folder");
        fs::write(dir.join("prod.yml"), "").expect("a file");
        symlink(&dir, &link).expect("a link");
        let absolute = format!("{}/../web/prod.yml", dir.display());
        for (from, files, expected) in [
            (&dir, "prod.yml", Some("prod.yml")),
            (&link, absolute.as_str(), Some("prod.yml")),
            (&dir, "prod.yml,gone.yml", None),
            (&dir, "prod.yml,../web/prod.yml", Some("prod.yml,prod.yml")),
            (&dir, "gone.yml", None),
            (&dir, "/etc/passwd", None),
            (&root.path().to_owned(), "web/prod.yml", None),
        ] {
            let found = super::files(&[container(from, files)], "docker", &dir);
            let compose = found.map(|found| found.compose.join(","));
            assert_eq!(compose.as_deref(), expected, "{files}");
        }
        let below = super::files(
            &[container(root.path(), "web/prod.yml")],
            "docker",
            root.path(),
        );
        let below = below.map(|found| found.compose);
        assert_eq!(below, Some(vec!["web/prod.yml".to_owned()]));
        let env = root.path().join(".env");
        for (listed, own, expected) in [
            ("prod.yml", false, vec![]),
            ("./web/prod.yml", false, vec![env.to_str().expect("UTF-8")]),
            (
                "web/prod.yml",
                true,
                vec![".env", env.to_str().expect("UTF-8")],
            ),
        ] {
            fs::write(&env, format!("COMPOSE_FILE={listed}\n")).expect("a file");
            if own {
                fs::write(dir.join(".env"), "").expect("a file");
            }
            let found = super::files(&[container(&dir, "prod.yml")], "docker", &dir);
            assert_eq!(found.expect("files").env, expected, "{listed}");
        }
        let two = [container(&dir, "prod.yml"), container(&dir, "gone.yml")];
        assert_eq!(files(&two, "docker", &dir), None, "they disagree");
        assert_eq!(other_dir(&two, "docker", &link), None);
        let linked = [&dir, &link, &link].map(|from| container(from, "prod.yml"));
        assert_eq!(spelling(&linked, "docker", &dir), Some(link));
        assert_eq!(spelling(&linked, "docker", root.path()), None);
        assert_eq!(other_dir(&two, "docker", Path::new("/x")), dir.to_str());
    }
}
