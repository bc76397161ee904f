//! B38: networks that somebody changed by hand.

use crate::bench::Bench;

/// The anonymous volume gets a name, which recreates the container.
const TEXT: &str = "services:\n  a:\n    image: busybox:1.36\n    volumes: [/cache]\n";

#[test]
fn b38_what_a_deployment_changes_is_said_before_it_and_no_failure_after_it() {
    let disconnect: fn(&Bench) = |bench| {
        bench.change_container("web-a-1", |one| one.networks.clear());
    };
    let reconnect: fn(&Bench) = |bench| {
        bench.change_container("web-a-1", |one| {
            let attachment = one.networks.get_mut("web_default").expect("a network");
            let aliases = attachment["Aliases"].as_array_mut().expect("aliases");
            aliases.retain(|alias| alias != "a");
        });
    };
    let connect: fn(&Bench) = |bench| {
        bench.change_container("web-a-1", |one| {
            let attachment = one.networks["web_default"].clone();
            one.networks.insert("other".to_owned(), attachment);
        });
    };
    for (change, said) in [
        (disconnect, "connected to network web_default"),
        (reconnect, "gets these aliases in network web_default: a"),
        (connect, "no longer connected to network other"),
    ] {
        let bench = Bench::web(TEXT);
        let before = bench.container("web-a-1").networks;
        change(&bench);
        bench.run("plan web").code(0).says(said);
        bench.run("adopt web --yes").code(0).says(said);
        let after = bench.container("web-a-1").networks;
        assert!(after.keys().eq(before.keys()), "{after:?}");
    }
}
