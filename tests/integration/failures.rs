//! B16: after a failure, what can come back comes back. B40: a failure is remembered, a restore never deploys a text that could not be deployed, and no snapshot is passed over
//! without a word.

use std::{fs, os::unix::fs::chown, process::Command, time::Duration};

use testbed::{Call, Era, FaultKind, Status};

use crate::bench::{Bench, PLAIN, Run, id_of, refusal, set_mode};

/// [`PLAIN`] with another service, whose image disappears during the deployment.
fn with_other() -> String {
    format!("{PLAIN}  b:\n    image: other:1\n")
}

/// Adopts the stack, whose deployment fails before it changes anything (N06).
fn fails_to_deploy(bench: &Bench, call: Call) {
    bench.world(|world| {
        world.unpullable.clear();
        world.add_image("other:1");
    });
    bench.world_with(call, |world| {
        world
            .images
            .retain(|_, image| image["RepoTags"][0] != "other:1");
        world.unpullable.insert("other:1".to_owned());
    });
    bench.fails("adopt web", "pull access denied for other:1");
    bench.world(|world| {
        world.unpullable.clear();
        world.add_image("other:1");
    });
}

#[test]
fn b16_a_result_names_a_directory_that_was_moved_before_the_restore() {
    let text = format!("{PLAIN}    volumes: ['./was:/data']\n");
    let bench = Bench::web(&text);
    bench.stack("web", &text.replace("./was", "./is"), None);
    fs::rename(bench.dir("web").join("was"), bench.dir("web").join("is")).unwrap();
    bench.once(Call::Create, FaultKind::LateFailure(Duration::ZERO));
    let was = bench.dir("web").join("was").display().to_string();
    let lost = format!(
        "the restored containers have an empty directory in place of {was}, which did not exist"
    );
    let run = bench.fails("adopt web --yes --wait 2s", "restored: it was down for ");
    assert!(run.all().contains(&format!("s; {lost}")), "{}", run.all());
    bench.run("plan web").says(&*lost);
}

#[test]
fn b40_a_failure_that_changed_nothing_is_remembered() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    let before = bench.containers("web");
    bench.stack("web", &with_other(), None);
    fails_to_deploy(&bench, Call::Create);
    assert_eq!(bench.containers("web"), before, "nothing changed");
    assert_eq!(bench.first_record().status, Status::Error);
    bench.run("plan web").succeeds(&[
        "warning: the last adoption of this version failed on ",
        "The last adoption failed: the earlier containers run, but Portainer has what was sent. To undo that: stacklift restore web\n",
    ]);
    bench.succeeds("list", "failed run");
    // Now the update of the stack in error removes every container first (N07).
    fails_to_deploy(&bench, Call::Update);
    assert_eq!(bench.containers("web").len(), 1);
    bench.forget_requests();
    bench.succeeds("restore web", "1 container");
    assert!(bench.calls(Call::Create).is_empty());
    assert!(bench.calls(Call::Update).is_empty());
    assert!(bench.world(|world| world.records.is_empty()));
}

/// Also one that somebody edited in Portainer.
#[test]
fn b40_a_restore_does_not_deploy_what_could_not_be_deployed() {
    let bench = Bench::of(Era::Async);
    bench.started("web", PLAIN, None);
    bench.run("adopt web").code(0);
    let bad = format!("{PLAIN}    network_mode: service:absent\n");
    bench.change_record(|record| {
        record.text.clone_from(&bad);
        record.status = Status::Error;
    });
    bench.run("adopt web --overwrite").code(0);
    bench.forget_requests();
    let left = "Portainer is left as it is: it could not deploy the Compose file that it had then";
    bench.succeeds("restore web", &[left, "restored web"]);
    assert!(bench.calls(Call::Update).is_empty());
    bench.world(|world| world.records.clear());
    bench.succeeds("restore web", &[left, "web is as it was"]);
    assert!(bench.calls(Call::Create).is_empty());
}

