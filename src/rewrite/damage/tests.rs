use proptest::prelude::*;

use composefile::document::Document;

use super::{Verdict, judge_document};
use crate::rewrite::literal::rewrite;

const DIR: &str = "/s/web";

fn shown(text: &str, dir: &str) -> Vec<String> {
    let document = Document::parse(text).expect(text);
    match judge_document(&document, &rewrite(text, dir), dir) {
        Verdict::Undamaged => Vec::new(),
        Verdict::Damaged(damages) => damages.iter().map(ToString::to_string).collect(),
    }
}

/// Puts lines below a service `web` that starts on line 3.
fn web(lines: &str) -> String {
    let indented = lines.replace('\n', "\n    ");
    format!("services:\n  web:\n    {indented}\n")
}

#[test]
fn undamaged_texts() {
    for text in [
        web("env_file:\n  -   .env  \n  - .env\nimage: i"),
        web("image: i\nenv_file:\n- .env\nuser: u"),
        web("image: i\nenv_file: [.env, ./app.env] # x ./y\nuser: u"),
        web("image: i\nenv_file:\n\n  # the file\n  - .env\n\nuser: u"),
        web("image: i\nenv_file:\n  - .env\nuser: u").replace('\n', "\r\n"),
        format!("\u{feff}{}", web("image: i\nenv_file: .env").trim_end()),
        web("volumes:\n  - ./a:/a\n  - ../b:/b\n  - \"./c:/c\"\n  - './d:/d'"),
        web("labels:\n  ./k: ./v\n  ? './q'\n  : 1"),
        web("command: |\n  ./run\n\n  ../x\nuser: >-\n  ./a\n  ./b"),
        web("command: ./a\n  ./b\n  ./c # ./d"),
        web("command: \"\\t./a \\u00e4./\"\nuser: 'it''s ./x'"),
        web("image: &i ./i\nenv_file: &e .env\nuser: *i"),
        web("image: !<./t> i\na: 1\nb: ~\nc:\nd: 1.5\nenv_file: .env\ne: true"),
        web("image: i\nenv_file: &e .env") + "  api:\n    image: i\n    env_file: *e\n",
        "x-b: &b\n  image: i\n  env_file: .env\nservices:\n  web:\n    <<: *b\n".to_owned(),
        "services:\n  web: {\n    image: i,\n    env_file: .env,\n    user: u }\n".to_owned(),
        "include:\n  - path: a.yml\n    env_file: .env\n    project_directory: ./x\n".to_owned(),
        "# env_file: .env\n".to_owned(),
        String::new(),
    ] {
        assert_eq!(shown(&text, DIR), [""; 0], "{text}");
    }
}

#[test]
fn damaged_texts() {
    let left = |line| format!("line {line}: part of the removed services.web.env_file remains");
    let gone = |at: &str| {
        let (line, path) = at.split_once(' ').expect("a line and a path");
        format!("line {line}: deletes a line of {path}, which is not an env_file")
    };
    let other = |at: &str| {
        let (line, path) = at.split_once(' ').expect("a line and a path");
        format!("line {line}: {path} gets a different value")
    };
    let stays = |line| {
        let path = "services.web.env_file";
        format!("line {line}: {path} is not removed, and Portainer cannot read the file")
    };
    for (text, expected) in [
        // A part of an `env_file` remains, and becomes part of another value.
        (
            web("ports:\n  - 80:80\nenv_file:\n  - .env\n  - ./app.env"),
            vec![other("4 services.web.ports"), left(7)],
        ),
        (
            web("ports:\n- 80:80\nenv_file:\n- .env # mine"),
            vec![other("4 services.web.ports"), left(6)],
        ),
        (
            web("image: foo\nenv_file:\n  - app.env\nuser: u"),
            vec![other("3 services.web.image"), left(5)],
        ),
        (
            web("command: |\n  run\nenv_file:\n  - app.env"),
            vec![other("4 services.web.command"), left(6)],
        ),
        (
            web("env_file:\n  - app.env"),
            vec![other("3 services.web"), left(4)],
        ),
        // Another line goes.
        (
            web("command:\n  - cat\n  - .env\n  - x"),
            vec![gone("5 services.web.command[1]")],
        ),
        (
            web("image: i\nconfigs:\n  - .env"),
            vec![gone("5 services.web.configs")],
        ),
        (
            web("command: |\n  cat <<E\n  env_file: x\n  E"),
            vec![gone("5 services.web.command")],
        ),
        (
            web("environment:\n  A: 1\n  env_file: x\n  B: 2"),
            vec![gone("5 services.web.environment.env_file")],
        ),
        (
            web("image: i\nenvironment:\n  env_file: x"),
            vec![gone("5 services.web.environment.env_file")],
        ),
        (
            "env_file: .env\nservices: {}\n".to_owned(),
            vec![gone("1 env_file")],
        ),
        ("env_file: .env\n".to_owned(), vec![gone("1 the top level")]),
        (
            "x-f: &f\n  - .env\nservices:\n  web:\n    env_file: *f\n    user: u\n".to_owned(),
            vec![gone("2 x-f")],
        ),
        // A mapping becomes null.
        (
            web("env_file: .env"),
            vec!["line 3: services.web loses all its entries".to_owned()],
        ),
        // An `env_file` stays.
        (
            "services:\n  web: {image: i, env_file: .env}\n".to_owned(),
            vec![stays(2)],
        ),
        (
            web("image: i\n'env_file':\n  - .env\n  - a.env"),
            vec![stays(4)],
        ),
        (web("image: i\n? env_file\n: .env\nuser: u"), vec![stays(4)]),
        (web("image: i\nenv_file : .env"), vec![stays(4)]),
        // A path is not replaced, or an alias gets another target.
        (
            web("command: \".\\/a\""),
            vec![other("3 services.web.command")],
        ),
        (
            "services:\n  a:\n    image: &x one\n  b:\n    env_file: &x .env\n    image: *x\n"
                .to_owned(),
            vec![other("6 services.b.image")],
        ),
        (
            web("command:\n  - .env\n  - a\nenv_file : .env\nuser:\n  env_file: x"),
            vec![
                gone("4 services.web.command[0]"),
                stays(6),
                gone("8 services.web.user.env_file"),
            ],
        ),
    ] {
        assert_eq!(shown(&text, DIR), expected, "{text}");
    }
}

