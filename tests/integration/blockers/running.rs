//! What runs besides the text, and what does not run.

use super::{adopt, adopts, exits, refuses};
use crate::bench::{Bench, PLAIN};

#[test]
fn n09_services_that_run_and_are_not_started_by_the_text() {
    let bench = Bench::new();
    let all = format!("{PLAIN}  old:\n    image: x\n  debug:\n    image: x\n");
    bench.started("web", &all, None);
    let text = format!("{PLAIN}  debug:\n    image: x\n    profiles: [debug]\n");
    bench.stack("web", &text, None);
    refuses(&bench, "web",
        &["containers of project web run that Portainer would not start, and removes when the stack is stopped or deleted\nweb-debug-1: no profile of service debug is active in Portainer\nweb-old-1: the Compose file does not define service old\nhint: add them to the Compose file, set COMPOSE_PROFILES in .env, or stop them; pass --leave-orphans to leave them as they are".to_owned()],
    );
    adopts(&bench, "web", "web --leave-orphans");
}

#[test]
fn n09_containers_that_have_stopped_do_not_prevent_anything() {
    let bench = Bench::new();
    let all = format!("{PLAIN}  old:\n    image: x\n");
    bench.started("web", &all, None);
    exits(&bench, "web-old-1", 0);
    bench.stack("web", PLAIN, None);
    adopts(&bench, "web", "web");
}

#[test]
fn n08_jobs_that_would_run_again() {
    let bench = Bench::new();
    let text = format!(
        "{PLAIN}  job:\n    image: x\n  retry:\n    image: x\n    restart: on-failure\n  kept:\n    image: x\n    restart: unless-stopped\n"
    );
    bench.started("web", &text, None);
    exits(&bench, "web-job-1", 0);
    exits(&bench, "web-retry-1", 3);
    refuses(&bench, "web",
        &["finished jobs would run again: Portainer starts every service\nweb-job-1 exited with code 0\nweb-retry-1 exited with code 3\nhint: pass --rerun-jobs to let them run again, or give their services a profile that is not active".to_owned()],
    );
    adopts(&bench, "web", "web --rerun-jobs");
}

#[test]
fn n08_a_stopped_service_is_not_started_unsaid() {
    let bench = Bench::new();
    let text = format!("{PLAIN}    restart: unless-stopped\n");
    bench.started("web", &text, None);
    exits(&bench, "web-a-1", 137);
    adopt(&bench, "web")
        .code(0)
        .says("web-a-1: is stopped and will be started");
}

#[test]
fn m05_paused_containers() {
    let bench = Bench::web(PLAIN);
    bench.world(|world| {
        let id = world.container("web-a-1").expect("web-a-1").id.clone();
        world.containers.get_mut(&id).expect("web-a-1").state = "paused".to_owned();
    });
    refuses(&bench, "web",
        &["paused containers cannot be adopted: Compose cannot start them\nweb-a-1\nhint: unpause them first: docker unpause web-a-1".to_owned()],
    );
}

#[test]
fn b20_containers_whose_removal_failed() {
    let bench = Bench::web(PLAIN);
    bench.world(|world| {
        let id = world.container("web-a-1").expect("web-a-1").id.clone();
        world.containers.get_mut(&id).expect("web-a-1").state = "dead".to_owned();
    });
    refuses(&bench, "web",
        &["containers are being removed\nweb-a-1\nhint: remove them first: docker rm --force web-a-1".to_owned()],
    );
}
