//! What runs besides the text, and what does not run.

use testbed::{Call, Era};

use super::{adopt, adopts, exits, refuses};
use crate::bench::{Bench, PLAIN, Run, instead};

#[test]
fn n09_services_that_run_and_are_not_started_by_the_text() {
    let all = format!("{PLAIN}  old:\n    image: x\n  debug:\n    image: x\n");
    let bench = Bench::web(&all);
    let text = format!("{PLAIN}  debug:\n    image: x\n    profiles: [debug]\n");
    bench.stack("web", &text, None);
    let why = "Portainer would not start these containers, but would remove them with the stack\nweb-debug-1: no profile of service debug is active in Portainer\nweb-old-1: the Compose file does not define service old\nadd them to the Compose file, set COMPOSE_PROFILES in .env, or stop them; pass --leave-orphans to leave them as they are";
    refuses(&bench, "web", why);
    adopts(&bench, "web", "web --leave-orphans");
}

#[test]
fn n09_a_service_that_was_removed_from_the_file() {
    let bench = Bench::web(&format!("{PLAIN}  old:\n    image: x\n"));
    bench.stack("web", PLAIN, None);
    let why = "Portainer would not start these containers, but would remove them with the stack\nweb-old-1: the Compose file does not define service old\nadd them to the Compose file, or remove them: docker rm --force web-old-1; pass --leave-orphans to leave them as they are";
    refuses(&bench, "web", why);
}

#[test]
fn n14_orphans_that_portainer_would_remove() {
    let bench = Bench::of(Era::Async);
    let all = format!("{PLAIN}  old:\n    image: x\n");
    bench.started("web", &all, Some("COMPOSE_REMOVE_ORPHANS=true\n"));
    bench.write("web", "docker-compose.yml", PLAIN);
    for flag in ["", " --leave-orphans"] {
        let why = "Portainer would remove containers that the Compose file does not define, because .env sets COMPOSE_REMOVE_ORPHANS\nweb-old-1\nremove COMPOSE_REMOVE_ORPHANS from .env, or add these services to the Compose file";
        refuses(&bench, &format!("web{flag}"), why);
    }
    let plan = bench.run("plan web --output json").json();
    assert_eq!(plan["adopt"]["services"][1]["service"], "old");
    assert_eq!(plan["adopt"]["services"][1]["fate"]["kind"], "removed");
    bench.write("web", ".env", "");
    adopts(&bench, "web", "web --leave-orphans");
}

/// Compose reads `d:/d` as a path of a Windows drive.
#[test]
fn a_mount_that_only_docker_rejects_is_not_said_to_be_rejected_by_compose() {
    let bench = Bench::web(PLAIN);
    bench.stack("web", &format!("{PLAIN}    volumes: ['d:/d']\n"), None);
    let why = "Docker would reject mounts of the file that is sent\na: Docker rejects the mount at d:/d, which is not an absolute path\ncorrect them: Compose accepts them, and fails when it creates the container";
    refuses(&bench, "web", why);
}

#[test]
fn n14_variables_that_compose_rejects() {
    let bench = Bench::web(PLAIN);
    bench.write("web", ".env", "COMPOSE_PARALLEL_LIMIT=many\n");
    let both =
        ".env sets both COMPOSE_REMOVE_ORPHANS and COMPOSE_IGNORE_ORPHANS: Compose rejects that\n";
    let what = "Compose would reject the file that is sent\n";
    let limit =
        "docker-compose 2.26.1: COMPOSE_PARALLEL_LIMIT must be an integer (found: \"many\")\n";
    let hint = "fix these lines: `docker compose config` must accept the file";
    refuses(&bench, "web", format!("{what}{limit}{hint}").as_str());
    bench.stops(
        "web",
        &[
            "refusing to migrate",
            "would reject the file that is sent",
            limit,
        ],
    );
    let env = "COMPOSE_REMOVE_ORPHANS=1\nCOMPOSE_IGNORE_ORPHANS=1\n";
    bench.write("web", ".env", env);
    refuses(
        &bench,
        "web",
        format!("{both}remove one of them from .env").as_str(),
    );
    bench.stops("web", &["refusing to migrate", both]);
    let env = "COMPOSE_PARALLEL_LIMIT=4\nCOMPOSE_REMOVE_ORPHANS=1\n";
    bench.write("web", ".env", env);
    adopts(&bench, "web", "web");
}

