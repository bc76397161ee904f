//! Responses of other programs in place of Portainer: they end no request (B35). The matrix tries every call with each.

use std::time::Duration;

use testbed::{Call, Era, FaultKind, Rule, World};

use crate::bench::{Bench, PLAIN, done, instead, refusal};

const PAGE: &str = "<html>\n<title>504 Gateway Time-out</title></html>";
const TIMED_OUT: &str = r#"{"message":"The upstream server is timing out"}"#;
const OTHER: &str = "something other than Portainer responded with status";
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
fn b35_a_read_in_another_form_names_the_other_program_and_never_the_key() {
    let reads = [
        Call::List,
        Call::Me,
        Call::Info,
        Call::Get,
        Call::File,
        Call::Endpoints,
        Call::Users,
        Call::Containers,
        Call::Status,
    ];
    let commands = [
        "web --force",
        "plan web --endpoint auto",
        "adopt web --access user:admin --yes",
        "list",
        "doctor",
        "export web --to exported",
        "restore web --yes",
    ];
    for call in reads {
        for (status, body, says) in [
            (401, PAGE, " 401 (Server: gateway/1.0): <html>"),
            (
                403,
                r#"{"message":"Forbidden by policy"}"#,
                " 403: Forbidden by policy",
            ),
            (404, PAGE, " 404 (Server: gateway/1.0): <html>"),
            (
                302,
                PAGE,
                " 302, a redirect to /login (Server: gateway/1.0): <html>",
            ),
            (200, PAGE, " 200 (Server: gateway/1.0): <html>"),
        ] {
            let bench = Bench::web(PLAIN);
            bench.run("web").code(0);
            bench.always(call, instead(status, body));
            let mut is_named = false;
            for command in commands {
                let run = bench.run(command);
                let run = run.hides(&[
                    "rejected",
                    "another API key",
                    "the API key is not allowed",
                    "lacks the permission",
                    "an administrator's API key",
                ]);
                is_named |= run.all().contains(&format!("{OTHER}{says}"));
            }
            assert!(is_named, "{call:?} {status}");
        }
    }
}

#[test]
fn b35_a_delete_that_no_portainer_confirmed_is_never_nothing() {
    let page = |status| instead(status, PAGE);
    for kind in [
        impatient(Duration::from_millis(500), false),
        impatient(Duration::from_hours(1), false),
        FaultKind::Repeated,
        done(404, PAGE),
        page(404),
        page(409),
        page(302),
        page(200),
    ] {
        let bench = Bench::web(PLAIN);
        bench.run("web").code(0);
        bench.forget_requests();
        bench.once(Call::Delete, kind.clone());
        let run = bench.run("web");
        assert_eq!(bench.calls(Call::Delete).len(), 1, "{kind:?}");
        if kind == FaultKind::Repeated {
            // The list shows that it is gone.
            run.code(0);
            continue;
        }
        let run = run.fails(OTHER).hides("Nothing was changed");
        assert!(bench.calls(Call::Create).is_empty(), "{kind:?}");
        bench.rehearsal.skip(Duration::from_hours(2));
        run.says("hint: to roll back, run: ");
        bench.run("restore web --yes").code(0);
        assert_eq!(bench.containers("web").len(), 1, "{kind:?}");
    }
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
