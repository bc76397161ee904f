use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{EnvFileNames, Surroundings, env_file_paths, losses};
use crate::compose::document::Document;

fn shown(text: &str) -> Vec<String> {
    let names =
        |names: &[&str]| EnvFileNames::Names(names.iter().map(|&name| name.to_owned()).collect());
    let env_files = BTreeMap::from([
        (".env".to_owned(), names(&["TOKEN", "DATA", "MODE"])),
        ("./app.env".to_owned(), names(&["MODE", "APP"])),
        ("none.env".to_owned(), EnvFileNames::Absent),
        ("locked.env".to_owned(), EnvFileNames::Unreadable),
    ]);
    let around = Surroundings {
        stack_dir: "/s/web",
        env_files: &env_files,
        variables: &|name| match name {
            "DATA" => Some("./data-of-mine".to_owned()),
            "ABS" => Some("/srv".to_owned()),
            "URL" => Some("https://x/y.git".to_owned()),
            _ => None,
        },
    };
    let document = Document::parse(text).expect(text);
    losses(&document, &around)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn of_web(lines: &str) -> Vec<String> {
    let indented = lines.replace('\n', "\n    ");
    shown(&format!("services:\n  web:\n    {indented}\n"))
}

#[test]
fn variables_that_no_longer_arrive() {
    assert_eq!(
        of_web("image: i\nenv_file: .env"),
        [
            "service web: TOKEN no longer arrives (from .env)",
            "service web: DATA no longer arrives (from .env)",
            "service web: MODE no longer arrives (from .env)",
        ]
    );
    assert_eq!(
        of_web("env_file: [.env, ./app.env]\nenvironment:\n  TOKEN: x\n  DATA:"),
        [
            "service web: MODE no longer arrives (from ./app.env)",
            "service web: APP no longer arrives (from ./app.env)",
        ]
    );
    assert_eq!(
        of_web("env_file: .env\nenvironment: [TOKEN, DATA=, 'MODE=${MODE}']"),
        [""; 0]
    );
}

#[test]
fn variables_through_a_fragment() {
    let text = "x-base: &base\n  env_file: .env\nservices:\n  web:\n    <<: *base\n    environment: {TOKEN: x, MODE: y}\n  api:\n    image: i\n";
    assert_eq!(
        shown(text),
        ["service web: DATA no longer arrives (from .env)"]
    );
}

#[test]
fn env_files_that_nobody_can_read() {
    assert_eq!(
        of_web("env_file: [locked.env, none.env, unasked.env]"),
        [
            "service web: what locked.env sets no longer arrives; it cannot be read here",
            "service web: what none.env sets no longer arrives; it cannot be read here",
            "service web: what unasked.env sets no longer arrives; it cannot be read here",
        ]
    );
    assert_eq!(
        of_web("env_file:\n  - path: none.env\n    required: false"),
        [""; 0]
    );
}

#[test]
fn env_files_that_stay_in_the_text() {
    assert_eq!(
        shown("services:\n  web: {image: i, env_file: .env}\n"),
        ["service web: the manager must be able to read .env (env_file)"]
    );
    assert_eq!(
        of_web("\"env_file\":\n  - .env\n  - ./app.env\nenvironment: {TOKEN: , DATA: }"),
        [
            "service web: MODE no longer arrives (from .env)",
            "service web: the manager must be able to read ./app.env (env_file)",
        ]
    );
}

#[test]
fn paths_that_stay_where_they_are() {
    for lines in [
        "volumes: ['./a:/a', '/b:/b', 'data:/c', '/anon', './:/y']",
        "volumes: ['${ABS}/a:/a', '${ABS:-../x}:/b', '${NONE:-./d}:/d', 'n:/n:/m', '/b/.hidden:/c']",
        "volumes: [{type: bind, source: ./a, target: /a}, {type: volume, source: a/b, target: /b}]",
        "volumes: ['a/b:/b', '${NONE:?no}:/x', '/anon/.x']",
    ] {
        assert_eq!(of_web(lines), [""; 0], "{lines}");
    }
}

#[test]
fn paths_that_lead_elsewhere() {
    let elsewhere =
        |path: &str| format!("service web: the manager looks for {path} in a folder of its own");
    let becomes = |path: &str, other: &str| {
        format!("service web: {path} becomes {other}, which is another place")
    };
    for (lines, expected) in [
        ("volumes: ['../a:/a']", becomes("../a", "./s/web/a")),
        (
            "volumes: ['./../a:/a']",
            becomes("./../a", "/s/web/./s/web/a"),
        ),
        ("volumes: ['././a:/a']", becomes("././a", "/s/web//s/web/a")),
        ("volumes: ['.:/a']", elsewhere(".")),
        ("volumes: ['..:/a']", elsewhere("..")),
        ("volumes: ['.hidden/a:/a']", elsewhere(".hidden/a")),
        ("volumes: ['~:/a']", elsewhere("~")),
        ("volumes: ['~/a:/a:ro']", elsewhere("~/a")),
        ("volumes: ['/a/./b:/a']", becomes("/a/./b", "/a//s/web/b")),
        (
            "volumes: ['/a/../b:/a']",
            becomes("/a/../b", "/a/./s/web/b"),
        ),
        ("volumes: ['${DATA}/db:/a']", elsewhere("${DATA}/db")),
        (
            "volumes: ['${NONE:-../x}:/a']",
            becomes("${NONE:-../x}", "${NONE:-./s/web/x}"),
        ),
        ("volumes: ['${PWD}/a:/a']", elsewhere("${PWD}/a")),
        ("volumes: ['$HOME/a:/a']", elsewhere("$HOME/a")),
        (
            "volumes: [{type: bind, source: dir/f, target: /a}]",
            elsewhere("dir/f"),
        ),
        (
            "volumes: [{type: bind, source: ../f, target: /a}]",
            becomes("../f", "./s/web/f"),
        ),
    ] {
        assert_eq!(of_web(lines), [expected], "{lines}");
    }
}

#[test]
fn paths_outside_services() {
    let text = "secrets: {a: {file: ./a}, b: {file: b.txt}}\nconfigs: {c: {file: ../c}, d: {content: x}}\nvolumes:\n  v: {driver: local, driver_opts: {type: none, o: bind, device: data}}\n  w: {driver_opts: {device: data}}\n  x:\n";
    assert_eq!(
        shown(text),
        [
            "secret b: the manager looks for b.txt in a folder of its own",
            "config c: ../c becomes ./s/web/c, which is another place",
            "volume v: the manager looks for data in a folder of its own",
        ]
    );
}

#[test]
fn files_the_manager_must_read() {
    assert_eq!(
        of_web("build: .\nextends: {file: base.yml, service: x}\nlabel_file: ./l"),
        [
            "service web: the manager must be able to read base.yml (extends)",
            "service web: the manager must be able to read . (build)",
            "service web: the manager must be able to read ./l (label_file)",
        ]
    );
    assert_eq!(
        of_web("build: https://github.com/a/b.git\nextends: {service: x}"),
        [""; 0]
    );
    assert_eq!(
        of_web("build: {context: '${URL}', additional_contexts: {x: docker-image://a}}"),
        [""; 0]
    );
    assert_eq!(
        shown("include:\n  - ./a.yml\n  - path: [b.yml, 'oci://c']\n"),
        [
            "compose file: the manager must be able to read ./a.yml (include)",
            "compose file: the manager must be able to read b.yml (include)",
        ]
    );
}

#[test]
fn strings_that_are_no_paths_of_the_host() {
    let replaced = |place: &str| {
        format!("service web: `./` is replaced in {place}, which is no path of this host")
    };
    for (lines, place) in [
        ("command: ./run", "services.web.command"),
        ("entrypoint: [sh, ../x]", "services.web.entrypoint[1]"),
        ("environment: {A: ./x}", "services.web.environment.A"),
        ("environment: [A=./x]", "services.web.environment[0]"),
        ("labels: {./k: v}", "services.web.labels../k"),
        (
            "healthcheck: {test: [CMD, ./x]}",
            "services.web.healthcheck.test[1]",
        ),
        ("volumes: ['data:/a/./b']", "services.web.volumes[0]"),
        ("volumes: ['./a:/a/../b']", "services.web.volumes[0]"),
        (
            "volumes: [{type: bind, source: ./a, target: /a/./b}]",
            "services.web.volumes[0].target",
        ),
        (
            "volumes: [{type: tmpfs, target: ./b}]",
            "services.web.volumes[0].target",
        ),
    ] {
        assert_eq!(of_web(lines), [replaced(place)], "{lines}");
    }
    let fragment =
        "x-a: &a\n  command: ./x\nx-unused: ./y\nservices:\n  web: {<<: *a}\n  api: *a\n";
    assert_eq!(
        shown(fragment),
        [
            replaced("x-a.command"),
            replaced("x-a.command").replace("web", "api")
        ]
    );
    assert_eq!(
        shown("configs: {c: {content: ./x}}\nnetworks: {n: {labels: [a=./b]}}\n").len(),
        2
    );
}

#[test]
fn losses_never_show_a_value() {
    let found = of_web("volumes: ['${DATA}:/d', '../${DATA}:/e']").join("\n");
    assert!(
        found.contains("${DATA}") && !found.contains("data-of-mine"),
        "{found}"
    );
}

#[test]
fn losses_are_data() {
    let document = Document::parse("services:\n  web:\n    volumes: [../a:/a]\n").expect("YAML");
    let around = Surroundings {
        stack_dir: "/s",
        env_files: &BTreeMap::new(),
        variables: &|_| None,
    };
    let json = serde_json::to_value(losses(&document, &around)).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!([{"owner": {"service": "web"}, "line": 3, "kind": "path", "path": "../a", "becomes": "./s/a"}])
    );
}

