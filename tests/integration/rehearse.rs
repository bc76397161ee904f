//! The processes that a rehearsal serves. Transcripts show everything else that `stacklift rehearse` does.

use std::{os::unix::process::CommandExt as _, process::Command};

use rehearsal::{Options, Rehearsal, World};

use crate::bench::KEY;

/// Other users of the host do not reach it, even if they know the key (B45).
#[test]
#[ignore = "needs root: run scripts/test as root"]
fn as_root_b45_a_rehearsal_serves_only_its_own_user() {
    let options = Options {
        is_private: true,
        ..Options::default()
    };
    let rehearsal = Rehearsal::start(World::new(KEY), &options).expect("a rehearsal");
    let url = rehearsal.base_url();
    let (_, port) = url.rsplit_once(':').expect("a port");
    // What is no TLS is answered with an alert.
    let script =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo no TLS >&3; head -c 1 <&3 | wc -c");
    let answered = |user| {
        let mut shell = Command::new("/bin/bash");
        let output = shell.args(["-c", &script]).uid(user).output();
        String::from_utf8(output.expect("it runs").stdout).expect("UTF-8")
    };
    assert_eq!(answered(0).trim(), "1");
    assert_eq!(answered(54_321).trim(), "0");
}