#[test]
fn invalid_results() {
    for (text, lines) in [
        (web("image: 'i'\nenv_file:\n  - a.env\nuser: u"), vec![5, 5]),
        (
            web("image: i\nlabels:\n  a: b\nenv_file:\n- a.env\nuser: u"),
            vec![7, 7],
        ),
        (
            web("image: 'i'\nenv_file: [.env,\n  a.env]\nuser: u"),
            vec![5, 5],
        ),
        (web("image: i\nenv_file: &e .env\nlabel_file: *e"), vec![5]),
    ] {
        let found = shown(&text, DIR);
        let all = found.iter().zip(&lines);
        assert_eq!(found.len(), lines.len(), "{found:?}");
        assert!(found[0].contains("not valid YAML"), "{found:?}");
        for (one, line) in all {
            assert!(one.starts_with(&format!("line {line}: ")), "{found:?}");
        }
    }
}

#[test]
fn a_directory_that_does_not_fit_is_damage() {
    for (dir, lines) in [
        ("/s/it's", "volumes:\n  - './a:/a'"),
        ("/s/a\"b", "command: \"./a\""),
        ("/s/a\\x", "command: \"./a\""),
        ("/s/a # b", "command: ./a"),
        ("/s/a: b", "command: [./a]"),
        ("/s/a: b", "command: x ./a"),
        ("/s/a, b", "command: [./a, c]"),
        ("/s/a\nb", "command: ./a"),
        ("/s/a ", "command: x\nlabels: {./: y}"),
    ] {
        let found = shown(&web(lines), dir);
        let fits = dir == "/s/a ";
        assert_eq!(found.is_empty(), fits, "{dir} in {lines}: {found:?}");
    }
}

#[test]
fn a_long_list_is_cut() {
    let text = format!("a:\n{}", "- .env\n- x\n".repeat(1000));
    assert_eq!(shown(&text, DIR).len(), super::MOST);
}

/// The expected meaning of a text without anchors, built the slow way.
mod slow {
    use serde_json::{Map, Value, json};

    use crate::rewrite::env_files::{Where, below, is_env_file, item};
    use composefile::{
        document::{Document, Node},
        schema::ROOT,
    };

    pub(super) fn value(document: &Document<'_>, dir: Option<&str>) -> Value {
        document
            .root()
            .map_or(Value::Null, |root| read(root, Some(&ROOT), dir))
    }

    fn read(node: Node<'_>, at: Where, dir: Option<&str>) -> Value {
        if let Some((text, _)) = node.scalar() {
            return json!([format!("{:?}", node.scalar_type()), replaced(text, dir)]);
        }
        if node.is_sequence() {
            return node
                .own_items()
                .map(|node| read(node, item(at), dir))
                .collect();
        }
        let mut entries = Map::new();
        for entry in node.own_entries() {
            if dir.is_some() && is_env_file(at, &entry) {
                continue;
            }
            let key = read(entry.key, None, dir);
            entries.insert(
                format!("{key} {}", entries.len()),
                read(entry.value, below(at, &entry), dir),
            );
        }
        json!({ "mapping": entries })
    }

    fn replaced(text: &str, dir: Option<&str>) -> String {
        dir.map_or_else(
            || text.to_owned(),
            |dir| text.replace("./", &format!("{dir}/")),
        )
    }
}

fn compose_like() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "services:",
        "  web:",
        "    image: i",
        "    env_file: .env",
        "    env_file:",
        "      - .env",
        "      - a.env",
        "    - .env",
        "    - ./b.env",
        "    command:",
        "      - x",
        "      - ./y",
        "    user: |",
        "      text ./z",
        "      env_file: q",
        "    labels:",
        "      env_file: l",
        "x-a:",
        "  env_file: [.env]",
        "# ./c",
        "",
        "    volumes: [./a, ../b]",
        "  api: {image: i, env_file: .env}",
        "include:",
        "  - path: ./p",
    ]);
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The verdict equals that of a direct reading of the rule.
    #[test]
    fn the_verdict_is_the_rules(text in compose_like()) {
        let result = rewrite(&text, DIR);
        let Ok(before) = Document::parse(&text) else {
            return Ok(());
        };
        let verdict = judge_document(&before, &result, DIR);
        let undamaged = Document::parse(&result)
            .is_ok_and(|after| slow::value(&before, Some(DIR)) == slow::value(&after, None));
        prop_assert_eq!(verdict == Verdict::Undamaged, undamaged, "{}\n=>\n{}\n{:?}", text, result, verdict);
    }
}
