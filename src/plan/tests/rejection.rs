//! A text that the Compose program of this host rejects.

use super::*;

/// The plan of a text that Compose rejects with `message`.
fn rejected(compose: &str, message: &str, doubt: Option<Doubt>) -> Plan {
    let rejection = Rejection {
        by: "docker compose 2.26.1".to_owned(),
        message: message.to_owned(),
        doubt,
        is_about_files: message.contains("no such file"),
    };
    World {
        rejection: Some(rejection),
        ..world(compose)
    }
    .plan()
}

#[test]
fn b06_a_rejection_by_compose_is_a_refusal() {
    let text = "services:\n  web:\n    image: x\n    env_file: .env\n    user: lots\n";
    let plan = rejected(text, "line 4: invalid size: 'lots'", None);
    let line = "docker compose 2.26.1: line 5: invalid size: 'lots'".to_owned();
    let expected = Vec::from_iter(validation::rejects(vec![line]));
    assert_eq!(plan.blockers, expected);
    assert_eq!(plan.warnings, []);
}

#[test]
fn b06_a_rejection_that_is_not_certain_for_portainer_is_a_warning() {
    let alone = "services:\n  web:\n    image: x\n";
    let unknown_key = "Additional property foo is not allowed";
    let include = "include: [/s/x.yml]\nservices:\n  web:\n    image: x\n";
    for (text, message, doubt) in [
        (alone, "must be a string", Some(Doubt::Version)),
        (alone, unknown_key, Some(Doubt::UnknownKey)),
        (alone, "open /s/x.yml: no such file", Some(Doubt::Files)),
        // The file may have other contents where Portainer reads it.
        (include, "invalid size: 'lots'", None),
    ] {
        let plan = rejected(text, message, doubt);
        assert_eq!(plan.blockers, []);
        let said = |part: &str| {
            plan.warnings
                .iter()
                .any(|warning| warning.message.contains(part))
        };
        assert!(said(message) && said("docker compose 2.26.1"), "{plan:?}");
    }
}

#[test]
fn b06_a_rejection_is_said_once() {
    let service = |line: &str| format!("services:\n  web:\n    image: x\n    {line}\n");
    // A warning names the key with its line.
    let message = "services.web Additional property foo is not allowed";
    let plan = rejected(&service("foo: 1"), message, Some(Doubt::UnknownKey));
    assert_eq!(plan.warnings.len(), 1, "{plan:?}");
    // A refusal says it, or a warning.
    for (doubt, is_refused) in [(None, true), (Some(Doubt::Version), false)] {
        let text = service("volumes: ['data']");
        let plan = rejected(&text, "data is not an absolute path", doubt);
        let kinds: Vec<_> = plan.blockers.iter().map(|blocker| &blocker.kind).collect();
        let expected: &[&Kind] = if is_refused { &[&Kind::Rejected] } else { &[] };
        assert_eq!(kinds, expected, "{plan:?}");
        assert_eq!(plan.warnings.is_empty(), is_refused, "{plan:?}");
    }
}

/// The refusals and the warnings about the build of an image `y`, which exists or not.
fn built(service: &str, exists: bool) -> (usize, usize) {
    let mut world = world(&format!("services:\n  web:\n    {service}\n"));
    for name in ["y", "web-web"] {
        let found = exists.then(|| image("sha256:x"));
        world.images.insert(name.to_owned(), found);
    }
    let plan = world.plan();
    let is_missing = |refusal: &Finding| refusal.short.as_deref() == Some("image missing");
    assert!(plan.blockers.iter().all(is_missing), "{plan:?}");
    (plan.blockers.len(), plan.warnings.len())
}

#[test]
fn b06_a_build_that_portainer_cannot_do_is_refused() {
    for (service, exists, expected) in [
        // With an image that exists, nothing is built without the policy.
        ("build: app", true, (0, 0)),
        ("{build: app, image: y}", true, (0, 0)),
        ("{build: app, pull_policy: build}", true, (1, 0)),
        ("{build: app, image: y, pull_policy: build}", true, (1, 0)),
        ("build: app", false, (1, 0)),
        ("{build: app, image: y, pull_policy: never}", false, (1, 0)),
        // Compose may pull the image.
        ("{build: app, image: y}", false, (0, 1)),
        // Portainer's directory holds no Dockerfile.
        ("build: .", false, (1, 0)),
        ("build: {dockerfile_inline: FROM x}", false, (0, 0)),
        // It is unknown what Portainer sees.
        ("build: /srv/app", false, (0, 1)),
        ("build: https://example.com/x.git", false, (0, 0)),
    ] {
        let service = match service.strip_prefix('{') {
            Some(keys) => keys.trim_end_matches('}').replace(", ", "\n    "),
            None => service.to_owned(),
        };
        assert_eq!(built(&service, exists), expected, "{service}");
    }
}
