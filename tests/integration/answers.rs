//! Responses of other programs in place of Portainer: they end no request (B35). The matrix tries every call with each.

use std::time::Duration;

use testbed::{Call, Era, FaultKind, Rule, World};

use crate::bench::{Bench, PLAIN, done, instead, refusal};

const PAGE: &str = "<html>\n<title>504 Gateway Time-out</title></html>";
const TIMED_OUT: &str = r#"{"message":"The upstream server is timing out"}"#;
const OTHER: &str = "something other than Portainer responded with status";
const ERAS: [Era; 3] = [Era::Sync, Era::Library, Era::Async];

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
fn b35_an_adoption_behind_an_impatient_gateway_is_awaited() {
    for era in ERAS {
        for repeated in [false, true] {
            let bench = edited(era);
            bench.once(
                Call::Create,
                if repeated {
                    FaultKind::Repeated
                } else {
                    impatient(Duration::from_millis(300), false)
                },
            );
            let awaited = "this run was creating the Portainer stack web, and the outcome is unknown; waiting for Portainer to finish";
            bench.succeeds(
                "adopt web --wait 2s --yes",
                &[awaited, "adopted web: a was down"],
            );
            assert_eq!(bench.calls(Call::Create).len(), 1, "sent once");
            assert!(bench.saved(".request").is_empty());
        }
    }
}

#[test]
fn b35_nothing_is_restored_beside_portainers_own_deployment() {
    for era in ERAS {
        let bench = edited(era);
        let before = bench.container("web-a-1").config["Env"].clone();
        bench.once(Call::Create, impatient(Duration::from_millis(300), true));
        let run = bench
            .fails("adopt web --wait 2s --yes", "was restored")
            .hides("is unknown, so");
        assert_eq!(
            bench.container("web-a-1").config["Env"].clone(),
            before,
            "{run:?}"
        );
        assert!(!bench.is_busy());
        bench.rehearsal.skip(Duration::from_mins(1));
        assert_eq!(bench.containers("web").len(), 1);
    }
}

/// Portainer has the text before, too: that shows no update.
#[test]
fn b35_an_update_with_the_same_text_is_not_called_deployed_before_it_is() {
    let bench = Bench::adopted(PLAIN);
    bench.change_container("web-a-1", |one| one.exit(3, 0));
    let late = impatient(Duration::from_hours(1), false);
    bench.once(Call::Update, late);
    let unknown = "the outcome of adopting web is unknown, so nothing was restored";
    bench.fails(
        "adopt web --rerun-jobs --wait 1s --yes",
        &[unknown, "to roll back"],
    );
    assert_eq!(bench.calls(Call::Update).len(), 1);
}

#[test]
fn b35_a_migration_behind_an_impatient_gateway_says_what_became_of_the_stack() {
    for era in ERAS {
        let bench = Bench::web_of(era, PLAIN);
        bench.once(Call::Create, impatient(Duration::from_millis(300), false));
        let exists = format!("{OTHER} 504, but the stack exists as Portainer stack 1 (active)");
        let state = "state: the stack exists as Portainer stack 1 and is deployed; it has 1 container on this host";
        bench.fails(
            "web",
            &[&exists, "The upstream server is timing out\"\n}", state],
        );
        let bench = Bench::web_of(era, PLAIN);
        bench.once(Call::Create, FaultKind::Repeated);
        bench.fails(
            "web",
            &[
                "status 409, but the stack exists as Portainer stack 1",
                state,
            ],
        );
        assert_eq!(bench.calls(Call::Create).len(), 1, "sent once");
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

#[test]
fn b35_a_restore_awaits_what_another_program_answered() {
    for era in ERAS {
        let bench = Bench::web_of(era, PLAIN);
        bench.run("web").code(0);
        bench.forget_requests();
        bench.once(Call::Delete, impatient(Duration::from_millis(500), false));
        bench.succeeds("restore web --yes", "restored web: 1 container");
        assert_eq!(bench.calls(Call::Delete).len(), 1, "sent once");
        assert_eq!(bench.containers("web").len(), 1);
        // A 500 that is not Portainer's is no reason to send it again.
        bench.run("web").code(0);
        bench.forget_requests();
        bench.once(Call::Delete, instead(500, TIMED_OUT));
        bench.fails(
            "restore web --yes",
            &[OTHER, "\nPortainer stack 2 still exists\n"],
        );
        assert_eq!(bench.calls(Call::Delete).len(), 1, "sent once");
    }
}

#[test]
fn b35_portainers_own_refusal_ends_a_request() {
    let bench = edited(Era::Sync);
    let before = bench.containers("web");
    bench.once(Call::Create, refusal());
    bench
        .fails("adopt web --yes", "No container was changed")
        .hides("waiting for Portainer");
    assert_eq!(bench.containers("web"), before);
    assert!(bench.saved(".request").is_empty());
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

#[test]
fn a_second_portainer_stack_of_the_name_is_named() {
    let bench = Bench::web(PLAIN);
    bench.world_with(Call::Create, |world| {
        world.add_record("web", 1, PLAIN);
    });
    let twin = "warning: Portainer stack 2 has the same name as Portainer stack 1, and the same containers: do not delete or stop either of them";
    bench.succeeds("adopt web --yes", twin).hides("not found");
}
