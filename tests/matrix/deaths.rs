//! Portainer or the engine dies in the middle of a run; containers that cannot be removed.

use rehearsal::{Call, Era, FaultKind, Peer, Rule};
use serde_json::json;

use crate::{
    bench::Bench,
    judge::judge,
    stage::{Scene, set, stack, world},
};

const ERAS: [Era; 2] = [Era::Sync, Era::Async];
const SCENES: [Scene; 2] = [Scene::ByHand, Scene::Recorded];

fn converges(bench: &Bench, era: Era, scene: Scene) {
    bench.rehearsal.faults().clear();
    bench.rehearsal.revive().expect("alive again");
    bench.run(&["web"]).code(0);
    let other = set(era, scene);
    other.run(&["web"]).code(0);
    assert_eq!(stack(&world(bench)), stack(&world(&other)));
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn the_manager_dies_before_during_and_after_a_deployment() {
    for era in ERAS {
        for scene in SCENES {
            for (kind, half) in [
                (FaultKind::Die, false),
                (FaultKind::DieAfter, true),
                (FaultKind::DieAfter, false),
            ] {
                let bench = set(era, scene);
                let before = world(&bench);
                bench.rehearsal.forget_requests();
                bench.rehearsal.faults().once(Call::Create, kind);
                let run = bench.run(&["web"]).code(1);
                assert_eq!(judge(&bench, &before, &run), [""; 0], "{run:#?}");
                let run = run.says(&[
                    "no response to the create, and listing Portainer's stacks failed too",
                    "the stack may exist",
                    "stacklift restore web --to ",
                ]);
                drop(run);
                // Run while it is away: nothing more is touched.
                let left = stack(&world(&bench));
                let again = bench
                    .run(&["web"])
                    .code(1)
                    .says(&["this run changed nothing; unanswered: the create of the stack web"]);
                drop(again);
                assert_eq!(stack(&world(&bench)), left);
                if half {
                    // The containers came, and the record was never written.
                    bench.rehearsal.world(|world| {
                        let ids: Vec<u64> = world.records.keys().copied().collect();
                        for id in ids {
                            world.finish_deployment(id);
                        }
                        world.records.retain(|_, record| record.name != "web");
                    });
                }
                converges(&bench, era, scene);
            }
        }
    }
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn the_manager_dies_while_a_deployment_settles() {
    for scene in SCENES {
        let bench = set(Era::Async, scene);
        let before = world(&bench);
        // The first look of a recorded stack is the snapshot's.
        let looks = usize::from(scene == Scene::Recorded) + 1;
        bench.rehearsal.forget_requests();
        let rule = Rule::new(Call::Get, FaultKind::Die).after(looks);
        bench.rehearsal.faults().add(rule);
        let run = bench.run(&["web"]).code(1);
        assert_eq!(judge(&bench, &before, &run), [""; 0], "{run:#?}");
        drop(run.says(&["it may still be deploying"]));
        converges(&bench, Era::Async, scene);
    }
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn a_manager_that_is_away_before_the_create_was_not_sent_it() {
    let bench = set(Era::Sync, Scene::ByHand);
    let before = world(&bench);
    // Portainer dies after its last response before the create.
    bench.rehearsal.faults().set(Call::Me, FaultKind::DieAfter);
    let run = bench.run(&["web"]).code(1);
    assert_eq!(judge(&bench, &before, &run), [""; 0], "{run:#?}");
    drop(run.says(&[
        "failed to create the stack",
        "state: the stack is down: 2 old containers were removed; the create was not sent",
        "stacklift restore web --to ",
    ]));
    let requests = bench.rehearsal.requests();
    assert!(requests.iter().all(|r| r.call != Call::Create));
    converges(&bench, Era::Sync, Scene::ByHand);
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn the_engine_dies_while_containers_are_removed() {
    for kind in [FaultKind::Die, FaultKind::DieAfter] {
        let bench = set(Era::Sync, Scene::ByHand);
        let before = world(&bench);
        bench.rehearsal.faults().set(Call::EngineRemove, kind);
        let run = bench.run(&["web"]).code(1);
        assert_eq!(judge(&bench, &before, &run), [""; 0], "{run:#?}");
        let to_manager = |r: &&_| -> bool {
            let r: &rehearsal::Request = r;
            r.peer == Peer::Portainer && r.method != "GET"
        };
        assert_eq!(
            bench.rehearsal.requests().iter().filter(to_manager).count(),
            0
        );
        drop(run.says(&["failed to remove the containers"]));
        converges(&bench, Era::Sync, Scene::ByHand);
    }
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn a_container_that_refuses_its_removal_stops_the_run() {
    for era in ERAS {
        let bench = set(era, Scene::ByHand);
        let before = world(&bench);
        let stubborn = bench.containers("web")[0].clone();
        let body = json!({"message": "device or resource busy"}).to_string();
        let rule = Rule::new(Call::EngineRemove, FaultKind::Status(500, body)).path(&stubborn);
        bench.rehearsal.faults().add(rule);
        let run = bench.run(&["web"]).code(1);
        assert_eq!(judge(&bench, &before, &run), [""; 0], "{run:#?}");
        drop(run.says(&[
            "not removed: web-a-1 (1 of 2)",
            "device or resource busy",
            "state: 1 of 2 containers was removed; the create was not sent",
        ]));
        assert_eq!(bench.containers("web"), [stubborn]);
        converges(&bench, era, Scene::ByHand);
    }
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn containers_that_vanish_meanwhile_are_no_failure() {
    for era in ERAS {
        for (call, status) in [(Call::EngineInspect, 404), (Call::EngineChanges, 404)] {
            let bench = set(era, Scene::ByHand);
            let body = json!({"message": "No such container"}).to_string();
            bench
                .rehearsal
                .faults()
                .set(call, FaultKind::Status(status, body));
            // Gone by the time it is removed.
            let gone = FaultKind::Body(404, b"{\"message\":\"No such container\"}".to_vec());
            bench.rehearsal.faults().set(Call::EngineRemove, gone);
            let before = world(&bench);
            let run = bench.run(&["web"]).code(0);
            assert_eq!(judge(&bench, &before, &run), [""; 0], "{run:#?}");
        }
    }
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn what_cannot_be_listed_is_not_claimed_to_be_gone() {
    for era in ERAS {
        for kind in [
            FaultKind::Status(500, "{\"message\":\"no\"}".to_owned()),
            FaultKind::Garbage,
        ] {
            let bench = set(era, Scene::ByHand);
            bench.rehearsal.faults().set(Call::EngineList, kind);
            let no = json!({"message": "no", "details": "no"}).to_string();
            bench
                .rehearsal
                .faults()
                .set(Call::Create, FaultKind::Status(500, no));
            let before = world(&bench);
            let run = bench.run(&["web"]).code(1);
            assert_eq!(judge(&bench, &before, &run), [""; 0], "{run:#?}");
            drop(run.says(&[
                "the stack's containers are unknown: what they will lose",
                "state: Portainer did not create the stack; its containers could not be listed",
            ]));
            assert_eq!(bench.containers("web").len(), 2);
            converges(&bench, era, Scene::ByHand);
        }
    }
}
