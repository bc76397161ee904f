//! Reads everything that a plan needs. Writes nothing: both clients can only read.
//!
//! Only Portainer's list of stacks must be readable. Everything else that cannot be read is unknown: a warning says why,
//! and the plan says what that means.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    mem::take,
    net::{TcpListener, UdpSocket},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Mutex,
};

use anyhow::Result;
use composefile::document::Document;

use crate::{
    compose::{self, Answer, Input, Profiles, Program, Project, Values},
    disk,
    engine::{DEFAULT_TOOL, EngineReader, NoSharedVersion},
    failure::Failure,
    finding::Finding,
    model::{
        Container, PORTAINER_FOLDERS, Record, Rights, Variable, WantedAccess, compose_label,
        successor,
    },
    parallel::{lock, side_by_side},
    plan::{
        self, Before, Environment, Facts, Form, Keep, Namesake, Parsed, PathKind, Projects,
        RecordFacts, Sent, Unread,
    },
    portainer::{BaseUrl, PortainerReader, Repository},
    rewrite::{
        env::{secret_values, secrets, stack_env},
        faithful::{self, Runs, written_services},
    },
    run::{RestoreCommand, Seen, Subject},
    snapshot::{Place, Snapshot, Unfinished},
    stack::{Files, Shell, Stack, StackText},
    text::Mask,
};

mod combined;
mod details;
mod environment;
mod foreign;
mod overview;
mod uses;

pub use combined::{Combined, Uncombined, combined, files_on_disk};
pub use environment::{Environments, Evidence, compare, environment};
pub use foreign::{NOT_RECREATED, foreign_of, foreign_since, list, warnings_of};
pub use overview::Overview;

use details::details;
use overview::known;

/// The run on the stack with these containers that was interrupted or is in progress.
pub fn interrupted<'c>(
    place: &Place,
    engine: &EngineReader,
    containers: impl IntoIterator<Item = &'c Container>,
    tool: &str,
) -> Option<Unfinished> {
    let ids = containers.into_iter().map(Container::id);
    let now = || engine.inspect_containers(ids).ok();
    place.interrupted(engine.id().ok().as_deref(), now, tool)
}

/// A stack, and where Portainer would create it.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// `None` if Portainer is not asked: nothing is then known of its stacks, its version and its environment.
    pub portainer: Option<&'a PortainerReader>,
    pub engine: &'a EngineReader,
    pub stack: &'a Stack,
    /// Portainer's address (B04).
    pub base_url: &'a BaseUrl,
    /// The environment to create the stack on.
    pub endpoint: i64,
    /// The container tool: its name is part of the labels.
    pub tool: &'a str,
    /// The Compose program of this host.
    pub compose: &'a compose::Installation,
    /// The state directory: it tells what was last sent (B22).
    pub state: Option<&'a Path>,
    /// Who may use the stack afterwards, if `--access` says so (B23).
    pub access: Option<&'a WantedAccess>,
    /// The repository to deploy the stack from, if `--git` names one (M24).
    pub git: Option<&'a Repository>,
    /// The flags of the commands that are printed.
    pub typed: &'a RestoreCommand,
}

/// How much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The details only if there is something to destroy.
    IfNeeded,
    Everything,
}

impl Before {
    fn evidence(&self) -> Evidence<'_> {
        Evidence {
            own: self.host.listed(),
            others: self.host.others.as_deref().unwrap_or_default(),
        }
    }

    /// What a snapshot is taken of, before `command` changes it.
    pub fn subject<'a>(
        &'a self,
        command: &'static str,
        source: &'a StackText,
        situation: &Situation<'a>,
    ) -> Subject<'a> {
        Subject {
            command,
            flags: situation.git.map_or(&[], |git| &git.flags),
            stack: situation.stack,
            source,
            endpoint: situation.endpoint,
            tool: situation.tool,
            record: self.remote.record.as_ref(),
            may_be_unseen: self.remote.may_be_unseen(),
            containers: self.host.listed.as_deref(),
        }
    }

    /// What a snapshot that follows at once need not read again.
    pub fn take_seen(&mut self) -> Seen {
        Seen {
            record: self.remote.contents.take(),
            containers: self.host.containers.take(),
            changes: take(&mut self.host.changes),
        }
    }
}

