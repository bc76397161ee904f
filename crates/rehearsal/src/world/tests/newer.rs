//! Where newer versions of Portainer differ from 2.23.

use super::*;

#[test]
fn n01_a_deployment_ends_after_its_polls_or_its_time() {
    let mut world = world();
    world.era = Era::Async;
    let id = create(&mut world, TEXT).unwrap();
    assert!(world.project("app").is_empty());
    assert_eq!(update(&mut world, id, TEXT).unwrap_err().status, 409);
    assert_eq!(world.delete(id, 1).unwrap_err().status, 409);
    let seen = (0..4)
        .map(|_| world.poll(id).unwrap().status.number())
        .collect::<Vec<_>>();
    assert_eq!(seen, [3, 3, 1, 1]);
    assert_eq!(world.project("app").len(), 2);
    update(&mut world, id, TEXT).unwrap();
    world.advance(world.now + 10_000);
    assert_eq!(world.records[&id].status, Status::Active);
}

#[test]
fn n05_what_the_library_recreates() {
    let plain = service("");
    let depends =
        "services:\n  a:\n    image: busybox\n    depends_on: [b]\n  b:\n    image: busybox\n";
    let bind = service("    volumes:\n      - /srv:/srv\n");
    for (version, text, stays) in [
        (LocalCompose::V2_26, plain.as_str(), true),
        (LocalCompose::V2_26, depends, false),
        (LocalCompose::V2_26, &bind, true),
        (LocalCompose::V5_6, &plain, true),
        (LocalCompose::V5_6, depends, true),
        (LocalCompose::V5_6, &bind, false),
    ] {
        let mut world = world();
        world.local_compose = version;
        start(&mut world, text, "");
        world.era = Era::Async;
        let before = ids(&world);
        let id = create(&mut world, text).unwrap();
        world.finish_deployment(id);
        assert_eq!(ids(&world)[0] == before[0], stays, "{version:?}: {text}");
    }
}

#[test]
fn n05_variables_by_stack_env_and_absolute_paths_keep_the_container() {
    for era in [Era::Sync, Era::Async] {
        let mut world = world();
        let text = service("    env_file: .env\n    volumes:\n      - ./conf:/conf\n");
        start(&mut world, &text, "A=1\nB='x # y'\n");
        world.era = era;
        let before = ids(&world);
        let faithful = text
            .replace(".env", "stack.env")
            .replace("./", "/opt/stacks/app/");
        let id = create_with(&mut world, &faithful, &[("A", "1"), ("B", "'x # y'")]).unwrap();
        world.finish_deployment(id);
        assert_eq!(ids(&world), before, "{era:?}");
    }
}

#[test]
fn n06_a_failing_deployment_undoes_nothing() {
    let mut world = running(TEXT);
    world.era = Era::Async;
    world.unpullable.insert("private/image".to_owned());
    let before = world.containers.clone();
    let id = create(&mut world, &TEXT.replacen("busybox", "private/image", 1)).unwrap();
    world.finish_deployment(id);
    let record = &world.records[&id];
    assert_eq!(record.status, Status::Error);
    let note = record.deployments.last().unwrap();
    assert!(
        note.message
            .contains("pull access denied for private/image"),
        "{note:?}"
    );
    assert_eq!(world.containers, before);
}

#[test]
fn n06_a_port_in_use_leaves_the_new_container_created() {
    let text = service("    ports: [\"80:80\"]\n");
    let mut world = running(&service(""));
    world.add_stack("/opt/stacks/web", [("docker-compose.yml", text.as_str())]);
    world.start_by_hand("web", "/opt/stacks/web").unwrap();
    world.era = Era::Async;
    let before = ids(&world);
    let id = create(&mut world, &text).unwrap();
    world.finish_deployment(id);
    let container = world.container("app-a-1").unwrap();
    assert_eq!(container.state, "created");
    assert_ne!(container.id, before[0]);
    let message = &world.records[&id].deployments.last().unwrap().message;
    assert!(
        message.contains("Bind for 0.0.0.0:80 failed: port is already allocated"),
        "{message}"
    );
}

#[test]
fn n07_what_a_record_in_error_takes_with_it() {
    let mut world = running(TEXT);
    world.era = Era::Async;
    let id = create(&mut world, &format!("{TEXT}x: 1\n")).unwrap();
    world.finish_deployment(id);
    assert_eq!(world.records[&id].status, Status::Error);
    assert_eq!(world.project("app").len(), 2);
    let mut deleted = world.clone();
    deleted.delete(id, 1).unwrap();
    assert!(deleted.project("app").is_empty());
    let before = ids(&world);
    update(&mut world, id, TEXT).unwrap();
    world.finish_deployment(id);
    assert_eq!(world.records[&id].status, Status::Active);
    assert!(
        ids(&world).iter().all(|id| !before.contains(id)),
        "down ran first"
    );
}

#[test]
fn n08_what_has_exited_is_started_again() {
    let mut world = world();
    world.exits.insert("app/a".to_owned(), 0);
    start(&mut world, TEXT, "");
    let before = world.container("app-a-1").unwrap().clone();
    assert_eq!(before.state, "exited");
    world.advance(world.now + 60_000);
    create(&mut world, TEXT).unwrap();
    let after = world.container("app-a-1").unwrap();
    assert_eq!(after.id, before.id);
    assert_eq!(after.started, before.started + 60);
}

#[test]
fn n09_orphans_stay() {
    let mut world = running(TEXT);
    create(&mut world, &service("    volumes:\n      - /scratch\n")).unwrap();
    assert_eq!(world.project("app").len(), 2);
}
