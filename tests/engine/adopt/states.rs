//! What only the engine knows of a container: why its last start failed, and the variables that no file gives it.

use super::{
    Case, by_old_portainer,
    scenario::{Scenario, assert_untouched},
};
use crate::host::{attempt, docker};

by_old_portainer! {
    b42_a_container_whose_last_start_failed
    n34_proxies_of_the_docker_configuration
}

/// Nothing is sent for a container that Docker cannot start, and Docker's own reason is named.
fn b42_a_container_whose_last_start_failed(case: Case) {
    const TEXT: &str = "services:
  web:
    $SLEEP
    labels: {changed: 'no'}
  model:
    $SLEEP
    deploy:
      resources:
        reservations:
          devices: [{driver: nvidia, count: all, capabilities: [gpu]}]
";
    let scenario = Scenario::stopped(case, TEXT, &[]);
    scenario.compose(&["create"]);
    docker(&["start", &scenario.name("web")]);
    let started = attempt(&["start", &scenario.name("model")]).unwrap();
    assert!(!started.status.success(), "this host has such a device");
    let before = scenario.containers();
    let reason = before[&scenario.name("model")]["State"]["Error"].as_str();
    let reason = reason
        .filter(|reason| !reason.is_empty())
        .expect("a reason");
    scenario.edit("changed: 'no'", "changed: 'yes'");
    scenario
        .run("adopt $PROJECT --rerun-jobs")
        .fails(&[&scenario.name("model"), reason]);
    assert_untouched(&before, &scenario.containers());
}

/// They are in no file and no hash: they are refused like those of another shell, and kept on request.
fn n34_proxies_of_the_docker_configuration(case: Case) {
    const PROXY: &str = "http://proxy.example.test:3128";
    const TEXT: &str = "services:
  app:
    $SLEEP
    volumes: [/cache]
";
    let config = format!("{{\"proxies\": {{\"default\": {{\"httpProxy\": \"{PROXY}\"}}}}}}");
    let mut scenario = Scenario::stopped(case, TEXT, &[("docker/config.json", &config)]);
    scenario.stack.compose.config = Some(scenario.dir().join("docker"));
    scenario.start();
    let before = scenario.containers();
    let env = before[&scenario.name("app")]["Config"]["Env"].to_string();
    assert!(env.contains(&format!("HTTP_PROXY={PROXY}")), "{env}");
    scenario
        .run("adopt $PROJECT")
        .fails(&["HTTP_PROXY", "not in the files", "--keep-variables"]);
    assert_untouched(&before, &scenario.containers());
    scenario.adopts_with(&["app"], "--keep-variables").stays();
}
