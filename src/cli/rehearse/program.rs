//! The Compose program of an embedded host.
//!
//! The hashes of what it prints are those of the labels of that world. Whether it accepts a text, the program of this host says,
//! if there is one: it knows more than the world.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result};
use rehearsal::{COMPOSE_VERSION, ComposeFiles, Rehearsal, config_of_files};
use serde_json::Value;

use crate::{
    compose::{
        Answer, ComposeVersion, ENV_FILE, HOME, Input, Installation, Profiles, Program, Read,
        Rejection, Values, compose_file,
    },
    text::{Mask, excerpt},
};

/// The exit status of Compose for a text that it rejects.
const REJECTED: i32 = 15;

/// The folder of what is sent.
const FOLDER: &str = "/stack";

/// The Compose of an embedded host.
pub(super) struct Embedded {
    rehearsal: Arc<Rehearsal>,
    version: ComposeVersion,
    host: Installation,
    /// The directory of the stack that is rehearsed, if it is not an example.
    original: Option<PathBuf>,
}

impl Embedded {
    pub(super) fn new(
        rehearsal: Arc<Rehearsal>,
        host: Installation,
        original: Option<PathBuf>,
    ) -> Result<Self> {
        Ok(Self {
            version: ComposeVersion::parse(COMPOSE_VERSION)
                .context("the simulated Compose has no version")?,
            rehearsal,
            host,
            original,
        })
    }

    /// The configuration, or the message that Compose prints.
    fn ask_world(
        &self,
        input: &Input,
        profiles: Profiles,
        values: Values,
    ) -> Result<Value, String> {
        let (mut sent, mut env_files) = (BTreeMap::new(), Vec::new());
        let mut add =
            |name: &str, text: &str| sent.insert(format!("{FOLDER}/{name}"), text.to_owned());
        let mut folder = FOLDER;
        let files = match *input {
            Input::Sent { text, .. } => {
                add(&compose_file(0), text);
                vec![compose_file(0)]
            }
            Input::Several {
                texts, env_files, ..
            } => {
                for (name, text) in env_files {
                    add(name, text);
                }
                let names: Vec<String> = (0..texts.len()).map(compose_file).collect();
                for (name, text) in names.iter().zip(texts) {
                    add(name, text);
                }
                names
            }
            Input::OnDisk {
                dir,
                files,
                env_files: given,
                ..
            } => {
                folder = dir.to_str().ok_or("the path is not valid UTF-8")?;
                env_files.extend_from_slice(given);
                files.to_vec()
            }
        };
        if let Input::Sent { env, .. } | Input::Several { env, .. } = *input
            && !env.is_empty()
        {
            add(ENV_FILE, env);
            env_files.push(ENV_FILE.to_owned());
        }
        let is_on_disk = matches!(input, Input::OnDisk { .. });
        let mut shell = BTreeMap::new();
        if profiles == Profiles::All {
            shell.insert("COMPOSE_PROFILES".to_owned(), "*".to_owned());
        }
        self.rehearsal.world(|world| {
            let on_host = |path: &str| {
                world
                    .read_host(path)
                    .filter(|_| is_on_disk)
                    .map(str::to_owned)
            };
            config_of_files(&ComposeFiles {
                project: input.project(),
                folder,
                files: &files,
                env_files: &env_files,
                shell: &shell,
                interpolates: values == Values::Resolved,
                home: if is_on_disk { &world.home } else { HOME },
                read: &|path| sent.get(path).cloned().or_else(|| on_host(path)),
            })
        })
    }
}

impl Program for Embedded {
    fn name(&self) -> String {
        format!("the simulated Compose {}", self.version)
    }

    fn version(&self) -> ComposeVersion {
        self.version
    }

    fn ask(
        &self,
        input: &Input,
        profiles: Profiles,
        values: Values,
        mask: &Mask,
    ) -> Result<Answer> {
        let rejected = |message: String| {
            let message = excerpt(&mask.hide(&message));
            Answer::Rejected(Rejection::new(self, REJECTED, &message))
        };
        if let (Input::Sent { .. }, Ok(program)) = (input, self.host.compose()) {
            let mut input = *input;
            if let Input::Sent { dir, .. } = &mut input {
                *dir = self.original.as_deref();
            }
            if let Answer::Rejected(rejection) = program.ask(&input, profiles, values, mask)? {
                return Ok(Answer::Rejected(rejection));
            }
        }
        let folder = (!matches!(input, Input::OnDisk { .. })).then(|| FOLDER.to_owned());
        let read = self.ask_world(input, profiles, values);
        Ok(read.map_or_else(rejected, |config| {
            Answer::Read(Read {
                config,
                printed_by: self.version,
                folder,
            })
        }))
    }
}
