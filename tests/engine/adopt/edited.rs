//! B22: after an adoption, the text in Portainer is the user's.

use testbed::Status;

use super::{
    Case, by_old_portainer_first,
    scenario::{Happened, Scenario, assert_untouched, happened},
};

by_old_portainer_first! {
    b22_an_edit_in_portainer_is_overwritten_only_when_asked_to_and_restored
}

const TEXT: &str = "services:
  db:
    $SLEEP
    volumes: [data:/data]
  web:
    $SLEEP
    environment: {FROM: file}
volumes: {data: {}}
";

fn b22_an_edit_in_portainer_is_overwritten_only_when_asked_to_and_restored(case: Case) {
    let scenario = Scenario::new(case, TEXT, &[]);
    scenario.adopts(&[]);
    let ours = scenario.text_in_portainer();
    let theirs = ours.replace("FROM: file", "FROM: user");
    assert_eq!(scenario.update(&theirs), (200, Status::Active));
    let edited = scenario.containers();
    let from = || scenario.sh("web", "echo $FROM");
    assert_eq!(from(), "user");

    let name = scenario.host.project.as_str();
    let assert_refused = || {
        let before = scenario.containers();
        scenario.run("adopt $PROJECT").fails(&[
            "was edited in Portainer since the last adoption",
            &format!("stacklift export {name} --to "),
            &format!("stacklift plan {name} --overwrite"),
        ]);
        assert_untouched(&before, &scenario.containers());
        assert_eq!(scenario.text_in_portainer(), theirs);
    };
    assert_refused();

    scenario.run("adopt $PROJECT --overwrite").code(0);
    assert_eq!(scenario.text_in_portainer(), ours);
    assert_eq!(from(), "file");

    scenario.restore();
    assert_eq!(from(), "user");
    assert_refused();
    let fates = happened(&edited, &scenario.containers());
    assert_eq!(fates["db"], Happened::Untouched);
}
