//! B43: what a file asks for by a number, or repeats, takes no more than its share.

use std::fs;

use crate::bench::{Bench, PLAIN, Run};

/// Starts PLAIN by hand, then changes its files.
fn changed(bench: &Bench, name: &str, more: &str, env: Option<&str>) {
    bench.started(name, PLAIN, None);
    bench.stack(name, &format!("{PLAIN}{more}"), env);
}

#[test]
fn b43_nothing_is_allocated_for_billions_of_containers() {
    let bench = Bench::new();
    changed(&bench, "web", "    deploy: {replicas: 2000000000}\n", None);
    changed(&bench, "app", "    scale: 2000000000\n", None);
    bench.started("good", PLAIN, None);
    let list = bench.run("list --output json").code(0).json();
    let stacks = list["stacks"].as_array().expect("stacks");
    let ready = stacks.iter().map(|one| &one["adopt"]["readiness"]);
    assert!(ready.eq(["ready"; 3]), "{list}");
    for name in ["web", "app"] {
        bench.run(&["plan", name]).code(0);
    }
    let root = bench.root().display().to_string();
    bench
        .run(&["rehearse", "web", "--stacks-root", &root])
        .fails("too many containers for a rehearsal");
}

#[test]
fn b43_a_container_that_has_one_of_the_names_is_found() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    bench.started(
        "web-a-7",
        &format!("{PLAIN}    container_name: web-a-7\n"),
        None,
    );
    for (scale, is_used) in [(6, false), (7, true)] {
        bench.stack("web", &format!("{PLAIN}    scale: {scale}\n"), None);
        let run = bench.run("plan web");
        let says = run.out.contains("the container name web-a-7 is used");
        assert_eq!(says, is_used, "{run:?}");
    }
}

#[test]
fn b43_what_compose_would_expand_is_bounded_before() {
    let repeated = format!("      A: {}\n", "${LONG}".repeat(90));
    let long = format!("LONG={}\n", "x".repeat(1_000_000));
    let aliases = (b'a'..=b'h').fold(
        "  a0: {image: x}\nx-a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n".to_owned(),
        |text, name| {
            let (from, to) = (char::from(name), char::from(name + 1));
            let all = format!("*{from}, ").repeat(9);
            format!("{text}x-{to}: &{to} [{all}]\n")
        },
    );
    let defaults = "${B:-".repeat(20_000) + &"}".repeat(20_000);
    let ranges = "      - 1-65535:1-65535\n".repeat(20);
    for (more, env) in [
        (format!("    environment:\n{repeated}"), Some(&*long)),
        (format!("    ports:\n{ranges}"), None),
        (
            format!("    environment: [{}]\n", "'${LONG}',".repeat(900)),
            Some(&*long),
        ),
        (
            format!("  b: {{image: x, environment: {{A: a}}}}\n{aliases}"),
            None,
        ),
        (format!("    command: {defaults}\n"), None),
    ] {
        let bench = Bench::new();
        changed(&bench, "web", &more, env);
        let asked = bench.programs().join("asked");
        let script = format!(
            "[ \"$1\" = version ] && {{ echo 2.40.3; exit; }}\ntouch {}\n",
            asked.display()
        );
        bench.script("docker-compose", &script);
        let what = "the stack has too many files, or too large ones: with the values in";
        bench.run("plan web").fails(what);
        assert!(!asked.exists(), "Compose was asked");
        bench.started("good", PLAIN, None);
        bench
            .run("list --output json")
            .code(0)
            .says(&[what, "good"]);
    }
}

#[test]
fn b43_what_took_too_much_is_not_asked_again() {
    let bench = Bench::new();
    bench.started("web", PLAIN, None);
    let dir = bench.stack("web", &format!("include: [b.yml]\n{PLAIN}"), None);
    fs::write(dir.join("b.yml"), "services: {b: {image: busybox}}\n").expect("a file");
    let asked = bench.programs().join("asked");
    let script = format!(
        "[ \"$1\" = version ] && {{ echo 2.40.3; exit; }}\necho >> {}\n\
        echo 'fatal error: runtime: out of memory' >&2\nexit 2\n",
        asked.display()
    );
    bench.script("docker-compose", &script);
    Run::of(&mut bench.command("plan web"))
        .says(&["docker-compose config` needs more than 1536 MiB of memory"]);
    let asked = fs::read_to_string(asked).expect("it was asked");
    // Two questions are asked side by side.
    assert!(asked.lines().count() <= 2, "{asked:?}");
}
