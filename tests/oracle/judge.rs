//! One stack, read by the Compose program: as it is on this host, and as Portainer would store it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use composefile::dotenv;
use serde_json::Value;
use stacklift::rewrite::{
    export,
    faithful::{self, Context, EnvFiles},
};
use tempfile::TempDir;

use stacklift::rewrite::combine as compare;

use crate::{
    corpus::Stack,
    mutation::Mutation,
    several::{self, Started},
};

const HOME: &str = "/home/somebody";
const USER: &str = "somebody";

/// Compose ends after a moment: without collecting garbage, it needs a fifth less processor time.
const NO_GARBAGE: (&str, &str) = ("GOGC", "off");

/// The variables of the shell that a stack is started from.
pub type Shell = BTreeMap<String, String>;

/// What became of a stack.
#[derive(Clone)]
pub enum Verdict {
    /// Compose does not take the original.
    NotLoadable {
        /// What compose says.
        why: String,
        /// Kind and message of each refusal of the rewrite; none where it takes the stack all the same.
        refusals: Vec<(String, String)>,
    },
    Equal,
    /// Equal, but not by edits: Compose resolved the files.
    Resolved,
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

/// A stack where it was started by hand.
pub struct Host {
    /// The folder that holds all its files.
    pub root: PathBuf,
    /// The stack's directory below it.
    pub dir: PathBuf,
    /// The Compose file's name in that.
    pub file: String,
    /// The Compose text.
    pub text: String,
    /// `.env`
    pub env: Option<String>,
    /// The shell that it was started from.
    pub shell: Shell,
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

    /// Puts the stack where it was started by hand; `None` where the mutation does not apply.
    pub fn host(&self) -> Option<Host> {
        let root = self.folder.path().join("host");
        let dir = self.stack.copy_to(&root);
        let file = self.stack.compose.file_name()?.to_str()?.to_owned();
        let text = fs::read(dir.join(&file)).expect("read");
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if !self.stack.is_case {
            self.stand_in(&dir, &text);
        }
        if let Some(mutation) = self.mutation {
            text = mutation.applied(&text, &dir)?;
            fs::write(dir.join(&file), &text).expect("write");
        }
        let env = fs::read_to_string(dir.join(".env")).ok();
        let more = self.mutation.map(Mutation::shell).unwrap_or_default();
        let shell = shell(&dir, &format!("{}\n{more}", self.stack.shell));
        Some(Host {
            root,
            dir,
            file,
            text,
            env,
            shell,
        })
    }

    /// `None` where the mutation does not apply.
    pub fn verdict(&self) -> Option<Verdict> {
        self.host().map(|host| self.compared(host))
    }

    fn compared(&self, host: Host) -> Verdict {
        if self.mutation.is_some_and(Mutation::is_several) {
            return self.combined(host, Vec::new());
        }
        let original = self.original(&host, &[]);
        let env = host.env.clone().unwrap_or_default();
        let rewritten = rewrite(&host);
        let original = match original {
            Ok(original) => original,
            Err(why) => {
                let refusals = rewritten.map_or_else(told, |_| Vec::new());
                return Verdict::NotLoadable { why, refusals };
            }
        };
        let rewritten = match rewritten {
            Ok(rewritten) => rewritten,
            Err(refusals) => {
                return match self.resolved(host) {
                    Verdict::Refused(_) => Verdict::Refused(told(refusals)),
                    other => other,
                };
            }
        };
        let (project, sent) = (&rewritten.project, rewritten.stack_env());
        let root = host.root.clone();
        let held = self.held(&root, project, &rewritten.text, &sent, &[]);
        let expected = compare::expected(original, &rewritten.project, &env);
        let held = match held {
            Ok(held) if difference(&expected, &held).is_none() => held,
            _ => {
                // stacklift sees that, too.
                fs::rename(self.folder.path().join("gone"), &root).expect("rename");
                return self.resolved(host);
            }
        };
        match self.exported(&rewritten) {
            Ok(exported) => match difference(&held, &exported) {
                None => Verdict::Equal,
                Some(place) => Verdict::Different(format!("exported: {place}")),
            },
            Err(why) => Verdict::Different(format!("it cannot be exported: {why}")),
        }
    }

