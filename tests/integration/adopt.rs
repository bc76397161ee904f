//! `stacklift adopt`, over the embedded Portainer and engine.

use std::time::{Duration, Instant};

use rehearsal::{Call, Era, FaultKind, Rule, Status, World};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, MARKED, PLAIN, Run, done, instead, refusal},
    confirming::{on_terminal, on_terminal_after},
    plan::{labeled, with_hashes},
    restoring::write_file,
};

/// A stack with data in a named and in an anonymous volume.
const TEXT: &str = "\
services:
  a:
    image: x:1
    environment:
      TOKEN: ${TOKEN}
    volumes:
      - data:/data
  b:
    image: y:1
volumes:
  data:
";

/// What is another command of `b`.
const COMMAND: &str = "    image: y:1\n    command: sleep 5\n";

const ERAS: [Era; 2] = [Era::Sync, Era::Async];

/// The stack `web`, started by hand, on the environment of this engine.
fn started(era: Era) -> Bench {
    let bench = Bench::of(era);
    let env = format!("TOKEN={MARKED}\n");
    bench.started("web", TEXT, Some(&env));
    bench
}

/// Edits the Compose file: `b` gets another command.
fn edit(bench: &Bench) {
    let text = TEXT.replace("    image: y:1\n", COMMAND);
    bench.stack("web", &text, Some(&format!("TOKEN={MARKED}\n")));
}

/// The stack, whose file was edited since it was started.
fn edited(era: Era) -> Bench {
    let bench = started(era);
    edit(&bench);
    bench
}

fn adopt(bench: &Bench, more: &str) -> Run {
    bench.run(&format!("adopt web --wait 2s {more}"))
}

/// The report of an adoption that ends with this code.
fn reported(bench: &Bench, code: i32) -> (Value, Run) {
    let run = adopt(bench, "--output json").code(code);
    (run.report("adopt"), run)
}

/// Name and state of each container, and its volumes.
fn containers(bench: &Bench) -> Vec<Value> {
    bench.world(|world| {
        let all = world.project("web").into_iter();
        all.map(|one| {
            let json = serde_json::to_value(one).expect("JSON");
            let mounts: Vec<_> = one
                .mounts
                .iter()
                .map(|mount| (mount.target.clone(), mount.name.clone()))
                .collect();
            json!([one.name, json["state"], json["env"], mounts])
        })
        .collect()
    })
}

#[test]
fn what_portainer_says_of_a_failed_deployment_is_said_once() {
    let progress = " Container web-a-1  Recreate\n".repeat(50);
    let cause = "Error response from daemon: no such device";
    let said = format!("failed to deploy a stack: {progress}{cause}\n");
    let body = json!({"message": said, "details": said}).to_string();
    let failing = || {
        let bench = started(Era::Sync);
        bench.always(Call::Create, instead(500, &body));
        bench
    };
    let failed = "error: Portainer could not deploy web: no such device\n\
        No container was changed; Portainer does not list the stack.\n\
        hint: fix that, then run the command again: that is safe\n";
    assert_eq!(adopt(&failing(), "").code(1).err, failed);
    for (args, times) in [("", 1), ("-v", 3)] {
        let run = adopt(&failing(), args).code(1);
        assert_eq!(run.err.matches("no such device").count(), times, "{run:#?}");
        assert_eq!(run.err.contains("Recreate"), times > 1, "{run:#?}");
    }
}

#[test]
fn containers_that_are_the_same_are_not_touched() {
    for era in ERAS {
        let bench = started(era);
        let before = bench.containers("web");
        let page = format!("{}/#!/1/docker/stacks/web?id=1", bench.base_url());
        let done = format!(
            "adopted web: 2 containers kept running\n  Portainer  {page}&type=2&regular=true\n  \
             edit it there from now on; to undo: stacklift restore web\n"
        );
        let run = adopt(&bench, "").code(0);
        assert!(run.out.ends_with(&done), "{run:#?}");
        run.hides("-1 ");
        assert_eq!(bench.containers("web"), before);
        assert_eq!(bench.first_record().status, Status::Active);
        // Again: nothing is sent.
        bench.forget_requests();
        let again = adopt(&bench, "").code(0);
        again.prints("web is up to date in Portainer\n");
        let (report, _) = reported(&bench, 0);
        assert_eq!(report["outcome"], "nothing-to-do", "{report}");
        assert!(bench.nothing_was_changed());
    }
}

