//! Runs a transcript: arranges what it says, runs its commands, and writes what they print and do.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    mem,
    os::{fd::OwnedFd, unix::fs::symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use ring::digest::{SHA256, digest};
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::{Value, json};
use snapbox::{Assert, Data};
use testbed::{Call, Container, Era, Peer, Request, ResourceControl};

use crate::{
    arrange::{self, Step},
    bench::{Bench, KEY, MARK, set_mode},
    format::{Part, indented, lines, parts},
    listener::Listener,
    query::query,
    schema,
    screen::{everything_on, terminal},
};

/// The stacks root, the home directory, the port of Portainer and the socket of Docker in a transcript. They are as long as the real ones, because
/// lines are broken at the width of the terminal.
const ROOT: &str = "/opt/stacks";
const HOME: &str = "/home/user";
const PORT: &str = "19443";
const SOCKET: &str = "/tmp/stacklift-rehearsal-AbCdEf/engine.sock";

/// The variable that names a real Compose program.
const COMPOSE: &str = "STACKLIFT_TEST_COMPOSE";

/// What stands for the SHA-256 fingerprint of Portainer's certificate, and of the one before it.
const NOW: &str = "(fingerprint)";
const BEFORE: &str = "(old fingerprint)";

/// Erases a line of a terminal.
const ERASE: &str = "\r\x1b[2K";

/// What is masked because it differs between runs: `#` is a digit, `@` a letter, and `&` either.
const MASKED: [(&str, &str); 9] = [
    ("stacklift-copies-&&&&&&", "stacklift-copies-AbCdEf"),
    ("Up # seconds", "Up Less than a second"),
    ("## @@@ ####, ##:##:##", "2 Jan 2026, 03:04"),
    ("# @@@ ####, ##:##:##", "2 Jan 2026, 03:04"),
    ("still deploying after # s", "still deploying after N s"),
    ("########T######.###Z", "20260102T030405.678Z"),
    ("####-##-##T##:##:##", "2026-01-02T03:04:05"),
    ("## @@@ ####, ##:##", "2 Jan 2026, 03:04"),
    ("# @@@ ####, ##:##", "2 Jan 2026, 03:04"),
];

/// Runs a transcript, and returns it with what really happened.
pub fn run(transcript: &str) -> Result<String, String> {
    let eras = transcript
        .lines()
        .find_map(|line| line.strip_prefix("eras "));
    let names = eras.unwrap_or("sync").split(' ');
    let runs = names.map(|name| run_in(era(name)?, transcript).map(|ran| (name, ran)));
    let runs = runs.collect::<Result<Vec<_>, String>>()?;
    let (first, ran) = &runs[0];
    for (name, other) in &runs[1..] {
        let (one, other) = (Data::text(ran), Data::text(other));
        let compared = Assert::new().try_eq(None, other.raw(), one.raw());
        compared.map_err(|error| format!("{first} differs from {name}: {error}"))?;
    }
    Ok(ran.clone())
}

/// A generation of Portainer.
fn era(name: &str) -> Result<Era, String> {
    match name {
        "sync" => Ok(Era::Sync),
        "library" => Ok(Era::Library),
        "async" => Ok(Era::Async),
        _ => Err(format!("no era: {name}")),
    }
}

/// The same with one generation of Portainer.
fn run_in(era: Era, transcript: &str) -> Result<String, String> {
    let mut session = Session::of(era);
    let mut ran = String::new();
    for part in parts(transcript) {
        match part {
            Part::Text(line) => ran.push_str(&[line, "\n"].concat()),
            Part::Command(line) => {
                let done = session.command(line);
                ran += &["$ ", line, "\n", &session.masked(&done)?].concat();
            }
            Part::Step(line, block) => {
                let shown = session.step(line, &block)?;
                ran += &[line, "\n", &session.masked(&shown)?].concat();
            }
        }
    }
    Ok(ran)
}

/// What is typed after a question, and what happens before it.
#[derive(Default)]
struct Answer {
    before: Vec<Step>,
    typed: String,
}

/// What there was before a command.
struct Before {
    containers: BTreeMap<String, Container>,
    files: BTreeMap<PathBuf, Vec<u8>>,
    requests: usize,
}

/// A command that has not ended yet.
struct Running {
    line: String,
    before: Before,
    child: Child,
    out: JoinHandle<String>,
    err: fs::File,
    /// What was read of `err`.
    seen: String,
}

struct Session {
    /// What is typed while the next command runs.
    answers: Vec<Answer>,
    /// What happens before the next answer.
    before: Vec<Step>,
    bench: Bench,
    /// The width of the terminal; `None` if output goes into pipes.
    columns: Option<u16>,
    /// The fingerprint of the certificate that Portainer had before it got another one.
    old_fingerprint: Option<String>,
    /// The ports of Portainer and of listeners, each with that of every transcript.
    ports: Vec<(u16, String)>,
    /// Processes of containers, with their parents.
    processes: Vec<(Child, u64)>,
    /// The command that runs beside those that follow.
    running: Option<Running>,
    /// The files of the stacks when the world last had them.
    synced: BTreeMap<String, Option<String>>,
    /// What is typed before the next command runs.
    typed: String,
}

impl Session {
    fn of(era: Era) -> Self {
        let bench = Bench::below(Path::new("/tmp"), era);
        bench.world(|world| world.stands_still = true);
        let url = bench.base_url();
        let port = url.rsplit(':').next().expect("a port").parse();
        Self {
            answers: Vec::new(),
            before: Vec::new(),
            bench,
            columns: Some(80),
            old_fingerprint: None,
            ports: vec![(port.expect("a port"), PORT.to_owned())],
            processes: Vec::new(),
            running: None,
            synced: BTreeMap::new(),
            typed: String::new(),
        }
    }

    /// Arranges or shows something. Returns the block that follows the line.
    fn step(&mut self, line: &str, block: &str) -> Result<String, String> {
        self.sync();
        let kept = || Ok(indented(' ', block));
        let words = shlex::split(line).ok_or_else(|| format!("a quote is open: {line}"))?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            // Where there are several, what follows is the same in each.
            ["eras", ..] => {}
            ["columns", "none"] => self.columns = None,
            ["columns", width] => self.columns = width.parse().ok(),
            ["clock", "runs"] => self.bench.world(|world| world.stands_still = false),
            ["write", path] => {
                let path = self.path(path);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(&path, self.real(block)).expect("a file");
                set_mode(&path, 0o644);
            }
            ["program", name] => {
                self.bench.script(name, &self.real(block));
            }
            ["during", call, ..] => {
                let rest = line.splitn(3, ' ').nth(2).unwrap_or_default();
                let step = Step::of(rest, &self.real(block), self.bench.root())?;
                let call = arrange::call(call)?;
                self.bench.change_with(call, move |world, git, access| {
                    step.apply(world, git, access);
                });
            }
            ["teams", ref names @ ..] => {
                let names = names.iter().copied().map(str::to_owned);
                self.bench.access(|access| access.teams = names.collect());
            }
            ["container", name, "belongs", "to", "teams", teams] => {
                self.belongs(name, teams, "[]")?;
            }
            ["container", name, "belongs", "to", "users", users] => {
                self.belongs(name, "[]", users)?;
            }
            ["container", name, "has", "a", "process"] => self.start_process(name),
            // What it says of its process is in other numbers than those of this host.
            ["container", name, "has", "another", "process"] => {
                let own = std::process::id().into();
                self.bench.change_container(name, |one| one.process = own);
            }
            [
                "answer" | "before" | "command" | "screen" | "signal" | "start" | "type",
                ..,
            ] => {
                return self.steer(&words, line, block);
            }
            ["forget", "requests"] => self.bench.forget_requests(),
            ["no", "faults"] => self.bench.faults().clear(),
            ["fault", ..] => {
                let line = self.with_ids(line);
                self.bench.faults().add(arrange::fault(&line)?);
            }
            // Somebody creates it there: its containers have the labels of Portainer.
            ["portainer", "creates", name] => {
                let id = self.bench.create_in_portainer(name, &self.real(block), &[]);
                self.bench.world(|world| world.finish_deployment(id));
            }
            // Somebody edits it there, as it is now, and deploys it.
            ["portainer", "deploys", "stack", id] => {
                let id = id.parse().map_err(|_| "which stack?")?;
                let record = self.bench.world(|world| world.records.get(&id).cloned());
                self.bench.update_in_portainer(&record.ok_or("no stack")?);
            }
            ["portainer", "deletes", "stack", id] => {
                let id = id.parse().map_err(|_| "which stack?")?;
                self.bench.delete_in_portainer(id);
            }
            ["portainer", "gets", "another", "certificate"] => {
                self.old_fingerprint = Some(fingerprint(&self.bench));
                self.bench.renew_certificate().expect("a certificate");
            }
            ["engine", "supports", "API", oldest, "to", newest] => self.bench.engine_api(|api| {
                oldest.clone_into(&mut api.oldest);
                newest.clone_into(&mut api.newest);
            }),
            ["engine", "is", "Podman", version] => {
                let libpod = Some(version.to_owned());
                self.bench.engine_api(|api| api.libpod = libpod);
            }
            ["listen", address, ref user @ ..] => self.listen(address, user, block)?,
            ["portainer", "finishes"] => self.bench.end_work_in(Duration::ZERO),
            ["portainer", "comes", "back"] => self.bench.revive().expect("alive again"),
            ["show", ref what @ ..] => return self.show(what),
            _ => {
                let step = Step::of(&self.real(line), &self.real(block), self.bench.root())?;
                step.apply_to(&self.bench);
                self.bench.settle();
                self.create_what_docker_created();
            }
        }
        kept()
    }

    /// Steers the next command, or the one that runs. Returns what that printed and did if it has ended.
    fn steer(&mut self, words: &[&str], line: &str, block: &str) -> Result<String, String> {
        match *words {
            // A terminal is standard input only of a command that is answered.
            ["answer", ref typed @ ..] => {
                let (before, typed) = (mem::take(&mut self.before), typed.join(" "));
                self.answers.push(Answer { before, typed });
            }
            ["before", "the", "answer", ..] => {
                let rest = line.splitn(4, ' ').nth(3).unwrap_or_default();
                self.before.push(Step::of(
                    &self.real(rest),
                    &self.real(block),
                    self.bench.root(),
                )?);
            }
            ["start", "until", ref rest @ ..] => {
                let (count, skipped) = match rest {
                    ["second", ..] => (2, 4),
                    _ => (1, 3),
                };
                let call = arrange::call(words[skipped - 1])?;
                let line = line.splitn(skipped + 1, ' ').nth(skipped);
                self.start(line.ok_or("which command?")?, call, count)?;
            }
            ["screen", "shows", ..] => {
                let running = self.running.as_mut().ok_or("no command runs")?;
                let text = line.splitn(3, ' ').nth(2).unwrap_or_default();
                read_until(running, |seen| seen.contains(text));
            }
            ["command", "ends"] => {
                let running = self.running.take().ok_or("no command runs")?;
                return Ok(self.ended(running, None));
            }
            ["signal", name] => {
                let running = self.running.take().ok_or("no command runs")?;
                kill_process(Pid::from_child(&running.child), signal(name)?).expect("sent");
                return Ok(self.ended(running, None));
            }
            ["type", text] => self.typed += &[text, "\n"].concat(),
            _ => return Err(format!("unknown line: {line}")),
        }
        Ok(indented(' ', block))
    }

    /// A server that is no part of the rehearsal: `listen [::1]:18001`, `listen 127.0.0.1:18001 as 65534`, `listen /opt/stacks/socket`.
    fn listen(&mut self, address: &str, user: &[&str], script: &str) -> Result<(), String> {
        let real = self.real(address);
        let known = match address.rsplit_once(':') {
            Some((host, _)) if real == address => [host, ":0"].concat(),
            _ => real,
        };
        let text = |error: io::Error| error.to_string();
        let listener = Listener::at(&known).map_err(text)?;
        if let (Some(port), Some((_, shown))) = (listener.port, address.rsplit_once(':')) {
            self.ports.push((port, shown.to_owned()));
        }
        if let ["as", user] = user {
            let user = user.parse().map_err(|_| "which user?")?;
            listener.give_to(user).map_err(text)?;
        }
        listener.serve(self.real(script), self.bench.root());
        Ok(())
    }

    fn belongs(&self, container: &str, teams: &str, users: &str) -> Result<(), String> {
        let control = ResourceControl {
            id: 500,
            teams: serde_json::from_str(teams).map_err(|error| error.to_string())?,
            users: serde_json::from_str(users).map_err(|error| error.to_string())?,
            ..ResourceControl::default()
        };
        let id = self.container_id(container);
        self.bench
            .access(|access| access.controls.insert(id, control));
        Ok(())
    }

    fn container_id(&self, name: &str) -> String {
        self.bench
            .world(|world| world.container(name).expect(name).id.clone())
    }

    /// Starts a process of a container. Its parent stands for containerd, whose command line has the ID of the container.
    fn start_process(&mut self, name: &str) {
        let id = self.container_id(name);
        let mut parent = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait", &id])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = parent.stdout.take().expect("a pipe");
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("an ID");
        let process = line.trim().parse().expect("an ID");
        self.bench
            .change_container(name, |one| one.process = process);
        self.processes.push((parent, process));
    }

    /// What is there, as lines.
    fn show(&mut self, what: &[&str]) -> Result<String, String> {
        let shown = match what {
            [
                "calls" | "connections" | "count" | "header" | "request" | "requests",
                ..,
            ] => self.sent(what)?,
            ["container", "access"] => {
                let names = self.containers();
                let owner = |id: &String| names.values().find(|one| one.id == *id);
                self.bench.access(|access| {
                    let own = access.controls.iter();
                    lines(own.filter_map(|(id, one)| {
                        Some(format!("{} teams {:?}", owner(id)?.name, one.teams))
                    }))
                })
            }
            ["access"] => self.bench.world(|world| {
                lines(world.records.values().map(|one| {
                    let control = &one.control;
                    format!(
                        "{} {:?} users {:?} teams {:?}",
                        one.id, one.status, control.users, control.teams
                    )
                }))
            }),
            ["stacks"] => self.bench.world(|world| {
                lines(world.records.values().map(|one| {
                    let (env, text) = (json!(one.env), one.text.trim_end());
                    let (id, name) = (one.id, &one.name);
                    format!(
                        "{id} {name}, environment {}, variables {env}\n{text}",
                        one.endpoint
                    )
                }))
            }),
            ["volumes"] => self.bench.world(|world| {
                lines(
                    world
                        .volumes
                        .iter()
                        .filter_map(|volume| volume["Name"].as_str()),
                )
            }),
            ["containers"] => self.bench.world(|world| {
                let mut all: Vec<&Container> = world.containers.values().collect();
                all.sort_by(|one, other| one.name.cmp(&other.name));
                lines(all.iter().map(|one| format!("{} {}", one.name, one.state)))
            }),
            ["container", name, path @ ..] => self.bench.world(|world| {
                let container = world.container(name).ok_or("no container")?;
                let json = serde_json::to_value(container).map_err(|error| error.to_string())?;
                let mut shown = query(&path.join(" "), &json);
                for one in world.containers.values() {
                    shown = shown.replace(&one.id, &one.name);
                    // Docker's alias of it.
                    shown = shown.replace(&one.id[..12], &one.name);
                }
                Ok::<_, String>(shown)
            })?,
            _ => return Err(format!("cannot show {what:?}")),
        };
        Ok(indented(' ', &shown))
    }

    /// What was sent, as lines.
    fn sent(&self, what: &[&str]) -> Result<String, String> {
        Ok(match what {
            // What Portainer was last sent: the request, and apart from it the Compose file.
            ["request"] => {
                let requests = self.bench.requests();
                let has_body = |one: &&Request| {
                    one.peer == Peer::Portainer && is_change(one) && !one.body.is_empty()
                };
                let last = requests.iter().rev().find(has_body).ok_or("no request")?;
                let mut body: Value =
                    serde_json::from_slice(&last.body).map_err(|error| error.to_string())?;
                let text = body
                    .as_object_mut()
                    .and_then(|body| body.remove("stackFileContent"));
                let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
                format!("{} {}\n{body}\n{text}", last.method, last.path)
            }
            // The requests of a call so far, or all to one of the two.
            ["count", of] => {
                let requests = self.bench.requests();
                let is_counted =
                    |one: &&Request| format!("{:?}", one.call) == *of || peer(one) == *of;
                lines([requests.iter().filter(is_counted).count()].iter())
            }
            // The connections to Portainer, in their order.
            ["connections"] => {
                let requests = self.bench.requests();
                let mut ports: Vec<u16> = requests.iter().map(|one| one.port).collect();
                ports.retain(|port| *port != 0);
                ports.dedup();
                lines([ports.len()].iter())
            }
            // Sorted, because some are made side by side.
            ["requests", of @ ..] => {
                let mut requests = self.bench.requests();
                requests.retain(|one| of.is_empty() || of.contains(&&*format!("{:?}", one.call)));
                let all = requests.iter().map(|one| shown(one, &BTreeMap::new()));
                let mut all: Vec<String> = all.collect();
                all.sort();
                lines(all.iter())
            }
            ["calls", of @ ..] => {
                let requests = self.bench.requests().into_iter();
                let calls = requests.map(|one| format!("{:?}", one.call));
                let mut calls: Vec<String> = calls.filter(|call| of.contains(&&**call)).collect();
                calls.dedup();
                lines(calls.iter())
            }
            // The values of a header, `-` if a request has none.
            ["header", name] => {
                let value = |one: &Request| {
                    let mut headers = one.headers.iter();
                    let found = headers.find(|(of, _)| of.eq_ignore_ascii_case(name));
                    found.map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
                };
                let requests = self.bench.requests().into_iter();
                let values = requests.map(|one| format!("{}: {}", peer(&one), value(&one)));
                lines(values.collect::<BTreeSet<_>>().iter())
            }
            _ => return Err(format!("cannot show {what:?}")),
        })
    }

    /// Runs a command of the shell. Returns what it prints and does.
    fn command(&mut self, line: &str) -> String {
        self.sync();
        let (line, picked) = match line.rsplit_once(" | jq ") {
            Some((line, query)) => (line, Some(query.trim_matches('\''))),
            None => (line, None),
        };
        let columns = if picked.is_some() { None } else { self.columns };
        let running = self.spawn(line, self.shell(&self.real(line)), columns);
        self.ended(running, picked)
    }

    /// Starts a command, and waits until it has sent this many requests of the call.
    fn start(&mut self, line: &str, call: Call, count: usize) -> Result<(), String> {
        // The signal is for the program, and not for a shell.
        let mut command = self.shell(&format!("exec {}", self.real(line)));
        // It waits longer than all that happens meanwhile.
        command.env("STACKLIFT_TIMEOUT", "10m");
        let mut running = self.spawn(line, command, self.columns);
        let sent = |bench: &Bench| {
            let requests = bench.requests().into_iter();
            let new = requests.skip(running.before.requests);
            new.filter(|one| one.call == call).count() >= count
        };
        while !sent(&self.bench) {
            if running.child.try_wait().expect("a child").is_some() {
                return Err(format!("it ended:\n{}", self.ended(running, None)));
            }
            thread::sleep(Duration::from_millis(2));
        }
        self.running = Some(running);
        Ok(())
    }

    /// Starts a command. A question is always asked on a terminal.
    fn spawn(&mut self, line: &str, mut command: Command, columns: Option<u16>) -> Running {
        let before = Before {
            containers: self.containers(),
            files: self.files(),
            requests: self.bench.requests().len(),
        };
        let is_asked = !self.answers.is_empty();
        let (out, inner_out) = ends(columns);
        let (mut err, inner_err) = ends(columns.or(is_asked.then_some(120)));
        if is_asked {
            command.stdin(inner_err.try_clone().expect("a copy"));
            let typed = mem::take(&mut self.typed);
            err.write_all(typed.as_bytes()).expect("typed");
        }
        command.stdout(inner_out).stderr(inner_err);
        // At the end, the inner ends of this process are closed, so that the output ends with the child.
        let child = command.spawn().expect("a shell");
        Running {
            line: line.to_owned(),
            before,
            child,
            out: thread::spawn(move || everything_on(out)),
            err,
            seen: String::new(),
        }
    }

    /// Waits until a command has ended, and types the answers. Returns what it printed and did.
    fn ended(&mut self, mut running: Running, picked: Option<&str>) -> String {
        answer(&mut running, mem::take(&mut self.answers), &self.bench);
        let Running {
            line,
            before,
            mut child,
            out,
            err,
            seen,
        } = running;
        let err = seen + &everything_on(err);
        let out = out.join().expect("read");
        let status = child.wait().expect("it ends");
        let err = settled(&err, self.columns);
        let text = |text: String| text.replace("\r\n", "\n").replace('\x1b', "␛");
        let (out, err) = (text(out), text(err));
        let out = match picked {
            Some(path) => pick(&line, path, &out),
            None => out,
        };
        let all = format!("{out}{err}");
        assert!(!all.contains(KEY), "the key shows: {all}");
        assert!(!all.contains("panicked"), "{all}");
        let reveals = line.contains("--reveal") || !line.contains("stacklift ");
        assert!(reveals || !all.contains(MARK), "a value shows: {all}");
        // Empty lines at the end would separate it from what follows.
        let mut done = indented(' ', out.trim_end_matches('\n')) + &indented('!', &err);
        match status.code() {
            Some(0) => {}
            Some(code) => done += &indented('?', &code.to_string()),
            None => done += &indented('?', &status.to_string()),
        }
        let all = self.bench.requests().into_iter();
        let new: Vec<Request> = all.skip(before.requests).collect();
        let says_key = |one: &Request| {
            one.path.contains(KEY) || String::from_utf8_lossy(&one.body).contains(KEY)
        };
        assert!(!new.iter().any(says_key), "the key is in a request");
        let after = self.containers();
        let all = before.containers.values().chain(after.values());
        let names: BTreeMap<String, String> =
            all.map(|one| (one.id.clone(), one.name.clone())).collect();
        let changes = new.iter().filter(|one| is_change(one));
        let mut changes: Vec<String> = changes.map(|one| shown(one, &names)).collect();
        // Those to Docker are made side by side.
        changes.sort_by_key(|one| Some(one.clone()).filter(|one| one.starts_with("Docker")));
        let changes = lines(changes.iter());
        let touched = self.touched(&before.containers, !changes.is_empty());
        done += &indented('>', &changes);
        done += &indented('*', &touched);
        if line.contains("stacklift ") {
            done += &indented('+', &self.written(&before.files));
        }
        done
    }

    /// A command that a shell runs in the stacks root.
    fn shell(&self, line: &str) -> Command {
        let inner = self.bench.asking("");
        let bin = Path::new(inner.get_program()).parent().expect("a folder");
        let mut command = Command::new("/bin/sh");
        let environment = inner.get_envs();
        command
            .args(["-c", line])
            .env_clear()
            .envs(environment.filter_map(|(name, value)| Some((name, value?))))
            .env("PATH", self.bench.path(&[bin]))
            .env("WITHOUT_COMPOSE", self.path_without_compose(bin))
            .env("TERM", "dumb")
            .envs(env::var_os(COMPOSE).map(|program| (COMPOSE, program)))
            .stdin(Stdio::null())
            .current_dir(self.bench.root());
        command
    }

    /// `PATH` of a host without a Compose program, whatever this machine has.
    fn path_without_compose(&self, bin: &Path) -> OsString {
        let none = self.bench.programs().join("none");
        fs::create_dir_all(&none).expect("a folder");
        for name in ["docker", "docker-compose"] {
            let _ = fs::remove_file(none.join(name));
            symlink("/bin/false", none.join(name)).expect("a link");
        }
        self.bench.path(&[&none, bin])
    }

    fn containers(&self) -> BTreeMap<String, Container> {
        self.bench.world(|world| {
            let all = world.containers.values();
            all.map(|one| (one.name.clone(), one.clone())).collect()
        })
    }

    /// What became of each container, in a line. If nothing was sent, those that were kept are left out.
    fn touched(&self, before: &BTreeMap<String, Container>, has_changes: bool) -> String {
        let after = self.containers();
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort();
        names.dedup();
        let of = |name: &String| match (before.get(name), after.get(name)) {
            (Some(_), None) => Some("removed".to_owned()),
            (None, Some(_)) => Some("created".to_owned()),
            (Some(old), Some(new)) if old.id != new.id => Some("recreated".to_owned()),
            (Some(old), Some(new)) if old.state != new.state => {
                Some(format!("{}, was {}", new.state, old.state))
            }
            (Some(old), Some(new)) if old.process != new.process => Some("restarted".to_owned()),
            _ => has_changes.then(|| "kept".to_owned()),
        };
        let touched = names.into_iter();
        lines(touched.filter_map(|name| Some(format!("{name} {}", of(name)?))))
    }

    /// The files of the stacks and of the user, with what they contain.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        find(self.bench.root(), &mut found);
        find(self.bench.home(), &mut found);
        let bin = self.bench.bin();
        found.retain(|path, _| !path.starts_with(&bin));
        found
    }

    /// The files that were written or removed, each in a line. Of those in the state directory, only new snapshots.
    fn written(&self, before: &BTreeMap<PathBuf, Vec<u8>>) -> String {
        let after = self.files();
        let state = self.bench.state();
        let is_new = |path: &Path, bytes: &Vec<u8>| before.get(path) != Some(bytes);
        let new = after.iter().filter(|(path, bytes)| is_new(path, bytes));
        let new = new.map(|(path, _)| ("wrote", path));
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        let all = new.chain(gone.map(|path| ("removed", path)));
        let shown = all.filter_map(|(verb, path)| match path.strip_prefix(&state) {
            Ok(own) if verb == "wrote" && is_snapshot(own) => Some("took a snapshot".to_owned()),
            Ok(_) => None,
            Err(_) => Some(self.without_paths(&format!("{verb} {}", path.display()))),
        });
        let mut shown: Vec<String> = shown.collect();
        shown.sort();
        lines(shown.iter())
    }

    /// Gives the world the files of the stacks and of the user.
    fn sync(&mut self) {
        let mut found = BTreeMap::new();
        texts(self.bench.root(), &mut found);
        texts(self.bench.home(), &mut found);
        let synced = mem::take(&mut self.synced);
        self.bench.world(|world| {
            for path in synced.keys().filter(|path| !found.contains_key(*path)) {
                world.host.remove(path);
            }
            world.host.extend(found.clone());
        });
        self.synced = found;
    }

    /// Creates the directories of stacks that only the world has: those that Docker created to mount them.
    fn create_what_docker_created(&mut self) {
        let root = self.bench.root().to_owned();
        let created: Vec<String> = self.bench.world(|world| {
            let mounts = world.containers.values().flat_map(|one| &one.mounts);
            let sources = mounts.filter_map(|mount| mount["Source"].as_str());
            sources.map(str::to_owned).collect()
        });
        for path in created.iter().map(Path::new) {
            if path.starts_with(&root) && !path.exists() {
                fs::create_dir_all(path).expect("a folder");
            }
        }
    }

    /// A fault at the paths of a container, which is named in the line.
    fn with_ids(&self, line: &str) -> String {
        self.bench.world(|world| {
            let mut all = world.containers.values();
            let named = all.find(|one| line.contains(&format!(" at {} ", one.name)));
            named.map_or_else(|| line.to_owned(), |one| line.replace(&one.name, &one.id))
        })
    }

    /// A path below the stacks root, or after `~/` below the home directory.
    fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(path) => self.bench.home().join(path),
            None => self.bench.root().join(path),
        }
    }

    /// What a transcript says, with the real paths.
    fn real(&self, text: &str) -> String {
        let text = text
            .replace(ROOT, &self.bench.root().display().to_string())
            .replace(HOME, &self.bench.home().display().to_string())
            .replace("CERTIFICATE\n", &self.bench.certificate_pem())
            .replace(BEFORE, self.old_fingerprint.as_deref().unwrap_or(BEFORE))
            .replace(NOW, &fingerprint(&self.bench));
        let ports = self.ports.iter();
        ports.fold(text, |text, (port, shown)| {
            text.replace(&format!(":{shown}"), &format!(":{port}"))
        })
    }

    /// The paths and addresses of this run are replaced by those of every transcript.
    fn without_paths(&self, text: &str) -> String {
        let ports = self.ports.iter();
        let text = ports.fold(text.to_owned(), |text, (port, shown)| {
            text.replace(&format!(":{port}"), &format!(":{shown}"))
                .replace(&format!("port {port}"), &format!("port {shown}"))
        });
        text.replace(&self.bench.root().display().to_string(), ROOT)
            .replace(&self.bench.home().display().to_string(), HOME)
            .replace(&self.bench.socket().display().to_string(), SOCKET)
            // The name of the directory, without its path.
            .replace(&name(self.bench.root()), &name(Path::new(ROOT)))
            .replace(self.old_fingerprint.as_deref().unwrap_or(BEFORE), BEFORE)
            .replace(&fingerprint(&self.bench), NOW)
    }

    /// What differs between runs is replaced by what a transcript says.
    fn masked(&self, text: &str) -> Result<String, String> {
        let mut text = self.without_paths(text);
        for (template, with) in MASKED {
            let masked = replaced(&text, template, with);
            if template.contains('@') && masked != text && self.columns.is_some() {
                return Err(format!(
                    "a date is wider on some days: add `columns none`: {text}"
                ));
            }
            text = masked;
        }
        if self.columns.is_none() {
            text = without_times(&text);
        }
        let today = chrono::Utc::now().format("%Y-%m-%d").to_string();
        Ok(text.replace(&today, "2026-01-02"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for (parent, process) in &mut self.processes {
            let ids = [parent.id().to_string(), process.to_string()];
            let _ = Command::new("kill").args(ids).status();
            let _ = parent.wait();
        }
    }
}

/// The values that a query finds in what a command printed, which must conform to its schema.
fn pick(line: &str, path: &str, out: &str) -> String {
    let json: Value = match serde_json::from_str(out) {
        Ok(json) => json,
        Err(error) => return format!("{error}: {out}"),
    };
    let schema: Value = serde_json::from_str(&schema::stored()).expect("JSON");
    let outputs = schema["properties"].as_object().expect("outputs");
    let mut words = line.split_whitespace();
    let output = words.find(|word| outputs.contains_key(*word));
    if let Some(output) = output.filter(|_| line.contains("--output json")) {
        let is_there = |key: &str| json.get(key).is_some();
        // Several stacks have a report of their own.
        let output = match output {
            "adopt" if is_there("stacks") => "adopt-all",
            "plan" if is_there("plans") => "plans",
            output => output,
        };
        schema::conforms(output, &json);
    }
    query(path, &json)
}

/// Who gets a request.
fn peer(request: &Request) -> &'static str {
    match request.peer {
        Peer::Portainer => "Portainer",
        Peer::Engine => "Docker",
    }
}

