//! The text of a Portainer stack as the files of a directory: `compose.yaml`, which names its project, and `.env`.
//!
//! The opposite of the faithful rewrite, which it uses: first, everything that depends on Portainer's folder or
//! container is written into the text. Then `stack.env` becomes `.env`, and the text gets the name of the project.
//!
//! Invariant: pure. The result is parsed again and compared with the text it was made from.
#![deny(clippy::disallowed_methods)]

use std::ops::Range;

use composefile::document::{Document, Node};

use super::{
    combine::STACK_ENV,
    env::stack_env,
    env_files::env_file_keys,
    faithful::{self, Blocker, Change, Context, EnvFiles, Runs, quoted},
};
use crate::model::Variable;

/// The home directory in Portainer's container (M12).
const HOME: &str = "/root";

/// Variables that Compose reads as settings. Portainer passes the file and the name of the project itself, so they
/// have no effect there, but they would have one in `.env`.
const WITHOUT_EFFECT: [&str; 4] = [
    "COMPOSE_FILE",
    "COMPOSE_PATH_SEPARATOR",
    "COMPOSE_ENV_FILES",
    "COMPOSE_PROJECT_NAME",
];

/// What Portainer stores, and where.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    /// The text.
    pub text: &'a str,
    /// The variables.
    pub variables: &'a [Variable],
    /// The name of the project.
    pub project: &'a str,
    /// Portainer's folder for the stack, absolute.
    pub folder: &'a str,
}

/// The files of a directory.
pub struct Files {
    /// `compose.yaml`.
    pub text: String,
    /// `.env`, with the lines that Portainer writes into `stack.env`.
    pub env: String,
    /// Whether the text or a variable still names `stack.env`.
    pub names_stack_env: bool,
    /// What the rewrite changed, at lines of the text in Portainer.
    pub changes: Vec<Change>,
    /// The variables that are left out because they have no effect in Portainer.
    pub left_out: Vec<String>,
    /// The files that Compose reads if they exist, which Portainer does not have.
    pub outside: Vec<String>,
}

/// Writes a Portainer stack as files. The error lists everything that prevents it.
pub fn files(stored: &Stored) -> Result<Files, Vec<Blocker>> {
    let (variables, left_out) = variables(stored)?;
    let env = stack_env(&variables);
    let (rewritten, outside) = rewritten(stored, &env)?;
    let internal = || {
        vec![Blocker::internal(
            "the exported file failed verification",
            None,
        )]
    };
    let text = {
        let document = Document::parse(&rewritten.text).map_err(|_| internal())?;
        let renamed = apply(&rewritten.text, env_file_edits(&document));
        let document = Document::parse(&renamed).map_err(|_| internal())?;
        let edit = name_edit(&document, stored.project).ok_or_else(internal)?;
        apply(&renamed, vec![edit])
    };
    let before = Document::parse(&rewritten.text).map_err(|_| internal())?;
    let after = Document::parse(&text).map_err(|_| internal())?;
    if !is_as_expected(&before, &after, stored.project) {
        return Err(internal());
    }
    let names = |node: Node<'_>| node.as_str().is_some_and(|text| text.contains(STACK_ENV));
    Ok(Files {
        names_stack_env: env.contains(STACK_ENV) || after.nodes().any(names),
        env,
        changes: rewritten.edits,
        left_out,
        outside,
        text,
    })
}

/// The variables, without those that have no effect in Portainer. A service that gets all of them would miss those.
fn variables(stored: &Stored) -> Result<(Vec<Variable>, Vec<String>), Vec<Blocker>> {
    let has_no_effect = |one: &&Variable| {
        let name = one.name.trim();
        let is_name = name == "COMPOSE_PROJECT_NAME" && one.value == stored.project;
        WITHOUT_EFFECT.contains(&name) && !is_name
    };
    let left_out: Vec<String> = stored
        .variables
        .iter()
        .filter(has_no_effect)
        .map(|one| one.name.clone())
        .collect();
    if !left_out.is_empty() && stored.text.contains("env_file") {
        let names = left_out.join(", ");
        return Err(vec![Blocker::without_effect(&names)]);
    }
    let kept = stored.variables.iter().filter(|one| !has_no_effect(one));
    Ok((kept.cloned().collect(), left_out))
}

