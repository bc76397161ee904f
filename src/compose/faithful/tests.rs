//! Properties of the rewrite on any text.

use proptest::prelude::*;

use super::{Context, EnvFiles, Faithful, Reason, Refusal, env_files_needed, rewrite};

fn run(text: &str, env: Option<&str>) -> Result<Faithful, Vec<Refusal>> {
    let files = EnvFiles::from([("/s/web/app.env".to_owned(), Some("X=1\nY=$A\n".to_owned()))]);
    let shell = |name: &str| (name == "HOME").then(|| "/home/u".to_owned());
    let context = Context {
        stack_dir: "/s/web",
        file: "docker-compose.yml",
        env_file: ".env",
        home: Some("/home/u"),
        shell: &shell,
        overrides: &[],
        env_files: &files,
    };
    let _ = env_files_needed(text, env, &context);
    rewrite(text, env, &context)
}

/// Lines that compose files are made of, in no good order.
fn lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "services:",
        "  a:",
        "  a: &a",
        "  b: *a",
        "  b:",
        "    <<: *a",
        "    <<: [*a, *x]",
        "x-x: &x",
        "  build: .",
        "  env_file: app.env",
        "    ? build",
        "    : .",
        "    !!str env_file: &f [app.env]",
        "    labels: *e",
        "    labels: *f",
        "    image: ''",
        "    environment: !override {B: 2}",
        "    image: x",
        "    build: .",
        "    build: &b {context: .}",
        "    build: *b",
        "    env_file: .env",
        "    env_file:",
        "      - .env",
        "      - app.env",
        "      - path: app.env",
        "        required: false",
        "    environment:",
        "      - HOME",
        "      A: $HOME",
        "      HOME:",
        "    environment: &e [A=1]",
        "    environment: *e",
        "    label_file: app.env",
        "    label_file: [app.env, .env]",
        "    labels: &l [A=1]",
        "    labels: *l",
        "      - >-",
        "        ./d:/d",
        "    volumes:",
        "      - ./d:/d",
        "      - &v ${A:-./d}:/d",
        "      - *v",
        "      - {type: bind, source: d, target: /d}",
        "    volumes: [., \"~:/x\", 'n:/n:/n']",
        "# c",
        "",
        "    command: |",
        "      $HOME ä",
        "    extends: a",
        "secrets:",
        "  s: {file: ./s}",
        "\t",
        "  {}",
    ]);
    prop::collection::vec(line, 0..24).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_is_an_internal_error(text in lines(), env in "(A=[./~a$]{0,4}\n){0,2}") {
        if let Err(refusals) = run(&text, Some(&env)) {
            for refusal in refusals {
                prop_assert_ne!(refusal.reason, Reason::Internal, "{}\n{}", refusal.message, text);
            }
        }
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
fn debug_and_refusals_show_no_value() {
    let env = "TOKEN=hunter2hunter2\n";
    let faithful = run(
        "services:\n  a:\n    env_file: .env\n    image: x\n",
        Some(env),
    )
    .expect("rewritten");
    assert!(!format!("{faithful:?}").contains("hunter2"));
    let refusals =
        run("services:\n  a:\n    image: \"$TOKEN${\"\n", Some(env)).expect_err("refused");
    assert!(!format!("{refusals:?}").contains("hunter2"));
}

/// How long large files take, beside a plain parse of them:
/// `cargo test --release --lib -- --ignored --nocapture megabytes`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn megabytes() {
    let mut text = String::from("x-base: &base\n  restart: always\n  env_file: .env\nservices:\n");
    for (at, size) in (0..).zip([2_500_000, 5_000_000, 10_000_000]) {
        let mut count = 0;
        while text.len() < size {
            count += 1;
            text += &[
                "  # a comment on the service\n  s",
                &format!("{at}-{count}"),
                ":\n    <<: *base\n    image: x # i\n    environment:\n      - A=${A:-b}\n",
                "      - DIR=$HOME/x\n    volumes:\n      - ./data:/data\n",
                "      - ${DATA:-./d}/x:/x:ro\n      - named:/n\n    labels:\n",
                "      - \"traefik.http.routers.x.rule=Host(`x`)\"\n",
            ]
            .concat();
        }
        let start = std::time::Instant::now();
        let options = granit_parser::options! { emit_comments: false, emit_anchor_events: true };
        let events = granit_parser::Parser::new_from_str_with_options(&text, options).count();
        let parse = start.elapsed();
        let start = std::time::Instant::now();
        let done = run(&text, Some("A=1\n")).map(|faithful| faithful.edits.len());
        let ratio = start.elapsed().as_secs_f64() / parse.as_secs_f64();
        println!(
            "{size} bytes, {events} events in {parse:?}; {done:?} edits, {ratio:.1} times that"
        );
    }
}
