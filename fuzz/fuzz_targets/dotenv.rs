//! Both readings of `.env`: every line is accounted for, and the values that Compose reads arrive in `stack.env` and in
//! `environment`.
#![no_main]

use std::collections::{BTreeMap, HashSet};

use libfuzzer_sys::fuzz_target;
use composefile::{document::Document, dotenv::{self, DotenvError}, interpolate::interpolate, services::services};
use stacklift::rewrite::{env::{EnvWarning, contract_env}, faithful::{self, Context, EnvFiles, Faithful, Reason, Blocker}};

/// The shortest name that can be too long for a YAML key, with its escapes.
const LONG: usize = 150;

fuzz_target!(|text: &str| {
    by_the_rules(text);
    let read = as_compose(text);
    in_stack_env(text, &read);
    let expected = read.map(|variables| variables.into_iter().collect());
    in_environment(text, "", expected.ok());
    in_environment(text, ", format: raw", raw(text));
});

fn by_the_rules(text: &str) {
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

fn as_compose(text: &str) -> Result<Vec<(String, String)>, DotenvError> {
    let lines = text.matches('\n').count() + 1;
    let read = dotenv::parse(text, &shell);
    match &read {
        Ok(variables) => {
            let names: HashSet<&String> = variables.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), variables.len(), "a name is there twice");
            for (name, value) in variables {
                assert!(text.contains(name.as_str()));
                let line = format!("A={}\n", faithful::encoded("A", value));
                let arrived = dotenv::parse(&line, &|_| Some("expanded".into()));
                assert_eq!(arrived, Ok(vec![("A".into(), value.clone())]), "{line:?}");
            }
        }
        Err(error) => assert!((1..=lines).contains(&error.line), "{error}"),
    }
    read
}

fn shell(name: &str) -> Option<String> {
    (name == "HOME").then(|| "/root".to_owned())
}

/// The same variables in the same order, except one without a name, which nothing can refer to.
fn in_stack_env(text: &str, read: &Result<Vec<(String, String)>, DotenvError>) {
    match (
        rewritten("services: {a: {image: x}}", Some(text), &EnvFiles::new()),
        read,
    ) {
        (Ok(faithful), Ok(variables)) => {
            let arrived = dotenv::parse(&faithful.stack_env(), &|_| Some("expanded".into()));
            let mut expected = variables.clone();
            expected.retain(|(name, _)| !name.is_empty());
            assert_eq!(arrived, Ok(expected));
        }
        (Err(blockers), Err(_)) => assert_eq!(blockers[0].reason, Reason::BadEnvFile),
        // `COMPOSE_FILE` names another file.
        (Err(blockers), Ok(_)) => assert_eq!(blockers[0].reason, Reason::SeveralFiles),
        (Ok(_), Err(error)) => panic!("{error}"),
    }
}

/// The variables that a service gets from a file; `None` if Compose rejects it.
fn in_environment(text: &str, format: &str, expected: Option<BTreeMap<String, String>>) {
    let compose = format!("services: {{a: {{image: x, env_file: [{{path: a.env{format}}}]}}}}");
    let files = EnvFiles::from([("/s/a.env".to_owned(), Some(text.to_owned()))]);
    let rewritten = rewritten(&compose, None, &files);
    let mut names = expected.iter().flat_map(BTreeMap::keys);
    if names.any(|name| name.len() > LONG) {
        return;
    }
    // No container accepts a variable without a name.
    let Some(expected) = expected.filter(|expected| !expected.contains_key("")) else {
        return assert_eq!(
            rewritten.expect_err("to be refused")[0].reason,
            Reason::BadEnvFile
        );
    };
    let text = rewritten.expect("compose reads it").text;
    let document = Document::parse(&text).expect("YAML");
    let environment = services(&document)[0].environment();
    let arrived = environment.into_iter().map(|entry| {
        let value = entry.value.expect("a value");
        let value = interpolate(value, &|_| Some("expanded".into())).expect("escaped");
        (entry.name.to_owned(), value.into_owned())
    });
    assert_eq!(arrived.collect::<BTreeMap<_, _>>(), expected);
}

/// `format: raw` by its rules: on each line a name, `=`, and the value.
fn raw(text: &str) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (line, shell(line)),
        };
        if name.is_empty() || name.contains([' ', '\t']) {
            return None;
        }
        found.extend(value.map(|value| (name.to_owned(), value)));
    }
    Some(found)
}

fn rewritten(text: &str, env: Option<&str>, files: &EnvFiles) -> Result<Faithful, Vec<Blocker>> {
    let context = Context {
        stack_dir: "/s",
        file: "docker-compose.yml",
        env_file: ".env",
        home: Some("/root"),
        shell: &shell,
        project: None,
        overrides: &[],
        env_files: files,
    };
    faithful::rewrite(text, env, &context, &faithful::Runs::default())
}
