//! B24: an API key that does not see or may not change every Portainer stack.

use std::fs;

use rehearsal::{Call, FaultKind};

use crate::bench::{Bench, PLAIN, Run};

/// The API key of a standard user.
const USER: &str = "ptr_user-key-99d2";

/// A stack that was started by hand, and a standard user.
fn started() -> Bench {
    let bench = Bench::new();
    bench
        .rehearsal
        .world(|world| world.add_user(USER, "somebody"));
    bench.started("web", PLAIN, None);
    bench
}

/// Lets only administrators manage stacks.
fn forbid_stacks(bench: &Bench) {
    bench.rehearsal.world(|world| {
        let endpoint = world.endpoints.get_mut(&1).expect("an environment");
        endpoint.forbids_stacks = true;
    });
}

/// Runs the binary with the key of the user.
fn as_user(bench: &Bench, args: &[&str]) -> Run {
    let mut command = bench.command(args);
    let run = Run::of(command.env("STACKMGR_API_KEY", USER));
    assert!(!run.all().contains(USER), "{run:#?}");
    run
}

const FORBIDDEN: &str =
    "the API key is not allowed to create, update or delete stacks on environment 1";
const LIMITED: &str = "the API key does not belong to an administrator";

#[test]
fn b24_a_key_that_may_not_manage_stacks_is_refused_before_anything_is_removed() {
    let bench = started();
    forbid_stacks(&bench);
    let ids = bench.containers("web");
    let hint = "Disable the use of Stacks for non-administrators";
    as_user(&bench, &["web", "--grace", "1s"]).code(1).says(&[
        "refusing to migrate: ",
        FORBIDDEN,
        hint,
        "--force",
    ]);
    as_user(&bench, &["adopt", "web", "--yes"]).code(1).says(&[
        "cannot adopt the stack web",
        FORBIDDEN,
        hint,
    ]);
    as_user(&bench, &["adopt", "--all", "--yes"]).says(&[FORBIDDEN]);
    as_user(&bench, &["plan", "web"])
        .says(&[FORBIDDEN, "whether it is in Portainer is unknown"])
        .hides("stacklift adopt web")
        .hides("not in Portainer");
    as_user(&bench, &["list"]).says(&["blocked: the API key is not allowed", LIMITED]);
    as_user(&bench, &["doctor"]).code(1).says(&[FORBIDDEN]);
    assert!(bench.nothing_was_changed());
    assert_eq!(bench.containers("web"), ids);
    assert!(!bench.state().exists(), "no snapshot");
}

#[test]
fn b24_a_key_that_may_not_manage_stacks_deletes_no_stack_of_its_own() {
    let bench = started();
    as_user(&bench, &["web"]).code(0);
    let ids = bench.containers("web");
    forbid_stacks(&bench);
    for args in [
        &["web", "--grace", "1s"][..],
        &["adopt", "web", "--yes"],
        &["restore", "web", "--yes"],
    ] {
        bench.rehearsal.forget_requests();
        as_user(&bench, args).code(1);
        assert!(bench.nothing_was_changed(), "{args:?}");
    }
    assert_eq!(bench.containers("web"), ids);
}

#[test]
fn b24_force_overrides_the_refusal_of_a_migration() {
    let bench = started();
    forbid_stacks(&bench);
    as_user(&bench, &["web", "--force"]).code(1).says(&[
        "continuing because of --force",
        "Stack creation is disabled for non-admin users",
    ]);
}

#[test]
fn b24_a_restore_with_a_key_that_does_not_see_the_stack_is_refused() {
    let bench = started();
    bench.run(&["web"]).code(0);
    let ids = bench.containers("web");
    bench.rehearsal.forget_requests();
    as_user(&bench, &["restore", "web", "--yes"])
        .code(1)
        .says(&[
            "refusing to restore: 1 problem found",
            LIMITED,
            "--engine-only",
            "this run changed nothing",
        ])
        .hides("verified")
        .hides("no changes in Portainer");
    assert!(bench.nothing_was_changed());
    assert_eq!(bench.containers("web"), ids);
    for _ in 0..2 {
        as_user(&bench, &["restore", "web", "--yes", "--force"])
            .code(1)
            .says(&["match", "but the Portainer stack is unknown"])
            .hides("verified")
            .hides("no changes in Portainer");
    }
    bench
        .rehearsal
        .world(|world| assert_eq!(world.records.len(), 1));
}

