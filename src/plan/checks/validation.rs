//! Whether Compose rejects what is sent (B06, M08).

use std::{collections::HashSet, fmt};

use composefile::{
    document::{Document, Node},
    dotenv::{self, DotenvError},
    interpolate::{Lookup, occurrences},
    schema::{NEWEST, ROOT, Release, SchemaNode},
    services::services,
};
use serde_json::Value;

use crate::{
    compose::{ComposeVersion, Doubt, Mount, Place, Project, Rejection, Service},
    finding::{Finding, Kind},
    plan::{Facts, Form, NOT_PULLED, checks::missing, fates::Unread},
    rewrite::{env::stack_env, literal::original_line},
};

/// The reasons for which every Compose version rejects the text. `is_damaged`: the rewrite damages the text, which
/// explains why it is rejected.
pub fn refusals(facts: &Facts, is_damaged: bool) -> Vec<Finding> {
    let hint = "write the variable on one line, with matching quotes and a name without spaces";
    let what = "Compose would reject .env as Portainer stores it";
    let env_error = dotenv::parse(&stack_env(facts.sent.env), &|_| None).err();
    let problems = env_error.iter().map(|error| problem(facts, error));
    let env = Finding::about(problems.collect(), what, hint);
    let rejected = rejection(facts).filter(|rejection| {
        let is_said = env.is_some() || is_damaged && !rejection.is_about_files;
        !is_said && is_certain(facts, rejection)
    });
    let rejected = rejected.and_then(|rejection| {
        let said = format!(
            "{}: {}",
            rejection.by,
            with_lines_of_file(facts, &rejection.message)
        );
        if rejection.is_about_files {
            let hint = "put its content into the Compose file";
            let blocker = Finding::new("Portainer cannot read files", hint).details([said]);
            return Some(blocker.of_kind(Kind::UnreadableFiles));
        }
        rejects(vec![said])
    });
    let what = "Docker would reject parts of the file that is sent";
    let hint = "correct them: Compose accepts them, and fails when it creates the container";
    let sent = facts.projects.sent.iter();
    let by_docker = sent.flat_map(|sent| [unmountable(sent), unusable(sent)].concat());
    let by_docker = Finding::about(by_docker.collect(), what, hint);
    let all = [
        env.map(|variable| variable.of_kind(Kind::BadEnvFile)),
        rejected,
        by_docker.map(|rejected| {
            let rejected = rejected.of_kind(Kind::Rejected);
            rejected.short("Docker rejects the file")
        }),
    ];
    all.into_iter().flatten().collect()
}

/// Why the Compose program of this host rejects what is sent, if it does.
fn rejection<'a>(facts: &Facts<'a>) -> Option<&'a Rejection> {
    match &facts.projects.sent {
        Err(Unread::Rejected(rejection)) => Some(rejection),
        _ => None,
    }
}

/// The refusal of a text that Compose would reject because of these lines, if there are any.
pub fn rejects(lines: Vec<String>) -> Option<Finding> {
    let hint = "fix these lines: `docker compose config` must accept the file";
    let blocker = Finding::about(lines, "Compose would reject the file that is sent", hint);
    blocker.map(|one| one.of_kind(Kind::Rejected))
}

/// Mounts that Compose accepts and every engine rejects. Compose reads `x:` with one letter as a drive of Windows, as in
/// `C:\\data`: the whole text becomes the target, or the source is no path of the engine.
fn unmountable(project: &Project) -> Vec<String> {
    let is_drive = |mount: &Mount| matches!(&mount.place, Some(Place::Absolute(path)) if !path.starts_with('/'));
    let mounts = project.services.iter().flat_map(|service| {
        let mounts = service.mounts.iter();
        mounts.map(move |mount| (service, mount))
    });
    let told = mounts.filter_map(|(service, mount)| {
        let (name, target) = (&service.name, &mount.target);
        let why = if !target.starts_with('/') {
            "which is not an absolute path"
        } else if is_drive(mount) {
            "because Compose takes the first letter of its source for a Windows drive"
        } else {
            return None;
        };
        Some(format!(
            "{name}: Docker rejects the mount at {target}, {why}"
        ))
    });
    told.collect()
}

