//! What a compose file means where it lies: its variables, its paths, its env files, its project's name.
//!
//! The faithful rewrite and the losses of the literal one read by it, here and as the manager does.

use std::{
    borrow::Cow,
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
};

use super::{
    document::{Document, Entry, Node, NodeMap, NodeSet},
    interpolate::{InterpolateError, Lookup, interpolate},
    path::Base,
    services::{Service, is_remote_context, services},
};

/// The texts of env files other than `.env` and of label files, by absolute path; `None` is a file that is not
/// there.
pub type EnvFiles = BTreeMap<String, Option<String>>;

/// The names under which compose finds a file by itself. Only then it looks for an override, and a file of
/// another name was named.
pub const DEFAULT_FILES: [&str; 4] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
];

/// What has to be known of the place where a stack lies.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The stack's directory, absolute.
    pub stack_dir: &'a str,
    /// The compose file's name in it.
    pub file: &'a str,
    /// The name of the env file in it that compose reads by itself: `.env`, at the manager `stack.env`.
    pub env_file: &'a str,
    /// The home of whoever started the stack, for `~`.
    pub home: Option<&'a str>,
    /// The variables of the shell that the stack is started from.
    pub shell: Lookup<'a>,
    /// Override files beside the compose file, which compose would read with it.
    pub overrides: &'a [String],
    /// What [`super::faithful::env_files_needed`] asked for; one that cannot be read is left out.
    pub env_files: &'a EnvFiles,
}

/// A text with all that compose reads it by.
pub struct Reader<'d, 'a> {
    pub document: &'d Document<'d>,
    pub services: Vec<Service<'d>>,
    /// What each service extends, by the node of the one that does.
    bases: OnceCell<NodeMap<Service<'d>>>,
    /// The project's name.
    pub project: String,
    pub context: &'a Context<'a>,
    /// The env file that compose reads by itself, absolute.
    pub own_env: String,
    /// `.env`, as it is; `None` where there is none.
    pub env_text: Option<&'a str>,
    /// `.env`, read.
    pub env: &'a [(String, String)],
    pub variables: HashMap<&'a str, &'a str>,
}

impl<'d, 'a> Reader<'d, 'a> {
    pub fn new(
        document: &'d Document<'d>,
        env_text: Option<&'a str>,
        env: &'a [(String, String)],
        context: &'a Context<'a>,
    ) -> Self {
        let names = env.iter();
        let mut reader = Self {
            document,
            services: services(document),
            bases: OnceCell::new(),
            project: String::new(),
            context,
            own_env: base(context).local(context.env_file),
            env_text,
            env,
            variables: names
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect(),
        };
        reader.project = reader.project_name();
        reader
    }

    /// What a variable is to compose: the shell goes before `.env`.
    pub fn here(&self, name: &str) -> Option<String> {
        if name == "COMPOSE_PROJECT_NAME" && !self.project.is_empty() {
            return Some(self.project.clone());
        }
        let env = || self.variables.get(name).map(|&value| value.to_owned());
        (self.context.shell)(name).or_else(env)
    }

    /// A text with its variables replaced.
    pub fn read<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, InterpolateError> {
        interpolate(text, &|name| self.here(name))
    }

    /// The files that compose reads as the stack: those of `COMPOSE_FILE`, else this one and an override.
    pub fn files(&self) -> Vec<String> {
        let listed = self.listed_files();
        if !listed.is_empty() {
            return listed;
        }
        let file = self.context.file.to_owned();
        std::iter::once(file)
            .chain(self.context.overrides.first().cloned())
            .collect()
    }

