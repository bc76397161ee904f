//! Stacks of several files: the Compose file, the files that it reads, and the files next to it.
//!
//! Each folder of `tests/oracle/several` has one in `web`, and the files that Compose reads outside of that. `options` are
//! the options of Compose with which it was started, `shell` the variables of the shell, one `NAME=value` a line, and
//! `refused` a part of the reason for which stacklift refuses it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rehearsal::{Options, Rehearsal, World};
use serde_json::Value;
use stacklift::rewrite::combine as compare;

use crate::{
    corpus::name_of,
    judge::{self, Shell, Verdict},
    on_two_threads, only, report, required,
};

/// Part of each secret value in an env file.
pub const SECRET: &str = "s3cr3t";

/// The files of a folder that are no part of the stack.
const OF_TEST: [&str; 3] = ["options", "shell", "refused"];

pub struct Several {
    pub name: String,
    folder: PathBuf,
    options: Vec<String>,
    shell: String,
    /// A part of the reason for which it is refused.
    pub refused: Option<String>,
}

/// A stack where it was started by hand.
pub struct Started<'f> {
    folder: &'f Path,
    /// The folder that holds all its files.
    root: PathBuf,
    dir: PathBuf,
    /// The options of Compose.
    options: Vec<String>,
    shell: Shell,
    /// The folder with the one program on `PATH`.
    path: PathBuf,
}

/// What Portainer gets.
pub struct Payload {
    project: String,
    pub text: String,
    /// `stack.env`
    env: String,
}

pub fn all() -> Vec<Several> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/several");
    let stack = |folder: PathBuf| {
        let said = |file| fs::read_to_string(folder.join(file)).ok();
        Several {
            name: name_of(&folder),
            options: words(&said("options").unwrap_or_default()),
            shell: said("shell").unwrap_or_default(),
            refused: said("refused").map(|why| why.trim().to_owned()),
            folder,
        }
    };
    let folders = fs::read_dir(root).expect("the stacks");
    let folders = folders.map(|folder| folder.expect("a stack").path());
    let mut all: Vec<_> = folders.map(stack).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Several {
    /// Puts the stack where it was started by hand.
    pub fn started<'f>(&self, folder: &'f Path) -> Started<'f> {
        let root = folder.join("host");
        for entry in fs::read_dir(&self.folder).expect("a stack") {
            let from = entry.expect("an entry").path();
            let name = name_of(&from);
            if !OF_TEST.contains(&name.as_str()) {
                copy(&from, &root.join(name));
            }
        }
        let dir = root.join("web");
        let shell = judge::shell(&dir, &self.shell);
        Started::new(folder, dir, self.options.clone(), shell)
    }
}

impl<'f> Started<'f> {
    /// A stack in `dir`, which is below `host` in `folder`.
    pub fn new(folder: &'f Path, dir: PathBuf, options: Vec<String>, mut shell: Shell) -> Self {
        let path = folder.join("path");
        fs::create_dir(&path).expect("a folder");
        shell.insert("PATH".to_owned(), path.display().to_string());
        Self {
            root: folder.join("host"),
            dir,
            options,
            shell,
            path,
            folder,
        }
    }

    /// The configuration of its files.
    pub fn original(&self, compose: &Path, options: &[&str]) -> Result<Value, String> {
        let all: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let all = [&all, options].concat();
        judge::original(compose, &self.dir, &all, &self.shell)
    }

