//! Properties of the rewrite on any text.

use proptest::prelude::*;

use super::{
    Context, EnvFiles, Faithful, Finding, Kind, Runs, ServiceRuns, env_files_needed, rewrite,
};
use crate::{
    rewrite::{masked, portainer},
    text::Mask,
};

/// A value of an env file.
const SECRET: &str = "zq7secret7qz";

fn run(text: &str, env: Option<&str>) -> Result<Faithful, Vec<Finding>> {
    run_with(text, env, &Runs::default())
}

fn run_with(text: &str, env: Option<&str>, runs: &Runs) -> Result<Faithful, Vec<Finding>> {
    let files = EnvFiles::from([(
        "/s/web/app.env".to_owned(),
        Some(format!("X={SECRET}\nY=$A\n")),
    )]);
    let shell = |name: &str| (name == "HOME").then(|| "/home/u".to_owned());
    let context = Context {
        stack_dir: "/s/web",
        file: "docker-compose.yml",
        env_file: ".env",
        home: Some("/home/u"),
        shell: &shell,
        project: None,
        overrides: &[],
        env_files: &files,
    };
    let _ = env_files_needed(text, env, &context);
    rewrite(text, env, &context, runs)
}

#[test]
fn the_given_name_of_the_project_is_that_of_its_variable_and_its_images() {
    let files = EnvFiles::new();
    let context = Context {
        stack_dir: "/s/web",
        file: "docker-compose.yml",
        env_file: ".env",
        home: None,
        shell: &|_| None,
        project: Some("shop"),
        overrides: &[],
        env_files: &files,
    };
    let text =
        "name: other\nservices:\n  a:\n    build: .\n    env_file: ${COMPOSE_PROJECT_NAME}.env\n";
    let expected = ["/s/web/shop.env".to_owned()];
    assert_eq!(env_files_needed(text, None, &context), expected);
    let files = EnvFiles::from([("/s/web/shop.env".to_owned(), Some("A=1\n".to_owned()))]);
    let context = Context {
        env_files: &files,
        ..context
    };
    let rewritten = rewrite(text, None, &context, &Runs::default()).expect("a rewrite");
    assert_eq!(rewritten.project, "shop");
    let text = rewritten.text;
    assert!(text.contains("image: \"shop-a\""), "{text}");
}

/// What runs of the services of [`lines`] and [`stacks`].
fn running() -> impl Strategy<Value = Runs> {
    let targets = prop::sample::subsequence(vec!["/d", "/e", "/x"], 0..3);
    let names = prop::sample::subsequence(vec!["A", "B", "HOME", "X"], 0..3);
    let service = (targets, names).prop_map(|(targets, names)| (targets, names));
    prop::collection::vec(service, 0..3).prop_map(|services| {
        let mut runs = Runs::default();
        for (name, (targets, names)) in ["a", "b", "c"].into_iter().zip(services) {
            let volume = |target: &str| (target.to_owned(), format!("{name}{target}").repeat(16));
            let variable = |name: &str| (name.to_owned(), "$x".to_owned());
            let service = ServiceRuns {
                containers: 1,
                volumes: targets.into_iter().map(volume).collect(),
                variables: names.into_iter().map(variable).collect(),
                instead_of: std::collections::BTreeMap::new(),
            };
            runs.services.insert(name.to_owned(), service);
        }
        runs
    })
}

const KEYS: [&str; 22] = [
    "<<: *x",
    "image: x",
    "build: .",
    "build: &b {context: .}",
    "env_file: .env",
    "env_file: [.env, app.env]",
    "env_file:\n      - path: app.env\n        required: false",
    "label_file: app.env",
    "environment: [HOME, A=$A]",
    "environment:\n      A: ${HOME}\n      HOME:",
    "environment: *e",
    "labels: {a: b}",
    "volumes: [., \"~:/x\", 'n:/n:/n']",
    "volumes:\n      - ./d:/d # c\n      - ${A:-./d}:/e",
    "volumes: [{type: bind, source: d, target: /d}]",
    "volumes:\n      - type: bind\n        source: >-\n          ./d\n        target: /d",
    "volumes: [/d, \"./x:/y\"] # c",
    "volumes:\n      - /e\n      - {type: volume, target: /d, read_only: true}",
    "volumes_from: [a]",
    "command: |\n      $HOME ä",
    "pull_policy: build",
    "extends: a",
];

