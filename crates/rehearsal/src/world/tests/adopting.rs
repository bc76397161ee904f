//! What decides whether an adoption touches a container.

use super::*;

const DEPENDENTS: &str = "services:
  a:
    image: busybox
  b:
    image: busybox
    depends_on: [a]
  c:
    image: busybox
    links: [a]
  d:
    image: busybox
    network_mode: service:a
";

/// The stack `app`, put under Portainer with another text. Returns the IDs and start times before and after.
fn adopted(world: &mut World, text: &str) -> [Vec<(String, i64)>; 2] {
    let states = |world: &World| {
        let all = world.project("app").into_iter();
        all.map(|one| (one.id.clone(), one.started)).collect()
    };
    let before = states(world);
    world.advance(world.now + 60_000);
    let id = create(world, text).unwrap();
    world.finish_deployment(id);
    [before, states(world)]
}

#[test]
fn m05_a_paused_container_makes_the_deployment_fail() {
    let mut world = running(TEXT);
    let id = world.container("app-a-1").unwrap().id.clone();
    world.pause_container(&id, true).unwrap();
    let error = create(&mut world, TEXT).unwrap_err();
    assert!(error.details.contains("cannot start a paused container"));
    assert!(world.project("app").is_empty(), "M06");
}

#[test]
fn n05_what_happens_to_the_dependents_of_a_recreated_service() {
    // (recreated, restarted) of b, c and d
    for (era, expected) in [
        (Era::Sync, [(true, true), (true, true), (true, true)]),
        (Era::Async, [(false, false), (false, true), (true, true)]),
    ] {
        let mut world = world();
        // Its hashes are those of the library.
        world.local_compose = LocalCompose::V5_6;
        if era == Era::Sync {
            world.local_compose = LocalCompose::V2_26;
        }
        start(&mut world, DEPENDENTS, "");
        world.era = era;
        let edited = DEPENDENTS.replacen("busybox", "busybox:2", 1);
        let [before, after] = adopted(&mut world, &edited);
        assert_ne!(before[0].0, after[0].0);
        let found = [1, 2, 3].map(|at| {
            let (old, new): (&(String, i64), _) = (&before[at], &after[at]);
            (old.0 != new.0, old.1 != new.1)
        });
        assert_eq!(found, expected, "{era:?}");
        assert!(world.project("app").iter().all(|one| one.is_running()));
    }
}

#[test]
fn n05_dependents_of_a_service_that_is_only_created_stay() {
    let mut world = running(DEPENDENTS);
    let id = world.container("app-a-1").unwrap().id.clone();
    world.remove_container(&id, AnonymousVolumes::Keep);
    let before = world.container("app-b-1").unwrap().clone();
    let shares = world.container("app-d-1").unwrap().id.clone();
    create(&mut world, DEPENDENTS).unwrap();
    assert_eq!(*world.container("app-b-1").unwrap(), before);
    assert_ne!(world.container("app-d-1").unwrap().id, shares);
}

#[test]
fn n13_a_build_in_the_text() {
    let own = "services:\n  a:\n    build: .\n";
    let both = "services:\n  a:\n    build: .\n    image: own/a\n";
    for (text, sent, era, stays) in [
        (own, own, Era::Sync, Ok(true)),
        (own, own, Era::Async, Err(())),
        (
            own,
            &service("").replace("busybox", "app-a"),
            Era::Sync,
            Ok(false),
        ),
        (
            own,
            &service("").replace("busybox", "app-a"),
            Era::Async,
            Ok(false),
        ),
        (both, both, Era::Sync, Ok(true)),
        (both, both, Era::Async, Err(())),
        (
            both,
            &service("").replace("busybox", "own/a"),
            Era::Sync,
            Ok(true),
        ),
        (
            both,
            &service("").replace("busybox", "own/a"),
            Era::Async,
            Ok(true),
        ),
    ] {
        let mut world = running(text);
        world.era = era;
        let [before, after] = adopted(&mut world, sent);
        let status = world.records.values().next().unwrap().status;
        assert_eq!(status == Status::Active, stays.is_ok(), "{era:?}: {sent}");
        assert_eq!(before == after, stays.unwrap_or(true), "{era:?}: {sent}");
    }
}

