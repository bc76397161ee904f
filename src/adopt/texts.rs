//! The text that an adoption rewrites, and its rewrite.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::{
    compose::{NOT_COMBINED, Program},
    failure::Failure,
    finding::{Finding, Kind},
    observe::{self, Combined, Situation, Uncombined},
    rewrite::faithful::{self, Faithful, ONE_FILE, Runs},
    stack::{Files, FilesRead, Shell, StackText},
};

/// Whether Compose may solve the problem by combining the files into one text.
fn may_combine(blocker: &Finding) -> bool {
    use Kind::{Internal, NotYaml, SeveralFiles, Shared, ShellVariable, Unwritable};
    matches!(
        blocker.kind,
        SeveralFiles | Shared | ShellVariable | Unwritable | NotYaml | Internal
    )
}

/// The text that is rewritten: the Compose file, or one text with the meaning of several files.
pub(super) struct Texts {
    /// The files that Compose reads.
    pub(super) files: Files,
    pub(super) combined: Option<Combined>,
    /// The shell in which the text is read.
    pub(super) shell: Shell,
    /// The same, with the name of the project.
    named: Shell,
    /// The name that Compose gives the project, if the files can be parsed.
    pub(super) project: Option<String>,
    /// The first rewrite, which ignores the running containers.
    pub(super) first: Result<Faithful, Vec<Finding>>,
}

impl Texts {
    pub(super) fn new(
        compose: &dyn Program,
        situation: &Situation,
        source: &StackText,
    ) -> Result<Self> {
        let stack = situation.stack;
        let (text, env) = (source.compose.as_str(), source.env.as_deref());
        // Portainer gives the project the name of the stack. Compose may give it another one.
        let name = Some(stack.name().as_str());
        let shell_of = |name| {
            Shell::of(stack, name, |context| {
                faithful::env_files_needed(text, env, context)
            })
        };
        let named = shell_of(name);
        let found = || Files {
            compose: faithful::compose_files(text, env, &named.context())
                .unwrap_or_else(|| vec![stack.file().to_owned()]),
            env: Vec::new(),
        };
        let files = stack.started().cloned().unwrap_or_else(found);
        // Compose opens them all, now or for the config hashes. What they would expand to is bounded here, so nothing that reads
        // them comes before (B43).
        let read = stack.read_files(&files)?;
        let first = faithful::rewrite(text, env, &named.context(), &Runs::default());
        let is_other = files.compose.len() == 1 && files.compose != [stack.file()];
        let is_alone = files.compose == [stack.file()] && files.env.is_empty();
        let mut texts = Self {
            shell: shell_of(None),
            project: {
                let alone = Shell::of(stack, None, |_| Vec::new());
                faithful::project_name(text, env, &alone.context())
            },
            combined: None,
            files,
            named,
            first,
        };
        let blockers = texts.first.as_ref().err().map_or(&[][..], Vec::as_slice);
        if !is_other && (!is_alone || blockers.iter().any(may_combine)) {
            texts.combine(compose, situation, is_alone, read);
        }
        match texts.named.unreadable.take() {
            Some(error) if texts.combined.is_none() => Err(error),
            _ => Ok(texts),
        }
    }

    /// Lets the Compose program of the host combine the files. If that fails, the blockers say why.
    fn combine(
        &mut self,
        program: &dyn Program,
        situation: &Situation,
        is_alone: bool,
        read: FilesRead,
    ) {
        let files = [self.files.compose.as_slice(), &self.files.env]
            .concat()
            .join(", ");
        let combined = if situation.compose.is_rehearsed {
            let failure = Failure::new(NOT_COMBINED)
                .hint("plan and adopt combine them with the Compose program of this host");
            Err(Uncombined::Failed(failure.into()))
        } else {
            observe::combined(program, situation.stack, &self.files, read)
        };
        let uncombined = match combined {
            Ok((combined, rewrite)) => {
                self.project.clone_from(&combined.project);
                self.shell = combined.shell(None);
                self.first = Ok(rewrite);
                self.combined = Some(combined);
                return;
            }
            Err(uncombined) => uncombined,
        };
        let is_several = |blocker: &Finding| blocker.kind == Kind::SeveralFiles;
        let blockers = self.first.as_ref().err();
        if is_alone && !blockers.is_some_and(|blockers| blockers.iter().any(is_several)) {
            // The blockers of the Compose file itself say what is wrong, and where.
            return;
        }
        self.first = Err(match uncombined {
            Uncombined::Blocked(blockers) => blockers,
            Uncombined::Failed(error) => {
                let hint = Failure::hint_of(&error).unwrap_or(
                    "run `docker compose config` in the stack's directory as its owner: it must succeed",
                );
                let message = format!("cannot combine the files of the stack ({files}): {error:#}");
                vec![Finding::several_files(message, hint)]
            }
            Uncombined::Different(key) => vec![Finding::several_files(
                format!(
                    "Compose reads {key} differently after it combines the files of the stack ({files}) into one"
                ),
                ONE_FILE,
            )],
        });
    }

    pub(super) fn text<'t>(&'t self, source: &'t StackText) -> &'t str {
        let combined = self.combined.as_ref();
        combined.map_or(&source.compose, |combined| &combined.written.text)
    }

    pub(super) fn env<'t>(&'t self, source: &'t StackText) -> Option<&'t str> {
        match &self.combined {
            Some(combined) => Some(&combined.written.env),
            None => source.env.as_deref(),
        }
    }

    /// Rewrites the text without the names of those `volumes` that cannot be written into it.
    pub(super) fn rewrite_without(
        &self,
        source: &StackText,
        runs: &Runs,
        volumes: &BTreeSet<String>,
    ) -> (Runs, Result<Faithful, Vec<Finding>>) {
        let mut unnamed: BTreeSet<String> = runs.services.keys().cloned().collect();
        for service in runs.services.keys() {
            unnamed.remove(service);
            if self
                .rewrite(source, &runs.without(&unnamed, volumes))
                .is_err()
            {
                unnamed.insert(service.clone());
            }
        }
        let runs = runs.without(&unnamed, volumes);
        let rewrite = self.rewrite(source, &runs);
        (runs, rewrite)
    }

    pub(super) fn rewrite(
        &self,
        source: &StackText,
        runs: &Runs,
    ) -> Result<Faithful, Vec<Finding>> {
        match &self.combined {
            Some(combined) => combined.rewrite(runs),
            None => faithful::rewrite(
                &source.compose,
                source.env.as_deref(),
                &self.named.context(),
                runs,
            ),
        }
    }
}
