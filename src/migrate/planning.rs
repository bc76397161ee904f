//! What a migration says before it writes: its plan, with everything that will be lost and every reason to refuse.

use std::{
    net::{TcpListener, UdpSocket},
    os::unix::fs::MetadataExt,
};

use anyhow::Result;

use super::{Consent, OnRefusal, Procedure, Rewrite, observe::Before};
use crate::{
    failure::Failure,
    plan::{self, Facts, Loss, PathKind, Plan, RecordFacts, Refusal, Removal},
    rewrite::faithful::env_files_needed,
    stack::{Shell, Source},
};
use composefile::document::{Document, ParseError};

impl Procedure<'_, '_> {
    /// The losses, refusals and warnings that follow from what was observed. Reads nothing but env files and the kinds of
    /// paths.
    pub(super) fn plan(
        &self,
        source: &Source,
        document: Result<&Document, &ParseError>,
        rewrite: &Rewrite,
        before: &Before,
    ) -> Plan {
        let (stack, base_url) = (self.m.stack, self.m.base_url);
        let env = source.env.as_deref();
        let shell = Shell::of(stack, |context| {
            env_files_needed(&source.compose, env, context)
        });
        let details = &before.details;
        plan::migration(&Facts {
            name: stack.name().as_str(),
            project: &stack.name().portainer_name(),
            dir: stack.dir_text(),
            tool: self.m.tool,
            endpoint: self.m.endpoint,
            portainer_port: base_url.is_this_host().then(|| base_url.port()),
            source: plan::Source {
                compose: &source.compose,
                document,
                env,
            },
            sent: rewrite.sent(),
            context: &shell.context(),
            listed: before.all.as_deref(),
            containers: details.containers.as_deref(),
            others: before.others.as_deref(),
            images: &details.images,
            networks: details.networks.as_ref(),
            volumes: details.volumes.as_ref(),
            changes: &details.changes,
            record: before.record.as_ref().map(|record| RecordFacts {
                record,
                contents: before
                    .contents
                    .as_ref()
                    .map(|(contents, _)| (contents.text.as_str(), contents.env.as_slice())),
            }),
            rejection: details.rejection.as_ref(),
            environment: before.environment.clone(),
            lookup: &path_kind,
            is_same_file: &is_same_file,
            port_in_use: &port_in_use,
            removal: match self.m.grace {
                Some(_) => Removal::Stop,
                None => Removal::Kill,
            },
        })
    }

    /// Reports the plan. Stops if it refuses the run, with every reason at once, unless `--force` overrides it.
    pub(super) fn say(&mut self, rewrite: &Rewrite, plan: &Plan) -> Result<()> {
        for warning in &rewrite.env.warnings {
            self.run
                .warn(format!("{}/.env: {warning}", self.m.stack.dir().display()));
        }
        let name = self.m.stack.name();
        let is_adopted = |loss: &Loss| matches!(loss, Loss::Adopted { .. });
        let adopts = plan.losses.iter().any(is_adopted);
        if self.m.grace.is_some() && adopts {
            self.run.warn(format!(
                "--grace has no effect on the containers of project {}: Portainer stops those that it recreates, within their own stop grace periods",
                name.portainer_name()
            ));
        }
        for warning in &plan.warnings {
            self.run.warn(warning);
        }
        if self.m.on_refusal == OnRefusal::Stop && !plan.refusals.is_empty() {
            return Err(refused(&plan.refusals, name.as_str()).into());
        }
        if !plan.losses.is_empty() {
            let lines: Vec<_> = plan
                .losses
                .iter()
                .map(|loss| format!("  - {loss}"))
                .collect();
            let verb = if adopts { "may" } else { "will" };
            self.run
                .warn(format!("the stack {verb} lose:\n{}", lines.join("\n")));
        }
        for refusal in &plan.refusals {
            let places = refusal
                .details()
                .map_or(String::new(), |places| format!("\n{places}"));
            self.run
                .warn(format!("{refusal}; continuing because of --force{places}"));
        }
        Ok(())
    }

    /// Asks before the first destructive act if something will be lost (B08). Declining stops the run. Returns whether it
    /// asked: what was read before may then be out of date.
    pub(super) fn ask(&mut self, plan: &Plan, before: &Before) -> Result<bool> {
        let Consent::Ask(ask) = self.m.consent else {
            return Ok(false);
        };
        if !plan.destroys || (plan.losses.is_empty() && before.is_known()) {
            return Ok(false);
        }
        let name = self.m.stack.name();
        if !ask(&format!("migrate {name}?")) {
            return Err(Failure::new("canceled: the migration was not confirmed")
                .hint("to migrate without this question, pass --yes")
                .into());
        }
        if before.all.is_some() && !self.is_unchanged(before) {
            return Err(Failure::new(
                "the stack's containers changed before you answered, or can no longer be listed",
            )
            .hint("run the command again: it shows what will be lost now")
            .into());
        }
        Ok(true)
    }
}

/// The error that lists every refusal. A single one is the message itself.
fn refused(refusals: &[Refusal], stack: &str) -> Failure {
    if let [refusal] = refusals {
        let hint = refusal.hint(stack);
        let hint = if hint.contains("--force") {
            hint
        } else {
            format!("{hint}; --force overrides this check")
        };
        let failure = Failure::new(format!("refusing to migrate: {refusal}")).hint(hint);
        return match refusal.details() {
            Some(details) => failure.details(details),
            None => failure,
        };
    }
    let reasons = refusals.iter().map(|refusal| {
        let details = refusal.details().unwrap_or_default();
        let details = details.replace('\n', "\n    ");
        let details = match details.as_str() {
            "" => String::new(),
            details => format!("\n    {details}"),
        };
        format!("  - {refusal}{details}\n    hint: {}", refusal.hint(stack))
    });
    let reasons: Vec<String> = reasons.collect();
    Failure::new(format!(
        "refusing to migrate for {} reasons",
        refusals.len()
    ))
    .details(reasons.join("\n"))
    .hint("fix all of them, or pass --force to migrate anyway")
}

/// Whether a port of this host cannot be bound because something uses it. Other errors do not tell.
fn port_in_use(address: &str, port: u16, protocol: &str) -> bool {
    let bound = match protocol {
        "tcp" => TcpListener::bind((address, port)).map(drop),
        "udp" => UdpSocket::bind((address, port)).map(drop),
        _ => return false,
    };
    bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
}

/// Whether two paths of this host are the same file, following symbolic links. `None` if one may not be looked at.
fn is_same_file(one: &str, other: &str) -> Option<bool> {
    let identity = |path: &str| match std::fs::metadata(path) {
        Ok(metadata) => Some(Some((metadata.dev(), metadata.ino()))),
        Err(error) if is_absent(&error) => Some(None),
        Err(_) => None,
    };
    let one = identity(one)?;
    Some(one == identity(other)? && one.is_some())
}

/// What is at a path of this host, following symbolic links.
fn path_kind(path: &str) -> PathKind {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => PathKind::Directory,
        Ok(_) => PathKind::File,
        Err(error) if is_absent(&error) => PathKind::Missing,
        Err(_) => PathKind::Unknown,
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}
