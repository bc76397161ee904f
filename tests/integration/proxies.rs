//! Proxies in front of Portainer, and API keys that do not see every stack: each response has its own hint.

use testbed::Call;

use crate::bench::{Bench, PLAIN, Run, done, instead};

const PAGE: &str = "<!DOCTYPE html>\n<html><title>Log in</title></html>";
const REFUSED: &str = "{\"message\":\"no\",\"details\":\"no\"}";

#[test]
fn each_status_has_its_own_hint() {
    let taken = "another stack, which the API key may not see, has the name";
    for (status, body, hint) in [
        (401, REFUSED, "STACKMGR_API_KEY"),
        (403, REFUSED, "an administrator's API key"),
        (
            401,
            PAGE,
            "a proxy in front of Portainer refused the request",
        ),
        (
            403,
            "{\"message\":\"no\"}",
            "pass the headers that it asks for with --header-file",
        ),
        (404, REFUSED, "check --base-url and --endpoint"),
        (404, PAGE, "check --base-url and"),
        (409, REFUSED, taken),
        (413, PAGE, "too large for a proxy"),
        (429, PAGE, "limits the request rate: wait"),
        (500, REFUSED, "Portainer's log"),
        (501, REFUSED, "a proxy, a login page or another program"),
        (502, PAGE, "a proxy got no response"),
        (503, PAGE, "is not ready: wait"),
        (504, PAGE, "a proxy timed out"),
        (302, "", "perhaps to a login page"),
        (200, PAGE, "a login page or another program"),
        (500, PAGE, "a proxy, a login page or another program"),
    ] {
        for call in [Call::List, Call::Create] {
            // A create that Portainer itself refuses says what to fix.
            if call == Call::Create && status >= 500 && body == REFUSED {
                continue;
            }
            let bench = Bench::web(PLAIN);
            bench.always(call, instead(status, body));
            let run = bench.run("web").code(1);
            let first = run.err.lines().find(|line| line.starts_with("hint: "));
            let is_said = first.is_some_and(|first| first.contains(hint));
            assert!(is_said, "{call:?} {status}: no {hint:?} in {run:#?}");
        }
    }
}

#[test]
fn n20_an_address_that_portainer_refuses() {
    let body = r#"{"message":"service a: image registry ghcr.io blocked","details":"blocked"}"#;
    for args in ["web", "adopt web --yes"] {
        let bench = Bench::web(PLAIN);
        bench.always(Call::Create, instead(403, body));
        let hint = "if Portainer names an address, its SSRF protection refuses it: allow it in Portainer, then run the command again";
        bench.fails(args, &["image registry ghcr.io blocked", hint]);
    }
}

/// A run with the key of a user who is no administrator.
fn as_a_user(bench: &Bench) -> Run {
    const USER: &str = "ptr_user-key-99d2";
    bench.world(|world| world.add_user(USER, "somebody"));
    bench.run_with("web", "STACKMGR_API_KEY", USER).hides(USER)
}

const WARNING: &str = "the API key does not belong to an administrator";

#[test]
fn it_is_asked_once_and_only_where_something_is_at_stake() {
    let bench = Bench::on_disk(PLAIN);
    as_a_user(&bench).code(0).hides(WARNING);
    assert!(bench.calls(Call::Me).is_empty());
    for is_recorded in [true, false] {
        let bench = Bench::web(PLAIN);
        if is_recorded {
            bench.record("web", 1);
        }
        bench.run("web").code(0).hides(WARNING);
        assert_eq!(bench.calls(Call::Me).len(), 1);
    }
}

#[test]
fn a_gateway_that_lost_patience_does_not_make_the_stack_absent() {
    let bench = Bench::web(PLAIN);
    bench.once(Call::Create, done(504, PAGE));
    let error = "something other than Portainer responded with status 504 (Server: gateway/1.0), but the stack exists as Portainer stack 1 (active)";
    let state = "state: the stack exists as Portainer stack 1 and is deployed; it has 1 container on this host";
    bench.fails("web", &[error, state]).hides("is down");
    bench.once(Call::Create, instead(504, PAGE));
    let says = "state: Portainer does not list the stack, but may still be deploying it";
    bench.fails("web", says);
}
