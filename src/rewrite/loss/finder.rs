//! Walks through a text and lists the losses.

use std::collections::{HashMap, HashSet};

use super::{
    Owner, TextLoss, TextLossKind,
    both::{Both, Difference},
};
use crate::rewrite::{env_files::DeletedLines, faithful::read_over};
use composefile::{
    document::{Entry, Node, NodeId, NodeMap, NodeSet},
    places::{self, Role},
    reader::Reader,
    services::{EnvFile, MountSpec, Service, includes, is_remote_context, split_at_colons},
};

/// The keys of a service that are not compared text by text.
const READ_SEPARATELY: [&str; 6] = [
    "build",
    "env_file",
    "environment",
    "extends",
    "label_file",
    "volumes",
];

/// Lists that a service does not merge with those of the service it extends.
const NOT_MERGED: [&str; 3] = ["command", "entrypoint", "test"];

pub(super) struct Finder<'d, 'a> {
    both: Both<'d, 'a>,
    deleted: DeletedLines,
    /// How Compose resolves the paths of the current part.
    roles: NodeMap<Role>,
    /// The current part of the file.
    owner: Owner,
    service: Option<Service<'d>>,
    found: Vec<TextLoss>,
    /// Losses in texts that are not paths. They are listed after the paths.
    texts: Vec<(Node<'d>, TextLossKind)>,
}

impl<'d, 'a> Finder<'d, 'a> {
    pub(super) fn new(both: Both<'d, 'a>) -> Self {
        Self {
            deleted: DeletedLines::of(both.here.document.text()),
            both,
            roles: NodeMap::default(),
            owner: Owner::File,
            service: None,
            found: Vec::new(),
            texts: Vec::new(),
        }
    }

    fn here(&self) -> &Reader<'d, 'a> {
        &self.both.here
    }

    pub(super) fn losses(mut self) -> Vec<TextLoss> {
        for service in self.here().services.clone() {
            self.owner = Owner::Service(service.name.to_owned());
            self.service = Some(service);
            self.service(service);
            self.flush_texts();
        }
        self.service = None;
        self.rest();
        self.found
    }

    fn service(&mut self, service: Service<'d>) {
        let chain = self.here().chain(service);
        let here = |name: &str| self.here().here(name);
        let places = chain.iter().map(|&one| places::of_service(one, &here));
        self.roles = roles(places.flatten());
        self.env_files(&chain);
        self.profiles(&chain);
        self.environment(&chain);
        self.mounts(&chain);
        let is_separate = |name: &str| READ_SEPARATELY.contains(&name) || name.starts_with("x-");
        for (entry, layers) in members(&chain.iter().map(|one| one.node).collect::<Vec<_>>()) {
            if !entry.name().is_some_and(is_separate) {
                self.key(entry.key);
                self.below(layers);
            }
        }
        if let Some(file) = service.extends_file() {
            self.unreadable(file, "extends");
        }
        self.build(&chain);
        for file in chain.iter().flat_map(Service::label_files) {
            self.unreadable(file, "label_file");
        }
    }

    fn rest(&mut self) {
        let document = self.here().document;
        self.owner = Owner::File;
        for file in includes(document) {
            self.unreadable(file, "include");
        }
        self.other_files();
        self.project();
        let Some(root) = document.root() else {
            return;
        };
        let places = places::of_root(root, &|name| self.here().here(name));
        self.roles = roles(places);
        for section in root.entries() {
            let owner: fn(String) -> Owner = match section.name() {
                Some("services" | "include" | "name" | "version") => continue,
                Some(name) if name.starts_with("x-") => continue,
                Some("secrets") => Owner::Secret,
                Some("configs") => Owner::Config,
                Some("volumes") => Owner::Volume,
                _ => |_| Owner::File,
            };
            for member in section.value.entries() {
                self.owner = owner(member.name().unwrap_or_default().to_owned());
                self.key(member.key);
                self.below(vec![member.value]);
                if let Some(node) = member.value.get("environment") {
                    self.bare(node, node.as_str().unwrap_or_default());
                }
                self.flush_texts();
            }
        }
    }

    /// The files that Compose merges with this one.
    fn other_files(&mut self) {
        for file in self.here().files() {
            if file != self.here().context.file {
                self.add(TextLossKind::IgnoredFile { file });
            }
        }
    }

    fn project(&mut self) {
        let (here, there) = (self.here().project.clone(), self.both.there.project.clone());
        if here != there {
            self.add(TextLossKind::Project { here, there });
        }
    }

