//! The rewrite, step by step.
#![deny(clippy::disallowed_methods)]

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
};

use super::{
    Context, Faithful, Notice, Reason, Refusal,
    carry::{Cargo, LABELS, VARIABLES},
    env_files::{self, Listed},
    paths::{self, Trouble},
    project,
    splice::{Splices, Value},
    uses,
};
use composefile::{
    document::{Document, Entry, Node, NodeId, NodeMap, NodeSet, Position},
    dotenv::parse as compose_dotenv,
    places::{self, Role},
    reader::Reader,
    services::Service,
};

/// What an edit is about: what is done, why, and whether it writes a value of an env file.
pub(super) type Note = (String, &'static str, bool);

/// Entries that come to a mapping.
type Insertion<'d> = (Node<'d>, Vec<(String, Value)>, Note);

pub(super) struct Rewriter<'d, 'a> {
    /// What the text means here.
    pub(super) reader: Reader<'d, 'a>,
    /// How many services read each mapping; asked for by few texts.
    readers: OnceCell<NodeMap<usize>>,
    pub(super) splices: Splices,
    pub(super) refusals: Vec<Refusal>,
    pub(super) notices: Vec<Notice>,
    /// What an alias brings to places where it has to stay as it is.
    elsewhere: NodeSet,
    /// Scalars that are a path somewhere, and right as they are.
    stays: NodeSet,
    /// Entries that go, by their keys.
    pub(super) removals: BTreeMap<NodeId, Entry<'d>>,
    /// Those among them that would bring a merged one to light, and become an empty list.
    pub(super) covers: NodeSet,
    /// New texts of scalars, with what is said of them.
    pub(super) desired: BTreeMap<NodeId, (String, Note)>,
    /// Entries that come, with the mapping they come to.
    pub(super) insertions: Vec<Insertion<'d>>,
    /// The texts of scalars with the shell's variables written in, where there are some.
    pub(super) written: NodeMap<String>,
}

impl<'d, 'a> Deref for Rewriter<'d, 'a> {
    type Target = Reader<'d, 'a>;

    fn deref(&self) -> &Self::Target {
        &self.reader
    }
}

pub(super) fn env_files_needed(
    text: &str,
    env_text: Option<&str>,
    context: &Context<'_>,
) -> Vec<String> {
    let (Ok(document), Ok(env)) = (Document::parse(text), read_env(env_text, context)) else {
        return Vec::new();
    };
    let rewriter = Rewriter::new(Reader::new(&document, env_text, &env, context));
    let mut found = BTreeSet::new();
    for &service in &rewriter.services {
        for cargo in [&VARIABLES, &LABELS] {
            let listed = rewriter.listed(service, cargo).into_iter();
            found.extend(listed.map(|listed| listed.file));
        }
    }
    found.remove(&rewriter.own_env);
    // A path that a variable leaves empty names nothing.
    found.remove("");
    found.into_iter().collect()
}

pub(super) fn rewrite(
    text: &str,
    env_text: Option<&str>,
    context: &Context<'_>,
) -> Result<Faithful, Vec<Refusal>> {
    let document = Document::parse(text).map_err(|error| vec![Refusal::not_yaml(&error)])?;
    if let Some(refusal) = line_break(text) {
        return Err(vec![refusal]);
    }
    let env = read_env(env_text, context).map_err(|refusal| vec![refusal])?;
    let mut rewriter = Rewriter::new(Reader::new(&document, env_text, &env, context));
    rewriter.shape().map_err(|refusal| vec![refusal])?;
    if rewriter.refusals.is_empty() {
        rewriter.references();
        rewriter.unknown_keys();
    }
    rewriter.elsewhere = uses::elsewhere(&document);
    rewriter.other_files();
    rewriter.of_this_host();
    rewriter.variables_in_scalars();
    rewriter.paths();
    rewriter.bare_variables();
    rewriter.env_files();
    rewriter.label_files();
    rewriter.build();
    rewriter.finish(text)
}

/// What ends a line to compose, as it did in YAML 1.1, and does not to the reader here.
fn line_break(text: &str) -> Option<Refusal> {
    let breaks = ["\u{85}", "\u{2028}", "\u{2029}"];
    let find = |c: &&str| memchr::memmem::find(text.as_bytes(), c.as_bytes());
    let at = breaks.iter().filter_map(find).min()?;
    Some(Refusal {
        position: Some(Position::of(text, at)),
        ..Refusal::of(
            Reason::NotYaml,
            "a character that cannot be seen ends a line here (U+0085, U+2028 or U+2029)",
            "take it out, or write it as an escape (`\"\\u2028\"`)",
        )
    })
}

fn read_env(text: Option<&str>, context: &Context<'_>) -> Result<Vec<(String, String)>, Refusal> {
    compose_dotenv(text.unwrap_or_default(), context.shell).map_err(|error| {
        Refusal::of(
            Reason::BadEnvFile,
            format!("compose cannot read {}: {error}", context.env_file),
            "mend the line: `docker compose config` has to accept the file",
        )
    })
}

impl<'d, 'a> Rewriter<'d, 'a> {
    fn new(reader: Reader<'d, 'a>) -> Self {
        Self {
            reader,
            readers: OnceCell::new(),
            splices: Splices::default(),
            refusals: Vec::new(),
            notices: Vec::new(),
            elsewhere: NodeSet::default(),
            stays: NodeSet::default(),
            removals: BTreeMap::new(),
            covers: NodeSet::default(),
            insertions: Vec::new(),
            desired: BTreeMap::new(),
            written: NodeMap::default(),
        }
    }

