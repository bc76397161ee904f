//! `stacklift adopt --git` with a real Git server over HTTP: `git http-backend`, from which the rehearsal clones with Git
//! (M24, M25).

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{Call, CloneError, Files};

use crate::bench::{Bench, MARKED, PLAIN, Run};

/// The Compose file of most tests.
const FILE: &str = "blog/compose.yaml";

/// `bob` and [`MARKED`], as HTTP sends them.
const BASIC: &str = "Basic Ym9iOnMzY3IzdC03ZDFlNTVhMA==";

/// Gives Git the user name and the password in its environment.
const HELPER: &str =
    "credential.helper=!printf 'username=%s\npassword=%s\n' \"$A_USER\" \"$A_PASSWORD\"; :";

/// A repository on a server, and a clone of it to push from.
struct Server {
    _folder: TempDir,
    clone: PathBuf,
    url: String,
}

impl Server {
    /// Serves a repository with these files at `/stacks.git`, and to `bob` also at `/private/stacks.git`.
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().to_owned();
        symlink(".", root.join("private")).expect("a link");
        git(
            &root,
            &["init", "-q", "--bare", "-b", "trunk", "stacks.git"],
        )
        .expect("a repository");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let root = root.clone();
                thread::spawn(move || serve(&stream?, &root));
            }
            io::Result::Ok(())
        });
        let from = format!("{url}/stacks.git");
        git(folder.path(), &["clone", "-q", &from, "clone"]).expect("a clone");
        let clone = folder.path().join("clone");
        push(&clone, files);
        Self {
            _folder: folder,
            clone,
            url,
        }
    }

    fn flags(&self, repository: &str) -> String {
        format!("--git {}/{repository}", self.url)
    }

    /// The commit of the clone.
    fn head(&self) -> String {
        let commit = git(&self.clone, &["rev-parse", "HEAD"]);
        commit.expect("a commit").trim().to_owned()
    }
}

/// Commits and pushes a clone with these files in it.
fn push(clone: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        fs::create_dir_all(clone.join(name).parent().expect("a folder")).expect("a folder");
        fs::write(clone.join(name), text).expect("a file");
    }
    git(clone, &["add", "-A"]).expect("added");
    git(clone, &["commit", "-qm", "x"]).expect("a commit");
    git(clone, &["push", "-q", "origin", "HEAD:trunk"]).expect("a push");
}

/// Git without the settings of this machine.
fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0");
    command.args(["-c", "user.name=x", "-c", "user.email=x", "-c", HELPER]);
    command
}

fn git(folder: &Path, args: &[&str]) -> Result<String, String> {
    git_as(("", ""), folder, args)
}

fn git_as((user, password): (&str, &str), folder: &Path, args: &[&str]) -> Result<String, String> {
    let mut command = command(folder);
    command.env("A_USER", user).env("A_PASSWORD", password);
    let output = command.args(args).output().expect("git");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let is_done = output.status.success();
    let done = is_done.then(|| text(&output.stdout));
    done.ok_or_else(|| text(&output.stderr))
}

/// Responds to one request with what Git's CGI program prints.
fn serve(mut stream: &TcpStream, root: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let lines = reader.by_ref().lines().map_while(Result::ok);
    let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let mut all = lines.iter().filter_map(|line| line.split_once(": "));
        let found = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    };
    let words: Vec<&str> = lines[0].split(' ').collect();
    let (path, query) = words[1].split_once('?').unwrap_or((words[1], ""));
    if path.starts_with("/private/") && header("Authorization") != BASIC {
        let asks = "WWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0";
        return write!(stream, "HTTP/1.1 401 Unauthorized\r\n{asks}\r\n\r\n");
    }
    let mut backend = command(root);
    for (name, value) in [
        ("GIT_PROJECT_ROOT", root.to_str().expect("UTF-8")),
        ("GIT_HTTP_EXPORT_ALL", "1"),
        ("REMOTE_USER", "bob"),
        ("REQUEST_METHOD", words[0]),
        ("PATH_INFO", path),
        ("QUERY_STRING", query),
        ("CONTENT_TYPE", header("Content-Type")),
        ("HTTP_CONTENT_ENCODING", header("Content-Encoding")),
    ] {
        backend.env(name, value);
    }
    let (input, output) = (Stdio::piped(), Stdio::piped());
    backend.arg("http-backend").stdin(input).stdout(output);
    let mut backend = backend.stderr(Stdio::null()).spawn()?;
    let length = header("Content-Length").parse().unwrap_or(0);
    let mut input = backend.stdin.take().expect("a pipe");
    io::copy(&mut reader.take(length), &mut input)?;
    drop(input);
    let printed = backend.wait_with_output()?.stdout;
    let failed = printed.strip_prefix(b"Status: ");
    let failed = failed.and_then(|rest| rest.split(|byte| *byte == b'\r').next());
    let status = String::from_utf8_lossy(failed.unwrap_or(b"200 OK"));
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n")?;
    stream.write_all(&printed)
}

