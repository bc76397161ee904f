//! Requests that end after their client has disconnected (M21).

use super::*;

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

fn ids(world: &World) -> Vec<String> {
    let all = world.project("app").into_iter();
    all.map(|one| one.id.clone()).collect()
}

#[test]
fn m21_the_stack_appears_when_compose_has_finished() {
    let mut world = running(WEB);
    let before = ids(&world);
    let accepted = begin(&mut world, "app", SUCCESS);
    pass(&mut world, 1_999);
    assert!(world.records.is_empty() && world.is_busy());
    assert_eq!(
        world.compose_processes(),
        ["docker-compose -f /data/compose/1/docker-compose.yml --project-name app up -d"]
    );
    pass(&mut world, 1);
    assert!(!world.is_busy() && world.compose_processes().is_empty());
    assert_eq!(world.take_outcome(accepted), Some(Ok(1)));
    assert_eq!(world.take_outcome(accepted), None);
    assert_eq!(world.records[&1].name, "app");
    assert_eq!(ids(&world), before, "M05");
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
fn m21_a_container_removed_meanwhile_makes_the_deployment_fail() {
    let mut world = world();
    let accepted = begin(&mut world, "app", SUCCESS);
    let created = ids(&world);
    world.remove_container(&created[0], AnonymousVolumes::Keep);
    start(&mut world, WEB, "");
    pass(&mut world, 3_000);
    assert!(world.take_outcome(accepted).unwrap().is_err());
    assert!(ids(&world).is_empty());
}

#[test]
fn m21_a_delete_continues_as_well() {
    for (ending, records) in [(SUCCESS, 0), (FAILURE, 1)] {
        for era in [Era::Sync, Era::Async] {
            let mut world = running(WEB);
            world.era = era;
            let id = world.add_record("app", 1, WEB);
            let work = world.prepare_delete(id, 1, NamedVolumes::Keep).unwrap();
            let accepted = world.begin(work, ending);
            pass(&mut world, 1_999);
            assert_eq!((ids(&world).len(), world.records.len()), (2, 1));
            let shown = world.compose_processes();
            assert_eq!(shown.len(), usize::from(era == Era::Sync), "{shown:?}");
            pass(&mut world, 1);
            assert_eq!((ids(&world).len(), world.records.len()), (0, records));
            assert_eq!(
                world.networks.iter().any(|one| one.name == "app_default"),
                records == 1
            );
            assert_eq!(world.take_outcome(accepted).unwrap().is_err(), records == 1);
        }
    }
}

#[test]
fn n01_a_deployment_in_the_background_ends_late() {
    for (ending, status) in [(SUCCESS, Status::Active), (FAILURE, Status::Error)] {
        let mut world = running(WEB);
        world.era = Era::Async;
        let accepted = begin(&mut world, "app", ending);
        assert_eq!(world.take_outcome(accepted), Some(Ok(1)));
        for _ in 0..10 {
            assert_eq!(world.poll(1).unwrap().status, Status::Deploying);
        }
        pass(&mut world, 2_000);
        assert_eq!(world.poll(1).unwrap().status, status);
        assert_eq!(ids(&world).len(), 2, "N06");
    }
}
