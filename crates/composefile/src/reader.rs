//! What a Compose file means in its directory: variables, paths, env files, `extends`, the name of the project.

use std::{
    borrow::Cow,
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
};

use crate::{
    document::{Document, Node, NodeMap, NodeSet},
    interpolate::{InterpolateError, Lookup, interpolate},
    path::Base,
    services::{Service, is_remote_context, services},
};

/// The texts of env files other than `.env` and of label files, by absolute path; `None` for a file that does not exist.
pub type EnvFiles = BTreeMap<String, Option<String>>;

/// The names of files that Compose finds without `--file`. Only with these it reads an override file, too.
pub const DEFAULT_FILES: [&str; 4] = [
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
];

/// The names of the override files. Compose reads the first that exists.
pub const OVERRIDE_FILES: [&str; 4] = [
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
];

/// The variables that tell Compose which files to read.
pub const NAME_FILES: [&str; 3] = [
    "COMPOSE_FILE",
    "COMPOSE_PATH_SEPARATOR",
    "COMPOSE_ENV_FILES",
];

/// Where a Compose file is, and who runs Compose.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The project directory, absolute.
    pub stack_dir: &'a str,
    /// The name of the Compose file in the directory.
    pub file: &'a str,
    /// The name of the env file in the directory that Compose reads for variables. Usually `.env`.
    pub env_file: &'a str,
    /// The home directory of the user who runs Compose, for `~`.
    pub home: Option<&'a str>,
    /// The variables of the shell that runs Compose.
    pub shell: Lookup<'a>,
    /// The name of the project, if it is passed with `--project-name`.
    pub project: Option<&'a str>,
    /// The override files in the directory, which Compose reads in addition.
    pub overrides: &'a [String],
    /// The texts of other env files and label files. A file that cannot be read is not in the map.
    pub env_files: &'a EnvFiles,
}

/// A Compose file with everything that its meaning depends on.
pub struct Reader<'d, 'a> {
    /// The parsed file.
    pub document: &'d Document<'d>,
    /// The services of the file.
    pub services: Vec<Service<'d>>,
    /// The service that each service extends, by the node of the latter.
    bases: OnceCell<NodeMap<Service<'d>>>,
    /// The name of the project.
    pub project: String,
    /// Where the file is.
    pub context: &'a Context<'a>,
    /// The path of the env file that Compose reads for variables, absolute.
    pub own_env: String,
    /// The text of that env file; `None` if it does not exist.
    pub env_text: Option<&'a str>,
    /// The variables of that env file.
    pub env: &'a [(String, String)],
    /// The variables of that env file, by name.
    pub variables: HashMap<&'a str, &'a str>,
}

impl<'d, 'a> Reader<'d, 'a> {
    /// Reads a file in its context. `env` holds the variables that [`dotenv::parse`](crate::dotenv::parse) returns for
    /// `env_text`.
    pub fn new(
        document: &'d Document<'d>,
        env_text: Option<&'a str>,
        env: &'a [(String, String)],
        context: &'a Context<'a>,
    ) -> Self {
        let variables = env.iter();
        let mut reader = Self {
            document,
            services: services(document),
            bases: OnceCell::new(),
            project: String::new(),
            context,
            own_env: base(context).local(context.env_file),
            env_text,
            env,
            variables: variables
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect(),
        };
        reader.project = reader.project_name();
        reader
    }

    /// The value of a variable. The shell takes precedence over the env file.
    pub fn here(&self, name: &str) -> Option<String> {
        if name == "COMPOSE_PROJECT_NAME" && !self.project.is_empty() {
            return Some(self.project.clone());
        }
        let env = || self.variables.get(name).map(|&value| value.to_owned());
        (self.context.shell)(name).or_else(env)
    }

    /// Replaces the variables in a text.
    pub fn read<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, InterpolateError> {
        interpolate(text, &|name| self.here(name))
    }

    /// The files that Compose reads for the project: those of `COMPOSE_FILE`, or this file and an override.
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

    /// The files of `COMPOSE_FILE`. Empty if this file can only have been passed with `--file`: its name is not a default
    /// name and not in `COMPOSE_FILE`.
    pub fn listed_files(&self) -> Vec<String> {
        let written = self.here("COMPOSE_FILE").unwrap_or_default();
        let separator = self.here("COMPOSE_PATH_SEPARATOR");
        let files: Vec<_> = written
            .split(separator.as_deref().unwrap_or(":"))
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

    /// The directories that paths are resolved against.
    pub fn base(&self) -> Base<'a> {
        base(self.context)
    }

    /// The text of an env file; `None` if it does not exist.
    pub fn env_file_text(&self, file: &str) -> Option<&'a str> {
        if file == self.own_env {
            return self.env_text;
        }
        self.context.env_files.get(file)?.as_deref()
    }

    /// The services that a service extends, the outermost base first, then the service itself.
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
        let by_name: HashMap<_, _> = services.map(|service| (service.name, service)).collect();
        let base = |service: &Service<'d>| {
            let extends = service.node.get("extends")?;
            let name = extends.get("service").unwrap_or(extends).as_str()?;
            let base = by_name.get(self.read(name).ok()?.as_ref())?;
            let is_here = extends.get("file").is_none();
            is_here.then_some((service.node.id(), **base))
        };
        self.services.iter().filter_map(base).collect()
    }

    /// Whether a build reads nothing from this host.
    pub fn is_remote(&self, build: Node<'_>) -> bool {
        let reads_more = ["additional_contexts", "secrets", "ssh"]
            .iter()
            .any(|key| build.get(key).is_some());
        let written = build.get("context").unwrap_or(build).as_str();
        let context = written.and_then(|text| self.read(text).ok());
        !reads_more && context.is_some_and(|context| is_remote_context(&context))
    }

    /// The given name, or `COMPOSE_PROJECT_NAME`, or the `name` of the file, or the name of the directory.
    fn project_name(&self) -> String {
        let given = self.context.project.filter(|name| !name.is_empty());
        let set = || self.here("COMPOSE_PROJECT_NAME");
        let passed = given.map(str::to_owned).or_else(set);
        if let Some(name) = passed.filter(|name| !name.is_empty()) {
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

/// Normalizes the name of a project as Compose does: lower case, only `[a-z0-9_-]`, no `_` or `-` at the start.
///
/// ```
/// use composefile::reader::normalized_project_name;
///
/// assert_eq!(normalized_project_name("_My Stack.2"), "mystack2");
/// ```
pub fn normalized_project_name(name: &str) -> String {
    let kept: String = name
        .to_lowercase()
        .chars()
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
        .collect();
    kept.trim_start_matches(['_', '-']).to_owned()
}