    /// An optional env file that stays in the text is lost like one that is removed.
    fn env_files(&mut self, chain: &[Service<'d>]) {
        let (mut lost, mut left) = (Vec::new(), Vec::new());
        for service in chain {
            let entry = service.node.entry("env_file");
            let removes_key = entry.is_some_and(|entry| self.deleted.hold(entry.key.span().start));
            for file in service.env_files() {
                let is_removed = removes_key || self.deleted.hold(file.node.span().start);
                if is_removed || !file.required {
                    lost.push(file);
                } else {
                    left.push(file);
                }
            }
        }
        self.variables(chain, &lost);
        for file in left {
            self.unreadable(file.path, "env_file");
        }
    }

    /// The variables that removed env files set. A variable that `environment` names, even without a value, does not come
    /// from a file. Of several files, the last one sets it.
    fn variables(&mut self, chain: &[Service<'d>], files: &[EnvFile<'d>]) {
        let mut known: HashMap<String, String> = HashMap::new();
        let mut from: HashMap<String, usize> = HashMap::new();
        let mut set = Vec::new();
        for (at, file) in files.iter().enumerate() {
            let lookup = |name: &str| known.get(name).cloned().or_else(|| self.here().here(name));
            let read = self.read_env_file(file, &lookup);
            for (name, value) in read.iter().flatten() {
                from.insert(name.clone(), at);
                known.insert(name.clone(), value.clone());
            }
            set.push(read);
        }
        let environment = chain.iter().flat_map(Service::environment);
        let explicit: HashSet<&str> = environment.map(|entry| entry.name).collect();
        for (at, (file, read)) in files.iter().zip(set).enumerate() {
            let Some(variables) = read else {
                let file = file.path.to_owned();
                self.add(TextLossKind::UnknownVariables { file });
                continue;
            };
            for (name, _) in variables {
                if from.get(&name) == Some(&at) && !explicit.contains(name.as_str()) {
                    let file = file.path.to_owned();
                    self.add(TextLossKind::Variable { name, file });
                }
            }
        }
    }

    /// The variables that an env file sets; empty for an optional file that does not exist; `None` if they are unknown.
    fn read_env_file(
        &self,
        file: &EnvFile<'d>,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Vec<(String, String)>> {
        let path = self.here().base().local(&self.here().read(file.path).ok()?);
        let Some(text) = self.here().env_file_text(&path) else {
            let known =
                path == self.here().own_env || self.here().context.env_files.contains_key(&path);
            return (known && !file.required).then(Vec::new);
        };
        let mut read = read_over(text, file.format == Some("raw"), lookup, &|_| None).ok()?;
        read.retain(|(name, _)| !name.is_empty());
        Some(read)
    }

    /// A service that only runs because of a profile that the shell activates (M14).
    fn profiles(&mut self, chain: &[Service<'d>]) {
        let Some(&service) = chain.last() else { return };
        if self.here().is_active(service) && !self.both.there.is_active(service) {
            self.add(TextLossKind::Profiles);
        }
    }

    /// The last entry with a name takes effect.
    fn environment(&mut self, chain: &[Service<'d>]) {
        let entries: Vec<_> = chain.iter().flat_map(Service::environment).collect();
        let nodes = entries.iter().map(|entry| (entry.name, entry.node.id()));
        let last: HashMap<&str, NodeId> = nodes.collect();
        for entry in entries {
            if last.get(entry.name) != Some(&entry.node.id()) {
                continue;
            }
            if entry.name.contains("./") {
                self.replaced_in(entry.node);
            }
            match entry.value {
                Some(value) => {
                    let difference = self.both.text(value, &Some);
                    self.changed(entry.node, difference);
                }
                None => self.bare(entry.node, entry.name),
            }
        }
    }

    /// A variable that Compose takes from its environment.
    fn bare(&mut self, node: Node<'d>, name: &str) {
        if self.both.differs(name) {
            self.value(node, vec![name.to_owned()]);
        }
    }

    /// The last mount with a target takes effect.
    fn mounts(&mut self, chain: &[Service<'d>]) {
        let volumes = chain.iter().filter_map(|one| one.node.get("volumes"));
        let items: Vec<_> = volumes.flat_map(Node::items).collect();
        let targets = items.iter().map(|item| (self.target(*item), item.id()));
        let last: HashMap<_, _> = targets.collect();
        for item in items {
            let target = self.target(item);
            if target.is_none() || last.get(&target) == Some(&item.id()) {
                self.below(vec![item]);
            }
        }
    }

    fn target(&self, item: Node<'d>) -> Option<String> {
        let read = |node: Node<'d>| self.here().read(node.as_str()?).ok();
        match read(item) {
            Some(spec) => Some(MountSpec::parse(&spec)?.target.to_owned()),
            None => Some(read(item.get("target")?)?.into_owned()),
        }
    }

    fn build(&mut self, chain: &[Service<'d>]) {
        let service = chain.iter().rev().find(|one| one.build().is_some());
        for context in service.into_iter().flat_map(Service::build_contexts) {
            self.unreadable(context, "build");
        }
    }

    /// Everything below a node, and below the same node of the extended services, outermost base first.
    fn below(&mut self, layers: Vec<Node<'d>>) {
        let mut seen = NodeSet::default();
        let mut ahead = vec![layers];
        while let Some(mut layers) = ahead.pop() {
            let Some(&top) = layers.last() else { continue };
            if top.is_scalar() {
                self.leaf(top);
                continue;
            }
            if !seen.insert(top.resolved().id()) {
                continue;
            }
            if top.is_mapping() {
                for (entry, mut layers) in members(&layers) {
                    self.key(entry.key);
                    if entry.name().is_some_and(|name| NOT_MERGED.contains(&name)) {
                        layers = layers.split_off(layers.len() - 1);
                    }
                    ahead.push(layers);
                }
            } else {
                layers.retain(|layer| layer.is_sequence());
                let items = layers.into_iter().flat_map(Node::items);
                ahead.extend(items.map(|item| vec![item]));
            }
        }
    }

    fn key(&mut self, key: Node<'d>) {
        if key.scalar().is_some_and(|(name, _)| name.contains("./")) {
            self.replaced_in(key);
        }
    }

    fn leaf(&mut self, node: Node<'d>) {
        let Some(text) = node.as_str() else { return };
        match self.roles.get(&node.id()) {
            None => {
                let difference = self.both.text(text, &Some);
                self.changed(node, difference);
            }
            Some(Role::Mount) => {
                let (moves, difference) = self.both.mount(text);
                if moves {
                    let written = match split_at_colons(text)[..] {
                        [source, _] | [source, _, _] => source,
                        _ => text,
                    };
                    self.moved(written);
                }
                self.changed(node, difference);
            }
            Some(&role) => {
                if self.both.path_moves(text, role) {
                    self.moved(text);
                }
            }
        }
    }

    fn changed(&mut self, node: Node<'d>, difference: Difference) {
        if difference.replaced {
            self.replaced_in(node);
        }
        if !difference.variables.is_empty() {
            self.value(node, difference.variables);
        }
    }

    fn replaced_in(&mut self, node: Node<'d>) {
        let place = self.place(node);
        self.texts.push((node, TextLossKind::Replaced { place }));
    }

    fn value(&mut self, node: Node<'d>, variables: Vec<String>) {
        let place = self.place(node);
        self.texts
            .push((node, TextLossKind::Value { place, variables }));
    }

    fn moved(&mut self, path: &str) {
        self.add(TextLossKind::Path {
            path: path.to_owned(),
            becomes: self.both.rewritten(path).into_owned(),
        });
    }

    fn unreadable(&mut self, path: &str, named_by: &'static str) {
        let read = self.here().read(path);
        if !read.is_ok_and(|path| is_remote_context(&path)) {
            let path = path.to_owned();
            self.add(TextLossKind::Unreadable { path, named_by });
        }
    }

    fn place(&self, node: Node<'d>) -> String {
        let own = self.service;
        match own.and_then(|own| Some((own.name, node.path_below(own.node)?))) {
            Some((name, below)) => format!("services.{name}.{below}"),
            None => node.path(),
        }
    }

    fn add(&mut self, kind: TextLossKind) {
        self.found.push(TextLoss {
            owner: self.owner.clone(),
            kind,
        });
    }

    fn flush_texts(&mut self) {
        let mut texts = std::mem::take(&mut self.texts);
        texts.sort_by_key(|(node, _)| node.id());
        for (_, kind) in texts {
            self.add(kind);
        }
    }
}

fn roles<'d>(places: impl IntoIterator<Item = (Node<'d>, Role)>) -> NodeMap<Role> {
    let places = places.into_iter();
    places.map(|(node, role)| (node.id(), role)).collect()
}

/// The entries of a mapping that is merged over others: the last entry with each name, and all its values.
fn members<'d>(layers: &[Node<'d>]) -> Vec<(Entry<'d>, Vec<Node<'d>>)> {
    let mut found: Vec<(Entry<'d>, Vec<Node<'d>>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (depth, layer) in layers.iter().enumerate() {
        for entry in layer.entries() {
            let name = entry.name().filter(|_| layers.len() > 1);
            match name.and_then(|name| places.get(name)) {
                Some(&at) if depth > 0 => {
                    found[at].0 = entry;
                    found[at].1.push(entry.value);
                }
                _ => {
                    places.extend(name.map(|name| (name, found.len())));
                    found.push((entry, vec![entry.value]));
                }
            }
        }
    }
    found
}
