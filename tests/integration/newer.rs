//! What only newer versions of Portainer do.

use std::time::Duration;

use testbed::{Call, Era, FaultKind, Status};

use crate::bench::{Bench, PLAIN, instead, write_private};

#[test]
fn n16_a_stack_of_another_environment_that_portainer_cannot_read() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    bench.world(|world| world.add_endpoint(2, "gone"));
    bench.record("other", 2);
    bench.change_record(|record| record.lost_workflow = true);
    let warning = "Portainer could list only the stacks of this environment; its log says which other stack it cannot read";
    for args in ["plan web --output json", "list --output json"] {
        bench.succeeds(args, warning);
    }
    let before = bench.containers("web");
    bench.run("adopt web").code(0);
    assert_eq!(bench.containers("web"), before);
}

#[test]
fn n16_a_stack_of_this_environment_that_portainer_cannot_read() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    bench.record("other", 1);
    bench.change_record(|record| record.lost_workflow = true);
    bench.stops(
        "adopt web",
        "hint: see Portainer's log: it cannot read one of its stacks; from 2.43 on, a stack whose workflow was deleted prevents every list (portainer/portainer#13291)",
    ).says("failed to list Portainer's stacks: status 500: Unable to load git config for stack");
    assert!(bench.calls(Call::Create).is_empty());
}

/// An update that fails leaves the text before it with its own variables: neither the files nor the snapshot have both.
#[test]
fn n15_a_failed_update_leaves_the_old_text_with_the_new_variables() {
    let text = "services:\n  a:\n    image: x\n    environment:\n      GREETING: ${GREETING}\n  b:\n    image: x\n";
    let bench = Bench::of(Era::Async);
    bench.started("web", text, Some("GREETING=hello\n"));
    bench.run("adopt web --wait 2s").code(0);
    let stored = || {
        let record = bench.first_record();
        let value = record.env.expect("variables").remove(0).value;
        (record.text.contains("# new"), value, record.status)
    };
    let old = (false, "hello".to_owned(), Status::Active);
    assert_eq!(stored(), old);
    bench.write("web", "docker-compose.yml", &format!("{text}# new\n"));
    bench.write("web", ".env", "GREETING=goodbye\n");
    bench.once(Call::Update, FaultKind::LateFailure(Duration::ZERO));
    bench.fails("adopt web --wait 2s --yes", 
        "Portainer stack 1 stays in error, with its old Compose file and the new variables, and its next update recreates every container; to undo it, with an interruption of every container, run: ",
    );
    assert_eq!(stored(), (false, "goodbye".to_owned(), Status::Error));
    bench.run("restore web --yes").code(0);
    assert_eq!(stored(), old);
}

#[test]
fn n15_a_restore_whose_update_fails_names_the_text_that_stays() {
    let text = "services:\n  a:\n    image: x\n    environment:\n      GREETING: ${GREETING}\n";
    let bench = Bench::of(Era::Async);
    bench.started("web", text, Some("GREETING=hello\n"));
    bench.run("adopt web --wait 2s").code(0);
    bench.write("web", "docker-compose.yml", &format!("{text}# new\n"));
    bench.write("web", ".env", "GREETING=goodbye\n");
    bench.run("adopt web --wait 2s --yes").code(0);
    bench.once(Call::Update, FaultKind::LateFailure(Duration::ZERO));
    let run = bench.fails("restore web --yes", "Portainer stack 1 differs: the Compose file, which the failed update put back; its variables are those of the snapshot\nPortainer stack 1 differs: its deployment failed\nstate: the containers match the snapshot\n");
    run.says("it removes every container. To restore only the containers, run: stacklift restore web --engine-only\n");
    bench.run("restore web --yes").code(0);
    let record = bench.first_record();
    assert!(!record.text.contains("# new"));
    assert_eq!(record.env.expect("variables")[0].value, "hello");
}

#[test]
fn n20_git_settings_that_were_not_deployed() {
    let bench = Bench::web_of(Era::Async, PLAIN);
    let id = bench.record("web", 1);
    let body = r#"{"message":"Stack git settings have changed. Redeploy the stack to apply the new configuration.","details":"git settings updated without redeploy"}"#;
    bench.always(Call::File, instead(409, body));
    let what = format!("the Git settings of Portainer stack {id} were changed and not deployed");
    let hint = "redeploy the stack in Portainer, then run the command again";
    bench.fails("export web", &what).says(hint);
    bench.run("plan web --output json").says(&what).says(hint);
}