#[test]
fn a_kept_container_whose_networks_changed_during_the_run_is_not_verified() {
    for era in ERAS {
        let bench = started(era);
        let before = bench.containers("web");
        let id = before[0].clone();
        // As `docker network connect` does.
        bench.world_with(Call::Create, move |world| {
            let container = world.containers.get_mut(&id).expect("a container");
            let attachment = container.networks.values().next().cloned();
            let attachment = attachment.expect("a network");
            container.networks.insert("other".to_owned(), attachment);
        });
        let (report, run) = reported(&bench, 1);
        assert_eq!(report["outcome"], "changed", "{report}");
        let container = &report["services"][0]["containers"][0];
        assert_eq!(container["change"], "kept");
        assert_eq!(container["differences"][0], "the networks");
        run.hides("adopted").says(&[
            "error: web does not run as before\n  - web-a-1 differs from before: the networks\nNothing was restored, because no container was recreated, restarted or removed: web-a-1 differs from before: the networks; Portainer stack 1 exists (active).\n",
            "docker network connect",
            "restore web --to",
        ]);
        assert_eq!(bench.containers("web"), before);
    }
}

#[test]
fn m16_a_portainer_stack_of_this_environment_is_updated_without_pulling_or_pruning() {
    for era in ERAS {
        let bench = started(era);
        adopt(&bench, "").code(0);
        bench.change_record(|record| {
            (record.control.users, record.control.teams) = (vec![7], vec![3]);
        });
        edit(&bench);
        let before = bench.containers("web");
        let (report, run) = reported(&bench, 0);
        run.says("updated web: a kept running, b was down for ");
        assert_eq!(report["outcome"], "adopted", "{report}");
        assert_eq!(report["plan"]["losses"], serde_json::json!([]));
        assert_eq!(report["plan"]["changes"], serde_json::json!([]));
        let change = |service: usize| &report["services"][service]["containers"][0];
        assert_eq!(change(0)["change"], "kept");
        assert_eq!(change(0)["away"], 0.0);
        assert_eq!(change(1)["change"], "recreated");
        let after = bench.containers("web");
        assert_eq!(before[0], after[0]);
        assert_ne!(before[1], after[1]);
        let updates = bench.calls(Call::Update);
        assert_eq!(updates.len(), 1);
        let body: Value = serde_json::from_slice(&updates[0].body).expect("JSON");
        let expected = (&false.into(), &false.into());
        assert_eq!((&body["prune"], &body["pullImage"]), expected);
        assert_eq!(bench.calls(Call::Create).len(), 1);
        let control = bench.first_record().control;
        assert_eq!((control.users, control.teams), (vec![7], vec![3]));
    }
}

#[test]
fn a_service_without_a_container_is_not_verified() {
    let bench = Bench::of(Era::Sync);
    bench.stack("web", TEXT, Some(&format!("TOKEN={MARKED}\n")));
    bench.world(|world| {
        world.add_image("x:1");
        world.add_image("y:1");
    });
    let says_so = instead(200, "{\"Id\": 7, \"Status\": 1}");
    bench.once(Call::Create, says_so);
    adopt(&bench, "").fails("error: web does not run as before\n  - a has no container\n  - b has no container\n  - Portainer reported stack 7, but it was not found: Portainer does not list the stack\nNo container was changed; Portainer does not list the stack.\n");
}

#[test]
fn the_same_text_is_sent_again_if_a_service_does_not_run() {
    let bench = started(Era::Sync);
    adopt(&bench, "").code(0);
    bench.change_container("web-b-1", |one| one.exit(3, 0));
    adopt(&bench, "--rerun-jobs").succeeds("updated web: a kept running, b was started");
    assert_eq!(bench.calls(Call::Update).len(), 1);
    let bench = Bench::adopted(&format!("{PLAIN}    scale: 2\n"));
    let mut third = bench.container("web-a-2");
    (third.id, third.name) = ("f".repeat(64), "web-a-3".to_owned());
    let number = "com.docker.compose.container-number".to_owned();
    third.labels.insert(number, "3".to_owned());
    bench.world(|world| world.containers.insert(third.id.clone(), third));
    let run = bench.run("plan web").succeeds("up to date");
    run.says(
        "the next update in Portainer removes web-a-3: the Compose file asks for 2 containers of a",
    );
    bench.run("list").says("in Portainer  up to date");
    bench.world(|world| world.containers.retain(|_, one| one.name != "web-a-3"));
    bench.world(|world| world.containers.retain(|_, one| one.name != "web-a-2"));
    let run = bench.run("plan web").code(0);
    run.says("has 1 of 2 containers; the others will be started");
    bench.run("list").says("in Portainer  starts a");
}

