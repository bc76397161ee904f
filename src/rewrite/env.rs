//! `.env` as the literal rewrite reads it (C41–C43). [`composefile::dotenv`] reads it as Compose does.
//!
//! Invariant: no warning and no `Debug` output holds a value.

use composefile::dotenv;

use crate::model::Variable;

/// The variables of a `.env`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContractEnv {
    /// In the order of the file, with duplicates.
    pub variables: Vec<Variable>,
    /// In the order of the file.
    pub warnings: Vec<EnvWarning>,
}

/// A suspicious line. Never holds its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvWarning {
    /// C43
    #[error("line {line} has no `=` and is ignored")]
    NoEquals {
        /// Counted from 1.
        line: usize,
    },
    /// The mark becomes part of the first name, because C42 trims nothing.
    #[error("the file starts with a byte order mark, which becomes part of the first name")]
    ByteOrderMark,
}

/// `stack.env` as Portainer writes it: one `NAME=VALUE` per line (M07).
pub fn stack_env(variables: &[Variable]) -> String {
    let parts = |one: &Variable| format!("{}={}\n", one.name, one.value);
    variables.iter().map(parts).collect()
}

/// What must not be shown of a `.env`: the values as C41–C43 and as Compose read them, and the lines that are not
/// variables, which Compose may read as part of a value (B13).
pub fn secrets(env: &str) -> Vec<String> {
    let sent = contract_env(env).variables.into_iter();
    let sent = sent.map(|variable| (variable.name, variable.value));
    let read = dotenv::parse(env, &|_| None).unwrap_or_default();
    let rest = env.lines().filter(|line| !line.contains('='));
    let all = sent.chain(read).filter(|(name, _)| is_secret(name));
    let values = all.map(|(_, value)| value);
    values.chain(rest.map(str::to_owned)).collect()
}

/// The values of `variables` that must not be shown.
pub fn secret_values(variables: &[Variable]) -> impl Iterator<Item = &str> {
    let secret = variables
        .iter()
        .filter(|variable| is_secret(&variable.name));
    secret.map(|variable| variable.value.as_str())
}

/// Whether the value of a variable must not be shown. Compose's own name files, the project and its profiles.
pub fn is_secret(name: &str) -> bool {
    ![
        "COMPOSE_FILE",
        "COMPOSE_ENV_FILES",
        "COMPOSE_PROJECT_NAME",
        "COMPOSE_PROFILES",
    ]
    .contains(&name)
}

/// Reads the text of a `.env` as C41–C43 say.
///
/// A line ends at LF or CRLF. A CR anywhere else belongs to the value, also at the end of the file. A line that holds
/// only ASCII blanks is blank. A BOM belongs to the first name; a `#` after it does not start a comment.
pub fn contract_env(text: &str) -> ContractEnv {
    let mut env = ContractEnv::default();
    if text.starts_with('\u{feff}') {
        env.warnings.push(EnvWarning::ByteOrderMark);
    }
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let line = line
            .strip_suffix('\n')
            .map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        // C41
        let content = line.trim_start_matches([' ', '\t', '\u{b}', '\u{c}', '\r']);
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        match line.split_once('=') {
            Some((name, value)) => env.variables.push(Variable::new(name, value)),
            None => env.warnings.push(EnvWarning::NoEquals { line: index + 1 }),
        }
    }
    env
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EnvWarning, contract_env};

    #[test]
    fn a_byte_order_mark_stays() {
        assert_eq!(contract_env("\u{feff}A=1\n").variables[0].name, "\u{feff}A");
        let env = contract_env("\u{feff}# c\n");
        let expected = [EnvWarning::ByteOrderMark, EnvWarning::NoEquals { line: 1 }];
        assert_eq!(env.warnings, expected);
    }

    #[test]
    fn debug_shows_no_value() {
        let env = contract_env("TOKEN=hunter2hunter2\n");
        let shown = format!("{env:?}");
        assert!(
            shown.contains("TOKEN") && !shown.contains("hunter2"),
            "{shown}"
        );
    }

    proptest! {
        /// Every line is an entry, a warning or ignored, and no byte of an entry is lost.
        #[test]
        fn every_line_is_accounted_for(lines in prop::collection::vec("[ -~ä\t\r]{0,8}", 0..10)) {
            let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
            let env = contract_env(&text);
            let mut expected = Vec::new();
            for line in &lines {
                let line = line.strip_suffix('\r').unwrap_or(line);
                let first = line.chars().find(|c| !c.is_ascii_whitespace());
                if first.is_some_and(|c| c != '#') && line.contains('=') {
                    expected.push(line.to_owned());
                }
            }
            let found: Vec<_> = env
                .variables
                .iter()
                .map(|variable| format!("{}={}", variable.name, variable.value))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