    /// The configuration of the exported stack, in a directory of another name.
    fn exported(&self, rewritten: &faithful::Faithful) -> Result<Value, String> {
        let none = EnvFiles::new();
        let stored = export::Stored {
            text: &rewritten.text,
            variables: &rewritten.env,
            project: &rewritten.project,
            folder: "/data/compose/7",
            env_file: "stack.env",
            env_files: &none,
            mark: None,
        };
        let files = export::files(&stored).map_err(|blockers| format!("{blockers:?}"))?;
        let dir = self.folder.path().join("exported");
        fs::create_dir(&dir).expect("create");
        for (name, text) in [("compose.yaml", &files.text), (".env", &files.env)] {
            fs::write(dir.join(name), text).expect("write");
        }
        if files.names_stack_env {
            symlink(".env", dir.join("stack.env")).expect("a link");
        }
        let mut config = original(self.compose, &dir, &[], &shell(&dir, ""))?;
        compare::without_fragments(&mut config);
        Ok(config)
    }

    /// What stacklift makes of a file that it does not edit.
    fn resolved(&self, host: Host) -> Verdict {
        let is_found = faithful::DEFAULT_FILES.contains(&host.file.as_str());
        let named = vec!["-f".into(), host.file.clone()];
        let options = if is_found { Vec::new() } else { named };
        match self.combined(host, options) {
            Verdict::Equal => Verdict::Resolved,
            other => other,
        }
    }

    /// What stacklift itself makes of the stack.
    fn combined(&self, host: Host, options: Vec<String>) -> Verdict {
        let started = Started::new(self.folder.path(), host.dir, options, host.shell);
        let verdicts = several::judged(&[("", self.compose.to_owned())], &started);
        verdicts.into_values().next().expect("a verdict")
    }