#[test]
fn n15_an_anonymous_volume_that_the_text_names_keeps_its_data() {
    for era in [Era::Sync, Era::Async] {
        let mut world = running(TEXT);
        world.era = era;
        let volume = anonymous(&world, "app-a-1");
        let text = TEXT.replace("- /scratch", "- kept:/scratch").replace(
            "data:\n",
            &format!("data:\n  kept:\n    name: {volume}\n    external: true\n"),
        );
        let [before, after] = adopted(&mut world, &text);
        assert_ne!(before[0], after[0], "{era:?}: recreated once");
        assert_eq!(before[1], after[1], "{era:?}");
        assert_eq!(anonymous(&world, "app-a-1"), volume);
        let id = world.records.values().next().unwrap().id;
        for changed in [text.clone(), text.replacen("busybox", "busybox:2", 1)] {
            update(&mut world, id, &changed).unwrap();
            world.finish_deployment(id);
            assert_eq!(anonymous(&world, "app-a-1"), volume, "{era:?}");
            let is_same = world.container("app-a-1").unwrap().id == after[0].0;
            assert_eq!(is_same, changed == text, "{era:?}");
        }
    }
}

#[test]
fn n06_a_dependent_that_cannot_be_created_leaves_its_dependency_created() {
    let mut world = running(
        "services:\n  a:\n    image: busybox\n  b:\n    image: busybox\n    depends_on: [a]\n",
    );
    world.era = Era::Async;
    let text = "services:\n  a:\n    image: busybox:2\n  b:\n    image: busybox\n    depends_on: [a]\n    volumes:\n      - {type: bind, source: /missing, target: /x}\n";
    let [before, after] = adopted(&mut world, text);
    assert_ne!(before[0].0, after[0].0);
    assert_eq!(before[1], after[1]);
    assert_eq!(world.container("app-a-1").unwrap().state, "created");
}

#[test]
fn the_program_of_the_host_computes_the_hashes_of_the_labels() {
    for version in [LocalCompose::V2_26, LocalCompose::V5_6] {
        let mut world = world();
        world.local_compose = version;
        let text = service("    env_file: .env\n    volumes:\n      - ./conf:/conf\n");
        start(&mut world, &text, "A='x # y'\n");
        let container = world.container("app-a-1").unwrap();
        let label = |name: &str| container.labels[&format!("com.docker.compose.{name}")].clone();
        assert_eq!(label("version"), world.compose_version());
        let folder = "/opt/stacks/app";
        let file = Some("docker-compose.yml");
        for file in [None, file] {
            let hashes = world.hashes_on_disk("app", folder, file).unwrap();
            assert_eq!(hashes["a"], label("config-hash"));
        }
        let sent = text
            .replace(".env", "stack.env")
            .replace("./", "/opt/stacks/app/");
        let hashes = world.hashes_of_text("app", &sent, "A='x # y'\n").unwrap();
        assert_eq!(hashes["a"], label("config-hash"));
        let hashes = world.hashes_of_text("app", &sent, "A=2\n").unwrap();
        assert_ne!(hashes["a"], label("config-hash"));
        let missing = world.hashes_of_text("app", &sent, "").unwrap_err();
        assert!(missing.contains("stack.env: no such file"), "{missing}");
    }
    let mut world = running(TEXT);
    world.label_as_rehearsal();
    create(&mut world, &TEXT.replacen("busybox", "busybox:2", 1)).unwrap();
    for container in world.project("app") {
        let label = &container.labels["com.docker.compose.version"];
        assert_eq!(label, "rehearsal-2.26.1");
    }
}

#[test]
fn events_tell_when_a_container_did_not_run() {
    let mut world = running(TEXT);
    let old = world.container("app-a-1").unwrap().id.clone();
    world.events.clear();
    world.advance(world.now + 60_000);
    let now = world.now;
    create(&mut world, &TEXT.replacen("busybox", "busybox:2", 1)).unwrap();
    let new = world.container("app-a-1").unwrap().id.clone();
    let events = world
        .events
        .iter()
        .map(|one| (one.action, one.id.as_str(), one.at));
    assert_eq!(
        events.collect::<Vec<_>>(),
        [
            (Action::Create, new.as_str(), now),
            (Action::Die, &old, now),
            (Action::Destroy, &old, now),
            (Action::Start, &new, now),
        ]
    );
}

#[test]
fn n06_a_container_that_cannot_be_connected_keeps_its_temporary_name() {
    let plain = service("    networks:\n      first: {}\n      second: {}\n")
        + "networks:\n  first: {}\n  second: {}\n";
    let mut world = running(&plain);
    world.era = Era::Async;
    let old = world.container("app-a-1").unwrap().clone();
    // The network has no configured subnet.
    let text = plain.replacen("second: {}", "second: {ipv4_address: 172.30.0.9}", 1);
    let [before, after] = adopted(&mut world, &text);
    assert_eq!(after.len(), 2);
    assert!(after.contains(&before[0]), "the old container runs");
    let stray = format!("{}_app-a-1", old.short_id());
    assert_eq!(world.container(&stray).unwrap().state, "created");
    let status = world.records.values().next().unwrap().status;
    assert_eq!(status, Status::Error);
}
