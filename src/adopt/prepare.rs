//! Works out what an adoption would do. Reads only: it holds no client that can write.

use std::collections::BTreeSet;

use anyhow::Result;
use composefile::document::Document;

use super::{
    asking::{self, Asking, sent_of},
    git::{self, FromGit},
    texts::{self, Texts, Way},
};
use crate::{
    failure::Failure,
    finding::Finding,
    model::{Container, Variable, compose_label},
    observe::{Depth, Situation, mask, with_hint},
    parallel::side_by_side,
    plan::{
        self, AdoptFlags, Before, Facts, Form, InPortainer, Keep, Parsed, Plan, Projects, Sent,
        Unread,
    },
    portainer::Payload,
    restore,
    rewrite::{
        env::contract_env,
        faithful::{Faithful, Runs, written_services},
    },
    snapshot::LastSent,
    stack::{Stack, StackText},
    text::{command, listed, numbered, printable, said},
};

/// A stack, its faithful rewrite, and what adopting it would do.
pub struct Prepared {
    /// The stack's directory.
    dir: String,
    /// The Compose file and `.env` on disk.
    pub source: StackText,
    /// The Compose files that were combined into one text; empty if the Compose file is edited in place.
    pub combined: Vec<String>,
    /// What is sent, or everything that prevents the rewrite.
    pub rewrite: Result<Faithful, Vec<Finding>>,
    /// What runs and was written into the text.
    pub(super) runs: Runs,
    /// What exists now.
    pub before: Before,
    /// What an adoption would do.
    pub plan: Plan,
    /// What Portainer would deploy from Git, if that was asked for and nothing else prevents it.
    pub git: Option<FromGit>,
    /// What Compose reads.
    pub(super) projects: Projects,
}

impl Prepared {
    /// Reads the stack's files, Portainer and the engine. What runs can change the text: it is rewritten a second time
    /// then. Fails if the files or Portainer's list of stacks cannot be read, or if this host has no Compose program (B46).
    pub fn new(situation: &Situation, flags: AdoptFlags) -> Result<Self> {
        Self::with(situation, flags, Way::Edited)
    }

