//! B24: an API key that does not see or may not change every Portainer stack.

use std::{fs, time::Duration};

use testbed::{Call, FaultKind};

use crate::bench::{Bench, PLAIN, Run, done, instead, refusal};
use crate::requests::printed;

/// The API key of a standard user.
const USER: &str = "ptr_user-key-99d2";

/// A stack that was started by hand, and a standard user.
fn started() -> Bench {
    let bench = Bench::new();
    bench.world(|world| world.add_user(USER, "somebody"));
    bench.started("web", PLAIN, None);
    bench
}

/// Lets only administrators manage stacks.
fn forbid_stacks(bench: &Bench) {
    bench.world(|world| {
        let endpoint = world.endpoints.get_mut(&1).expect("an environment");
        endpoint.forbids_stacks = true;
    });
}

/// Runs the binary with the key of the user.
fn as_user(bench: &Bench, args: &str) -> Run {
    bench.run_with(args, "STACKMGR_API_KEY", USER).hides(USER)
}

const LIMITED: &str = "the API key does not belong to an administrator";

#[test]
fn b24_a_key_that_may_not_manage_stacks_is_refused_before_anything_is_removed() {
    let bench = started();
    forbid_stacks(&bench);
    let hint = "Disable the use of Stacks for non-administrators";
    for (args, says) in [
        ("web", &["refusing to migrate: ", hint, "--force"][..]),
        ("adopt web --yes", &["cannot adopt web", hint]),
        ("plan web", &["it is unknown whether Portainer has it"]),
        ("list", &["blocked: ", LIMITED]),
        ("doctor", &[]),
    ] {
        let run = as_user(&bench, args).says(says);
        let words = match args {
            "adopt --all --yes" => "1 stack: blocked",
            _ => "the API key is not allowed",
        };
        run.says(words)
            .hides(&["stacklift adopt web", "not in Portainer"]);
    }
    as_user(&bench, "adopt --all --yes").fails(LIMITED);
    assert!(bench.nothing_was_changed());
    assert!(!bench.state().exists(), "no snapshot");
    let run = as_user(&bench, "web --force").fails("continuing because of --force");
    run.says("Stack creation is disabled for non-admin users");
}

#[test]
fn b24_a_key_that_may_not_manage_stacks_deletes_no_stack_of_its_own() {
    let bench = started();
    as_user(&bench, "web --force").succeeds(LIMITED);
    // The new stack is the user's, too.
    as_user(&bench, "migrate web --dry-run")
        .code(0)
        .hides("access rights");
    as_user(&bench, "restore web --yes")
        .succeeds(&["the Portainer stack is deleted", "restored web"]);
    assert!(bench.world(|world| world.records.is_empty()));
    as_user(&bench, "web --force").code(0);
    forbid_stacks(&bench);
    bench.forget_requests();
    for args in ["web", "adopt web --yes", "restore web --yes"] {
        as_user(&bench, args)
            .code(1)
            .hides("failed to read Portainer stack");
        assert!(bench.nothing_was_changed(), "{args:?}");
    }
}

#[test]
fn b24_a_key_without_the_environment_restores_nothing() {
    let bench = started();
    as_user(&bench, "adopt web --yes").code(0);
    bench.world(|world| world.endpoints.get_mut(&1).expect("it").restricted = true);
    bench.forget_requests();
    // Portainer still lists the user's own stacks.
    as_user(&bench, "list").says("in Portainer");
    as_user(&bench, "restore web --yes").fails("  1. the Portainer stack is unknown: the API key does not belong to an administrator, and its user may not use the environment\n     use an administrator's API key, or restore only the containers with --engine-only\nNothing was changed.\n");
    assert!(bench.nothing_was_changed());
}