/// Settings that Compose accepts and every engine rejects.
fn unusable(project: &Project) -> Vec<String> {
    let told = project.services.iter().flat_map(|service| {
        let single = [policy(service), folder(service)].into_iter().flatten();
        let why = single.chain(capabilities(service)).chain(limits(service));
        why.map(|why| format!("{}: {why}", service.name))
            .collect::<Vec<_>>()
    });
    told.collect()
}

/// A number may follow a restart policy.
fn policy(service: &Service) -> Option<String> {
    let policy = service.get("restart")?.as_str()?;
    let mode = policy.split(':').next().unwrap_or_default();
    let is_known = ["", "no", "always", "on-failure", "unless-stopped"].contains(&mode);
    (!is_known).then(|| format!("Docker has no restart policy `{policy}`"))
}

fn folder(service: &Service) -> Option<String> {
    let dir = service.get("working_dir")?.as_str()?;
    let is_usable = dir.is_empty() || dir.starts_with('/');
    (!is_usable).then(|| {
        format!("Docker rejects the working directory `{dir}`, which is not an absolute path")
    })
}

fn capabilities(service: &Service) -> impl Iterator<Item = String> {
    let lists = ["cap_add", "cap_drop"].into_iter();
    let names = lists.filter_map(|key| service.get(key)?.as_array());
    let names = names.flatten().filter_map(Value::as_str);
    let unknown = names.filter(|name| {
        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix("CAP_").unwrap_or(&name);
        name != "ALL" && !CAPABILITIES.split_whitespace().any(|known| known == name)
    });
    unknown.map(|name| format!("Docker has no capability `{name}`"))
}

/// A limit of -1 is none.
fn limits(service: &Service) -> impl Iterator<Item = String> {
    let limits = service.get("ulimits").and_then(Value::as_object);
    let limits = limits.into_iter().flatten();
    let wrong = limits.filter_map(|(name, limit)| {
        let (soft, hard) = (limit.get("soft")?.as_i64()?, limit.get("hard")?.as_i64()?);
        (hard >= 0 && soft > hard).then_some((name, soft, hard))
    });
    wrong.map(|(name, soft, hard)| {
        format!(
            "Docker rejects the limit {name}, whose soft value {soft} exceeds its hard value {hard}"
        )
    })
}

/// Those of Linux.
const CAPABILITIES: &str = "AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH \
    FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW \
    PERFMON SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE \
    SYS_TIME SYS_TTY_CONFIG SYSLOG WAKE_ALARM";

/// Whether Portainer's Compose rejects the text if this host's Compose does.
///
/// The contents of a file that the text names may differ between this host and Portainer's container.
fn is_certain(facts: &Facts, rejection: &Rejection) -> bool {
    let reads_files = facts.document.is_some_and(missing::reads_files);
    rejection.doubt.is_none() && !reads_files
}

/// A rejection by this host's Compose that is no refusal, or that it is unknown whether there is one, as a warning. `keys` are the
/// warnings about keys.
pub fn doubt(facts: &Facts, refusals: &[Finding], keys: &[Finding]) -> Option<String> {
    use Kind as K;
    if let Err(Unread::Unknown(why)) = &facts.projects.sent {
        return Some(format!(
            "{why}: not everything in the file could be checked, so losses may be missing here, and Portainer may reject it"
        ));
    }
    let rejection = rejection(facts).filter(|rejection| !is_certain(facts, rejection))?;
    let has = |kinds: &[K]| refusals.iter().any(|finding| kinds.contains(&finding.kind));
    let is_said = match rejection.doubt {
        // The refusal names the place.
        None | Some(Doubt::Version) => has(&[K::Rejected, K::BadEnvFile, K::Damage]),
        Some(Doubt::UnknownKey) => {
            let mut words = rejection
                .message
                .split([' ', '\''])
                .filter(|word| !word.is_empty());
            let is_of =
                |word, key: &Finding| matches!(&key.kind, Kind::UnknownKey(name) if name == word);
            words.any(|word| keys.iter().any(|key| is_of(word, key)))
        }
        Some(Doubt::Files) => has(&[K::MissingFiles, K::UnreadableFiles]),
    };
    (!is_said).then(|| {
        format!(
            "{} rejects the file that is sent; the deployment fails if Compose in Portainer rejects it too: {}",
            rejection.by,
            with_lines_of_file(facts, &rejection.message)
        )
    })
}

