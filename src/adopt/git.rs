//! A stack from Git: what Portainer would deploy from the repository, compared with what runs (M24, M25).

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    iter,
    ops::Range,
};

use anyhow::{Context as _, Result};
use composefile::{dotenv, path::clean};

use super::asking::{Asking, sent_of};
use crate::{
    compose::{ComposeVersion, env_file},
    failure::Failure,
    finding::Finding,
    model::{Container, Variable, values},
    observe::Situation,
    plan::{Before, Fate, Plan, Projects, Request, Sent, ServicePlan},
    portainer::{Contents, Fetched, Payload, PortainerReader, Repository},
    rewrite::{
        diff::{self, Shown},
        env::stack_env,
        faithful::{Faithful, encoded},
        masked,
        portainer::STACK_ENV,
        repository::{env_files, with_env_files},
    },
    text::{Mask, command, listed, said},
};

/// What to do with a patch.
const COMMIT: &str = "apply the patch below to the repository, not to the files of this host, and commit it; then run the command again";

/// What Portainer would deploy from a repository.
pub struct FromGit {
    pub repository: Repository,
    fetched: Fetched,
    /// The variables that are sent.
    env: Vec<Variable>,
    /// The Compose file as it would be next to `stack.env`, and all variables in that file.
    flat: (String, Vec<Variable>),
    /// The variables whose values differ between the `.env` of the repository, if it has one, and what is sent.
    different: BTreeSet<String>,
    /// Whether a service reads that `.env`, and not `stack.env`.
    reads_own: bool,
    /// What the repository needs, if it deploys something else than what runs.
    pub patch: Option<String>,
}

/// The versions of Portainer that look for a relative `env_file` in the root of the clone (N29). Measured with the first, and with
/// 2.43.0; those in between are not known to be right.
const MISPLACES_ENV_FILES: Range<ComposeVersion> =
    ComposeVersion(2, 39, 4)..ComposeVersion(2, 44, 0);

/// Everything that Portainer would read from the repository now.
fn fetch(portainer: &PortainerReader, from: &Repository) -> Result<Fetched> {
    let mut fetched = portainer.fetch(from)?;
    let texts = fetched.files.iter().map(|(_, text)| text.as_str());
    let mut paths: BTreeSet<String> = texts.flat_map(env_files).collect();
    paths.retain(|path| ![".env", &from.stack_env()].contains(&path.as_str()));
    for path in paths {
        // Compose says if it needs one that is missing.
        let file = clean(&format!("/{}{path}", from.folder()));
        if let Some(text) = portainer.fetch_file(from, file.trim_start_matches('/'))? {
            fetched.env_files.push((path, text));
        }
    }
    Ok(fetched)
}

impl FromGit {
    /// Reads the repository. `sent` are the variables for its Compose file.
    fn read(
        portainer: &PortainerReader,
        repository: &Repository,
        sent: &[Variable],
        compose: &Asking,
    ) -> Result<Self> {
        let fetched = fetch(portainer, repository)?;
        let of_file = dotenv::parse(fetched.env.as_deref().unwrap_or_default(), &|_| None);
        let of_file = of_file.map_err(|error| {
            let (folder, url) = (repository.folder(), &repository.url);
            let what = format!("cannot parse {folder}.env of {url}");
            Failure::new(what)
                .source(error.to_string())
                .hint("fix the file in the repository")
        })?;
        let of_sent = dotenv::parse(&stack_env(sent), &|_| None).unwrap_or_default();
        let of = |all: &[(String, String)]| all.iter().cloned().collect::<BTreeMap<_, _>>();
        let (own, host) = (of(&of_file), of(&of_sent));
        let names = own.keys().chain(host.keys());
        let has_own = fetched.env.is_some();
        let different = names.filter(|name| has_own && own.get(*name) != host.get(*name));
        let different: BTreeSet<String> = different.cloned().collect();
        let stack_env = repository.stack_env();
        let reads_sent = |(_, text): &(String, String)| env_files(text).contains(&stack_env);
        // Without a variable, Portainer writes no `stack.env`.
        let needs_none = has_own && different.is_empty() && !fetched.files.iter().any(reads_sent);
        let env = if needs_none { &[][..] } else { sent }.to_vec();
        let mut all: Vec<Variable> = of_file
            .iter()
            .map(|(name, value)| Variable::new(name, encoded(name, value)))
            .collect();
        all.extend(env.iter().cloned());
        let reads_own = Cell::new(false);
        let flat = |path: &str| {
            let is_own = path == ".env" && has_own;
            reads_own.set(reads_own.get() || is_own);
            if is_own || path == repository.stack_env() {
                return Some(STACK_ENV.to_owned());
            }
            let mut others = fetched.env_files.iter();
            others.position(|(name, _)| name == path).map(env_file)
        };
        let files = fetched.files.iter();
        let mut texts: Vec<String> = files.map(|(_, text)| with_env_files(text, flat)).collect();
        let env_files = fetched.env_files.iter().enumerate();
        let env_files: Vec<_> = env_files
            .map(|(at, (_, text))| (env_file(at), text.clone()))
            .collect();
        if texts.len() > 1 || !env_files.is_empty() {
            let text = compose.merged(&texts, &env_files, &all).map_err(|why| {
                Failure::new("Compose cannot combine the files of the repository")
                    .source(why)
                    .hint("fix them in the repository, then run the command again")
            })?;
            texts = vec![text];
        }
        let text = texts.pop().unwrap_or_default();
        Ok(Self {
            repository: repository.clone(),
            flat: (text, all),
            env,
            different,
            reads_own: reads_own.get(),
            patch: None,
            fetched,
        })
    }

