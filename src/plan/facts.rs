//! Everything that is read before a migration, as the input of its plan. Nothing here reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
};

use composefile::{
    document::{Document, Node},
    dotenv,
    path::clean,
};

use crate::{
    compose::{Project, Service, dialect::Fields},
    finding::Finding,
    model::{Container, Record, Rights, Variable, is_folder_of},
    plan::{
        Before, Environment, Host, InPortainer, Keep, PortainerCompose, Projects, before::Remote,
    },
    rewrite::{
        env::stack_env,
        faithful::{FROM_CONTAINERS, FROM_PORTAINER_DATA, MARK, Runs},
    },
    snapshot::LastSent,
};

/// How the text that is sent is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// By the literal rewrite of the contract, for a migration.
    Literal,
    /// By edits of the Compose file.
    Edited,
    /// By Compose: its lines are not those of the Compose file.
    Resolved,
}

/// What is known of the stack and its surroundings before the first destructive act.
pub struct Facts<'a> {
    /// The stack's name as given.
    pub name: &'a str,
    /// The project's name in Portainer, which may be another (M02, B10).
    pub project: &'a str,
    /// The stack's directory, absolute.
    pub dir: &'a str,
    /// The container tool: its name is part of the labels.
    pub tool: &'a str,
    /// The environment to create the stack on.
    pub endpoint: i64,
    /// Portainer's port, if Portainer is on this host (B04).
    pub portainer_port: Option<u16>,
    /// The Compose file's name.
    pub file: &'a str,
    /// The Compose files that Compose reads on this host, absolute or relative to the directory.
    pub files: &'a [String],
    /// The env files of each service, without `.env`.
    pub env_files: &'a BTreeMap<String, Vec<String>>,
    /// The Compose file on disk.
    pub source: &'a Parsed<'a>,
    /// What is sent: the literal or the faithful rewrite.
    pub sent: Sent<'a>,
    /// The text that is sent, as YAML.
    pub document: Option<&'a Document<'a>>,
    /// What Compose reads.
    pub projects: &'a Projects,
    /// What the engine has.
    pub host: &'a Host,
    /// What Portainer has.
    pub remote: &'a Remote,
    /// Portainer's Compose, if it is known.
    pub portainer: Option<PortainerCompose>,
    /// What earlier runs left.
    pub before: &'a Before,
    /// The Portainer stack that will be deleted.
    pub record: Option<RecordFacts<'a>>,
    /// What a path of this host is. Symbolic links are followed.
    pub lookup: &'a dyn Fn(&str) -> PathKind,
    /// Whether what the containers mount is on this host, as far as paths of this host are mounted. A rehearsal copies no
    /// data.
    pub has_data: bool,
    /// Whether two paths of this host are the same file or directory; `None` if that could not be looked at.
    pub is_same_file: &'a dyn Fn(&str, &str) -> Option<bool>,
    /// Why a port of this host cannot be bound, if it cannot: address, port and protocol.
    pub unbindable: &'a dyn Fn(&str, u16, &str) -> Option<ErrorKind>,
    pub form: Form,
    /// The name that Compose gives the project of the files on disk, if they could be parsed. This and the following matter only for an
    /// adoption.
    pub named: Option<&'a str>,
    /// What to do with what runs and is not in the text.
    pub keep: Keep,
    /// The problems of the rewrite. If there are any, nothing is sent.
    pub problems: &'a [Finding],
    /// What the rewrite writes into the text because it runs.
    pub runs: &'a Runs,
    /// Whether Portainer is to deploy its Git stack again.
    pub redeploys: bool,
}

impl<'a> Facts<'a> {
    /// Whether Portainer stops the containers that it recreates, as an adoption wants; a migration kills all of them first (C52).
    pub fn is_adoption(&self) -> bool {
        self.form != Form::Literal
    }

