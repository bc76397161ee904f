//! Works out what an adoption would do. Reads only: it holds no client that can write.

use std::{collections::BTreeMap, sync::OnceLock};

use anyhow::Result;
use composefile::document::Document;

use super::git::{self, FromGit};
use crate::{
    compose::{Input, Profiles, Program, Values},
    failure::Failure,
    model::{ConfigHashes, Container},
    observe::{self, Before, Combined, Depth, Situation, Uncombined, mask},
    parallel::side_by_side,
    plan::{self, Adoption, AdoptionFacts, ComposeVersion, Hashes, Keep, Removal, Sent},
    portainer::Payload,
    rewrite::{
        combine::differences,
        env::stack_env,
        faithful::{self, Blocker, Faithful, NO_COMPOSE, Reason, Runs, Weight},
    },
    snapshot::{Inspected, LastSent},
    stack::{Files, FilesRead, Shell, Stack, StackText},
    text::{Mask, numbered, printable},
};

/// A stack, its faithful rewrite, and what adopting it would do.
pub struct Prepared {
    /// The Compose file and `.env` on disk.
    pub source: StackText,
    /// The Compose files that were combined into one text; empty if the Compose file is edited in place.
    pub combined: Vec<String>,
    /// What is sent, or everything that prevents the rewrite.
    pub rewrite: Result<Faithful, Vec<Blocker>>,
    /// The name that Compose gives the project of the files, if they can be parsed.
    pub project: Option<String>,
    /// What exists now.
    pub before: Before,
    /// What an adoption would do.
    pub plan: Adoption,
    /// What Portainer would deploy from Git, if that was asked for and nothing else prevents it.
    pub git: Option<FromGit>,
    /// The config hashes, or why they are unknown.
    hashes: Result<Hashes, String>,
}