#[test]
fn b40_an_unreadable_snapshot_is_named_and_nothing_older_is_taken_unasked() {
    let bench = Bench::adopted(PLAIN);
    let older = id_of(&bench.saved(".json")[0]);
    bench.write(
        "web",
        "docker-compose.yml",
        &format!("{PLAIN}    hostname: b\n"),
    );
    bench.run("adopt web").code(0);
    let newest = bench.saved(".json").pop().expect("a snapshot");
    fs::write(&newest, "{").expect("a file");
    let unreadable = format!("failed to read snapshot {}", newest.display());
    bench.forget_requests();
    bench.stops("restore web", &[&unreadable[..], "choose it with --to"]);
    for program in ["mkfifo", "mkdir"] {
        fs::remove_file(&newest).expect("removed");
        let made = Command::new(program).arg(&newest).status();
        assert!(made.expect("a program").success());
        let run = bench.stops("restore web", &[&unreadable[..], "choose it with --to"]);
        assert_eq!(run.err.matches("--list").count(), 1, "{run:?}");
    }
    fs::remove_dir(&newest).expect("removed");
    fs::write(&newest, "{").expect("a file");
    let list = bench.succeeds("restore web --list", &unreadable);
    list.says("restores none by default: add --to SNAPSHOT")
        .hides(" default\n");
    bench.succeeds("plan web", &unreadable);
    let to = format!("restore web --to {older}");
    bench.succeeds(&to, "restored web");
}

#[test]
fn b40_snapshots_of_another_engine_id_are_named_and_usable() {
    let bench = Bench::adopted(PLAIN);
    let id = id_of(&bench.saved(".json")[0]);
    bench.world(|world| {
        world.engine = "another".to_owned();
        let environments = world.endpoints.values_mut();
        environments.for_each(|one| one.engine.clone_from(&world.engine));
    });
    // Nothing to send: what was last sent is known, and no snapshot is taken.
    bench.run("adopt web").code(0);
    bench.forget_requests();
    let others = format!("  taken on an engine with another ID: {id}\n");
    let to = format!("for example: stacklift restore web --to {id}\n");
    bench.stops("restore web", &[&others, &to]).hides("delete");
    let warning = format!(
        "warning: snapshot {id} was taken on a Docker engine with another ID: check that this is the same host\n"
    );
    bench.succeeds(
        &format!("restore web --to {id}"),
        &[&warning, "restored web: 1 container"],
    );
}

#[test]
fn b40_no_snapshot_is_no_reason_to_remove_containers() {
    let bench = Bench::adopted(PLAIN);
    fs::remove_dir_all(bench.state()).expect("removed");
    bench.run("adopt web").code(0);
    bench.forget_requests();
    bench
        .stops("restore web", "error: no snapshot of web in ")
        .hides("delete");
}

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_snapshots_in_another_state_directory_are_named() {
    const USER: u32 = 65_534;
    let bench = Bench::adopted(PLAIN);
    let home = bench.home().join("own");
    let folder = home.join(".local/state/stacklift");
    let project = folder.join("snapshots/web-0123456789abcdef");
    fs::create_dir_all(&project).expect("directories");
    fs::write(project.join("20261127T120000.000Z.json"), "{}").expect("a snapshot");
    for folder in [bench.root(), bench.home()] {
        set_mode(folder, 0o1777);
    }
    chown(&folder, Some(USER), None).expect("root");
    let says = format!(
        "warning: there are snapshots of web in {}: to use them, unset STACKLIFT_STATE_DIR\n",
        folder.display()
    );
    let mut command = bench.as_user("restore web --list", USER);
    command
        .env("HOME", &home)
        .env("STACKLIFT_STATE_DIR", home.join("absent"));
    let none = "no snapshot of web in ";
    Run::of(&mut command).fails(&[&says[..], none]);
}