/// Files that Compose mostly accepts: services with some of these keys.
fn stacks() -> impl Strategy<Value = String> {
    let keys = prop::sample::subsequence(KEYS.to_vec(), 1..8).prop_shuffle();
    let services = prop::collection::vec(keys, 1..4);
    (services, any::<bool>()).prop_map(|(services, is_crlf)| {
        let mut text =
            "x-x: &x\n  image: x\n  env_file: app.env\n  environment: &e\n    B: $A\nservices:\n"
                .to_owned();
        for (name, mut keys) in ["a", "b", "c"].into_iter().zip(services) {
            let mut seen = std::collections::HashSet::new();
            keys.retain(|key| seen.insert(key.split(':').next()));
            let lines = keys.iter().flat_map(|key| ["    ", key, "\n"]);
            text.extend(["  ", name, ":\n"].into_iter().chain(lines));
        }
        if is_crlf {
            text.replace('\n', "\r\n")
        } else {
            text
        }
    })
}

/// The result, rewritten again as Portainer stores it.
fn again(first: &Faithful) -> Result<Faithful, Vec<Finding>> {
    let env = first.stack_env();
    let shell = |name: &str| (name == "HOME").then(|| "/root".to_owned());
    let context = Context {
        project: None,
        ..portainer::context("/data/compose/7", "/root", &shell, "web")
    };
    let env = (!env.is_empty()).then_some(env.as_str());
    rewrite(&first.text, env, &context, &Runs::default())
}

/// Whether a text holds the pieces in order, the first at its start and the last at its end.
fn holds(mut text: &str, pieces: &[&str]) -> bool {
    let [first, middle @ .., last] = pieces else {
        return pieces == [text];
    };
    let Some(rest) = text.strip_prefix(first) else {
        return false;
    };
    text = rest;
    for piece in middle {
        let Some((_, rest)) = text.split_once(piece) else {
            return false;
        };
        text = rest;
    }
    text.ends_with(last)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn only_edits_change_a_text_and_only_once(
        text in stacks(),
        env in "(A=[./~a]{0,4}\n|B='\\$ #'\n){0,2}",
        runs in running(),
    ) {
        let first = match run_with(&text, Some(&env), &runs) {
            Ok(first) => first,
            Err(blockers) => {
                let is_internal = blockers.iter().any(|blocker| blocker.kind == Kind::Internal);
                prop_assert!(!is_internal, "{blockers:?}\n{text}");
                prop_assert!(!format!("{blockers:?}").contains(SECRET), "{text}");
                return Ok(());
            }
        };
        let shown = masked(&first.shown(), &Mask::default());
        prop_assert!(!shown.contains(SECRET), "{shown}");
        let starts = std::iter::once(0).chain(first.edits.iter().map(|edit| edit.span.end));
        let ends = first.edits.iter().map(|edit| edit.span.start).chain([text.len()]);
        let kept: Vec<_> = starts.zip(ends).map(|(start, end)| &text[start..end]).collect();
        prop_assert!(holds(&first.text, &kept), "{}\n{text}", first.text);

        let second = again(&first).map_err(|blockers| TestCaseError::fail(format!("{blockers:?}\n{}", first.text)))?;
        prop_assert!(second.edits.is_empty(), "{:?}\n{}", second.edits, first.text);
        prop_assert_eq!((second.text, second.env), (first.text, first.env));
    }
}

proptest! {
    #[test]
    fn no_bytes_end_the_program(text in any::<String>(), env in any::<String>()) {
        let _ = run(&text, Some(&env));
    }

    #[test]
    fn no_scalar_ends_the_program(value in any::<String>(), env in any::<String>()) {
        let value = value.replace('\'', "''");
        let text = format!("services:\n  a:\n    volumes: ['{value}', {{type: bind, source: '{value}'}}]\n");
        let _ = run(&text, Some(&env));
    }
}

#[test]
fn a_billion_laughs_cost_nothing() {
    let mut text = "x-a: &a0 [./x]\n".to_owned();
    for level in 0..40 {
        let line = format!("x-{level}: &a{} [*a{level}, *a{level}]\n", level + 1);
        text.push_str(&line);
    }
    text.push_str("services:\n  a:\n    image: x\n    volumes: *a40\n    labels: *a40\n");
    let _ = run(&text, None);
}

#[test]
fn debug_and_blockers_show_no_value() {
    let env = "TOKEN=hunter2hunter2\n";
    let text = "services:\n  a:\n    env_file: .env\n    image: x\n";
    let faithful = run(text, Some(env)).expect("rewritten");
    assert!(!format!("{faithful:?}").contains("hunter2"));
    let text = "services:\n  a:\n    image: \"$TOKEN${\"\n";
    let blockers = run(text, Some(env)).expect_err("blocked");
    assert!(!format!("{blockers:?}").contains("hunter2"));
}

#[test]
fn whole_scalars_are_hidden() {
    let text = "services:\n  a:\n    image: one\n    labels:\n      x: \"s c\"\n      y: \"s cret\"\n      z: one-two\n";
    let mut rewritten = run(text, None).expect("a text");
    rewritten.hide(&["\"s c\"", "\"s cret\"", "one"].map(str::to_owned).into());
    let expected = "services:\n  a:\n    image: \"***\"\n    labels:\n      x: \"***\"\n      y: \"***\"\n      z: one-two\n";
    assert_eq!(rewritten.shown(), expected);
}