/// A request in a line.
fn shown(request: &Request, names: &BTreeMap<String, String>) -> String {
    let mut path = request.path.replace("/v1.41/", "/");
    for (id, name) in names {
        path = path.replace(id.as_str(), name);
    }
    // A container that the command created and removed again has no name.
    if let Some(id) = path.split('/').find(|part| is_id(part)) {
        path = path.replace(&id[..64], "<id>");
    }
    format!("{}: {} {path}", peer(request), request.method)
}

/// The last part of a path.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Whether a part of a path begins with the ID of a container.
fn is_id(part: &str) -> bool {
    part.len() >= 64 && part.bytes().take(64).all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a request can change something.
fn is_change(request: &Request) -> bool {
    !matches!(request.method.as_str(), "GET" | "HEAD") && request.call != Call::Preview
}

/// The outer and the inner end of a terminal of this width, or of a pipe.
fn ends(columns: Option<u16>) -> (fs::File, fs::File) {
    if let Some(columns) = columns {
        return terminal(columns, 24);
    }
    let (outer, inner) = io::pipe().expect("a pipe");
    let file = |end: OwnedFd| fs::File::from(end);
    (file(outer.into()), file(inner.into()))
}

/// The signal of this name.
fn signal(name: &str) -> Result<Signal, String> {
    match name {
        "KILL" => Ok(Signal::KILL),
        "INT" => Ok(Signal::INT),
        "TERM" => Ok(Signal::TERM),
        _ => Err(format!("no signal: {name}")),
    }
}

/// Types each answer after a question.
fn answer(running: &mut Running, answers: Vec<Answer>, bench: &Bench) {
    for answer in answers {
        let start = running.seen.len();
        if !read_until(running, |seen| is_question(&seen[start..])) {
            return;
        }
        for step in answer.before {
            step.apply_to(bench);
        }
        let typed = match &*answer.typed {
            // It is not the terminal of a session, which would send the signal.
            "^C" => {
                kill_process(Pid::from_child(&running.child), Signal::INT).expect("sent");
                continue;
            }
            "^D" => "\u{4}".to_owned(),
            typed => format!("{typed}\n"),
        };
        running.err.write_all(typed.as_bytes()).expect("typed");
    }
}

/// Reads the terminal until what it shows fits. Returns whether that came before the end.
fn read_until(running: &mut Running, fits: impl Fn(&str) -> bool) -> bool {
    while !fits(&running.seen) {
        let mut bytes = [0; 1024];
        match running.err.read(&mut bytes) {
            Ok(count) if count > 0 => {
                let read = String::from_utf8_lossy(&bytes[..count]);
                running.seen.push_str(&read);
            }
            _ => return false,
        }
    }
    true
}

/// What is left on a terminal. Where the spinner was, `␛[2K` comes first.
fn settled(screen: &str, columns: Option<u16>) -> String {
    let line = |line: &str| {
        let Some((drawn, left)) = line.rsplit_once(ERASE) else {
            return line.to_owned();
        };
        // With `^C` at its end, a wider one would continue on the next line.
        let fits = |text: &str| columns.is_none_or(|all| text.chars().count() + 2 < all.into());
        let is_narrow = drawn.split(ERASE).all(fits);
        assert!(is_narrow, "too wide to be erased: {line:?}");
        ["\x1b[2K", left].concat()
    };
    let lines: Vec<String> = screen.split('\n').map(line).collect();
    lines.join("\n")
}

/// Whether a question is shown: one of yes or no, or one whose default or explanation is in brackets.
fn is_question(shown: &str) -> bool {
    shown.contains("[y/N] ") || ["]: ", "): "].iter().any(|end| shown.ends_with(end))
}

/// The fingerprint of Portainer's certificate, as `openssl x509 -fingerprint -sha256` prints it.
fn fingerprint(bench: &Bench) -> String {
    let pem = bench.certificate_pem();
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    let bytes = digest(&SHA256, &der);
    let pairs = bytes.as_ref().iter().map(|byte| format!("{byte:02X}"));
    pairs.collect::<Vec<_>>().join(":")
}

/// Replaces each part of a text that fits a template.
fn replaced(text: &str, template: &str, with: &str) -> String {
    let fits = |part: &str| {
        part.bytes()
            .zip(template.bytes())
            .all(|(is, wanted)| match wanted {
                b'#' => is.is_ascii_digit(),
                b'@' => is.is_ascii_alphabetic(),
                b'&' => is.is_ascii_alphanumeric(),
                wanted => is == wanted,
            })
    };
    let mut result = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(part) = rest.get(..template.len()).filter(|part| fits(part)) {
            result.push_str(with);
            rest = &rest[part.len()..];
        } else {
            result.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    result
}

/// `less than 0.1 s` and `0.4 s` → `N s`
fn without_times(text: &str) -> String {
    let text = text.replace("less than 0.1 s", "N s");
    let masked = replaced(&text, " #.# s", " N s");
    replaced(&masked, " ##.# s", " N s")
}

/// Whether a file of the state directory is a snapshot, which is named after its time.
fn is_snapshot(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_digit()) && name.ends_with(".json")
    })
}

/// Finds the files below a folder, with what they contain.
fn find(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
        if kind.is_dir() {
            find(&path, found);
        } else if kind.is_file() {
            let mut bytes = Vec::new();
            if let Ok(file) = fs::File::open(&path) {
                let _ = file.take(1 << 20).read_to_end(&mut bytes);
            }
            found.insert(path, bytes);
        }
    }
}

/// Finds the directories and the texts below a folder. Links are followed.
fn texts(folder: &Path, found: &mut BTreeMap<String, Option<String>>) {
    found.insert(folder.display().to_string(), None);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(metadata) = fs::metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            texts(&path, found);
        } else if metadata.is_file() && metadata.len() < 1 << 20 {
            let text = fs::read_to_string(&path).unwrap_or_default();
            found.insert(path.display().to_string(), Some(text));
        }
    }
}
