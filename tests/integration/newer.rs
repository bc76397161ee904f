//! What only newer versions of Portainer do.

use testbed::Era;

use crate::bench::{Bench, PLAIN};

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