/// The text with the bind mounts of these services in the long syntax.
fn with_long_binds(text: &str, services: &[&str]) -> String {
    let services = services.iter().map(|name| (*name).to_owned());
    let runs = Runs::default().with_long_binds(services.collect());
    let env = "GIVEN=./given\nMODE=ro\nBOTH=./a:/a\n";
    run_with(text, Some(env), &runs).expect("a rewrite").text
}

#[test]
fn b39_bind_mounts_of_every_form_get_the_long_syntax() {
    let text = "services:
  a:
    image: x
    volumes: # the list
      - ./conf:/conf          # a comment
      - ./one.conf:/one.conf:ro
      - /abs:/rw//x/:ro,rw
      - ./conf:/z:z,ro
      - ./conf:/cached:cached
      - './conf:/nocopy:nocopy'
      - data:/data
      - /anonymous
      - \"./conf:/slave:rslave\"
      - ${DATA:-./data}:/default
      - ${GIVEN}:/given:${MODE}
      - $BOTH
      - ~/ssh:/home
      - ./a: b:/colon
      - {type: bind, source: ./conf, target: /true, bind: {create_host_path: true}}
      - type: bind
        source: ./conf
        target: /both
        bind:
          create_host_path: true # a comment
          propagation: rslave
      - type: bind
        source: ./conf
        target: /block
        bind:
          create_host_path: true
      - {type: bind, source: ./conf, target: /false, bind: {create_host_path: false}}
  b:
    image: x
    volumes: [./conf:/conf]
volumes: {data: {}}
";
    let text = text.replace("      - ./a: b:/colon\n", "");
    let expected = r#"services:
  a:
    image: x
    volumes: # the list
      - {type: bind, source: /s/web/conf, target: /conf, bind: {}}          # a comment
      - {type: bind, source: /s/web/one.conf, target: /one.conf, read_only: true, bind: {}}
      - {type: bind, source: /abs, target: /rw/x, bind: {}}
      - {type: bind, source: /s/web/conf, target: /z, read_only: true, bind: {selinux: z}}
      - {type: bind, source: /s/web/conf, target: /cached, bind: {}}
      - {type: bind, source: /s/web/conf, target: /nocopy, bind: {}, volume: {nocopy: true}}
      - data:/data
      - /anonymous
      - {type: bind, source: /s/web/conf, target: /slave, bind: {propagation: rslave}}
      - {type: bind, source: "${DATA:-/s/web/data}", target: /default, bind: {}}
      - {type: bind, source: /s/web/given, target: /given, read_only: true, bind: {}}
      - {type: bind, source: /s/web/a, target: /a, bind: {}}
      - {type: bind, source: /home/u/ssh, target: /home, bind: {}}
      - {type: bind, source: /s/web/conf, target: /true, bind: {}}
      - type: bind
        source: /s/web/conf
        target: /both
        bind:
          propagation: rslave
      - type: bind
        source: /s/web/conf
        target: /block
        bind: {}
      - {type: bind, source: /s/web/conf, target: /false, bind: {create_host_path: false}}
  b:
    image: x
    volumes: [/s/web/conf:/conf]
volumes: {data: {}}
"#;
    assert_eq!(with_long_binds(&text, &["a"]), expected);
}

#[test]
fn b39_the_path_in_the_container_is_sent_clean() {
    let text = "services:
  a:
    image: x
    volumes:
      - {type: bind, source: /d, target: /d/, bind: {create_host_path: true}}
      - type: volume
        source: data
        target: \"/e//f\" # a comment
      - {type: tmpfs, target: '${MODE}/'}
volumes: {data: {}}
";
    let expected = text
        .replace("/d/, bind: {create_host_path: true}", "/d, bind: {}")
        .replace("/e//f", "/e/f");
    assert_eq!(with_long_binds(text, &["a"]), expected);
}

#[test]
fn b39_a_mount_in_a_text_with_repeated_parts_is_resolved() {
    let text = "services:
  a: &a
    image: x
    volumes: &all [/x:/x]
  b:
    image: x
    volumes: *all
  c:
    extends: {service: a}
    volumes: [/y:/y]
  d:
    image: x
    volumes: &own
      - /z:/z
      - &one /d:/d
  e:
    image: x
    volumes: [*one]
  f:
    image: x
    volumes: &alone [/f:/f]
";
    for service in ["a", "b", "c", "d", "e", "f"] {
        let runs = Runs::default().with_long_binds([service.to_owned()].into());
        let blockers = run_with(text, None, &runs).expect_err("shared");
        assert!(
            blockers
                .iter()
                .all(|blocker| blocker.kind == Kind::NotSimple)
        );
    }
}
