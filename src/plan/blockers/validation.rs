//! Whether Compose rejects what is sent (B06, M08).

use std::collections::HashSet;

use composefile::{
    document::{Document, Node, NodeId},
    dotenv::DotenvError,
    schema::{NEWEST, Place, ROOT, Release},
    services::split_at_colons,
};

use crate::{
    compose::{ComposeVersion, Doubt, Rejection},
    finding::{Finding, Kind},
    plan::{
        Facts, NOT_PULLED,
        blockers::missing,
        facts::services::{Given, SentStack, SentText},
    },
    rewrite::{
        faithful::{self, Runs},
        literal::{TextEdit, edits},
    },
};

/// The reasons for which every Compose version rejects the text. `is_damaged`: the rewrite damages the text, which
/// explains why it is not YAML. `rejection`: of the Compose program of this host.
pub fn refusals(
    facts: &Facts,
    text: &SentText,
    stack: Option<&SentStack>,
    is_damaged: bool,
    rejection: Option<&Rejection>,
) -> Vec<Finding> {
    let hint = "write the variable on one line, with matching quotes and a name without spaces";
    let what = "Compose would reject .env as Portainer stores it";
    let problems = text.env_error.iter().map(|error| problem(facts, error));
    let env = Finding::about(problems.collect(), what, hint);
    // Only the literal rewrite deletes lines: what an adoption sends has the lines that Compose names.
    let lines = Lines::new(if facts.is_adoption {
        ""
    } else {
        facts.source.compose
    });
    let blockers = faithful::rewrite(text.text, Some(text.env), text.context, &Runs::default())
        .err()
        .unwrap_or_default();
    let rejections = blockers.iter().filter(|blocker| match blocker.kind {
        Kind::NotYaml => !is_damaged && is_no_yaml(text.text),
        // The other reasons concern the faithful rewrite, or are found elsewhere.
        Kind::WrongType | Kind::BadVariable | Kind::Inconsistent => true,
        _ => false,
    });
    let mut rejected: Vec<String> = rejections.map(|one| lines.describe(one)).collect();
    let unmountable = stack.map_or_else(Vec::new, |stack| unmountable(stack, &lines));
    // Compose stops at the first error, which is usually one of those above.
    if let Some(rejection) = rejection
        && rejected.is_empty()
        && unmountable.is_empty()
        && env.is_none()
        && !is_damaged
        && is_certain(rejection, stack)
    {
        let message = lines.map(&rejection.message);
        rejected.push(format!("{}: {message}", rejection.by));
    }
    let what = "Docker would reject mounts of the file that is sent";
    let hint = "fix these lines: Compose accepts them, and fails when it creates the container";
    let mounts = Finding::about(unmountable, what, hint);
    let all = [
        env.map(|one| one.of_kind(Kind::BadEnvFile)),
        rejects(rejected),
        mounts.map(|one| one.of_kind(Kind::Rejected)),
    ];
    all.into_iter().flatten().collect()
}

/// The refusal of a text that Compose would reject because of these lines, if there are any.
pub fn rejects(lines: Vec<String>) -> Option<Finding> {
    let hint = "fix these lines: `docker compose config` must accept the file";
    let blocker = Finding::about(lines, "Compose would reject the file that is sent", hint);
    blocker.map(|one| one.of_kind(Kind::Rejected))
}

/// Mounts in the short syntax that Compose accepts and every engine rejects, as lines of a refusal. Compose reads `x:` with one
/// letter as a drive of Windows, as in `C:\data`: the whole text becomes the target, or the source is no path of the engine.
fn unmountable(stack: &SentStack, lines: &Lines) -> Vec<String> {
    let mut found = Vec::new();
    for service in stack.active() {
        for node in service.items("volumes") {
            let Given::Is(text) = stack.read(node) else {
                continue;
            };
            let mut chars = text.chars();
            let is_drive = chars.next().is_some_and(char::is_alphabetic)
                && chars.next() == Some(':')
                && chars.next().is_some();
            let parts = split_at_colons(&text);
            let target = parts.get(1).or(parts.first()).copied();
            let is_relative = target.is_some_and(|one| !one.is_empty() && !one.starts_with('/'));
            let why = if is_drive {
                "Compose takes its first letter for a Windows drive; use the long syntax"
            } else if parts.len() <= 2 && text.len() > 2 && is_relative {
                "its target is not an absolute path"
            } else {
                continue;
            };
            // As it is written: never the value of a variable.
            let written = node.as_str().unwrap_or_default();
            found.push(format!(
                "line {}: {}: Docker rejects the mount `{written}`: {why}",
                lines.of(node.line()),
                service.name
            ));
        }
    }
    found
}