    fn with(situation: &Situation, flags: AdoptFlags, way: Way) -> Result<Self> {
        let (stack, compose) = (situation.stack, situation.compose.compose()?);
        // A name in the repository would be recreated once, and be of this host alone.
        let anonymous = flags.keep.anonymous || situation.git.is_some();
        let keep = Keep {
            anonymous,
            ..flags.keep
        };
        let source = stack.read_own()?;
        let records = situation.records()?;
        let texts = Texts::new(compose, situation, &source, way)?;
        let mask = mask(&source, sent(&texts.first).env);
        situation.engine.hide(&mask);
        let (mut before, on_disk) = side_by_side(
            || situation.observe(records, Depth::Everything),
            || asking::on_disk(compose, situation, &texts.files, &mask),
        );
        let asking = Asking::new(compose, situation, &before, on_disk, &mask);
        let expected = texts.first.as_ref().map(|first| match texts.form() {
            Form::Edited => asking.expected(sent_of(first)),
            _ => asking.projects(Ok(sent_of(first))),
        });
        if let Ok(Projects {
            sent: Ok(project), ..
        }) = &expected
        {
            situation.read_images(&mut before, project.images());
        }
        let planner = Planner {
            situation,
            source: &source,
            of_file: texts.of_file(&source, stack),
            parsed: Parsed::new(texts.text(&source)),
            texts: &texts,
            asking,
            keep,
        };
        let (mut rewrite, runs, blockers) =
            planner.write_what_runs(&before, expected.as_ref().ok());
        if texts.is_not_simple(&rewrite) {
            return Self::with(situation, flags, Way::Resolved);
        }
        let problems = rewrite.as_ref().err().map_or(&[][..], Vec::as_slice);
        let (mut plan, mut projects) =
            planner.plan(&before, to_send(&rewrite), problems, &runs, false);
        plan.blockers.extend(blockers);
        let judged = rewrite.as_ref().ok();
        if let Some(key) = judged.and_then(|rewrite| planner.asking.unintended(rewrite, &runs)) {
            if texts.combined.is_none() && way == Way::Edited {
                return Self::with(situation, flags, Way::Resolved);
            }
            let files = texts.files.compose.join(", ");
            plan.blockers.push(texts::different(&files, &key));
        }
        let mut git = None;
        if plan.is_left_to_git() {
            // Nothing is sent, so nothing prevents it.
            plan.blockers.clear();
        }
        if let (Some(repository), Ok(rewrite)) = (situation.git, &mut rewrite) {
            rewrite.notices.clear();
            plan.blockers
                .extend(git::blockers(situation, &before, repository, &projects));
            if plan.blockers.is_empty() {
                let read = git::read(situation, &before, rewrite, &planner.asking)?;
                if let Ok(project) = planner.asking.read(read.read_as()) {
                    situation.read_images(&mut before, project.images());
                }
                let plan_of = |sent: Sent<'_>, redeploys| {
                    planner.plan(&before, Ok(sent), &[], Runs::NONE, redeploys)
                };
                let best = (&*rewrite, &plan);
                (git, plan, projects) = git::judged(
                    situation,
                    &before,
                    read,
                    best,
                    &mask,
                    plan_of,
                    &planner.asking,
                );
            }
        }
        if !plan.is_left_to_git() && situation.git.is_none() {
            plan.warn_all(not_read(stack, &texts));
        }
        complete(&mut plan, &runs, (situation, &source), &before);
        let combined = texts.combined.as_ref().map(|one| one.files(&texts.files));
        let prepared = Self {
            dir: stack.dir_text().to_owned(),
            combined: combined.unwrap_or_default(),
            source,
            rewrite,
            runs,
            before,
            plan,
            git,
            projects,
        };
        Ok(prepared.finished(situation, flags, &mask))
    }

    /// The text that Portainer has, if the stack is there.
    pub fn deployed(&self) -> Option<&str> {
        let contents = self.before.remote.contents.as_ref();
        contents.map(|(contents, _)| contents.text.as_str())
    }

    /// The text that what is sent is compared with: what Portainer has, or else the Compose file.
    pub fn compared(&self) -> &str {
        self.deployed().unwrap_or(&self.source.compose)
    }

    /// Whether a container certainly has the configuration of the files on disk.
    pub(super) fn is_up_to_date(&self, container: &Container, service: &str, tool: &str) -> bool {
        // The files of this host need not be those of the repository any more.
        let is_from_git = self.plan.redeploys();
        !is_from_git && self.projects.is_as_on_disk(container, service, tool)
    }

    /// What of the plan, of what will be sent, and of the containers is not as it was shown.
    pub(super) fn changed_since(&self, shown: &Self) -> Option<String> {
        let states = |of: &Self| -> Vec<(String, String)> {
            let all = of.before.host.listed().iter();
            all.map(Container::id_and_state).collect()
        };
        let sent = |of: &Self| {
            let rewrite = of.rewrite.as_ref().ok()?;
            Some((rewrite.text.clone(), rewrite.env.clone()))
        };
        let plan = |of: &Self| {
            let mut plan = of.plan.without_files();
            // What can be read may change at any time.
            let observed = &of.before.warnings;
            plan.warnings.retain(|finding| !observed.contains(finding));
            plan
        };
        let mut git = self.git.iter().zip(&shown.git);
        let differs = [
            (sent(self) != sent(shown), "the files"),
            (
                git.any(|(now, before)| !now.is_same(before)),
                "the repository",
            ),
            (states(self) != states(shown), "the containers"),
            (
                self.before.remote.record != shown.before.remote.record,
                "the Portainer stack",
            ),
        ];
        let changed = differs.into_iter().filter(|(is_changed, _)| *is_changed);
        let changed: Vec<&str> = changed.map(|(_, what)| what).collect();
        if changed.is_empty() && plan(self) == plan(shown) {
            return None;
        }
        Some(match changed.as_slice() {
            [] => "the plan".to_owned(),
            changed => listed(changed),
        })
    }

    /// This text and these variables as what was last sent, with the variables that only containers have (B22).
    pub(super) fn last_sent(&self, text: &str, env: &[Variable]) -> LastSent {
        let whole = self.git.as_ref().map(FromGit::whole);
        let text = whole.as_deref().unwrap_or(text);
        let mut sent = LastSent::of(text, env).made_in(&self.dir);
        sent.variables_of_containers = self.runs.variables();
        sent.volumes = self.runs.named_volumes();
        sent.left_anonymous.clone_from(&self.runs.left_anonymous);
        sent
    }

    /// What the plan says that Portainer's Compose reads: of a Git stack, everything as if it was in one folder.
    pub(super) fn sends<'s>(&'s self, payload: &'s Payload) -> Sent<'s> {
        let (text, env) = (payload.text, payload.env);
        self.git
            .as_ref()
            .map_or(Sent { text, env }, FromGit::read_as)
    }

    /// What counts as last sent if Portainer has it already (B22).
    pub fn sent(&self, tool: &str) -> Option<LastSent> {
        let (contents, standing) = self.before.remote.contents.as_ref()?;
        if standing.git.is_some() {
            return None;
        }
        let mut sent = self.last_sent(&contents.text, &contents.env);
        if let (InPortainer::UpToDate, Ok(own)) = (self.plan.in_portainer, &self.rewrite) {
            // It may have another name of the project.
            sent = sent.and(&self.last_sent(&own.text, &own.env));
        }
        let hashes = if self
            .plan
            .services
            .iter()
            .all(|service| service.fate.is_unchanged())
        {
            let all = self.before.host.listed().iter();
            let hashes = all.filter_map(|container| container.compose_label(tool, "config-hash"));
            Some(hashes.map(str::to_owned).collect())
        } else {
            // Of another text, they say nothing.
            let last = &self.before.last_sent;
            let is_last = last.has(&contents.text, &contents.env);
            last.hashes.clone().filter(|_| is_last)
        };
        Some(sent.deployed_as(hashes))
    }

    /// What is sent for the stack `name`. Fails with every blocker at once.
    pub fn payload<'a>(&'a self, name: &'a str) -> Result<Payload<'a>> {
        match (&self.git, &self.rewrite, self.plan.blockers.as_slice()) {
            (Some(git), _, []) => Ok(git.payload(name)),
            (None, Ok(rewrite), []) => Ok(Payload::new(name, &rewrite.text, &rewrite.env)),
            (.., blockers) => Err(Failure::new(format!("cannot adopt {name}"))
                .details(numbered(blockers))
                .hint("fix the problems above, then run the command again")
                .into()),
        }
    }
}

