//! The order in which a migration reports, and `--grace`.

use std::{fs::File, process::Stdio};

use rehearsal::Call;

use crate::bench::{Bench, PLAIN, instead};

const LOSES: &str = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n";

/// The places of `words` in `text`, which must all be there.
#[track_caller]
fn places(text: &str, words: &[&str]) -> Vec<usize> {
    words
        .iter()
        .map(|word| {
            text.find(word)
                .unwrap_or_else(|| panic!("no {word:?} in {text}"))
        })
        .collect()
}

#[test]
fn losses_and_warnings_come_before_the_steps_that_they_belong_to() {
    let bench = Bench::new();
    bench.record("web", 1);
    bench.started("web", LOSES, Some("A=1\nodd\n"));
    let log = bench.root().join("log");
    let file = File::create(&log).expect("a file");
    let mut command = bench.command("web");
    command
        .stdout(Stdio::from(file.try_clone().expect("a copy")))
        .stderr(Stdio::from(file));
    assert!(command.status().expect("the binary runs").success());
    let text = std::fs::read_to_string(&log).expect("a log");
    let places = places(
        &text,
        &[
            " migrate web from",
            ".env: line 2",
            "the stack will lose:",
            " backup ",
            " snapshot ",
            " delete Portainer stack",
            " created stack web",
        ],
    );
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn grace_stops_the_containers_before_they_are_removed() {
    let bench = Bench::new();
    bench.record("web", 1);
    let text = "services:\n  a:\n    image: x\n  b:\n    image: x\n";
    bench.started("web", text, None);
    bench
        .run("web --grace 7s")
        .code(0)
        .says("stop 2 containers: web-a-1, web-b-1")
        .hides("SIGKILL");
    let stops = bench.calls(Call::EngineStop);
    assert_eq!(stops.len(), 2);
    assert!(stops.iter().all(|stop| stop.path.ends_with("/stop?t=7")));
    let requests = bench.requests();
    let last_stop = requests.iter().rposition(|r| r.call == Call::EngineStop);
    // Portainer's deletion could give them less time.
    let delete = requests.iter().position(|r| r.call == Call::Delete);
    assert!(last_stop < delete);
}

#[test]
fn a_container_that_cannot_be_stopped_ends_the_run() {
    let bench = Bench::web(PLAIN);
    let kind = instead(500, "{\"message\":\"it is busy\"}");
    bench.always(Call::EngineStop, kind);
    bench.run("web --grace 1s").code(1).says(&[
        "failed to stop the containers",
        "web-a-1",
        "it is busy",
        "1 container may have been stopped; no Portainer stack and no container was removed",
    ]);
    assert!(bench.calls(Call::EngineRemove).is_empty());
    assert!(bench.calls(Call::Create).is_empty());
}

#[test]
fn grace_needs_the_engine_api() {
    let bench = Bench::new();
    bench.stack("web", PLAIN, None);
    bench.script("docker", "");
    bench
        .run("web --engine command --grace 5")
        .code(1)
        .says("cannot stop the containers within --grace: this needs the Engine API");
    assert!(bench.nothing_was_changed());
}
