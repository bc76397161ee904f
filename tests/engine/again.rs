//! Restores a stack when some of its containers exist already.

use super::bench::Stack;

const THREE: &str = r#"services:
  db:
    $OWN_SLEEP
    volumes: [/anonymous]
    healthcheck: {test: [CMD, /bin/true], interval: 1s}
  web:
    $SLEEP
    depends_on: {db: {condition: service_healthy}}
    environment: {NAME: value}
    tmpfs: [/scratch]
    ports: ["127.0.0.1:$PORT:80"]
  cron:
    $SLEEP
    network_mode: none
"#;

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn what_matches_stays_and_what_only_stopped_is_started() {
    let stack = Stack::new().running(THREE, &[]);
    let before = stack.state();
    stack.save();
    stack.restore().says("3 containers match the snapshot");
    before.containers.assert_untouched(&stack.containers());

    stack.migrate();
    stack.restore();
    let (once, networks) = (stack.containers(), stack.networks());
    stack.restore().says(&[
        "  3 containers match the snapshot\n",
        "is as it was: 3 containers match the snapshot; for an earlier state, run `",
    ]);
    stack.assert_has_objects(&before);
    // The same containers and networks by ID, and none was restarted.
    once.assert_untouched(&stack.containers());
    assert_eq!(networks[0]["Id"], stack.networks()[0]["Id"]);

    stack.docker("stop -t1 $PROJECT-db-1");
    stack.docker("rm -f $PROJECT-web-1");
    stack.docker("kill $PROJECT-cron-1");
    stack
        .restore()
        .says("  web is created; cron and db are started\n")
        .hides(&["\n  2 containers match", "removed"]);
    let after = stack.assert_has_objects(&before).containers;
    for service in ["db", "cron"] {
        assert_eq!(once[service]["Id"], after[service]["Id"], "{service}");
    }
}

#[test]
#[ignore = "needs a container engine: run scripts/test"]
fn containers_that_replaced_others_or_are_new_are_removed() {
    let stack = Stack::new().running(THREE, &[]);
    let before = stack.state();
    stack.migrate();
    stack.remove_networks();
    // Another image, other settings and a new service.
    for options in [
        "db-1 --network=none",
        "cron-1 --cpus=0.5",
        "new-1 -v=/anonymous",
    ] {
        let label = "--label=com.docker.compose.project=$PROJECT";
        stack.sleep(&format!("{label} --name $PROJECT-{options}"));
    }
    let new = stack.containers().0["$PROJECT-new-1"]["Mounts"][0]["Name"].clone();

    stack.restore().says(" removed and recreated");

    stack.assert_is(&before);
    // Volumes are never removed.
    stack.docker(&format!("volume inspect {new}"));
}
