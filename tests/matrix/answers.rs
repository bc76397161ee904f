//! Each request of a restore × each response of another program than Portainer (B35).

use std::time::Duration;

use testbed::{Call, Era, FaultKind, World};

use crate::{
    bench::Bench,
    faults,
    judge::{after_all, others},
    stage::{Scene, Start, Way, try_every, with_data, world},
};

#[derive(Debug)]
struct Answered {
    era: Era,
    call: Call,
    kind: FaultKind,
}

fn cases() -> Vec<Answered> {
    let mut all = Vec::new();
    for era in [Era::Sync, Era::Library, Era::Async] {
        for call in [Call::Delete, Call::Update, Call::Create] {
            let kinds = faults::others().into_iter();
            all.extend(kinds.map(|kind| Answered { era, call, kind }));
        }
    }
    all
}

/// A stack whose restore sends the request, and what it restores.
fn prepared(era: Era, call: Call) -> (Bench, World) {
    let scene = match call {
        Call::Delete => Scene::ByHand,
        _ => Scene::Recorded,
    };
    let way = Way::Adopt;
    let start = Start { way, era, scene };
    let bench = start.bench();
    let before = world(&bench);
    bench.run(start.arguments()).code(0);
    if call == Call::Create {
        // Somebody deleted it.
        let id = bench.rehearsal.world(|world| {
            let record = world.records.values().find(|record| record.name == "web");
            record.expect("a record").id
        });
        bench.delete_in_portainer(id);
    }
    bench.rehearsal.forget_requests();
    (bench, before)
}

impl Answered {
    fn attempt(&self) -> Vec<String> {
        let (bench, wanted) = prepared(self.era, self.call);
        let before = world(&bench);
        bench.once(self.call, self.kind.clone());
        let run = bench.run("restore web --yes --timeout 8s");
        let mut wrong = others(&before, &world(&bench));
        let sent = bench.calls(self.call).len();
        if sent != 1 {
            wrong.push(format!("sent {sent} times"));
        }
        if !bench.saved(".request").is_empty() {
            wrong.push("a request is unsettled".to_owned());
        }
        wrong.extend(after_all(&bench, &before, &run));
        let is_restored = || with_data(&world(&bench)) == with_data(&wanted);
        if run.code == 0 && !is_restored() {
            wrong.push("exit 0, but it is not restored".to_owned());
        }
        let fails = matches!(self.kind, FaultKind::Impatient { fails: true, .. });
        if run.code != 0 && !fails {
            wrong.push("Portainer did it, but the restore did not succeed".to_owned());
        }
        let again = bench.run("restore web --yes --timeout 8s");
        for _ in 0..2 {
            if again.code != 0 || !is_restored() {
                wrong.push(format!("another restore does not end it: {again:#?}"));
            }
            bench.rehearsal.skip(Duration::from_mins(1));
        }
        if !wrong.is_empty() {
            wrong.push(format!("{run:#?}"));
        }
        wrong
    }
}

#[test]
#[ignore = "takes minutes: run scripts/test"]
fn b35_a_restore_whose_requests_another_program_answers() {
    try_every(1, cases(), |_, case| case.attempt());
}
