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
            "service web: TOKEN of .env is no longer set",
            "service web: DATA of .env is no longer set",
            "service web: MODE of .env is no longer set",
            "service web: ABS of .env is no longer set",
            "service web: URL of .env is no longer set",
        ]
    );
    assert_eq!(
        of_web("env_file: [.env, ./app.env]\nenvironment:\n  TOKEN: x\n  DATA:\n  ABS:\n  URL:"),
        [
            "service web: MODE of ./app.env is no longer set",
            "service web: APP of ./app.env is no longer set",
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
            "service web: cannot read locked.env: its variables are no longer set",
            "service web: cannot read none.env: its variables are no longer set",
            "service web: cannot read unasked.env: its variables are no longer set",
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
        ["service web: Portainer may be unable to read .env (env_file)"]
    );
    assert_eq!(
        of_web(
            "\"env_file\":\n  - .env\n  - ./app.env\nenvironment: {TOKEN: , DATA: , ABS: , URL: }"
        ),
        [
            "service web: MODE of .env is no longer set",
            "service web: Portainer may be unable to read ./app.env (env_file)",
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
    let elsewhere = |path: &str| format!("service web: {path} is resolved inside Portainer");
    let becomes = |path: &str, other: &str| {
        format!("service web: {path} becomes {other}, which is another place")
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
            "secret b: b.txt is resolved inside Portainer",
            "config c: ../c becomes ./s/web/c, which is another place",
            "volume v: data is resolved inside Portainer",
        ]
    );
}

#[test]
fn files_that_portainer_needs() {
    assert_eq!(
        of_web("build: .\nextends: {file: base.yml, service: x}\nlabel_file: ./l"),
        [
            "service web: Portainer may be unable to read base.yml (extends)",
            "service web: Portainer may be unable to read the build directory .",
            "service web: Portainer may be unable to read ./l (label_file)",
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
            "Compose file: Portainer may be unable to read ./a.yml (include)",
            "Compose file: Portainer may be unable to read b.yml (include)",
        ]
    );
}

#[test]
fn strings_that_are_not_paths() {
    let replaced =
        |place: &str| format!("service web: the rewrite changes {place}, which is not a path");
    for (lines, place) in [
        ("entrypoint: [sh, ../x]", "entrypoint[1]"),
        ("environment: {A: ./x}", "environment.A"),
        ("environment: [A=./x]", "environment[0]"),
        ("labels: {./k: v}", "labels../k"),
        ("volumes: ['./a:/a/../b']", "volumes[0]"),
        ("volumes: [{type: tmpfs, target: ./b}]", "volumes[0].target"),
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
        let (names, verb) = if names.contains(", ") {
            (names.to_owned(), "are")
        } else {
            (format!("${{{names}}}"), "is")
        };
        format!("service web: {place} changes: {names} {verb} different in Portainer")
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
            ".env: the deployment would fail, because Portainer cannot parse line 4: unterminated quoted value"
        ]
    );
}

#[test]
fn another_project_name_and_ignored_files() {
    assert_eq!(
        shown("name: shop\nservices:\n  web: {image: i}\n"),
        ["Compose file: the project is named web instead of shop, with new volumes and networks"]
    );
    assert_eq!(
        shown_with(
            "services:\n  web: {image: i}\n",
            "COMPOSE_FILE=docker-compose.yml:more.yml\n"
        ),
        ["Compose file: more.yml is ignored"]
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
            "APP of ./app.env is no longer set",
            "../a becomes ./s/web/a, which is another place",
            "Portainer may be unable to read the build directory .",
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