    /// What Portainer's Compose reads, as if everything was in one folder.
    pub fn read_as(&self) -> Sent<'_> {
        Sent::new(&self.flat.0, &self.flat.1)
    }

    /// Everything that was read.
    pub fn whole(&self) -> String {
        let all = &self.fetched;
        format!("{:?}", (&all.files, &all.env, &all.env_files))
    }

    /// Whether a Git stack has to be deployed again. Of what Portainer has, only the first file can be read: after a deployment
    /// that failed, that of the new commit.
    fn differs(&self, situation: &Situation, before: &Before, now: &Contents) -> bool {
        let contents = before.remote.contents.as_ref();
        let link = contents.and_then(|(_, standing)| standing.git.as_ref());
        let last = &before.last_sent;
        let is_last = link.is_some_and(|link| last.commit.as_ref() == Some(&link.commit));
        now.text != self.text()
            || is_last && !last.has(&self.whole(), &now.env)
            || situation.is_not_deployed()
            || before.host.inspected().next().is_none()
            || !before.host.inspected().all(Container::runs_or_succeeded)
    }

    /// Says of each service that is recreated what the repository changes, compared with the Compose file that was deployed.
    fn tell_changes(&self, plan: &mut Plan, deployed: &str, compose: &Asking) {
        // What an env file contains is not compared.
        let none = |_: &str| Some("/dev/null".to_owned());
        let [old, new] = [deployed, self.text()].map(|text| with_env_files(text, none));
        let env = &self.flat.1;
        let [old, new] = [&old, &new].map(|text| Sent { text, env });
        let keys = compose.different(old, new);
        for ServicePlan { service, fate, .. } in &mut plan.services {
            if let (Fate::Recreated(why), Some(keys)) = (fate, keys.get(service)) {
                *why = format!("the repository changes {}", listed(keys));
            }
        }
    }

    /// Whether the repository still has what was read.
    pub fn is_current(&self, portainer: &PortainerReader) -> Result<bool> {
        Ok(fetch(portainer, &self.repository)? == self.fetched)
    }

    /// The Compose file in the repository.
    pub fn text(&self) -> &str {
        self.fetched.files.first().map_or("", |(_, text)| text)
    }

    pub fn payload<'a>(&'a self, name: &'a str) -> Payload<'a> {
        let git = Some(&self.repository);
        Payload {
            git,
            ..Payload::new(name, self.text(), &self.env)
        }
    }

    /// The blocker if this version of Portainer looks for the env files of the repository in the wrong folder.
    fn misplaced(&self, before: &Before) -> Option<Finding> {
        let version = before.remote.version.as_deref()?;
        let is_affected = MISPLACES_ENV_FILES.contains(&ComposeVersion::parse(version)?);
        let files = self.fetched.files.iter();
        let paths: BTreeSet<String> = files.flat_map(|(_, text)| env_files(text)).collect();
        if !is_affected || self.repository.folder().is_empty() || paths.is_empty() {
            return None;
        }
        let what = format!(
            "Portainer {version} looks for the env files of {} in the root of the repository",
            self.repository.path
        );
        let hint = "upgrade Portainer to 2.44 or later, or move the Compose file to the root of the repository";
        Some(
            Finding::new(what, hint)
                .details(paths)
                .short("env files not found"),
        )
    }

    /// Whether the plan and what is sent are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.fetched == other.fetched && values(&self.env) == values(&other.env)
    }

    /// Compares the plan of deploying the repository with the plan of the `rewrite`. If it changes more, the plan is
    /// blocked.
    fn judge(
        &mut self,
        plan: &mut Plan,
        (rewrite, best): (&Faithful, &Plan),
        compared: Result<&BTreeMap<String, Vec<String>>, &str>,
        mask: &Mask,
    ) {
        let folder = self.repository.folder().to_owned();
        let ranks = best.services.iter();
        let ranks = ranks.map(|service| (service.service.as_str(), service.fate.rank()));
        let ranks: BTreeMap<_, _> = ranks.collect();
        let rank_of = |service: &str| ranks.get(service).copied().unwrap_or_default();
        let is_worse = |one: &&ServicePlan| one.fate.rank() > rank_of(&one.service);
        let worse = plan.services.iter().filter(is_worse);
        let said = compared.err();
        let mut details: Vec<String> = match compared {
            Ok(keys) => worse.map(|service| told(service, keys)).collect(),
            Err(why) => vec![why.to_owned()],
        };
        let is_other = |one: &&Finding| !best.blockers.contains(one);
        let other = plan.blockers.iter().filter(is_other);
        let other = other.filter(|finding| Some(finding.message.as_str()) != said);
        details.extend(other.map(|finding| finding.message.clone()));
        if !self.different.is_empty() && (self.reads_own || !details.is_empty()) {
            let names = listed(&Vec::from_iter(&self.different));
            details.push(format!(
                "{folder}.env in the repository differs from the variables of this host: {names}"
            ));
        }
        if details.is_empty() {
            return;
        }
        plan.blockers
            .retain(|finding| best.blockers.contains(finding));
        let (patch, is_masked) = self.patch(rewrite, mask).unzip();
        let hint = match is_masked {
            None => format!(
                "the Compose file needs no change: compare {folder}.env in the repository with the files of this host"
            ),
            Some(_) if !self.repository.additional_files.is_empty() => {
                format!("{COMMIT}, without --additional-file")
            }
            Some(false) => COMMIT.to_owned(),
            Some(true) => format!(
                "{COMMIT}; values are hidden: --reveal shows the patch as `git apply` needs it"
            ),
        };
        let of_env = |key: &String| key == "environment";
        let is_same_env =
            compared.is_ok_and(|keys| !keys.is_empty() && !keys.values().flatten().any(of_env));
        let hint = if is_same_env && is_masked.is_some() && !self.fetched.env_files.is_empty() {
            hint + "; what it changes of `env_file` is not needed: the repository has the same values"
        } else {
            hint
        };
        let what = format!("deploying {} would change what runs", self.repository);
        plan.blockers.push(Finding {
            short: Some("differs from Git".to_owned()),
            ..Finding::new(what, hint).details(details)
        });
        self.patch = patch;
    }

    /// The difference to the Compose file that leaves every container untouched, for `git apply`: without values, unless
    /// they may be shown. Also whether values are hidden in it. `None` if there is no difference.
    fn patch(&self, rewrite: &Faithful, mask: &Mask) -> Option<(String, bool)> {
        // Only an equal `.env` in the repository makes variables unnecessary.
        let env_file = match &self.fetched.env {
            Some(_) if self.env.is_empty() => ".env".to_owned(),
            _ => self.repository.stack_env(),
        };
        let needed = |path: &str| (path == STACK_ENV).then(|| env_file.clone());
        let before = self.text();
        let after = with_env_files(&rewrite.text, needed);
        let whole = diff::hunks(Shown::all(before), Shown::all(&after));
        if whole.is_empty() {
            return None;
        }
        let shown = [before.to_owned(), with_env_files(&rewrite.shown(), needed)];
        let [old, new] = shown.map(|text| masked(&text, mask));
        let of = |text, shown| Shown { text, shown };
        let hunks = diff::hunks(of(before, &old), of(&after, &new));
        let is_masked = hunks != whole && !self.repository.reveals;
        let hunks = if is_masked { hunks } else { whole };
        let path = &self.repository.path;
        Some((format!("--- a/{path}\n+++ b/{path}\n{hunks}"), is_masked))
    }
}