/// Keys that Portainer's Compose may not accept, as warnings. `first` is the oldest that it may be, if that is known.
pub fn doubts(facts: &Facts, document: &Document, first: Option<ComposeVersion>) -> Vec<Finding> {
    let first = first.unwrap_or(OLDEST).release();
    let keys = keys(facts, document, |since| {
        since.is_none_or(|since| since > first)
    });
    let doubts = keys.map(|(line, key)| {
        let what = format!(
            "{}the deployment fails if Compose in Portainer does not accept the key {key}",
            place("line ", line)
        );
        Finding::of_stack(&what).of_kind(Kind::UnknownKey(key.name))
    });
    doubts.collect()
}

/// What no Compose up to `last` accepts and a later one may, with its line of the Compose file `file`.
pub fn newer(facts: &Facts, document: &Document, file: &str, last: ComposeVersion) -> Vec<String> {
    let last = last.release();
    let keys = keys(facts, document, |since| {
        since.map_or(last <= NEWEST, |since| since > last)
    });
    let file = format!("{file}:");
    let keys = keys.map(|(line, key)| format!("{}{key}", place(&file, line)));
    let policies = services(document).into_iter().filter_map(|service| {
        let node = service.node.get("pull_policy")?;
        let policy = node.as_str().filter(|policy| !policy.contains('$'))?;
        let is_newer = policy != "always" && !NOT_PULLED.contains(&policy);
        let line = place(&file, line_of_file(facts, node.line()));
        (is_newer && last < READS_DAYS).then(|| format!("{line}`pull_policy: {policy}`"))
    });
    let variables = facts.sent.variables();
    let lookup = |name: &str| variables.get(name).cloned();
    let required = document.nodes().filter_map(|node| {
        let text = node.as_str().filter(|_| last < READS_ON_DEMAND)?;
        let mut outer = occurrences(text).into_iter();
        let name = outer.find_map(|one| required(&text[one.word], &lookup))?;
        let line = place(&file, line_of_file(facts, node.line()));
        Some(format!(
            "{line}the default of another variable requires {name}: set it in .env"
        ))
    });
    let spans = services(document)
        .into_iter()
        .flat_map(|service| spans(service.node));
    let in_days = spans.filter_map(|node| {
        let span = node.as_str().filter(|_| last < READS_DAYS)?;
        let is_newer = span.contains(['d', 'w']) && !span.contains('$');
        let line = place(&file, line_of_file(facts, node.line()));
        is_newer.then(|| format!("{line}`{span}`: write it in hours"))
    });
    keys.chain(policies)
        .chain(required)
        .chain(in_days)
        .collect()
}

/// The first variable that a text requires and that has no value, also within a default that is not needed.
fn required(text: &str, lookup: Lookup<'_>) -> Option<String> {
    occurrences(text).into_iter().find_map(|one| {
        let is_missing = one.takes_word(lookup(one.name).as_deref()).is_none();
        let name = is_missing.then(|| one.name.to_owned());
        name.or_else(|| required(&text[one.word], lookup))
    })
}

/// The spans of time of a service.
fn spans(service: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let paths = SPANS.split_whitespace();
    paths.filter_map(move |path| path.split('.').try_fold(service, Node::get))
}

