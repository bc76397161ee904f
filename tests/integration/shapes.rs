//! `stacklift render --as adopt` of invalid Compose files: each error shows the place and its line, exits with
//! 1, and shows no value of `.env`.

use crate::bench::{Bench, MARKED};

/// Texts with a `§` before the invalid place, and the message.
const WRONG: &[(&str, &str)] = &[
    // Not YAML, or nested too deeply.
    ("services: {a: §{image: x", "cannot parse the Compose file"),
    ("services:\n\t§a:\n", "cannot parse the Compose file"),
    ("services: {a: §*x}", "cannot parse the Compose file"),
    ("a: 1\n§---\nb: 2\n", "a second YAML document"),
    ("x-a: &a [1, §*a]", "inside what it points at"),
    (
        "services:\n  a: &a\n    <<: §*a\n",
        "inside what it points at",
    ),
    // Not a mapping.
    ("§[a, b]", "no mapping"),
    ("§text", "no mapping"),
    // Keys.
    ("services: {§1: {image: x}}", "a number is a key"),
    ("services: {§true: {image: x}}", "true or false is a key"),
    ("services: {§~: {image: x}}", "nothing is a key"),
    ("services: {§2020-01-02: {image: x}}", "a date is a key"),
    ("services:\n  ? §[a]\n  : {image: x}\n", "a list is a key"),
    ("x-a: {b: {§5: 1}}", "a number is a key"),
    ("services: {a: {image: x, §image: y}}", "a second time"),
    (
        "services:\n  a:\n    <<: {image: x}\n    §<<: {}\n",
        "a second time",
    ),
    ("services: {a: {<<: §5}}", "`<<` merges"),
    ("services: {a: {<<: §[{}, x]}}", "`<<` merges"),
    // Sections.
    ("name: §{a: b}", "`name` is a mapping"),
    ("include: §x.yml", "`include` is text"),
    ("services: §[a]", "`services` is a list"),
    ("§services:", "`services` is nothing"),
    ("services: {a: §x}", "`services.a` is text"),
    ("services: {§a: }", "`services.a` is nothing"),
    ("networks: §[n]", "`networks` is a list"),
    ("networks: {n: §x}", "`networks.n` is text"),
    ("volumes: §[v]", "`volumes` is a list"),
    ("volumes: {v: §x}", "`volumes.v` is text"),
    (
        "volumes: {v: {driver: §[x]}}",
        "`volumes.v.driver` is a list",
    ),
    (
        "volumes: {v: {driver_opts: §[x]}}",
        "`volumes.v.driver_opts` is a list",
    ),
    (
        "volumes: {v: {driver_opts: {o: §[x]}}}",
        "`volumes.v.driver_opts.o` is a list",
    ),
    ("secrets: §[s]", "`secrets` is a list"),
    ("secrets: {s: §x}", "`secrets.s` is text"),
    ("secrets: {s: {file: §[x]}}", "`secrets.s.file` is a list"),
    (
        "secrets: {s: {environment: §5}}",
        "`secrets.s.environment` is a number",
    ),
    ("configs: §x", "`configs` is text"),
    ("configs: {§c: }", "`configs.c` is nothing"),
    (
        "configs: {c: {file: §true}}",
        "`configs.c.file` is true or false",
    ),
    (
        "configs: {c: {content: §{}}}",
        "`configs.c.content` is a mapping",
    ),
    // Services.
    (
        "services: {a: {image: §5}}",
        "`services.a.image` is a number",
    ),
    (
        "services: {a: {environment: §x}}",
        "`services.a.environment` is text",
    ),
    (
        "services: {a: {environment: [§{A: b}]}}",
        "`services.a.environment[0]` is a mapping",
    ),
    (
        "services: {a: {environment: {A: §[b]}}}",
        "`services.a.environment.A` is a list",
    ),
    ("services: {a: {labels: §x}}", "`services.a.labels` is text"),
    (
        "services: {a: {labels: [§5]}}",
        "`services.a.labels[0]` is a number",
    ),
    (
        "services: {a: {labels: {A: §{}}}}",
        "`services.a.labels.A` is a mapping",
    ),
    (
        "services: {a: {env_file: §5}}",
        "`services.a.env_file` is a number",
    ),
    (
        "services: {a: {env_file: [x, §[y]]}}",
        "`services.a.env_file[1]` is a list",
    ),
    (
        "services: {a: {env_file: [{path: §[y]}]}}",
        "`services.a.env_file[0].path` is a list",
    ),
    (
        "services: {a: {env_file: [{path: y, required: §5}]}}",
        "`services.a.env_file[0].required` is a number",
    ),
    (
        "services: {a: {env_file: [{path: y, format: §[raw]}]}}",
        "`services.a.env_file[0].format` is a list",
    ),
    (
        "services: {a: {label_file: §{path: x}}}",
        "`services.a.label_file` is a mapping",
    ),
    (
        "services: {a: {label_file: [§{path: x}]}}",
        "`services.a.label_file[0]` is a mapping",
    ),
    (
        "services: {a: {volumes: §{x: /y}}}",
        "`services.a.volumes` is a mapping",
    ),
    (
        "services: {a: {volumes: [§[x]]}}",
        "`services.a.volumes[0]` is a list",
    ),
    (
        "services:\n  a:\n    volumes:\n      -§\n",
        "`services.a.volumes[0]` is nothing",
    ),
    (
        "services: {a: {volumes: [{type: §5}]}}",
        "`services.a.volumes[0].type` is a number",
    ),
    (
        "services: {a: {volumes: [{type: bind, source: §[x]}]}}",
        "`services.a.volumes[0].source` is a list",
    ),
    (
        "services: {a: {volumes: [{target: §5}]}}",
        "`services.a.volumes[0].target` is a number",
    ),
    (
        "services: {a: {build: §[x]}}",
        "`services.a.build` is a list",
    ),
    (
        "services: {a: {build: {context: §{}}}}",
        "`services.a.build.context` is a mapping",
    ),
    (
        "services: {a: {build: {additional_contexts: §x}}}",
        "`services.a.build.additional_contexts` is text",
    ),
    (
        "services: {a: {pull_policy: §[x]}}",
        "`services.a.pull_policy` is a list",
    ),
    (
        "services: {a: {extends: §[x]}}",
        "`services.a.extends` is a list",
    ),
    (
        "services: {a: {extends: {service: §[x]}}}",
        "`services.a.extends.service` is a list",
    ),
    (
        "services: {a: {extends: {service: x, file: §[x]}}}",
        "`services.a.extends.file` is a list",
    ),
    (
        "services: {a: {develop: §x}}",
        "`services.a.develop` is text",
    ),
    (
        "services: {a: {develop: {watch: §x}}}",
        "`services.a.develop.watch` is text",
    ),
    (
        "services: {a: {develop: {watch: [§x]}}}",
        "`services.a.develop.watch[0]` is text",
    ),
    (
        "services: {a: {develop: {watch: [{path: §[x]}]}}}",
        "`services.a.develop.watch[0].path` is a list",
    ),
    (
        "services: {a: {profiles: §x}}",
        "`services.a.profiles` is text",
    ),
    (
        "services: {a: {depends_on: §x}}",
        "`services.a.depends_on` is text",
    ),
    (
        "services: {a: {depends_on: {b: §x}}}",
        "`services.a.depends_on.b` is text",
    ),
    (
        "services: {a: {networks: §x}}",
        "`services.a.networks` is text",
    ),
    (
        "services: {a: {networks: [§5]}}",
        "`services.a.networks[0]` is a number",
    ),
    (
        "services: {a: {secrets: §{}}}",
        "`services.a.secrets` is a mapping",
    ),
    (
        "services: {a: {configs: [{source: §5}]}}",
        "`services.a.configs[0].source` is a number",
    ),
    ("services: {a: {links: §b}}", "`services.a.links` is text"),
    (
        "services: {a: {volumes_from: §b}}",
        "`services.a.volumes_from` is text",
    ),
    (
        "services: {a: {network_mode: §[x]}}",
        "`services.a.network_mode` is a list",
    ),
    // The place of an alias, and of a merged key.
    (
        "x-a: &a [1]\nservices: {a: {image: x, build: §*a}}",
        "`services.a.build` is a list",
    ),
    (
        "x-a: &a {volumes: §x}\nservices:\n  a:\n    <<: *a\n",
        "`services.a.volumes` is text",
    ),
];

