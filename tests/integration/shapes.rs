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
    ("x-a: &a [1, §*a]", "inside its own anchor"),
    ("services:\n  a: &a\n    <<: §*a\n", "inside its own anchor"),
    // Not a mapping.
    ("§[a, b]", "not a mapping"),
    ("§text", "not a mapping"),
    // Keys.
    (
        "services: {§1: {image: x}}",
        "keys must be strings, got a number",
    ),
    (
        "services: {§true: {image: x}}",
        "keys must be strings, got a boolean",
    ),
    (
        "services: {§~: {image: x}}",
        "keys must be strings, got null",
    ),
    (
        "services: {§2020-01-02: {image: x}}",
        "keys must be strings, got a date",
    ),
    (
        "services:\n  ? §[a]\n  : {image: x}\n",
        "keys must be strings, got a list",
    ),
    ("x-a: {b: {§5: 1}}", "keys must be strings, got a number"),
    (
        "services: {a: {image: x, §image: y}}",
        "duplicate key `image`",
    ),
    (
        "services:\n  a:\n    <<: {image: x}\n    §<<: {}\n",
        "duplicate key `<<`",
    ),
    ("services: {a: {<<: §5}}", "`<<` can only merge"),
    ("services: {a: {<<: §[{}, x]}}", "`<<` can only merge"),
    // Sections.
    ("name: §{a: b}", "`name` must be a string, got a mapping"),
    (
        "include: §x.yml",
        "`include` must be null or a list, got a string",
    ),
    ("services: §[a]", "`services` must be a mapping, got a list"),
    ("§services:", "`services` must be a mapping, got null"),
    (
        "services: {a: §x}",
        "`services.a` must be a mapping, got a string",
    ),
    (
        "services: {§a: }",
        "`services.a` must be a mapping, got null",
    ),
    ("networks: §[n]", "`networks` must be a mapping, got a list"),
    (
        "networks: {n: §x}",
        "`networks.n` must be null or a mapping, got a string",
    ),
    ("volumes: §[v]", "`volumes` must be a mapping, got a list"),
    (
        "volumes: {v: §x}",
        "`volumes.v` must be null or a mapping, got a string",
    ),
    (
        "volumes: {v: {driver: §[x]}}",
        "`volumes.v.driver` must be a string, got a list",
    ),
    (
        "volumes: {v: {driver_opts: §[x]}}",
        "`volumes.v.driver_opts` must be a mapping, got a list",
    ),
    (
        "volumes: {v: {driver_opts: {o: §[x]}}}",
        "`volumes.v.driver_opts.o` must be a string or a number, got a list",
    ),
    ("secrets: §[s]", "`secrets` must be a mapping, got a list"),
    (
        "secrets: {s: §x}",
        "`secrets.s` must be a mapping, got a string",
    ),
    (
        "secrets: {s: {file: §[x]}}",
        "`secrets.s.file` must be a string, got a list",
    ),
    (
        "secrets: {s: {environment: §5}}",
        "`secrets.s.environment` must be a string, got a number",
    ),
    ("configs: §x", "`configs` must be a mapping, got a string"),
    ("configs: {§c: }", "`configs.c` must be a mapping, got null"),
    (
        "configs: {c: {file: §true}}",
        "`configs.c.file` must be a string, got a boolean",
    ),
    (
        "configs: {c: {content: §{}}}",
        "`configs.c.content` must be a string, got a mapping",
    ),
    // Services.
    (
        "services: {a: {image: §5}}",
        "`services.a.image` must be a string, got a number",
    ),
    (
        "services: {a: {environment: §x}}",
        "`services.a.environment` must be a list or a mapping, got a string",
    ),
    (
        "services: {a: {environment: [§{A: b}]}}",
        "`services.a.environment[0]` must be a string, got a mapping",
    ),
    (
        "services: {a: {environment: {A: §[b]}}}",
        "`services.a.environment.A` must be null or a string or a boolean or a number, got a list",
    ),
    (
        "services: {a: {labels: §x}}",
        "`services.a.labels` must be a list or a mapping, got a string",
    ),
    (
        "services: {a: {labels: [§5]}}",
        "`services.a.labels[0]` must be a string, got a number",
    ),
    (
        "services: {a: {labels: {A: §{}}}}",
        "`services.a.labels.A` must be null or a string or a boolean or a number, got a mapping",
    ),
    (
        "services: {a: {env_file: §5}}",
        "`services.a.env_file` must be a string or a list, got a number",
    ),
    (
        "services: {a: {env_file: [x, §[y]]}}",
        "`services.a.env_file[1]` must be a string or a mapping, got a list",
    ),
    (
        "services: {a: {env_file: [{path: §[y]}]}}",
        "`services.a.env_file[0].path` must be a string, got a list",
    ),
    (
        "services: {a: {env_file: [{path: y, required: §5}]}}",
        "`services.a.env_file[0].required` must be a string or a boolean, got a number",
    ),
    (
        "services: {a: {env_file: [{path: y, format: §[raw]}]}}",
        "`services.a.env_file[0].format` must be a string, got a list",
    ),
    (
        "services: {a: {label_file: §{path: x}}}",
        "`services.a.label_file` must be a string or a list, got a mapping",
    ),
    (
        "services: {a: {label_file: [§{path: x}]}}",
        "`services.a.label_file[0]` must be a string, got a mapping",
    ),
    (
        "services: {a: {volumes: §{x: /y}}}",
        "`services.a.volumes` must be a list, got a mapping",
    ),
    (
        "services: {a: {volumes: [§[x]]}}",
        "`services.a.volumes[0]` must be a string or a mapping, got a list",
    ),
    (
        "services:\n  a:\n    volumes:\n      -§\n",
        "`services.a.volumes[0]` must be a string or a mapping, got null",
    ),
    (
        "services: {a: {volumes: [{type: §5}]}}",
        "`services.a.volumes[0].type` must be a string, got a number",
    ),
    (
        "services: {a: {volumes: [{type: bind, source: §[x]}]}}",
        "`services.a.volumes[0].source` must be a string, got a list",
    ),
    (
        "services: {a: {volumes: [{target: §5}]}}",
        "`services.a.volumes[0].target` must be a string, got a number",
    ),
    (
        "services: {a: {build: §[x]}}",
        "`services.a.build` must be a string or a mapping, got a list",
    ),
    (
        "services: {a: {build: {context: §{}}}}",
        "`services.a.build.context` must be a string, got a mapping",
    ),
    (
        "services: {a: {build: {additional_contexts: §x}}}",
        "`services.a.build.additional_contexts` must be a list or a mapping, got a string",
    ),
    (
        "services: {a: {pull_policy: §[x]}}",
        "`services.a.pull_policy` must be a string, got a list",
    ),
    (
        "services: {a: {extends: §[x]}}",
        "`services.a.extends` must be a string or a mapping, got a list",
    ),
    (
        "services: {a: {extends: {service: §[x]}}}",
        "`services.a.extends.service` must be a string, got a list",
    ),
    (
        "services: {a: {extends: {service: x, file: §[x]}}}",
        "`services.a.extends.file` must be null or a string, got a list",
    ),
    (
        "services: {a: {develop: §x}}",
        "`services.a.develop` must be null or a mapping, got a string",
    ),
    (
        "services: {a: {develop: {watch: §x}}}",
        "`services.a.develop.watch` must be a list, got a string",
    ),
    (
        "services: {a: {develop: {watch: [§x]}}}",
        "`services.a.develop.watch[0]` must be a mapping, got a string",
    ),
    (
        "services: {a: {develop: {watch: [{path: §[x]}]}}}",
        "`services.a.develop.watch[0].path` must be a string, got a list",
    ),
    (
        "services: {a: {profiles: §x}}",
        "`services.a.profiles` must be a list, got a string",
    ),
    (
        "services: {a: {depends_on: §x}}",
        "`services.a.depends_on` must be a list or a mapping, got a string",
    ),
    (
        "services: {a: {depends_on: {b: §x}}}",
        "`services.a.depends_on.b` must be a mapping, got a string",
    ),
    (
        "services: {a: {networks: §x}}",
        "`services.a.networks` must be a list or a mapping, got a string",
    ),
    (
        "services: {a: {networks: [§5]}}",
        "`services.a.networks[0]` must be a string, got a number",
    ),
    (
        "services: {a: {secrets: §{}}}",
        "`services.a.secrets` must be a list, got a mapping",
    ),
    (
        "services: {a: {configs: [{source: §5}]}}",
        "`services.a.configs[0].source` must be a string, got a number",
    ),
    (
        "services: {a: {links: §b}}",
        "`services.a.links` must be a list, got a string",
    ),
    (
        "services: {a: {volumes_from: §b}}",
        "`services.a.volumes_from` must be a list, got a string",
    ),
    (
        "services: {a: {network_mode: §[x]}}",
        "`services.a.network_mode` must be a string, got a list",
    ),
    // The place of an alias, and of a merged key.
    (
        "x-a: &a [1]\nservices: {a: {image: x, build: §*a}}",
        "`services.a.build` must be a string or a mapping, got a list",
    ),
    (
        "x-a: &a {volumes: §x}\nservices:\n  a:\n    <<: *a\n",
        "`services.a.volumes` must be a list, got a string",
    ),
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
        let run = bench
            .run(&["render", "web", "--as", "adopt"])
            .code(1)
            .hides(MARKED);
        let place = format!("docker-compose.yml:{line}: ");
        let mut messages = run
            .err
            .split('\n')
            .filter_map(|line| line.split_once(&place));
        if !messages.any(|(_, message)| message.contains(said)) {
            wrong.push(format!("{marked}: {said}\n{}", run.err));
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
            (0..5_000).map(|depth| " ".repeat(depth) + "a:\n").collect(),
            "docker-compose.yml:256:",
        ),
        (deep("- "), "docker-compose.yml:1:"),
    ] {
        bench.stack("web", &text, None);
        bench
            .run(&["render", "web", "--as", "adopt"])
            .code(1)
            .says(&[said]);
    }
}