    pub(super) fn listed(&self, service: Service<'d>, cargo: &Cargo) -> Vec<Listed<'d>> {
        let base = self.base();
        env_files::listed(service, cargo.files, &|name| self.here(name), &|path| {
            base.local(path)
        })
    }

    fn other_files(&mut self) {
        let found = project::other_files(&self.reader);
        self.refusals.extend(found);
    }

    /// A scalar's text with its variables replaced; `None` where there is none, or it is refused.
    pub(super) fn read(&self, node: Node<'d>) -> Option<String> {
        let read = self.reader.read(node.as_str()?).ok()?;
        Some(read.into_owned())
    }

    /// A scalar's text, the shell's variables written in.
    pub(super) fn text_of(&self, node: Node<'d>) -> Option<&str> {
        let written = self.written.get(&node.resolved().id());
        written.map(String::as_str).or_else(|| node.as_str())
    }

    /// Asks for a new text of a scalar.
    pub(super) fn desire(&mut self, node: Node<'d>, wanted: String, about: Note) {
        let id = node.resolved().id();
        if self.is_elsewhere(node) {
            return;
        }
        let shell_only = self.written.get(&id);
        match self.desired.get(&id) {
            Some((known, _)) if *known != wanted && Some(known) != shell_only => {
                self.refusals.push(Refusal::at(
                    node,
                    Reason::Shared,
                    "an anchor brings this text to places that need different ones",
                    "write it out at each place",
                ));
            }
            known => {
                let (what, why, is_secret) = about;
                let is_secret = is_secret || known.is_some_and(|(_, (.., secret))| *secret);
                self.desired.insert(id, (wanted, (what, why, is_secret)));
            }
        }
    }

    /// Refuses, and says so, where a node has to stay as it is.
    pub(super) fn is_elsewhere(&mut self, node: Node<'d>) -> bool {
        let id = node.resolved().id();
        let is_elsewhere = self.elsewhere.contains(&id) || self.stays.contains(&id);
        if is_elsewhere {
            self.refusals.push(Refusal::at(
                node,
                Reason::Shared,
                "an alias brings this to a place where it has to stay as it is",
                "write it out at each place",
            ));
        }
        is_elsewhere
    }

    /// Asks for a scalar to stay: another text for it would be wrong.
    fn desire_as_it_is(&mut self, node: Node<'d>, text: String) {
        let id = node.resolved().id();
        match self.desired.get(&id) {
            Some((known, _)) if *known != text => {
                self.desire(node, text, (String::new(), "", false));
            }
            Some(_) => {}
            None => {
                self.stays.insert(id);
            }
        }
    }

    fn paths(&mut self) {
        let here = |name: &str| self.here(name);
        let mut places = self
            .document
            .root()
            .map(|root| places::of_root(root, &here))
            .unwrap_or_default();
        for &service in &self.services {
            places.extend(places::of_service(service, &here));
        }
        let mut seen: NodeMap<Role> = NodeMap::default();
        for (node, role) in places {
            let id = node.resolved().id();
            let (Some(text), None) = (
                self.text_of(node),
                seen.insert(id, role).filter(|&known| known == role),
            ) else {
                continue;
            };
            let new = paths::absolute(text, role, &self.base(), &|name| self.here(name));
            let new = match new {
                Ok(new) => new,
                Err(trouble) => {
                    self.refuse_path(node, trouble);
                    continue;
                }
            };
            let Some(new) = new else {
                // Another place may want it otherwise.
                self.desire_as_it_is(node, text.to_owned());
                continue;
            };
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

    fn refuse_path(&mut self, node: Node<'d>, trouble: Trouble) {
        let refusal = match trouble {
            Trouble::Colon => Refusal::at(
                node,
                Reason::Unwritable,
                "the path holds a colon, or the stack's directory does: it cannot stand in this text",
                "write the mount in long syntax (`type: bind`), or move the stack",
            ),
            Trouble::Disputed => Refusal::at(
                node,
                Reason::Disputed,
                "what this path is depends on the version of compose",
                "write it without a Windows share, a drive that is no letter, or a colon in braces",
            ),
        };
        self.refusals.push(refusal);
    }

    /// Whether others read the service's own mapping too.
    pub(super) fn is_shared(&self, service: Service<'d>) -> bool {
        let mapping = service.node.resolved();
        mapping.anchor().is_some() && self.readers()[&mapping.id()] > 1
    }

    /// How many services read each mapping.
    fn readers(&self) -> &NodeMap<usize> {
        self.readers.get_or_init(|| {
            let mut readers = NodeMap::default();
            let services = self.services.iter();
            for mapping in services.flat_map(|service| service.node.mappings()) {
                *readers.entry(mapping.id()).or_default() += 1;
            }
            readers
        })
    }

    /// Marks an entry to go.
    pub(super) fn remove(&mut self, entry: Entry<'d>) {
        self.removals.insert(entry.key.id(), entry);
    }

    pub(super) fn replace(
        &mut self,
        mapping: Node<'d>,
        entry: Entry<'d>,
        new: Vec<(String, Value)>,
        note: Note,
    ) {
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
