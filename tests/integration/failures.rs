//! B40: no snapshot is passed over without a word.

use std::{fs, os::unix::fs::chown};

use crate::bench::{Bench, PLAIN, Run, set_mode};

#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_snapshots_in_another_state_directory_are_named() {
    const USER: u32 = 65_534;
    let bench = Bench::adopted(PLAIN);
    let home = bench.home().join("own");
    let folder = home.join(".local/state/stacklift");
    let project = folder.join("snapshots/web-0123456789abcdef");
    fs::create_dir_all(&project).expect("directories");
    fs::write(project.join("20261127T120000.000Z.json"), "{}").expect("a snapshot");
    for folder in [bench.root(), bench.home()] {
        set_mode(folder, 0o1777);
    }
    chown(&folder, Some(USER), None).expect("root");
    let says = format!(
        "warning: there are snapshots of web in {}: to use them, unset STACKLIFT_STATE_DIR\n",
        folder.display()
    );
    let mut command = bench.as_user("restore web --list", USER);
    command
        .env("HOME", &home)
        .env("STACKLIFT_STATE_DIR", home.join("absent"));
    let none = "no snapshot of web in ";
    Run::of(&mut command).fails(&[&says[..], none]);
}
