use super::*;

#[test]
fn the_examples_run_as_started_by_hand() {
    let world = World::with_examples("key", "/opt/stacks").unwrap();
    println!("{}", world.summary());
    assert_eq!(world.containers.len(), 11);
}