#[test]
fn a_snapshot_that_lacks_something_stops_the_adoption() {
    let bench = started(Era::Sync);
    // The plan reads lists, and the snapshot each object.
    for (call, path, part) in [
        (Call::EngineVolumes, "/volumes/", "the volumes"),
        (Call::EngineNetworks, "/networks/", "the networks"),
        (
            Call::EngineChanges,
            "/changes",
            "the files written inside the containers",
        ),
    ] {
        bench.faults().add(Rule::new(call, refusal()).path(path));
        let args = "adopt web --wait 2s";
        bench.stops(args, &["the snapshot would be incomplete", part]);
        bench.faults().clear();
        assert!(!bench.state().join("snapshots").exists(), "no snapshot");
    }
}

/// A success with an Id does not show that Portainer has the stack.
#[test]
fn b18_a_reported_success_is_read_back() {
    for era in ERAS {
        for (fault, wrong) in [
            (
                instead(200, "{\"Id\":99}"),
                "Portainer reported stack 99, but it was not found: Portainer does not list the stack",
            ),
            (
                done(200, "{\"Id\":99}"),
                "it was not found: the stack exists as Portainer stack 1",
            ),
        ] {
            let bench = started(era);
            let before = bench.containers("web");
            bench.always(Call::Create, fault);
            let run = adopt(&bench, "").code(1).hides("adopted web");
            run.says(&[wrong, "look at the stack in Portainer"]);
            assert_eq!(bench.containers("web"), before);
            assert!(bench.calls(Call::Delete).is_empty());
        }
        let bench = started(era);
        adopt(&bench, "").code(0);
        let before = bench.containers("web");
        edit(&bench);
        bench.write("web", ".env", &format!("TOKEN={MARKED}2\n"));
        bench.always(Call::Update, instead(200, "{\"Id\":1}"));
        let (report, _) = reported(&bench, 1);
        assert_eq!(report["outcome"], "unknown", "{report:#}");
        let differs =
            "Portainer stack 1 does not have the Compose file and the variables that were sent";
        assert_eq!(report["problems"][0], differs);
        assert_eq!(bench.containers("web"), before);
        assert!(bench.calls(Call::Delete).is_empty());
        // So does an answer of a proxy.
        bench.always(Call::Update, instead(200, "<html>Log in</html>"));
        adopt(&bench, "").fails(&[
            "the outcome of adopting web is unknown",
            "state: the outcome is unknown: Portainer may be deploying the stack, and may have recreated its containers\n",
        ]);
        bench.faults().clear();
        adopt(&bench, "").succeeds("updated web: a was down for ");
    }
}

#[test]
fn m06_containers_that_a_failed_create_removed_are_restored() {
    let bench = started(Era::Sync);
    let before = containers(&bench);
    bench.once(Call::Create, late_failure());
    let run = adopt(&bench, "--output json").code(1);
    assert_eq!(containers(&bench), before, "{run:#?}");
    let report = run.report("adopt");
    assert_eq!(report["outcome"], "restored", "{report}");
    let run = run.says(&[
        "error: Portainer could not deploy web: ",
        "\nBoth containers had been removed and were restored: a was down for ",
    ]);
    assert!(!run.err.contains("to roll back"), "{run:#?}");
    adopt(&bench, "").succeeds("adopted web");
}