impl Prepared {
    /// Reads the stack's files, Portainer and the engine. What runs can change the text: it is rewritten a second time
    /// then. Fails if the files or Portainer's list of stacks cannot be read.
    pub fn new(situation: &Situation, keep: Keep) -> Result<Self> {
        let stack = situation.stack;
        // A name in the repository would be recreated once, and be of this host alone.
        let keep = Keep {
            anonymous: keep.anonymous || situation.git.is_some(),
            ..keep
        };
        let source = stack.read_as_compose()?;
        let records = situation.records()?;
        let texts = Texts::new(situation, &source)?;
        let document = Document::parse(texts.text(&source));
        let mask = mask(&source, sent(&texts.first).env);
        let before = situation.observe(records, sent(&texts.first), &mask, Depth::Everything);
        let host = program(situation).map(|compose| Hasher {
            compose,
            stack,
            files: &texts.files,
            containers: containers(&before, situation.tool),
            mask: &mask,
            on_disk: OnceLock::new(),
        });
        let host = host.as_ref().map_err(String::as_str);
        let plan_of = |sent: Sent, problems: &[Blocker], runs: &Runs| {
            let hashes = match host {
                _ if !problems.is_empty() => Err("nothing can be sent".to_owned()),
                Ok(host) => host.both(sent),
                Err(why) => Err(why.to_owned()),
            };
            let (plan, runs) = situation.with_facts(
                plan::Source {
                    compose: texts.text(&source),
                    document: document.as_ref(),
                    env: texts.env(&source),
                },
                &texts.shell,
                sent,
                Removal::ByPortainer,
                &before,
                |facts| {
                    let input = AdoptionFacts {
                        facts,
                        file: stack.file(),
                        files: &texts.files.compose,
                        rewrite: problems,
                        runs,
                        hashes: hashes.as_ref().map_err(String::as_str),
                    };
                    let mut plan = plan::adoption(&input);
                    let blockers = plan::blocking(&input, &plan, texts.project.as_deref(), keep);
                    plan.blockers.extend(blockers);
                    let runs = plan::runs(&input, &plan, keep);
                    (plan, runs)
                },
            );
            (plan, runs, hashes)
        };
        let plan_of_rewrite = |rewrite: &Result<Faithful, Vec<Blocker>>, runs: &Runs| {
            let problems = rewrite.as_ref().err().map_or(&[][..], Vec::as_slice);
            plan_of(sent(rewrite), problems, runs)
        };
        let (plan, (runs, blockers), hashes) = plan_of_rewrite(&texts.first, &Runs::default());
        let (rewrite, mut plan, mut hashes) = if runs.is_empty() {
            (texts.first.clone(), plan, hashes)
        } else {
            let rewrite = texts.rewrite(&source, &runs);
            let (plan, _, hashes) = plan_of_rewrite(&rewrite, &runs);
            (rewrite, plan, hashes)
        };
        plan.blockers.extend(blockers);
        let mut git = None;
        if let (Some(_), Ok(rewrite)) = (situation.git, &rewrite) {
            plan.blockers.extend(git::blockers(&before, &hashes));
            if plan.blockers.is_empty() {
                let plan_of = |sent: Sent<'_>| {
                    let (plan, _, hashes) = plan_of(sent, &[], &Runs::default());
                    (plan, hashes)
                };
                let keys = |sent: Sent<'_>| match host {
                    Ok(host) => host.different(sent_of(rewrite), sent),
                    Err(_) => BTreeMap::new(),
                };
                let judged = git::judged(situation, (rewrite, &plan), &mask, plan_of, keys)?;
                (git, plan, hashes) = judged;
            }
        }
        let containers = before.details.containers.as_deref().unwrap_or_default();
        situation.lose_foreign(
            &before,
            &plan.touched(containers),
            &mut plan.losses,
            &mut plan.warnings,
        );
        // A failed adoption restores containers.
        if let Err(error) = situation.engine.require_api() {
            let hint = Failure::hint_of(&error).unwrap_or_default();
            plan.blockers
                .push(plan::Blocker::new(format!("{error:#}"), hint));
        }
        Ok(Self {
            combined: match &texts.combined {
                Some(combined) => combined.files(&texts.files),
                None => Vec::new(),
            },
            project: texts.project,
            source,
            rewrite,
            before,
            plan,
            git,
            hashes,
        })
    }

    /// The text that Portainer has, if the stack is there.
    pub fn deployed(&self) -> Option<&str> {
        let contents = self.before.contents.as_ref();
        contents.map(|(contents, _)| contents.text.as_str())
    }

    /// The text that what is sent is compared with: what Portainer has, or else the Compose file.
    pub fn compared(&self) -> &str {
        self.deployed().unwrap_or(&self.source.compose)
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
            // A restart loop continues (B28).
            let state = |one: &Container| one.state.replace("restarting", "running");
            all.map(|one| (one.id.clone(), state(one))).collect()
        };
        let sent = |of: &Self| {
            let rewrite = of.rewrite.as_ref().ok()?;
            Some((rewrite.text.clone(), rewrite.env.clone()))
        };
        let git = self.git.as_ref().zip(other.git.as_ref());
        self.plan == other.plan
            && git.is_none_or(|(one, other)| one.is_same(other))
            && sent(self) == sent(other)
            && states(self) == states(other)
            && self.before.record == other.before.record
    }

    /// The patch for the repository, if it deploys something else than what runs.
    pub fn patch(&self) -> Option<String> {
        self.git.as_ref()?.patch.clone()
    }

    /// What could not be checked, and what may go wrong with an adoption that is not blocked.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        let plan = &self.plan;
        let doubts = plan.warnings.iter().filter(|_| plan.blockers.is_empty());
        self.before.warnings.iter().chain(doubts)
    }

    /// What the user should know before the adoption. `file` is the name of the Compose file.
    pub fn notices(&self, file: &str) -> Vec<String> {
        let notices = self.rewrite.iter().flat_map(|rewrite| &rewrite.notices);
        let important = notices.filter(|notice| notice.weight == Weight::Important);
        important
            .map(|notice| printable(&notice.in_file(file)).into_owned())
            .collect()
    }

    /// What counts as last sent if Portainer has it already (B22).
    pub fn sent(&self, tool: &str) -> Option<LastSent> {
        let (contents, _) = self.before.contents.as_ref()?;
        let sent = LastSent::of(&contents.text, &contents.env);
        let mut services = self.plan.services.iter();
        let hashes = if services.all(|one| one.fate.is_unchanged()) {
            let all = self.before.all.iter().flatten();
            let hashes = all.filter_map(|one| one.compose_label(tool, "config-hash"));
            Some(hashes.map(str::to_owned).collect())
        } else {
            self.before.last_sent.hashes().cloned()
        };
        Some(sent.deployed_as(hashes))
    }

    /// What is sent for the stack `name`. Fails with every blocker at once.
    pub fn payload<'a>(&'a self, name: &'a str) -> Result<Payload<'a>> {
        if let (Some(git), []) = (&self.git, self.plan.blockers.as_slice()) {
            return Ok(git.payload(name));
        }
        match (&self.rewrite, self.plan.blockers.as_slice()) {
            (Ok(rewrite), []) => Ok(Payload {
                name,
                text: &rewrite.text,
                env: &rewrite.env,
                git: None,
            }),
            (_, blockers) => Err(Failure::new(format!("cannot adopt {name}"))
                .details(numbered(blockers))
                .hint("fix the problems above, then run the command again")
                .into()),
        }
    }
}

