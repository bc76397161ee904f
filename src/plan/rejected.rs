//! Whether Compose rejects what is sent (B06, M08).

use composefile::dotenv::DotenvError;

use super::{Facts, Refusal, sent::SentText};
use crate::rewrite::{
    faithful::{self, Blocker, Reason},
    literal::{TextEdit, TextEdits},
};

/// The reasons for which every Compose version rejects the text. `is_damaged`: the rewrite damages it, which says why
/// it is not YAML.
pub(super) fn refusals(facts: &Facts, text: &SentText, is_damaged: bool) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if let Some(error) = &text.env_error {
        refusals.push(Refusal::UnreadableEnv {
            problem: problem(facts, error),
        });
    }
    let blockers = match faithful::rewrite(text.text, Some(text.env), text.context) {
        Ok(_) => return refusals,
        Err(blockers) => blockers,
    };
    let lines = Lines::new(facts.source.compose);
    let rejected: Vec<String> = blockers
        .iter()
        .filter(|blocker| is_rejection(blocker.reason, is_damaged))
        .map(|blocker| lines.describe(blocker))
        .collect();
    if !rejected.is_empty() {
        refusals.push(Refusal::Rejected(rejected));
    }
    refusals
}

fn is_rejection(reason: Reason, is_damaged: bool) -> bool {
    match reason {
        Reason::NotYaml => !is_damaged,
        Reason::WrongType | Reason::BadVariable | Reason::Inconsistent => true,
        // These concern the faithful rewrite, or are found elsewhere.
        Reason::BadEnvFile
        | Reason::MissingEnvFile
        | Reason::SeveralFiles
        | Reason::Shared
        | Reason::ShellVariable
        | Reason::VersionDependent
        | Reason::UnreadableFile
        | Reason::Unwritable
        | Reason::Internal => false,
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

/// Line numbers of the compose file for lines of the text that is sent.
struct Lines {
    /// The deleted lines of the compose file, counted from 1.
    deleted: Vec<usize>,
}

impl Lines {
    fn new(compose: &str) -> Self {
        let mut deleted = Vec::new();
        let (mut line, mut at) = (1, 0);
        for edit in TextEdits::new(compose) {
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
        let mut line = sent;
        for &deleted in &self.deleted {
            if deleted <= line {
                line += 1;
            }
        }
        line
    }

    fn describe(&self, blocker: &Blocker) -> String {
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
