//! Asks the Compose program of this host what an adoption compares: what it reads in the files on disk, and in what is sent.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use crate::{
    compose::{
        ComposeVersion, Input, Profiles, Program, Project, Rejection, Values, write_omitted,
    },
    model::Variable,
    observe::{Before, Situation},
    parallel::side_by_side,
    plan::{Projects, Sent},
    rewrite::{
        combine::{differences, unintended},
        env::stack_env,
        faithful::{Faithful, Runs, written_services},
    },
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

/// Asks the Compose program of this host.
pub(super) struct Asking<'a> {
    compose: &'a dyn Program,
    version: ComposeVersion,
    /// What it prints for the files on disk.
    files: Option<Value>,
    /// What it reads in them, which does not depend on what is sent.
    on_disk: Result<Project, String>,
    /// Whether what is sent is a rewrite of files that it accepts, and not of a repository.
    accepts_files: bool,
    stack: &'a Stack,
    /// See [`containers`].
    containers: BTreeMap<String, String>,
    mask: &'a Mask,
}

/// What the Compose program of this host reads in the files of a stack on disk.
pub(super) fn on_disk(
    compose: &dyn Program,
    situation: &Situation,
    files: &Files,
    mask: &Mask,
) -> Result<Value, String> {
    let input = Input::OnDisk {
        project: Some(situation.stack.name().as_str()),
        dir: situation.stack.dir(),
        // By itself, Compose may find another file.
        files: &files.compose,
        env_files: &files.env,
    };
    let config = compose.config(&input, Profiles::Active, Values::Resolved, mask);
    config.map_err(|error| format!("{error:#}"))
}

impl<'a> Asking<'a> {
    /// `on_disk` is what it reads in the files on disk.
    pub(super) fn new(
        compose: &'a dyn Program,
        situation: &Situation<'a>,
        before: &Before,
        on_disk: Result<Value, String>,
        mask: &'a Mask,
    ) -> Self {
        let version = compose.version().release;
        let containers = containers(before, situation.tool);
        let files = on_disk.as_ref().ok().cloned();
        let on_disk = on_disk.map(|config| Project::new(&config, version, &containers, None));
        Self {
            compose,
            version,
            accepts_files: on_disk.is_ok() && situation.git.is_none(),
            files,
            on_disk,
            stack: situation.stack,
            containers,
            mask,
        }
    }

    /// What it reads in the files on disk, and in what is sent.
    pub(super) fn both(&self, sent: Sent) -> Result<Projects, String> {
        let env = stack_env(sent.env);
        let config = self.config(&self.input(sent, &env));
        let config = config.map_err(|error| format!("{error:#}"))?;
        let created = written_services(sent.text, sent.env);
        let (version, containers) = (self.version, &self.containers);
        Ok(Projects {
            on_disk: self.on_disk.clone()?,
            sent: Project::new(&config, version, containers, Some(&created)),
        })
    }

    /// Why Compose rejects what is sent, if it does. There is no [`Doubt`](crate::compose::Doubt) about its version if it accepts
    /// the files that are rewritten (B06).
    pub(super) fn rejection(&self, sent: Sent) -> Option<Rejection> {
        let env = stack_env(sent.env);
        let mut rejection = self
            .compose
            .check(&self.input(sent, &env), self.mask)
            .ok()??;
        if self.accepts_files {
            rejection.doubt = None;
        }
        Some(rejection)
    }

    /// The first key that it reads in another way in a rewrite than in the files, apart from what was meant to change. The rewrite
    /// was asked about before.
    pub(super) fn unintended(&self, rewrite: &Faithful, runs: &Runs) -> Option<String> {
        let files = self.files.as_ref()?;
        let env = rewrite.stack_env();
        let sent = self.config(&self.input(sent_of(rewrite), &env)).ok()?;
        unintended(files, &sent, (self.stack.name().as_str(), &env), runs)
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
        let mut config = self.config(&input).map_err(|error| format!("{error:#}"))?;
        write_omitted(&mut config, self.version);
        Ok(config.to_string())
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
}