/// Whether Compose may solve the problem by combining the files into one text.
fn may_combine(blocker: &Blocker) -> bool {
    matches!(
        blocker.reason,
        Reason::SeveralFiles
            | Reason::Shared
            | Reason::ShellVariable
            | Reason::Unwritable
            | Reason::NotYaml
            | Reason::Internal
    )
}

/// The text that is rewritten: the Compose file, or one text with the meaning of several files.
struct Texts {
    /// The files that Compose reads.
    files: Files,
    combined: Option<Combined>,
    /// The shell in which the text is read.
    shell: Shell,
    /// The same, with the name of the project.
    named: Shell,
    /// The name that Compose gives the project, if the files can be parsed.
    project: Option<String>,
    /// The first rewrite, which ignores the running containers.
    first: Result<Faithful, Vec<Blocker>>,
}

impl Texts {
    fn new(situation: &Situation, source: &StackText) -> Result<Self> {
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
        let first = faithful::rewrite(text, env, &named.context(), &Runs::default());
        let found = || Files {
            compose: faithful::compose_files(text, env, &named.context())
                .unwrap_or_else(|| vec![stack.file().to_owned()]),
            env: Vec::new(),
        };
        let files = stack.started().cloned().unwrap_or_else(found);
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
        // Compose opens them all, now or for the config hashes.
        let read = stack.read_files(&texts.files)?;
        let blockers = texts.first.as_ref().err().map_or(&[][..], Vec::as_slice);
        if !is_other && (!is_alone || blockers.iter().any(may_combine)) {
            texts.combine(situation, is_alone, read);
        }
        match texts.named.unreadable.take() {
            Some(error) if texts.combined.is_none() => Err(error),
            _ => Ok(texts),
        }
    }