/// What happens to a service, and which keys of it differ.
fn told(plan: &ServicePlan, keys: &BTreeMap<String, Vec<String>>) -> String {
    let service = &plan.service;
    match keys.get(service).map(Vec::as_slice) {
        None | Some([]) => format!("{service}: {}", plan.fate),
        Some([key]) => format!("{service} would be recreated: {key} differs"),
        Some(keys) => format!("{service} would be recreated: {} differ", listed(keys)),
    }
}

/// Reads what Portainer would deploy from the repository that is asked for. The variables of a Git stack may have been edited in
/// Portainer.
pub fn read(
    situation: &Situation,
    before: &Before,
    rewrite: &Faithful,
    compose: &Asking,
) -> Result<FromGit> {
    let asked = situation.portainer.zip(situation.git);
    let (portainer, repository) = asked.context("Portainer was not asked")?;
    let now = before.remote.contents.as_ref().map(|(now, _)| &now.env);
    FromGit::read(portainer, repository, now.unwrap_or(&rewrite.env), compose)
}

/// The plan of deploying what was read. `plan_of` plans it, and tells whether a Git stack is deployed again. `best` is the plan
/// that sends the `rewrite`.
pub fn judged(
    situation: &Situation,
    before: &Before,
    mut git: FromGit,
    (rewrite, best): (&Faithful, &Plan),
    mask: &Mask,
    plan_of: impl Fn(Sent, bool) -> (Plan, Projects),
    compose: &Asking,
) -> (Option<FromGit>, Plan, Projects) {
    if let Some((now, standing)) = &before.remote.contents {
        let (mut plan, mut projects) = plan_of(git.read_as(), git.differs(situation, before, now));
        if plan.is_left_to_git()
            && plan
                .services
                .iter()
                .any(|service| service.containers.is_empty())
        {
            (plan, projects) = plan_of(git.read_as(), true);
        }
        if plan.redeploys() {
            // What runs is not what Portainer has, if its last commit failed.
            let deployed = before.deployed.as_ref().map_or(&now.text, |one| &one.text);
            git.tell_changes(&mut plan, deployed, compose);
        }
        if !plan.is_left_to_git() {
            plan.blockers.extend(git.misplaced(before));
        }
        let link = standing.git.as_ref();
        let kept = link.and_then(|link| link.auto_update.as_ref());
        let wanted = git.repository.auto_update.as_ref();
        if let Some(wanted) = wanted.filter(|wanted| Some(*wanted) != kept) {
            plan.warn(format!(
                "--auto-update {wanted} has no effect on a stack that Portainer has: change its automatic update on the page of the stack"
            ));
        }
        return (Some(git), plan, projects);
    }
    let (mut plan, projects) = plan_of(git.read_as(), false);
    plan.request = Some(Request::CreateGit);
    let keys = compose.different(sent_of(rewrite), git.read_as());
    let unread = projects.unread();
    let compared = match &unread {
        None => Ok(&keys),
        Some(why) => Err(why.as_str()),
    };
    git.judge(&mut plan, (rewrite, best), compared, mask);
    plan.blockers.extend(git.misplaced(before));
    (Some(git), plan, projects)
}

