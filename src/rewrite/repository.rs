//! The Compose file of a repository: Portainer writes `stack.env` to the root of its clone, which need not be the folder of
//! the Compose file (M24).

use composefile::{
    document::Document,
    services::{Service, services},
};

use super::replaced;

/// The relative paths of the env files that the text names, without variables, as [`with_env_files`] passes them.
pub fn env_files(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    with_env_files(text, |path| {
        paths.push(path.to_owned());
        None
    });
    paths.retain(|path| !path.starts_with('/') && !path.contains('$'));
    paths
}

/// The text, with other paths in `env_file`: `path` returns the new one of a path that changes. A text that is not YAML stays
/// as it is.
pub fn with_env_files(text: &str, mut path: impl FnMut(&str) -> Option<String>) -> String {
    let Ok(document) = Document::parse(text) else {
        return text.to_owned();
    };
    let services = services(&document);
    let files = services.iter().flat_map(Service::env_files);
    let changes = files.filter_map(|file| {
        let own = file.path.strip_prefix("./").unwrap_or(file.path);
        Some((file.node.resolved().span(), path(own)?))
    });
    let mut changes: Vec<_> = changes.collect();
    changes.sort_by_key(|(span, _)| span.start);
    // An alias leads to the same path again, which is then left out.
    replaced(text, changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m24_the_paths_of_env_files_change_and_nothing_else() {
        let text = "services:\n  a: &a\n    env_file: \"stack.env\" # stack.env\n  b:\n    env_file:\n      - ./x.env\n      - path: stack.env\n        required: false\n    command: stack.env\n  c: *a\n";
        let changed = with_env_files(text, |path| {
            (path == "stack.env").then(|| "../stack.env".to_owned())
        });
        let expected = text
            .replace("\"stack.env\"", "../stack.env")
            .replace("path: stack.env", "path: ../stack.env");
        assert_eq!(changed, expected);
        assert_eq!(with_env_files("a: [", |_| Some(String::new())), "a: [");
    }
}
