//! One stack before the compose program: as it is here, and as a manager would hold it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use stacklift::compose::{
    dotenv::compose_dotenv,
    faithful::{self, Context, EnvFiles},
};
use tempfile::TempDir;

use crate::{compare, corpus::Stack, mutation::Mutation};

const HOME: &str = "/home/somebody";
const USER: &str = "somebody";

/// What became of a stack.
pub enum Verdict {
    /// Compose does not take the original.
    NotLoadable {
        /// What compose says.
        why: String,
        /// Whether the rewrite takes it all the same.
        accepted: bool,
    },
    Equal,
    /// Kind and message of each refusal.
    Refused(Vec<(String, String)>),
    /// Where they part.
    Different(String),
}

pub struct Judge<'a> {
    compose: &'a Path,
    stack: &'a Stack,
    at: usize,
    mutation: Option<&'a Mutation>,
    folder: TempDir,
}

impl<'a> Judge<'a> {
    pub fn new(
        compose: &'a Path,
        stack: &'a Stack,
        at: usize,
        mutation: Option<&'a Mutation>,
    ) -> Self {
        Self {
            compose,
            stack,
            at,
            mutation,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// `None` where the mutation does not apply.
    pub fn verdict(&self) -> Option<Verdict> {
        let root = self.folder.path().join("host");
        let dir = self.stack.copy_to(&root);
        let file = self
            .stack
            .compose
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let Ok(mut text) = fs::read_to_string(dir.join(file)) else {
            return Some(Verdict::NotLoadable {
                why: "not UTF-8".into(),
                accepted: false,
            });
        };
        if !self.stack.is_case {
            self.stand_in(&dir, &text);
        }
        if let Some(mutation) = self.mutation {
            text = mutation.applied(&text, &dir)?;
            fs::write(dir.join(file), &text).expect("write");
        }
        Some(self.compared(&root, &dir, file, &text))
    }

    fn compared(&self, root: &Path, dir: &Path, file: &str, text: &str) -> Verdict {
        let env = fs::read_to_string(dir.join(".env")).ok();
        let original = self.original(dir, file);
        let rewritten = self.rewrite(dir, file, text, env.as_deref());
        let original = match original {
            Ok(original) => original,
            Err(why) => {
                return Verdict::NotLoadable {
                    why,
                    accepted: rewritten.is_ok(),
                };
            }
        };
        let rewritten = match rewritten {
            Ok(rewritten) => rewritten,
            Err(refusals) => {
                let one = |refusal: faithful::Refusal| {
                    let line = refusal.position.map_or(0, |place| place.line);
                    (
                        format!("{:?}", refusal.reason),
                        format!("line {line}: {}", refusal.message),
                    )
                };
                return Verdict::Refused(refusals.into_iter().map(one).collect());
            }
        };
        fs::rename(root, self.folder.path().join("gone")).expect("rename");
        let held = match self.held(&rewritten) {
            Ok(held) => held,
            Err(why) => return Verdict::Different(format!("the manager fails: {why}")),
        };
        let env = env.unwrap_or_default();
        let expected = compare::expected(original, &rewritten.project, &env);
        match compare::difference(&expected, &held) {
            None => Verdict::Equal,
            Some(place) => Verdict::Different(place),
        }
    }

    /// The shell that the stack is started from.
    fn shell(&self, dir: &Path) -> BTreeMap<String, String> {
        let dir = dir.to_str().expect("UTF-8");
        let usual = [("HOME", HOME), ("USER", USER), ("PWD", dir)];
        let usual = usual.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let more = self.mutation.map(Mutation::shell).unwrap_or_default();
        let lines = self.stack.shell.lines().chain(more.lines());
        let more = lines.filter_map(|line| line.split_once('='));
        let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
        usual.into_iter().chain(more).collect()
    }

    /// Gives variables that nothing defines a value in `.env`.
    fn stand_in(&self, dir: &Path, text: &str) {
        let mut env = fs::read_to_string(dir.join(".env")).unwrap_or_default();
        let known = compose_dotenv(&env, &|_| None).unwrap_or_default();
        let mut known: BTreeSet<String> = known.into_iter().map(|(name, _)| name).collect();
        known.extend(["HOME", "USER", "PWD"].map(str::to_owned));
        let mut added = String::new();
        for (name, is_path) in undefined(text) {
            if known.insert(name.clone()) {
                // Absolute for one stack, relative for the next.
                let value = match (is_path, self.at % 2) {
                    (true, 0) => format!("/srv/{name}"),
                    (true, _) => format!("./{name}"),
                    (false, _) => "8080".into(),
                };
                writeln!(added, "{name}={value}").expect("written");
            }
        }
        if !added.is_empty() {
            if !env.is_empty() && !env.ends_with('\n') {
                env.push('\n');
            }
            fs::write(dir.join(".env"), env + &added).expect("write");
        }
    }

    fn original(&self, dir: &Path, file: &str) -> Result<Value, String> {
        let mut command = Command::new(self.compose);
        command
            .args(["-f", file, "config", "--format", "json"])
            .current_dir(dir)
            .env_clear()
            .envs(self.shell(dir));
        json(&mut command)
    }

    fn rewrite(
        &self,
        dir: &Path,
        file: &str,
        text: &str,
        env: Option<&str>,
    ) -> Result<faithful::Faithful, Vec<faithful::Refusal>> {
        let variables = self.shell(dir);
        let shell = |name: &str| variables.get(name).cloned();
        let mut files = EnvFiles::new();
        let none = EnvFiles::new();
        let beside = dir.join("docker-compose.override.yml");
        let overrides: Vec<String> = beside
            .exists()
            .then(|| "docker-compose.override.yml".into())
            .into_iter()
            .collect();
        let context = |files| Context {
            stack_dir: dir.to_str().expect("UTF-8"),
            file,
            env_file: ".env",
            home: Some(HOME),
            shell: &shell,
            overrides: &overrides,
            env_files: files,
        };
        for needed in faithful::env_files_needed(text, env, &context(&none)) {
            let read = fs::read_to_string(PathBuf::from(&needed)).ok();
            files.insert(needed, read);
        }
        faithful::rewrite(text, env, &context(&files))
    }

    /// The rewrite as the manager holds it: another folder, `stack.env` beside it, another home.
    fn held(&self, rewritten: &faithful::Faithful) -> Result<Value, String> {
        let folder = self.folder.path().join("data/compose/7");
        fs::create_dir_all(&folder).expect("create");
        fs::write(folder.join("docker-compose.yml"), &rewritten.text).expect("write");
        let mut command = Command::new(self.compose);
        command.args(["-p", &rewritten.project, "-f", "docker-compose.yml"]);
        if !rewritten.env.is_empty() {
            fs::write(folder.join("stack.env"), rewritten.stack_env()).expect("write");
            command.args(["--env-file", "stack.env"]);
        }
        command
            .args(["config", "--format", "json"])
            .current_dir(&folder)
            .env_clear();
        command
            .env("HOME", "/root-of-the-manager")
            .env("HOSTNAME", "0123456789ab")
            .env("PATH", "/bin");
        let mut held = json(&mut command)?;
        compare::without_fragments(&mut held);
        Ok(held)
    }
}

/// The values that do not arrive, with what arrives.
pub fn arrives(compose: &Path, values: &[String]) -> Vec<(String, Value)> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut text =
        "services:\n  a:\n    image: x\n    env_file: stack.env\n    environment:\n".to_owned();
    let mut env = String::new();
    for (at, value) in values.iter().enumerate() {
        writeln!(text, "      I{at}: \"${{V{at}}}\"").expect("written");
        writeln!(env, "V{at}={}", faithful::encoded("V", value)).expect("written");
    }
    fs::write(folder.path().join("docker-compose.yml"), text).expect("write");
    fs::write(folder.path().join("stack.env"), env).expect("write");
    let mut command = Command::new(compose);
    command.args([
        "-p",
        "x",
        "--env-file",
        "stack.env",
        "config",
        "--format",
        "json",
    ]);
    command.current_dir(folder.path()).env_clear();
    let config = json(&mut command).expect("compose reads stack.env");
    let got = &config["services"]["a"]["environment"];
    let mut wrong = Vec::new();
    for (at, value) in values.iter().enumerate() {
        // What compose prints is a compose file again.
        let expected = Value::from(value.replace('$', "$$"));
        for name in [format!("V{at}"), format!("I{at}")] {
            if got[&name] != expected {
                wrong.push((value.clone(), got[&name].clone()));
            }
        }
    }
    wrong
}

fn json(command: &mut Command) -> Result<Value, String> {
    let output = command.output().expect("compose runs");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(said.lines().last().unwrap_or_default().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// The variables that a text asks for without a default, and whether one stands where a path does.
fn undefined(text: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('$') {
        let rest = &text[at + 1..];
        if text[..at].ends_with('$') {
            continue;
        }
        let (rest, braced) = match rest.strip_prefix('{') {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let length = rest
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
            .count();
        let (name, after) = rest.split_at(length);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let has_default = braced
            && !after.starts_with('}')
            && !after.starts_with(['?'])
            && !after.starts_with(":?");
        if has_default {
            continue;
        }
        let after = after.trim_start_matches('}');
        let starts = text[..at]
            .trim_end_matches(['"', '\''])
            .ends_with(['-', ' ']);
        let is_path = starts && (after.starts_with('/') || after.starts_with(":/"));
        found.push((name.to_owned(), is_path));
    }
    // A name that is a path anywhere is one everywhere.
    let paths: BTreeSet<String> = found
        .iter()
        .filter(|(_, path)| *path)
        .map(|(name, _)| name.clone())
        .collect();
    for (name, is_path) in &mut found {
        *is_path = paths.contains(name);
    }
    found
}