/// Clones a repository over HTTP.
fn fetch(
    url: &str,
    reference: &str,
    user: &str,
    password: &str,
) -> Result<(Files, String), CloneError> {
    let folder = tempfile::tempdir().expect("a folder");
    let git = |args: &[&str]| git_as((user, password), folder.path(), args);
    let cloned = || {
        git(&["init", "-q"])?;
        git(&["fetch", "-q", "--depth=1", url, reference])?;
        let commit = git(&["rev-parse", "FETCH_HEAD"])?.trim().to_owned();
        let mut files = Files::new();
        for name in git(&["ls-tree", "-r", "--name-only", &commit])?.lines() {
            files.insert(
                name.to_owned(),
                git(&["show", &format!("{commit}:{name}")])?,
            );
        }
        Ok((files, commit))
    };
    cloned().map_err(|why: String| match why {
        why if why.contains("Authentication failed") => CloneError::Credential,
        why => CloneError::Failed(why),
    })
}

/// The stack `web`, started by hand, next to a Portainer that clones from real servers.
fn bench(compose: &str, env: Option<&str>) -> Bench {
    let bench = Bench::new();
    bench.started("web", compose, env);
    bench.git(|git| git.fetch = Some(fetch));
    bench
}

fn run(bench: &Bench, args: &str) -> Run {
    run_with(bench, args, &[])
}

fn run_with(bench: &Bench, args: &str, env: &[(&str, &str)]) -> Run {
    Run::of(bench.command(args).envs(env.iter().copied()))
}

/// The body of the one create.
fn sent(bench: &Bench) -> Value {
    let creates = bench.calls(Call::CreateGit);
    assert_eq!(creates.len(), 1);
    serde_json::from_slice(&creates[0].body).expect("JSON")
}

/// Whether Portainer was only read.
fn nothing_was_sent(bench: &Bench) -> bool {
    bench
        .requests()
        .iter()
        .all(|one| matches!(one.method.as_str(), "GET" | "HEAD") || one.call == Call::Preview)
}

#[test]
#[ignore = "needs git: run scripts/test"]
fn m24_a_patch_makes_what_a_git_server_has_equal_and_commits_are_deployed() {
    let text = format!("{PLAIN}    env_file: .env\n    volumes: [./data:/data]\n");
    let server = Server::with(&[(FILE, &text)]);
    let bench = bench(&text, Some("A=1\n"));
    let deployed = || bench.world(|world| world.records[&1].git.clone());
    let deployed = || deployed().expect("a Git stack")["ConfigHash"].clone();
    let adopt = format!(
        "adopt web {}",
        server.flags("stacks.git/ --path blog/compose.yaml")
    );
    let before = bench.containers("web");
    let refused = run(&bench, &adopt).fails("apply the patch below");
    assert!(nothing_was_sent(&bench));
    let patch = bench.write("web", "patch", &refused.out);
    let patch = patch.to_str().expect("UTF-8");
    git(&server.clone, &["apply", patch]).expect("a patch that applies");
    push(&server.clone, &[]);
    // Another commit arrives after the plan has looked for `.env` and read the file.
    let clone = server.clone.clone();
    bench.world_with(Call::Preview, |_| {});
    bench.world_with(Call::Preview, move |_| {
        push(&clone, &[("blog/.env", "A=2\n")]);
    });
    run(&bench, &adopt).fails("the repository changed after the plan was made");
    assert!(nothing_was_sent(&bench));
    fs::remove_file(server.clone.join("blog/.env")).expect("a file");
    push(&server.clone, &[]);
    run(&bench, &adopt).succeeds("adopted web: 1 container kept running");
    assert_eq!(bench.containers("web"), before);
    assert_eq!(deployed(), server.head());
    assert_eq!(sent(&bench)["repositoryReferenceName"], "");
    assert_eq!(sent(&bench)["env"], json!([{"name": "A", "value": "1"}]));
    push(&server.clone, &[(FILE, &PLAIN.replace("1000", "9"))]);
    run(&bench, &adopt).succeeds("updated web: a was down for");
    assert_eq!(deployed(), server.head());
    assert_ne!(bench.containers("web"), before);
    run(&bench, "restore web").succeeds("to undo a commit, revert it in the repository");
    assert_eq!(deployed(), server.head());
}

#[test]
#[ignore = "needs git: run scripts/test"]
fn m25_a_git_server_asks_for_a_password_which_is_never_shown() {
    let server = Server::with(&[("docker-compose.yml", PLAIN)]);
    let bench = bench(PLAIN, None);
    let before = bench.containers("web");
    let private = server.flags("private/stacks.git");
    for (flags, password, expected) in [
        (private.clone(), "", "Invalid git credential"),
        (
            format!("{private} --git-user bob"),
            "s3cr3t-wrong",
            "hint: check --git-user",
        ),
        (
            format!("{private} --git-user ann"),
            MARKED,
            "hint: check --git-user",
        ),
        (server.flags("other.git"), "", "not found"),
        (
            format!("{private} --git-user bob --ref other"),
            MARKED,
            "refs/heads/other",
        ),
    ] {
        let password = [("STACKLIFT_GIT_PASSWORD", password)];
        run_with(&bench, &format!("adopt web -v {flags}"), &password).fails(&[
            "error: Portainer cannot read docker-compose.yml from http://127.0.0.1:",
            expected,
        ]);
        assert!(nothing_was_sent(&bench));
    }
    let adopt = format!("adopt web -v {private} --git-user bob --ref trunk");
    run_with(&bench, &adopt, &[("STACKLIFT_GIT_PASSWORD", MARKED)])
        .succeeds("adopted web: 1 container kept running");
    assert_eq!(bench.containers("web"), before);
    assert_eq!(sent(&bench)["composeFile"], "docker-compose.yml");
    run(&bench, "restore web").code(0);
    assert!(bench.world(|world| world.records.is_empty()));
}
