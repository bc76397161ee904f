//! The cases of the faithful rewrite, one folder each: `shows` describes the case, `in/` is the stack's directory,
//! `expected` is the result, which says where the text cannot be edited and Compose resolves it, and `shell` may set more variables of the shell. `runs` may say what runs, in lines such as
//! `db volume /data 0123…` and `db variable NAME value`; `db containers 2` if it is not one. `STACKLIFT_BLESS=1` rewrites
//! `expected`, and `tests/damaged.txt`, which says what the literal rewrite damages of each.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use composefile::document::Document;
use stacklift::rewrite::{
    damage::damages,
    export,
    faithful::{self, Context, EnvFiles, Faithful, Finding, Kind, Runs, ServiceRuns},
    literal,
};

const DIR: &str = "/opt/stacks/web";
const HOME: &str = "/home/somebody";

struct Case {
    folder: PathBuf,
    name: String,
    compose: String,
    env: Option<String>,
}

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faithful");
    let case = |entry: fs::DirEntry| {
        let (name, folder) = (entry.file_name(), entry.path());
        let compose = fs::read_to_string(folder.join("in/docker-compose.yml"));
        Case {
            name: name.to_string_lossy().into_owned(),
            env: fs::read_to_string(folder.join("in/.env")).ok(),
            compose: compose.expect("a text"),
            folder,
        }
    };
    let entries = fs::read_dir(root).expect("the cases");
    let mut cases: Vec<_> = entries.map(|entry| case(entry.expect("a case"))).collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

impl Case {
    fn rewrite(&self) -> Result<Faithful, Vec<Finding>> {
        self.with_context(|context| {
            faithful::rewrite(&self.compose, self.env.as_deref(), context, &self.runs())
        })
    }

    /// What the literal rewrite damages.
    fn damages(&self) -> Option<String> {
        let document = Document::parse(&self.compose).ok()?;
        let damages = damages(&document, &literal::rewrite(&self.compose, DIR), DIR);
        let lines: Vec<String> = damages.iter().map(ToString::to_string).collect();
        (!lines.is_empty()).then(|| format!("== {}\n{}\n", self.name, lines.join("\n")))
    }

    fn with_context<T>(&self, then: impl FnOnce(&Context<'_>) -> T) -> T {
        let more = fs::read_to_string(self.folder.join("shell")).unwrap_or_default();
        let shell = |name: &str| match name {
            "HOME" => Some(HOME.to_owned()),
            "USER" => Some("somebody".to_owned()),
            "PWD" => Some(DIR.to_owned()),
            _ => {
                let mut lines = more.lines().filter_map(|line| line.split_once('='));
                lines.find_map(|(known, value)| (known == name).then(|| value.to_owned()))
            }
        };
        let mut overrides = vec!["docker-compose.override.yml".to_owned()];
        overrides.retain(|file| self.folder.join("in").join(file).exists());
        let none = EnvFiles::new();
        let context = Context {
            stack_dir: DIR,
            file: "docker-compose.yml",
            env_file: ".env",
            home: Some(HOME),
            shell: &shell,
            project: None,
            overrides: &overrides,
            env_files: &none,
        };
        let mut env_files = EnvFiles::new();
        for file in faithful::env_files_needed(&self.compose, self.env.as_deref(), &context) {
            let below = file.strip_prefix(DIR).expect("below the directory");
            let path = self.folder.join("in").join(below.trim_start_matches('/'));
            env_files.insert(file, fs::read_to_string(path).ok());
        }
        let context = Context {
            env_files: &env_files,
            ..context
        };
        then(&context)
    }

    fn runs(&self) -> Runs {
        let text = fs::read_to_string(self.folder.join("runs")).unwrap_or_default();
        let mut runs = Runs::default();
        for line in text.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let service = runs.services.entry(words[0].to_owned());
            let service = service.or_insert(ServiceRuns {
                containers: 1,
                ..ServiceRuns::default()
            });
            match words[1..] {
                ["volume", target, volume] => {
                    service.volumes.insert(target.to_owned(), volume.to_owned());
                }
                ["variable", name, value] => {
                    service.variables.insert(name.to_owned(), value.to_owned());
                }
                ["containers", count] => service.containers = count.parse().expect("a count"),
                _ => panic!("{}: {line}", self.name),
            }
        }
        runs
    }
}

