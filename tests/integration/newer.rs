//! What only newer versions of Portainer do.

use std::time::Duration;

use testbed::{Call, Era, FaultKind};

use crate::bench::{Bench, PLAIN, instead, write_private};

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