#[test]
fn the_env_files_to_read() {
    let text = "x-f: &f [.env, {path: a.env, required: false}]\nservices:\n  web: {env_file: *f}\n  api: {env_file: .env}\n  job: {env_file: [{path: r.env, format: raw}]}\n";
    let document = Document::parse(text).expect(text);
    let paths = env_file_paths(&document);
    let read: Vec<_> = paths
        .iter()
        .map(|file| (file.path.as_str(), file.required, file.format.as_deref()))
        .collect();
    assert_eq!(
        read,
        [
            (".env", true, None),
            ("a.env", false, None),
            ("r.env", true, Some("raw"))
        ]
    );
}

#[test]
fn aliases_without_end_are_no_trouble() {
    let text = "x: &x {command: [*x, ./a], <<: *x}\nservices:\n  web: *x\n";
    assert_eq!(shown(text).len(), 2, "{:?}", shown(text));
}

/// A service out of lines that each lose something, in any order and of any shape.
fn services_of_any_shape() -> impl Strategy<Value = String> {
    let keys = vec![
        "env_file",
        "volumes",
        "build",
        "extends",
        "label_file",
        "environment",
        "command",
        "secrets",
        "include",
    ];
    let values = vec![
        ".env",
        "./ä",
        "../b",
        "~",
        "ü:/x",
        "[./a:/b, ..]",
        "*a",
        "${A:-./b}:/c",
        "${",
        "{path: ./x, file: y, source: ä, type: bind, target: z}",
    ];
    let line = (prop::sample::select(keys), prop::sample::select(values))
        .prop_map(|(key, value)| format!("{key}: {value}"));
    prop::collection::vec(line, 0..6).prop_map(|lines| {
        let body = lines.join("\n    ");
        format!(
            "x: &a {{<<: *a, k: [*a, ./y]}}\n{}\nservices:\n  web:\n    {body}\n",
            lines.join("\n")
        )
    })
}

proptest! {
    #[test]
    fn any_service_is_read(text in services_of_any_shape()) {
        if Document::parse(&text).is_ok() {
            let lines = text.lines().count();
            prop_assert!(shown(&text).len() <= 20 * lines);
        }
    }
}
