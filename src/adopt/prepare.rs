//! Works out what an adoption would do. Reads only: it holds no client that can write.

use std::{collections::BTreeMap, thread};

use anyhow::Result;
use composefile::{document::Document, reader::DEFAULT_FILES};

use crate::{
    compose::Input,
    observe::{Before, Depth, Situation, mask},
    plan::{self, Adoption, AdoptionFacts, Hashes, Removal, Sent},
    portainer::Payload,
    rewrite::{
        env::stack_env,
        faithful::{self, Blocker, Faithful},
    },
    snapshot::Inspected,
    stack::{Shell, Source},
    text::Mask,
};

/// A stack, its faithful rewrite, and what adopting it would do.
pub struct Prepared {
    /// The files on disk.
    pub source: Source,
    /// What is sent, or everything that prevents the rewrite.
    pub rewrite: Result<Faithful, Vec<Blocker>>,
    /// What exists now.
    pub before: Before,
    /// What an adoption would do.
    pub plan: Adoption,
}

impl Prepared {
    /// Reads the stack's files, Portainer and the engine. Fails if the files or Portainer's list of stacks cannot be
    /// read.
    pub fn new(situation: &Situation) -> Result<Self> {
        let (stack, name) = (situation.stack, situation.stack.name());
        let source = stack.read()?;
        let records = situation.portainer.records(
            situation.endpoint,
            name.as_str(),
            &name.portainer_name(),
        )?;
        let (text, env) = (source.compose.as_str(), source.env.as_deref());
        let shell = Shell::of(stack, |context| {
            faithful::env_files_needed(text, env, context)
        });
        if let Some(error) = shell.unreadable {
            return Err(error);
        }
        let rewrite = faithful::rewrite(text, env, &shell.context());
        let sent = sent(&rewrite);
        let mask = mask(&source, sent.env);
        let before = situation.observe(records, sent, &mask, Depth::Everything);
        let document = Document::parse(text);
        let hashes = hashes(situation, sent, &containers(&before, situation.tool), &mask);
        let plan = situation.with_facts(
            &source,
            document.as_ref(),
            sent,
            Removal::Stop,
            &before,
            |facts| {
                plan::adoption(&AdoptionFacts {
                    facts,
                    file: stack.file(),
                    rewrite: rewrite.as_ref().err().map_or(&[], Vec::as_slice),
                    hashes: hashes.as_ref().map_err(String::as_str),
                    portainer_version: before.portainer_version.as_deref(),
                })
            },
        );
        Ok(Self {
            source,
            rewrite,
            before,
            plan,
        })
    }

    /// The body of the create, if the stack can be rewritten.
    pub fn payload<'a>(&'a self, name: &'a str) -> Option<Payload<'a>> {
        let rewrite = self.rewrite.as_ref().ok()?;
        Some(Payload {
            name,
            text: &rewrite.text,
            env: &rewrite.env,
        })
    }
}

/// What is sent; nothing if the rewrite is blocked.
fn sent(rewrite: &Result<Faithful, Vec<Blocker>>) -> Sent<'_> {
    match rewrite {
        Ok(rewrite) => Sent {
            text: &rewrite.text,
            env: &rewrite.env,
        },
        Err(_) => Sent { text: "", env: &[] },
    }
}

/// The ID of the container of each service that has exactly one.
fn containers(before: &Before, tool: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for container in before.details.containers.iter().flatten().map(Inspected) {
        let label = |name: &str| container.label(&format!("com.{tool}.compose.{name}"));
        let is_one_off = label("oneoff").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if let Some(service) = label("service").filter(|_| !is_one_off) {
            let ids = found.entry(service.to_owned()).or_default();
            ids.push(container.id().to_owned());
        }
    }
    found.retain(|_, ids| ids.len() == 1);
    let found = found.into_iter();
    found
        .filter_map(|(service, mut ids)| Some((service, ids.pop()?)))
        .collect()
}

/// The config hashes of the stack on disk and of what is sent, or why they are unknown.
fn hashes(
    situation: &Situation,
    sent: Sent,
    containers: &BTreeMap<String, String>,
    mask: &Mask,
) -> Result<Hashes, String> {
    let Some(compose) = situation.compose.compose() else {
        return Err("this host has no Compose program to compare the configurations".to_owned());
    };
    let version = compose.version().to_string();
    let Ok(version) = version.parse() else {
        return Err(format!(
            "the version of Compose on this host is unknown: {version}"
        ));
    };
    let (stack, env) = (situation.stack, stack_env(sent.env));
    let project = stack.name().as_str();
    // Compose finds these files, and their overrides, by itself.
    let file = [stack.file()];
    let files = if DEFAULT_FILES.contains(&stack.file()) {
        &[][..]
    } else {
        &file[..]
    };
    let on_disk = Input::OnDisk {
        project,
        dir: stack.dir(),
        files,
    };
    let sent = Input::Sent {
        project,
        text: sent.text,
        env: &env,
    };
    let ask = |input: &Input| {
        let hashes = compose.hashes(input, containers, mask);
        hashes.map_err(|error| format!("{error:#}"))
    };
    let (on_disk, sent) = thread::scope(|scope| {
        let on_disk = scope.spawn(|| ask(&on_disk));
        let sent = ask(&sent);
        let on_disk = on_disk.join();
        // A panic in the thread is a bug: continue it here.
        (
            on_disk.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            sent,
        )
    });
    Ok(Hashes {
        version,
        on_disk: on_disk?,
        sent: sent?,
    })
}
