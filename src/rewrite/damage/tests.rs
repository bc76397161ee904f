use proptest::prelude::*;

use composefile::document::Document;

use super::damages;
use crate::rewrite::literal::rewrite;

const DIR: &str = "/s/web";

fn shown(text: &str, dir: &str) -> Vec<String> {
    let document = Document::parse(text).expect(text);
    let damages = damages(&document, &rewrite(text, dir), dir);
    damages.iter().map(ToString::to_string).collect()
}

/// Puts lines below a service `web` that starts on line 3.
fn web(lines: &str) -> String {
    let indented = lines.replace('\n', "\n    ");
    format!("services:\n  web:\n    {indented}\n")
}

#[test]
fn lines_that_are_no_env_file_are_named() {
    let gone = |at: &str| {
        let (line, path) = at.split_once(' ').expect("a line and a path");
        format!("line {line}: deletes a line of {path}, which is not an env_file")
    };
    let variable = "environment.env_file";
    for (lines, below) in [
        ("command:\n  - cat\n  - .env\n  - x", "command[1]"),
        ("image: i\nconfigs:\n  - .env", "configs"),
        ("command: |\n  cat <<E\n  env_file: x\n  E", "command"),
        ("environment:\n  A: 1\n  env_file: x\n  B: 2", variable),
        ("image: i\nenvironment:\n  env_file: x", variable),
    ] {
        let at = format!("5 services.web.{below}");
        assert_eq!(shown(&web(lines), DIR), [gone(&at)], "{lines}");
    }
    let aliased = "x-f: &f\n  - .env\nservices:\n  web:\n    env_file: *f\n    user: u\n";
    for (text, at) in [
        ("env_file: .env\nservices: {}\n", "1 env_file"),
        ("env_file: .env\n", "1 the top level"),
        (aliased, "2 x-f"),
    ] {
        assert_eq!(shown(text, DIR), [gone(at)], "{text}");
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
        let damages = damages(&before, &result, DIR);
        let undamaged = Document::parse(&result)
            .is_ok_and(|after| slow::value(&before, Some(DIR)) == slow::value(&after, None));
        prop_assert_eq!(damages.is_empty(), undamaged, "{}\n=>\n{}\n{:?}", text, result, damages);
    }
}