#[test]
fn an_invalid_compose_file_is_shown_with_the_place() {
    let bench = Bench::new();
    let mut wrong = Vec::new();
    for (marked, said) in WRONG {
        let before = marked.split('§').next().expect("a place");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().expect("a line").chars().count() + 1;
        let text = marked.replace('§', "");
        bench.stack("web", &text, Some(&format!("TOKEN={MARKED}\n")));
        let run = bench
            .run(&["render", "web", "--as", "adopt"])
            .code(1)
            .hides(MARKED);
        let written = text.lines().nth(line - 1).unwrap_or_default().trim_end();
        let tabs = written.matches('\t').count();
        let mark = " ".repeat(column - 1 + 3 * tabs);
        let picture = format!(
            " --> docker-compose.yml:{line}:{column}\n  |\n{line} | {}\n  | {mark}^",
            written.replace('\t', "    ")
        );
        let found = run.err.split_once(&picture);
        let message = found.and_then(|(before, _)| before.lines().last());
        if !message.is_some_and(|message| message.contains(said)) {
            wrong.push(format!("{marked}: {said}\n{picture}\n{}", run.err));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_over_a_limit_is_shown_with_the_place() {
    let bench = Bench::new();
    let mut laughs = "x-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let ten = vec![format!("*a{}", level - 1); 10].join(", ");
        let line = format!("x-{level}: &a{level} [{ten}]\n");
        laughs += &line;
    }
    let deep = |text: &str| text.repeat(10_000);
    for (text, said) in [
        (laughs, "docker-compose.yml:6:"),
        (
            format!("x: {}{}", deep("["), deep("]")),
            "docker-compose.yml:1:",
        ),
        (deep("{a: ") + &deep("}"), "docker-compose.yml:1:"),
        (
            (0..10_000)
                .map(|depth| " ".repeat(depth) + "a:\n")
                .collect(),
            "docker-compose.yml:256:",
        ),
        (deep("- "), "docker-compose.yml:1:"),
    ] {
        bench.stack("web", &text, None);
        bench
            .run(&["render", "web", "--as", "adopt"])
            .code(1)
            .says(&[said, " | "]);
    }
}