/// A deployment that fails, and removes every container (M06).
fn removes_all() -> FaultKind {
    FaultKind::LateFailure(Duration::ZERO)
}

const SHARES: &str = "services:
  db:
    image: x:1
    volumes: [data:/data]
  vpn:
    image: x:1
    container_name: gateway
  web:
    image: x:1
    network_mode: service:vpn
volumes:
  data:
";

/// Tools that update images replace a container under a new ID.
#[test]
fn b16_the_namespace_of_a_replaced_container_is_taken_from_its_service() {
    let bench = Bench::web(SHARES);
    bench.world(|world| {
        let old = world.container("gateway").expect("a container").id.clone();
        let mut gateway = world.containers.remove(&old).expect("a container");
        gateway.id = "f00d".repeat(16);
        world.containers.insert(gateway.id.clone(), gateway);
    });
    // The saved container itself is kept.
    bench.once(Call::Create, refusal());
    bench.fails("adopt web", "No container was changed");
    bench.forget_requests();
    bench.succeeds("restore web", "web is as it was: 3 containers match");
    assert!(bench.nothing_was_changed());
    bench.once(Call::Create, removes_all());
    bench.fails(
        "adopt web",
        "All 3 containers had been removed and were restored",
    );
    let vpn = bench.container("gateway").id;
    let web = bench.container("web-web-1");
    assert_eq!(web.host_config["NetworkMode"], format!("container:{vpn}"));
    assert_eq!(web.state, "running");
}

#[test]
fn b16_after_a_failure_what_can_come_back_comes_back() {
    let text = "services:\n  db:\n    image: x:1\n  web:\n    image: y:1\n";
    let bench = Bench::web(text);
    bench.stack("web", &text.replace("y:1", "z:1"), None);
    bench.world(|world| {
        world
            .images
            .retain(|_, image| image["RepoTags"][0] != "y:1");
        world.add_image("z:1");
    });
    bench.once(Call::Create, removes_all());
    let problem = "  1. the image of web-web-1 no longer exists: y:1";
    let ahead = "warning: if the deployment fails, the stack cannot be restored completely:\n";
    bench.succeeds("plan web", &*format!("{ahead}{problem}"));
    let later = "warning: the restore will be incomplete; what is possible is restored:\n";
    bench.fails(
        "adopt web",
        &[
            &format!("{ahead}{problem}")[..],
            &format!("{later}{problem}"),
            "could not be restored: web-db-1 was recreated, web-web-1 no longer exists",
        ],
    );
    assert_eq!(bench.container("web-db-1").state, "running");
}

#[test]
fn b16_a_directory_that_was_moved_is_named_by_the_restore_after_a_failure() {
    let text = "services:\n  old:\n    image: x:1\n    volumes: ['./was:/data']\n";
    let bench = Bench::web(text);
    let dir = bench.dir("web");
    fs::rename(dir.join("was"), dir.join("is")).expect("moved");
    bench.stack("web", &text.replace("was", "is"), None);
    bench.once(Call::Create, removes_all());
    bench.succeeds("plan web", "web-old-1 needs ");
    let run = bench.fails("adopt web", "could not deploy web");
    let lost = format!(
        "web-old-1 needs {}, which does not exist\n",
        dir.join("was").display()
    );
    assert_eq!(
        run.err.matches(&lost).count(),
        2,
        "before and after: {run:#?}"
    );
}

#[test]
fn b16_a_plan_names_the_container_that_is_gone_and_whose_namespace_another_shares() {
    let bench = Bench::web("services:\n  db:\n    image: x:1\n");
    let gone = "0123456789abcdef".repeat(4);
    bench.change_container("web-db-1", |db| {
        db.host_config["PidMode"] = format!("container:{gone}").into();
    });
    let shares =
        "web-db-1 shares a namespace or volumes with container 0123456789ab, which does not exist";
    bench.succeeds("plan web", shares);
}
