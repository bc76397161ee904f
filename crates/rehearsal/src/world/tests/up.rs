//! The effect of a second `up`.

use super::*;

#[test]
fn predicts_what_up_would_recreate() {
    let folder = "/opt/stacks/app";
    let mut world = running(TEXT);
    let changed = |world: &World| world.up_would_change("app", folder).unwrap();
    assert_eq!(changed(&world), [""; 0]);
    let id = world.container("app-b-1").unwrap().id.clone();
    world.stop_container(&id, 0).unwrap();
    assert_eq!(
        changed(&world),
        [""; 0],
        "a stopped container is only started"
    );
    world.remove_container(&id, AnonymousVolumes::Keep);
    assert_eq!(changed(&world), ["b"]);
    world.add_file(
        &format!("{folder}/docker-compose.yml"),
        &TEXT.replacen("busybox", "busybox:2", 1),
    );
    assert_eq!(changed(&world), ["a", "b"]);
    world.start_by_hand("app", folder).unwrap();
    assert_eq!(changed(&world), [""; 0]);
    renew_image(&mut world, "busybox:2");
    assert_eq!(changed(&world), ["a"], "the name belongs to a newer image");
}

#[test]
fn a_newer_compose_also_looks_at_networks() {
    for (version, changed) in [
        (LocalCompose::V2_26, vec![]),
        (LocalCompose::V5_6, vec!["a"]),
    ] {
        let mut world = world();
        world.local_compose = version;
        start(&mut world, TEXT, "");
        let engine = world.engine.id.clone();
        world.disconnect(&engine, "app_default", "app-a-1").unwrap();
        let found = world.up_would_change("app", "/opt/stacks/app").unwrap();
        assert_eq!(found, changed, "{version:?}");
    }
}