/// What a plan does not say by itself: volumes without names, and a Git stack that does not run.
fn warnings(plan: &Plan, runs: &Runs, situation: &Situation, before: &Before) -> Vec<String> {
    let unnamed: Vec<_> = runs
        .unnamed
        .iter()
        .map(|service| printable(service))
        .collect();
    let unnamed = (!unnamed.is_empty()).then(|| {
        format!(
            "the anonymous volumes of {} get no names: Portainer may replace them with empty ones later",
            listed(&unnamed)
        )
    });
    let redeploy = "redeploy the stack in Portainer, or adopt it with --git again";
    let left = if before.host.inspected().any(Container::is_running) {
        (!plan.by_hand.is_empty()).then(|| format!("its containers were restored from another commit: to keep them, revert the commit in the repository; to deploy the commit again, {redeploy}"))
    } else {
        let restore = command(&["restore", situation.stack.name().as_str()]);
        Some(format!(
            "no container runs: {redeploy}; for what ran before: {restore}"
        ))
    };
    let left = left.filter(|_| plan.is_left_to_git() && situation.git.is_none());
    unnamed.into_iter().chain(left).collect()
}

/// Says which files were added to the stack after its containers were started.
fn not_read(stack: &Stack, texts: &Texts) -> Option<String> {
    let added = texts.added(stack);
    let are = said(&added, "is")?;
    let them = if added.len() == 1 { "it" } else { "them" };
    Some(format!(
        "{are} not read: the containers were started without {them}; to use {them}, run `docker compose up -d` in {} first",
        stack.dir_text()
    ))
}

