//! The real Compose program, which `STACKLIFT_TEST_COMPOSE` names.

use std::{env, fs};

use super::*;

/// The program without a look on `PATH`.
fn compose() -> Compose {
    let program = env::var("STACKLIFT_TEST_COMPOSE").expect("STACKLIFT_TEST_COMPOSE is not set");
    Compose {
        first: Vec::new(),
        name: program.clone(),
        program: program.into(),
        version: Version::parse("2.26.1").expect("a version"),
        trace: Trace::off(),
        checked: Mutex::default(),
    }
}

fn sent<'a>(text: &'a str, env: &'a str) -> Input<'a> {
    Input::Sent {
        project: "web",
        dir: None,
        text,
        env,
    }
}

#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn b06_asks_compose_about_a_text() {
    let mask = Mask::new(["s3cr3t-7d1e55a0"]);
    let check = |text: &str, env: &str| {
        let checked = compose().check(&sent(text, env), &mask);
        match checked.expect("an answer") {
            Checked::Accepted => ("accepted".to_owned(), None),
            Checked::Rejected(rejection) => (rejection.message, rejection.doubt),
        }
    };
    let service = |line: &str| format!("services:\n  a:\n    image: b\n    {line}\n");
    assert_eq!(check(&service("restart: always"), "").0, "accepted");
    // `stack.env` exists if there are variables (M07, M10).
    assert_eq!(
        check(&service("env_file: stack.env"), "A=1\n").0,
        "accepted"
    );
    assert_eq!(
        check(&service("env_file: stack.env"), "").1,
        Some(Doubt::Files)
    );
    for (line, part, doubt) in [
        ("mem_limit: $A", "***", None),
        ("foo: 1", "foo", Some(Doubt::UnknownKey)),
        ("ports: [{target: x}]", "invalid syntax", None),
        ("restart: [1]", "restart", Some(Doubt::Version)),
        (
            "extends: {file: /missing/x.yml, service: b}",
            "/missing/x.yml",
            Some(Doubt::Files),
        ),
    ] {
        let (message, found) = check(&service(line), "A=s3cr3t-7d1e55a0\n");
        assert!(message.contains(part), "{line}: {message}");
        assert_eq!(found, doubt, "{line}: {message}");
        assert!(
            !message.contains("/tmp/") && !message.contains("s3cr3t"),
            "{message}"
        );
    }
    let remote = "include: ['https://github.com/x/y.git']\nservices:\n  a:\n    image: b\n";
    assert_eq!(check(remote, "").1, Some(Doubt::Files));
}

#[test]
#[ignore = "needs a compose program: run scripts/test"]
fn hashes_are_equal_where_the_services_are() {
    let folder = tempfile::tempdir().expect("a folder");
    // The YAML that the program prints loses a line feed at the start of a text.
    let text = "services:\n  a:\n    image: b:$A\n    command: [\"\\nx\\n\"]\n  c:\n    image: d\n    env_file: [.env]\n";
    fs::write(folder.path().join("docker-compose.yml"), text).expect("written");
    fs::write(folder.path().join(".env"), "A=1\n").expect("written");
    let mask = Mask::default();
    let file = |name: &str| [name.to_owned()];
    let (present, missing) = (file("docker-compose.yml"), file("missing.yml"));
    let on_disk = |files| Input::OnDisk {
        project: Some("web"),
        dir: folder.path(),
        files,
        env_files: &[],
    };
    let (compose, none) = (compose(), BTreeMap::new());
    let disk = compose.hashes(&on_disk(&[]), &none, &mask).expect("hashes");
    let named = compose.hashes(&on_disk(&present), &none, &mask);
    assert_eq!(disk, named.expect("hashes"));
    let rewritten = text.replace("    env_file: [.env]\n", "");
    let sent = compose
        .hashes(&sent(&rewritten, "A=1\n"), &none, &mask)
        .expect("hashes");
    assert_eq!(disk.keys().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(disk["a"], sent["a"]);
    assert_ne!(disk["c"], sent["c"]);
    assert!(compose.hashes(&on_disk(&missing), &none, &mask).is_err());
}
