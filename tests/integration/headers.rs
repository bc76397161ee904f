//! `--header-file`: further headers for a proxy in front of Portainer. Their values are secrets.

use std::{fs, path::PathBuf};

use testbed::Call;

use crate::{
    bench::{Bench, MARKED, PLAIN, Run, instead, refusal, set_mode},
    requests::printed,
};

fn file(bench: &Bench, text: &str, mode: u32) -> PathBuf {
    // Every other file of a bench is searched for the value.
    let path = bench.root().join("headers.env");
    fs::write(&path, text).expect("written");
    set_mode(&path, mode);
    path
}

fn run(bench: &Bench, file: &PathBuf, args: &[&str]) -> Run {
    bench.run_with(args, "STACKLIFT_HEADER_FILE", file)
}

#[test]
fn each_request_to_portainer_carries_the_headers_and_no_output_shows_them() {
    let bench = Bench::web(PLAIN);
    let text = format!("# the proxy\n\nCF-Access-Client-Id: id\nX-Proxy-Token: Bearer {MARKED}\n");
    let headers = file(&bench, &text, 0o600);
    let kind = refusal();
    bench.once(Call::Create, kind);
    let failed = run(&bench, &headers, &["web", "-v"]).code(1);
    let command = printed(&failed);
    let flag = format!("--header-file {} ", headers.display());
    assert!(command.contains(&flag), "{command}");
    let requests = bench.requests();
    let (portainer, engine): (Vec<_>, Vec<_>) = requests.iter().partition(|one| one.port != 0);
    assert!(portainer.len() > 3 && !engine.is_empty());
    let has = |one: &testbed::Request, name: &str, value: &str| {
        let mut headers = one.headers.iter();
        headers.any(|(of, is)| of.eq_ignore_ascii_case(name) && is == value)
    };
    for request in portainer {
        assert!(has(request, "cf-access-client-id", "id"), "{request:?}");
        let value = format!("Bearer {MARKED}");
        assert!(has(request, "x-proxy-token", &value), "{request:?}");
    }
    for request in engine {
        assert!(!format!("{request:?}").contains(MARKED), "{request:?}");
    }
    // A proxy may quote the request in its error.
    let quoted = format!("<html>no session for token={MARKED}</html>");
    for body in [quoted, format!("{{\"message\":\"bad token {MARKED}\"}}")] {
        bench.always(Call::List, instead(403, &body));
        // `Run::of` fails if the value shows.
        run(&bench, &headers, &["web", "-v"]).fails("403");
        run(&bench, &headers, &["list", "--output", "json"]).code(0);
    }
}

#[test]
fn a_file_that_others_can_read_is_refused_and_an_error_names_the_line_only() {
    let bench = Bench::web(PLAIN);
    for mode in [0o620, 0o604, 0o644, 0o660] {
        let headers = file(&bench, "X-Token: t\n", mode);
        let path = headers.display();
        run(&bench, &headers, &["web"]).fails(&format!("failed to read the header file {path}: it must be a file that is owned by you or root and not accessible to others\nNothing was changed.\nhint: check its owner, then run: chmod 600 {path}\n"));
    }
    fs::remove_file(bench.root().join("headers.env")).expect("removed");
    let headers = file(&bench, &format!("A: b\n{MARKED}\n"), 0o600);
    let problem = "line 2: expected `Name: value`";
    run(&bench, &headers, &["web"]).fails(&["cannot parse the header file", problem]);
    let absent = bench.root().join("absent");
    run(&bench, &absent, &["web"]).fails(&["failed to read the header file", "absent"]);
    let directory = bench.root().to_owned();
    run(&bench, &directory, &["web"]).fails("failed to read the header file");
    assert!(bench.calls(Call::List).is_empty());
    // It is not read where Portainer is not used.
    run(&bench, &absent, &["render", "web"]).code(0);
    run(&bench, &absent, &["restore", "web", "--list"])
        .code(1)
        .hides("header file");
}