/// Whether Portainer's Compose rejects the text if this host's Compose does.
///
/// The contents of a file that the text names may differ between this host and Portainer's container.
fn is_certain(rejection: &Rejection, stack: Option<&SentStack>) -> bool {
    rejection.doubt.is_none() && stack.is_some_and(|stack| !missing::reads_files(stack))
}

/// A rejection by this host's Compose that is no refusal, as a warning. `keys` are the warnings about keys.
pub fn doubt(
    facts: &Facts,
    stack: Option<&SentStack>,
    refusals: &[Finding],
    keys: &[String],
) -> Option<String> {
    use Kind as K;
    let rejection = facts.details.rejection.as_ref();
    let rejection = rejection.filter(|rejection| !is_certain(rejection, stack))?;
    let has = |kinds: &[K]| refusals.iter().any(|one| kinds.contains(&one.kind));
    let is_said = match rejection.doubt {
        // The refusal names the place.
        None | Some(Doubt::Version) => has(&[K::Rejected, K::BadEnvFile, K::Damage]),
        Some(Doubt::UnknownKey) => {
            let mut words = rejection
                .message
                .split([' ', '\''])
                .filter(|word| !word.is_empty());
            words.any(|word| keys.iter().any(|key| key.contains(&format!("`{word}`"))))
        }
        // Each file that Compose reads is looked for where Portainer looks for it.
        Some(Doubt::Files) => {
            stack.is_some_and(missing::reads_files) || has(&[K::MissingFiles, K::UnreadableFiles])
        }
    };
    (!is_said).then(|| {
        format!(
            "{} rejects the file that is sent; the deployment fails if Compose in Portainer rejects it too: {}",
            rejection.by,
            Lines::new(facts.source.compose).map(&rejection.message)
        )
    })
}

/// What a host without a Compose program does not know about the text, as a warning.
pub fn unchecked(facts: &Facts) -> Option<String> {
    let why = facts.details.unasked.as_ref()?;
    Some(format!(
        "{why}: not everything in the file could be checked, and Portainer may reject it"
    ))
}

/// Compose accepts several documents in one file and other line breaks; this program does not.
fn is_no_yaml(text: &str) -> bool {
    let error = Document::parse(text).err();
    error.is_some_and(|error| !error.is_second_document)
}

/// Keys that Portainer's Compose may not accept, as warnings. `first` is the oldest that it may be, if that is known.
pub fn doubts(facts: &Facts, stack: &SentStack, first: Option<ComposeVersion>) -> Vec<String> {
    let first = first.unwrap_or(OLDEST).release();
    let keys = keys(facts, stack, |since| {
        since.is_none_or(|since| since > first)
    });
    keys.map(|(line, key)| {
        format!(
            "line {line}: the deployment fails if Compose in Portainer does not accept the key {key}"
        )
    })
    .collect()
}

/// What no Compose up to `last` accepts and a later one may, with its line of the Compose file `file`.
pub fn newer(facts: &Facts, stack: &SentStack, file: &str, last: ComposeVersion) -> Vec<String> {
    let lines = Lines::new(facts.source.compose);
    let last = last.release();
    let keys = keys(facts, stack, |since| {
        since.map_or(last <= NEWEST, |since| since > last)
    });
    let keys = keys.map(|(line, key)| format!("{file}:{line}: {key}"));
    let services = stack.services();
    let policies = services.iter().filter_map(|service| {
        let node = service.node(&["pull_policy"])?;
        let policy = service.given(&["pull_policy"]).known()?;
        let is_newer = policy != "always" && !NOT_PULLED.contains(&policy.as_str());
        let (line, written) = (lines.of(node.line()), node.as_str().unwrap_or_default());
        (is_newer && last < PULLS_AT_INTERVALS)
            .then(|| format!("{file}:{line}: `pull_policy: {written}`"))
    });
    keys.chain(policies).collect()
}

