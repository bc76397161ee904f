//! What only the engine knows of a container: why its last start failed, and the variables that no file gives it.

use super::cases;
use crate::bench::{Case, Stack};

cases! { [by_old]
    b42_a_container_whose_last_start_failed
    n34_proxies_of_the_docker_configuration
}

/// Nothing is sent for a container that Docker cannot start, and Docker's own reason is named.
fn b42_a_container_whose_last_start_failed(case: Case) {
    let text = "services:
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
    let stack = Stack::by(case).stopped(text, &[]);
    stack.compose(&["create"]);
    stack.docker("start $PROJECT-web-1");
    let started = stack.lines("start $PROJECT-model-1");
    assert!(started.is_empty(), "this host has such a device");
    let before = stack.containers();
    let reason = before["model"]["State"]["Error"].as_str().unwrap();
    assert!(!reason.is_empty());
    stack.edit("changed: 'no'", "changed: 'yes'");
    let run = stack.run("adopt $PROJECT --rerun-jobs");
    run.fails(&["$PROJECT-model-1", reason]);
    before.assert_untouched(&stack.containers());
}

/// They are in no file and no hash: they are refused like those of another shell, and kept on request.
fn n34_proxies_of_the_docker_configuration(case: Case) {
    let text = "services:
  app:
    $SLEEP
    volumes: [/cache]
";
    let config = r#"{"proxies": {"default": {"httpProxy": "http://proxy.example.test:3128"}}}"#;
    let stack = Stack::by(case).stopped(text, &[("docker/config.json", config)]);
    let (dir, project) = (stack.dir(), &stack.host.project);
    let mut up = case.origin.command(&dir, project, &["up", "-d"]);
    let up = up.env("DOCKER_CONFIG", dir.join("docker")).status();
    assert!(up.unwrap().success());
    stack.write_data();
    let before = stack.containers();
    let env = before["app"]["Config"]["Env"].to_string();
    assert!(
        env.contains("HTTP_PROXY=http://proxy.example.test:3128"),
        "{env}"
    );
    let run = stack.run("adopt $PROJECT");
    run.fails(&["HTTP_PROXY", "not in the files", "--keep-variables"]);
    before.assert_untouched(&stack.containers());
    stack.adopts_with(&["app"], "--keep-variables").stays();
}
