//! `--endpoint auto`: the environment whose engine is the engine of this host (M17, M22).

use testbed::{Call, Rule};

use crate::{
    bench::{Bench, PLAIN, Run, instead, refusal},
    requests,
};

const AUTO: &str = "--endpoint auto";
const HINT: &str = "environment 3 is this host: pass --endpoint 3, or --endpoint auto";

/// Environment 3 (nas) is this engine; 1 (local) and 2 (edge) are others.
fn third() -> Bench {
    let bench = Bench::new();
    bench.world(|world| {
        world.add_endpoint(2, "edge");
        let other = world.add_endpoint(3, "nas");
        let mut engine = |id, engine| {
            let endpoint = world.endpoints.get_mut(&id).expect("an environment");
            std::mem::replace(&mut endpoint.engine, engine)
        };
        let this = engine(1, other);
        engine(3, this);
    });
    bench.started("web", PLAIN, None);
    bench
}

fn auto(bench: &Bench, args: &str) -> Run {
    bench.run(&format!("{args} {AUTO}"))
}

fn unreadable(bench: &Bench, id: u64) {
    let path = format!("/api/endpoints/{id}/docker");
    let rule = Rule::new(Call::Info, instead(502, ""));
    bench.faults().add(rule.path(&path));
}

#[test]
fn each_command_finds_the_environment_and_says_with_verbose_which() {
    let found = "environment 3 (nas) is this host";
    let bench = third();
    for args in ["plan web", "list", "adopt web --dry-run", "web --dry-run"] {
        auto(&bench, args).code(0).hides(found);
        auto(&bench, &format!("{args} -v")).succeeds(found);
        assert!(bench.nothing_was_changed());
    }
    for args in ["plan web --output json", "list --output json"] {
        let json = auto(&bench, args).code(0).json();
        assert_eq!(json["portainer"]["environment"], 3);
    }
    // A printed command names it (B14).
    bench.once(Call::Create, refusal());
    let run = auto(&bench, "web").code(1);
    let command = requests::printed(&run);
    assert!(command.contains(" --endpoint 3 "), "{command}");
    for args in ["adopt web", "migrate web"] {
        bench.forget_requests();
        auto(&bench, args).code(0).hides(found);
        let create = &bench.calls(Call::Create)[0].path;
        assert!(create.ends_with("endpointId=3"), "{create}");
        auto(&bench, "restore web").code(0);
    }
}

#[test]
fn none_and_several_are_errors_that_name_the_environments() {
    let bench = third();
    let this = bench.world(|world| world.endpoints.remove(&3).expect("it"));
    for args in ["web", "adopt web", "plan web", "list"] {
        auto(&bench, args).fails(&[
            "no environment of Portainer at https://127.0.0.1:",
            " is this host\nenvironment 1 (local) is another host\nenvironment 2 (edge) is another host\n",
            "hint: add this host to Portainer",
        ]);
    }
    bench.world(|world| {
        for id in [3, 5] {
            world.endpoints.insert(id, this.clone());
        }
    });
    let both = "\nenvironment 3 (nas) is this host\nenvironment 5 (nas) is this host\n";
    let run = bench.stops(
        &format!("web {AUTO}"),
        &["2 environments of Portainer", both],
    );
    run.says("pass the ID of one of them with --endpoint");
    let run = bench.run("web").code(1).hides("is this host");
    run.says("add this host to Portainer as an environment, or pass its ID with --endpoint");
}