    /// What `render --as adopt` prints with `flags` on a host that has this Compose program.
    pub fn render(&self, compose: &Path, project: &str, flags: &[&str]) -> Output {
        let program = self.path.join("docker-compose");
        let _ = fs::remove_file(&program);
        symlink(compose, &program).expect("a link");
        let engine = self.engine(project);
        let socket = engine.as_ref().map(Rehearsal::socket);
        let socket = socket.unwrap_or(Path::new("/none"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_stacklift"));
        command
            .args(["render", project, "--as", "adopt", "--dir"])
            .arg(&self.dir)
            .args(flags)
            .current_dir(&self.dir)
            .env_clear()
            .envs(&self.shell)
            .env("STACKLIFT_ENGINE", "api")
            .env("STACKLIFT_SYSTEM_SETTINGS", "/nonexistent")
            .env("STACKLIFT_STATE_DIR", self.folder.join("state"))
            .env("DOCKER_HOST", format!("unix://{}", socket.display()));
        command.output().expect("the binary runs")
    }

    /// What Portainer gets; the error says why it gets nothing.
    pub fn payload(&self, compose: &Path, project: &str) -> Result<Payload, String> {
        let output = self.render(compose, project, &["--reveal"]);
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let variables = json["env"].as_array().expect("an array").iter();
        Ok(Payload {
            project: text(&json["name"]),
            text: text(&json["stackFileContent"]),
            // As Portainer writes it (M07).
            env: variables
                .map(|one| [&text(&one["name"]), "=", &text(&one["value"]), "\n"].concat())
                .collect(),
        })
    }

    /// The files are gone: Portainer has only what it got.
    pub fn remove(&self) {
        fs::rename(&self.root, self.folder.join("gone")).expect("rename");
    }

    /// The configuration of what Portainer got.
    pub fn held(
        &self,
        compose: &Path,
        payload: &Payload,
        options: &[&str],
    ) -> Result<Value, String> {
        let Payload { project, text, env } = payload;
        judge::held(compose, self.folder, project, text, env, options)
    }

    /// An engine with a container whose labels name the files, if Compose does not find them by itself.
    fn engine(&self, project: &str) -> Option<Rehearsal> {
        let values = |flag: &str| {
            let pairs = self.options.windows(2).filter(|pair| pair[0] == flag);
            let files = pairs.map(|pair| self.dir.join(&pair[1]).display().to_string());
            files.collect::<Vec<_>>().join(",")
        };
        let (mut files, env) = (values("-f"), values("--env-file"));
        if files.is_empty() && env.is_empty() {
            return None;
        }
        if files.is_empty() {
            let found = ["compose.yaml", "compose.override.yaml"].map(|file| self.dir.join(file));
            let found = found.iter().filter(|file| file.exists());
            let found: Vec<_> = found.map(|file| file.display().to_string()).collect();
            files = found.join(",");
        }
        let mut world = World::new("key");
        let id = world.add_container("stack-of-files", "busybox");
        let labels = &mut world.containers.get_mut(&id).expect("a container").labels;
        for (name, value) in [
            ("project", project),
            ("service", "stack-of-files"),
            ("container-number", "1"),
            ("oneoff", "False"),
            ("project.working_dir", self.dir.to_str().expect("UTF-8")),
            ("project.config_files", &files),
            ("project.environment_file", &env),
        ] {
            labels.insert(format!("com.docker.compose.{name}"), value.to_owned());
        }
        Some(Rehearsal::start(world, &Options::default()).expect("a rehearsal"))
    }
}

/// The project's name in a configuration.
pub fn project(config: &Value) -> String {
    config["name"].as_str().expect("a name").to_owned()
}

/// What becomes of a stack that one Compose program combines and another one reads.
pub type Pair = (usize, usize);

/// Lets each Compose program combine a stack, and each one read the result.
pub fn judged(composes: &[(&str, PathBuf)], started: &Started) -> BTreeMap<Pair, Verdict> {
    // Also what no profile starts.
    let profiles: [&[&str]; 2] = [&[], &["--profile", "*"]];
    let all = composes
        .iter()
        .map(|(_, compose)| profiles.map(|options| started.original(compose, options)));
    let all: Vec<_> = all.collect();
    let payload = |((_, compose), [original, _]): (&(_, PathBuf), &[Result<Value, _>; 2])| {
        let project = project(original.as_ref().ok()?);
        Some(started.payload(compose, &project))
    };
    let payloads: Vec<_> = composes.iter().zip(&all).map(payload).collect();
    started.remove();
    let mut verdicts = BTreeMap::new();
    for (reader, originals) in all.iter().enumerate() {
        for (writer, payload) in payloads.iter().enumerate() {
            let compared = |options: usize, payload: &Payload| {
                if all[reader][options].is_err() || all[writer][options].is_err() {
                    // Services of several profiles contradict each other.
                    return Ok(());
                }
                let expected = |of: usize| -> Result<Value, String> {
                    let original = all[of][options].clone()?;
                    Ok(compare::expected(original, &payload.project, &payload.env))
                };
                let held = started.held(&composes[reader].1, payload, profiles[options]);
                let held = held.map_err(|why| format!("Portainer fails: {why}"))?;
                parted(&expected(reader)?, &expected(writer)?, &held)
            };
            let verdict = match (payload, &originals[0]) {
                (_, Err(why)) => Verdict::NotLoadable {
                    why: why.clone(),
                    refusals: vec![("Compose".into(), "it does not load".into())],
                },
                (None, _) => continue,
                (Some(Err(why)), _) => Verdict::Refused(vec![("SeveralFiles".into(), why.clone())]),
                (Some(Ok(payload)), _) => {
                    match (0..profiles.len()).try_for_each(|options| compared(options, payload)) {
                        Ok(()) => Verdict::Equal,
                        Err(place) => Verdict::Different(place),
                    }
                }
            };
            verdicts.insert((writer, reader), verdict);
        }
    }
    verdicts
}

/// Where a configuration is not `expected`. A variable of a service may have the value that it has on the host, `here`: Compose
/// resolves env files with the variables of the service in 2.26, and without them in 2.40. An anonymous volume may have a name.
fn parted(expected: &Value, here: &Value, held: &Value) -> Result<(), String> {
    let mut found = compare::differences(expected, held);
    found.retain(|(path, before, value)| {
        let is_named = match path.as_slice() {
            [first, _, third, _, last] => {
                first == "services" && third == "volumes" && last == "source"
            }
            [first, _] => first == "volumes",
            _ => false,
        };
        let is_variable = matches!(path.as_slice(), [_, _, third, _] if third == "environment");
        let here = path.iter().try_fold(here, |here, step| here.get(step));
        !(is_named && before.is_none() || is_variable && value.is_some() && here == *value)
    });
    let Some((path, expected, held)) = found.first() else {
        return Ok(());
    };
    Err(format!("{}: {expected:?} became {held:?}", path.join(".")))
}

/// Copies a file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().expect("a parent")).expect("create");
        fs::copy(from, to).expect("copy");
        return;
    }
    for entry in fs::read_dir(from).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

/// The Compose programs of the hosts and of Portainer, by their versions.
fn composes() -> Vec<(&'static str, PathBuf)> {
    vec![
        ("2.26", required("STACKLIFT_TEST_COMPOSE")),
        ("2.40", required("STACKLIFT_TEST_COMPOSE_2_40")),
        ("5", required("STACKLIFT_TEST_COMPOSE_5")),
    ]
}

fn selected() -> Vec<Several> {
    let mut all = all();
    all.retain(|stack| stack.name.contains(&only()));
    all
}

/// What one Compose program combines means the same to each, and nothing is refused but what a stack says is refused.
#[test]
#[ignore = "needs several compose programs: run scripts/test"]
fn several_files_mean_the_same_to_portainer_with_each_compose() {
    let (stacks, composes) = (selected(), composes());
    let all = on_two_threads(stacks.len(), |at| {
        let stack = &stacks[at];
        let folder = tempfile::tempdir().expect("a folder");
        let verdicts = judged(&composes, &stack.started(folder.path()));
        Some((stack.name.clone(), verdicts))
    });
    let mut wrong = 0;
    for (writer, (written_by, _)) in composes.iter().enumerate() {
        for (reader, (read_by, _)) in composes.iter().enumerate() {
            let what = format!("several files, combined by {written_by}, read by {read_by}");
            let verdicts = all.iter().filter_map(|(name, verdicts)| {
                let verdict = verdicts.get(&(writer, reader))?;
                Some((name.clone(), verdict.clone()))
            });
            wrong += report(&what, &verdicts.collect());
        }
    }
    assert_eq!(wrong, 0, "{wrong} stacks are different in Portainer");
    for stack in &stacks {
        for verdict in all[&stack.name].values() {
            let refused = match verdict {
                Verdict::Refused(why) => Some(why[0].1.as_str()),
                Verdict::NotLoadable { why, .. } => Some(why.as_str()),
                Verdict::Equal | Verdict::Resolved | Verdict::Different(_) => None,
            };
            match (&stack.refused, refused) {
                (None, None) => {}
                (Some(reason), Some(said)) if said.contains(reason) => {}
                (reason, said) => panic!("{}: expected {reason:?}, not {said:?}", stack.name),
            }
        }
    }
}

/// C55 and B13: values of env files are shown only with `--reveal`, and stand in the variables.
#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn no_value_of_an_env_file_is_shown_or_written() {
    let (stacks, compose) = (selected(), crate::compose());
    let found = on_two_threads(stacks.len(), |at| {
        let stack = &stacks[at];
        let folder = tempfile::tempdir().expect("a folder");
        let started = stack.started(folder.path());
        let project = project(&started.original(&compose, &[]).expect("it loads"));
        let mut found = Vec::new();
        for flags in [&[][..], &["--diff"]] {
            let output = started.render(&compose, &project, flags);
            let printed = [output.stdout, output.stderr].concat();
            if String::from_utf8_lossy(&printed).contains(SECRET) {
                found.push(format!("shown with {flags:?}"));
            }
        }
        let payload = started.payload(&compose, &project);
        let text = payload.map(|payload| payload.text).unwrap_or_default();
        let lines = text.lines().filter(|line| line.contains(SECRET));
        found.extend(lines.map(|line| format!("in the text: {line}")));
        Some((stack.name.clone(), found))
    });
    assert!(found.values().all(Vec::is_empty), "{found:#?}");
}
