//! Where containers were started from, as their labels say.

use std::{collections::BTreeSet, fs, path::Path};

use crate::model::Container;

/// The name of the one Compose file in `dir` that the containers started from there name, if they agree and it exists.
pub(super) fn file(containers: &[Container], tool: &str, dir: &Path) -> Option<String> {
    let here = containers.iter().filter(|one| {
        one.compose_label(tool, "project.working_dir")
            .is_some_and(|from| is_same(Path::new(from), dir))
    });
    let files: BTreeSet<&str> = here
        .filter_map(|one| one.compose_label(tool, "project.config_files"))
        .collect();
    let mut files = files.into_iter();
    // Several files are one text with a comma, which is the name of no file.
    let file = dir.join(files.next().filter(|_| files.next().is_none())?);
    let is_here = file.is_file() && is_same(file.parent()?, dir);
    let name = file.file_name().filter(|_| is_here)?;
    Some(name.to_str()?.to_owned())
}

/// The one directory besides `dir` that the containers were started in, if it exists.
pub(super) fn other_dir<'c>(
    containers: &'c [Container],
    tool: &str,
    dir: &Path,
) -> Option<&'c str> {
    let dirs: BTreeSet<&str> = containers
        .iter()
        .filter_map(|one| one.compose_label(tool, "project.working_dir"))
        .collect();
    let mut dirs = dirs.into_iter();
    let one = dirs.next().filter(|_| dirs.next().is_none())?;
    (Path::new(one).is_dir() && !is_same(Path::new(one), dir)).then_some(one)
}

/// Whether two paths are the same directory, following symbolic links.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn container(dir: &Path, files: &str) -> Container {
        let labels = [
            ("working_dir", dir.to_str().expect("UTF-8")),
            ("config_files", files),
        ];
        let labels = labels.map(|(name, value)| {
            let name = format!("com.docker.compose.project.{name}");
            (name, value.to_owned())
        });
        Container {
            labels: labels.into(),
            ..Container::default()
        }
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
            (&dir, "prod.yml,other.yml", None),
            (&dir, "gone.yml", None),
            (&dir, "/etc/passwd", None),
            (&root.path().to_owned(), "web/prod.yml", None),
        ] {
            let found = file(&[container(from, files)], "docker", &dir);
            assert_eq!(found.as_deref(), expected, "{files}");
        }
        let two = [container(&dir, "prod.yml"), container(&dir, "gone.yml")];
        assert_eq!(file(&two, "docker", &dir), None, "they disagree");
        assert_eq!(other_dir(&two, "docker", &link), None);
        assert_eq!(other_dir(&two, "docker", Path::new("/x")), dir.to_str());
    }
}