impl Situation<'_> {
    /// The Portainer stacks with the stack's name, or with the name that Portainer gives it (C50, C59).
    pub fn records(&self) -> Result<Vec<Record>> {
        let name = self.stack.name();
        let (name, normalized) = (name.as_str(), name.portainer_name());
        let Some(portainer) = self.portainer else {
            return Ok(Vec::new());
        };
        let records = || portainer.records(self.endpoint, name, &normalized);
        // It takes the engine some milliseconds.
        let ((), records) = side_by_side(|| self.engine.read_ahead(), records);
        records
    }

    /// The Portainer stack to replace (C50), the containers of the stack (C52), and everything that a plan needs besides what the
    /// text names. `records` are the Portainer stacks with the stack's name.
    pub fn observe(&self, records: Vec<Record>, depth: Depth) -> Before {
        let name = self.stack.name();
        let project = name.portainer_name();
        let mut before = Before {
            project: project.clone(),
            ..Before::default()
        };
        before.host.own = self.list(name.as_str(), &mut before);
        before.host.listed.clone_from(&before.host.own);
        if project != name.as_str()
            && let Some(own) = before.host.listed.take()
        {
            // A migration does not remove them, but the create may replace them, and a failed create removes them (M05,
            // M06).
            let more = self.list(&project, &mut before);
            before.host.listed = more.map(|more| [own, more].concat());
        }
        before.remote.uses = self.labeled(before.host.listed());
        let others = before.host.listed.as_ref().map(|all| self.others(all));
        before.host.others = others.and_then(|read| known(read, &mut before.warnings));
        self.record(records, &mut before);
        if let Some(place) = self.place() {
            let answers = before.host.listed.is_some();
            let engine = answers.then(|| self.engine.id().ok()).flatten();
            let store = place.open(engine.as_deref());
            before.last_sent = store.last_sent();
            before.failed = store.failure();
            if store.is_not_deployed() {
                let saved = known(store.default_of_restore(), &mut before.warnings).flatten();
                before.deployed = saved.and_then(|saved| saved.snapshot.record.known().cloned()?);
            }
            if depth == Depth::Everything {
                let volumes = known(store.last_volumes(), &mut before.warnings);
                before.last_volumes = volumes.unwrap_or_default();
            }
        }
        if depth == Depth::Everything || before.destroys() {
            // An engine that does not answer is asked once more, and then nothing else.
            let answers = before.host.listed.is_some()
                || before.host.unlistable.is_some()
                || self.engine.id().is_ok();
            let asked = answers.then_some(self.engine);
            self.read_details(&mut before, asked);
            before.host.portainer_env = self.portainer_env(before.host.others.as_deref());
        }
        if depth == Depth::Everything {
            self.read_version(&mut before);
        }
        before
    }

    /// Reads Portainer's version.
    pub fn read_version(&self, before: &mut Before) {
        let version = self.portainer.map_or(Ok(None), PortainerReader::version);
        let doubt = self.portainer.and_then(PortainerReader::doubt);
        before.warnings.extend(doubt.map(Finding::as_told));
        before.remote.version = known(version, &mut before.warnings).flatten();
    }

    /// The variables of Portainer's container, if it is one of `others`.
    fn portainer_env(&self, others: Option<&[Container]>) -> Option<BTreeMap<String, String>> {
        let port = self.base_url.is_this_host().then(|| self.base_url.port())?;
        let portainer = plan::portainer(others?, port);
        // Otherwise, it may be a proxy in front of it.
        let portainer = portainer.filter(|one| one.runs_portainer(None).is_some())?;
        let read = self.engine.inspect_containers([portainer.id()]).ok()?;
        let set = read.first()?.env();
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(set.collect())
    }

    fn place(&self) -> Option<Place> {
        Some(Place::new(self.state?, self.stack.name().as_str()))
    }

    /// The run on the stack that was interrupted or is in progress, if its containers are known.
    pub fn interrupted(&self, before: &Before) -> Option<Unfinished> {
        let (place, now) = (self.place()?, before.host.listed.as_ref()?);
        interrupted(&place, self.engine, now, self.tool)
    }

    /// Whether Portainer has what an adoption sent that failed.
    pub fn is_not_deployed(&self) -> bool {
        let engine = self.engine.id().ok();
        let place = self.place();
        place.is_some_and(|place| place.open(engine.as_deref()).is_not_deployed())
    }

    /// The ID of the newest whole snapshot that is such a one and in which a container ran.
    fn last_that_ran(&self, is: impl Fn(&Snapshot) -> bool) -> Option<String> {
        let engine = self.engine.id().ok();
        let saved = self.place()?.open(engine.as_deref()).last_that_ran(is);
        Some(saved.ok()??.id)
    }

    /// Whether a whole snapshot has a container that ran.
    pub fn has_run(&self) -> bool {
        self.last_that_ran(|_| true).is_some()
    }

    /// The ID of the last whole snapshot in which a container ran and Portainer did not have the stack.
    pub fn before_portainer(&self) -> Option<String> {
        self.last_that_ran(|snapshot| {
            !snapshot.may_be_unseen && snapshot.record.known().is_some_and(Option::is_none)
        })
    }

    /// The requests in the journal (B11), read without a lock. Without a state directory, no run can have sent one.
    pub fn unanswered(&self) -> Result<Vec<String>> {
        let Some(place) = self.place().filter(Place::has_unanswered) else {
            return Ok(Vec::new());
        };
        let store = place.open(self.engine.id().ok().as_deref());
        let requests = store.unanswered()?.into_iter();
        Ok(requests
            .map(|request| request.request.to_string())
            .collect())
    }

    /// The first record of this name and environment, and the others of this name.
    fn record(&self, records: Vec<Record>, before: &mut Before) {
        let name = self.stack.name();
        let (here, elsewhere): (Vec<_>, Vec<_>) = records
            .into_iter()
            .filter(|record| record.name == name.as_str())
            .partition(|record| record.endpoint_id == self.endpoint);
        let mut here = here.into_iter();
        before.remote.record = here.next();
        let here = here.map(|record| Namesake {
            record,
            is_on_this_host: Some(true),
        });
        let elsewhere = elsewhere.into_iter().map(|record| Namesake {
            is_on_this_host: self.is_on_this_host(record.endpoint_id, before.evidence()),
            record,
        });
        before.remote.namesakes = here.chain(elsewhere).collect();
        before.remote.successor = self.successor(before);
    }

    /// See [`Before::successor`]. Portainer is asked only if it started a container.
    fn successor(&self, before: &Before) -> Option<String> {
        let dirs = before
            .host
            .listed()
            .iter()
            .filter_map(|container| container.compose_label(self.tool, "project.working_dir"));
        let dirs: Vec<&str> = dirs
            .filter(|dir| dir.starts_with(PORTAINER_FOLDERS))
            .collect();
        if before.remote.record.is_some() || dirs.is_empty() {
            return None;
        }
        let records = self.portainer?.all_records(self.endpoint).ok()?;
        let records = || {
            records
                .iter()
                .filter_map(|record| record.record.as_ref().ok())
        };
        let name = self.stack.name().portainer_name();
        let found = dirs.iter().find_map(|dir| successor(records(), &name, dir));
        found.map(str::to_owned)
    }

    /// Whether an environment is this host; `None` if that is unknown.
    fn is_on_this_host(&self, endpoint: i64, evidence: Evidence) -> Option<bool> {
        match compare(self.portainer?, Some(self.engine), endpoint, evidence) {
            Environment::SameEngine | Environment::OtherSocket(_) => Some(true),
            Environment::OtherEngine { .. }
            | Environment::Clone { .. }
            | Environment::NotFound { .. } => Some(false),
            Environment::Forbidden(_) | Environment::Hidden(_) | Environment::Unknown(_) => None,
        }
    }

    /// A failure is tolerated by a migration (C52). It is not if no API version is shared.
    fn list(&self, project: &str, before: &mut Before) -> Option<Vec<Container>> {
        let warnings = &mut before.warnings;
        match self.engine.list(project) {
            Ok(containers) => {
                if containers.is_empty() && self.tool != DEFAULT_TOOL {
                    warnings.push(Finding::as_told(format!(
                        "no container has the label {label}={project}, which --tool {tool} looks for; containers with the label com.{DEFAULT_TOOL}.compose.project are found without --tool",
                        label = compose_label(self.tool, "project"),
                        tool = self.tool,
                    )));
                }
                Some(containers)
            }
            Err(error) => {
                let blocker = Some(Finding::of_error(&error));
                if NoSharedVersion::caused(&error) {
                    before.host.unlistable = blocker;
                } else {
                    before.host.unread = blocker;
                }
                None
            }
        }
    }

    /// The containers of the engine that are not among `own`.
    fn others(&self, own: &[Container]) -> Result<Vec<Container>> {
        let is_own = |other: &Container| own.iter().any(|own| other.id().starts_with(own.id()));
        let mut others = self.engine.list_all()?;
        others.retain(|other| !is_own(other));
        Ok(others)
    }

    /// Everything that was read, and what a plan looks up on this host: the kinds of paths, and the ports in use.
    pub fn facts<'f>(
        &'f self,
        source: &'f Parsed<'f>,
        (sent, document): (Sent<'f>, Option<&'f Document<'f>>),
        projects: &'f Projects,
        before: &'f Before,
    ) -> Facts<'f> {
        let (stack, base_url) = (self.stack, self.base_url);
        let contents = before.remote.contents.as_ref();
        let contents = contents.map(|(now, _)| Sent::new(&now.text, &now.env));
        let record = before.remote.record.as_ref();
        Facts {
            name: stack.name().as_str(),
            project: &before.project,
            dir: stack.dir_text(),
            tool: self.tool,
            endpoint: self.endpoint,
            portainer_port: base_url.is_this_host().then(|| base_url.port()),
            source,
            sent,
            document,
            projects,
            host: &before.host,
            remote: &before.remote,
            portainer: before.portainer_compose(self.tool),
            before,
            record: record
                .map(|record| RecordFacts::new(record, contents, &before.last_sent, sent)),
            lookup: &path_kind,
            has_data: !self.compose.is_rehearsed,
            is_same_file: &is_same_file,
            unbindable: &unbindable,
            form: Form::Literal,
            file: stack.file(),
            files: &[],
            env_files: const { &BTreeMap::new() },
            named: None,
            keep: Keep::default(),
            problems: &[],
            runs: Runs::NONE,
            redeploys: false,
        }
    }

    /// Reads the images with these references, unless they were read.
    pub fn read_images(&self, before: &mut Before, mut named: BTreeSet<String>) {
        // The refusal says that the engine cannot be read.
        if before.host.listed.is_none() {
            return;
        }
        named.retain(|name| !before.host.images.contains_key(name));
        let mut failures = Vec::new();
        let images = details::images(self.engine, named, &mut failures);
        before.host.images.extend(images);
        before.warnings.extend(failures.iter().map(warning));
    }

    /// Reads from Portainer and from the engine, if it answers, side by side.
    fn read_details(&self, before: &mut Before, engine: Option<&EngineReader>) {
        let (portainer, endpoint) = (self.portainer, self.endpoint);
        let all = before.host.listed();
        let record = before.remote.record.as_ref();
        let (labeled, evidence) = (before.remote.uses.clone(), before.evidence());
        let read_details = || match engine {
            Some(engine) => details((engine, self.tool), all),
            None => Default::default(),
        };
        let ask_portainer = || {
            let (mut uses, mut warnings) = (labeled, Vec::new());
            let Some(portainer) = portainer else {
                let environment = Environment::Unknown(NOT_ASKED.to_owned());
                let rights = Rights::default();
                return (None, environment, rights, (uses, warnings));
            };
            let contents = record.map(|record| portainer.read(&record.id));
            let environment = environment(portainer, engine, endpoint, evidence);
            let rights = portainer.rights(endpoint);
            if environment == Environment::SameEngine {
                let standing = contents.as_ref().and_then(|read| read.as_ref().ok());
                let standing = standing.map(|(_, standing)| standing);
                self.uses(&mut uses, all, standing, &mut warnings);
            }
            (contents, environment, rights, (uses, warnings))
        };
        let ((details, failures), (contents, environment, rights, (uses, unread))) =
            side_by_side(read_details, ask_portainer);
        let has_containers = !all.is_empty();
        // The refusal says it once.
        let failures = failures
            .iter()
            .filter(|error| !NoSharedVersion::caused(error));
        before.warnings.extend(failures.map(warning));
        // The refusal says what the user may not do.
        let is_refused =
            rights == Rights::NoStacks || matches!(environment, Environment::Forbidden(_));
        match contents.transpose() {
            Ok(contents) => before.remote.contents = contents,
            Err(_) if is_refused => {}
            Err(error) => before.warnings.push(warning(&error)),
        }
        before.warnings.extend(unread);
        before.remote.uses = uses;
        before.remote.environment = environment;
        let about = engine.and_then(|engine| engine.about().ok());
        let host = &mut before.host;
        if let Some(about) = about {
            host.engine_version.clone_from(&about.version);
            host.runtimes.clone_from(&about.runtimes);
        }
        // They are unknown, and not none.
        host.containers = details.containers.filter(|_| host.listed.is_some());
        (host.at, host.changes, host.images) = (details.at, details.changes, details.images);
        (host.networks, host.volumes) = (details.networks, details.volumes);
        before.remote.rights = rights;
        let is_warned_of = has_containers && !is_refused;
        if before.remote.may_be_unseen() && is_warned_of && portainer.is_some() {
            before.warnings.push(Finding::as_told(format!(
                "{}; if Portainer already has a stack {}, the deployment will fail ({})",
                before.remote.rights,
                self.stack.name(),
                before.remote.rights.remedy()
            )));
        }
    }
}

