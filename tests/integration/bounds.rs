//! B43: what a file asks for by a number, or repeats, takes no more than its share.

use crate::bench::{Bench, PLAIN};

/// Starts PLAIN by hand, then changes its files.
fn changed(bench: &Bench, name: &str, more: &str, env: Option<&str>) {
    bench.started(name, PLAIN, None);
    bench.stack(name, &format!("{PLAIN}{more}"), env);
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
