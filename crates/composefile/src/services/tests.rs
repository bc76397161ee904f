use super::{MountSpec, Service, includes, is_remote_context, services};
use crate::document::Document;

/// Runs `check` on the one service that `body` describes.
fn with_service<T>(body: &str, check: impl FnOnce(&Service<'_>) -> T) -> T {
    let indented = format!("\n{body}").replace('\n', "\n    ");
    let text = format!("services:\n  web:{indented}\n");
    let document = Document::parse(&text).expect(&text);
    let found = services(&document);
    assert_eq!(found.len(), 1);
    check(&found[0])
}

fn env_files(body: &str) -> Vec<(String, bool)> {
    with_service(body, |service| {
        let files = service.env_files();
        files
            .iter()
            .map(|file| (file.path.into(), file.required != Some("false")))
            .collect()
    })
}

#[test]
fn env_file_in_every_form() {
    assert_eq!(env_files("env_file: .env"), [(".env".into(), true)]);
    assert_eq!(env_files("env_file:\n  - .env\n  - a/b.env").len(), 2);
    assert_eq!(
        env_files("env_file:\n  - path: x.env\n    required: false\n    format: raw\n  - y.env"),
        [("x.env".into(), false), ("y.env".into(), true)]
    );
    assert_eq!(env_files("env_file:"), []);
    assert_eq!(env_files("env_file: [{required: false}]"), []);
}

#[test]
fn mounts_in_short_syntax() {
    let read =
        |spec| MountSpec::parse(spec).map(|mount| (mount.source, mount.target, mount.options));
    for (spec, expected) in [
        ("/a", Some((None, "/a", None))),
        ("a:/b", Some((None, "a:/b", None))),
        ("n:/n:/m", Some((Some("n:/n"), "/m", None))),
        ("${D:-./x}:/y", Some((Some("${D:-./x}"), "/y", None))),
        (
            "${A:-${B:-c}}/d:/y:ro,z",
            Some((Some("${A:-${B:-c}}/d"), "/y", Some("ro,z"))),
        ),
        ("ab:cd:ro:e", None),
        ("a::b", Some((Some("a:"), "b", None))),
        ("ab::c", None),
        ("x:", Some((None, "x:", None))),
        ("", None),
        (
            "\u{1f600}:/x:ro",
            Some((Some("\u{1f600}"), "/x", Some("ro"))),
        ),
    ] {
        assert_eq!(read(spec), expected, "{spec}");
    }
}

#[test]
fn remote_build_contexts() {
    let remote = "https://x/y.git git@github.com:a/b github.com/a/b docker-image://x service:y";
    assert!(remote.split(' ').all(is_remote_context));
    assert!(!is_remote_context("./app"));
}

#[test]
fn wrong_types_are_left_out() {
    for text in [
        "services: [a]",
        "services: x",
        "[services]",
        "services: {[a]: b}",
        "",
    ] {
        let document = Document::parse(text).expect(text);
        assert!(services(&document).is_empty(), "{text}");
        assert!(includes(&document).is_empty());
    }
    with_service(
        "env_file: {a: 1}\nvolumes: x\nenvironment: x\nbuild: [x]\nextends: [x]",
        |service| {
            assert!(service.env_files().is_empty());
            assert!(service.environment().is_empty());
            assert!(service.extends_file().is_none());
        },
    );
}
