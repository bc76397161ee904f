//! Asks the Compose program of this host what an adoption compares: what it reads in the files on disk, and in what is sent.

use std::collections::BTreeMap;

use crate::{
    compose::{Input, Profiles, Program, Project, Read, Service, Values, write_omitted},
    model::Variable,
    observe::{Situation, files_on_disk, read_sent},
    parallel::side_by_side,
    plan::{Before, Projects, Sent, Unread},
    rewrite::{
        combine::{differences, unintended},
        env::stack_env,
        faithful::{Faithful, Runs, written_services},
    },
    stack::{Files, Stack},
    text::Mask,
};
use anyhow::Result;

/// What an adoption sends.
pub(super) fn sent_of(rewrite: &Faithful) -> Sent<'_> {
    Sent::new(&rewrite.text, &rewrite.env)
}

/// The ID of the container of each service that has exactly one.
fn containers(before: &Before, tool: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for container in before.host.inspected() {
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
    /// What it prints for the files on disk.
    files: Option<Read>,
    /// What it reads in them, which does not depend on what is sent.
    on_disk: Result<Project, String>,
    /// Whether what is sent is a rewrite of files that it accepts, and not of a repository.
    accepts_files: bool,
    stack: &'a Stack,
    /// The name of the project in Portainer.
    project: String,
    /// What it reads in the text of the Portainer stack that deployed what runs.
    deployed: Option<Project>,
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
) -> Result<Read, String> {
    let project = situation.stack.name().portainer_name();
    let input = files_on_disk(situation.stack, files, Some(&project));
    let read = compose.read(&input, Profiles::Active, Values::Resolved, mask);
    read.map_err(|error| format!("{error:#}"))
}

impl<'a> Asking<'a> {
    /// `on_disk` is what it reads in the files on disk.
    pub(super) fn new(
        compose: &'a dyn Program,
        situation: &Situation<'a>,
        before: &Before,
        on_disk: Result<Read, String>,
        mask: &'a Mask,
    ) -> Self {
        let containers = containers(before, situation.tool);
        let files = on_disk.as_ref().ok().cloned();
        let on_disk = on_disk.map(|read| Project::new(&read, &containers, None));
        let mut asking = Self {
            compose,
            accepts_files: on_disk.is_ok() && situation.git.is_none(),
            files,
            on_disk,
            deployed: None,
            stack: situation.stack,
            project: situation.stack.name().portainer_name(),
            containers,
            mask,
        };
        let now = before.remote.contents.as_ref();
        let now = now.map(|(contents, _)| Sent::new(&contents.text, &contents.env));
        let last = before.deployed.as_ref();
        let deployed = last
            .map(|record| Sent::new(&record.text, &record.env))
            .or(now);
        asking.deployed = deployed.and_then(|sent| asking.read(sent).ok());
        asking
    }

    /// What it reads in the files on disk, in what Portainer has, and in what is sent.
    pub(super) fn projects(&self, sent: Result<Sent, Unread>) -> Projects {
        Projects {
            on_disk: self.on_disk.clone(),
            sent: sent.and_then(|sent| self.read(sent)),
            deployed: self.deployed.clone(),
        }
    }

    /// The same, before it is asked about the rewrite: what it reads in the files. Whether the rewrite means the same is judged of
    /// the one that is sent. What is built has another image in a rewrite.
    pub(super) fn expected(&self, sent: Sent) -> Projects {
        let builds = |project: &Project| project.services.iter().any(Service::is_built);
        match &self.files {
            Some(files) if self.accepts_files && !self.on_disk.as_ref().is_ok_and(builds) => {
                let written = written_services(sent.text, sent.env);
                Projects {
                    on_disk: self.on_disk.clone(),
                    sent: Ok(Project::new(files, &self.containers, Some(&written))),
                    deployed: self.deployed.clone(),
                }
            }
            _ => self.projects(Ok(sent)),
        }
    }

    /// What it reads in a text. There is no [`Doubt`](crate::compose::Doubt) about its version if it accepts the files that are
    /// rewritten (B06).
    pub(super) fn read(&self, sent: Sent) -> Result<Project, Unread> {
        let of = (self.stack, &*self.project);
        let mut read = read_sent(self.compose, of, sent, &self.containers, self.mask);
        if let Err(Unread::Rejected(rejection)) = &mut read
            && self.accepts_files
        {
            rejection.doubt = None;
        }
        read
    }

    /// The first key that it reads in another way in a rewrite than in the files, apart from what was meant to change. The rewrite
    /// was asked about before.
    pub(super) fn unintended(&self, rewrite: &Faithful, runs: &Runs) -> Option<String> {
        let files = self.files.as_ref()?;
        let env = rewrite.stack_env();
        let sent = self.config(&self.input(sent_of(rewrite), &env)).ok()?;
        unintended(&files.config, &sent.config, (&self.project, &env), runs)
    }

    fn input<'i>(&'i self, sent: Sent<'i>, env: &'i str) -> Input<'i> {
        Input::Sent {
            dir: Some(self.stack.dir()),
            project: &self.project,
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
            project: &self.project,
            texts,
            env_files,
            env: &stack_env(env),
        };
        let mut read = self.config(&input).map_err(|error| format!("{error:#}"))?;
        write_omitted(&mut read.config, read.printed_by);
        Ok(read.config.to_string())
    }

    /// The configuration that Compose resolves.
    fn config(&self, input: &Input) -> Result<Read> {
        let (profiles, values) = (Profiles::Active, Values::Resolved);
        self.compose.read(input, profiles, values, self.mask)
    }

    /// The keys of each service whose values differ between two texts, as far as Compose tells.
    pub(super) fn different(&self, one: Sent, other: Sent) -> BTreeMap<String, Vec<String>> {
        let config = |sent: Sent| {
            let env = stack_env(sent.env);
            Some(self.config(&self.input(sent, &env)).ok()?.config)
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