#[test]
fn n21_headers_for_a_proxy_that_portainer_refuses() {
    let bench = Bench::web(PLAIN);
    let path = bench.root().join("headers.env");
    let adopt = |text: &str| {
        write_private(&path, text);
        bench
            .run_with("adopt web", "STACKLIFT_HEADER_FILE", &path)
            .code(1)
    };
    adopt("Authorization: Basic eDp5\n").says("Portainer refuses an API key together with an Authorization header: configure the proxy to remove the one in --header-file, or to accept another header");
    let refused = r#"{"message":"Forbidden","details":"origin invalid"}"#;
    bench.always(Call::Create, instead(403, refused));
    adopt("Cookie: session=one1\n").says("Portainer may check the origin of this request because of the Cookie in --header-file: configure the proxy to accept another header");
}

#[test]
fn n19_an_update_keeps_the_option_to_prune() {
    let bench = Bench::web_of(Era::Async, &format!("{PLAIN}  b:\n    image: x\n"));
    bench.run("adopt web --wait 2s").code(0);
    bench.change_record(|record| record.prune = Some(true));
    let both = format!("{PLAIN}  b:\n    image: x\n    init: true\n");
    bench.write("web", "docker-compose.yml", &both);
    let request = bench.run("plan web --request").code(0).json();
    assert_eq!(request["prune"], true);
    bench.run("adopt web --wait 2s --yes").code(0);
    assert_eq!(bench.first_record().prune, Some(true));
    // It would remove what the file no longer has.
    bench.write("web", "docker-compose.yml", PLAIN);
    bench.fails("adopt web --leave-orphans", "Portainer would remove containers that the Compose file does not define, because the Portainer stack has the option to prune services\n     - web-b-1\n     turn that option off in Portainer, or add these services to the Compose file\n");
    assert_eq!(bench.containers("web").len(), 2);
    bench.change_record(|record| record.prune = Some(false));
    let adopt = "adopt web --leave-orphans --wait 2s --yes";
    bench.run(adopt).code(0);
    assert_eq!(bench.containers("web").len(), 2);
    assert_eq!(bench.first_record().prune, Some(false));
}

#[test]
fn n26_portainer_2_39_deploys_with_the_library_and_removes_what_fails() {
    let bench = Bench::of(Era::Library);
    let text = format!("{PLAIN}  b:\n    image: x\n    volumes: [/data]\n");
    bench.started("web", &text, None);
    let before = bench.containers("web");
    bench.once(Call::Create, FaultKind::LateFailure(Duration::ZERO));
    let says = "Both containers had been removed and were restored";
    bench.fails("adopt web --wait 2s --keep-anonymous --yes", says);
    bench.run("adopt web --wait 2s --yes").code(0);
    let after = bench.containers("web");
    assert_eq!(before.len(), after.len());
    assert!(bench.run("list").code(0).out.contains("in Portainer"));
}

/// Compose compares the definition of a network with the one that exists (N13).
#[test]
fn n13_an_edited_network_is_recreated_from_2_24_on() {
    for (era, recreates) in [(Era::Sync, false), (Era::Library, true), (Era::Async, true)] {
        let bench = Bench::of(era);
        let text =
            |label: &str| format!("{PLAIN}networks: {{default: {{labels: {{v: {label}}}}}}}\n");
        bench.stack("web", &text("a"), None);
        bench.world(|world| world.add_image("busybox:1.36"));
        bench.run("adopt web --wait 2s --yes").code(0);
        let network = || {
            let networks = bench.world(|world| world.networks.clone());
            networks
                .into_iter()
                .find(|network| network["Name"] == "web_default")
                .map(|network| network["Id"].clone())
        };
        let (before, container) = (network(), bench.containers("web"));
        let mut record = bench.first_record();
        record.text = text("b");
        bench.update_in_portainer(&record);
        bench.world(|world| world.finish_deployment(1));
        assert_eq!(network() != before, recreates, "{era:?}");
        assert_eq!(bench.containers("web"), container, "{era:?}");
    }
}