/// The files that Compose reads for a stack: those from which its containers were started, or those that it finds.
pub fn files(stack: &Stack, found: impl FnOnce() -> Vec<String>) -> Files {
    let found = || Files {
        compose: found(),
        env: Vec::new(),
    };
    stack.started().cloned().unwrap_or_else(found)
}

/// What Compose finds by itself: the name of the project, if the files can be parsed, and the Compose files.
pub fn found(stack: &Stack, source: &StackText) -> (Option<String>, Vec<String>) {
    let shell = Shell::of(stack, None, |_| Vec::new());
    let (text, env) = (&source.compose, source.env.as_deref());
    match faithful::found(text, env, &shell.context()) {
        Some((project, files)) => (Some(project), files),
        None => (None, vec![stack.file().to_owned()]),
    }
}

/// What a Compose program reads in the files of a stack on disk, under the name that it gives the project. Every file that it
/// opens is read before, or refused (B25, B44).
pub fn read_on_disk(program: &dyn Program, stack: &Stack, files: &Files) -> Result<Project> {
    let read = stack.read_files(files)?;
    let values = combined::values(&read.variables?, read.env_files.values());
    let mask = Mask::new(values.iter().map(String::as_str));
    let input = files_on_disk(stack, files, None);
    let read = program.read(&input, Profiles::Active, Values::Resolved, &mask)?;
    Ok(Project::new(&read, &BTreeMap::new(), None))
}

