//! Asks the Compose program of this host what an adoption compares: config hashes, and configurations.

use std::{collections::BTreeMap, sync::OnceLock};

use anyhow::Result;
use serde_json::Value;

use crate::{
    compose::{Input, Profiles, Program, Values},
    model::{ConfigHashes, Variable},
    observe::{Before, Situation},
    parallel::side_by_side,
    plan::{ComposeVersion, Hashes, Sent},
    rewrite::{combine::differences, env::stack_env, faithful::Faithful},
    stack::{Files, Stack},
    text::Mask,
};

/// What an adoption sends.
pub(super) fn sent_of(rewrite: &Faithful) -> Sent<'_> {
    Sent::new(&rewrite.text, &rewrite.env)
}

/// The ID of the container of each service that has exactly one.
fn containers(before: &Before, tool: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for container in before.inspected() {
        let service = container.compose_label(tool, "service");
        if let Some(service) = service.filter(|_| !container.is_one_off(tool)) {
            let several = found.entry(service.to_owned()).and_modify(|id| *id = None);
            several.or_insert_with(|| Some(container.id().to_owned()));
        }
    }
    let found = found.into_iter();
    found
        .filter_map(|(service, id)| Some((service, id?)))
        .collect()
}

/// Asks the Compose program of this host for config hashes.
pub(super) struct Hasher<'a> {
    compose: &'a dyn Program,
    /// The hashes of the files on disk, which do not depend on what is sent.
    on_disk: OnceLock<Result<ConfigHashes, String>>,
    stack: &'a Stack,
    files: &'a Files,
    /// See [`containers`].
    containers: BTreeMap<String, String>,
    mask: &'a Mask,
}

impl<'a> Hasher<'a> {
    /// Fails if there is no program to ask.
    pub(super) fn new(
        situation: &Situation<'a>,
        files: &'a Files,
        before: &Before,
        mask: &'a Mask,
    ) -> Result<Self, String> {
        // For all stacks of a host, it would run several times for each.
        if situation.host.is_some() {
            return Err("the configurations were not compared".to_owned());
        }
        let compose = situation.compose.compose();
        Ok(Self {
            compose: compose.map_err(|none| format!("{none} to compare the configurations"))?,
            stack: situation.stack,
            files,
            containers: containers(before, situation.tool),
            mask,
            on_disk: OnceLock::new(),
        })
    }

    /// The hashes of the files on disk and of what is sent.
    pub(super) fn both(&self, sent: Sent) -> Result<Hashes, String> {
        let version = self.version()?;
        let (on_disk, sent) = side_by_side(
            || self.on_disk.get_or_init(|| self.on_disk()).clone(),
            || self.ask(&self.input(sent, &stack_env(sent.env))),
        );
        Ok(Hashes {
            version,
            on_disk: on_disk?,
            sent: sent?,
        })
    }

    /// The hashes of the files on disk.
    fn on_disk(&self) -> Result<ConfigHashes, String> {
        self.ask(&Input::OnDisk {
            project: Some(self.stack.name().as_str()),
            dir: self.stack.dir(),
            // By itself, Compose may find another file.
            files: &self.files.compose,
            env_files: &self.files.env,
        })
    }

    fn input<'i>(&'i self, sent: Sent<'i>, env: &'i str) -> Input<'i> {
        Input::Sent {
            dir: Some(self.stack.dir()),
            project: self.stack.name().as_str(),
            text: sent.text,
            env,
        }
    }

    /// Several Compose files of a repository, and the env files that they name, as one, as Compose resolves them.
    pub(super) fn merged(
        &self,
        texts: &[String],
        env_files: &[(String, String)],
        env: &[Variable],
    ) -> Result<String, String> {
        let input = Input::Several {
            dir: Some(self.stack.dir()),
            project: self.stack.name().as_str(),
            texts,
            env_files,
            env: &stack_env(env),
        };
        let config = self.config(&input).map(|config| config.to_string());
        config.map_err(|error| format!("{error:#}"))
    }

    /// The configuration that Compose resolves.
    fn config(&self, input: &Input) -> Result<Value> {
        let (profiles, values) = (Profiles::Active, Values::Resolved);
        self.compose.config(input, profiles, values, self.mask)
    }

    /// The keys of each service whose values differ between two texts, as far as Compose tells.
    pub(super) fn different(&self, one: Sent, other: Sent) -> BTreeMap<String, Vec<String>> {
        let config = |sent: Sent| {
            let env = stack_env(sent.env);
            self.config(&self.input(sent, &env)).ok()
        };
        let (one, other) = side_by_side(|| config(one), || config(other));
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if let (Some(one), Some(other)) = (one, other) {
            for (path, ..) in differences(&one, &other) {
                if let [section, service, key, ..] = path.as_slice()
                    && section == "services"
                {
                    let keys = found.entry(service.clone()).or_default();
                    if !keys.contains(key) {
                        keys.push(key.clone());
                    }
                }
            }
        }
        found
    }

    fn ask(&self, input: &Input) -> Result<ConfigHashes, String> {
        let hashes = self.compose.hashes(input, &self.containers, self.mask);
        hashes.map_err(|error| format!("{error:#}"))
    }

    fn version(&self) -> Result<ComposeVersion, String> {
        let version = self.compose.version().to_string();
        let unknown = || format!("the version of Compose on this host is unknown: {version}");
        ComposeVersion::parse(&version).ok_or_else(unknown)
    }
}
