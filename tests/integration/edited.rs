//! B22: after an adoption, the text in Portainer is the user's.

use std::time::Duration;

use serde_json::Value;
use testbed::{Call, Era, FaultKind};

use crate::{
    bench::{Bench, MARKED, Run},
    interrupted::killed_at,
};

const TEXT: &str = "services:\n  a:\n    image: x:1\n    environment:\n      TOKEN: ${TOKEN}\n";
const ADOPT: &str = "adopt web --wait 2s";

/// An adopted stack.
fn adopted(era: Era) -> Bench {
    let bench = Bench::of(era);
    bench.started("web", TEXT, Some(&format!("TOKEN={MARKED}\n")));
    bench.run(ADOPT).code(0);
    bench.forget_requests();
    bench
}

/// The user edits the files.
fn edit_files(bench: &Bench, comment: &str) {
    bench.write("web", "docker-compose.yml", &format!("{TEXT}# {comment}\n"));
}

/// The entry of the stack in the list.
fn listed(bench: &Bench) -> Value {
    let report = bench.run("list --output json").code(0).report("list");
    report["stacks"][0].clone()
}

/// The state and the readiness of the stack in the list.
fn state(bench: &Bench) -> (String, String) {
    let one = listed(bench);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&one["state"]), text(&one["adopt"]["readiness"]))
}

fn adopt(bench: &Bench, more: &str) -> Run {
    bench.run(&format!("{ADOPT} {more}"))
}

#[test]
fn b22_what_a_killed_or_failed_run_sent_does_not_count_as_edited() {
    for era in [Era::Sync, Era::Async] {
        for kind in [FaultKind::Hang, FaultKind::HangAfter] {
            let bench = adopted(era);
            edit_files(&bench, "one");
            killed_at(Call::Update, &bench, ADOPT, kind.clone(), || {});
            assert_ne!(state(&bench).1, "edited", "{era:?} {kind:?}");
            edit_files(&bench, "two");
            assert_ne!(state(&bench).1, "edited", "{era:?} {kind:?}");
            adopt(&bench, "").code(0);
            assert!(bench.first_record().text.ends_with("# two\n"));
        }
        // N15: the old text, and the new variables.
        let bench = adopted(era);
        bench.write("web", ".env", &format!("TOKEN={MARKED}\nMORE=1\n"));
        edit_files(&bench, "one");
        bench.once(Call::Update, FaultKind::LateFailure(Duration::ZERO));
        adopt(&bench, "").code(1);
        edit_files(&bench, "two");
        adopt(&bench, "").code(0);
        assert!(bench.first_record().text.ends_with("# two\n"));
    }
}

#[test]
fn b22_a_variable_that_an_adoption_kept_is_not_dropped_by_the_next_one() {
    for is_killed in [false, true] {
        let text = "services:\n  a:\n    image: x:1\n    volumes: [/cache]\n    environment: [B]\n";
        let bench = Bench::web(text);
        bench.change_container("web-a-1", |one| {
            let variables = one.config["Env"].as_array_mut();
            variables.expect("a list").push("B=other-shell".into());
        });
        let first = format!("{ADOPT} --yes --keep-variables");
        if is_killed {
            killed_at(Call::Create, &bench, &first, FaultKind::HangAfter, || {});
            // It ends the wait for the request of the killed run.
            bench.run(&format!("{ADOPT} --yes"));
        } else {
            bench.run(&first).code(0);
        }
        bench.forget_requests();
        bench.run("plan web").says("web is up to date in Portainer");
        bench.succeeds("list", "up to date");
        adopt(&bench, "").succeeds("up to date");
        assert!(bench.nothing_was_changed());
        // The files give it another value since.
        bench.stack("web", &text.replace("[B]", "[B=mine]"), None);
        let needed =
            "a does not run with the variables of its files: B has another value in the files";
        bench.fails("plan web", needed);
        bench.stops(&format!("{ADOPT} --yes"), needed);
        bench.succeeds(&format!("{ADOPT} --keep-variables"), "up to date");
        bench.run("plan web").says("web is up to date in Portainer");
        assert!(bench.nothing_was_changed());
    }
}
