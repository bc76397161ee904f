//! A stack whose Portainer is gone: its file is in the data of that Portainer, and another Portainer adopts it.

use std::fs;

use testbed::Status;

use super::{Case, by_old_portainer_first, scenario::Scenario};

by_old_portainer_first! { keeps_what_a_portainer_that_is_gone_started }

/// The name of the second service keeps other tests apart, whose Portainer is on the same engine.
const TEXT: &str = "services:
  db:
    $SLEEP
    volumes: [data:/data]
    stop_grace_period: 1s
  $PROJECT:
    $SLEEP
    environment: {FROM: \"${FROM}\"}
    stop_grace_period: 1s
volumes: {data: {}}
";

fn keeps_what_a_portainer_that_is_gone_started(case: Case) {
    let scenario = Scenario::new(case, TEXT, &[(".env", "FROM=hand\n")]);
    let (stack, project) = (&scenario.stack, scenario.host.project.as_str());
    scenario.adopts(&[]);
    // Afterwards, Portainer has started the second service, and kept `db`.
    let edited = scenario
        .text_in_portainer()
        .replace("${FROM}", "${FROM} # b");
    assert_eq!(scenario.update(&edited), (200, Status::Active));
    stack.rehearsal.world(|world| world.records.clear());
    fs::remove_dir_all(stack.dir()).expect("the directory");
    let export = format!("stacklift export {project} --to ");
    let listed = stack.run("list");
    listed.succeeds(&["not in this Portainer", &export, " --from portainer-data\n"]);

    let to = stack.state().with_file_name("written");
    let to = to.to_str().expect("UTF-8");
    let run = stack.run(&format!("export $PROJECT --from portainer-data --to {to}"));
    run.succeeds("compose.yaml and .env, 1 variable");
    let ids = stack.ids();
    let adopted = stack.run(&format!("adopt $PROJECT --dir {to}"));
    adopted.succeeds(&format!("adopted {project}: 2 containers kept running"));
    assert_eq!(stack.ids(), ids);
}