/// The text in which nothing depends on Portainer's folder or container, and the files outside that it names.
fn rewritten(
    stored: &Stored,
    env: &str,
) -> Result<(faithful::Faithful, Vec<String>), Vec<Blocker>> {
    let shell = |name: &str| (name == "HOME").then(|| HOME.to_owned());
    let context = Context {
        stack_dir: stored.folder,
        file: "docker-compose.yml",
        env_file: STACK_ENV,
        home: Some(HOME),
        shell: &shell,
        project: Some(stored.project),
        overrides: &[],
        env_files: &EnvFiles::new(),
    };
    let rewritten = faithful::rewrite(stored.text, Some(env), &context, &Runs::default())?;
    let outside = faithful::env_files_needed(stored.text, Some(env), &context);
    Ok((rewritten, outside))
}

type Edit = (Range<usize>, String);

/// Replaces `stack.env` by `.env` where a service reads it as an env file.
fn env_file_edits(document: &Document<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for key in env_file_keys(document) {
        let mut ahead = vec![key.value];
        while let Some(node) = ahead.pop() {
            ahead.extend(node.own_items());
            ahead.extend(
                node.own_entries()
                    .filter(|entry| entry.name() == Some("path"))
                    .map(|entry| entry.value),
            );
            // A value with an anchor may have another meaning where an alias repeats it.
            if node.as_str() == Some(STACK_ENV) && node.is_scalar() && node.anchor().is_none() {
                let text = &document.text()[node.span()];
                edits.push((node.span(), text.replacen(STACK_ENV, ".env", 1)));
            }
        }
    }
    edits
}

/// Sets the top-level `name`; `None` if the text has no mapping.
fn name_edit(document: &Document<'_>, project: &str) -> Option<Edit> {
    let (root, name) = (document.root()?, quoted(project));
    if let Some(entry) = root.entry("name") {
        // The span of a block scalar is that of its content, and may end after its line. `>` or `|` is before it.
        let (key, value) = (entry.key.span(), entry.value.span());
        let header = document
            .text()
            .get(key.end..value.start)
            .unwrap_or_default();
        let block = header.find(['>', '|']).map(|at| key.end + at);
        let end = value.start + document.text()[value.clone()].trim_end().len();
        return Some((block.unwrap_or(value.start)..end, name));
    }
    let start = root.span().start;
    if document.text()[start..].starts_with('{') {
        return Some((start + 1..start + 1, format!("name: {name}, ")));
    }
    let first = root.own_entries().next()?.key.span().start;
    let line = document.line_start(first);
    let before = &document.text()[line..first];
    // An anchor, a tag or `?` belongs to the key.
    let own = before.trim_start_matches([' ', '\u{feff}']);
    let at = if own.starts_with(['&', '!', '?']) {
        line + before.len() - own.len()
    } else {
        first
    };
    // A byte order mark takes no column.
    let indent = document.text()[line..at]
        .chars()
        .filter(|c| *c != '\u{feff}');
    let indent: String = indent.map(|_| ' ').collect();
    let end = document.line_end();
    Some((at..at, format!("name: {name}{end}{indent}")))
}

fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    edits.dedup();
    let (mut new, mut done) = (String::with_capacity(text.len()), 0);
    for (span, instead) in edits {
        new.push_str(&text[done..span.start]);
        new.push_str(&instead);
        done = span.end;
    }
    new + &text[done..]
}

