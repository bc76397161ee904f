//! The rules of the world, by the fact that each of them models.

use super::{entities::HostPath, *};

const TEXT: &str = "services:
  a:
    image: busybox
    volumes:
      - /scratch
  b:
    image: busybox
    volumes:
      - data:/data
volumes:
  data:
";

fn world() -> World {
    World::new("secret")
}

/// A world in which `text` is running as `app`, started by hand.
fn running(text: &str) -> World {
    let mut world = world();
    start(&mut world, text, "");
    world
}

fn start(world: &mut World, text: &str, env: &str) {
    world.add_stack("/opt/stacks/app", [("docker-compose.yml", text)]);
    if !env.is_empty() {
        world.add_file("/opt/stacks/app/.env", env);
    }
    world.start_by_hand("app", "/opt/stacks/app").unwrap();
}

fn create(world: &mut World, text: &str) -> Result<u64, PortainerError> {
    create_with(world, text, &[])
}

fn create_with(world: &mut World, text: &str, env: &[(&str, &str)]) -> Result<u64, PortainerError> {
    let variable = |(name, value): &(&str, &str)| Variable {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    let env = env.iter().map(variable).collect();
    world.create(1, "app", text.to_owned(), Some(env), "admin")
}

fn update(world: &mut World, id: u64, text: &str) -> Result<(), PortainerError> {
    world.update(id, text.to_owned(), None)
}

fn ids(world: &World) -> Vec<String> {
    world
        .project("app")
        .into_iter()
        .map(|container| container.id.clone())
        .collect()
}

fn anonymous(world: &World, name: &str) -> String {
    let mounts = &world.container(name).unwrap().mounts;
    mounts
        .iter()
        .find(|mount| mount.anonymous)
        .unwrap()
        .name
        .clone()
        .unwrap()
}

fn service(lines: &str) -> String {
    format!("services:\n  a:\n    image: busybox\n{lines}")
}

const WEB: &str =
    "services:\n  a:\n    image: busybox\n  b:\n    image: busybox\n    depends_on: [a]\n";
const SUCCESS: Ending = Ending {
    after: 2_000,
    fails: false,
};
const FAILURE: Ending = Ending {
    after: 2_000,
    fails: true,
};

fn begin(world: &mut World, name: &str, ending: Ending) -> Accepted {
    let work = world
        .prepare_create(1, name, WEB.to_owned(), None, "admin")
        .unwrap();
    world.begin(work, ending)
}

fn pass(world: &mut World, millis: i64) {
    world.advance(world.now + millis);
}

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
fn m12_a_relative_bind_becomes_an_empty_directory_of_the_manager() {
    let text = service("    volumes:\n      - ./conf:/conf\n      - ~/x:/x\n");
    let mut world = running(&text);
    let by_hand = world.container("app-a-1").unwrap().clone();
    assert_eq!(by_hand.mounts[0].source, "/opt/stacks/app/conf");
    let id = create(&mut world, &text).unwrap();
    let managed = world.container("app-a-1").unwrap();
    assert_ne!(managed.id, by_hand.id);
    assert_eq!(managed.mounts[0].source, format!("/data/compose/{id}/conf"));
    assert_ne!(managed.mounts[1].source, by_hand.mounts[1].source);
    assert_eq!(
        world.host[&format!("/data/compose/{id}/conf")],
        HostPath::Directory
    );
}

#[test]
fn m13_a_missing_bind_source_fails_in_long_syntax_only() {
    let long = service("    volumes:\n      - {type: bind, source: /no/such, target: /x}\n");
    let short = service("    volumes:\n      - /no/such:/x\n");
    let error = create(&mut world(), &long).unwrap_err();
    assert!(
        error
            .message
            .contains("bind source path does not exist: /no/such"),
        "{error:?}"
    );
    let mut world = world();
    create(&mut world, &short).unwrap();
    assert!(world.has_path("/no/such"));
}

#[test]
fn m16_a_put_carries_anonymous_volumes_over_and_n04_the_library_does_not() {
    for (era, kept) in [(Era::Sync, true), (Era::Async, false)] {
        let mut world = running(TEXT);
        world.era = era;
        let scratch = anonymous(&world, "app-a-1");
        let content = world.volume(&scratch).unwrap().content.clone();
        let id = create(&mut world, TEXT).unwrap();
        world.finish_deployment(id);
        assert_eq!(anonymous(&world, "app-a-1"), scratch, "{era:?}");
        update(&mut world, id, &TEXT.replacen("busybox", "busybox:2", 1)).unwrap();
        world.finish_deployment(id);
        let now = anonymous(&world, "app-a-1");
        assert_eq!(now == scratch, kept, "{era:?}");
        assert_eq!(
            world.volume(&now).unwrap().content == content,
            kept,
            "{era:?}"
        );
        assert_eq!(
            world.volume(&scratch).unwrap().content,
            content,
            "dangling at most"
        );
    }
}

#[test]
fn m21_a_late_failure_removes_everything_after_a_gap() {
    let mut world = running(WEB);
    let accepted = begin(&mut world, "app", FAILURE);
    let down = "docker-compose --project-name app down --remove-orphans";
    for (millis, processes) in [(2_000, 0), (99, 0), (1, 1), (299, 1)] {
        pass(&mut world, millis);
        assert_eq!(world.compose_processes(), vec![down; processes]);
        assert_eq!(ids(&world).len(), 2);
    }
    // Whatever was started in the meantime is removed as well.
    pass(&mut world, 1);
    assert_eq!((ids(&world).len(), world.records.len()), (0, 0));
    let outcome = world.take_outcome(accepted).unwrap();
    assert_eq!(outcome.unwrap_err().status, 500);
}

#[test]
fn m21_portainer_deploys_one_stack_at_a_time() {
    let mut world = world();
    begin(&mut world, "app", SUCCESS);
    let containers = world.containers.len();
    let second = begin(&mut world, "app", Ending::default());
    begin(&mut world, "other", SUCCESS);
    assert_eq!(world.compose_processes().len(), 1);
    assert_eq!(world.containers.len(), containers);
    pass(&mut world, 2_000);
    // The name was free when both were accepted.
    assert_eq!(world.take_outcome(second), Some(Ok(2)));
    assert_eq!(
        world
            .records
            .values()
            .filter(|one| one.name == "app")
            .count(),
        2
    );
    assert!(world.compose_processes()[0].contains("--project-name other up"));
    pass(&mut world, 2_000);
    assert_eq!((world.records.len(), world.is_busy()), (3, false));
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
fn n14_only_the_library_removes_orphans() {
    let (remove, ignore) = (
        ("COMPOSE_REMOVE_ORPHANS", "true"),
        ("COMPOSE_IGNORE_ORPHANS", "true"),
    );
    for (era, env, kept) in [
        (Era::Sync, vec![remove], true),
        (Era::Async, vec![remove], false),
        (Era::Async, vec![remove, ignore], true),
    ] {
        let mut world = running(WEB);
        world.era = era;
        let id = create_with(&mut world, &service(""), &env).unwrap();
        world.finish_deployment(id);
        assert!(world.container("app-a-1").is_some());
        assert_eq!(
            world.container("app-b-1").is_some(),
            kept,
            "{era:?} {env:?}"
        );
    }
}

#[test]
fn n05_what_happens_to_the_dependents_of_a_recreated_service() {
    // (recreated, restarted) of b, c and d
    for (era, expected) in [
        (Era::Sync, [(true, true), (true, true), (true, true)]),
        (Era::Async, [(false, false), (false, true), (true, true)]),
    ] {
        let mut world = world();
        world.era = era;
        // Its hashes are those of the same Compose.
        let id = create(&mut world, DEPENDENTS).unwrap();
        world.finish_deployment(id);
        world.records.clear();
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
fn n22_a_build_in_the_text() {
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
fn b26_the_library_recreates_an_edited_network_that_it_labeled() {
    let text = service("    networks: {default: {aliases: [www]}}\n");
    let edited = format!("{text}networks: {{default: {{labels: {{edited: 'yes'}}}}}}\n");
    for (era, is_recreated) in [(Era::Sync, false), (Era::Async, true)] {
        let mut world = world();
        world.era = era;
        let id = create(&mut world, &text).unwrap();
        world.finish_deployment(id);
        let before = world.container("app-a-1").unwrap().clone();
        pass(&mut world, 60_000);
        update(&mut world, id, &edited).unwrap();
        world.finish_deployment(id);
        let after = world.container("app-a-1").unwrap();
        let on = |one: &Container| one.networks["app_default"].clone();
        assert_eq!(after.id, before.id);
        assert_eq!(after.started != before.started, is_recreated);
        assert_eq!(on(after).network_id != on(&before).network_id, is_recreated);
        let has_alias = on(after).aliases.contains(&"www".to_owned());
        assert_eq!(has_alias, !is_recreated);
    }
}

#[test]
fn n24_an_anonymous_volume_that_the_text_names_keeps_its_data() {
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
