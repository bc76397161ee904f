//! `stacklift render --as adopt` of invalid Compose files: each error shows the place and its line, exits with
//! 1, and shows no value of `.env`.

use crate::bench::{Bench, MARKED};

/// One invalid text of each kind, with a `§` before the invalid place, and the message.
const WRONG: &[(&str, &str)] = &[
    ("services: {a: §{image: x", "cannot parse the Compose file"),
    ("services:\n\t§a:\n", "cannot parse the Compose file"),
    ("a: 1\n§---\nb: 2\n", "a second YAML document"),
    ("x-a: &a [1, §*a]", "inside its own anchor"),
    ("§[a, b]", "not a mapping"),
];

#[test]
fn an_invalid_compose_file_is_shown_with_the_place() {
    let bench = Bench::new();
    let mut wrong = Vec::new();
    for (marked, said) in WRONG {
        let before = marked.split('§').next().expect("a place");
        let line = before.matches('\n').count() + 1;
        let text = marked.replace('§', "");
        bench.stack("web", &text, Some(&format!("TOKEN={MARKED}\n")));
        let run = bench.run("render web --as adopt").code(1).hides(MARKED);
        let place = format!("docker-compose.yml:{line}: ");
        let mut messages = run.err.lines().filter_map(|line| line.split_once(&place));
        if !messages.any(|(_, message)| message.contains(said)) {
            wrong.push(format!("{marked}: {said}\n{}", run.err));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_over_a_limit_is_shown_with_the_place() {
    let bench = Bench::new();
    let laughs = (1..30).map(|level| {
        let ten = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("x-{level}: &a{level} [{ten}]\n")
    });
    let laughs = format!("x-0: &a0 [x]\n{}", laughs.collect::<String>());
    bench.stack("web", &laughs, None);
    bench.fails(
        "render web --as adopt",
        "docker-compose.yml, they exceed 64 MiB",
    );
    for (text, line) in [
        ("{a: ".repeat(10_000) + &"}".repeat(10_000), 1),
        (
            (0..5_000).map(|depth| " ".repeat(depth) + "a:\n").collect(),
            256,
        ),
    ] {
        bench.stack("web", &text, None);
        let says = format!("docker-compose.yml:{line}:");
        bench.fails("render web --as adopt", &says);
    }
}