/// The volumes that may stay without a name: those that do not exist yet, and those that the text in Portainer does not name.
fn dispensable(runs: &Runs, before: &Before) -> BTreeSet<String> {
    let mut volumes = missing(runs, before);
    if let Some((contents, _)) = &before.remote.contents {
        let all = runs
            .services
            .values()
            .flat_map(|runs| runs.volumes.values());
        volumes.extend(all.filter(|name| !contents.text.contains(*name)).cloned());
    }
    volumes
}

/// The volumes that the adoption has to create.
pub(super) fn missing(runs: &Runs, before: &Before) -> BTreeSet<String> {
    let named = runs
        .services
        .values()
        .flat_map(|runs| runs.volumes.values());
    let created = named.filter(|name| runs.created.contains(*name));
    let new = created.filter(|name| !before.host.has_volume(name));
    new.cloned().collect()
}

/// Plans a stack whose files were read.
struct Planner<'a> {
    situation: &'a Situation<'a>,
    source: &'a StackText,
    /// See [`Texts::of_file`].
    of_file: Vec<String>,
    parsed: Parsed<'a>,
    texts: &'a Texts,
    asking: Asking<'a>,
    keep: Keep,
}

impl Planner<'_> {
    fn facts<'f>(
        &'f self,
        before: &'f Before,
        text: (Sent<'f>, Option<&'f Document<'f>>),
        projects: &'f Projects,
        runs: &'f Runs,
    ) -> Facts<'f> {
        let facts = self.situation.facts(&self.parsed, text, projects, before);
        let env = contract_env(self.source.env.as_deref().unwrap_or_default()).variables;
        let is_known = before.host.is_known();
        let record = facts
            .record
            .map(|record| record.of_adoption(&self.of_file, &env, is_known));
        Facts {
            form: self.texts.form(),
            files: &self.texts.files.compose,
            env_files: &self.texts.env_files,
            named: self.texts.project.as_deref(),
            keep: self.keep,
            runs,
            record,
            ..facts
        }
    }

    /// What sending a text would do.
    fn plan(
        &self,
        before: &Before,
        sent: Result<Sent, Unread>,
        problems: &[Finding],
        runs: &Runs,
        redeploys: bool,
    ) -> (Plan, Projects) {
        let text = sent.as_ref().map_or(Sent::new("", &[]), |sent| *sent);
        let projects = self.asking.projects(sent);
        let document = Parsed::new(text.text).document;
        let facts = Facts {
            problems,
            redeploys,
            ..self.facts(before, (text, document.as_ref()), &projects, runs)
        };
        let plan = plan::adoption(&facts);
        (plan, projects)
    }

    /// The rewrite with what only runs, that, and what prevents it. Which of it has to be in the text depends on the fates of a text
    /// without it.
    fn write_what_runs(
        &self,
        before: &Before,
        expected: Option<&Projects>,
    ) -> (Result<Faithful, Vec<Finding>>, Runs, Vec<Finding>) {
        let (texts, source) = (self.texts, self.source);
        let (rewrite, runs) = self.lengthen(before, (&texts.first, expected), Runs::NONE);
        let sent = to_send(&rewrite);
        let text = sent.as_ref().map_or(Sent::new("", &[]), |sent| *sent);
        let projects = self.asking.projects(sent);
        let document = Parsed::new(text.text).document;
        let facts = self.facts(before, (text, document.as_ref()), &projects, &runs);
        let (more, blockers) = plan::runs(&facts, &plan::fates(&facts));
        let is_complete = more.is_empty();
        let mut runs = more.with_long_binds(runs.long_binds.clone());
        if is_complete || texts.is_not_simple(&rewrite) {
            return (rewrite, runs, blockers);
        }
        let mut rewrite = texts.rewrite(source, &runs);
        let dispensable = dispensable(&runs, before);
        if rewrite.is_err() && !texts.is_not_simple(&rewrite) && !dispensable.is_empty() {
            (runs, rewrite) = texts.rewrite_without(source, &runs, &dispensable);
        }
        let projects = rewrite.as_ref().ok().map(sent_of);
        let projects = projects.map(|sent| self.asking.projects(Ok(sent)));
        (rewrite, runs) = self.lengthen(before, (&rewrite, projects.as_ref()), &runs);
        (rewrite, runs, blockers)
    }

    /// The rewrite with the bind mounts in the long syntax that keeps containers (B39). `projects` are what Compose reads, or is
    /// expected to.
    fn lengthen(
        &self,
        before: &Before,
        (rewrite, projects): (&Result<Faithful, Vec<Finding>>, Option<&Projects>),
        runs: &Runs,
    ) -> (Result<Faithful, Vec<Finding>>, Runs) {
        let unchanged = || (rewrite.clone(), runs.clone());
        let (Ok(written), Some(projects)) = (rewrite, projects) else {
            return unchanged();
        };
        let text = (sent_of(written), None);
        let mut wanted = plan::long_binds(&self.facts(before, text, projects, runs));
        wanted.extend(runs.long_binds.iter().cloned());
        while wanted != runs.long_binds {
            let runs = runs.clone().with_long_binds(wanted.clone());
            let long = match self.texts.rewrite(self.source, &runs) {
                Ok(long) => long,
                // Compose resolves the text.
                Err(blockers) if self.texts.combined.is_none() => return (Err(blockers), runs),
                Err(_) => break,
            };
            let written = written_services(&long.text, &long.env);
            let before = wanted.len();
            let is_long = |service: &String| {
                let own = written.get(service).into_iter();
                let mut mounts = own.flat_map(|own| &own.mounts);
                mounts.all(|(_, mount)| mount.creates != Some(true))
            };
            wanted.retain(is_long);
            if wanted.len() == before {
                return (Ok(long), runs);
            }
        }
        unchanged()
    }
}