/// The result, rewritten again as Portainer stores it.
fn again(first: &Faithful) -> Result<Faithful, Vec<Finding>> {
    let env = first.stack_env();
    let project = first.project.clone();
    let shell = |name: &str| (name == "COMPOSE_PROJECT_NAME").then(|| project.clone());
    let context = Context {
        stack_dir: "/data/compose/7",
        file: "docker-compose.yml",
        env_file: "stack.env",
        home: None,
        shell: &shell,
        project: None,
        overrides: &[],
        env_files: &EnvFiles::new(),
    };
    let env = (!env.is_empty()).then_some(&*env);
    faithful::rewrite(&first.text, env, &context, &Runs::default())
}

fn shown(result: &Result<Faithful, Vec<Finding>>) -> String {
    let mut out = String::new();
    match result {
        Ok(faithful) => {
            if faithful.project != "web" {
                writeln!(out, "project: {}", faithful.project).expect("written");
            }
            for edit in &faithful.edits {
                writeln!(out, "edit: line {}", edit.line).expect("written");
            }
            for notice in &faithful.notices {
                let line = notice.position.map_or(0, |place| place.line);
                writeln!(out, "notice: line {line}: {notice}").expect("written");
            }
            for entry in &faithful.env {
                writeln!(out, "stack.env: {}={}", entry.name, entry.value).expect("written");
            }
            out.push_str("text:\n");
            out.push_str(&faithful.text);
        }
        Err(blockers) => {
            for blocker in blockers {
                let place = blocker.position;
                let place = place.map(|place| format!(" at {}:{}", place.line, place.column));
                let (place, reason) = (place.unwrap_or_default(), &blocker.kind);
                if *reason == Kind::NotSimple {
                    writeln!(out, "resolved{place}: {}", blocker.message).expect("written");
                    continue;
                }
                writeln!(out, "refused{place}: {reason:?}: {}", blocker.message).expect("written");
                writeln!(out, "  hint: {}", blocker.advice()).expect("written");
            }
        }
    }
    out
}

#[test]
fn every_case_is_as_expected() {
    let bless = std::env::var_os("STACKLIFT_BLESS").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let found = shown(&case.rewrite());
        let file = case.folder.join("expected");
        if bless {
            fs::write(&file, &found).expect("write");
        } else if fs::read_to_string(&file).unwrap_or_default() != found {
            wrong.push(format!("{}:\n{found}", case.name));
        }
    }
    let count = wrong.len();
    assert_eq!(count, 0, "{count} cases differ:\n{}", wrong.join("\n"));
}

#[test]
fn b02_what_the_literal_rewrite_damages_of_every_case() {
    let found: String = cases().iter().filter_map(Case::damages).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/damaged.txt");
    if std::env::var_os("STACKLIFT_BLESS").is_some() {
        fs::write(&file, &found).expect("write");
    }
    let expected = fs::read_to_string(&file).expect("what is expected");
    let mut lines = found.lines().zip(expected.lines());
    let differ = lines.find(|(one, other)| one != other);
    assert_eq!(differ, None, "STACKLIFT_BLESS=1 rewrites {file:?}");
    assert_eq!(found.len(), expected.len());
}

#[test]
fn every_case_says_what_it_shows() {
    for case in cases() {
        let shows = fs::read_to_string(case.folder.join("shows")).unwrap_or_default();
        assert!(!shows.trim().is_empty(), "{}", case.name);
    }
}

#[test]
fn a_second_rewrite_changes_nothing() {
    for case in cases() {
        let Ok(first) = case.rewrite() else { continue };
        let second = again(&first).unwrap_or_else(|blockers| panic!("{}: {blockers:?}", case.name));
        assert_eq!(second.text, first.text, "{}", case.name);
        assert_eq!(second.env, first.env, "{}", case.name);
        assert!(second.edits.is_empty(), "{}", case.name);
    }
}

/// An export changes only the name of the project and of the env file.
#[test]
fn every_rewrite_can_be_exported() {
    for case in cases() {
        let Ok(first) = case.rewrite() else { continue };
        let none = EnvFiles::new();
        let stored = export::Stored {
            text: &first.text,
            variables: &first.env,
            project: &first.project,
            folder: "/data/compose/7",
            env_file: "stack.env",
            env_files: &none,
            mark: None,
        };
        let files =
            export::files(&stored).unwrap_or_else(|blockers| panic!("{}: {blockers:?}", case.name));
        assert!(files.changes.is_empty(), "{}", case.name);
        let has_anchor = first.text.contains('&');
        assert!(!files.names_stack_env || has_anchor, "{}", case.name);
        if files.left_out.is_empty() {
            assert_eq!(files.env, first.stack_env(), "{}", case.name);
        }
    }
}