    /// Gives variables that nothing defines a value in `.env`.
    fn stand_in(&self, dir: &Path, text: &str) {
        let mut env = fs::read_to_string(dir.join(".env")).unwrap_or_default();
        let known = dotenv::parse(&env, &|_| None).unwrap_or_default();
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

    /// The configuration of the stack where it was started.
    pub fn original(&self, host: &Host, options: &[&str]) -> Result<Value, String> {
        let arguments = [&["-f", &host.file], options].concat();
        original(self.compose, &host.dir, &arguments, &host.shell)
    }

    /// A text as Portainer stores it, without the stack's files.
    pub fn held(
        &self,
        root: &Path,
        project: &str,
        text: &str,
        env: &str,
        options: &[&str],
    ) -> Result<Value, String> {
        let folder = self.folder.path();
        fs::rename(root, folder.join("gone")).expect("rename");
        held(self.compose, folder, project, text, env, options)
    }
}

/// What every shell says in `dir`, and `more`, one `NAME=value` a line.
pub fn shell(dir: &Path, more: &str) -> Shell {
    let dir = dir.to_str().expect("UTF-8");
    let usual = [("HOME", HOME), ("USER", USER), ("PWD", dir), NO_GARBAGE];
    let more = more.lines().filter_map(|line| line.split_once('='));
    let all = usual.into_iter().chain(more);
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What compose makes of the files that `arguments` name, as here.
pub fn original(
    compose: &Path,
    dir: &Path,
    arguments: &[&str],
    shell: &Shell,
) -> Result<Value, String> {
    let mut command = Command::new(compose);
    command.args(arguments).args(["config", "--format", "json"]);
    json(command.current_dir(dir).env_clear().envs(shell))
}

/// A text as Portainer stores it below `folder`: with `stack.env`, and another home.
pub fn held(
    compose: &Path,
    folder: &Path,
    project: &str,
    text: &str,
    env: &str,
    options: &[&str],
) -> Result<Value, String> {
    let folder = folder.join("data/compose/7");
    fs::create_dir_all(&folder).expect("create");
    fs::write(folder.join("docker-compose.yml"), text).expect("write");
    let mut command = Command::new(compose);
    command.args(["-p", project, "-f", "docker-compose.yml"]);
    if !env.is_empty() {
        fs::write(folder.join("stack.env"), env).expect("write");
        command.args(["--env-file", "stack.env"]);
    }
    command.args(options).args(["config", "--format", "json"]);
    let of_portainer = [
        NO_GARBAGE,
        ("HOME", "/root-of-portainer"),
        ("HOSTNAME", "0123456789ab"),
        ("PATH", "/bin"),
    ];
    command.current_dir(&folder).env_clear().envs(of_portainer);
    let mut held = json(&mut command)?;
    compare::without_fragments(&mut held);
    Ok(held)
}

/// Kind and message of each refusal.
fn told(refusals: Vec<faithful::Finding>) -> Vec<(String, String)> {
    let one = |refusal: faithful::Finding| {
        let line = refusal.position.map_or(0, |place| place.line);
        let message = format!("line {line}: {}", refusal.message);
        (format!("{:?}", refusal.kind), message)
    };
    refusals.into_iter().map(one).collect()
}

fn rewrite(host: &Host) -> Result<faithful::Faithful, Vec<faithful::Finding>> {
    let (env, runs) = (host.env.as_deref(), faithful::Runs::default());
    with_context(host, |context| {
        faithful::rewrite(&host.text, env, context, &runs)
    })
}

/// What the rewrite has to know of the stack's host.
pub fn with_context<T>(host: &Host, then: impl FnOnce(&Context<'_>) -> T) -> T {
    let dir = host.dir.to_str().expect("UTF-8");
    let shell = |name: &str| host.shell.get(name).cloned();
    let mut files = EnvFiles::new();
    let none = EnvFiles::new();
    let beside = host.dir.join("docker-compose.override.yml");
    let is_found = faithful::DEFAULT_FILES.contains(&host.file.as_str());
    let overrides = (is_found && beside.exists()).then(|| "docker-compose.override.yml".into());
    let overrides = Vec::from_iter(overrides);
    let context = |files| Context {
        stack_dir: dir,
        file: &host.file,
        env_file: ".env",
        home: Some(HOME),
        shell: &shell,
        project: None,
        overrides: &overrides,
        env_files: files,
    };
    for needed in faithful::env_files_needed(&host.text, host.env.as_deref(), &context(&none)) {
        let read = fs::read_to_string(PathBuf::from(&needed)).ok();
        files.insert(needed, read);
    }
    then(&context(&files))
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
    let args = "-p x --env-file stack.env config --format json";
    command.args(args.split(' '));
    command.current_dir(folder.path()).env_clear();
    let config = json(&mut command).expect("compose reads stack.env");
    let got = &config["services"]["a"]["environment"];
    let mut wrong = Vec::new();
    for (at, value) in values.iter().enumerate() {
        // What compose prints is a Compose file again.
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
        let braced = rest.starts_with('{');
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let (name, after) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        if braced && !["}", "?", ":?"].iter().any(|end| after.starts_with(end)) {
            // It has a default.
            continue;
        }
        let after = after.trim_start_matches('}');
        let before = text[..at].trim_end_matches(['"', '\'']);
        let starts = before.ends_with(['-', ' ']);
        let is_path = starts && (after.starts_with('/') || after.starts_with(":/"));
        found.push((name.to_owned(), is_path));
    }
    // A name that is a path anywhere is one everywhere.
    let paths = found.clone();
    for (name, is_path) in &mut found {
        *is_path = paths.contains(&(name.clone(), true));
    }
    found
}

/// The first difference of two configurations.
fn difference(a: &Value, b: &Value) -> Option<String> {
    let (path, a, b) = compare::differences(a, b).into_iter().next()?;
    Some(format!("{}: {a:?} became {b:?}", path.join(".")))
}