/// What a Compose program reads in a text for Portainer. `containers` are the IDs of containers by service, as
/// [`Project::new`] takes them.
pub fn read_sent(
    program: &dyn Program,
    (stack, project): (&Stack, &str),
    sent: Sent,
    containers: &BTreeMap<String, String>,
    mask: &Mask,
) -> Result<Project, Unread> {
    let env = stack_env(sent.env);
    let input = Input::Sent {
        dir: Some(stack.dir()),
        project,
        text: sent.text,
        env: &env,
    };
    match program.ask(&input, Profiles::Active, Values::Resolved, mask) {
        Ok(Answer::Read(read)) => {
            let written = written_services(sent.text, sent.env);
            Ok(Project::new(&read, containers, Some(&written)))
        }
        Ok(Answer::Rejected(rejection)) => Err(Unread::Rejected(rejection)),
        Err(error) => Err(Unread::Unknown(format!("{error:#}"))),
    }
}

const NOT_ASKED: &str = "Portainer was not asked";

/// The message of an error with its hint, as a warning.
pub fn with_hint(error: &anyhow::Error) -> String {
    match Failure::hint_of(error) {
        Some(hint) => format!("{error:#} ({hint})"),
        None => format!("{error:#}"),
    }
}

/// What could not be read, as a warning.
fn warning(error: &anyhow::Error) -> Finding {
    Finding::as_told(with_hint(error))
}

