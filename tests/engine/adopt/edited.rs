//! B22: after an adoption, the text in Portainer is the user's.

use super::cases;
use crate::{
    bench::{Case, Stack},
    state::Happened,
};

cases! { [by_old by_newer_too]
    b22_an_edit_in_portainer_is_overwritten_only_when_asked_to_and_restored
}

fn b22_an_edit_in_portainer_is_overwritten_only_when_asked_to_and_restored(case: Case) {
    let text = "services:
  db:
    $SLEEP
    volumes: [data:/data]
  web:
    $SLEEP
    environment: {FROM: file}
volumes: {data: {}}
";
    let stack = Stack::by(case).running(text, &[]);
    stack.adopts(&[]);
    let ours = stack.text_in_portainer();
    let theirs = ours.replace("FROM: file", "FROM: user");
    stack.update(&theirs);
    let edited = stack.containers();
    let from = || stack.sh("web", "echo $FROM");
    assert_eq!(from(), "user");

    let assert_refused = || {
        let before = stack.containers();
        stack.run("adopt $PROJECT").fails(&[
            "was edited in Portainer since the last adoption",
            "stacklift export $PROJECT --to ",
            "stacklift plan $PROJECT --overwrite",
        ]);
        before.assert_untouched(&stack.containers());
        assert_eq!(stack.text_in_portainer(), theirs);
    };
    assert_refused();

    stack.run("adopt $PROJECT --overwrite").code(0);
    assert_eq!(stack.text_in_portainer(), ours);
    assert_eq!(from(), "file");

    stack.restore();
    assert_eq!(from(), "user");
    assert_refused();
    let happened = edited.happened(&stack.containers());
    assert_eq!(happened["db"], Happened::Untouched);
}