/// The oldest Compose that a Portainer of unknown version is expected to have.
const OLDEST: ComposeVersion = ComposeVersion(2, 26, 1);
/// The first Compose with `pull_policy: daily`.
const PULLS_AT_INTERVALS: Release = (2, 34, 0);

/// The keys that are rejected, with their lines. `is_rejected` gets the first release that accepts a key; `None` if none does.
fn keys(
    facts: &Facts,
    stack: &SentStack,
    is_rejected: impl Fn(Option<Release>) -> bool,
) -> impl Iterator<Item = (usize, String)> {
    let lines = Lines::new(facts.source.compose);
    let mut rejected = Keys {
        is_rejected,
        found: Vec::new(),
        done: HashSet::new(),
    };
    if let Some(root) = stack.reader.document.root() {
        rejected.collect(root, &ROOT);
    }
    let found = rejected.found.into_iter();
    found.map(move |(line, key)| (lines.of(line), key))
}

struct Keys<F> {
    is_rejected: F,
    found: Vec<(usize, String)>,
    /// Aliases can repeat a mapping.
    done: HashSet<(NodeId, &'static Place)>,
}

impl<F: Fn(Option<Release>) -> bool> Keys<F> {
    fn collect(&mut self, node: Node<'_>, place: &'static Place) {
        if node.is_scalar() || !self.done.insert((node.resolved().id(), place)) {
            return;
        }
        for entry in node.entries() {
            let Some(name) = entry.name() else { continue };
            let since = place.since(name);
            if (self.is_rejected)(since) {
                let key = match since {
                    Some((major, minor, _)) => {
                        format!("`{name}`, which requires Compose {major}.{minor}")
                    }
                    None => format!("`{name}`"),
                };
                self.found.push((entry.key.line(), key));
            } else if let Some(below) = place.key(name) {
                self.collect(entry.value, below);
            }
        }
        for item in node.items() {
            // The items of a merge have no place of their own.
            self.collect(item, place.item().unwrap_or(place));
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

/// Line numbers of the Compose file for lines of the text that is sent.
struct Lines {
    /// The deleted lines of the Compose file, counted from 1.
    deleted: Vec<usize>,
}

impl Lines {
    fn new(compose: &str) -> Self {
        let mut deleted = Vec::new();
        let (mut line, mut at) = (1, 0);
        for edit in edits(compose) {
            let TextEdit::Delete(range) = edit else {
                continue;
            };
            line += compose[at..range.start].matches('\n').count();
            at = range.start;
            deleted.push(line);
        }
        Self { deleted }
    }

    fn of(&self, sent: usize) -> usize {
        let deleted = self.deleted.iter();
        deleted.fold(sent, |line, deleted| line + usize::from(*deleted <= line))
    }

    /// A message of Compose about the text that is sent, with line numbers of the Compose file.
    fn map(&self, message: &str) -> String {
        let mut parts = message.split("line ");
        let mut mapped = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len());
            let (number, rest) = part.split_at(end);
            let line = number
                .parse()
                .map_or(number.to_owned(), |line| self.of(line).to_string());
            mapped.extend(["line ", &line, rest]);
        }
        mapped
    }

    fn describe(&self, blocker: &Finding) -> String {
        match blocker.position {
            Some(position) => format!("line {}: {}", self.of(position.line), blocker.message),
            None => blocker.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn lines_are_those_of_the_compose_file() {
        let lines = Lines::new("a:\n  env_file:\n    - .env\n  b:\n  env_file: x\n  c:\n");
        assert_eq!([1, 2, 3].map(|line| lines.of(line)), [1, 4, 6]);
    }
}
