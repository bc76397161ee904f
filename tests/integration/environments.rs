//! `--endpoint auto`: the environment whose engine is the engine of this host (M17, M22).

use testbed::Call;

use crate::bench::{Bench, PLAIN};

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
