//! The engine of the environment, Portainer itself, and its stacks.

use testbed::{Call, Era, Status};

use super::{adopt, adopts, exits, refuses};
use crate::bench::{Bench, PLAIN, instead};

#[test]
fn another_engine_an_unknown_one_and_a_forbidden_one() {
    let bench = Bench::web(PLAIN);
    bench.world(|world| world.add_endpoint(2, "other"));
    let hint = "environment 1 is this host: pass --endpoint 1, or --endpoint auto";
    let why = format!(
        "environment 2 is another host: Portainer would create the containers there\n{hint}"
    );
    refuses(&bench, "web --endpoint 2", &why);
    let why = format!("Portainer has no environment 99\n{hint}");
    refuses(&bench, "web --endpoint 99", &why);
    let body = r#"{"message":"Permission denied to access environment","details":"Unauthorized"}"#;
    for call in [Call::Info, Call::Endpoints] {
        bench.always(call, instead(403, body));
    }
    let why = "the API key is not allowed to use environment 1 (403)\nuse an administrator's API key, or give the user of this key access to the environment in Portainer";
    refuses(&bench, "web", why);
    bench.faults().clear();
    bench.always(Call::Info, instead(200, "{}"));
    let why = "cannot verify that environment 1 is this host: Portainer does not report which Docker it uses\nPortainer and Docker on this host must both be reachable";
    refuses(&bench, "web", why);
}

/// Another host in Portainer, with a stack `web`.
fn with_other_host(era: Era) -> (Bench, u64) {
    let bench = Bench::web_of(era, PLAIN);
    bench.world(|world| world.add_endpoint(2, "other"));
    let id = bench.record("web", 2);
    (bench, id)
}

#[test]
fn m20_a_stack_of_the_same_name_on_another_host() {
    let (bench, id) = with_other_host(Era::Sync);
    let why = format!(
        "Portainer stack {id} on environment 2 has the same name, and Portainer 2.23.0 does not take a second one while its containers exist\nupgrade Portainer to 2.43 or later; then this stack keeps its name. If environment 2 no longer exists, associate that stack with environment 1 in Portainer"
    );
    refuses(&bench, "web", &why);
    bench.world(|world| world.down("web"));
    adopts(&bench, "none", "web");

    let (bench, _) = with_other_host(Era::Async);
    adopts(&bench, "web", "web");
    let endpoints = bench.world(|world| {
        let records = world.records.values();
        records.map(|one| one.endpoint).collect::<Vec<_>>()
    });
    assert_eq!(endpoints, [2, 1]);
}

#[test]
fn m20_a_version_that_may_refuse_the_name() {
    let (bench, id) = with_other_host(Era::Sync);
    bench.always(Call::Status, instead(200, r#"{"Version":"2.39.1"}"#));
    let warning = format!(
        "Portainer stack {id} on environment 2 has the same name: this version of Portainer may refuse a second one; nothing changes then"
    );
    bench.succeeds("plan web --output json", &warning);
    let before = bench.containers("web");
    adopt(&bench, "web --yes").fails("already exists");
    assert_eq!(bench.containers("web"), before);
}

#[test]
fn m20_two_environments_with_this_engine() {
    let bench = Bench::web(PLAIN);
    let id = bench.record("web", 2);
    bench.world(|world| {
        let this = world.endpoints[&1].clone();
        world.endpoints.insert(2, this);
    });
    let said =
        format!("environment 2 is this host, too, and Portainer stack {id} there has this name");
    let hint = "to update that one, pass --endpoint 2";
    let why = format!("{said}\n{hint}");
    refuses(&bench, "web", &why);
    bench.stops("web", &[&said, hint]);
}

#[test]
fn several_portainer_stacks_of_the_same_name() {
    let bench = Bench::web(PLAIN);
    let first = bench.record("web", 1);
    let second = bench.record("web", 1);
    let why = format!(
        "Portainer stack {second} on environment 1 has the same name as Portainer stack {first}\ndelete one of them in Portainer: this removes the containers of the project, so take a copy of their data first"
    );
    refuses(&bench, "web", &why);
}

#[test]
fn a_portainer_stack_that_an_update_would_damage() {
    let bench = Bench::web(PLAIN);
    let text = format!("{PLAIN}  more:\n    image: x\n");
    let id = bench.world(|world| world.add_record("web", 1, &text));
    bench.change_record(|record| {
        record.auto_update = Some(serde_json::json!({"Interval": "5m"}));
        record.status = Status::Deploying;
    });
    let deploys = format!(
        "Portainer stack {id} is still deploying\nwait until Portainer has finished, then run the command again; Portainer 2.41 to 2.43 can miss the end: upgrade it if this never changes"
    );
    let linked = format!(
        "an update of Portainer stack {id} would break its link\nit is updated automatically\nchange the file in the repository, or remove the link in Portainer first"
    );
    let more = format!(
        "Portainer stack {id} has services that the Compose file lacks\nmore\nadd them to the Compose file, or remove them from the stack in Portainer; to leave their containers as they are, pass --leave-orphans"
    );
    refuses(&bench, "web --overwrite", &[deploys, linked, more]);
}

#[test]
fn a_service_that_was_removed_from_the_file_is_told_of_once() {
    let bench = Bench::adopted(&format!("{PLAIN}  more:\n    image: x\n"));
    bench.stack("web", PLAIN, None);
    let why = "1. Portainer would not start these containers, but would remove them with the stack\n     - web-more-1: the Compose file does not define service more\n";
    bench.fails("plan web", why).hides("2. ");
    exits(&bench, "web-more-1", 0);
    bench.succeeds("plan web", "Next: stacklift adopt web\n");
}

#[test]
fn a_portainer_stack_of_a_swarm() {
    let bench = Bench::web(PLAIN);
    let id = bench.record("web", 1);
    let list = format!(r#"[{{"Id":{id},"Name":"web","Type":1,"EndpointId":1,"Status":1}}]"#);
    bench.always(Call::List, instead(200, &list));
    let why = format!(
        "Portainer stack {id} has the same name and is a stack of a swarm\ndelete it in Portainer first: Portainer allows each name only once"
    );
    refuses(&bench, "web", &why);
}

#[test]
fn b04_portainer_itself() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: portainer/portainer-ce:2.23.0\n";
    bench.started("tools", text, None);
    let why = "the stack runs Portainer itself: container tools-a-1 runs portainer/portainer-ce:2.23.0\nmanage this stack by hand: recreating it would cut you off from Portainer";
    refuses(&bench, "tools", why);
}

#[test]
fn a_stack_that_portainer_has_already_is_not_refused() {
    let text = format!("{PLAIN}  job:\n    image: x\n");
    let bench = Bench::web(&text);
    adopts(&bench, "web", "web");
    exits(&bench, "web-job-1", 0);
    bench.forget_requests();
    adopt(&bench, "web").succeeds("up to date");
    assert!(bench.nothing_was_changed());
}