    /// The files of `COMPOSE_FILE`. A file that was named stands for itself, unless it is one of them.
    pub fn listed_files(&self) -> Vec<String> {
        let files = self.here("COMPOSE_FILE").unwrap_or_default();
        let separator = self.here("COMPOSE_PATH_SEPARATOR");
        let files = files.split(separator.as_deref().unwrap_or(":"));
        let files: Vec<_> = files
            .map(|file| file.trim_start_matches("./").to_owned())
            .filter(|file| !file.is_empty())
            .collect();
        let file = self.context.file;
        if DEFAULT_FILES.contains(&file) || files.iter().any(|listed| listed == file) {
            files
        } else {
            Vec::new()
        }
    }

    pub fn base(&self) -> Base<'a> {
        base(self.context)
    }

    /// The text of an env file; `None` where it is not there.
    pub fn env_file_text(&self, file: &str) -> Option<&'a str> {
        if file == self.own_env {
            return self.env_text;
        }
        self.context.env_files.get(file)?.as_deref()
    }

    /// A service after those it extends, the outermost base first.
    pub fn chain(&self, service: Service<'d>) -> Vec<Service<'d>> {
        let bases = self.bases.get_or_init(|| self.bases());
        let mut found = vec![service];
        let mut seen = NodeSet::default();
        let mut at = service;
        while let Some(&base) = bases.get(&at.node.id()) {
            if base.name == service.name || !seen.insert(base.node.id()) {
                break;
            }
            found.push(base);
            at = base;
        }
        found.reverse();
        found
    }

    fn bases(&self) -> NodeMap<Service<'d>> {
        let services = self.services.iter();
        let extends = services.filter_map(|service| Some((service, service.node.get("extends")?)));
        let extends: Vec<_> = extends
            .filter(|(_, extends)| extends.get("file").is_none())
            .collect();
        if extends.is_empty() {
            return NodeMap::default();
        }
        let services = self.services.iter();
        let by_name: HashMap<_, _> = services.map(|service| (service.name, service)).collect();
        let base = |(service, extends): (&Service<'d>, Node<'d>)| {
            let name = extends.get("service").unwrap_or(extends).as_str()?;
            let base = by_name.get(self.read(name).ok()?.as_ref())?;
            Some((service.node.id(), **base))
        };
        extends.into_iter().filter_map(base).collect()
    }

    /// Whether a build reads nothing of this host.
    pub fn is_remote(&self, build: Node<'_>) -> bool {
        let context = build.get("context").unwrap_or(build);
        let reads_more = ["additional_contexts", "secrets", "ssh"]
            .iter()
            .any(|key| build.get(key).is_some());
        let context = context.as_str().and_then(|text| self.read(text).ok());
        !reads_more && context.is_some_and(|context| is_remote_context(&context))
    }

    /// `COMPOSE_PROJECT_NAME`, the text's `name`, or the directory's.
    fn project_name(&self) -> String {
        if let Some(name) = self
            .here("COMPOSE_PROJECT_NAME")
            .filter(|name| !name.is_empty())
        {
            return name;
        }
        let written = self.document.get("name").and_then(Node::as_str);
        let named = written
            .and_then(|name| self.read(name).ok())
            .map(|name| normalized_project_name(&name))
            .filter(|name| !name.is_empty());
        named.unwrap_or_else(|| {
            let dir = self.context.stack_dir.trim_end_matches('/');
            normalized_project_name(dir.rsplit('/').next().unwrap_or_default())
        })
    }
}

fn base<'a>(context: &Context<'a>) -> Base<'a> {
    Base {
        dir: context.stack_dir,
        home: context.home,
    }
}

/// As compose normalises a name: lower case, nothing but `[a-z0-9_-]`, no `_` or `-` in front.
fn normalized_project_name(name: &str) -> String {
    let kept: String = name
        .to_lowercase()
        .chars()
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
        .collect();
    kept.trim_start_matches(['_', '-']).to_owned()
}

/// A key of a service, or of the nearest one that it extends.
pub fn effective<'d>(chain: &[Service<'d>], key: &str) -> Option<Entry<'d>> {
    chain.iter().rev().find_map(|service| {
        let entry = service.node.entry(key);
        entry.filter(|entry| !entry.value.is_null())
    })
}