/// Why a port of this host cannot be bound, if it cannot.
fn unbindable(address: &str, port: u16, protocol: &str) -> Option<io::ErrorKind> {
    // Plans that are made side by side would find each other's sockets.
    static BINDING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = lock(&BINDING);
    let bound = match protocol {
        "tcp" => TcpListener::bind((address, port)).map(drop),
        "udp" => UdpSocket::bind((address, port)).map(drop),
        _ => return None,
    };
    bound.err().map(|error| error.kind())
}

/// Whether two paths of this host are the same file, following symbolic links. `None` if one may not be looked at.
fn is_same_file(one: &str, other: &str) -> Option<bool> {
    let identity = |path: &str| match disk::metadata(Path::new(path)) {
        Ok(metadata) => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(error) if disk::is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    };
    let one = identity(one).ok()?;
    Some(one == identity(other).ok()? && one.is_some())
}

/// What is at a path of this host, following symbolic links.
fn path_kind(path: &str) -> PathKind {
    match disk::metadata(Path::new(path)) {
        Ok(metadata) if metadata.is_dir() => PathKind::Directory,
        Ok(_) => PathKind::File,
        Err(error) if disk::is_absent(&error) => PathKind::Missing,
        Err(_) => PathKind::Unknown,
    }
}

/// Hides what must not be shown of `.env`, and the values that are sent (B13).
pub fn mask(source: &StackText, sent: &[Variable]) -> Mask {
    let secrets = secrets(source.env.as_deref().unwrap_or_default());
    Mask::new(secret_values(sent).chain(secrets.iter().map(String::as_str)))
}