#[test]
fn an_environment_that_cannot_be_read_is_not_absent() {
    let bench = third();
    unreadable(&bench, 2);
    auto(&bench, "plan web -v").succeeds("environment 3 (nas) is this host\nenvironment 2 (edge) could not be read: failed to read the Docker ID of environment 2: something other than Portainer responded with status 502");
    unreadable(&bench, 3);
    auto(&bench, "web").fails(&[
        " is known to be this host\nenvironment 1 (local) is another host\n",
        "\nenvironment 3 (nas) could not be read: ",
        "\nhint: an environment that could not be read may be this host",
    ]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn a_key_that_does_not_see_every_environment_is_said() {
    const USER: &str = "ptr_user-key-99d2";
    let bench = third();
    bench.world(|world| {
        world.add_user(USER, "somebody");
        world.endpoints.get_mut(&3).expect("nas").restricted = true;
    });
    let plan = format!("plan web {AUTO}");
    let run = bench.run_with(&plan, "STACKMGR_API_KEY", USER).code(1);
    run.says("does not belong to an administrator and may not see every environment")
        .hides("nas");
}

#[test]
fn a_portainer_or_engine_that_does_not_respond_is_an_error_except_for_the_list() {
    let bench = third();
    bench.always(Call::Endpoints, instead(503, ""));
    let error = "failed to list Portainer's environments: something other than Portainer responded with status 503";
    bench.stops(&format!("web {AUTO}"), error);
    auto(&bench, "list").succeeds(&[error, "web"]);
    bench.faults().clear();
    let run = bench.without_engine(&format!("web {AUTO}"));
    run.fails("absent/engine.sock");
    assert!(bench.nothing_was_changed());
}

#[test]
fn b03_a_refusal_names_the_environment_of_this_host() {
    let bench = third();
    for args in ["web", "adopt web", "plan web"] {
        bench.run(args).says(HINT);
        let run = bench.run(&format!("{args} --endpoint 99"));
        run.says(&["environment 99", HINT]);
    }
    assert!(bench.nothing_was_changed());
}

#[test]
fn c09_without_auto_the_environments_are_not_listed() {
    let bench = Bench::migrated(PLAIN);
    bench.run("adopt web").code(0);
    bench.run("list").code(0);
    // Only the environment itself is read (B03).
    let read = bench.calls(Call::Endpoints).into_iter();
    let mut paths = read.map(|one| one.path);
    assert!(paths.all(|path| path == "/api/endpoints/1"));
}

#[test]
fn a_list_says_once_that_portainer_has_no_such_environment() {
    let bench = third();
    bench.started("blog", PLAIN, None);
    let run = bench.run("list --endpoint 99").code(0);
    let warning = format!("warning: Portainer has no environment 99: {HINT}\n");
    assert_eq!(run.err, warning);
    run.prints(
        "STACK  CONTAINERS  STATE    ADOPT
blog   1/1         unknown  unknown: environment 99 cannot be used
web    1/1         unknown  unknown: environment 99 cannot be used\n",
    );
}

/// Environment 2 (clone) is a copy of this machine: its engine has the same ID, and other containers.
fn with_clone() -> Bench {
    let bench = Bench::web(PLAIN);
    bench.world(|world| {
        world.add_endpoint(2, "clone");
        let engine = world.engine.clone();
        let clone = world.endpoints.get_mut(&2).expect("it");
        (clone.engine, clone.is_clone) = (engine, true);
    });
    bench
}

const CLONE: &str = "environment 2 is another host, whose Docker has the same ID: container web-a-1 runs on this host, and Portainer does not list it there";
const FIRST: &str = "environment 1 is this host: pass --endpoint 1, or --endpoint auto";

#[test]
fn b37_a_clone_of_this_host_is_another_host() {
    let bench = with_clone();
    for args in ["adopt web --yes", "migrate web", "plan web", "doctor"] {
        bench.fails(&format!("{args} --endpoint 2"), &[CLONE, FIRST]);
    }
    let run = auto(&bench, "plan web -v");
    run.succeeds("environment 1 (local) is this host");
    assert!(bench.nothing_was_changed());
    // A stack of this name there is another one.
    bench.record("web", 2);
    let taken = "on environment 2 has the same name";
    bench.fails("plan web", taken).hides("this host, too");
    bench.world(|world| world.records.clear());
    // Of a stack that does not run, the other containers of the host tell.
    bench.world(|world| {
        world.stop_by_hand("web-a-1");
        world.add_container("other", "busybox");
    });
    let run = bench.run("adopt web --yes --endpoint 2").code(1);
    run.says("container other runs on this host");
    assert!(bench.nothing_was_changed());
}

#[test]
fn b37_containers_that_are_replaced_between_two_lists_show_no_other_host() {
    let bench = Bench::web(&format!("{PLAIN}  b:\n    image: x:1\n"));
    bench.world_with(Call::Info, |world| {
        let mut container = world.container("web-b-1").expect("it").clone();
        world.containers.retain(|_, one| one.name != "web-b-1");
        container.id = "f".repeat(64);
        world.containers.insert(container.id.clone(), container);
    });
    let run = bench.run("plan web");
    assert_eq!(bench.calls(Call::Info).len(), 1);
    run.hides("another host");
}

#[test]
fn b37_a_key_that_does_not_see_the_containers_proves_nothing() {
    const USER: &str = "ptr_user-key-99d2";
    let bench = with_clone();
    bench.world(|world| world.add_user(USER, "somebody"));
    let hidden = "cannot verify that environment 2 is this host: the API key does not see container web-a-1 there";
    for args in ["adopt web --yes", "web"] {
        let args = format!("{args} --endpoint 2");
        let run = bench.run_with(&args, "STACKMGR_API_KEY", USER).code(1);
        run.says(hidden);
    }
    // Something does not serve the list: an empty one is `[]`.
    let refused = r#"{"message":"Not found","details":"Not found"}"#;
    for kind in [
        instead(403, "{}"),
        instead(502, ""),
        instead(404, refused),
        instead(405, ""),
        instead(501, ""),
        instead(204, ""),
        instead(200, "null"),
    ] {
        bench.always(Call::Containers, kind);
        let why = "cannot verify that environment 1 is this host: failed to list the containers of environment 1";
        bench.fails("adopt web --yes", why);
        bench.faults().clear();
    }
    assert!(bench.nothing_was_changed());
}

#[test]
fn b37_a_restore_leaves_the_stack_of_another_environment_alone() {
    let bench = with_clone();
    bench.run("adopt web --yes").code(0);
    bench.world(|world| {
        world.records.clear();
        world.endpoints.get_mut(&2).expect("it").is_clone = false;
    });
    // Also if it is on this host.
    let id = bench.record("web", 2);
    bench.run("restore web --yes").code(0);
    assert!(bench.world(|world| world.records.contains_key(&id)));
    // The environment of the snapshot is gone: the clone is not taken for it.
    bench.world(|world| {
        world.endpoints.remove(&1);
        world.endpoints.get_mut(&2).expect("it").is_clone = true;
    });
    bench.run("restore web --yes").code(0);
    assert!(bench.world(|world| world.records.contains_key(&id)));
    bench.world(|world| world.endpoints.get_mut(&2).expect("it").is_clone = false);
    let named = "  the Portainer stack is deleted; this is done on environment 2, because Portainer no longer has environment 1";
    bench.run("restore web --dry-run").says(named);
    bench.run("restore web --yes").succeeds(named);
    assert!(bench.world(|world| world.records.is_empty()));
}

#[test]
fn b16_a_restore_knows_that_another_environment_has_the_name() {
    let bench = with_clone();
    bench.run("adopt web --yes").code(0);
    bench.stack("web", &PLAIN.replace("1000", "1"), None);
    bench.run("adopt web --yes").code(0);
    // The environment of the snapshot is gone, and its Portainer stack is still listed.
    bench.world(|world| {
        world.endpoints.remove(&1);
        world.endpoints.get_mut(&2).expect("it").is_clone = false;
    });
    bench.forget_requests();
    let taken = "on environment 1 has the same name, and Portainer";
    bench.stops("restore web --yes", &["refusing to restore", taken]);
    let missing = "environment 2 has no Portainer stack of this name";
    bench.fails("restore web --yes --force", missing);
}

#[test]
fn b37_a_restore_on_a_clone_is_refused() {
    let bench = with_clone();
    bench.run("adopt web --yes").code(0);
    bench.world(|world| {
        let other = world.endpoints.remove(&2).expect("it");
        world.endpoints.insert(1, other);
    });
    bench.forget_requests();
    let why = "environment 1 is another host, whose Docker has the same ID";
    bench.stops("restore web --yes", &["refusing to restore", why]);
}
