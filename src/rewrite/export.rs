//! The text of a Portainer stack as the files of a directory: `compose.yaml`, which names its project, and `.env`.
//!
//! The opposite of the faithful rewrite, which it uses: first, everything that depends on Portainer's directory or
//! container is written into the text. Then `stack.env` becomes `.env`, and the text gets the name of the project.
//!
//! Invariant: pure.

use composefile::{
    document::{Document, Node},
    interpolate::occurrences,
    reader::{Context, EnvFiles, NAME_FILES},
};

use super::{
    env::stack_env,
    faithful::{self, Finding, Runs, renamed, scalar_text, values},
    portainer::{self, STACK_ENV},
    replaced,
};
use crate::model::Variable;

/// The home directory in Portainer's container (M12).
const HOME: &str = "/root";

/// What Portainer stores, and where.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    /// The text.
    pub text: &'a str,
    /// The variables.
    pub variables: &'a [Variable],
    /// The name of the project.
    pub project: &'a str,
    /// The folder of the Compose file in Portainer's container, absolute.
    pub folder: &'a str,
    /// The env file that Compose reads for variables: absolute, or relative to the folder.
    pub env_file: &'a str,
    /// The texts of other env files, by their absolute paths.
    pub env_files: &'a EnvFiles,
    /// The value of [`faithful::MARK`] in the file.
    pub mark: Option<&'a str>,
}

/// The files of a directory.
#[derive(Default)]
pub struct ExportedFiles {
    /// `compose.yaml`.
    pub text: String,
    /// `.env`, with the lines that Portainer writes into `stack.env`.
    pub env: String,
    /// Whether the text or a variable still names `stack.env`.
    pub names_stack_env: bool,
    /// The lines of the text in Portainer that are changed.
    pub changes: Vec<usize>,
    /// The variables that are left out because they have no effect in Portainer.
    pub left_out: Vec<String>,
}

/// The absolute paths of the other env files that the text names.
pub fn env_files(stored: &Stored) -> Vec<String> {
    let env = stack_env(stored.variables);
    faithful::env_files_needed(stored.text, Some(&env), &context(stored))
}

/// Writes a Portainer stack as files. The error lists everything that prevents it.
pub fn files(stored: &Stored) -> Result<ExportedFiles, Vec<Finding>> {
    let (variables, left_out) = variables(stored)?;
    let env = stack_env(&variables);
    let (text, mut changes) = with_home(stored.text);
    // Nothing in it depends on Portainer's directory or container.
    let rewritten = faithful::rewrite(&text, Some(&env), &context(stored), &Runs::default())?;
    changes.extend(rewritten.edits.iter().map(|edit| edit.line));
    changes.sort_unstable();
    let renamed = renamed(&rewritten.text, stored.project, stored.mark);
    let internal = || vec![Finding::internal("the exported file cannot be written")];
    let (text, names_stack_env) = renamed.ok_or_else(internal)?;
    Ok(ExportedFiles {
        names_stack_env: env.contains(STACK_ENV) || names_stack_env,
        env,
        changes,
        left_out,
        text,
    })
}

/// The variables, without those that Compose reads as settings: Portainer passes the file and the name of the project
/// itself, so they have no effect there, but they would have one in `.env`. A service that gets all of them would miss those.
fn variables(stored: &Stored) -> Result<(Vec<Variable>, Vec<String>), Vec<Finding>> {
    let has_no_effect = |one: &&Variable| {
        let name = one.name.trim();
        let is_other_name = name == "COMPOSE_PROJECT_NAME" && one.value != stored.project;
        NAME_FILES.contains(&name) || is_other_name
    };
    let useless = stored.variables.iter().filter(has_no_effect);
    let left_out: Vec<String> = useless.map(|one| one.name.clone()).collect();
    if !left_out.is_empty() && stored.text.contains("env_file") {
        let names = left_out.join(", ");
        return Err(vec![Finding::without_effect(&names)]);
    }
    let kept = stored
        .variables
        .iter()
        .filter(|variable| !has_no_effect(variable));
    Ok((kept.cloned().collect(), left_out))
}