#[test]
fn b24_a_role_that_cannot_be_read_is_not_that_of_an_administrator() {
    for kind in [
        FaultKind::Status(404, "{}".to_owned()),
        FaultKind::Body(200, b"{}".to_vec()),
    ] {
        let bench = started();
        bench.run(&["web"]).code(0);
        let deleted = bench
            .rehearsal
            .world(|world| std::mem::take(&mut world.records));
        assert_eq!(deleted.len(), 1);
        bench.rehearsal.faults().set(Call::Me, kind);
        bench
            .run(&["restore", "web", "--yes"])
            .code(1)
            .says(&["cannot determine whether the API key sees every Portainer stack"])
            .hides("verified");
        bench.rehearsal.faults().clear();
        bench
            .run(&["restore", "web", "--yes"])
            .code(0)
            .says(&["no changes in Portainer", "verified"]);
    }
}

#[test]
fn b24_a_user_migrates_and_rolls_back_a_stack_of_their_own() {
    let bench = started();
    as_user(&bench, &["web"]).code(0).says(&[LIMITED]);
    as_user(&bench, &["restore", "web", "--yes"])
        .code(0)
        .says(&["delete Portainer stack 1", "verified"]);
    bench
        .rehearsal
        .world(|world| assert!(world.records.is_empty()));
    assert_eq!(bench.containers("web").len(), 1);
}

#[test]
fn b24_a_stack_that_the_key_did_not_see_is_not_deleted_by_a_restore() {
    let bench = started();
    let id = bench.record("web", 1);
    bench.rehearsal.world(|world| {
        let record = world.records.get_mut(&id).expect("a record");
        record.created -= 60;
    });
    // The create fails on the name, after the containers were removed.
    as_user(&bench, &["web"]).code(1).says(&[LIMITED]);
    bench
        .run(&["restore", "web", "--yes"])
        .code(0)
        .says(&["not checked", "the Portainer stack"])
        .hides("delete Portainer stack");
    bench
        .rehearsal
        .world(|world| assert_eq!(world.records.len(), 1));
    bench
        .run(&["restore", "web", "--list"])
        .code(0)
        .says(&["unknown"]);
}

#[test]
fn b06_containers_that_portainer_started_have_a_stack_that_the_key_does_not_see() {
    // The second Portainer does not run in a container.
    for dir in ["/data/compose/7", "/opt/portainer/compose/7/v2"] {
        let bench = started();
        bench.rehearsal.world(|world| {
            for container in world.containers.values_mut() {
                let label = "com.docker.compose.project.working_dir";
                container.labels.insert(label.to_owned(), dir.to_owned());
            }
        });
        let ids = bench.containers("web");
        as_user(&bench, &["web"]).code(1).says(&[
            "refusing to migrate: containers of the stack were started in a folder like those of Portainer",
            &format!("web-a-1 was started in {dir}"),
            "use an administrator's API key",
        ]);
        assert!(bench.nothing_was_changed());
        assert_eq!(bench.containers("web"), ids);
        assert!(!fs::exists(bench.state()).expect("a folder"), "no snapshot");
        // An administrator's key sees that there is none.
        bench.run(&["web"]).code(0);
    }
}

#[test]
fn b06_an_environment_whose_engine_answers_404_is_not_missing() {
    for status in [401, 403, 404] {
        let bench = started();
        let body = r#"{"message":"page not found"}"#.to_owned();
        let kind = FaultKind::Status(status, body);
        bench.rehearsal.faults().set(Call::Info, kind);
        let exists = "Portainer has environment 1, but its engine could not be asked";
        let answer = format!("status {status}: page not found");
        for args in [
            &["plan", "web"][..],
            &["adopt", "web", "--yes"],
            &["doctor"],
        ] {
            bench
                .run(args)
                .says(&[exists])
                .hides("has no environment 1")
                .hides("not allowed to use");
        }
        bench.run(&["web"]).code(0).says(&[exists, &answer]);
    }
}
