//! The text that an adoption rewrites, and its rewrite.

use std::{collections::BTreeSet, mem};

use anyhow::Result;

use crate::{
    compose::Program,
    failure::Failure,
    finding::{Finding, Kind},
    observe::{self, Combined, Situation, Uncombined},
    plan::Form,
    rewrite::{
        faithful::{self, Faithful, ONE_FILE, Runs},
        literal::{self, TextEdit},
    },
    stack::{Files, FilesRead, Origins, Shell, Stack, StackText, is_same},
};

/// How a text is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By edits of the Compose file, if they are simple.
    Edited,
    /// By Compose, which resolves the files.
    Resolved,
}

/// Whether Compose may solve the problem by resolving the files.
fn may_combine(blocker: &Finding) -> bool {
    use Kind::{Internal, NotSimple, NotYaml, SeveralFiles, ShellVariable};
    matches!(
        blocker.kind,
        SeveralFiles | NotSimple | ShellVariable | NotYaml | Internal
    )
}

/// Compose reads a key in another way after it resolves the files.
pub(super) fn different(files: &str, key: &str) -> Finding {
    let message = format!(
        "Compose reads {key} differently after it combines the files of the stack ({files}) into one"
    );
    Finding::several_files(message, ONE_FILE)
}

/// The text that is rewritten: the Compose file, or one text with the meaning of several files.
pub(super) struct Texts {
    /// The files that Compose reads.
    pub(super) files: Files,
    /// The Compose files that Compose finds by itself.
    found: Vec<String>,
    /// The env files of each service, without `.env`.
    pub(super) env_files: Origins,
    pub(super) combined: Option<Combined>,
    /// The shell in which the text is read, with the name of the project.
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
        way: Way,
    ) -> Result<Self> {
        let stack = situation.stack;
        let (text, env) = (source.compose.as_str(), source.env.as_deref());
        // Portainer gives the project the name of the stack. Compose may give it another one.
        let mut named = Shell::of(stack, Some(stack.name().as_str()), |context| {
            faithful::env_files_needed(text, env, context)
        });
        if stack.started().is_some() {
            named.overrides.clear();
        }
        let (project, found) = observe::found(stack, source);
        let files = observe::files(stack, || found.clone());
        // Compose opens them all, now or for the config hashes. What they would expand to is bounded here, so nothing that reads
        // them comes before (B43).
        let mut read = stack.read_files(&files)?;
        let env_files = mem::take(&mut read.env_files_of);
        let first = faithful::rewrite(text, env, &named.context(), Runs::NONE);
        let is_other = files.compose.len() == 1 && files.compose != [stack.file()];
        let is_alone = files.compose == [stack.file()] && files.env.is_empty();
        let mut texts = Self {
            project,
            combined: None,
            files,
            found,
            env_files,
            named,
            first,
        };
        let blockers = texts.first.as_ref().err().map_or(&[][..], Vec::as_slice);
        let is_simple = way == Way::Edited && is_alone && !blockers.iter().any(may_combine);
        if !is_other && !is_simple {
            texts.combine(compose, situation, is_alone, read);
        }
        match texts.named.unreadable.take() {
            Some(error) if texts.combined.is_none() => Err(error),
            _ => Ok(texts),
        }
    }

    /// The Compose file, and its literal rewrite unless that deletes lines: Portainer may have one of them, and says the same then.
    /// None if the stack has several files.
    pub(super) fn of_file(&self, source: &StackText, stack: &Stack) -> Vec<String> {
        if self.files.compose != [stack.file()] || !self.files.env.is_empty() {
            return Vec::new();
        }
        let text = &source.compose;
        let deletes = literal::edits(text).any(|edit| matches!(edit, TextEdit::Delete(_)));
        let rewritten = (!deletes).then(|| literal::rewrite(text, stack.dir_text()));
        rewritten.into_iter().chain([text.clone()]).collect()
    }

    /// The files that were added to the stack after its containers were started. They are not read.
    pub(super) fn added(&self, stack: &Stack) -> Vec<&str> {
        let is_listed = |files: &[String], file: &String| {
            let path = stack.dir().join(file);
            let mut files = files.iter();
            files.any(|other| is_same(&stack.dir().join(other), &path))
        };
        let started = &self.files.compose;
        if !started.iter().all(|file| is_listed(&self.found, file)) {
            return Vec::new();
        }
        let found = self.found.iter();
        let added = found.filter(|file| !is_listed(started, file));
        added.map(String::as_str).collect()
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
        let combined = observe::combined(program, situation.stack, &self.files, read);
        let uncombined = match combined {
            Ok((combined, rewrite)) => {
                self.project.clone_from(&combined.project);
                self.first = Ok(rewrite);
                self.combined = Some(combined);
                return;
            }
            Err(uncombined) => uncombined,
        };
        let is = |kind| move |blocker: &Finding| blocker.kind == kind;
        if let Err(blockers) = &mut self.first
            && is_alone
            && !blockers.iter().any(is(Kind::SeveralFiles))
            && !blockers.iter().all(is(Kind::NotSimple))
        {
            // The other blockers of the Compose file say what is wrong, and where.
            blockers.retain(|blocker| blocker.kind != Kind::NotSimple);
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
            Uncombined::Different(key) => vec![different(&files, &key)],
        });
    }

    /// Whether Compose has to resolve the text, because what runs cannot be written into it simply.
    pub(super) fn is_not_simple(&self, rewrite: &Result<Faithful, Vec<Finding>>) -> bool {
        let is_not_simple = |blocker: &Finding| blocker.kind == Kind::NotSimple;
        let blockers = rewrite.as_ref().err().into_iter();
        self.combined.is_none() && self.first.is_ok() && blockers.flatten().any(is_not_simple)
    }

    pub(super) fn form(&self) -> Form {
        match self.combined {
            Some(_) => Form::Resolved,
            None => Form::Edited,
        }
    }

    pub(super) fn text<'t>(&'t self, source: &'t StackText) -> &'t str {
        let combined = self.combined.as_ref();
        combined.map_or(&source.compose, |combined| &combined.written.text)
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