    /// Lets the Compose program of the host combine the files. If that fails, the blockers say why.
    fn combine(&mut self, situation: &Situation, is_alone: bool, read: FilesRead) {
        let files = [self.files.compose.as_slice(), &self.files.env]
            .concat()
            .join(", ");
        let program = match situation.compose.compose() {
            Ok(program) => program,
            Err(none) => {
                if self.first.is_ok() {
                    let message =
                        format!("the containers were started from several files: {files}");
                    self.first = Err(vec![Blocker::several_files(message, NO_COMPOSE)]);
                }
                let mut blockers: Vec<_> =
                    self.first.as_mut().err().into_iter().flatten().collect();
                blockers.retain(|one| none.failed() && one.reason == Reason::SeveralFiles);
                for blocker in blockers {
                    blocker.hint = format!("{none}: fix that, then run the command again");
                }
                return;
            }
        };
        let combined = observe::combined(program, situation.stack, &self.files, read);
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
        let is_several = |blocker: &Blocker| blocker.reason == Reason::SeveralFiles;
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
                let message =
                    format!("Compose cannot combine the files of the stack ({files}): {error:#}");
                vec![Blocker::several_files(message, hint)]
            }
            Uncombined::Different(key) => vec![Blocker::several_files(
                format!(
                    "Compose reads {key} differently after it combines the files of the stack ({files}) into one"
                ),
                "write one Compose file for which `docker compose config` prints the same, then pass it with --file",
            )],
        });
    }

    fn text<'t>(&'t self, source: &'t StackText) -> &'t str {
        let combined = self.combined.as_ref();
        combined.map_or(&source.compose, |combined| &combined.text)
    }

    fn env<'t>(&'t self, source: &'t StackText) -> Option<&'t str> {
        match &self.combined {
            Some(combined) => Some(&combined.env),
            None => source.env.as_deref(),
        }
    }

    fn rewrite(&self, source: &StackText, runs: &Runs) -> Result<Faithful, Vec<Blocker>> {
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

/// What is sent; nothing if the rewrite is blocked.
fn sent(rewrite: &Result<Faithful, Vec<Blocker>>) -> Sent<'_> {
    match rewrite {
        Ok(rewrite) => sent_of(rewrite),
        Err(_) => Sent { text: "", env: &[] },
    }
}

fn sent_of(rewrite: &Faithful) -> Sent<'_> {
    Sent {
        text: &rewrite.text,
        env: &rewrite.env,
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

/// The Compose program to ask for config hashes. For all stacks of a host, it would run several times for each.
fn program<'a>(situation: &Situation<'a>) -> Result<&'a dyn Program, String> {
    if situation.host.is_some() {
        return Err("the configurations were not compared".to_owned());
    }
    let compose = situation.compose.compose();
    compose.map_err(|none| format!("{none} to compare the configurations"))
}

/// Asks the Compose program of this host for config hashes.
struct Hasher<'a> {
    compose: &'a dyn Program,
    /// The hashes of the files on disk, which do not depend on what is sent.
    on_disk: OnceLock<Result<ConfigHashes, String>>,
    stack: &'a Stack,
    files: &'a Files,
    /// See [`containers`].
    containers: BTreeMap<String, String>,
    mask: &'a Mask,
}

impl Hasher<'_> {
    /// The hashes of the files on disk and of what is sent.
    fn both(&self, sent: Sent) -> Result<Hashes, String> {
        let version = self.version()?;
        let (on_disk, sent) = side_by_side(
            || self.on_disk.get_or_init(|| self.on_disk()).clone(),
            || self.sent(sent),
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

    /// The hashes of what is sent.
    fn sent(&self, sent: Sent) -> Result<ConfigHashes, String> {
        self.ask(&self.input(sent, &stack_env(sent.env)))
    }

    fn input<'i>(&'i self, sent: Sent<'i>, env: &'i str) -> Input<'i> {
        Input::Sent {
            dir: Some(self.stack.dir()),
            project: self.stack.name().as_str(),
            text: sent.text,
            env,
        }
    }

    /// The keys of each service whose values differ between two texts, as far as Compose tells.
    fn different(&self, one: Sent, other: Sent) -> BTreeMap<String, Vec<String>> {
        let config = |sent: Sent| {
            let env = stack_env(sent.env);
            let input = self.input(sent, &env);
            let (profiles, values) = (Profiles::Active, Values::Resolved);
            self.compose
                .config(&input, profiles, values, self.mask)
                .ok()
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
        let parsed = version.parse();
        parsed.map_err(|()| format!("the version of Compose on this host is unknown: {version}"))
    }
}