#[test]
fn n14_a_version_that_ignores_the_profiles() {
    let text = format!("{PLAIN}    profiles: [p]\n  b:\n    image: x\n");
    let bench = Bench::with_env(&text, "COMPOSE_PROFILES=p\n");
    bench.always(Call::Status, instead(200, r#"{"Version":"2.24.0"}"#));
    let what = "this version of Portainer ignores COMPOSE_PROFILES, and would not start a";
    let why = format!("{what}\nupgrade Portainer, or remove `profiles` from these services");
    refuses(&bench, "web", &why);
    bench.succeeds("web", &["the stack will lose:", what]);
}

#[test]
fn n09_containers_that_have_stopped_do_not_prevent_anything() {
    let all = format!("{PLAIN}  old:\n    image: x\n");
    let bench = Bench::web(&all);
    exits(&bench, "web-old-1", 0);
    bench.stack("web", PLAIN, None);
    adopts(&bench, "web", "web");
}

#[test]
fn n08_jobs_that_would_run_again() {
    let text = format!(
        "{PLAIN}  job:\n    image: x\n  retry:\n    image: x\n    restart: on-failure\n  kept:\n    image: x\n    restart: unless-stopped\n"
    );
    let bench = Bench::web(&text);
    exits(&bench, "web-job-1", 0);
    exits(&bench, "web-retry-1", 3);
    let why = "stopped services would be started: Portainer starts every service\nweb-job-1 exited with code 0\nweb-retry-1 exited with code 3\npass --rerun-jobs to start them, or give them a profile that is not active";
    refuses(&bench, "web", why);
    bench.succeeds("list", "blocked: job and retry would be started\n");
    adopts(&bench, "web", "web --rerun-jobs --wait 2s");
}

#[test]
fn n08_a_stopped_service_is_not_started_unsaid() {
    let text = format!("{PLAIN}    restart: unless-stopped\n");
    let bench = Bench::web(&text);
    exits(&bench, "web-a-1", 137);
    Run::of(&mut bench.asking("adopt web")).fails("without confirmation: Portainer starts a\n");
    adopt(&bench, "web").succeeds("  +  a  is stopped and will be started\n");
}

#[test]
fn b42_a_container_that_somebody_stopped_is_not_started_unasked() {
    for policy in ["no", "on-failure", "always", "unless-stopped"] {
        let text = format!("{PLAIN}  b:\n    image: x\n    restart: {policy}\n");
        let bench = Bench::web(&text);
        exits(&bench, "web-b-1", 0);
        let what = if policy.starts_with(['a', 'u']) {
            "stopped services would be started"
        } else {
            "finished jobs would run again"
        };
        let why = format!(
            "{what}: Portainer starts every service\nweb-b-1 exited with code 0\npass --rerun-jobs to start them, or give them a profile that is not active"
        );
        refuses(&bench, "web", &why);
        adopts(&bench, "web", "web --rerun-jobs");
    }
}

#[test]
fn b42_a_container_whose_last_start_failed_is_not_sent() {
    let text = format!("{PLAIN}  model:\n    image: x\n");
    let bench = Bench::web(&text);
    let error = "could not select device driver \"nvidia\" with capabilities: [[gpu]]";
    bench.change_container("web-model-1", |one| {
        one.state = "created".to_owned();
        error.clone_into(&mut one.error);
    });
    let why = format!(
        "Docker could not start these containers the last time, and the deployment would fail in the same way\nweb-model-1: {error}\nfix the reason, then start them: docker start web-model-1"
    );
    for flag in ["", " --rerun-jobs"] {
        refuses(&bench, &format!("web{flag}"), &why);
    }
    bench.succeeds("list", "blocked: last start failed\n");
    let doubt =
        format!("the deployment may fail: web-model-1 failed to start the last time: {error}");
    bench.succeeds("migrate web --dry-run", &doubt);
}

#[test]
fn n08_a_stack_that_is_stopped_as_a_whole_is_no_finished_job() {
    let text = format!("{PLAIN}  b:\n    image: x\n");
    let bench = Bench::web(&text);
    exits(&bench, "web-a-1", 137);
    exits(&bench, "web-b-1", 0);
    let plan = bench.succeeds("plan web", "Next: stacklift adopt web\n");
    plan.hides("finished jobs");
    Run::of(&mut bench.asking("adopt web"))
        .fails("without confirmation: Portainer starts a and b\n");
    assert!(bench.nothing_was_changed());
    let run = adopt(&bench, "web").succeeds("adopted web: a and b were started\n");
    assert_eq!(run.err, "");
    // What does not run then is named.
    let bench = Bench::web(PLAIN);
    exits(&bench, "web-a-1", 137);
    bench.world(|world| world.exits.insert("web/a".to_owned(), 1));
    adopt(&bench, "web").succeeds("warning: web-a-1 does not run: it exited with code 1\n");
    // The deployment starts what another service waits for.
    let text = "services:\n  app:\n    image: x\n    depends_on:\n      db: {condition: service_healthy}\n  db:\n    image: x\n    healthcheck: {test: 'true'}\n";
    let bench = Bench::web(text);
    exits(&bench, "web-app-1", 143);
    exits(&bench, "web-db-1", 0);
    bench.succeeds("plan web", "Next: stacklift adopt web\n");
    // A job that another service waits for is one.
    let text = "services:\n  job:\n    image: x\n  app:\n    image: x\n    depends_on:\n      job: {condition: service_completed_successfully}\n";
    let bench = Bench::web(text);
    exits(&bench, "web-job-1", 0);
    exits(&bench, "web-app-1", 143);
    let why = "finished jobs would run again: Portainer starts every service\nweb-job-1 exited with code 0\npass --rerun-jobs to start them";
    refuses(&bench, "web", why);
}

#[test]
fn m05_containers_that_compose_cannot_start() {
    let paused = "paused containers cannot be adopted: Compose cannot start them\nweb-a-1\nunpause them first: docker unpause web-a-1";
    let dead =
        "containers are being removed\nweb-a-1\nremove them first: docker rm --force web-a-1";
    for (state, why) in [("paused", paused), ("dead", dead)] {
        let bench = Bench::web(PLAIN);
        bench.change_container("web-a-1", |one| state.clone_into(&mut one.state));
        refuses(&bench, "web", why);
    }
}

#[test]
fn b20_a_file_that_starts_no_service() {
    let bench = Bench::on_disk("services: {}\n");
    let why = "docker-compose.yml starts no service\nadd a service, or set COMPOSE_PROFILES in .env if each has a profile";
    refuses(&bench, "web", why);
    bench.stack("web", &format!("{PLAIN}    profiles: [p]\n"), None);
    refuses(&bench, "web", why);
}

#[test]
fn a_container_that_was_paused_since_the_adoption() {
    let bench = Bench::adopted(PLAIN);
    bench.change_container("web-a-1", |one| "paused".clone_into(&mut one.state));
    let run = bench.succeeds("plan web", "web is up to date in Portainer\n");
    run.says("web-a-1 stays paused: to continue it, run: docker unpause web-a-1");
}