#[test]
fn b20_a_deployment_that_failed_is_not_sent_again_unsaid() {
    let bench = started(Era::Sync);
    bench.once(Call::Create, late_failure());
    adopt(&bench, "").fails("could not deploy");
    let failed = "warning: the last adoption of this version failed on ";
    bench
        .run("plan web")
        .code(0)
        .says(&[failed, "Next: fix what failed, then stacklift adopt web\n"]);
    bench.run("list").says("its last adoption failed");
    let run = bench.fails("adopt --all", "error: web was not adopted");
    run.says("failed last time (name it to try again)");
    let refused = bench.asking("adopt web").output().expect("output").stderr;
    let refused = String::from_utf8_lossy(&refused);
    assert!(refused.contains("its last adoption failed"), "{refused}");
    assert_eq!(bench.calls(Call::Create).len(), 1);
    edit(&bench);
    bench.run("plan web").code(0).hides(failed);
    adopt(&bench, "").code(0);
}

/// A deployment that fails, and has removed or changed containers (M06, N06).
fn late_failure() -> FaultKind {
    FaultKind::LateFailure(Duration::ZERO)
}

#[test]
fn an_unknown_outcome_restores_nothing() {
    for era in ERAS {
        let bench = edited(era);
        bench.once(Call::Create, FaultKind::DieAfter);
        let run = adopt(&bench, "").fails(&[
            "the outcome of adopting web is unknown, so nothing was restored",
            "outcome is unknown: Portainer may be deploying the stack",
            "to roll back",
        ]);
        assert!(!run.err.contains("were restored"), "{run:#?}");
        let left = bench.containers("web");
        bench.revive().expect("alive again");
        bench.faults().clear();
        let again = adopt(&bench, "");
        assert_eq!(again.code, 0, "{again:#?}");
        assert_eq!(bench.containers("web").len(), left.len());
        assert_eq!(bench.calls(Call::Create).len(), 1);
    }
}

/// The Portainer stack keeps its text and stays active (M06).
#[test]
fn m06_an_update_without_an_answer_that_removed_every_container_is_restored() {
    let bench = started(Era::Sync);
    adopt(&bench, "").code(0);
    edit(&bench);
    let before = containers(&bench);
    let behind = FaultKind::Impatient {
        status: 504,
        body: br#"{"message":"The upstream server is timing out"}"#.to_vec(),
        after: Duration::from_millis(300),
        fails: true,
    };
    bench.once(Call::Update, behind);
    let run = adopt(&bench, "--timeout 4s").code(1);
    assert_eq!(containers(&bench), before, "{run:#?}");
    run.says(&[
        "waiting for Portainer to finish, until nothing of the stack has changed for at least 1 s",
        "\nBoth containers had been removed and were restored: a was down for ",
        "; Portainer stack 1 has the Compose file and the variables of before.\n",
    ]);
}

#[test]
fn n07_every_container_of_a_portainer_stack_in_error_is_recreated_and_the_plan_says_so() {
    let bench = started(Era::Async);
    adopt(&bench, "").code(0);
    bench.change_record(|record| record.status = Status::Error);
    let before = bench.containers("web");
    adopt(&bench, "").succeeds(&[
        "  ~  a, b  recreated: Portainer stack 1 is in error, and an update removes every container first",
        "updated web: a was down for ",
    ]);
    let after = bench.containers("web");
    assert!(before.iter().all(|id| !after.contains(id)));
}

/// Of another person, at the last moment.
#[test]
fn an_edit_in_portainer_during_the_run_is_not_overwritten() {
    let bench = started(Era::Sync);
    adopt(&bench, "").code(0);
    edit(&bench);
    bench.forget_requests();
    let theirs = json!({"StackFileContent": format!("{TEXT}# theirs\n")}).to_string();
    let edited = "Portainer stack 1 was edited after this run had read it";
    // Before the snapshot, and before the update.
    for reads in [1, 2] {
        let rule = Rule::new(Call::File, done(200, &theirs)).after(reads);
        bench.faults().add(rule);
        bench.stops("adopt web --wait 2s", edited);
        bench.faults().clear();
    }
}

/// Portainer removes the containers, too.
#[test]
fn a_stack_that_was_deleted_in_portainer_during_the_run_is_named() {
    for era in ERAS {
        let bench = started(era);
        adopt(&bench, "").code(0);
        edit(&bench);
        let before = containers(&bench);
        // The update fails, and what was there before it is gone.
        let absent = r#"{"message":"Unable to find a stack with the specified identifier inside the database","details":"Object not found inside the database"}"#;
        bench.once(Call::Update, done(404, absent));
        bench.world_with(Call::Update, |world| {
            world.records.clear();
            world.containers.clear();
        });
        let run = adopt(&bench, "").fails(&[
            "Portainer could not deploy web: Portainer stack 1 was deleted during this run",
            "\nhint: run the command again: it makes a new plan\n",
        ]);
        run.hides("--base-url");
        assert_eq!(containers(&bench), before);
    }
}