    /// What Compose prints for a service, if a container certainly has that configuration: of the files on disk, or of what is
    /// sent.
    pub fn hashed(&self, container: &Container, service: &str) -> Option<&'a Fields> {
        let hash = self.label(container, "config-hash")?;
        let mut all = self.projects.on_disk.iter().chain(&self.projects.sent);
        let found = all.find(|project| project.is_of(service, hash))?;
        found.fields(service)
    }

    /// The value of Compose's label of this name.
    pub fn label<'c>(&self, container: &'c Container, name: &str) -> Option<&'c str> {
        container.compose_label(self.tool, name)
    }

    /// Whether Portainer adopts a container of the stack (M05), because its project has the name that Portainer gives the
    /// stack (B10). C52 removes the containers of the project that has the stack's own name, and no others.
    pub fn is_adopted(&self, container: &Container) -> bool {
        let project = container.compose_label(self.tool, "project");
        self.name != self.project && project == Some(self.project)
    }

    /// Whether Portainer replaces a container, if its configuration differs (M05); otherwise, this run removes it.
    pub fn is_replaced_by_portainer(&self, container: &Container) -> bool {
        self.is_adoption() || self.is_adopted(container)
    }

    /// The containers of a service, as far as they could be inspected, without those of `compose run`.
    pub fn of_service(&self, service: &str) -> impl Iterator<Item = &'a Container> {
        let all = self.host.inspected();
        let all = all.filter(|container| !container.is_one_off(self.tool));
        all.filter(move |container| container.compose_label(self.tool, "service") == Some(service))
    }

    /// Whether the text that is sent defines a service, active or not.
    pub fn defines(&self, service: &str) -> bool {
        let sent = self.projects.sent.as_ref();
        sent.is_ok_and(|project| project.service(service).is_some())
            || self.document.is_some_and(|text| {
                text.get("services")
                    .and_then(|all| all.get(service))
                    .is_some()
            })
    }

    /// Whether the text of a migration changes this part of a service: the losses of the text say so, and not those of its
    /// containers.
    pub fn is_changed_by_text<T: PartialEq>(
        &self,
        service: &str,
        part: impl Fn(&'a Service) -> T,
    ) -> bool {
        let of = |project: &'a Project| project.service(service).map(&part);
        let (on_disk, sent) = (&self.projects.on_disk, &self.projects.sent);
        let (on_disk, sent) = (on_disk.as_ref().ok(), sent.as_ref().ok());
        let both = on_disk.and_then(of).zip(sent.and_then(of));
        !self.is_adoption() && both.is_some_and(|(before, after)| before != after)
    }

    /// Whether what differs is what the user wants: the files on disk have changed since they started the container, which
    /// Portainer does not have yet.
    pub fn is_edited_on_disk(&self, container: &Container, service: &Service) -> bool {
        let is_first = self.is_adoption() && (self.record.is_none() || self.before.has_failed());
        is_first
            && self
                .projects
                .differs_from_disk(container, service, self.tool)
    }

    /// Whether the API key may not read or change any stack of the environment. The refusal says so (B24).
    pub fn is_forbidden(&self) -> bool {
        self.remote.rights == Rights::NoStacks
            || matches!(self.remote.environment, Environment::Forbidden(_))
    }

    /// Whether the stack runs on this host, and this host does not have what a container would mount from this path.
    pub fn lacks(&self, path: &str) -> bool {
        let is_here = self.remote.environment == Environment::SameEngine && self.has_data;
        is_here && (self.lookup)(path) == PathKind::Missing
    }

    /// Whether two paths are one file or directory: by their text, or because a symbolic link leads there (B28).
    pub fn is_same(&self, one: &str, other: &str) -> bool {
        clean(one) == clean(other) || (self.is_same_file)(one, other) == Some(true)
    }

    /// Those of [`Self::others`] that were started from the stack's directory, by project.
    pub fn others_from_here(&self) -> BTreeMap<&'a str, Vec<&'a Container>> {
        let mut projects: BTreeMap<&str, Vec<&Container>> = BTreeMap::new();
        for container in self.host.others() {
            let label = |name: &str| container.compose_label(self.tool, name);
            let dir = label("project.working_dir");
            let is_here = dir.is_some_and(|dir| self.is_same(dir, self.dir));
            if let Some(project) = label("project").filter(|_| is_here) {
                projects.entry(project).or_default().push(container);
            }
        }
        projects
    }

    /// What an export wrote into the Compose file.
    fn mark(&self) -> Option<&str> {
        self.source
            .document
            .as_ref()?
            .get(MARK)
            .and_then(Node::as_str)
    }

    /// Whether the Compose file has what all files of the containers had: an export wrote it from them, or Portainer has the
    /// same.
    pub fn has_all_files(&self) -> bool {
        let is_same = |one: &RecordFacts| one.in_portainer == InPortainer::UpToDate;
        self.mark() == Some(FROM_CONTAINERS) || self.record.as_ref().is_some_and(is_same)
    }

    /// Whether the Compose file was written because that of the container is lost: from the containers, or from the data of a
    /// Portainer that is gone.
    pub fn replaces_lost_files(&self, container: &Container) -> bool {
        let label = |name| container.compose_label(self.tool, name).unwrap_or_default();
        let dir = label("project.working_dir");
        let files = label("project.config_files");
        let is_missing = |file| (self.lookup)(&absolute(dir, file)) == PathKind::Missing;
        match self.mark() {
            Some(FROM_CONTAINERS) => !files.is_empty() && files.split(',').all(is_missing),
            // Once it was adopted, it is no longer what Portainer's data had.
            Some(FROM_PORTAINER_DATA) => {
                self.before.has_failed() || !self.before.last_sent.has_text(self.sent.text)
            }
            _ => false,
        }
    }

    /// A path as `./…` if it is below the stack's directory, which a rehearsal has copied.
    pub fn below_dir(&self, path: &str) -> String {
        let below = path.strip_prefix(self.dir);
        let below = below.filter(|below| below.starts_with('/'));
        below.map_or_else(|| path.to_owned(), |below| format!(".{below}"))
    }

    /// Whether a directory is Portainer's directory of the Portainer stack.
    pub fn is_portainers(&self, dir: &str) -> bool {
        self.record
            .is_some_and(|facts| is_folder_of(&facts.record.id, dir))
    }
}