/// What prevents a stack from Git before the repository is read: where its Portainer stack comes from, or that Compose cannot
/// compare.
pub fn blockers(
    situation: &Situation,
    before: &Before,
    wanted: &Repository,
    projects: &Projects,
) -> Option<Finding> {
    let Some(record) = &before.remote.record else {
        return projects.unread().map(|why| {
            let what = format!("cannot compare what the repository deploys with what runs: {why}");
            Finding::new(what, "fix that, then run the command again")
        });
    };
    let id = &record.id;
    let standing = before
        .remote
        .contents
        .as_ref()
        .map(|(_, standing)| standing);
    match standing.and_then(|standing| standing.git.as_ref()) {
        _ if !record.is_from_git() => Some(not_linked(situation, before, id)),
        Some(link) if !link.is_of(wanted) => Some(Finding::new(
            format!("Portainer stack {id} is deployed from {link}, not from {wanted}"),
            "pass the repository that Portainer deploys with --git, --ref and --path; Portainer can change only the branch, on the page of the stack",
        )),
        _ => None,
    }
}

/// What linking a stack to Git costs that Portainer has without it (M24): a delete removes its containers.
fn not_linked(situation: &Situation, before: &Before, id: &str) -> Finding {
    let running = before
        .host
        .inspected()
        .filter(|container| container.is_running());
    let running: Vec<&str> = running.map(Container::name).collect();
    let cost = "it would have to be deleted, which removes its containers".to_owned();
    let cost = iter::once(cost).chain(said(&running, "would be interrupted"));
    let name = situation.stack.name().as_str();
    let undo = situation.before_portainer();
    let undo = undo.map(|id| format!("`{}`", command(&["restore", name, "--to", &id])));
    let undo = undo.unwrap_or_else(|| {
        "save what only its containers have, delete it in Portainer, and start it with Compose"
            .to_owned()
    });
    let what = format!("Portainer stack {id} is not from Git, and Portainer cannot link it to Git");
    let hint = format!(
        "you can keep it as it is. To have it from Git all the same: {undo}; then run this command again"
    );
    Finding::new(what, hint).details(cost)
}