/// Adds what the plan means for other stacks, and for a restore.
fn complete(
    plan: &mut Plan,
    runs: &Runs,
    (situation, source): (&Situation, &StackText),
    before: &Before,
) {
    plan.warn_all(warnings(plan, runs, situation, before));
    let containers = before.host.containers.as_deref().unwrap_or_default();
    let touched = plan.touched(containers);
    situation.lose_foreign(before, &touched, plan);
    let unrestorable = unrestorable(plan, situation, before, source);
    plan.warnings.extend(unrestorable);
    // A failed adoption restores containers.
    if let Err(error) = situation.engine.require_api() {
        plan.blockers.push(Finding::of_error(&error));
    }
}

/// What could not be restored if the deployment failed (B16). A rehearsal has not every path that containers mount.
fn unrestorable(
    plan: &Plan,
    situation: &Situation,
    before: &Before,
    source: &StackText,
) -> Option<Finding> {
    if situation.compose.is_rehearsed || plan.sends_nothing() {
        return None;
    }
    let (name, tool) = (situation.stack.name(), situation.tool);
    let projects = name.projects();
    let label = compose_label(tool, "project");
    let mut networks = before.host.networks.as_deref()?.clone();
    networks.retain(|network| {
        projects
            .iter()
            .any(|project| network["Labels"][&label] == **project)
    });
    let record = before.remote.contents.as_ref();
    let record = record.map(|(contents, _)| Sent::new(&contents.text, &contents.env));
    let file = Sent::new(&source.compose, &[]);
    let texts: Vec<Sent> = record.into_iter().chain([file]).collect();
    let containers = before.host.containers.as_deref()?;
    let needs = restore::Needs {
        engine: situation.engine,
        tool,
        containers,
        networks: &networks,
        images: &before.host.images,
    };
    match restore::check_ahead(&needs, &texts) {
        Ok(problems) if problems.is_empty() => None,
        Ok(problems) => Some(Finding::as_told(format!(
            "if the deployment fails, the stack cannot be restored completely:\n{}",
            numbered(&problems)
        ))),
        Err(error) => Some(Finding::of_stack(&with_hint(&error))),
    }
}

/// What is sent; nothing if the rewrite is blocked.
pub(super) fn sent(rewrite: &Result<Faithful, Vec<Finding>>) -> Sent<'_> {
    rewrite.as_ref().map_or(Sent::new("", &[]), sent_of)
}

/// The same, or why nothing is sent.
fn to_send(rewrite: &Result<Faithful, Vec<Finding>>) -> Result<Sent<'_>, Unread> {
    let nothing = || Unread::Unknown("nothing can be sent".to_owned());
    rewrite.as_ref().map(sent_of).map_err(|_| nothing())
}