/// Whether the texts differ only by the name of the project and by the name of the env file.
fn is_as_expected(before: &Document<'_>, after: &Document<'_>, project: &str) -> bool {
    let entries = |document: &Document<'_>| -> Option<Vec<(usize, Option<String>)>> {
        let root = document.root()?;
        let name = root
            .own_entries()
            .find(|entry| entry.name() == Some("name"));
        let is_name = |node: &Node<'_>| {
            name.as_ref()
                .is_some_and(|entry| entry.key.id() == node.id() || entry.value.id() == node.id())
        };
        let nodes = document.nodes().filter(|node| !is_name(node));
        Some(
            nodes
                .map(|node| {
                    let text = node.as_str().filter(|_| node.is_scalar());
                    let text = text.map(|text| match text {
                        STACK_ENV => ".env".to_owned(),
                        text => text.to_owned(),
                    });
                    (
                        node.own_items().count()
                            + node
                                .own_entries()
                                .filter(|one| one.name() != Some("name"))
                                .count(),
                        text,
                    )
                })
                .collect(),
        )
    };
    let name = after.get("name").and_then(Node::as_str);
    name == Some(project) && entries(before).is_some() && entries(before) == entries(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(text: &str, env: &[(&str, &str)]) -> Result<Files, Vec<Blocker>> {
        let variables: Vec<Variable> = env
            .iter()
            .map(|(name, value)| Variable {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
            })
            .collect();
        files(&Stored {
            text,
            variables: &variables,
            project: "web",
            folder: "/data/compose/3",
        })
    }

    fn text(text: &str, env: &[(&str, &str)]) -> String {
        export(text, env)
            .map_err(|blockers| format!("{blockers:?}"))
            .expect("files")
            .text
    }

    #[test]
    fn m15_the_text_names_its_project() {
        for (before, after) in [
            (
                "services:\n  a: {image: x}\n",
                "name: \"web\"\nservices:\n  a: {image: x}\n",
            ),
            (
                "# About\nservices:\r\n  a: {image: x}\r\n",
                "# About\nname: \"web\"\nservices:\r\n  a: {image: x}\r\n",
            ),
            (
                "name: other # x\nservices: {a: {image: x}}\n",
                "name: \"web\" # x\nservices: {a: {image: x}}\n",
            ),
            (
                "{services: {a: {image: x}}}",
                "{name: \"web\", services: {a: {image: x}}}",
            ),
            (
                "name: >-\r\n  other\r\nservices:\r\n  a: {image: x}\r\n",
                "name: \"web\"\r\nservices:\r\n  a: {image: x}\r\n",
            ),
            (
                "&a services:\n  b: {image: x}\n",
                "name: \"web\"\n&a services:\n  b: {image: x}\n",
            ),
            (
                "  !!str services:\n    b: {image: x}\n",
                "  name: \"web\"\n  !!str services:\n    b: {image: x}\n",
            ),
            (
                "? services\n: b: {image: x}\n",
                "name: \"web\"\n? services\n: b: {image: x}\n",
            ),
            (
                "---\n  services:\n    a: {image: x}\n",
                "---\n  name: \"web\"\n  services:\n    a: {image: x}\n",
            ),
        ] {
            assert_eq!(text(before, &[]), after);
        }
    }

    #[test]
    fn m07_the_env_file_is_dot_env_again() {
        let files = export(
            "services:\n  a:\n    image: x\n    env_file: stack.env\n  b:\n    image: x\n    env_file:\n      - path: 'stack.env'\n",
            &[("A", "'x # y'")],
        );
        let files = files
            .map_err(|blockers| format!("{blockers:?}"))
            .expect("files");
        assert_eq!(
            files.text,
            "name: \"web\"\nservices:\n  a:\n    image: x\n    env_file: .env\n  b:\n    image: x\n    env_file:\n      - path: '.env'\n"
        );
        assert_eq!(
            (files.env.as_str(), files.names_stack_env),
            ("A='x # y'\n", false)
        );
        let anchored =
            "services:\n  a:\n    image: x\n    env_file: &e stack.env\n    labels: {x: *e}\n";
        let files = export(anchored, &[("A", "1")]);
        assert!(files.is_ok_and(|files| files.names_stack_env));
    }

    #[test]
    fn m12_what_leads_into_portainers_folder_becomes_absolute() {
        let files = export(
            "services:\n  a:\n    image: x\n    volumes: [\"./data:/data\", \"~/x:/x\", \"/srv:/srv\"]\n    labels: {h: \"${HOME}\"}\n",
            &[],
        );
        let files = files
            .map_err(|blockers| format!("{blockers:?}"))
            .expect("files");
        assert_eq!(
            files.text,
            "name: \"web\"\nservices:\n  a:\n    image: x\n    volumes: [\"/data/compose/3/data:/data\", \"/root/x:/x\", \"/srv:/srv\"]\n    labels: {h: \"/root\"}\n"
        );
        assert_eq!(files.changes.len(), 3);
    }

    #[test]
    fn files_that_only_portainer_has_are_refused() {
        let include = "include: [other.yml]\nservices:\n  a: {image: x}\n";
        assert!(export(include, &[]).is_err());
        let env_file = "services:\n  a: {image: x, env_file: stack.env}\n";
        let settings = [("COMPOSE_FILE", "a.yml"), ("COMPOSE_PROJECT_NAME", "other")];
        assert!(export(env_file, &settings).is_err());
        let files = export("services:\n  a: {image: x}\n", &settings);
        let files = files
            .map_err(|blockers| format!("{blockers:?}"))
            .expect("files");
        assert_eq!(files.left_out, ["COMPOSE_FILE", "COMPOSE_PROJECT_NAME"]);
        assert_eq!(files.env, "");
    }
}