/// A path of a label as an absolute path. Old versions of Compose wrote relative ones.
pub(super) fn absolute(dir: &str, file: &str) -> String {
    if file.starts_with('/') {
        clean(file)
    } else {
        clean(&format!("{dir}/{file}"))
    }
}

/// A Compose file, and the same as YAML.
pub struct Parsed<'a> {
    pub text: &'a str,
    /// `None` if it cannot be parsed.
    pub document: Option<Document<'a>>,
}

impl<'a> Parsed<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            document: Document::parse(text).ok(),
        }
    }
}

/// What a create or an update sends, or what Portainer has.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    /// The text after the literal rewrite.
    pub text: &'a str,
    /// The variables (C40–C43).
    pub env: &'a [Variable],
}

impl<'a> Sent<'a> {
    pub fn new(text: &'a str, env: &'a [Variable]) -> Self {
        Self { text, env }
    }

    /// The variables as Compose reads them in `stack.env` (M07); none if it cannot parse them.
    pub fn variables(self) -> BTreeMap<String, String> {
        let read = dotenv::parse(&stack_env(self.env), &|_| None);
        read.unwrap_or_default().into_iter().collect()
    }

    /// Those of these variables whose values the shell decides that runs Compose: `.env` does not set them.
    pub fn of_shell<'n>(self, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
        let set = self.variables();
        let is_set = |name: &str| set.contains_key(name) || name == "COMPOSE_PROJECT_NAME";
        let names: BTreeSet<&str> = names.filter(|name| !is_set(name)).collect();
        names.into_iter().collect()
    }
}

/// A Portainer stack and what it contains.
#[derive(Clone, Copy)]
pub struct RecordFacts<'a> {
    pub record: &'a Record,
    /// Its text and variables; `None` if they could not be read.
    pub contents: Option<Sent<'a>>,
    /// What was last sent (B22).
    pub last_sent: &'a LastSent,
    /// Its text and variables, compared with what was last sent and with what would be sent.
    pub in_portainer: InPortainer,
}

impl<'a> RecordFacts<'a> {
    /// `sent` is empty if nothing can be sent.
    pub fn new(
        record: &'a Record,
        contents: Option<Sent<'a>>,
        last_sent: &'a LastSent,
        sent: Sent,
    ) -> Self {
        Self {
            record,
            contents,
            last_sent,
            in_portainer: if record.is_from_git() {
                InPortainer::FromGit
            } else {
                let is_other = last_sent.id.as_ref().is_some_and(|id| *id != record.id);
                match InPortainer::of(contents, last_sent, sent, &record.name) {
                    // Somebody created it, or put Portainer's data back to an earlier time.
                    InPortainer::Edited if is_other => InPortainer::Differs,
                    found => found,
                }
            },
        }
    }
}

/// What is at a path of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    File,
    Directory,
    Missing,
    /// It could not be looked at.
    Unknown,
}
