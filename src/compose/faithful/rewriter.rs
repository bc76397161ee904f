//! The rewrite, step by step.
#![deny(clippy::disallowed_methods)]

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use super::{
    super::{
        document::{Document, Entry, Kind, Node, NodeId},
        dotenv::compose_dotenv,
        interpolate::{InterpolateError, escaped, interpolate},
        services::{self, Service},
    },
    Context, Faithful, Notice, Reason, Refusal,
    carry::mappings,
    env_files::{self, Listed},
    path::Base,
    paths::{self, Role},
    project,
    shell::{self, OF_THE_MANAGER},
    splice::{Splices, Value},
    uses,
};

/// What an edit is about: what is done, why, and whether it writes a value of an env file.
pub(super) type Note = (String, &'static str, bool);

pub(super) struct Rewriter<'d, 'a> {
    pub(super) document: &'d Document<'d>,
    pub(super) services: Vec<Service<'d>>,
    pub(super) project: String,
    pub(super) splices: Splices,
    pub(super) refusals: Vec<Refusal>,
    pub(super) notices: Vec<Notice>,
    /// Entries that go, in the order they were found.
    pub(super) removals: Vec<Entry<'d>>,
    /// Those among them that would bring a merged one to light, and become an empty list.
    pub(super) covers: HashSet<NodeId>,
    pub(super) context: &'a Context<'a>,
    /// `.env`, as it is; `None` where there is none.
    pub(super) env_text: Option<&'a str>,
    /// `.env`, read.
    pub(super) env: &'a [(String, String)],
    pub(super) variables: HashMap<&'a str, &'a str>,
    /// New texts of scalars, with what is said of them.
    pub(super) desired: BTreeMap<NodeId, (String, Note)>,
    /// Entries that come, with the mapping they come to.
    pub(super) insertions: Vec<(Node<'d>, Vec<(String, Value)>, Note)>,
    /// The texts of scalars with the shell's variables written in, where there are some.
    pub(super) written: HashMap<NodeId, String>,
}

pub(super) fn env_files_needed(text: &str, env_text: Option<&str>, context: &Context<'_>) -> Vec<String> {
    let (Ok(document), Ok(env)) = (Document::parse(text), read_env(env_text, context)) else {
        return Vec::new();
    };
    let rewriter = Rewriter::new(&document, env_text, &env, context);
    let mut found = BTreeSet::new();
    for &service in &rewriter.services {
        let listed = rewriter.listed(service).unwrap_or_default();
        found.extend(listed.into_iter().map(|listed| listed.file));
    }
    found.remove(&rewriter.own_env());
    found.into_iter().collect()
}

pub(super) fn rewrite(
    text: &str,
    env_text: Option<&str>,
    context: &Context<'_>,
) -> Result<Faithful, Vec<Refusal>> {
    let document = Document::parse(text).map_err(|error| vec![Refusal::not_yaml(error)])?;
    let env = read_env(env_text, context).map_err(|refusal| vec![refusal])?;
    let mut rewriter = Rewriter::new(&document, env_text, &env, context);
    rewriter.shape();
    if !rewriter.refusals.is_empty() {
        return Err(rewriter.refusals);
    }
    rewriter.other_files();
    rewriter.variables_in_scalars();
    rewriter.paths();
    rewriter.bare_variables();
    rewriter.env_files();
    rewriter.build();
    rewriter.finish(text)
}

fn read_env(
    text: Option<&str>,
    context: &Context<'_>,
) -> Result<Vec<(String, String)>, Refusal> {
    compose_dotenv(text.unwrap_or_default(), context.shell).map_err(|error| {
        Refusal::of(
            Reason::BadEnvFile,
            format!("compose cannot read {}: {error}", context.env_file),
            "mend the line: `docker compose config` has to accept the file",
        )
    })
}

impl<'d, 'a> Rewriter<'d, 'a> {
    fn new(
        document: &'d Document<'d>,
        env_text: Option<&'a str>,
        env: &'a [(String, String)],
        context: &'a Context<'a>,
    ) -> Self {
        let names = env.iter();
        let mut rewriter = Self {
            document,
            services: services::services(document),
            project: String::new(),
            splices: Splices::default(),
            refusals: Vec::new(),
            notices: Vec::new(),
            removals: Vec::new(),
            covers: HashSet::new(),
            context,
            env_text,
            env,
            insertions: Vec::new(),
            variables: names.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            desired: BTreeMap::new(),
            written: HashMap::new(),
        };
        rewriter.project = project::name(document, context, &|name| rewriter.here(name));
        rewriter
    }

    /// What a variable is to compose here.
    pub(super) fn here(&self, name: &str) -> Option<String> {
        if name == "COMPOSE_PROJECT_NAME" && !self.project.is_empty() {
            return Some(self.project.clone());
        }
        let env = |name: &str| self.variables.get(name).map(|&value| value.to_owned());
        shell::here(name, self.context.shell, &env)
    }

    pub(super) fn base(&self) -> Base<'a> {
        Base {
            dir: self.context.stack_dir,
            home: self.context.home,
        }
    }

    pub(super) fn own_env(&self) -> String {
        self.base().local(self.context.env_file)
    }

    pub(super) fn listed(&self, service: Service<'d>) -> Result<Vec<Listed<'d>>, Vec<Refusal>> {
        let base = self.base();
        env_files::listed(service, &|name| self.here(name), &|path| base.local(path))
    }

    /// Whether the file has the shape of a compose file, as far as it is read.
    fn shape(&mut self) {
        let wrong = |node: Node<'_>, what: String| {
            Refusal::at(node, Reason::WrongType, what, "see https://docs.docker.com/reference/compose-file/")
        };
        let Some(root) = self.document.root() else {
            self.refusals.push(Refusal::of(
                Reason::WrongType,
                "the compose file is empty",
                "name the right file with --file",
            ));
            return;
        };
        if !root.is_mapping() {
            self.refusals.push(wrong(root, "the compose file is no mapping".into()));
            return;
        }
        for twice in self.document.duplicate_keys() {
            let name = twice.again.scalar().map_or("", |(name, _)| name);
            if name == "<<" {
                continue;
            }
            let what = format!("the key {name} stands a second time in one mapping, first in line {}", twice.first.line());
            self.refusals.push(wrong(twice.again, what));
        }
        for section in ["services", "volumes", "secrets", "configs"] {
            let Some(node) = root.get(section).filter(|node| !node.is_null()) else {
                continue;
            };
            if !node.is_mapping() {
                self.refusals.push(wrong(node, format!("`{section}` is no mapping")));
            }
        }
        for service in &self.services {
            if !service.node.is_mapping() {
                self.refusals.push(wrong(service.node, format!("the service {} is no mapping", service.name)));
                continue;
            }
            let volumes = service.node.get("volumes");
            if let Some(node) = volumes.filter(|node| !node.is_null() && !node.is_sequence()) {
                self.refusals.push(wrong(node, format!("`volumes` of the service {} is no list", service.name)));
            }
            if let Some(node) = service.node.get("label_file").filter(|node| !node.is_null()) {
                self.refusals.push(Refusal::at(
                    node,
                    Reason::UnreadableFile,
                    format!("`label_file` of the service {} names a file that the manager cannot read", service.name),
                    "write the labels into `labels:`",
                ));
            }
        }
    }

    fn other_files(&mut self) {
        let found = project::other_files(self.document, self.context, &|name| self.here(name));
        self.refusals.extend(found);
    }

    /// What becomes of a variable at the manager.
    pub(super) fn fate(&self, name: &str) -> shell::Fate {
        let shell = (self.context.shell)(name);
        let env = self.variables.get(name).copied();
        let differs = shell.is_some() && shell.as_deref() != env;
        if name == "COMPOSE_PROJECT_NAME" || !(differs || OF_THE_MANAGER.contains(&name)) {
            return shell::Fate::Stays;
        }
        shell::Fate::Written(self.here(name))
    }

    /// Every text that compose replaces variables in: what cannot be read is refused, what only the shell
    /// defines is written in.
    fn variables_in_scalars(&mut self) {
        if !self.document.text().contains('$') {
            return;
        }
        let keys: HashSet<_> = self
            .document
            .nodes()
            .flat_map(Node::own_entries)
            .map(|entry| entry.key.id())
            .collect();
        let mut unset: BTreeMap<String, usize> = BTreeMap::new();
        for node in self.document.nodes() {
            let Kind::Scalar(_) = node.kind() else { continue };
            let Some(text) = node.as_str().filter(|text| text.contains('$')) else {
                continue;
            };
            if keys.contains(&node.id()) {
                continue;
            }
            if let Err(error) = interpolate(text, &|name| self.here(name)) {
                self.refuse_variable(node, &error);
                continue;
            }
            shell::names(text, &mut |name, is_bare| {
                if is_bare && self.here(name).is_none() {
                    unset.entry(name.to_owned()).or_insert_with(|| node.line());
                }
            });
            let mut names = Vec::new();
            let new = shell::written(text, &|name| self.fate(name), &mut names);
            if let Cow::Owned(new) = new {
                let what = format!("{} is written out", names.join(", "));
                let why = "the manager has its own shell, or none";
                self.written.insert(node.id(), new.clone());
                self.desired.insert(node.id(), (new, (what, why, false)));
            }
        }
        for (name, line) in unset {
            self.notices.push(Notice {
                line: Some(line),
                message: format!("{name} is set nowhere: it stays empty, as here"),
            });
        }
    }

    fn refuse_variable(&mut self, node: Node<'d>, error: &InterpolateError) {
        let (message, hint) = match error {
            InterpolateError::Required { name, .. } => (
                format!("the variable {name} must be set and is not"),
                format!("set {name} in .env; compose refuses the stack as it is"),
            ),
            InterpolateError::Invalid { .. } => (
                "a `${` begins no variable".to_owned(),
                "write `$$` where a dollar sign is meant; compose refuses the stack as it is".to_owned(),
            ),
        };
        self.refusals.push(Refusal::at(node, Reason::BadVariable, message, hint));
    }

    /// A scalar's text, the shell's variables written in.
    pub(super) fn text_of(&self, node: Node<'d>) -> Option<String> {
        let written = self.written.get(&node.resolved().id()).cloned();
        written.or_else(|| node.as_str().map(str::to_owned))
    }

    /// Asks for a new text of a scalar.
    pub(super) fn desire(&mut self, node: Node<'d>, text: String, note: Note) {
        let id = node.resolved().id();
        let shell_only = self.written.get(&id);
        match self.desired.get(&id) {
            Some((known, _)) if *known != text && Some(known) != shell_only => {
                self.refusals.push(Refusal::at(
                    node,
                    Reason::Shared,
                    "an anchor brings this text to places that need different ones",
                    "write it out at each place",
                ));
            }
            _ => {
                self.desired.insert(id, (text, note));
            }
        }
    }

    fn paths(&mut self) {
        let here = |name: &str| self.here(name);
        let mut places = self.document.root().map(|root| paths::of_root(root, &here)).unwrap_or_default();
        for &service in &self.services {
            places.extend(paths::of_service(service, &here));
        }
        let elsewhere = uses::elsewhere(self.document);
        let mut seen: HashMap<NodeId, Role> = HashMap::new();
        for (node, role) in places {
            let id = node.resolved().id();
            let (Some(text), None) = (self.text_of(node), seen.insert(id, role).filter(|&known| known == role)) else {
                continue;
            };
            let new = paths::absolute(&text, role, &self.base(), &|name| self.here(name));
            let Ok(new) = new else {
                self.refusals.push(Refusal::at(
                    node,
                    Reason::Unwritable,
                    "the stack's directory cannot stand in this text: its path holds a colon",
                    "write the mount in long syntax (`type: bind`), or move the stack",
                ));
                continue;
            };
            let Some(new) = new else { continue };
            if elsewhere.contains(&id) {
                self.refusals.push(Refusal::at(
                    node,
                    Reason::Shared,
                    "an alias brings this path to a place where it is none",
                    "write the path out where it is used as a mount",
                ));
                continue;
            }
            if new.today {
                self.notices.push(Notice {
                    line: Some(node.line()),
                    message: "the path holds a variable with a relative value: it is written as it is today".into(),
                });
            }
            let what = "the path becomes absolute".to_owned();
            let why = "relative paths and ~ are the manager's, not the host's (M12)";
            self.desire(node, new.text, (what, why, new.today));
        }
    }

    /// `environment` entries without a value, which take it from where compose runs.
    fn bare_variables(&mut self) {
        let mut seen = HashSet::new();
        for service in self.services.clone() {
            let Some(environment) = service.node.get("environment") else {
                continue;
            };
            if !seen.insert(environment.resolved().id()) {
                continue;
            }
            for item in environment.items() {
                let Some(name) = self.text_of(item).filter(|text| !text.contains('=')) else {
                    continue;
                };
                if let Some((value, note)) = self.bare(item, &name) {
                    let text = format!("{name}={}", escaped(&value));
                    self.desire(item, text, note);
                }
            }
            for entry in environment.entries() {
                let Some(name) = entry.name().filter(|_| entry.value.is_null()) else {
                    continue;
                };
                if let Some((value, note)) = self.bare(entry.value, name) {
                    let value = escaped(&value);
                    if !seen.insert(entry.value.id()) {
                        continue;
                    }
                    if self.splices.fill(entry, &value, note).is_err() {
                        self.refuse_unwritable(entry.key);
                    }
                }
            }
        }
        for (section, key) in [("secrets", "environment"), ("configs", "environment")] {
            for entry in self.document.get(section).map(Node::entries).unwrap_or_default() {
                let Some(node) = entry.value.get(key) else { continue };
                let name = node.as_str().unwrap_or_default();
                if let shell::Fate::Written(_) = self.fate(name) {
                    self.refuse_shell(node, name);
                }
            }
        }
        self.profiles();
    }

    fn bare(&mut self, node: Node<'d>, name: &str) -> Option<(String, Note)> {
        match self.fate(name) {
            shell::Fate::Stays => None,
            shell::Fate::Written(Some(value)) => {
                let what = format!("{name} gets the value it has here");
                Some((value, (what, "the manager has its own shell, or none", false)))
            }
            shell::Fate::Written(None) => {
                self.refuse_shell(node, name);
                None
            }
        }
    }

    fn refuse_shell(&mut self, node: Node<'d>, name: &str) {
        self.refusals.push(Refusal::at(
            node,
            Reason::OfTheShell,
            format!("{name} is taken from the shell here, and the manager has another one"),
            format!("give it a name of its own in .env instead of {name}"),
        ));
    }

    /// Profiles that only the shell names would be lost (M14).
    fn profiles(&mut self) {
        const NAME: &str = "COMPOSE_PROFILES";
        let shell = (self.context.shell)(NAME).filter(|value| !value.is_empty());
        if shell.is_some() && shell.as_deref() != self.variables.get(NAME).copied() {
            self.refusals.push(Refusal::of(
                Reason::OfTheShell,
                "COMPOSE_PROFILES is set in the shell, and not so in .env",
                "write it into .env, or unset it: the manager starts the profiles that .env names (M14)",
            ));
        }
    }

    /// Whether others read the service's own mapping too.
    pub(super) fn is_shared(&self, service: Service<'d>) -> bool {
        let mapping = service.node.resolved();
        service.node.kind() == Kind::Alias
            || mapping.anchor().is_some()
                && self
                    .services
                    .iter()
                    .filter(|other| other.name != service.name)
                    .any(|other| mappings(other.node).iter().any(|node| node.id() == mapping.id()))
    }

    /// Marks an entry to go.
    pub(super) fn remove(&mut self, entry: Entry<'d>) {
        if !self.removals.iter().any(|known| known.key.id() == entry.key.id()) {
            self.removals.push(entry);
        }
    }

    pub(super) fn replace(&mut self, mapping: Node<'d>, entry: Entry<'d>, new: Vec<(String, Value)>, note: Note) {
        if !self.splices.expected.replaced.contains_key(&entry.key.id()) {
            self.splices.replace_entry(mapping, entry, new, note);
        }
    }

    /// Asks for new entries of a mapping.
    pub(super) fn insert(&mut self, mapping: Node<'d>, new: Vec<(String, Value)>, note: Note) {
        self.insertions.push((mapping, new, note));
    }

    pub(super) fn refuse_unwritable(&mut self, node: Node<'d>) {
        self.refusals.push(Refusal::at(
            node,
            Reason::Unwritable,
            "this cannot be changed where it is written",
            "write it on lines of its own",
        ));
    }
}