/// Where they are.
const SPANS: &str = "stop_grace_period healthcheck.interval healthcheck.timeout healthcheck.start_period healthcheck.start_interval \
    deploy.restart_policy.delay deploy.restart_policy.window deploy.update_config.delay deploy.update_config.monitor \
    deploy.rollback_config.delay deploy.rollback_config.monitor";

/// The oldest Compose that a Portainer of unknown version is expected to have.
const OLDEST: ComposeVersion = ComposeVersion(2, 26, 1);
/// The first Compose with days and weeks in spans of time, and so with `pull_policy: daily`.
const READS_DAYS: Release = (2, 34, 0);
/// The first Compose that does not replace the variables of a default that it does not need (N37).
const READS_ON_DEMAND: Release = (5, 0, 2);

/// How a sentence about a line starts, if the line is known.
fn place(start: &str, line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("{start}{line}: "))
}

/// The keys that are rejected, with their lines in the Compose file. `is_rejected` gets the first release that accepts a key; `None` if none does.
fn keys(
    facts: &Facts,
    document: &Document,
    is_rejected: impl Fn(Option<Release>) -> bool,
) -> impl Iterator<Item = (Option<usize>, Key)> {
    let (mut found, mut done) = (Vec::new(), HashSet::new());
    let mut ahead: Vec<(Node, &'static SchemaNode)> = Vec::new();
    ahead.extend(document.root().map(|root| (root, &ROOT)));
    while let Some((node, place)) = ahead.pop() {
        // Aliases can repeat a mapping.
        if node.is_scalar() || !done.insert((node.resolved().id(), place)) {
            continue;
        }
        for entry in node.entries() {
            let Some(name) = entry.name() else { continue };
            let since = place.since(name);
            if is_rejected(since) {
                let name = name.to_owned();
                found.push((entry.key.line(), Key { name, since }));
            } else if let Some(below) = place.key(name) {
                ahead.push((entry.value, below));
            }
        }
        // The items of a merge have no place of their own.
        let below = place.item().unwrap_or(place);
        ahead.extend(node.items().map(|item| (item, below)));
    }
    found.sort_by_key(|(line, _)| *line);
    let found = found.into_iter();
    found.map(|(line, key)| (line_of_file(facts, line), key))
}

/// A key, and the first release that accepts it, if one does.
struct Key {
    name: String,
    since: Option<Release>,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        match self.since {
            Some((major, minor, 0)) => write!(f, ", which requires Compose {major}.{minor}"),
            Some((major, minor, patch)) => {
                write!(f, ", which requires Compose {major}.{minor}.{patch}")
            }
            None => Ok(()),
        }
    }
}

/// The variable that Compose cannot parse, by name.
fn problem(facts: &Facts, error: &DotenvError) -> String {
    // Each variable is one line of `stack.env` (M07), unless its value contains a CR only.
    let variable = facts.sent.env.get(error.line.saturating_sub(1));
    match variable.map(|variable| variable.name.trim()) {
        Some(name) if !name.is_empty() => format!("variable {name}: {}", error.problem),
        _ => error.problem.to_string(),
    }
}

/// The line of the Compose file for a line of the text that is sent. `None` if that text has lines of its own.
fn line_of_file(facts: &Facts, sent: usize) -> Option<usize> {
    match facts.form {
        Form::Literal => original_line(facts.source.text, sent),
        Form::Edited => Some(sent),
        Form::Resolved => None,
    }
}

/// A message of Compose about the text that is sent, with line numbers of the Compose file.
fn with_lines_of_file(facts: &Facts, message: &str) -> String {
    let mut parts = message.split("line ");
    let mut mapped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_digit = |c: char| c.is_ascii_digit();
        let (number, rest) = part.split_at(part.len() - part.trim_start_matches(is_digit).len());
        let line = number.parse().ok();
        let line = line.and_then(|line| line_of_file(facts, line));
        let line = line.map_or(number.to_owned(), |line| line.to_string());
        mapped.extend(["line ", &line, rest]);
    }
    mapped
}
