use proptest::prelude::*;

use super::losses;
use composefile::{
    document::Document,
    reader::{Context, EnvFiles},
};

const ENV: &str = "TOKEN=t\nDATA=./data-of-mine\nMODE=m\nABS=/srv\nURL=https://x/y.git\n";

fn shown(text: &str) -> Vec<String> {
    shown_with(text, ENV)
}

fn shown_with(text: &str, env: &str) -> Vec<String> {
    let app = "MODE=a\nAPP=1\n".to_owned();
    let env_files = EnvFiles::from([
        ("/s/web/app.env".to_owned(), Some(app)),
        ("/s/web/none.env".to_owned(), None),
    ]);
    let context = Context {
        stack_dir: "/s/web",
        file: "docker-compose.yml",
        env_file: ".env",
        home: Some("/home/u"),
        shell: &|name| match name {
            "HOME" => Some("/home/u".to_owned()),
            "USER" => Some("u".to_owned()),
            "PWD" => Some("/s/web".to_owned()),
            _ => None,
        },
        project: None,
        overrides: &[],
        env_files: &env_files,
    };
    let document = Document::parse(text).expect(text);
    losses(&document, Some(env), &context, "web")
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn of_web(lines: &str) -> Vec<String> {
    let indented = lines.replace('\n', "\n    ");
    shown(&format!("services:\n  web:\n    {indented}\n"))
}

#[test]
fn variables_that_are_no_longer_set() {
    assert_eq!(
        of_web("image: i\nenv_file: .env"),
        [
            "service web: TOKEN will no longer be set (from .env)",
            "service web: DATA will no longer be set (from .env)",
            "service web: MODE will no longer be set (from .env)",
            "service web: ABS will no longer be set (from .env)",
            "service web: URL will no longer be set (from .env)",
        ]
    );
    assert_eq!(
        of_web("env_file: [.env, ./app.env]\nenvironment:\n  TOKEN: x\n  DATA:\n  ABS:\n  URL:"),
        [
            "service web: MODE will no longer be set (from ./app.env)",
            "service web: APP will no longer be set (from ./app.env)",
        ]
    );
    assert_eq!(
        of_web("env_file: .env\nenvironment: [TOKEN, DATA=, 'MODE=${MODE}', ABS, URL]"),
        [""; 0]
    );
}

#[test]
fn unreadable_env_files() {
    assert_eq!(
        of_web("env_file: [locked.env, none.env, unasked.env]"),
        [
            "service web: cannot read locked.env: its variables will no longer be set",
            "service web: cannot read none.env: its variables will no longer be set",
            "service web: cannot read unasked.env: its variables will no longer be set",
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
        ["service web: Portainer needs .env (env_file), but might not be able to read it"]
    );
    assert_eq!(
        of_web(
            "\"env_file\":\n  - .env\n  - ./app.env\nenvironment: {TOKEN: , DATA: , ABS: , URL: }"
        ),
        [
            "service web: MODE will no longer be set (from .env)",
            "service web: Portainer needs ./app.env (env_file), but might not be able to read it",
        ]
    );
}

#[test]
fn paths_that_keep_their_meaning() {
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
fn paths_that_point_elsewhere() {
    let elsewhere = |path: &str| format!("service web: {path} will be resolved inside Portainer");
    let becomes = |path: &str, other: &str| {
        format!("service web: {path} will point to a different place: {other}")
    };
    for (lines, expected) in [
        ("volumes: ['../a:/a']", becomes("../a", "./s/web/a")),
        ("volumes: ['.:/a']", elsewhere(".")),
        ("volumes: ['~/a:/a:ro']", elsewhere("~/a")),
        ("volumes: ['${DATA}/db:/a']", elsewhere("${DATA}/db")),
        ("volumes: ['$HOME/a:/a']", elsewhere("$HOME/a")),
        (
            "volumes: [{type: bind, source: dir/f, target: /a}]",
            elsewhere("dir/f"),
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
            "secret b: b.txt will be resolved inside Portainer",
            "config c: ../c will point to a different place: ./s/web/c",
            "volume v: data will be resolved inside Portainer",
        ]
    );
}

#[test]
fn files_that_portainer_needs() {
    assert_eq!(
        of_web("build: .\nextends: {file: base.yml, service: x}\nlabel_file: ./l"),
        [
            "service web: Portainer needs base.yml (extends), but might not be able to read it",
            "service web: Portainer needs . (build), but might not be able to read it",
            "service web: Portainer needs ./l (label_file), but might not be able to read it",
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
            "Compose file: Portainer needs ./a.yml (include), but might not be able to read it",
            "Compose file: Portainer needs b.yml (include), but might not be able to read it",
        ]
    );
}

#[test]
fn strings_that_are_not_paths() {
    let replaced =
        |place: &str| format!("service web: the rewrite changes {place}, which is not a path");
    for (lines, place) in [
        ("entrypoint: [sh, ../x]", "services.web.entrypoint[1]"),
        ("environment: {A: ./x}", "services.web.environment.A"),
        ("environment: [A=./x]", "services.web.environment[0]"),
        ("labels: {./k: v}", "services.web.labels../k"),
        ("volumes: ['./a:/a/../b']", "services.web.volumes[0]"),
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
fn variables_with_another_value_in_portainer() {
    let other = |place: &str, names: &str| {
        format!("service web: services.web.{place} will have a different value, because of {names}")
    };
    for (lines, expected) in [
        ("command: $HOME", other("command", "HOME")),
        (
            "labels: ['${USER}:${PWD:-x}']",
            other("labels[0]", "USER, PWD"),
        ),
        ("environment: [USER]", other("environment[0]", "USER")),
        ("environment: {HOME: }", other("environment.HOME", "HOME")),
        ("volumes: ['${USER}_v:/v']", other("volumes[0]", "USER")),
        ("image: ${IMAGE-$HOME}", other("image", "HOME")),
    ] {
        assert_eq!(of_web(lines), [expected], "{lines}");
    }
    for lines in ["command: $$HOME", "image: ${MODE-$HOME}", "command: $NONE"] {
        assert_eq!(of_web(lines), [""; 0], "{lines}");
    }
    let text = "services:\n  web:\n    command: $A $B\n";
    assert_eq!(
        shown_with(text, "A: of yaml style\nB=\"x # y\"\n"),
        [other("command", "A")]
    );
    let both = of_web("command: ./$HOME");
    assert_eq!(both.len(), 2, "{both:?}");
}

#[test]
fn an_env_that_portainer_cannot_parse() {
    let text = "services:\n  web:\n    command: $A\n";
    assert_eq!(
        shown_with(text, "# c\nB=1\n\nA=\"l1\nl2\"\n"),
        [
            ".env: Portainer cannot parse the variables as they are sent, so the deployment will fail: line 4: unterminated quoted value"
        ]
    );
}

#[test]
fn another_project_name_and_ignored_files() {
    assert_eq!(
        shown("name: shop\nservices:\n  web: {image: i}\n"),
        [
            "Compose file: the project will be named web instead of shop, with new volumes and networks"
        ]
    );
    assert_eq!(
        shown_with(
            "services:\n  web: {image: i}\n",
            "COMPOSE_FILE=docker-compose.yml:more.yml\n"
        ),
        ["Compose file: more.yml will be ignored"]
    );
}

#[test]
fn extended_services() {
    let text = "services:\n  base:\n    env_file: ./app.env\n    build: .\n    command: ./x\n    environment: {A: ./x, MODE: m}\n    volumes: ['../a:/a', '../b:/b']\n  web:\n    extends: base\n    command: x\n    environment: {A: x}\n    volumes: ['/b:/b']\n";
    let of = |service: &str| {
        let shown = shown(text).into_iter();
        shown
            .filter_map(|loss| Some(loss.strip_prefix(service)?.to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("service web: "),
        [
            "APP will no longer be set (from ./app.env)",
            "../a will point to a different place: ./s/web/a",
            "Portainer needs . (build), but might not be able to read it",
        ]
    );
    assert_eq!(of("service base: ").len(), 6);
}

/// A service of lines that each lose something, in any order and shape.
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
