//! Both readings of `.env`: every line is accounted for, and no value is in an error.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use stacklift::compose::dotenv::{EnvWarning, compose_dotenv, contract_env};

fuzz_target!(|text: &str| {
    by_the_contract(text);
    as_compose(text);
});

fn by_the_contract(text: &str) {
    let env = contract_env(text);
    let mut variables = env.variables.iter();
    let mut warnings = env.warnings.iter();
    if text.starts_with('\u{feff}') {
        assert_eq!(warnings.next(), Some(&EnvWarning::ByteOrderMark));
    }
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let line = line
            .strip_suffix("\r\n")
            .or_else(|| line.strip_suffix('\n'))
            .unwrap_or(line);
        let is_blank = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
        let first = line.chars().find(|&c| !is_blank(c));
        if first.is_none_or(|c| c == '#') {
            continue;
        }
        if line.contains('=') {
            let variable = variables.next().expect("a variable is missing");
            assert_eq!(format!("{}={}", variable.name, variable.value), line);
            assert!(!variable.name.contains('='));
        } else {
            let expected = EnvWarning::NoEquals { line: index + 1 };
            assert_eq!(warnings.next(), Some(&expected));
        }
    }
    assert_eq!(variables.next(), None);
    assert_eq!(warnings.next(), None);
}

fn as_compose(text: &str) {
    let lines = text.matches('\n').count() + 1;
    let lookup = |name: &str| (name == "HOME").then(|| "/root".to_owned());
    match compose_dotenv(text, &lookup) {
        Ok(variables) => {
            let names: HashSet<&String> = variables.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), variables.len(), "a name is there twice");
            for (name, _) in &variables {
                assert!(text.contains(name.as_str()));
            }
        }
        Err(error) => {
            assert!((1..=lines).contains(&error.line), "{error}");
        }
    }
}