#[test]
fn an_engine_that_only_the_command_reaches_is_refused() {
    let bench = started(Era::Sync);
    let run = bench.run("adopt web --engine command").code(1);
    run.says(&["cannot adopt web", "needs the Engine API", "--engine api"]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn a_stack_that_still_deploys_is_left_alone() {
    let bench = edited(Era::Async);
    bench.world(|world| world.deploy_polls = 1_000_000);
    adopt(&bench, "--timeout 1s").fails(&[
        "the outcome of adopting web is unknown, so nothing was restored: Portainer stack 1 is still deploying after",
        "state: the stack exists as Portainer stack 1; it may still be deploying",
        "Portainer 2.41 to 2.43 can miss the end: upgrade it if the deployment never finishes",
    ]);
    let before = bench.containers("web");
    bench.world(|world| world.finish_deployment(1));
    assert_ne!(
        bench.containers("web"),
        before,
        "the deployment went its way"
    );
    adopt(&bench, "").succeeds("web is up to date");
}

#[test]
fn b08_a_question_is_asked_where_a_container_is_recreated() {
    let bench = edited(Era::Sync);
    let adopt = "adopt web --wait 2s";
    for typed in ["n\n", "\n"] {
        let run = on_terminal(&bench, adopt, typed).code(1);
        let canceled = "Canceled. Nothing was changed.\r\n";
        run.says(&["Adopt web? ", " [y/N]", canceled]);
        assert!(bench.nothing_was_changed());
        assert!(!bench.state().join("snapshots").exists(), "no snapshot");
    }
    on_terminal(&bench, adopt, "y\n").code(0);
    let bench = edited(Era::Sync);
    let run = on_terminal(&bench, "adopt web --wait 2s --yes", "").code(0);
    run.hides("[y/N]");
}

#[test]
fn b08_what_changed_before_the_answer_stops_the_adoption() {
    let change_file = |bench: &Bench| {
        bench.stack("web", TEXT, Some(&format!("TOKEN={MARKED}\n")));
    };
    let change_container = |bench: &Bench| bench.change_container("web-b-1", |one| one.exit(1, 0));
    for change in [&change_file as &dyn Fn(&Bench), &change_container] {
        let bench = edited(Era::Sync);
        let args = ["adopt", "web", "--wait", "2s"];
        on_terminal_after(&bench, &args, || change(&bench), "y\n")
            .fails(&["changed before you answered", "Nothing was changed"]);
        assert!(bench.nothing_was_changed());
    }
    // A container may write files all the time.
    let bench = edited(Era::Sync);
    write_file(&bench, "web", "/root/1");
    let writes = || write_file(&bench, "web", "/root/2");
    let adopt = ["adopt", "web", "--wait", "2s"];
    on_terminal_after(&bench, &adopt, writes, "y\n").code(0);
    write_file(&bench, "web", "/root/3");
    let writes = || write_file(&bench, "web", "/root/4");
    on_terminal_after(&bench, &["restore", "web"], writes, "y\n").code(0);
}

/// The wait ends long before `--wait`.
#[test]
fn a_container_that_keeps_restarting_is_named_with_its_cause() {
    let bench = Bench::new();
    let text = |command| format!("services:\n  b:\n    image: y:1\n    restart: always\n{command}");
    bench.started("web", &text(""), None);
    let before = containers(&bench);
    bench.run("adopt web").code(0);
    bench.stack("web", &text("    command: nope\n"), None);
    bench.world(|world| world.exits.insert("web/b".to_owned(), 127));
    // What the restore creates runs.
    bench.world_with(Call::EngineCreate, |world| world.exits.clear());
    let started = Instant::now();
    let run = bench.run("adopt web --wait 10m").code(1);
    assert!(started.elapsed() < Duration::from_mins(2));
    let down = instead_of_seconds(&run.err);
    assert_eq!(
        down,
        "error: b of web does not run: it keeps restarting (exit code 127)
Container web-b-1 had been changed and was restored: b was down for N s; Portainer stack N has the Compose file and the variables of before.
hint: fix b, then run the command again
"
    );
    assert_eq!(containers(&bench), before);
}

#[test]
fn a_new_stack_that_does_not_run_stays_failed_until_it_runs() {
    let bench = Bench::new();
    let service = "services:\n  b:\n    image: y:1\n";
    bench.stack("web", &format!("{service}    restart: always\n"), None);
    bench.world(|world| {
        world.add_image("y:1");
        world.exits = [("web/b".to_owned(), 3), ("once/b".to_owned(), 3)].into();
    });
    bench.fails(
        "adopt web",
        "\nhint: fix b, then run the command again, or delete the stack in Portainer\n",
    );
    bench.fails("adopt web", &[
        "error: web is up to date in Portainer, but does not run\n  - web-b-1 does not run: it keeps restarting (exit code 3)\nNothing was changed.\nhint: fix that, then run the command again\n",
    ]);
    let failed = "b of web does not run: it keeps restarting (exit code 3)\n";
    bench
        .run("plan web")
        .says(&["\nThe last run failed, or did not finish.\n", failed]);
    // One that has ended counts as a job.
    bench.stack("once", service, None);
    let again = "\nhint: fix b, then run the command again with --rerun-jobs, or delete the stack in Portainer\n";
    bench.fails("adopt once", again);
    bench.world(|world| world.exits.clear());
    let fixed = format!("{service}    restart: always\n    command: sleep 9\n");
    bench.stack("web", &fixed, None);
    bench.run("adopt web --yes").code(0);
    bench.succeeds("plan web", "web is up to date in Portainer\n");
}

/// `3.4 s`, and `less than 0.1 s` → `N s`
fn instead_of_seconds(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    words
        .iter()
        .map(|word| if is_number(word) { "N" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
        .replace("less than N s", "N s")
}

/// `b` depends on the health of `a`.
const HEALTHY: &str = "\
services:
  a:
    image: x:1
    healthcheck: {test: [CMD, 'true'], interval: 1s}
  b:
    image: y:1
    command: sleep 1
    depends_on: {a: {condition: service_healthy}}
";

/// Sets when the container of `a` is healthy, in milliseconds since 1970; `None` is never.
fn set_health(world: &mut World, healthy_at: Option<i64>) {
    let mut all = world.containers.values_mut();
    let a = all.find(|one| one.name == "web-a-1").expect("a container");
    a.healthy_at = healthy_at;
}

#[test]
fn a_container_that_stays_unhealthy_fails_the_adoption() {
    let bench = Bench::web(HEALTHY);
    let before = bench.containers("web");
    bench.world_with(Call::Create, |world| set_health(world, None));
    let started = Instant::now();
    let run = adopt(&bench, "--output json").code(1);
    assert!(started.elapsed() >= Duration::from_secs(2), "--wait");
    let report = run.report("adopt");
    assert_eq!(report["outcome"], "unchanged", "{report}");
    assert_eq!(report["problems"], json!(["web-a-1 is not healthy"]));
    let says =
        "error: web does not run as before\n  - web-a-1 is not healthy\nNo container was changed; ";
    run.says(says).hides("adopted web");
    assert_eq!(bench.containers("web"), before);
}

/// Its own health check says how long that takes.
#[test]
fn a_container_whose_health_check_takes_longer_than_wait_is_waited_for() {
    let text =
        "services:\n  a:\n    image: x:1\n    healthcheck: {test: [CMD, 'true'], interval: 30s}\n";
    let bench = Bench::web(text);
    bench.stack("web", &format!("{text}    init: true\n"), None);
    let slow = rehearsal::Health::After(3000);
    bench.world(|world| world.health.insert("web/a".to_owned(), slow));
    bench.succeeds("adopt web --yes --wait 1s", "adopted web");
}

#[test]
fn a_container_that_the_deployment_only_added_is_removed() {
    let bench = Bench::adopted(PLAIN);
    bench.stack(
        "web",
        &format!("{PLAIN}  b:\n    image: busybox:1.36\n"),
        None,
    );
    bench.world(|world| world.exits.insert("web/b".to_owned(), 3));
    let what = "What the deployment had added was removed, and the containers run as before";
    let run = bench.fails("adopt web --yes", what);
    run.hides("0 of 1");
}

#[test]
fn a_plan_that_was_wrong_is_told() {
    let bench = started(Era::Sync);
    // Compose recreates the container with the same settings.
    let text = TEXT.replace("y:1\n", "y:1\n    depends_on: [a]\n");
    bench.stack("web", &text, Some(&format!("TOKEN={MARKED}\n")));
    write_file(&bench, "web", "/root/report.txt");
    let before = bench.containers("web");
    // The hashes say that nothing changes.
    let args = ["adopt", "web", "--wait", "2s", "--output", "json"];
    let run = with_hashes(&bench, &args, &labeled(&bench)).code(1);
    let run = run.says("  =  a, b  keep running\n");
    let report = run.report("adopt");
    assert_eq!(report["outcome"], "plan-was-wrong", "{report}");
    run.says(&[
        "the plan said that b would not be touched, but web-b-1 was recreated, and lost the files written inside the container: /root/report.txt",
        "if you need a file named above, roll back",
        "state: the stack exists as Portainer stack 1 and is deployed; its containers run",
    ])
    .hides(&["adopted web", "were restored"]);
    let after = bench.containers("web");
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1], "it is left as it runs now");
}

#[test]
fn a_stack_that_cannot_be_verified_is_left_alone() {
    let bench = edited(Era::Sync);
    // The engine fails after its last response before the create.
    let looks = {
        let other = edited(Era::Sync);
        adopt(&other, "").code(0);
        let requests = other.requests();
        let before = requests
            .iter()
            .take_while(|request| request.call != Call::Create);
        before
            .filter(|request| request.call == Call::EngineList)
            .count()
    };
    let rule = Rule::new(Call::EngineList, refusal()).after(looks);
    bench.faults().add(rule);
    let state = "\nstate: the stack exists as Portainer stack 1 and is deployed; its containers were not verified\nhint: to roll back";
    adopt(&bench, "").fails(&[
        "error: failed to verify the containers, so nothing was restored",
        state,
    ]);
    assert!(bench.calls(Call::EngineCreate).is_empty());
}

#[test]
fn both_causes_are_told_if_the_restore_fails_too() {
    let bench = edited(Era::Sync);
    let (before, ids) = (containers(&bench), bench.containers("web"));
    // Every container of `b` exits as soon as it starts.
    bench.world(|world| world.exits.insert("web/b".to_owned(), 3));
    let run = adopt(&bench, "--output json").fails(&[
        "error: b of web does not run: it exited with code 3",
        "the restore failed: the stack differs from the snapshot",
        "\nThe containers could not be restored: web-b-1 was recreated (exited, code 3); Portainer stack 1 exists (active).\n",
        "to roll back, run: ",
    ]);
    let report = run.report("adopt");
    assert_eq!(report["outcome"], "changed", "{report}");
    assert_eq!(bench.containers("web")[0], ids[0], "it was not touched");
    bench.world(|world| world.exits.clear());
    bench.run("restore web").code(0);
    assert_eq!(containers(&bench), before);
}

#[test]
fn b28_a_link_to_a_directory_is_that_directory() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: busybox:1.36\n    command: sleep 1000\n    volumes: ['./data:/data']\n";
    let dir = bench.started("web", text, None);
    let links = tempfile::tempdir().expect("a folder");
    for name in ["web", "other"] {
        std::os::unix::fs::symlink(&dir, links.path().join(name)).expect("a link");
    }
    let root = links.path().to_str().expect("UTF-8");
    let run = |args: &[&str]| bench.run(&[args, &["--stacks-root", root]].concat());
    // Two names of one directory are one stack.
    let listed = run(&["list"]).code(0);
    assert!(!listed.out.contains("other"), "{}", listed.out);
    listed.hides("--dir");
    // The text gets the path that the containers have, and the literal rewrite the one that was given (C32).
    let shown = dir.to_str().expect("UTF-8");
    run(&["render", "web", "--as", "adopt"]).succeeds(&format!("{shown}/data:/data"));
    run(&["render", "web", "--as", "migrate"]).succeeds(&format!("{root}/web/data:/data"));
    run(&["plan", "web"]).code(0).hides("another directory");
    run(&["adopt", "web"]).code(0);
    // Portainer started nothing: the snapshot says by which path the stack was started.
    run(&["adopt", "web"]).succeeds("up to date");
}
