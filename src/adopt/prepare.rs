//! Works out what an adoption would do. Reads only: it holds no client that can write.

use std::{collections::BTreeMap, sync::OnceLock};

use anyhow::Result;
use composefile::document::Document;

use crate::{
    compose::{Input, Program},
    failure::Failure,
    observe::{Before, Depth, Situation, mask},
    parallel::side_by_side,
    plan::{self, Adoption, AdoptionFacts, Blocker, ComposeVersion, Hashes, Keep, Removal, Sent},
    portainer::Payload,
    rewrite::{
        env::stack_env,
        faithful::{self, Faithful, Runs, Weight},
    },
    snapshot::Inspected,
    stack::{Shell, Source, Stack},
    text::{Mask, printable},
};

/// A stack, its faithful rewrite, and what adopting it would do.
pub struct Prepared {
    /// The files on disk.
    pub source: Source,
    /// What is sent, or everything that prevents the rewrite.
    pub rewrite: Result<Faithful, Vec<faithful::Blocker>>,
    /// The name that Compose gives the project of the files, if they can be parsed.
    pub project: Option<String>,
    /// What exists now.
    pub before: Before,
    /// What an adoption would do.
    pub plan: Adoption,
    /// The config hashes, or why they are unknown.
    hashes: Result<Hashes, String>,
}

impl Prepared {
    /// Reads the stack's files, Portainer and the engine. What runs can change the text: it is rewritten a second time
    /// then. Fails if the files or Portainer's list of stacks cannot be read.
    pub fn new(situation: &Situation, keep: Keep) -> Result<Self> {
        let stack = situation.stack;
        let source = stack.read_as_compose()?;
        let records = situation.records()?;
        let (text, env) = (source.compose.as_str(), source.env.as_deref());
        // Portainer gives the project the name of the stack. Compose may give it another one.
        let name = Some(stack.name().as_str());
        let shell = Shell::of(stack, name, |context| {
            faithful::env_files_needed(text, env, context)
        });
        let alone = Shell::of(stack, None, |_| Vec::new());
        let project = faithful::project_name(text, env, &alone.context());
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
        let host = host.as_ref();
        // Asked once: the files on disk do not depend on what is sent.
        let on_disk = OnceLock::new();
        let plan_of = |rewrite: &Result<Faithful, Vec<faithful::Blocker>>, runs: &Runs| {
            let hashes = host.map_err(|why| (*why).to_owned()).and_then(|host| {
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
                    let blockers = plan::blocking(&input, &plan, project.as_deref(), keep);
                    plan.blockers.extend(blockers);
                    let runs = plan::runs(&input, &plan, keep);
                    (plan, runs)
                },
            );
            (plan, runs, hashes)
        };
        let (plan, (runs, blockers), hashes) = plan_of(&first, &Runs::default());
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
            project,
            before,
            plan,
            hashes,
        })
    }

    /// Whether a container certainly has the configuration of the files on disk.
    pub(super) fn is_up_to_date(&self, container: Inspected, service: &str, tool: &str) -> bool {
        let hashes = self.hashes.as_ref();
        hashes.is_ok_and(|hashes| hashes.are_on_disk(container, service, tool))
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

    /// What the user should know before the adoption. `file` is the name of the Compose file.
    pub fn notices(&self, file: &str) -> Vec<String> {
        let notices = self.rewrite.iter().flat_map(|rewrite| &rewrite.notices);
        let important = notices.filter(|notice| notice.weight == Weight::Important);
        important
            .map(|notice| printable(&notice.in_file(file)).into_owned())
            .collect()
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
    compose: &'a dyn Program,
    stack: &'a Stack,
    /// See [`containers`].
    containers: BTreeMap<String, String>,
    mask: &'a Mask,
}

impl Hasher<'_> {
    /// The hashes of the files on disk.
    fn on_disk(&self) -> Result<BTreeMap<String, String>, String> {
        self.ask(&Input::OnDisk {
            project: self.stack.name().as_str(),
            dir: self.stack.dir(),
            // By itself, Compose may find another file. A stack with an override file is not rewritten.
            files: &[self.stack.file()],
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
