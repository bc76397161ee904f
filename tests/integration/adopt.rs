//! `stacklift adopt`, over the embedded Portainer and engine.

use serde_json::json;
use testbed::{Call, Era, Rule};

use crate::{
    bench::{Bench, MARKED, Run, instead, refusal},
    confirming::{on_terminal, on_terminal_after},
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
    let remove_image = |bench: &Bench| {
        bench.world(|world| {
            world
                .images
                .retain(|_, image| image["RepoTags"][0] != "y:1");
        });
    };
    for (change, changed) in [
        (&change_file as &dyn Fn(&Bench), "error: the files"),
        (&change_container, "error: the containers"),
        (&remove_image, "error: the plan"),
    ] {
        let bench = edited(Era::Sync);
        let args = ["adopt", "web", "--wait", "2s"];
        on_terminal_after(&bench, &args, || change(&bench), "y\n").fails(&[
            changed,
            " changed before you answered",
            "Nothing was changed",
        ]);
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
