//! Works out what an adoption would do. Reads only: it holds no client that can write.

use std::{collections::BTreeMap, sync::OnceLock, thread};

use anyhow::Result;
use composefile::document::Document;

use crate::{
    compose::{Compose, Input},
    failure::Failure,
    observe::{Before, Depth, Situation, mask},
    plan::{self, Adoption, AdoptionFacts, Blocker, ComposeVersion, Hashes, Keep, Removal, Sent},
    portainer::Payload,
    rewrite::{
        env::stack_env,
        faithful::{self, Faithful, Runs},
    },
    snapshot::Inspected,
    stack::{Shell, Source, Stack},
    text::Mask,
};

/// A stack, its faithful rewrite, and what adopting it would do.
pub struct Prepared {
    /// The files on disk.
    pub source: Source,
    /// What is sent, or everything that prevents the rewrite.
    pub rewrite: Result<Faithful, Vec<faithful::Blocker>>,
    /// What exists now.
    pub before: Before,
    /// What an adoption would do.
    pub plan: Adoption,
    /// Whether the rewrite has more than the files give: what only the containers have.
    pub has_what_runs: bool,
    /// The config hashes, or why they are unknown.
    hashes: Result<Hashes, String>,
    tool: String,
}

impl Prepared {
    /// Reads the stack's files, Portainer and the engine. What runs can change the text: it is rewritten a second time
    /// then. Fails if the files or Portainer's list of stacks cannot be read.
    pub fn new(situation: &Situation, keep: Keep) -> Result<Self> {
        let stack = situation.stack;
        let source = stack.read()?;
        let records = situation.records()?;
        let (text, env) = (source.compose.as_str(), source.env.as_deref());
        let shell = Shell::of(stack, |context| {
            faithful::env_files_needed(text, env, context)
        });
        if let Some(error) = shell.unreadable {
            return Err(error);
        }
        let document = Document::parse(text);
        let first = faithful::rewrite(text, env, &shell.context(), &Runs::default());
        let mask = mask(&source, sent(&first).env);
        let before = situation.observe(records, sent(&first), &mask, Depth::Everything);
        let host = situation.compose.compose().map(|compose| Hasher {
            compose,
            stack,
            containers: containers(&before, situation.tool),
            mask: &mask,
        });
        let host = host
            .as_ref()
            .ok_or("this host has no Compose program to compare the configurations");
        // Asked once: the files on disk do not depend on what is sent.
        let on_disk = OnceLock::new();
        let plan_of = |rewrite: &Result<Faithful, Vec<faithful::Blocker>>, runs: &Runs| {
            let hashes = host.map_err(str::to_owned).and_then(|host| {
                if rewrite.is_err() {
                    return Err("nothing can be sent".to_owned());
                }
                let version = host.version()?;
                let (on_disk, sent) = side_by_side(
                    || on_disk.get_or_init(|| host.on_disk()).clone(),
                    || host.sent(sent(rewrite)),
                );
                Ok(Hashes {
                    version,
                    on_disk: on_disk?,
                    sent: sent?,
                })
            });
            let (plan, runs) = situation.with_facts(
                &source,
                document.as_ref(),
                sent(rewrite),
                Removal::Stop,
                &before,
                |facts| {
                    let input = AdoptionFacts {
                        facts,
                        file: stack.file(),
                        rewrite: rewrite.as_ref().err().map_or(&[], Vec::as_slice),
                        runs,
                        hashes: hashes.as_ref().map_err(String::as_str),
                        portainer_version: before.portainer_version.as_deref(),
                    };
                    let mut plan = plan::adoption(&input);
                    let project = rewrite.as_ref().ok().map(|one| one.project.as_str());
                    let blockers = plan::blocking(&input, &plan, project, keep);
                    plan.blockers.extend(blockers);
                    let runs = plan::runs(&input, &plan, keep);
                    (plan, runs)
                },
            );
            (plan, runs, hashes)
        };
        let (plan, (runs, blockers), hashes) = plan_of(&first, &Runs::default());
        let has_what_runs = !runs.is_empty();
        let (rewrite, mut plan, hashes) = if runs.is_empty() {
            (first, plan, hashes)
        } else {
            let rewrite = faithful::rewrite(text, env, &shell.context(), &runs);
            let (plan, _, hashes) = plan_of(&rewrite, &runs);
            (rewrite, plan, hashes)
        };
        plan.blockers.extend(blockers);
        // A failed adoption restores containers.
        if let Err(error) = situation.engine.require_api() {
            let hint = Failure::hint_of(&error).unwrap_or_default();
            plan.blockers.push(Blocker::new(format!("{error:#}"), hint));
        }
        Ok(Self {
            source,
            rewrite,
            before,
            plan,
            has_what_runs,
            hashes,
            tool: situation.tool.to_owned(),
        })
    }

    /// Whether a container certainly has the configuration of the files on disk.
    pub(super) fn is_up_to_date(&self, container: Inspected, service: &str) -> bool {
        let label = container.compose_label(&self.tool, "config-hash");
        let hashes = self.hashes.as_ref().ok();
        let hash = hashes.and_then(|hashes| hashes.on_disk.get(service));
        label.is_some() && label == hash.map(String::as_str)
    }

    /// Whether the plan, what will be sent, and the containers are the same as in `other`.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let states = |of: &Self| -> Vec<(String, String)> {
            let all = of.before.all.iter().flatten();
            all.map(|one| (one.id.clone(), one.state.clone())).collect()
        };
        let sent = |of: &Self| {
            let rewrite = of.rewrite.as_ref().ok()?;
            Some((rewrite.text.clone(), rewrite.env.clone()))
        };
        self.plan == other.plan
            && sent(self) == sent(other)
            && states(self) == states(other)
            && self.before.record == other.before.record
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
fn sent(rewrite: &Result<Faithful, Vec<faithful::Blocker>>) -> Sent<'_> {
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
        let service = container.compose_label(tool, "service");
        if let Some(service) = service.filter(|_| !container.is_one_off(tool)) {
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

/// Asks the Compose program of this host for config hashes.
struct Hasher<'a> {
    compose: &'a Compose,
    stack: &'a Stack,
    /// See [`containers`].
    containers: BTreeMap<String, String>,
    mask: &'a Mask,
}

impl Hasher<'_> {
    /// The hashes of the files on disk.
    fn on_disk(&self) -> Result<BTreeMap<String, String>, String> {
        let file = [self.stack.file()];
        self.ask(&Input::OnDisk {
            project: self.stack.name().as_str(),
            dir: self.stack.dir(),
            // Compose finds these files, and their overrides, by itself.
            files: if self.stack.is_found() { &[] } else { &file },
        })
    }

    /// The hashes of what is sent.
    fn sent(&self, sent: Sent) -> Result<BTreeMap<String, String>, String> {
        self.ask(&Input::Sent {
            project: self.stack.name().as_str(),
            text: sent.text,
            env: &stack_env(sent.env),
        })
    }

    fn ask(&self, input: &Input) -> Result<BTreeMap<String, String>, String> {
        let hashes = self.compose.hashes(input, &self.containers, self.mask);
        hashes.map_err(|error| format!("{error:#}"))
    }

    fn version(&self) -> Result<ComposeVersion, String> {
        let version = self.compose.version().to_string();
        let parsed = version.parse();
        parsed.map_err(|()| format!("the version of Compose on this host is unknown: {version}"))
    }
}

/// The results of two functions that wait for something.
fn side_by_side<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        // A panic in the thread is a bug: continue it here.
        let one = one.join();
        (
            one.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            other,
        )
    })
}