/// The text with the home directory in place of its variable, and the lines that this changes.
fn with_home(text: &str) -> (String, Vec<usize>) {
    let document = Document::parse(text).unwrap_or_default();
    let change = |node: Node<'_>| {
        let value = node.as_str()?;
        let home = occurrences(value).into_iter();
        let home = home.filter(|one| one.name == "HOME" && !one.operator.ends_with('+'));
        let new = replaced(value, home.map(|one| (one.span, HOME)));
        let changed = Some(new).filter(|new| new != value)?;
        Some((node.span(), scalar_text(node, &changed)?))
    };
    let changes: Vec<_> = values(&document).filter_map(change).collect();
    let lines = changes.iter().map(|(span, _)| document.line(span.start));
    let lines = lines.collect();
    (replaced(text, changes), lines)
}

fn context<'a>(stored: &Stored<'a>) -> Context<'a> {
    fn shell(name: &str) -> Option<String> {
        (name == "HOME").then(|| HOME.to_owned())
    }
    Context {
        env_file: stored.env_file,
        env_files: stored.env_files,
        ..portainer::context(stored.folder, HOME, &shell, stored.project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(text: &str, env: &[(&str, &str)]) -> Result<ExportedFiles, Vec<Finding>> {
        let variables: Vec<Variable> = env
            .iter()
            .map(|&(name, value)| Variable::new(name, value))
            .collect();
        files(&Stored {
            text,
            variables: &variables,
            project: "web",
            folder: "/data/compose/3",
            env_file: STACK_ENV,
            env_files: &EnvFiles::new(),
            mark: None,
        })
    }

    fn exported(text: &str, env: &[(&str, &str)]) -> ExportedFiles {
        export(text, env)
            .map_err(|blockers| format!("{blockers:?}"))
            .expect("files")
    }

    #[test]
    fn m15_the_text_names_its_project() {
        for (before, after) in [
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
                "  !!str services:\n    b: {image: x}\n",
                "  name: \"web\"\n  !!str services:\n    b: {image: x}\n",
            ),
            (
                "---\n  services:\n    a: {image: x}\n",
                "---\n  name: \"web\"\n  services:\n    a: {image: x}\n",
            ),
        ] {
            assert_eq!(exported(before, &[]).text, after);
        }
        for before in [
            "services:\n  a: {image: x}\n",
            "&a services:\n  b: {image: x}\n",
            "? services\n: b: {image: x}\n",
        ] {
            let after = format!("name: \"web\"\n{before}");
            assert_eq!(exported(before, &[]).text, after);
        }
    }

    #[test]
    fn m07_the_env_file_is_dot_env_again() {
        let files = exported(
            "services:\n  a:\n    image: x\n    env_file: stack.env\n  b:\n    image: x\n    env_file:\n      - path: 'stack.env'\n",
            &[("A", "'x # y'")],
        );
        assert_eq!(
            files.text,
            "name: \"web\"\nservices:\n  a:\n    image: x\n    env_file: .env\n  b:\n    image: x\n    env_file:\n      - path: '.env'\n"
        );
        let expected = ("A='x # y'\n", false);
        assert_eq!((files.env.as_str(), files.names_stack_env), expected);
        let anchored =
            "services:\n  a:\n    image: x\n    env_file: &e stack.env\n    labels: {x: *e}\n";
        assert!(exported(anchored, &[("A", "1")]).names_stack_env);
    }

    #[test]
    fn m12_what_leads_into_portainers_folder_becomes_absolute() {
        let files = exported(
            "services:\n  a:\n    image: x\n    volumes: [\"./data:/data\", \"~/x:/x\", \"/srv:/srv\"]\n    labels: {h: \"${HOME}\"}\n",
            &[],
        );
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
        let files = exported("services:\n  a: {image: x}\n", &settings);
        assert_eq!(files.left_out, ["COMPOSE_FILE", "COMPOSE_PROJECT_NAME"]);
        assert_eq!(files.env, "");
    }
}
