//! Responses of other programs in place of Portainer: they end no request (B35). The matrix tries every call with each.

use std::time::Duration;

use testbed::{Call, Era, FaultKind, Rule, World};

use crate::bench::{Bench, PLAIN, instead, refusal};

const PAGE: &str = "<html>\n<title>504 Gateway Time-out</title></html>";
const TIMED_OUT: &str = r#"{"message":"The upstream server is timing out"}"#;
/// A gateway that times out while Portainer works on the request.
fn impatient(after: Duration, fails: bool) -> FaultKind {
    FaultKind::Impatient {
        status: 504,
        body: TIMED_OUT.into(),
        after,
        fails,
    }
}

/// The adoption of an edited stack recreates the container.
fn edited(era: Era) -> Bench {
    let bench = Bench::web_of(era, PLAIN);
    bench.write(
        "web",
        "docker-compose.yml",
        &format!("{PLAIN}    init: true\n"),
    );
    bench
}

#[test]
fn b35_the_journal_keeps_a_request_until_it_is_settled() {
    for (call, args) in [
        (Call::Create, "web"),
        (Call::Create, "adopt web --yes"),
        (Call::Delete, "web"),
        (Call::Update, "adopt web --yes --overwrite"),
        (Call::Delete, "restore web --yes"),
    ] {
        let bench = edited(Era::Sync);
        bench.world(World::add_portainer);
        if call != Call::Create {
            bench.run("web").code(0);
            bench.write("web", "docker-compose.yml", PLAIN);
        }
        bench.forget_requests();
        bench.once(call, impatient(Duration::from_hours(1), false));
        let run = bench.fails(&format!("{args} --timeout 1s"), "is still unknown after");
        let run = run.says(&["; no response yet to ", "Compose is running in container"]);
        run.hides("Nothing was changed");
        assert_eq!(bench.saved(".request").len(), 1, "{args}");
        assert_eq!(bench.calls(call).len(), 1, "{args}");
        bench.end_work_in(Duration::ZERO);
        bench.run("restore web --yes").code(0);
        assert!(bench.saved(".request").is_empty(), "{args}");
    }
}

/// B11: Portainer restarts while it deploys.
#[test]
fn b11_a_portainer_that_restarts_is_asked_until_it_responds() {
    for (era, lost) in [
        (Era::Sync, FaultKind::CloseAfter),
        // Portainer has accepted it, and is asked for its end.
        (Era::Async, FaultKind::SlowDrip),
    ] {
        let lists = |bench: &Bench| {
            let requests = bench.requests();
            let sent = requests.iter().position(|one| one.call == Call::Create);
            let before = &requests[..sent.expect("a create")];
            before.iter().filter(|one| one.call == Call::List).count()
        };
        let bench = Bench::web_of(era, PLAIN);
        bench.run("adopt web").code(0);
        let before = lists(&bench);
        let bench = Bench::web_of(era, PLAIN);
        bench.once(Call::Create, lost);
        for (call, after) in [(Call::List, before), (Call::Get, 0)] {
            let rule = Rule::new(call, FaultKind::CloseBefore).after(after);
            bench.faults().add(rule.times(2));
            bench.once(call, instead(502, PAGE));
            bench.once(call, refusal());
        }
        bench.succeeds("adopt web --yes --timeout 20s", "adopted web");
    }
}