/// Lets only administrators deploy `what`, such as `BindMounts`.
fn restrict(bench: &Bench, what: &[&'static str]) {
    bench.world(|world| {
        let endpoint = world.endpoints.get_mut(&1).expect("an environment");
        endpoint.admin_only = what.to_vec();
    });
}

#[test]
fn b24_what_only_administrators_may_deploy_is_refused_before_it_is_sent() {
    let bench = started();
    let settings = [
        ("BindMounts", "volumes: ['/srv:/srv']", "bind mounts"),
        (
            "BindMounts",
            "volumes: [{type: bind, source: /, target: /x}]",
            "bind mounts",
        ),
        ("PrivilegedMode", "privileged: true", "`privileged`"),
        ("HostNamespace", "pid: host", "`pid: host`"),
        ("DeviceMapping", "devices: ['/dev/fuse']", "`devices`"),
        (
            "SysctlSetting",
            "sysctls: {net.core.somaxconn: 1024}",
            "`sysctls`",
        ),
        (
            "SecurityOpt",
            "security_opt: ['no-new-privileges:true']",
            "`security_opt`",
        ),
        ("ContainerCapabilities", "cap_drop: [ALL]", "capabilities"),
    ];
    for (setting, line, said) in settings {
        restrict(&bench, &[setting]);
        bench.stack("web", &format!("{PLAIN}    {line}\n"), None);
        let reason = format!("- a: {said}");
        for args in ["plan web", "adopt web --yes"] {
            let what = "1. only an administrator's API key may deploy parts of the Compose file";
            as_user(&bench, args).fails(&[what, &reason]);
        }
        let run = as_user(&bench, "web").code(1);
        run.says("refusing to migrate: only an administrator's API key may deploy");
        assert!(bench.nothing_was_changed(), "{setting}");
    }
    // Portainer checks other texts as well, and may reject one after the containers were removed.
    bench.stack(
        "web",
        &format!("{PLAIN}    volumes: [data:/v]\nvolumes: {{data: }}\n"),
        None,
    );
    restrict(&bench, &["BindMounts", "SysctlSetting"]);
    as_user(&bench, "web").fails("because only administrators may use bind mounts and `sysctls`");
    as_user(&bench, "plan web").code(0);
    assert!(bench.nothing_was_changed());
    bench.run("web").code(0);
}

#[test]
fn b24_a_restore_with_a_key_that_does_not_see_the_stack_is_refused() {
    let bench = started();
    bench.run("web").code(0);
    bench.forget_requests();
    let run = as_user(&bench, "restore web --yes").code(1);
    let untrue = ["restored web", "as it was"];
    run.hides(&untrue).says("error: refusing to restore: 1 problem found\n  1. the Portainer stack is unknown: the API key does not belong to an administrator, so Portainer may not list every stack\n     use an administrator's API key, or restore only the containers with --engine-only\nNothing was changed.\n");
    assert!(bench.nothing_was_changed());
    let run = as_user(&bench, "restore web --yes --force").code(1);
    run.hides(&untrue)
        .says(&["match", "but the Portainer stack is unknown"]);
    assert_eq!(bench.world(|world| world.records.len()), 1);
}

#[test]
fn b24_a_list_does_not_say_what_happens_to_an_adopted_stack() {
    let bench = started();
    as_user(&bench, "list").says(&["by hand", "keeps running"]);
    bench.run("adopt web --wait 2s").code(0);
    as_user(&bench, "list").says("web    1/1         unknown  unknown\n");
}

#[test]
fn b24_a_role_that_cannot_be_read_is_not_that_of_an_administrator() {
    let bench = started();
    bench.run("web").code(0);
    let deleted = bench.world(|world| std::mem::take(&mut world.records));
    assert_eq!(deleted.len(), 1);
    let unknown = "cannot determine whether the API key sees every Portainer stack";
    for kind in [instead(404, "{}"), done(200, "{}")] {
        bench.always(Call::Me, kind);
        let run = bench.fails("restore web --yes", unknown);
        run.hides("restored web");
    }
    bench.faults().clear();
    let says = ["restored web", "1 container matches the snapshot"];
    bench.succeeds("restore web --yes", &says);
}

/// Runs the roll-back command of a failed run, as it was printed.
fn roll_back(bench: &Bench, failed: &Run) {
    let command = printed(failed);
    let (_, args) = command.split_once("stacklift ").expect("a command");
    as_user(bench, &format!("{args} --yes")).code(0);
    assert_eq!(bench.containers("web").len(), 1);
}

/// A create that fails and removes every container (M06), once.
fn fails(bench: &Bench) {
    let late = FaultKind::LateFailure(Duration::ZERO);
    bench.once(Call::Create, late);
}

#[test]
fn b14_the_command_of_a_key_that_sees_no_stack_restores_the_containers_alone() {
    for args in ["migrate web --force", "adopt web --yes --on-failure leave"] {
        let bench = started();
        fails(&bench);
        let failed = as_user(&bench, args).fails("--engine-only");
        assert!(bench.containers("web").is_empty());
        roll_back(&bench, &failed);
    }
    // The same with a stack of the user, which is gone.
    let bench = started();
    as_user(&bench, "migrate web --force").code(0);
    fails(&bench);
    let failed = as_user(&bench, "migrate web").code(1);
    roll_back(&bench, &failed.says("--engine-only"));
    // An administrator sees that there is none.
    fails(&bench);
    let run = bench.fails("migrate web", "to roll back");
    run.hides("--engine-only");
}

#[test]
fn b24_a_restore_of_the_containers_alone_names_itself_if_it_fails() {
    let bench = started();
    as_user(&bench, "migrate web --force").code(0);
    for id in bench.containers("web") {
        bench.world(|world| world.containers.remove(&id));
    }
    let refusal = refusal();
    bench.always(Call::EngineCreate, refusal);
    let failed = bench.run("restore web --engine-only --yes");
    let (_, command) = failed.err.split_once("to continue, run: ").expect("one");
    let command = command.lines().next().unwrap_or_default();
    assert!(command.ends_with(" --engine-only"), "{failed:#?}");
}

#[test]
fn b24_a_stack_that_the_key_did_not_see_is_not_deleted_by_a_restore() {
    let bench = started();
    let id = bench.record("web", 1);
    bench.world(|world| world.records.get_mut(&id).expect("a record").created -= 60);
    as_user(&bench, "web").fails("error: refusing to migrate: the API key does not belong to an administrator: Portainer may refuse the stack after its containers were removed\nPortainer may have a stack web that the API key does not see\nNothing was changed.\nhint: use an administrator's API key, or adopt the stack, which removes nothing first;");
    assert!(bench.nothing_was_changed());
    as_user(&bench, "adopt web --yes")
        .fails(&["which the API key may not see", "No container was changed"]);
    // The create fails on the name, after the containers were removed.
    as_user(&bench, "web --force").fails(LIMITED);
    let says = ["not checked", "the Portainer stack"];
    let run = bench.succeeds("restore web --yes", &says);
    run.hides("Portainer stack is deleted");
    assert_eq!(bench.world(|world| world.records.len()), 1);
    bench.succeeds("restore web --list", "unknown");
}

#[test]
fn b06_containers_that_portainer_started_have_a_stack_that_the_key_does_not_see() {
    // The second Portainer does not run in a container.
    for dir in ["/data/compose/7", "/opt/portainer/compose/7/v2"] {
        let bench = started();
        bench.label("project.working_dir", dir);
        let ids = bench.containers("web");
        let why = "refusing to migrate: Portainer may have started these containers, and the API key may not see their Portainer stack";
        as_user(&bench, "web").fails(&format!("error: {why}\nweb-a-1 was started in {dir}\nNothing was changed.\nhint: use an administrator's API key;"));
        assert!(bench.nothing_was_changed());
        assert_eq!(bench.containers("web"), ids);
        assert!(!fs::exists(bench.state()).expect("a folder"), "no snapshot");
        // An administrator's key sees that there is none.
        bench.run("web").code(0);
    }
}

#[test]
fn b06_an_environment_whose_engine_answers_404_is_not_missing() {
    for status in [401, 403, 404] {
        let bench = started();
        let body = r#"{"message":"page not found"}"#;
        bench.always(Call::Info, instead(status, body));
        let exists = "Portainer has environment 1, but its Docker could not be read";
        for args in ["plan web", "adopt web --yes", "doctor"] {
            let run = bench.run(args).says(exists);
            run.hides(&["has no environment 1", "not allowed to use"]);
        }
        let answer = format!("status {status}: page not found");
        bench.succeeds("web", &[exists, &answer]);
    }
}
